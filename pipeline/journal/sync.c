/* sync.c - the thread that waits for the disk, so that the next step need not. What it has on the
 * disk is a number: all tokens up to it. After a failure it never counts on: what the system has
 * dropped is not known (Rebello et al. 2020, "Can applications recover from fsync failures?"). */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/status.h"
#include "base/system.h"
#include "pipeline/journal/journal.h"

static void *sync_loop(void *user) {
    dpi_journal *j = user;
    dpi_journal_sync *s = &j->sync;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stops && (s->n_wanted <= s->n_durable || s->reason != 0))
            pthread_cond_wait(&s->requested, &s->lock);
        if (s->stops)
            break;
        const int64_t n = s->n_put; /* all of these are written */
        pthread_mutex_unlock(&s->lock);
        const int reason = dpi_system_sync(j->fd) ? 0 : errno;
        pthread_mutex_lock(&s->lock);
        if (reason == 0)
            s->n_durable = n;
        else
            s->reason = reason;
        pthread_cond_broadcast(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals are the program's, not this thread's. */
void dpi_journal_sync_start(dpi_journal *j) {
    dpi_journal_sync *s = &j->sync;
    sigset_t all, old;
    s->n_put = s->n_wanted = s->n_durable = j->n_records; /* recovery has synced them */
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->requested, NULL);
    pthread_cond_init(&s->done, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->runs = pthread_create(&s->thread, NULL, sync_loop, j) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Where the system starts no thread each token waits for the disk. */
static void sync_here(dpi_journal *j) {
    dpi_journal_sync *s = &j->sync;
    if (s->reason != 0 || s->n_durable == s->n_put)
        return;
    if (dpi_system_sync(j->fd))
        s->n_durable = s->n_put;
    else
        s->reason = errno;
}

void dpi_journal_sync_stop(dpi_journal *j) {
    dpi_journal_sync *s = &j->sync;
    if (!s->runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_signal(&s->requested);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->runs = false;
}

void dpi_journal_sync_note(dpi_journal *j, bool wanted) {
    dpi_journal_sync *s = &j->sync;
    pthread_mutex_lock(&s->lock);
    s->n_put = j->n_records;
    if (wanted) {
        s->n_wanted = s->n_put;
        pthread_cond_signal(&s->requested);
    }
    pthread_mutex_unlock(&s->lock);
    if (wanted && !s->runs)
        sync_here(j);
}

int dpi_journal_sync_reason(dpi_journal *j) {
    pthread_mutex_lock(&j->sync.lock);
    const int reason = j->sync.reason;
    pthread_mutex_unlock(&j->sync.lock);
    return reason;
}

int64_t dpi_journal_durable(dpi_journal *j) {
    dpi_journal_sync *s = &j->sync;
    if (!j->begun || j->read_only)
        return j->n_records;
    pthread_mutex_lock(&s->lock);
    const int64_t n = s->n_durable;
    pthread_mutex_unlock(&s->lock);
    return n;
}

dpi_status dpi_journal_wait(dpi_journal *j, int64_t sequence, dpi_error *err) {
    dpi_journal_sync *s = &j->sync;
    if (!j->begun || j->read_only)
        return DPI_STATUS_OK;
    if (!s->runs)
        sync_here(j);
    pthread_mutex_lock(&s->lock);
    const int64_t n = sequence > 0 && sequence < s->n_put ? sequence : s->n_put;
    if (s->n_wanted < n) {
        s->n_wanted = n;
        pthread_cond_signal(&s->requested);
    }
    while (s->n_durable < n && s->reason == 0)
        pthread_cond_wait(&s->done, &s->lock);
    errno = s->reason;
    const bool ok = s->n_durable >= n;
    pthread_mutex_unlock(&s->lock);
    return ok ? DPI_STATUS_OK : dpi_journal_fail(j, "write", "tokens", err);
}
