/* prompts_json.c - see prompts_json.h. Everything in it is public, and stays in private memory. */
#include "pipeline/release/prompts_json.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/digest.h"
#include "pipeline/prompts.h"

typedef struct writer {
    char *data; /* private memory */
    size_t n, capacity;
    bool failed; /* out of memory */
} writer;

static void put(writer *w, const char *bytes, size_t n_bytes) {
    w->failed = w->failed || !dpi_private_grow(&w->data, &w->capacity, w->n + n_bytes, 1);
    if (w->failed || n_bytes == 0)
        return;
    memcpy(w->data + w->n, bytes, n_bytes);
    w->n += n_bytes;
}

static void put_string(writer *w, const char *string) { put(w, string, strlen(string)); }

/* A byte of a JSON string, as jansson writes it. */
static void put_escaped(writer *w, char byte) {
    static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
    const char *at = memchr(plain, byte, sizeof plain - 1);
    char code[8];
    if (at) {
        snprintf(code, sizeof code, "\\%c", escaped[at - plain]);
        put_string(w, code);
    } else if ((unsigned char)byte < 0x20) {
        snprintf(code, sizeof code, "\\u%04X", (unsigned)byte);
        put_string(w, code);
    } else {
        put(w, &byte, 1);
    }
}

/* A text that is no UTF-8, or has a NUL, has its bytes in hexadecimal. */
static void put_text(writer *w, dpi_bytes text) {
    const bool is_text = text.n_bytes == 0 || (!memchr(text.data, '\0', text.n_bytes) &&
                                               dpi_is_utf8(text.data, text.n_bytes));
    if (!text.data) {
        put_string(w, "null");
        return;
    }
    put_string(w, is_text ? "\"" : "{\"bytes\":\"");
    for (size_t i = 0; i < text.n_bytes; i++) {
        char hex[4];
        snprintf(hex, sizeof hex, "%02x", (unsigned)(unsigned char)text.data[i]);
        is_text ? put_escaped(w, text.data[i]) : put_string(w, hex);
    }
    put_string(w, is_text ? "\"" : "\"}");
}

/* A key behind others, and its text. */
static void put_key(writer *w, const char *key, dpi_bytes text) {
    put_string(w, ",\"");
    put_string(w, key);
    put_string(w, "\":");
    put_text(w, text);
}

static void put_examples(writer *w, const dpi_prompt_options *o) {
    put_string(w, ",\"examples\":[");
    for (int32_t i = 0; i < o->n_examples; i++) {
        put_string(w, i > 0 ? "," : "");
        put_text(w, o->examples[i]);
    }
    put_string(w, "]");
}

/* [what the user said, the answer] of each. */
static void put_turns(writer *w, const dpi_prompt_options *o) {
    put_string(w, ",\"turns\":[");
    for (int32_t i = 0; i < o->n_turns; i++) {
        const dpi_turn *t = &o->turns[i];
        put_string(w, i > 0 ? ",[" : "[");
        put_text(w, (dpi_bytes){t->user, t->n_user});
        put_string(w, ",");
        put_text(w, (dpi_bytes){t->answer, t->n_answer});
        put_string(w, "]");
    }
    put_string(w, "]");
}

/* [label, what {label} stands for], where a prompt names it. */
static void put_labels(writer *w, const dpi_plan *plan) {
    const bool named = dpi_prompt_options_have_label(&plan->options.prompts) != 0;
    put_string(w, ",\"labels\":[");
    for (int32_t i = 0; named && i < plan->labels.n; i++) {
        const dpi_span *name = &plan->labels.names.at[i];
        put_string(w, i > 0 ? ",[" : "[");
        put_text(w, (dpi_bytes){name->data, name->n_bytes});
        put_string(w, ",");
        put_text(w, dpi_labels_meaning(&plan->labels, i));
        put_string(w, "]");
    }
    put_string(w, "]");
}

static void put_all(writer *w, const dpi_plan *plan, const dpi_prompts *p) {
    const dpi_prompt_options *o = &plan->options.prompts;
    char most[24];
    snprintf(most, sizeof most, "%d}", (int)o->max_reference_tokens);
    put_string(w, "{\"chat\":\"");
    put_string(w, dpi_chat_name(plan->prompts_info.chat));
    put_string(w, "\"");
    put_key(w, "system", o->system);
    put_turns(w, o);
    put_key(w, "public_prompt", dpi_prompts_public_text(p));
    put_key(w, "private_prompt", dpi_prompts_private_text(p));
    put_key(w, "description", o->description);
    put_key(w, "query", o->query);
    put_examples(w, o);
    put_string(w, ",\"example_in\":");
    put_string(w, o->example_in == DPI_EXAMPLE_IN_BOTH ? "\"both\"" : "\"public\"");
    put_labels(w, plan);
    put_string(w, ",\"max_reference_tokens\":");
    put(w, most, strlen(most) + 1); /* with the NUL */
}

dpi_status dpi_plan_prompts_json(const dpi_plan *plan, char **json, dpi_error *err) {
    dpi_prompt_options o = plan->options.prompts;
    dpi_prompts *p;
    writer w = {0};
    o.label = (dpi_bytes){NULL, 0}; /* {label} as it stands */
    DPI_TRY(dpi_prompts_sketch(plan->options.model, &o, &p, err));
    put_all(&w, plan, p);
    dpi_prompts_free(p);
    if (w.failed) {
        dpi_private_free(w.data);
        return dpi_no_memory(err, "the prompts");
    }
    *json = w.data;
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_hash_prompts(dpi_plan *plan, dpi_error *err) {
    char *json;
    DPI_TRY(dpi_plan_prompts_json(plan, &json, err));
    dpi_digest(json, strlen(json), plan->claim.prompts);
    dpi_private_free(json);
    return DPI_STATUS_OK;
}

/* ---- Read ------------------------------------------------------------------------------------ */

static bool is_text(const json_t *text, bool may_be_null) {
    const json_t *bytes = json_object_get(text, "bytes");
    const size_t n = json_string_length(bytes);
    return json_is_string(text) || (may_be_null && json_is_null(text)) ||
           (json_object_size(text) == 1 && n > 0 && n % 2 == 0 &&
            dpi_is_hex(json_string_value(bytes), n));
}

static bool is_chat(const json_t *chat) {
    int32_t i;
    return json_is_string(chat) &&
           dpi_chat_parse(json_string_value(chat), &i, NULL) == DPI_STATUS_OK && i != DPI_CHAT_AUTO;
}

static bool is_example_in(const json_t *name) {
    static const char *const names[] = {"public", "both", NULL};
    return json_is_string(name) && dpi_is_one_of(names, json_string_value(name));
}

static bool may_be_text(const json_t *text) { return is_text(text, true); }

static bool is_count(const json_t *n) {
    return json_is_integer(n) && json_integer_value(n) >= 0 && json_integer_value(n) <= INT32_MAX;
}

static bool are_texts(const json_t *list) {
    const json_t *text;
    size_t i;
    bool ok = json_is_array(list);
    json_array_foreach(list, i, text)
        ok = ok && is_text(text, false);
    return ok;
}

static bool are_pairs(const json_t *list) {
    const json_t *pair;
    size_t i;
    bool ok = json_is_array(list);
    json_array_foreach(list, i, pair)
        ok = ok && are_texts(pair) && json_array_size(pair) == 2;
    return ok;
}

bool dpi_prompts_json_is(const json_t *prompts) {
    static const struct {
        const char *key;
        bool (*is)(const json_t *value);
    } keys[] = {{"chat", is_chat}, {"system", may_be_text}, {"turns", are_pairs},
                {"public_prompt", may_be_text}, {"private_prompt", may_be_text},
                {"description", may_be_text}, {"query", may_be_text}, {"examples", are_texts},
                {"example_in", is_example_in}, {"labels", are_pairs},
                {"max_reference_tokens", is_count}};
    const size_t n = sizeof keys / sizeof *keys;
    const size_t n_shown = json_array_size(json_object_get(prompts, "turns")) +
                           json_array_size(json_object_get(prompts, "examples"));
    bool ok = json_object_size(prompts) == n && n_shown <= DPI_EXAMPLES_MAX;
    for (size_t i = 0; i < n && ok; i++)
        ok = keys[i].is(json_object_get(prompts, keys[i].key));
    return ok;
}
