/* reply.c - see reply.h. */
#include "serve/reply.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool reply_new_id(char *id, size_t size, bool is_chat) {
    unsigned char bits[12];
    if (getentropy(bits, sizeof bits) != 0)
        return false;
    size_t n = (size_t)snprintf(id, size, is_chat ? "chatcmpl-" : "cmpl-");
    for (size_t i = 0; i < sizeof bits; i++)
        n += (size_t)snprintf(id + n, size - n, "%02x", bits[i]);
    return true;
}

json_t *reply_string(const char *bytes, size_t n_bytes) {
    json_t *string = json_stringn(bytes, n_bytes);
    char *clean = string ? NULL : dpi_private_malloc(n_bytes + 1);
    if (!clean)
        return string;
    for (size_t i = 0; i < n_bytes; i++)
        clean[i] = (unsigned char)bytes[i] < 0x80 ? bytes[i] : '?';
    string = json_stringn(clean, n_bytes);
    dpi_private_free(clean);
    return string;
}

char *reply_dump(json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static json_t *error_object(const refusal *why) {
    json_t *message = reply_string(why->message, strlen(why->message));
    if (!why->has_budget)
        return json_pack("{s: {s: o, s: s, s: s?, s: s?}}", "error", "message", message, "type",
                         why->type, "param", why->param, "code", why->code);
    return json_pack("{s: {s: o, s: s, s: s?, s: s?, s: f, s: f, s: i}}", "error", "message",
                     message, "type", why->type, "param", why->param, "code", why->code,
                     "remaining", why->left, "cost", why->cost, "order", why->order);
}

char *reply_error(const refusal *why) { return reply_dump(error_object(why)); }

char *reply_models(const char *model, int64_t created) {
    return reply_dump(json_pack("{s: s, s: [{s: o, s: s, s: I, s: s}]}", "object", "list", "data",
                                "id", reply_string(model, strlen(model)), "object", "model",
                                "created", (json_int_t)created, "owned_by", "dpinfer"));
}

/* ---- Answers --------------------------------------------------------------------------------- */

static const char *finish_of(const answer_view *view) {
    return dpi_end_is_own(view->end) ? "stop" : "length";
}

static json_t *usage_of(const reply_head *head, const answer_view *view) {
    return json_pack("{s: I, s: I, s: I}", "prompt_tokens", (json_int_t)head->n_prompt,
                     "completion_tokens", (json_int_t)view->n_drawn, "total_tokens",
                     (json_int_t)(head->n_prompt + view->n_drawn));
}

/* With what the answer says of privacy. The object is released where that fails. */
static json_t *add_facts(json_t *object, const reply_head *head) {
    if (!object || !head->facts)
        return object;
    json_t *facts = json_loads(head->facts, 0, NULL);
    if (facts && json_object_set_new(object, "privacy", facts) == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* An answer with one choice, or with none. */
static json_t *answer_object(const reply_head *head, const char *object, json_t *choice) {
    json_t *choices = json_array();
    if (choice && json_array_append_new(choices, choice) != 0) {
        json_decref(choices);
        return NULL;
    }
    return json_pack("{s: s, s: s, s: I, s: o, s: o}", "id", head->id, "object", object, "created",
                     (json_int_t)head->created, "model",
                     reply_string(head->model, strlen(head->model)), "choices", choices);
}

char *reply_answer(const reply_head *head, const answer_view *view) {
    json_t *text = reply_string(view->text ? view->text : "", view->n_bytes);
    json_t *choice =
        head->is_chat
            ? json_pack("{s: i, s: {s: s, s: o}, s: n, s: s}", "index", 0, "message", "role",
                        "assistant", "content", text, "logprobs", "finish_reason", finish_of(view))
            : json_pack("{s: i, s: o, s: n, s: s}", "index", 0, "text", text, "logprobs",
                        "finish_reason", finish_of(view));
    if (!choice)
        return NULL;
    json_t *object =
        answer_object(head, head->is_chat ? "chat.completion" : "text_completion", choice);
    if (object && json_object_set_new(object, "usage", usage_of(head, view)) != 0) {
        json_decref(object);
        return NULL;
    }
    return reply_dump(add_facts(object, head));
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* "data: JSON\n\n", and what follows. */
static char *event_of(json_t *object, const char *more) {
    char *json = reply_dump(object);
    const size_t n = json ? strlen(json) : 0, n_more = strlen(more);
    char *text = json ? dpi_private_malloc(n + n_more + 9) : NULL;
    if (text) {
        memcpy(text, "data: ", 6);
        memcpy(text + 6, json, n);
        memcpy(text + 6 + n, "\n\n", 2);
        memcpy(text + 8 + n, more, n_more + 1);
    }
    dpi_private_free(json);
    return text;
}

static json_t *part_object(const reply_head *head, json_t *delta, const char *finish) {
    json_t *choice = head->is_chat ? json_pack("{s: i, s: o, s: s?}", "index", 0, "delta", delta,
                                               "finish_reason", finish)
                                   : json_pack("{s: i, s: o, s: s?}", "index", 0, "text", delta,
                                               "finish_reason", finish);
    return choice ? answer_object(head, head->is_chat ? "chat.completion.chunk" : "text_completion",
                                  choice)
                  : NULL;
}

char *reply_first(const reply_head *head) {
    return event_of(part_object(head,
                                head->is_chat ? json_pack("{s: s, s: s}", "role", "assistant",
                                                          "content", "")
                                              : json_string(""),
                                NULL),
                    "");
}

char *reply_part(const reply_head *head, const char *text, size_t n_bytes) {
    json_t *string = reply_string(text, n_bytes);
    return event_of(part_object(head, head->is_chat ? json_pack("{s: o}", "content", string)
                                                    : string,
                                NULL),
                    "");
}

/* Both, which are released, one after the other; NULL: one of them is NULL, or no memory. */
static char *join(char *first, char *second) {
    char *both = first && second ? dpi_private_realloc(first, strlen(first) + strlen(second) + 1)
                                 : NULL;
    if (both)
        strcat(both, second);
    else
        dpi_private_free(first);
    dpi_private_free(second);
    return both;
}

char *reply_last(const reply_head *head, const answer_view *view, bool with_usage) {
    json_t *usage = with_usage ? answer_object(head, head->is_chat ? "chat.completion.chunk"
                                                                   : "text_completion", NULL)
                               : NULL;
    if (usage && json_object_set_new(usage, "usage", usage_of(head, view)) != 0) {
        json_decref(usage);
        return NULL;
    }
    json_t *part =
        part_object(head, head->is_chat ? json_object() : json_string(""), finish_of(view));
    char *end = event_of(add_facts(part, head),
                         with_usage ? "" : "data: [DONE]\n\n");
    return !with_usage ? end : join(end, event_of(usage, "data: [DONE]\n\n"));
}

char *reply_events(const reply_head *head, const answer_view *view, bool with_usage) {
    char *first = reply_first(head);
    char *text = view->n_bytes > 0 ? reply_part(head, view->text, view->n_bytes) : NULL;
    if (text || view->n_bytes > 0)
        first = join(first, text);
    return join(first, reply_last(head, view, with_usage));
}

char *reply_failed(const refusal *why) { return event_of(error_object(why), ""); }
