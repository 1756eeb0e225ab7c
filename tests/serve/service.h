/* service.h - a server in the test's own process, with random bits that are fixed, and a client.
 * For the tests of private answers. */
#ifndef DPI_TEST_SERVICE_H
#define DPI_TEST_SERVICE_H

#include "serve/server.h"
#include "tests/support/support.h"

enum { REPLY_MAX = 1 << 17 };

#define CHAT "/v1/chat/completions"
#define QUESTION                                                                                   \
    "\"messages\": [{\"role\": \"user\", \"content\": \"Which problem do people have?\"}]"
/* A body about the dataset: its object `privacy`, and what stands behind that. */
#define LETTERS(privacy, more) "{\"dataset\": \"letters\", \"privacy\": {" privacy "}, " more "}"

typedef struct service {
    char dir[256], ledger[320], spec[512];
    dataset set;
    int byte;
    principals *p;
    server *s;
    int64_t n_charges; /* that the ledger must have at each draw, least; 0: it is not looked at */
    int64_t n_draws, n_early; /* draws that were looked at; of them without its charge */
    bool keeps_nothing;       /* no caches of records from one answer to the next */
    int64_t n_tokens, n_told; /* of answers that are over; draws when metrics say another number */
} service;

/* Of a cmocka group: the model that all servers have. */
void open_service_model(void);
void close_service_model(void);

/* Memory that the test frees when it is over, also where it fails. */
void *owned(void *p);
void free_owned(void);

/* `lines`: the file of records; `more`: of its --dataset. */
void start(service *v, const char *lines, const char *more, bool allows_stream);
void stop(service *v);
/* And its files go. */
void forget(service *v);
/* That the file of the ledger has now. */
int64_t count_charges(const service *v);

/* The whole reply: head and body, owned. */
char *send_request(const service *v, const char *method, const char *path, const char *head,
                   const char *body);
/* The same where the reply must have this code. */
char *expect_reply(const service *v, int code, const char *method, const char *path,
                   const char *head, const char *body);
/* As the metrics have them. */
int64_t count_tokens(const service *v);
const char *body_of(const char *reply);
/* The value of a member of the reply's object, as JSON, owned. */
char *member(const char *reply, const char *first, const char *name);

#endif
