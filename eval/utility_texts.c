/* utility_texts.c - texts of a method from batches of references whose prompts are read once: each
 * text forks their caches. Purity makes these the texts of `dpinfer run`. See utility.h. */
#include "eval/utility.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dpinfer/generation.h"
#include "dpinfer/memory.h"
#include "dpinfer/prompts.h"

struct kept_prompts {
    const dpi_model *model;
    dpi_prompts *prompts;
    dpi_session *session; /* sequence 0: public prompt; i + 1: reference i; then those of a text */
    int32_t n_ref, n_public;
    int32_t **tokens; /* [n_ref] prompts */
    size_t *n_tokens; /* [n_ref] */
};

static int check(dpi_status status, const dpi_error *err) {
    if (status != DPI_STATUS_OK)
        fprintf(stderr, "dpinfer-utility: library: %s\n", err->message);
    return status == DPI_STATUS_OK ? 0 : -1;
}

static void *allocate(size_t n_bytes) {
    void *p = calloc(1, n_bytes ? n_bytes : 1);
    if (!p)
        abort();
    return p;
}

/* ---- Prompts -------------------------------------------------------------------------------- */

static int make_session(kept_prompts *k, int32_t max_ref, int32_t n_threads) {
    dpi_session_options o;
    dpi_error err;
    dpi_session_options_init(&o);
    o.n_seq = k->n_ref + 1 + max_ref + 1;
    o.n_threads = n_threads;
    return check(dpi_session_create(k->model, &o, &k->session, &err), &err);
}

static int make_prompts(kept_prompts *k, const char *task, int32_t n_tokens) {
    dpi_prompt_options o;
    dpi_prompts_info info;
    dpi_error err;
    dpi_prompt_options_init(&o);
    dpi_prompts_info_init(&info);
    o.public_prompt = (dpi_bytes){task, strlen(task)};
    const int32_t room = dpi_session_n_ctx(k->session) - n_tokens;
    if (check(dpi_prompts_create(k->model, &o, room, &k->prompts, &err), &err) != 0 ||
        check(dpi_prompts_info_get(k->prompts, &info, &err), &err) != 0)
        return -1;
    k->n_public = info.n_public;
    return check(dpi_session_prefill(k->session, 0, dpi_prompts_public(k->prompts),
                                     (size_t)k->n_public, NULL, &err), &err);
}

static int read_reference(kept_prompts *k, int32_t i, const char *text) {
    dpi_error err;
    if (check(dpi_prompts_encode(k->prompts, text, strlen(text), &k->tokens[i], &k->n_tokens[i],
                                 &err), &err) != 0)
        return -1;
    return check(dpi_session_prefill(k->session, i + 1, k->tokens[i], k->n_tokens[i], NULL, &err),
                 &err);
}

kept_prompts *kept_prompts_open(const dpi_model *model, const char *task, const reference *refs,
                                int32_t n_ref, const maker_options *o) {
    kept_prompts *k = allocate(sizeof *k);
    k->model = model;
    k->n_ref = n_ref;
    k->tokens = allocate((size_t)n_ref * sizeof *k->tokens);
    k->n_tokens = allocate((size_t)n_ref * sizeof *k->n_tokens);
    int code = make_session(k, o->max_ref, o->n_threads);
    if (code == 0)
        code = make_prompts(k, task, o->n_tokens);
    for (int32_t i = 0; i < n_ref && code == 0; i++)
        code = read_reference(k, i, refs[i].text);
    if (code == 0)
        return k;
    kept_prompts_close(k);
    return NULL;
}

void kept_prompts_close(kept_prompts *k) {
    if (!k)
        return;
    for (int32_t i = 0; i < k->n_ref; i++)
        dpi_private_free(k->tokens[i]);
    free(k->tokens);
    free(k->n_tokens);
    dpi_session_free(k->session);
    dpi_prompts_free(k->prompts);
    free(k);
}

/* ---- Texts ---------------------------------------------------------------------------------- */

void sample_add_text(sample *x, size_t *n_text, const char *text, size_t n_bytes) {
    if (*n_text + n_bytes >= TEXT_BYTES)
        n_bytes = TEXT_BYTES - 1 - *n_text;
    memcpy(x->text + *n_text, text, n_bytes);
    *n_text += n_bytes;
    x->text[*n_text] = '\0';
}

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int advance(dpi_generation *g, sample *x) {
    size_t n_text = 0;
    dpi_error err;
    for (dpi_generation_event e = {0}; e.type != DPI_EVENT_END;) {
        if (check(dpi_generation_advance(&g, 1, &e, &err), &err) != 0)
            return -1;
        sample_add_text(x, &n_text, e.text, e.n_bytes);
        if (e.type == DPI_EVENT_TOKEN)
            x->tokens[x->n_tokens++] = e.token;
        x->ended = e.end == DPI_END_EOG;
    }
    return 0;
}

/* The references of a batch as the prompts of a generation. */
typedef struct batch {
    const int32_t *tokens[4096];
    size_t n_tokens[4096];
    int32_t seqs[4097];
} batch;

static void fill_batch(const kept_prompts *k, const int32_t *order, int32_t n, batch *b) {
    b->seqs[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        b->tokens[i] = k->tokens[order[i]];
        b->n_tokens[i] = k->n_tokens[order[i]];
        b->seqs[i + 1] = order[i] + 1;
    }
}

static int draw_text(kept_prompts *k, dpi_sampler *sampler, const batch *b, int32_t n_ref,
                     sample *x) {
    dpi_generation_options o;
    dpi_generation *g;
    dpi_error err;
    const double begin = processor_seconds();
    dpi_generation_options_init(&o);
    o.session = k->session;
    o.sampler = sampler;
    o.text = DPI_TEXT_PIECES;
    o.public_tokens = dpi_prompts_public(k->prompts);
    o.n_public = (size_t)k->n_public;
    o.reference_tokens = b->tokens;
    o.n_reference_tokens = b->n_tokens;
    o.n_ref = n_ref;
    o.first_seq = k->n_ref + 1;
    o.prompt_seqs = b->seqs;
    if (check(dpi_generation_create(&o, &g, &err), &err) != 0)
        return -1;
    const int code = advance(g, x);
    dpi_generation_free(g);
    x->n_private = dpi_sampler_n_private(sampler);
    x->seconds = processor_seconds() - begin;
    return code;
}

int kept_prompts_draw(kept_prompts *k, const dpi_sampler_options *method, const int32_t *order,
                      sample *samples, int32_t n) {
    dpi_sampler *sampler;
    dpi_error err;
    if (check(dpi_sampler_create(method, &sampler, &err), &err) != 0)
        return -1;
    batch *b = allocate(sizeof *b);
    int code = 0;
    for (int32_t i = 0; i < n && code == 0; i++) {
        fill_batch(k, order + (size_t)i * (size_t)method->n_ref, method->n_ref, b);
        code = draw_text(k, sampler, b, method->n_ref, &samples[i]);
    }
    free(b);
    dpi_sampler_free(sampler);
    return code;
}
