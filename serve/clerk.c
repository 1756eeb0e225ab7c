/* clerk.c - see clerk.h. */
#include "serve/clerk.h"

#include <pthread.h>
#include <stdlib.h>

#include "dpinfer/memory.h"

struct clerk {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first, **last;
    bool is_stopping, is_over;
};

/* With the lock held. True: the caller releases it once the lock is not held. */
static bool drop(job *j) { return --j->n_owners == 0; }

static void free_job(job *j) {
    dpi_private_free(j->reply);
    j->release(j);
}

static void *run_jobs(void *user) {
    clerk *c = user;
    pthread_mutex_lock(&c->lock);
    while (c->first || !c->is_stopping) {
        job *j = c->first;
        if (!j) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        c->first = j->next;
        if (!c->first)
            c->last = &c->first;
        void (*run)(job *) = j->run;
        pthread_mutex_unlock(&c->lock);
        run(j);
        job_leave(c, j);
        pthread_mutex_lock(&c->lock);
    }
    c->is_over = true;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

clerk *clerk_create(void) {
    clerk *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (pthread_create(&c->thread, NULL, run_jobs, c) == 0)
        return c;
    free(c);
    return NULL;
}

void clerk_stop(clerk *c) {
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
}

void clerk_free(clerk *c) {
    if (!c)
        return;
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

void job_init(job *j, void (*run)(job *), void (*release)(job *)) {
    *j = (job){.run = run, .release = release, .n_owners = 1};
}

void job_keep(clerk *c, job *j) {
    pthread_mutex_lock(&c->lock);
    j->n_owners++;
    pthread_mutex_unlock(&c->lock);
}

void job_leave(clerk *c, job *j) {
    if (!j)
        return;
    pthread_mutex_lock(&c->lock);
    const bool is_last = drop(j);
    pthread_mutex_unlock(&c->lock);
    if (is_last)
        free_job(j);
}

/* With the lock held. */
static void wake(job *j) {
    void (*wake_up)(void *) = j->wake;
    j->wake = NULL;
    if (wake_up)
        wake_up(j->user);
}

static void refuse_late(job *j) {
    refuse(&j->failure, 503, NULL, "the server stops");
    j->is_done = true;
    wake(j);
}

static void put_in_queue(clerk *c, job *j, void (*run)(job *)) {
    j->run = run;
    j->n_owners++;
    j->next = NULL;
    *c->last = j;
    c->last = &j->next;
    pthread_cond_signal(&c->changed);
}

void clerk_submit(clerk *c, job *j, void (*run)(job *)) {
    pthread_mutex_lock(&c->lock);
    if (c->is_over)
        refuse_late(j);
    else
        put_in_queue(c, j, run);
    pthread_mutex_unlock(&c->lock);
}

void job_begin(clerk *c, job *j) {
    pthread_mutex_lock(&c->lock);
    j->is_begun = true;
    if (j->wakes_at_begin)
        wake(j);
    pthread_mutex_unlock(&c->lock);
}

void job_end(clerk *c, job *j, const refusal *why, char *reply) {
    pthread_mutex_lock(&c->lock);
    j->is_done = true;
    j->reply = reply;
    if (why)
        j->failure = *why;
    wake(j);
    pthread_mutex_unlock(&c->lock);
}

bool job_wait(clerk *c, job *j, bool at_begin, void (*sleep)(void *), void (*wake_up)(void *),
              void *user) {
    pthread_mutex_lock(&c->lock);
    const bool there = j->is_done || (at_begin && j->is_begun);
    if (!there) {
        j->wake = wake_up;
        j->user = user;
        j->wakes_at_begin = at_begin;
        sleep(user);
    }
    pthread_mutex_unlock(&c->lock);
    return there;
}

void job_forget(clerk *c, job *j) {
    pthread_mutex_lock(&c->lock);
    j->wake = NULL;
    pthread_mutex_unlock(&c->lock);
}
