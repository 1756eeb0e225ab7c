/* attack_language.c - a language model reads perturbed words and guesses what stood there. Two
 * sequences: one holds the perturbed words, the other one the guesses so far. Words that are not
 * the model's tokens are read as the tokens of their text, and are as likely as the first of these:
 * of words that begin alike the most frequent one is guessed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/session.h"
#include "dpinfer/text.h"
#include "audit/attack/inside.h"

enum { PERTURBED, GUESSED, N_SEQUENCES, ROOM = 64 };

/* What stands before a word, so that it is not the first one of a text. */
static const char lead[] = "a ";

typedef struct reader {
    const dpi_model *model;
    const dpi_vocabulary *vocabulary;
    const dpi_channel *channel;
    dpi_session *session;
    int32_t *first; /* [n] the first token of each word */
    size_t n_lead;  /* tokens of the lead, without its space */
} reader;

/* Both sequences empty, but for the token that begins a text, if the model has one. */
static dpi_status begin(const reader *r, dpi_error *err) {
    int32_t tokens[8];
    size_t n;
    DPI_TRY(dpi_tokenize(r->model, "", 0, DPI_TOKENIZE_BOS, tokens, 8, &n, err));
    for (int32_t seq = 0; seq < N_SEQUENCES; seq++) {
        dpi_session_reset(r->session, seq);
        if (n > 0)
            DPI_TRY(dpi_session_prefill(r->session, seq, tokens, n, NULL, err));
    }
    return DPI_STATUS_OK;
}

/* The likeliest word; one that becomes what is seen counts by how likely that is, if seen >= 0.
 * -1: none. */
static int32_t guess_word(const reader *r, int32_t seq, int32_t seen) {
    const dpi_vocabulary *v = r->vocabulary;
    const size_t n_seen = (size_t)v->n + 1;
    const float *logits = dpi_session_logits(r->session, seq);
    double best = -INFINITY;
    int32_t guess = -1;
    for (int32_t x = 0; x < v->n; x++) {
        double score = logits ? (double)logits[r->first[x]] : 0;
        if (seen >= 0)
            score += (double)r->channel->log_p[(size_t)x * n_seen + (size_t)seen];
        if (score > best) {
            best = score;
            guess = x;
        }
    }
    return guess;
}

/* The first ROOM tokens of a text. */
static dpi_status tokenize(const reader *r, const char *text, int32_t tokens[ROOM], size_t *n,
                           dpi_error *err) {
    const dpi_status status = dpi_tokenize(r->model, text, strlen(text), 0, tokens, ROOM, n, err);
    if (status != DPI_STATUS_LIMIT)
        return status;
    *n = ROOM;
    return DPI_STATUS_OK;
}

/* The same of a word behind a space. */
static dpi_status tokenize_word(const reader *r, const char *word, int32_t tokens[ROOM], size_t *n,
                                dpi_error *err) {
    char *text = dpi_private_malloc(sizeof lead + strlen(word));
    if (!text)
        return dpi_no_memory(err, "a word");
    const dpi_status status = tokenize(r, strcat(strcpy(text, lead), word), tokens, n, err);
    dpi_private_free(text);
    if (status == DPI_STATUS_OK) {
        *n -= *n < r->n_lead ? *n : r->n_lead;
        memmove(tokens, tokens + r->n_lead, *n * sizeof *tokens);
    }
    return status;
}

/* The tokens of a word, or of the text that stands there and is no word. */
static dpi_status tokens_of(const reader *r, int32_t place, const char *text, int32_t tokens[ROOM],
                            size_t *n, dpi_error *err) {
    const dpi_vocabulary *v = r->vocabulary;
    *n = 0;
    if (place < 0 && !text)
        return DPI_STATUS_OK;
    if (!v->model)
        return tokenize_word(r, place >= 0 ? v->words[place] : text, tokens, n, err);
    if (place < 0)
        return tokenize(r, text, tokens, n, err);
    tokens[(*n)++] = v->token[place];
    return DPI_STATUS_OK;
}

/* What stands there into one sequence, what was guessed into the other one. */
static dpi_status read_words(const reader *r, const int32_t places[N_SEQUENCES], const char *text,
                             dpi_error *err) {
    static const int32_t seqs[N_SEQUENCES] = {PERTURBED, GUESSED};
    int32_t tokens[N_SEQUENCES][ROOM];
    size_t n[N_SEQUENCES];
    for (int32_t seq = 0; seq < N_SEQUENCES; seq++)
        DPI_TRY(tokens_of(r, places[seq], text, tokens[seq], &n[seq], err));
    if (n[PERTURBED] == 1 && n[GUESSED] == 1) {
        const int32_t both[N_SEQUENCES] = {tokens[PERTURBED][0], tokens[GUESSED][0]};
        return dpi_session_step(r->session, N_SEQUENCES, seqs, both, err);
    }
    for (int32_t seq = 0; seq < N_SEQUENCES; seq++)
        if (n[seq] > 0)
            DPI_TRY(dpi_session_prefill(r->session, seq, tokens[seq], n[seq], NULL, err));
    return DPI_STATUS_OK;
}

static bool is_full(const reader *r) {
    const int32_t most = dpi_session_n_ctx(r->session) - ROOM;
    return dpi_session_length(r->session, PERTURBED) >= most ||
           dpi_session_length(r->session, GUESSED) >= most;
}

static dpi_status read_document(const reader *r, const attacked_document *d,
                                dpi_attack_result *result, dpi_error *err) {
    DPI_TRY(begin(r, err));
    for (size_t i = 0; i < d->n; i++) {
        const attacked_word *w = &d->words[i];
        if (w->how == DPI_REPLACED_DROPPED)
            continue;
        result->n_guessed[DPI_GUESS_LANGUAGE]++;
        result->n_guessed[DPI_GUESS_CONTEXT]++;
        if (is_full(r)) /* begin again */
            DPI_TRY(begin(r, err));
        const int32_t language = guess_word(r, PERTURBED, -1);
        int32_t context =
            w->known ? w->from : guess_word(r, GUESSED, dpi_channel_seen(r->channel, w));
        result->n_right[DPI_GUESS_LANGUAGE] += language >= 0 && language == w->from;
        result->n_right[DPI_GUESS_CONTEXT] += w->known || (context >= 0 && context == w->from);
        if (context < 0) /* no word becomes this one: it was drawn for one that is none */
            context = w->to;
        const int32_t places[N_SEQUENCES] = {w->to, context};
        DPI_TRY(read_words(r, places, d->numbers[i], err));
    }
    return DPI_STATUS_OK;
}

/* A word without any token is as likely as the token 0. */
static dpi_status find_first(reader *r, dpi_error *err) {
    const int32_t n = r->vocabulary->n;
    int32_t tokens[ROOM];
    size_t n_tokens;
    if (!(r->first = dpi_calloc((size_t)n, sizeof *r->first)))
        return dpi_no_memory(err, "the tokens of %d words", n);
    DPI_TRY(dpi_tokenize(r->model, lead, strlen(lead) - 1, 0, tokens, ROOM, &r->n_lead, err));
    for (int32_t x = 0; x < n; x++) {
        DPI_TRY(tokens_of(r, x, NULL, tokens, &n_tokens, err));
        r->first[x] = n_tokens > 0 ? tokens[0] : 0;
    }
    return DPI_STATUS_OK;
}

static dpi_status open_reader(reader *r, const dpi_attack *a, dpi_error *err) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_seq = N_SEQUENCES;
    o.n_threads = a->options.n_threads;
    DPI_TRY(find_first(r, err));
    DPI_TRY(dpi_session_create(r->model, &o, &r->session, err));
    if (dpi_session_n_ctx(r->session) < 2 * ROOM)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a context of %d tokens, must be %d or more",
                        dpi_session_n_ctx(r->session), 2 * ROOM);
    return DPI_STATUS_OK;
}

dpi_status dpi_attack_language(const dpi_attack *a, const dpi_channel *channel,
                               dpi_attack_result *result, dpi_error *err) {
    const dpi_vocabulary *v = a->vocabulary;
    reader r = {v->model ? v->model : a->options.model, v, channel, NULL, NULL, 0};
    dpi_status status = open_reader(&r, a, err);
    for (size_t i = 0; i < a->n && status == DPI_STATUS_OK; i++)
        status = read_document(&r, &a->documents[i], result, err);
    dpi_session_free(r.session);
    free(r.first);
    return status;
}
