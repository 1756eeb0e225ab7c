/* kept.h - caches of records' prompts that stay in the session after an answer, so that the next
 * question about the same records reads only what is new.
 *
 * A prompt begins with what was kept of its record as far as both have the same tokens: they are
 * compared, and its logits have the bits that they have without (dpinfer/session.h). Which record a
 * prompt is of only says where to look. What is kept decides time and memory alone; it is private,
 * and wiped with the session.
 *
 * Threads: all calls come from the one that has the session. */
#ifndef DPI_SERVE_KEPT_H
#define DPI_SERVE_KEPT_H

#include <stdbool.h>

#include "dpinfer.h"

typedef struct kept kept;

/* Which record it is: of which dataset of the server, and its index there. */
typedef struct record_name {
    int32_t dataset; /* -1: none */
    size_t index;
} record_name;

/* How many prompts of records a session may keep in n_bytes of caches, at most n_records, and none
 * where the model has a recurrent state, which is that behind the question; and what
 * sequences of it they are: dpi_session_options.n_kept. `session` is that of the answers. Errors:
 * those of dpi_session_memory. */
dpi_status kept_count(const dpi_model *model, const dpi_session_options *session, int64_t n_bytes,
                      int64_t n_records, int32_t *n_kept, dpi_error *err);

/* For the sequences n_seq .. n_seq + n_kept - 1 of `session`, which `options` made. *k is
 * kept_free's. Errors: MEMORY. */
dpi_status kept_create(dpi_session *session, const dpi_model *model,
                       const dpi_session_options *options, int64_t n_bytes, kept **k,
                       dpi_error *err);
/* Before the session. NULL is allowed. */
void kept_free(kept *k);

/* The sequence that begins with the same *n_held tokens as a prompt of a record; -1: there is none.
 * It stays until kept_leave. */
int32_t kept_find(kept *k, record_name record, const int32_t *tokens, size_t n_tokens,
                  int32_t *n_held);
void kept_leave(kept *k, int32_t seq);

/* Keeps the prompt of a record that `seq` holds, tokens [n_tokens], where there is room. What was
 * not used for KEPT_ANSWERS answers makes room for it. */
enum { KEPT_ANSWERS = 256 };
void kept_add(kept *k, record_name record, const int32_t *tokens, size_t n_tokens, int32_t seq);
/* Another answer begins. */
void kept_count_answer(kept *k);

#endif
