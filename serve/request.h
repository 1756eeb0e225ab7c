/* request.h - the body of a request, read and checked. Nothing here knows of connections. */
#ifndef DPI_SERVE_REQUEST_H
#define DPI_SERVE_REQUEST_H

#include <stdint.h>

#include "dpinfer/grammar.h"
#include "dpinfer/wording.h"
#include "serve/refusal.h"

enum {
    REQUEST_BYTES_MAX = 1 << 20,  /* of a body */
    REQUEST_TOKENS_MAX = 1 << 20, /* T */
    REQUEST_BIASES_MAX = 300,     /* as the API has it */
};

/* What a client may leave out, and what the model has. */
typedef struct request_defaults {
    double tau;    /* temperature */
    int32_t top_k; /* 0: all tokens */
    int32_t n_vocab; /* of the model */
} request_defaults;

/* Earlier turns; with a record's own the library has room for as many. */
enum { REQUEST_TURNS_MAX = DPI_TURNS_MAX - 1 };

enum { DATASET_NAME_MAX = 63, LABEL_BYTES_MAX = 255 };

typedef enum request_form {
    REQUEST_TEXT = 0, /* a prompt that is continued; about a dataset: one that a document follows */
    REQUEST_CHAT = 1, /* messages; about a dataset: a question */
    REQUEST_ANY = 2   /* one of the two, about a dataset: what it would cost */
} request_form;

typedef struct request {
    bool is_chat;        /* messages; else a prompt that is continued */
    bool is_streamed;    /* server-sent events */
    bool includes_usage; /* stream_options.include_usage */
    bool is_seeded;
    uint64_t seed;
    int32_t n_tokens; /* T; 0: the client leaves it to the server */
    int32_t top_k;
    double tau, top_p; /* top_p 1: all tokens */
    char *system, *user; /* private memory; system NULL: none; user: the prompt, too */
    size_t n_system, n_user;
    dpi_turn turns[REQUEST_TURNS_MAX]; /* [n_turns] come before `user`; private memory */
    size_t n_turns;
    dpi_bytes stops[DPI_STOPS_MAX]; /* [n_stops] private memory */
    int32_t n_stops;
    dpi_token_bias biases[REQUEST_BIASES_MAX]; /* [n_biases] */
    int32_t n_biases;
    double repeat_penalty; /* 1: none */
    dpi_grammar *grammar;  /* of the answer; the request's. NULL: any text */

    /* An answer about records. */
    char dataset[DATASET_NAME_MAX + 1]; /* "": without any, and the rest is 0 */
    bool has_tau, has_top_k;            /* they were given */
    double epsilon, delta;              /* delta 0: that of the dataset */
    int32_t batch;                      /* B; 0: left to the server */
    char label[LABEL_BYTES_MAX + 1];    /* "": of all labels */
} request;

/* Reads a body [n_bytes] of at most REQUEST_BYTES_MAX. *r is the caller's, who calls request_free
 * in any case; form: a request_form. False: *why says which field was refused, what was found and
 * what is allowed. */
bool request_parse(const char *body, size_t n_bytes, int form, const request_defaults *defaults,
                   request *r, refusal *why);
/* How the text is worded; it refers to the request. Without a dataset all white space stays. */
dpi_wording request_wording(const request *r);
/* Wipes. */
void request_free(request *r);

#endif
