/* server.h - answers over HTTP: a client of the public interface, like a command.
 *
 *     server_open(&options, &server, &why)      listens; server_port says where
 *     server_close(server)                      finishes what is drawn, and stops
 *
 * Threads: the server has its own; calls come from one. */
#ifndef DPI_SERVE_SERVER_H
#define DPI_SERVE_SERVER_H

#include "serve/datasets.h"
#include "serve/principals.h"
#include "serve/request.h"
#include "serve/worker.h"

typedef struct server server;

typedef struct server_options {
    const char *host; /* a numeric address */
    int port;         /* 0: any that is free */
    int32_t chat;     /* a dpi_chat */
    int32_t n_tokens; /* most tokens of an answer; 0: what the context leaves */
    int idle_seconds; /* a connection that says nothing for so long is closed; 0: 60 */
    const principals *principals; /* who may send requests; must outlive the server. NULL: whoever
                                     reaches a loopback address; others are refused */
    dataset *datasets; /* [n_datasets] taken over, as datasets_open does */
    int n_datasets;
    const char *ledger;     /* the file of their budgets */
    const char *model_path; /* with datasets: the file that the model was opened with */
    bool allows_stream;     /* of private answers, too: their pace depends on records */
    dpi_random_fn random;   /* of private answers; NULL: the system's. Anything else voids their
                               guarantee: for tests */
    void *random_user;
    void (*on_panic)(const char *reason); /* libmicrohttpd cannot go on: ends the process, or it
                                             is aborted. May be NULL */
    worker_options worker; /* n_seq_most and n_records follow from the rest; n_bytes 0: what there
                              is once all but the records is open */
} server_options;

/* Errors: those of worker_create, datasets_open and dpi_report_create; ARG (the address), IO (the
 * port is in use). */
dpi_status server_open(const server_options *options, server **s, dpi_error *err);
/* Whether server_open failed for the records of a dataset. */
bool server_refused_records(const server *s);
int server_port(const server *s);
worker_memory server_memory(const server *s);
/* Refuses new requests, draws what has begun to its end, sends it, and frees. NULL is allowed. */
void server_close(server *s);

#endif
