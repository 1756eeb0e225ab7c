/* clerk.h - the thread that keeps the books: whatever waits for a disk (ledger, answers, records)
 * or calibrates is a job of it, so that neither connections nor passes of the model wait. Jobs run
 * one after the other, in their order: what is decided in one of them holds in the next. */
#ifndef DPI_SERVE_CLERK_H
#define DPI_SERVE_CLERK_H

#include <stdbool.h>

#include "serve/refusal.h"

typedef struct clerk clerk;
typedef struct job job;

/* The first member of what a job is about, which `release` frees. */
struct job {
    void (*run)(job *j);     /* on the clerk's thread */
    void (*release)(job *j); /* nobody has it any more */

    /* The clerk's. */
    job *next;
    int n_owners;      /* the one who made it, the queue, and who else keeps it */
    bool is_begun;     /* a stream of it may begin */
    bool is_done;      /* what follows is not changed any more */
    refusal failure;   /* http 0: none */
    char *reply;       /* JSON, a string of dpi_private_malloc; NULL: none */
    void (*wake)(void *user); /* a thread sleeps: called once, with the lock held */
    void *user;
    bool wakes_at_begin;
};

/* NULL: out of memory, or no thread. */
clerk *clerk_create(void);
/* Runs what is in the queue, and ends the thread: later jobs are refused. NULL is allowed. */
void clerk_stop(clerk *c);
/* After clerk_stop, once nobody has a job. NULL is allowed. */
void clerk_free(clerk *c);

/* A job that its maker owns. */
void job_init(job *j, void (*run)(job *j), void (*release)(job *j));
void job_keep(clerk *c, job *j);
/* NULL is allowed. */
void job_leave(clerk *c, job *j);

/* Into the queue, which keeps it until it has run. From any thread; j->run may be another one than
 * before, and is set under the lock. */
void clerk_submit(clerk *c, job *j, void (*run)(job *j));
void job_begin(clerk *c, job *j);
/* Once. `reply` is the job's from here on; why NULL: no failure. */
void job_end(clerk *c, job *j, const refusal *why, char *reply);

/* True: it is done, or begun with at_begin. Else sleep(user) is called, and wake(user) once it is;
 * both with the lock held. */
bool job_wait(clerk *c, job *j, bool at_begin, void (*sleep)(void *user), void (*wake)(void *user),
              void *user);
/* The one who waits does so no more. */
void job_forget(clerk *c, job *j);

#endif
