/* metrics.c - what an operator watches. Nothing in it is about a record: counts of requests and
 * tokens, which clients see too, and budgets. */
#include <stdio.h>
#include <string.h>

#include "serve/call.h"

static void add_line(char *text, size_t size, const char *name, const char *type,
                     const char *help, double value) {
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "# HELP dpinfer_%s %s\n# TYPE dpinfer_%s %s\ndpinfer_%s %.17g\n",
             name, help, name, type, name, value);
}

/* As the ledger said at the last request about the dataset: nothing here waits for a disk. */
static void add_budgets(const call *c, char *text, size_t size) {
    const datasets *d = &c->s->books.datasets;
    size_t n = strlen(text);
    for (int what = 0; what < 2 && d->n > 0; what++) {
        const char *name = what ? "left" : "total";
        n += (size_t)snprintf(text + n, size - n,
                              "# HELP dpinfer_budget_%s Budget of a dataset: Renyi divergence at "
                              "its order%s.\n# TYPE dpinfer_budget_%s gauge\n", name,
                              what ? ", that is left" : "", name);
        for (int i = 0; i < d->n && n < size; i++)
            n += (size_t)snprintf(text + n, size - n,
                                  "dpinfer_budget_%s{dataset=\"%s\"} %.10g\n", name,
                                  d->v[i].name,
                                  books_divergence(what ? d->v[i].left : d->v[i].budget));
    }
}

enum MHD_Result call_metrics(call *c) {
    enum { SIZE = 16384 };
    worker_counts counts;
    char *text = dpi_private_malloc(SIZE);
    if (!text)
        return MHD_NO;
    worker_count(c->s->worker, &counts);
    int n = snprintf(text, SIZE,
                     "# HELP dpinfer_requests_total Replies by status code.\n"
                     "# TYPE dpinfer_requests_total counter\n");
    for (int code = 0; code < CODES_MAX; code++) {
        const long long replies = c->s->n_replies[code];
        if (replies > 0 && n > 0 && n < SIZE)
            n += snprintf(text + n, (size_t)(SIZE - n),
                          "dpinfer_requests_total{code=\"%d\"} %lld\n", code, replies);
    }
    add_line(text, SIZE, "answers_total", "counter", "Answers begun.", (double)counts.n_answers);
    add_line(text, SIZE, "tokens_total", "counter", "Tokens of answers that are over.",
             (double)counts.n_tokens);
    add_line(text, SIZE, "prompt_tokens_total", "counter", "Tokens of public prompts.",
             (double)counts.n_prompt_tokens);
    add_line(text, SIZE, "answers_drawn", "gauge", "Answers that are drawn now.", counts.n_drawn);
    add_line(text, SIZE, "answers_waiting", "gauge", "Answers that wait now.", counts.n_waiting);
    const worker_memory memory = worker_memory_get(c->s->worker);
    add_line(text, SIZE, "memory_idle_bytes", "gauge",
             "Memory that the server needs once it has answered, without caches of records, as "
             "planned.", (double)memory.idle);
    add_line(text, SIZE, "memory_kept_bytes", "gauge",
             "Memory that caches of records need at most.", (double)memory.kept);
    add_line(text, SIZE, "memory_most_bytes", "gauge",
             "Memory that it needs at most, as planned.", (double)memory.most);
    add_budgets(c, text, SIZE);
    return call_send(c, MHD_HTTP_OK, text, "text/plain; version=0.0.4");
}
