/* store.h - private answers on the disk, in a SQLite file: which ones were begun, and those that
 * were released, with their reports.
 *
 * An answer is a row before its charge, and is whole in its row before it is sent. So whoever sends
 * a request again with the same Idempotency-Key gets the answer that was released, and never
 * another draw of it. Only released texts and public numbers are in the file: of a request its
 * SHA-256.
 *
 * One process has the file at a time (flock on FILE.lock). Each commit is on the disk before the
 * call returns (synchronous=EXTRA). Threads: a store belongs to one at a time. */
#ifndef DPI_SERVE_STORE_H
#define DPI_SERVE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

typedef struct store store;

enum { STORE_KEY_MAX = 255, STORE_HASH_BYTES = 32, STORE_ID_MAX = 47,
       STORE_LABEL_MAX = 255 };

typedef enum stored_state {
    STORED_NONE = 0,  /* there is no such answer */
    STORED_BEGUN = 1, /* it may be charged, and is drawn */
    STORED_DONE = 2,  /* released */
    STORED_LOST = 3   /* charged, and never released: its text is gone */
} stored_state;

typedef struct stored {
    int64_t number; /* from 1, in the order of rows */
    int64_t round;   /* the same among those of its dataset and label */
    int32_t state;  /* a stored_state */
    char id[STORE_ID_MAX + 1];
    char principal[64]; /* "": whoever reaches the server */
    char dataset[64];
    char label[STORE_LABEL_MAX + 1]; /* "": of all labels */
    char key[STORE_KEY_MAX + 1]; /* "": none */
    uint8_t hash[STORE_HASH_BYTES]; /* of the request */
    int64_t amount, charge;         /* of the ledger; charge: its id, 0: not known to be made */
    int64_t created;                /* seconds since 1970 */
    /* Of what was released; private memory, which stored_free frees. */
    int64_t n_prompt;
    int32_t n_drawn, end; /* end: a dpi_end */
    char *text;           /* [n_bytes] */
    size_t n_bytes;
    char *facts;  /* JSON: what the answer says of its privacy */
    char *report; /* JSON */
} stored;

/* Makes the file if it is not there, readable by its owner alone. Errors: IO (locked by another
 * server, a full disk, no permission), FORMAT (another file), MEMORY. */
dpi_status store_open(const char *path, store **s, dpi_error *err);
/* NULL is allowed. */
void store_close(store *s);
void stored_free(stored *a);

/* The answer with a key of a principal; of the request alone: no text, facts or report of one that
 * is not done. Errors: IO, MEMORY. */
dpi_status store_find(store *s, const char *principal, const char *key, stored *a, dpi_error *err);
/* The report of an answer of a principal: a string of dpi_private_malloc; NULL (and OK): there is
 * none. Errors: IO, MEMORY. */
dpi_status store_report(store *s, const char *principal, const char *id, char **report,
                        dpi_error *err);

/* A new row: state BEGUN; a->number and a->round are set. `most`: what all answers of the principal
 * about the dataset may cost, this one included; -1: no bound. Errors: BUDGET (more), STATE (the
 * key is there already), IO. */
dpi_status store_begin(store *s, stored *a, int64_t most, dpi_error *err);
/* The row goes: nothing was charged. */
dpi_status store_forget(store *s, const char *id, dpi_error *err);
/* State DONE, with the charge and what was released. Errors: IO. */
dpi_status store_finish(store *s, const stored *a, dpi_error *err);
/* State LOST, with the charge. */
dpi_status store_lose(store *s, const char *id, int64_t charge, dpi_error *err);
/* A row with state BEGUN and a number above `after`; state NONE: there is no more. */
dpi_status store_next_begun(store *s, int64_t after, stored *a, dpi_error *err);

/* Whether the answer is released: it has a report. */
dpi_status store_is_done(store *s, const char *id, bool *is_done, dpi_error *err);

/* What a principal's answers about a dataset have cost. */
dpi_status store_spent(store *s, const char *principal, const char *dataset, int64_t *amount,
                       dpi_error *err);
/* The same of each principal, in the order of their names: user, name, amount, answers. */
dpi_status store_spenders(store *s, const char *dataset,
                          void (*tell)(void *user, const char *principal, int64_t amount,
                                       int64_t n_answers),
                          void *user, dpi_error *err);

#endif
