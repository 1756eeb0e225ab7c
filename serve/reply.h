/* reply.h - what is sent, as JSON: the form of the OpenAI API where it has one. Every function
 * gives a string that the caller frees with dpi_private_free; NULL: out of memory. */
#ifndef DPI_SERVE_REPLY_H
#define DPI_SERVE_REPLY_H

#include <jansson.h>

#include "serve/worker.h"

/* What all parts of one answer say of it. Public. */
typedef struct reply_head {
    char id[64];
    int64_t created; /* seconds since 1970 */
    const char *model;
    bool is_chat;
    int64_t n_prompt; /* tokens of the public prompt */
    const char *facts; /* JSON: what it says of privacy; NULL: nothing */
} reply_head;

/* "chatcmpl-" or "cmpl-" and random digits, which tell nothing of what else the server does. False:
 * the system gives no random bits. */
bool reply_new_id(char *id, size_t size, bool is_chat);

/* A JSON string of bytes that may be anything: what is no UTF-8 becomes '?'. */
json_t *reply_string(const char *bytes, size_t n_bytes);
char *reply_error(const refusal *why);
/* The text of an object, which is released. */
char *reply_dump(json_t *object);

char *reply_models(const char *model, int64_t created);
/* A whole answer. */
char *reply_answer(const reply_head *head, const answer_view *view);

/* Parts of an answer that is streamed, each one an event with its line ends. */
char *reply_first(const reply_head *head);
char *reply_part(const reply_head *head, const char *text, size_t n_bytes);
/* The last part of a text: why it ended, what it used where with_usage, and [DONE]. */
char *reply_last(const reply_head *head, const answer_view *view, bool with_usage);
/* All of them, of a text that is over. */
char *reply_events(const reply_head *head, const answer_view *view, bool with_usage);
/* The text has failed on its way. */
char *reply_failed(const refusal *why);

#endif
