/* request.c - see request.h. A field that would change the answer is obeyed or refused: none is
 * passed over in silence. */
#include "serve/request.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "dpinfer/schema.h"

/* The value as the client wrote it, cut where it is long. */
static void show(const json_t *value, char text[48]) {
    char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII |
                                          JSON_REAL_PRECISION(12));
    const size_t n = json ? strlen(json) : 0;
    snprintf(text, 48, n > 40 ? "%.37s..." : "%s", json ? json : "");
    dpi_private_free(json);
}

static bool refuse_value(refusal *why, const char *name, const json_t *value, const char *allowed) {
    char found[48];
    show(value, found);
    return refuse(why, 400, name, "%s: found %s, allowed %s", name, found, allowed);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static bool read_flag(const json_t *value, const char *name, bool *flag, refusal *why) {
    if (!json_is_boolean(value))
        return refuse_value(why, name, value, "true, false");
    *flag = json_is_true(value);
    return true;
}

static bool read_integer(const json_t *value, const char *name, int64_t min, int64_t max,
                         int64_t *number, refusal *why) {
    char allowed[64];
    *number = json_integer_value(value);
    if (json_is_integer(value) && *number >= min && *number <= max)
        return true;
    snprintf(allowed, sizeof allowed, "%lld..%lld", (long long)min, (long long)max);
    return refuse_value(why, name, value, allowed);
}

static bool read_top_p(const json_t *value, double *top_p, refusal *why) {
    *top_p = json_number_value(value);
    return (json_is_number(value) && *top_p > 0 && *top_p <= 1) ||
           refuse_value(why, "top_p", value, "0 < x <= 1");
}

static bool read_tau(const json_t *value, double *tau, refusal *why) {
    const double found = json_number_value(value);
    if (!json_is_number(value) || !(found == 0 || (found >= .01 && found <= 100)))
        return refuse_value(why, "temperature", value, "0, .01..100");
    *tau = found;
    return true;
}

/* A copy of a text of the client's. */
static bool copy_text(const char *bytes, size_t n_bytes, char **text, size_t *n, refusal *why) {
    char *grown = dpi_private_realloc(*text, *n + n_bytes + 1);
    if (!grown)
        return refuse(why, 503, NULL, "no memory for a prompt");
    memcpy(grown + *n, bytes, n_bytes);
    *text = grown;
    *n += n_bytes;
    grown[*n] = '\0';
    return true;
}

/* Each member of an object is null, or one of `allowed`, which ends with NULL. */
static bool check_members(const json_t *object, const char *field, const char *what,
                          const char *const *allowed, refusal *why) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        const char *const *name = allowed;
        while (*name && strcmp(key, *name) != 0)
            name++;
        if (!*name && !json_is_null(value))
            return refuse(why, 400, field, "%s: '%.60s' is not a field of a %s", field, key, what);
    }
    return true;
}

/* A string, or an array of {"type": "text", "text": ...}, whose texts follow each other. */
static bool read_content(const json_t *content, char **text, size_t *n, refusal *why) {
    static const char *const members[] = {"type", "text", NULL};
    if (json_is_string(content))
        return copy_text(json_string_value(content), json_string_length(content), text, n, why);
    if (!json_is_array(content) || json_array_size(content) == 0)
        return refuse_value(why, "content", content, "a string, or an array of parts with a text");
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *words = json_object_get(part, "text");
        if (!type || strcmp(type, "text") != 0 || !json_is_string(words))
            return refuse(why, 400, "messages", "content: found a part that is no text, allowed "
                                                "parts of the type text");
        if (!check_members(part, "messages", "part of the content", members, why) ||
            !copy_text(json_string_value(words), json_string_length(words), text, n, why))
            return false;
    }
    return true;
}

static bool is_system(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

/* What the user said last, with its answer, is an earlier turn. */
static bool read_answer(const json_t *content, request *r, refusal *why) {
    char *answer = NULL;
    size_t n_answer = 0;
    const bool ok = read_content(content, &answer, &n_answer, why);
    r->turns[r->n_turns++] = (dpi_turn){r->user, answer, r->n_user, n_answer};
    r->user = NULL;
    r->n_user = 0;
    return ok;
}

/* role NULL: of the system. */
static bool read_message(const json_t *message, size_t i, const char *role, request *r,
                         refusal *why) {
    static const char *const members[] = {"role", "content", "name", NULL};
    const json_t *content = json_object_get(message, "content");
    const char *found = json_string_value(json_object_get(message, "role"));
    if (role && (!found || strcmp(found, role) != 0))
        return refuse(why, 400, "messages", "messages: the role of message %zu must be '%s'",
                      i + 1, role);
    if (!check_members(message, "messages", "message", members, why))
        return false;
    if (!role)
        return read_content(content, &r->system, &r->n_system, why);
    return strcmp(role, "user") == 0 ? read_content(content, &r->user, &r->n_user, why)
                                     : read_answer(content, r, why);
}

/* What the system says may come first; then user and assistant speak in turn, and the user has the
 * last word. */
static bool read_messages(const json_t *messages, request *r, refusal *why) {
    const size_t n = json_array_size(messages);
    const size_t first = n > 1 && is_system(json_array_get(messages, 0));
    if (!json_is_array(messages) || (n - first) % 2 == 0 ||
        (n - first) / 2 > REQUEST_TURNS_MAX)
        return refuse(why, 400, "messages",
                      "messages: found %zu, allowed one of the system, or none, and then 1..%d of "
                      "user and assistant in turn, the last one of the user",
                      n, 2 * REQUEST_TURNS_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        const char *role = i < first ? NULL : (i - first) % 2 == 0 ? "user" : "assistant";
        if (!read_message(json_array_get(messages, i), i, role, r, why))
            return false;
    }
    return true;
}

static bool read_prompt(const json_t *prompt, request *r, refusal *why) {
    if (json_is_array(prompt) && json_array_size(prompt) == 1)
        prompt = json_array_get(prompt, 0);
    if (!json_is_string(prompt))
        return refuse(why, 400, "prompt", "prompt: allowed is one string");
    return copy_text(json_string_value(prompt), json_string_length(prompt), &r->user, &r->n_user,
                     why);
}

static bool read_stream_options(const json_t *value, request *r, refusal *why) {
    const char *key;
    json_t *member;
    if (!json_is_object(value))
        return refuse_value(why, "stream_options", value, "{\"include_usage\": true}");
    json_object_foreach((json_t *)value, key, member) {
        if (strcmp(key, "include_usage") != 0)
            return refuse_value(why, "stream_options", value, "{\"include_usage\": true}");
        if (!read_flag(member, "include_usage", &r->includes_usage, why))
            return false;
    }
    return true;
}

/* A string, or an array of them. */
static bool read_stops(const json_t *value, request *r, refusal *why) {
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *stop = json_is_array(value) ? json_array_get(value, i) : value;
        const size_t n_bytes = json_string_length(stop);
        if (n > DPI_STOPS_MAX || n_bytes < 1 || n_bytes > DPI_WORDING_TEXT_MAX)
            return refuse_value(why, "stop", value, "up to 16 strings of 1..256 bytes");
        char *copy = NULL;
        size_t n_copied = 0;
        if (!copy_text(json_string_value(stop), n_bytes, &copy, &n_copied, why))
            return false;
        r->stops[r->n_stops++] = (dpi_bytes){copy, n_copied};
    }
    return true;
}

/* {"50256": -100}: tokens by their numbers. */
static bool read_biases(const json_t *value, request *r, refusal *why) {
    const char *token;
    json_t *bias;
    bool ok = json_is_object(value) && json_object_size(value) <= REQUEST_BIASES_MAX;
    json_object_foreach((json_t *)value, token, bias) {
        const size_t n = strspn(token, "0123456789");
        ok = ok && n > 0 && n < 10 && !token[n] && json_is_number(bias) &&
             fabs(json_number_value(bias)) <= 100;
        if (ok)
            r->biases[r->n_biases++] = (dpi_token_bias){
                .token = (int32_t)strtol(token, NULL, 10), .bias = json_number_value(bias)};
    }
    return ok || refuse_value(why, "logit_bias", value,
                              "up to 300 numbers of tokens, each with -100..100");
}

static bool check_biases(const request *r, int32_t n_vocab, refusal *why) {
    for (int32_t i = 0; i < r->n_biases; i++)
        if (r->biases[i].token >= n_vocab)
            return refuse(why, 400, "logit_bias", "logit_bias: found the token %d, allowed are "
                          "those of the model, 0..%d", (int)r->biases[i].token, (int)n_vocab - 1);
    return true;
}

/* A token that the answer has loses that much of its logit, once, as the wording's penalty has
 * it. */
static bool read_presence(const json_t *value, request *r, refusal *why) {
    const double amount = json_number_value(value);
    if (!json_is_number(value) || amount < 0 || amount > 2)
        return refuse_value(why, "presence_penalty", value, "0..2");
    r->repeat_penalty = exp(amount / DPI_REPEAT_SCALE);
    return true;
}

/* An object of any members. */
static const char any_object[] = "{\"type\": \"object\"}";

/* A schema, as the text that the library reads. */
static bool make_grammar(const char *schema, size_t n_bytes, request *r, refusal *why) {
    dpi_error err;
    const dpi_status status = dpi_grammar_from_schema(schema, n_bytes, &r->grammar, &err);
    if (status == DPI_STATUS_OK)
        return true;
    return refuse(why, status == DPI_STATUS_MEMORY ? 503 : 400, "response_format",
                  "response_format: %s", err.message);
}

/* {"name", "description", "strict", "schema"}: a schema is always held to. */
static bool read_schema(const json_t *value, request *r, refusal *why) {
    static const char *const members[] = {"name", "description", "strict", "schema", NULL};
    const json_t *schema = json_object_get(value, "schema");
    if (!json_is_object(schema))
        return refuse(why, 400, "response_format",
                      "response_format.json_schema.schema: found %s, allowed a JSON schema",
                      schema ? "no object" : "none");
    if (!check_members(value, "response_format", "json_schema", members, why))
        return false;
    char *text = json_dumps(schema, JSON_COMPACT);
    const bool ok = text ? make_grammar(text, strlen(text), r, why)
                         : refuse(why, 503, NULL, "no memory for a schema");
    dpi_private_free(text);
    return ok;
}

static bool read_format(const json_t *value, request *r, refusal *why) {
    static const char *const members[] = {"type", NULL};
    static const char *const of_schema[] = {"type", "json_schema", NULL};
    const char *type = json_string_value(json_object_get(value, "type"));
    const bool is_schema = type && strcmp(type, "json_schema") == 0;
    const bool is_object = type && strcmp(type, "json_object") == 0;
    if (!is_schema && !is_object && !(type && strcmp(type, "text") == 0))
        return refuse_value(why, "response_format", value,
                            "the type text, json_object or json_schema");
    if (!check_members(value, "response_format", type, is_schema ? of_schema : members, why))
        return false;
    return is_schema   ? read_schema(json_object_get(value, "json_schema"), r, why)
           : is_object ? make_grammar(any_object, sizeof any_object - 1, r, why)
                       : true;
}

dpi_wording request_wording(const request *r) {
    dpi_wording w;
    dpi_wording_init(&w);
    w.stops = r->stops, w.n_stops = r->n_stops;
    w.biases = r->biases, w.n_biases = r->n_biases;
    w.repeat_penalty = r->repeat_penalty;
    w.keep_space = !r->dataset[0];
    return w;
}

/* ---- Privacy --------------------------------------------------------------------------------- */

/* Below it the clip bound is a few of its least steps, and what an answer costs at a usual delta is
 * nothing, or four times less than what was asked for. */
#define EPSILON_LEAST 1e-5

/* least 0: 0 and `most` are not allowed. */
static bool read_real(const json_t *value, const char *name, double least, double most,
                      double *number, refusal *why) {
    char allowed[48];
    const bool is_open = least == 0;
    *number = json_number_value(value);
    if (json_is_number(value) &&
        (is_open ? *number > 0 && *number < most : *number >= least && *number <= most))
        return true;
    snprintf(allowed, sizeof allowed, is_open ? "%g < x < %g" : "%g <= x <= %g", least, most);
    return refuse_value(why, name, value, allowed);
}

/* A short string without control characters. */
static bool read_name(const json_t *value, const char *name, char *text, size_t size,
                      refusal *why) {
    const char *found = json_string_value(value);
    const size_t n = found ? json_string_length(value) : 0;
    bool ok = n > 0 && n < size;
    for (size_t i = 0; ok && i < n; i++)
        ok = (unsigned char)found[i] >= 0x20 && found[i] != 0x7f;
    if (ok)
        memcpy(text, found, n + 1);
    return ok || refuse(why, 400, name, "%s: allowed is a string of 1..%d bytes", name,
                        (int)size - 1);
}

/* T has two names, which must say the same. */
static bool set_tokens(request *r, const char *name, const json_t *value, refusal *why) {
    int64_t number;
    if (!read_integer(value, name, 1, REQUEST_TOKENS_MAX, &number, why))
        return false;
    if (r->n_tokens > 0 && r->n_tokens != (int32_t)number)
        return refuse(why, 400, name, "%s: found %d and %d", name, (int)r->n_tokens, (int)number);
    r->n_tokens = (int32_t)number;
    return true;
}

static bool read_privacy_field(const char *key, const json_t *value, request *r, refusal *why) {
    int64_t number = 0;
    if (strcmp(key, "epsilon") == 0)
        return read_real(value, "privacy.epsilon", EPSILON_LEAST, 1e6, &r->epsilon, why);
    if (strcmp(key, "delta") == 0)
        return read_real(value, "privacy.delta", 0, 1, &r->delta, why);
    if (strcmp(key, "tokens") == 0)
        return set_tokens(r, "privacy.tokens", value, why);
    if (strcmp(key, "label") == 0)
        return read_name(value, "privacy.label", r->label, sizeof r->label, why);
    if (strcmp(key, "batch") == 0) {
        const bool ok = read_integer(value, "privacy.batch", 1, 4096, &number, why);
        r->batch = (int32_t)number;
        return ok;
    }
    return refuse(why, 400, "privacy", "'%.60s' is not a field of privacy", key);
}

static bool read_privacy(const json_t *value, request *r, refusal *why) {
    const char *key;
    json_t *member;
    if (!json_is_object(value))
        return refuse_value(why, "privacy", value, "{\"epsilon\": 1}");
    json_object_foreach((json_t *)value, key, member) {
        if (!read_privacy_field(key, member, r, why))
            return false;
    }
    return true;
}

/* What goes with a dataset, and what does not. */
static bool check_privacy(const json_t *object, const request *r, int form, refusal *why) {
    const bool has_privacy = json_is_object(json_object_get(object, "privacy"));
    if (!r->dataset[0] && (has_privacy || form == REQUEST_ANY))
        return refuse(why, 400, "dataset", "dataset: there is none");
    if (!r->dataset[0])
        return true;
    if (r->epsilon == 0)
        return refuse(why, 400, "privacy", "privacy.epsilon: there is none: an answer about a "
                                           "dataset spends what the request says, 1e-5..1e6");
    if (r->is_seeded)
        return refuse(why, 400, "seed", "seed: not allowed with a dataset: whoever knows it could "
                                        "undo the mechanism");
    if (r->has_tau && r->tau == 0)
        return refuse(why, 400, "temperature", "temperature: found 0, allowed .01..100 with a "
                                               "dataset");
    if (r->top_p < 1)
        return refuse(why, 400, "top_p",
                      "top_p: found %g, allowed 1 with a dataset: records change the mass of "
                      "tokens; top_k chooses them by the public prompt", r->top_p);
    return true;
}

/* ---- Fields of others ------------------------------------------------------------------------ */

/* Fields of the OpenAI form that say nothing about the text. */
static bool is_without_effect(const char *key) {
    static const char *const names[] = {"model",        "user",  "metadata",
                                        "service_tier", "store", "safety_identifier"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

/* Fields of it that this server does not have: they are accepted where they change nothing. */
static bool read_fixed(const char *key, const json_t *value, refusal *why) {
    static const struct {
        const char *name, *allowed;
        double number; /* what changes nothing; NAN: none */
    } fixed[] = {
        {"n", "1", 1},
        {"best_of", "1", 1},
        {"min_p", "0", 0},
        {"frequency_penalty", "0", 0},
        {"repeat_penalty", "1", 1},
        {"top_logprobs", "0", 0},
        {"logprobs", "false", NAN},
        {"echo", "false", NAN},
        {"suffix", "null", NAN},
        {"tools", "null", NAN},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (strcmp(key, fixed[i].name) != 0)
            continue;
        const bool is_empty = json_is_null(value) || json_is_false(value) ||
                              (json_is_object(value) && json_object_size(value) == 0) ||
                              (json_is_array(value) && json_array_size(value) == 0);
        const bool is_same = json_is_number(value) && json_number_value(value) == fixed[i].number;
        if (is_same || (isnan(fixed[i].number) && is_empty) || json_is_null(value))
            return true;
        return refuse_value(why, fixed[i].name, value, fixed[i].allowed);
    }
    return refuse(why, 400, NULL, "'%.60s' is not a field here", key);
}

/* ---- All ------------------------------------------------------------------------------------- */

static bool read_field(const char *key, const json_t *value, request *r, refusal *why) {
    int64_t number = 0;
    bool ok;
    if (is_without_effect(key))
        return true;
    if (strcmp(key, r->is_chat ? "messages" : "prompt") == 0)
        return r->is_chat ? read_messages(value, r, why) : read_prompt(value, r, why);
    if (json_is_null(value))
        return true;
    if (strcmp(key, "dataset") == 0)
        return read_name(value, "dataset", r->dataset, sizeof r->dataset, why);
    if (strcmp(key, "privacy") == 0)
        return read_privacy(value, r, why);
    if (strcmp(key, "stream") == 0)
        return read_flag(value, "stream", &r->is_streamed, why);
    if (strcmp(key, "stream_options") == 0)
        return read_stream_options(value, r, why);
    if (strcmp(key, "stop") == 0)
        return read_stops(value, r, why);
    if (strcmp(key, "logit_bias") == 0)
        return read_biases(value, r, why);
    if (strcmp(key, "presence_penalty") == 0)
        return read_presence(value, r, why);
    if (strcmp(key, "response_format") == 0)
        return read_format(value, r, why);
    if (strcmp(key, "top_p") == 0)
        return read_top_p(value, &r->top_p, why);
    if (strcmp(key, "temperature") == 0) {
        r->has_tau = true;
        return read_tau(value, &r->tau, why);
    }
    if (strcmp(key, "max_tokens") == 0 || strcmp(key, "max_completion_tokens") == 0)
        return set_tokens(r, "max_tokens", value, why);
    if (strcmp(key, "top_k") == 0) {
        r->has_top_k = true;
        ok = read_integer(value, "top_k", 0, 1 << 18, &number, why);
        r->top_k = (int32_t)number;
        return ok;
    }
    if (strcmp(key, "seed") == 0) {
        ok = read_integer(value, "seed", INT64_MIN, INT64_MAX, &number, why);
        r->seed = (uint64_t)number;
        r->is_seeded = true;
        return ok;
    }
    return read_fixed(key, value, why);
}

static bool read_all(json_t *object, request *r, refusal *why) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (!read_field(key, value, r, why))
            return false;
    }
    return true;
}

/* The body as JSON; NULL: *why. */
static json_t *load(const char *body, size_t n_bytes, refusal *why) {
    json_error_t error;
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    json_t *object = n_bytes > 0 ? json_loadb(body, n_bytes, flags, &error) : NULL;
    if (n_bytes == 0)
        refuse(why, 400, NULL, "the body is empty, allowed is a JSON object");
    else if (!object && (json_error_code(&error) == json_error_null_character ||
                         json_error_code(&error) == json_error_null_byte_in_key))
        refuse(why, 400, NULL, "the body has the character NUL in a string, which is not allowed "
                               "(byte %d)", error.position);
    else if (!object && json_error_code(&error) == json_error_numeric_overflow)
        refuse(why, 400, NULL, "the body has a number that is too large, allowed are integers of "
                               "64 bits and reals up to 1.7e308 (byte %d)", error.position);
    else if (!object)
        refuse(why, 400, NULL, "the body is not JSON: %s (byte %d)", error.text, error.position);
    return object;
}

bool request_parse(const char *body, size_t n_bytes, int form, const request_defaults *defaults,
                   request *r, refusal *why) {
    *r = (request){.tau = defaults->tau, .top_k = defaults->top_k, .top_p = 1,
                   .repeat_penalty = 1};
    json_t *object = load(body, n_bytes, why);
    if (!object)
        return false;
    r->is_chat = form == REQUEST_CHAT ||
                 (form == REQUEST_ANY && json_object_get(object, "messages"));
    const bool ok = json_is_object(object)
                        ? read_all(object, r, why) && check_biases(r, defaults->n_vocab, why) &&
                              check_privacy(object, r, form, why)
                        : refuse(why, 400, NULL, "the body is not a JSON object");
    json_decref(object);
    if (ok && r->n_user == 0)
        return refuse(why, 400, r->is_chat ? "messages" : "prompt", "%s: there is no text",
                      r->is_chat ? "messages" : "prompt");
    return ok;
}

void request_free(request *r) {
    dpi_private_free(r->system);
    dpi_private_free(r->user);
    for (int32_t i = 0; i < r->n_stops; i++)
        dpi_private_free((char *)(uintptr_t)r->stops[i].data);
    for (size_t i = 0; i < r->n_turns; i++) {
        dpi_private_free((char *)(uintptr_t)r->turns[i].user);
        dpi_private_free((char *)(uintptr_t)r->turns[i].answer);
    }
    dpi_grammar_free(r->grammar);
    *r = (request){0};
}
