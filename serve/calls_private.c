/* calls_private.c - requests about datasets, and what comes of them. */
#include <nettle/sha2.h>
#include <string.h>

#include "serve/call.h"

/* ---- What has come of it --------------------------------------------------------------------- */

static char *copy_reply(const char *text) {
    const size_t n = text ? strlen(text) : 0;
    char *copy = text ? dpi_private_malloc(n + 1) : NULL;
    if (copy)
        memcpy(copy, text, n + 1);
    return copy;
}

enum MHD_Result call_send_job(call *c) {
    job *j = c->j;
    if (!job_wait(c->s->books.clerk, j, c->is_streamed, call_suspend, call_resume, c))
        return MHD_YES;
    if (!j->is_done) { /* a stream begins */
        c->head = *private_head_of(j);
        c->a = private_answer_of(j);
        return call_stream(c);
    }
    if (j->failure.http)
        return call_refuse(c, &j->failure);
    return call_send(c, MHD_HTTP_OK, copy_reply(j->reply),
                     c->is_streamed ? "text/event-stream" : "application/json");
}

/* j NULL: out of memory for it. */
static enum MHD_Result submit(call *c, job *j, void (*run)(job *)) {
    refusal why;
    if (!j) {
        refuse(&why, 503, NULL, "no memory for a request");
        return call_refuse(c, &why);
    }
    c->j = j;
    clerk_submit(c->s->books.clerk, j, run);
    return call_send_job(c);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Of what was sent, byte for byte, and where. */
static void hash_request(const call *c, uint8_t hash[STORE_HASH_BYTES]) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, strlen(c->route->path) + 1, (const uint8_t *)c->route->path);
    sha256_update(&sha, c->n_body, (const uint8_t *)c->body);
    sha256_digest(&sha, STORE_HASH_BYTES, hash);
}

/* *key: "" without one. */
static bool read_key(const call *c, const char **key, refusal *why) {
    const char *found = call_field(c, "Idempotency-Key");
    const size_t n = found ? strlen(found) : 0;
    bool ok = !found || (n > 0 && n <= STORE_KEY_MAX);
    for (size_t i = 0; ok && i < n; i++)
        ok = found[i] >= 0x20 && found[i] < 0x7f;
    *key = found ? found : "";
    return ok || refuse(why, 400, "Idempotency-Key",
                        "Idempotency-Key: allowed are 1..%d printable ASCII characters",
                        (int)STORE_KEY_MAX);
}

/* OpenAI's clients send a request again by themselves, with a count, after 409, 5xx and a time-out.
 * The first one may have been drawn and charged. Only a key finds its answer. */
static bool check_retry(const call *c, const char *key, refusal *why) {
    const char *count = call_field(c, "X-Stainless-Retry-Count");
    if (key[0] || !count || strcmp(count, "0") == 0)
        return true;
    refuse(why, 400, "Idempotency-Key",
           "Idempotency-Key: there is none, and this request is sent again "
           "(x-stainless-retry-count %.20s): it could be charged twice", count);
    why->code = "idempotency_key_needed";
    return false;
}

/* What is known of a dataset without the clerk. */
static bool check_dataset(const call *c, const request *r, refusal *why) {
    if (!datasets_find(&c->s->books.datasets, r->dataset))
        return refuse(why, 404, "dataset", "there is no dataset '%s' here", r->dataset);
    return !r->is_streamed || c->s->options.allows_stream ||
           refuse(why, 400, "stream", "stream: found true, allowed false with a dataset: the pace "
                                      "of tokens depends on records");
}

enum MHD_Result call_private(call *c, request *r) {
    uint8_t hash[STORE_HASH_BYTES];
    const char *key;
    refusal why;
    if (!check_dataset(c, r, &why) || !read_key(c, &key, &why) ||
        !check_retry(c, key, &why)) {
        request_free(r);
        return call_refuse(c, &why);
    }
    hash_request(c, hash);
    job *j = private_create(&c->s->books, c->principal, key, hash, r);
    request_free(r);
    return submit(c, j, private_begin);
}

/* ---- Budgets --------------------------------------------------------------------------------- */

enum MHD_Result call_plan(call *c) {
    const request_defaults defaults = {.tau = 1, .n_vocab = c->s->model.n_vocab};
    refusal why;
    request r;
    const bool ok = request_parse(c->body, c->n_body, REQUEST_ANY, &defaults, &r, &why) &&
                    (datasets_find(&c->s->books.datasets, r.dataset) ||
                     refuse(&why, 404, "dataset", "there is no dataset '%s' here", r.dataset));
    job *j = ok ? plan_create(&c->s->books, c->principal, &r) : NULL;
    request_free(&r);
    return ok ? submit(c, j, j ? j->run : NULL) : call_refuse(c, &why);
}

static enum MHD_Result reply_query(call *c, job *(*create)(const books *b, const char *principal,
                                                           const char *name)) {
    refusal why;
    if (c->s->books.datasets.n == 0 || strlen(c->name) > STORE_ID_MAX + 16) {
        refuse(&why, 404, NULL, "there is no dataset here");
        return call_refuse(c, &why);
    }
    job *j = create(&c->s->books, c->principal, c->name);
    return submit(c, j, j ? j->run : NULL);
}

/* All budgets of a server without datasets: none. */
enum MHD_Result call_budget(call *c) {
    if (c->s->books.datasets.n > 0 || c->name[0])
        return reply_query(c, budget_create);
    json_t *none = json_pack("{s:s, s:[]}", "object", "list", "data");
    return call_send(c, MHD_HTTP_OK, reply_dump(none), "application/json");
}
enum MHD_Result call_report(call *c) { return reply_query(c, report_create); }
