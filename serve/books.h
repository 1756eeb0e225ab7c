/* books.h - what private answers need of a server. */
#ifndef DPI_SERVE_BOOKS_H
#define DPI_SERVE_BOOKS_H

#include "dpinfer/report.h"
#include "serve/clerk.h"
#include "serve/datasets.h"
#include "serve/principals.h"
#include "serve/reply.h"
#include "serve/worker.h"

typedef struct private_answer private_answer;

typedef struct books {
    clerk *clerk;
    clerk *finder; /* another one, which finds paces: that takes seconds, and no disk */
    worker *worker;
    datasets datasets;
    const principals *principals; /* NULL: whoever reaches the server */
    dpi_report *report;           /* of the model and the program: what others begin with */
    const dpi_model *model;
    const char *model_name;
    dpi_session_options session; /* n_ctx is settled; cancel: the server stops */
    int32_t chat;                /* a dpi_chat */
    int32_t n_tokens;            /* most tokens of an answer; 0: what the context leaves */
    bool allows_stream;          /* of private answers */
    private_answer *live; /* those that wait or are drawn; the clerk's */
    dpi_random_fn random; /* NULL: the system's bits. Anything else voids every guarantee, and the
                             reports say so: for tests */
    void *random_user;
} books;

/* The report of `books`, which hashes the model. Errors: as dpi_report_create. */
dpi_status books_begin(books *b, const char *model_path, dpi_error *err);
/* After the clerk has ended. */
void books_free(books *b);

/* ---- What a request comes to (settle_request.c) ---------------------------------------------- */

typedef struct settled {
    dataset *dataset;
    dpi_run claim;
    dpi_prompts *prompts; /* settled_free's */
    dpi_prompts_info prompts_info;
    int64_t n_units;      /* of the dataset, or of the label */
    dpi_cost cost;
    dpi_dataset_info info; /* of the ledger, now */
    int64_t amount;        /* of the ledger */
    int64_t most;          /* of the principal's share, now; -1: no bound of its own */
    int64_t spent;         /* of the principal */
    refusal failure;       /* of settle_claim; http 0: none */
} settled;

/* A request is settled in three steps, which read no record. s is settled_free's in any case.
 * First its dataset, and what the request leaves to the server goes into *r. False: *why. */
bool settle_begin(const books *b, request *r, settled *s, refusal *why);
/* Then the claim: then(j) is called, on the clerk's thread, with s->failure, or the claim and the
 * prompts. At once; or, where a pace has to be found, once it is: the clerk does other jobs
 * meanwhile, j is kept, and *r and *s are left alone. On the clerk's thread. */
void settle_claim(const books *b, const request *r, settled *s, job *j, void (*then)(job *j));
/* Then what it costs, and what is left: on the clerk's thread. False: *why. */
bool settle_cost(const books *b, const char *principal, settled *s, refusal *why);
/* Whether the budgets allow it now. */
bool settle_budget(const settled *s, refusal *why);
void settled_free(settled *s);

/* Of an amount of the ledger: the divergence. */
double books_divergence(int64_t amount);

/* ---- Jobs: each is the caller's, who leaves it ----------------------------------------------- */

/* A private answer (private_answer.c). The request is the job's from here on, and *r is empty.
 * `key`: of Idempotency-Key, "": none. NULL: out of memory. */
job *private_create(books *b, const char *principal, const char *key, const uint8_t *hash,
                    request *r);
/* First of all what the clerk does with it. */
void private_begin(job *j);
/* What is drawn, for a stream, once the job has begun; the job's. */
answer *private_answer_of(job *j);
/* What its parts say; the job's, valid once it has begun, `facts` once it is done. */
const reply_head *private_head_of(job *j);

/* The others (privacy.c), whose reply is JSON. `name`: of a dataset ("": all), or the id of a
 * report. */
job *plan_create(const books *b, const char *principal, request *r);
job *budget_create(const books *b, const char *principal, const char *name);
job *report_create(const books *b, const char *principal, const char *name);

#endif
