/* audit_random.c - draws from inside: which bits give which token, that all of them are drawn
 * and used for each token anew, and that nothing is drawn without them. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

enum { V = DPI_AUDIT_VOCAB, N_BYTES = DPI_DRAW_WORDS * 8 };

/* Long division: ceil(cumulative 2^256 / sum). */
void dpi_audit_bits(const dpi_u128 *weights, size_t n, size_t index,
                    uint64_t bits[DPI_DRAW_WORDS]) {
    dpi_u128 cumulative = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += weights[i];
        cumulative += i < index ? weights[i] : 0;
    }
    memset(bits, 0, DPI_DRAW_WORDS * sizeof *bits);
    if (cumulative >= sum) { /* weights of zero at the end: no bits give this token */
        memset(bits, 0xff, DPI_DRAW_WORDS * sizeof *bits);
        return;
    }
    for (int bit = 64 * DPI_DRAW_WORDS - 1; bit >= 0; bit--) {
        cumulative <<= 1; /* below 2^128 */
        if (cumulative >= sum) {
            cumulative -= sum;
            bits[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    }
    for (int i = 0; i < DPI_DRAW_WORDS && cumulative != 0; i++)
        cumulative = ++bits[i] == 0; /* carry */
}

static void decrement(uint64_t bits[DPI_DRAW_WORDS]) {
    for (int i = 0; i < DPI_DRAW_WORDS; i++)
        if (bits[i]-- != 0)
            return;
}

/* A source that gives the bits at one end of a token's share, or fails. */
typedef struct source {
    dpi_sampler *sampler; /* whose weights are computed when it draws bits */
    size_t index;
    bool last; /* the last bits of the token before, instead of the first of this one */
    bool fails;
    int32_t n_bytes; /* given since it was reset */
} source;

static int32_t give(void *user, void *buffer, size_t n_bytes) {
    source *src = user;
    uint64_t bits[DPI_DRAW_WORDS];
    src->n_bytes += (int32_t)n_bytes;
    if (src->fails)
        return -1;
    dpi_audit_bits(src->sampler->weights, src->sampler->n_support, src->index, bits);
    if (src->last)
        decrement(bits);
    memset(buffer, 0, n_bytes);
    memcpy(buffer, bits, n_bytes < sizeof bits ? n_bytes : sizeof bits);
    return 0;
}

/* Both ends of the share of each candidate. */
static dpi_status check_shares(dpi_audit *a, dpi_sampler *s, const dpi_audit_case *w, source *src) {
    DPI_TRY(dpi_sampler_begin(s, a->err));
    const size_t n = s->n_support; /* of the distribution that was computed before */
    for (size_t i = 0; i < n; i++)
        for (int last = 0; last <= (i > 0); last++) {
            int32_t token;
            *src = (source){.sampler = s, .index = i, .last = last};
            DPI_TRY(dpi_sampler_step(s, w->public_logits, w->pointers, &token, a->err));
            a->result.n_cases++;
            dpi_audit_hold(a, token == s->support[i - (size_t)last],
                           "a token's share of the bits is not its weight");
            dpi_audit_hold(a, src->n_bytes == DPI_DRAW_WORDS * 8,
                           "a token is not drawn with 256 bits of its own");
        }
    return DPI_STATUS_OK;
}

/* No bits, no token; a text has an end; a public logit that is no number stops it. */
static void check_refusals(dpi_audit *a, dpi_sampler *s, dpi_audit_case *w, source *src) {
    int32_t token = -7, n_tokens = w->options.n_tokens;
    *src = (source){.sampler = s, .fails = true};
    bool refused =
        dpi_sampler_begin(s, NULL) == DPI_STATUS_OK &&
        dpi_sampler_step(s, w->public_logits, w->pointers, &token, NULL) == DPI_STATUS_ENTROPY;
    dpi_audit_hold(a, refused && token == -7, "a token is drawn although the source failed");
    src->fails = false;
    const float kept = w->public_logits[0];
    w->public_logits[0] = NAN;
    refused =
        dpi_sampler_step(s, w->public_logits, w->pointers, &token, NULL) == DPI_STATUS_NUMERIC;
    dpi_audit_hold(a, refused && token == -7, "a token is drawn from public logits that are NaN");
    w->public_logits[0] = kept;
    dpi_status status = dpi_sampler_begin(s, NULL);
    for (int32_t i = 0; i < n_tokens && status == DPI_STATUS_OK; i++)
        status = dpi_sampler_step(s, w->public_logits, w->pointers, &token, NULL);
    dpi_audit_hold(a,
                   status == DPI_STATUS_OK && dpi_sampler_step(s, w->public_logits, w->pointers,
                                                               &token, NULL) == DPI_STATUS_BUDGET,
                   "a text goes on after its last token");
}

/* getrandom(2) as it may be: few bytes at a time, each time after an interruption. The byte at a
 * place is the number of the place, from 1. */
static ssize_t give_few(void *buffer, size_t n_left, unsigned flags) {
    (void)flags;
    if (errno != EINTR) {
        errno = EINTR;
        return -1;
    }
    errno = 0;
    const size_t at = N_BYTES - n_left, n = at % 5 < n_left ? at % 5 + 1 : n_left;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)buffer)[i] = (unsigned char)(at + i + 1);
    return (ssize_t)n;
}

/* The same, but in the middle there is no more. */
static ssize_t give_half(void *buffer, size_t n_left, unsigned flags) {
    return n_left > N_BYTES / 2 ? give_few(buffer, n_left, flags) : 0;
}

/* All bytes of a draw come from the source, each once, or the draw fails. */
static dpi_status audit_short_reads(dpi_audit *a) {
    unsigned char bytes[N_BYTES] = {0};
    DPI_TRY(dpi_audit_begin(a, "draws", "short reads of random bits"));
    errno = 0;
    bool whole = dpi_random_read(give_few, bytes, N_BYTES) == 0;
    for (int i = 0; i < N_BYTES; i++)
        whole &= bytes[i] == i + 1;
    dpi_audit_hold(a, whole, "a draw is made of bits that the source did not give");
    dpi_audit_hold(a, dpi_random_read(give_half, bytes, N_BYTES) != 0,
                   "a draw is made although the source has ended");
    a->result.n_cases = 2;
    dpi_audit_end(a, "sources tried", (double)a->result.n_cases, 2, 2);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_random_bits(dpi_audit *a) {
    DPI_TRY(audit_short_reads(a));
    DPI_TRY(dpi_audit_begin(a, "draws", "bits to tokens"));
    for (int32_t i = 0, n = dpi_audit_count(a, 60); i < n; i++) {
        dpi_audit_case w;
        dpi_distribution d;
        dpi_sampler *s = NULL;
        source src;
        memset(&w, 0, sizeof w);
        dpi_sampler_options_init(&w.options);
        w.options.n_vocab = V;
        w.options.isa = dpi_audit_isa(a);
        w.options.n_ref = 4;
        w.options.n_tokens = 2 * V;
        w.options.top_k = i % 2 ? 0 : V / 2;
        w.options.tau = i % 3 ? 1 : .05; /* down to the smallest weights */
        w.options.rho = 5;
        w.options.random = give;
        w.options.random_user = &src;
        dpi_audit_logits(a, &w);
        DPI_TRY(dpi_sampler_create(&w.options, &s, a->err));
        dpi_status status = dpi_sampler_distribution(s, w.public_logits, w.pointers, &d, a->err);
        if (status == DPI_STATUS_OK)
            status = check_shares(a, s, &w, &src);
        if (status == DPI_STATUS_OK)
            check_refusals(a, s, &w, &src);
        dpi_sampler_free(s);
        DPI_TRY(status);
    }
    dpi_audit_end(a, "ends of shares tried", (double)a->result.n_cases, 1, INFINITY);
    return DPI_STATUS_OK;
}
