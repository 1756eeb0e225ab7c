/* remote.c - see remote.h. */
#include "tools/remote/remote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/remote/curl_load.h"
#include "tools/remote/remote_answer.h"
#include "tools/terminal/signals.h"

/* Seconds: between tries that nobody asked for; of a Retry-After that is waited for. */
enum { WAIT_MAX = 60, RETRY_AFTER_MAX = 3600 };
enum { ANSWER_BYTES_MAX = 1 << 24, POLL_MS = 200 };

typedef enum request_state {
    REQUEST_FREE, REQUEST_SENT, REQUEST_WAITS, REQUEST_OVER
} request_state;

typedef struct request {
    request_state state;
    CURL *easy;
    char *body;    /* what is sent */
    char *answer;  /* [n_answer], NUL-terminated. Private memory */
    size_t n_answer, room;
    bool too_long;
    int n_tried;
    double again; /* when it is sent again, in seconds of the clock */
    long status;  /* of HTTP; 0: none */
    curl_off_t retry_after; /* seconds; 0: the server did not say */
    CURLcode result;
} request;

struct remote {
    const remote_options *o;
    curl_library curl;
    CURLM *multi;
    struct curl_slist *headers;
    char *url, *authorization;
    request requests[REMOTE_MOST_IN_FLIGHT];
};

/* ---- Address and body ------------------------------------------------------------------------ */

static bool has_tls(const char *url) { return strncasecmp(url, "https://", 8) == 0; }

/* The host of "http://HOST[:port][/...]" is this machine. */
static bool is_loopback(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 && strchr(":/", host[n]))
            return true; /* the end of the string counts as one of them */
    }
    return false;
}

int remote_check_url(const char *url) {
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 127 || strchr("@?#\\", *p))
            return cli_fail(CLI_USAGE,
                            "--remote: found '%s', allowed is https://HOST[:PORT][/PATH]", url);
    if (has_tls(url) && url[8] != '\0' && url[8] != '/')
        return CLI_OK;
    if (strncasecmp(url, "http://", 7) == 0 && is_loopback(url + 7))
        return CLI_OK;
    return cli_fail(CLI_USAGE,
                    "--remote: found '%s', allowed is https://HOST[:PORT][/PATH], and http:// for "
                    "localhost alone: others could read and change what is sent",
                    url);
}

/* The address of the endpoint; the caller frees it. A path is taken as it is, as OpenAI's clients
 * do with a base address: servers have /v1, /openai/v1, /v1beta/openai, /api/paas/v4, ... A host
 * alone has /v1, and the address of the endpoint itself is one too. */
static char *endpoint_of(const char *url) {
    static const char end[] = "/chat/completions";
    size_t n = strlen(url);
    char *whole;
    while (n > 0 && url[n - 1] == '/')
        n--;
    if (n >= sizeof end && strncmp(url + n - strlen(end), end, strlen(end)) == 0)
        n -= strlen(end);
    const char *host = strstr(url, "://") + 3;
    const bool has_path = memchr(host, '/', n - (size_t)(host - url)) != NULL;
    if (asprintf(&whole, "%.*s%s%s", (int)n, url, has_path ? "" : "/v1", end) < 0)
        return NULL;
    return whole;
}

/* ---- Life cycle ------------------------------------------------------------------------------ */

static bool add_headers(remote *r) {
    struct curl_slist *list = r->curl.slist_append(NULL, "Content-Type: application/json");
    if (!list)
        return false;
    r->headers = list;
    if (!(list = r->curl.slist_append(list, "Expect:")))
        return false;
    if (r->o->key) {
        const size_t n = strlen(r->o->key) + 32;
        if (!(r->authorization = dpi_private_malloc(n)))
            return false;
        snprintf(r->authorization, n, "Authorization: Bearer %s", r->o->key);
        list = r->curl.slist_append(list, r->authorization);
    }
    return list != NULL;
}

int remote_open(const remote_options *options, remote **out) {
    remote *r = calloc(1, sizeof *r);
    if (!r)
        return cli_no_memory("a request");
    r->o = options;
    const int code = curl_load(&r->curl);
    if (code != CLI_OK) {
        free(r);
        return code;
    }
    r->url = endpoint_of(options->url);
    r->multi = r->curl.multi_init();
    if (!r->url || !r->multi || !add_headers(r)) {
        remote_close(r);
        return cli_no_memory("a request");
    }
    *out = r;
    return CLI_OK;
}

static void end_transfer(remote *r, request *q) {
    if (!q->easy)
        return;
    r->curl.multi_remove_handle(r->multi, q->easy);
    r->curl.easy_cleanup(q->easy);
    q->easy = NULL;
}

static void free_request(remote *r, request *q) {
    end_transfer(r, q);
    dpi_private_free(q->body);
    dpi_private_free(q->answer);
    *q = (request){0};
}

/* libcurl's copy of the key is its own: it frees that without wiping it. */
void remote_close(remote *r) {
    if (!r)
        return;
    for (int i = 0; i < REMOTE_MOST_IN_FLIGHT; i++)
        free_request(r, &r->requests[i]);
    for (struct curl_slist *s = r->headers; s; s = s->next)
        if (strncmp(s->data, "Authorization", 13) == 0)
            explicit_bzero(s->data, strlen(s->data));
    if (r->headers)
        r->curl.slist_free_all(r->headers);
    if (r->multi)
        r->curl.multi_cleanup(r->multi);
    dpi_private_free(r->authorization);
    free(r->url);
    curl_unload(&r->curl);
    free(r);
}

/* ---- One transfer ---------------------------------------------------------------------------- */

static size_t add_bytes(char *data, size_t size, size_t n, void *user) {
    request *q = user;
    const size_t n_bytes = size * n;
    if (q->n_answer + n_bytes > ANSWER_BYTES_MAX) {
        q->too_long = true;
        return 0;
    }
    if (!dpi_private_grow(&q->answer, &q->room, q->n_answer + n_bytes + 1, 1))
        return 0;
    memcpy(q->answer + q->n_answer, data, n_bytes);
    q->n_answer += n_bytes;
    q->answer[q->n_answer] = '\0';
    return n_bytes;
}

static bool set_options(remote *r, request *q) {
    const curl_library *c = &r->curl;
    CURL *e = q->easy;
    const long ms = (long)ceil(r->o->timeout * 1000);
    bool ok = c->easy_setopt(e, CURLOPT_URL, r->url) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK;
    if (r->o->ca_file)
        ok &= c->easy_setopt(e, CURLOPT_CAINFO, r->o->ca_file) == CURLE_OK;
    if (!has_tls(r->url)) /* a proxy would read what is for this machine alone */
        ok &= c->easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_TIMEOUT_MS, ms) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, ms < 10000 ? ms : 10000L) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_HTTPHEADER, r->headers) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_POSTFIELDS, q->body) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(q->body)) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_WRITEFUNCTION, add_bytes) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_WRITEDATA, (void *)q) == CURLE_OK;
    ok &= c->easy_setopt(e, CURLOPT_PRIVATE, (void *)q) == CURLE_OK;
    return ok;
}

static int begin_transfer(remote *r, request *q) {
    q->n_answer = 0;
    q->too_long = false;
    q->status = 0;
    q->retry_after = 0;
    q->result = CURLE_OK;
    q->n_tried++;
    q->state = REQUEST_SENT;
    q->easy = r->curl.easy_init();
    if (!q->easy || !set_options(r, q) ||
        r->curl.multi_add_handle(r->multi, q->easy) != CURLM_OK)
        return cli_no_memory("a request");
    return CLI_OK;
}

int remote_send(remote *r, const char *prompt, int *place) {
    for (*place = 0; r->requests[*place].state != REQUEST_FREE;)
        if (++*place == r->o->n_in_flight)
            return cli_fail(CLI_FAILED, "more requests than --in-flight");
    request *q = &r->requests[*place];
    if (!(q->body = remote_body(r->o, prompt)))
        return cli_no_memory("a request");
    return begin_transfer(r, q);
}

/* ---- All transfers --------------------------------------------------------------------------- */

/* What may be better the next time: the network, a server that is busy or broken. */
static bool is_passing(const request *q) {
    switch (q->result) {
    case CURLE_OK:
        return q->status == 429 || q->status >= 500;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return true;
    default:
        return false;
    }
}

static void finish_transfer(remote *r, request *q, CURLcode result) {
    q->result = result;
    r->curl.easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &q->status);
    r->curl.easy_getinfo(q->easy, CURLINFO_RETRY_AFTER, &q->retry_after); /* a date, too */
    end_transfer(r, q);
    q->state = REQUEST_OVER;
    if (!is_passing(q) || q->n_tried > r->o->n_retries || q->retry_after > RETRY_AFTER_MAX)
        return;
    const double wait = ldexp(r->o->retry_wait, q->n_tried < 20 ? q->n_tried - 1 : 20);
    q->again = cli_now() + fmax(fmin(wait, WAIT_MAX), (double)q->retry_after);
    q->state = REQUEST_WAITS;
}

int remote_advance(remote *r) {
    int n_running, n_left;
    const double at = cli_now();
    for (int i = 0; i < r->o->n_in_flight; i++) {
        request *q = &r->requests[i];
        if (q->state != REQUEST_WAITS || q->again > at)
            continue;
        const int code = begin_transfer(r, q);
        if (code != CLI_OK)
            return code;
    }
    if (r->curl.multi_perform(r->multi, &n_running) != CURLM_OK)
        return cli_fail(CLI_FAILED, "libcurl cannot go on with requests");
    for (CURLMsg *m; (m = r->curl.multi_info_read(r->multi, &n_left));) {
        char *q = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        const CURLcode result = m->data.result;
        r->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &q);
        finish_transfer(r, (request *)(void *)q, result);
    }
    return CLI_OK;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int fail_status(const remote *r, const request *q) {
    char words[REMOTE_WORDS_BYTES];
    remote_words(q->answer, q->n_answer, r->o->key, words);
    const char *colon = words[0] ? ": " : "";
    if (q->status == 404) /* of the model, or of the address */
        return cli_fail(CLI_FAILED, "the server says 404 to POST %s%s%s", r->url, colon, words);
    if (q->retry_after > RETRY_AFTER_MAX)
        return cli_fail(CLI_FAILED,
                        "the server says %ld, and to try again in %lld seconds, allowed is a wait "
                        "of 0..%d%s%s", q->status, (long long)q->retry_after, RETRY_AFTER_MAX,
                        colon, words);
    return cli_fail(CLI_FAILED, "the server says %ld, tried %d times%s%s", q->status, q->n_tried,
                    colon, words);
}

static int fail_request(const remote *r, const request *q) {
    if (q->too_long)
        return cli_fail(CLI_FAILED, "the server's answer is longer than %d MiB",
                        ANSWER_BYTES_MAX >> 20);
    if (q->result == CURLE_PEER_FAILED_VERIFICATION || q->result == CURLE_SSL_CACERT_BADFILE)
        return cli_fail(CLI_FAILED, "the server's certificate is not trusted: %s",
                        r->curl.easy_strerror(q->result));
    if (q->result != CURLE_OK)
        return cli_fail(CLI_FAILED, "no answer from the server, tried %d times: %s", q->n_tried,
                        r->curl.easy_strerror(q->result));
    return fail_status(r, q);
}

int remote_answer_of(remote *r, int place, char **text) {
    request *q = &r->requests[place];
    int code = CLI_OK;
    while (code == CLI_OK && q->state != REQUEST_OVER) {
        int unused;
        if (signals_stop())
            code = signals_code();
        else
            code = remote_advance(r);
        if (code == CLI_OK && q->state != REQUEST_OVER)
            r->curl.multi_poll(r->multi, NULL, 0, POLL_MS, &unused);
    }
    if (code == CLI_OK && (q->result != CURLE_OK || q->status != 200 || q->too_long))
        code = fail_request(r, q);
    if (code == CLI_OK)
        code = remote_answer(q->answer, q->n_answer, r->o->key, text);
    free_request(r, q);
    return code;
}
