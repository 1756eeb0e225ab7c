/* features.c - see features.h. */
#include "eval/features.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "dpinfer/text.h"
#include "eval/fail.h"
#include "eval/terms.h"

enum { ROWS = 64 }; /* logits that are held at a time */

/* What reading a text needs. */
typedef struct reader {
    const dpi_model *model;
    dpi_session *session;
    dpi_model_info info;
    int32_t *tokens; /* private; room for `capacity` */
    size_t capacity;
    float *logits; /* [ROWS, n_vocab], private */
    float *states; /* [ROWS, n_embd], private */
    double *pooled; /* [n_embd] sums, private */
} reader;

/* -ln softmax(row)[token] */
static double surprise(const float *row, int32_t n_vocab, int32_t token) {
    double most = (double)row[0], sum = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        most = fmax(most, (double)row[i]);
    for (int32_t i = 0; i < n_vocab; i++)
        sum += exp((double)row[i] - most);
    return most + log(sum) - (double)row[token];
}

/* *tokens [*capacity] grows as it needs to; *n of them are the text's, without white space at its
 * ends: one line end changes the last hidden state more than all words before it. */
static dpi_status read_tokens(const dpi_model *model, const eval_text *t, uint32_t flags,
                              int32_t **tokens, size_t *capacity, size_t *n, dpi_error *err) {
    size_t begin = 0, end = t->n_bytes;
    while (begin < end && eval_is_space(t->text[begin]))
        begin++;
    while (end > begin && eval_is_space(t->text[end - 1]))
        end--;
    const size_t most = 4 * (end - begin) + 5;
    if (!dpi_private_grow(tokens, capacity, most, sizeof **tokens))
        return eval_no_memory(err, "what a model makes of texts");
    return dpi_tokenize(model, t->text + begin, end - begin, flags, *tokens, *capacity, n, err);
}

static dpi_status tokenize(reader *r, const eval_text *t, size_t *n_tokens, dpi_error *err) {
    EVAL_TRY(read_tokens(r->model, t, DPI_TOKENIZE_BOS, &r->tokens, &r->capacity, n_tokens, err));
    if (*n_tokens == 0) /* an empty text, and no BOS: any token, always the same one */
        r->tokens[(*n_tokens)++] = 0;
    return DPI_STATUS_OK;
}

/* A text whose words are tokens [n]. */
static dpi_status add_tokens(eval_texts *s, const int32_t *tokens, size_t n, dpi_error *err) {
    eval_text *t = &s->at[s->n++];
    *t = (eval_text){.word = dpi_private_malloc((n + 1) * sizeof *t->word), .n_words = (int32_t)n};
    if (!t->word)
        return eval_no_memory(err, "what a model makes of texts");
    for (size_t i = 0; i < n; i++)
        t->word[i] = (uint64_t)tokens[i];
    s->n_words += t->n_words;
    return DPI_STATUS_OK;
}

dpi_status eval_tokenize(const dpi_model *model, const eval_texts *texts, eval_texts *tokens,
                         dpi_error *err) {
    int32_t *own = NULL;
    size_t capacity = 0, n;
    *tokens = (eval_texts){.at = dpi_private_malloc(((size_t)texts->n + 1) * sizeof *tokens->at)};
    dpi_status status =
        tokens->at ? DPI_STATUS_OK : eval_no_memory(err, "what a model makes of texts");
    for (int32_t i = 0; i < texts->n && status == DPI_STATUS_OK; i++) {
        status = read_tokens(model, &texts->at[i], 0, &own, &capacity, &n, err);
        if (status == DPI_STATUS_OK)
            status = add_tokens(tokens, own, n, err);
    }
    dpi_private_free(own);
    return status;
}

/* Adds the states of the last `rows` tokens to their sums, but the first `skip`. */
static dpi_status pool(reader *r, size_t rows, size_t skip, dpi_error *err) {
    const size_t n_embd = (size_t)r->info.n_embd;
    EVAL_TRY(dpi_session_features_last(r->session, 0, (int32_t)rows, r->states, err));
    for (size_t i = skip; i < rows; i++)
        for (size_t d = 0; d < n_embd; d++)
            r->pooled[d] += (double)r->states[i * n_embd + d];
    return DPI_STATUS_OK;
}

/* n tokens in pieces, of which the first `skip` are not pooled: of each position but the last the
 * surprise of what follows. */
static dpi_status prefill(reader *r, size_t n, size_t skip, double *sum, dpi_error *err) {
    dpi_session_reset(r->session, 0);
    memset(r->pooled, 0, (size_t)r->info.n_embd * sizeof *r->pooled);
    *sum = 0;
    for (size_t begin = 0; begin < n; begin += ROWS) {
        const size_t rows = n - begin < ROWS ? n - begin : ROWS;
        EVAL_TRY(dpi_session_prefill(r->session, 0, r->tokens + begin, rows, r->logits, err));
        for (size_t i = 0; i < rows && begin + i + 1 < n; i++)
            *sum += surprise(r->logits + i * (size_t)r->info.n_vocab, r->info.n_vocab,
                             r->tokens[begin + i + 1]);
        EVAL_TRY(pool(r, rows, begin == 0 ? skip : 0, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status read_text(reader *r, const eval_text *t, eval_reading *x, dpi_error *err) {
    const size_t n_ctx = (size_t)dpi_session_n_ctx(r->session);
    size_t n;
    double sum;
    EVAL_TRY(tokenize(r, t, &n, err));
    if (n > n_ctx) {
        n = n_ctx;
        x->n_cut++;
    }
    const bool has_bos = r->tokens[0] == dpi_token_bos(r->model);
    const size_t skip = has_bos && n > 1, dim = (size_t)x->pooled.dim;
    EVAL_TRY(prefill(r, n, skip, &sum, err));
    const int32_t i = x->n++;
    for (size_t d = 0; d < dim; d++)
        x->pooled.at[(size_t)i * dim + d] = (float)(r->pooled[d] / (double)(n - skip));
    x->nll[i] = n > 1 ? sum / (double)(n - 1) : 0;
    x->n_tokens[i] = (int32_t)n - has_bos;
    x->features.n = x->pooled.n = x->n;
    return dpi_session_features(r->session, 0,
                                x->features.at + (size_t)i * (size_t)x->features.dim, err);
}

static dpi_status make_room(reader *r, int32_t n, eval_reading *x, dpi_error *err) {
    const size_t n_texts = (size_t)n + 1, n_embd = (size_t)r->info.n_embd;
    x->features.dim = x->pooled.dim = r->info.n_embd;
    x->features.at = dpi_private_malloc(n_texts * n_embd * sizeof *x->features.at);
    x->pooled.at = dpi_private_malloc(n_texts * n_embd * sizeof *x->pooled.at);
    r->states = dpi_private_malloc(ROWS * n_embd * sizeof *r->states);
    r->pooled = dpi_private_malloc(n_embd * sizeof *r->pooled);
    x->nll = dpi_private_malloc(n_texts * sizeof *x->nll);
    x->n_tokens = dpi_private_malloc(n_texts * sizeof *x->n_tokens);
    r->logits = dpi_private_malloc(ROWS * (size_t)r->info.n_vocab * sizeof *r->logits);
    return x->features.at && x->pooled.at && x->nll && x->n_tokens && r->logits && r->states &&
                   r->pooled
               ? DPI_STATUS_OK
               : eval_no_memory(err, "what a model makes of texts");
}

void eval_begin(const eval_watch *watch, const char *what) {
    if (watch && watch->progress)
        watch->progress(watch->user, what, 0, 0);
}

dpi_status eval_read(const dpi_model *model, const dpi_session_options *options,
                     const eval_texts *texts, const char *what, const eval_watch *watch,
                     eval_reading *x, dpi_error *err) {
    reader r = {.model = model};
    *x = (eval_reading){0};
    dpi_model_info_init(&r.info);
    EVAL_TRY(dpi_model_info_get(model, &r.info, err));
    dpi_status status = dpi_session_create(model, options, &r.session, err);
    if (status == DPI_STATUS_OK)
        status = make_room(&r, texts->n, x, err);
    for (int32_t i = 0; i < texts->n && status == DPI_STATUS_OK; i++) {
        if (watch && watch->cancel && watch->cancel(watch->user))
            status = eval_fail(err, DPI_STATUS_CANCELLED, "cancelled while texts are read");
        else
            status = read_text(&r, &texts->at[i], x, err);
        if (status == DPI_STATUS_OK && watch && watch->progress)
            watch->progress(watch->user, what, i + 1, texts->n);
    }
    dpi_session_free(r.session);
    dpi_private_free(r.tokens);
    dpi_private_free(r.logits);
    dpi_private_free(r.states);
    dpi_private_free(r.pooled);
    return status;
}

void eval_reading_free(eval_reading *x) {
    dpi_private_free(x->features.at);
    dpi_private_free(x->pooled.at);
    dpi_private_free(x->nll);
    dpi_private_free(x->n_tokens);
    *x = (eval_reading){0};
}
