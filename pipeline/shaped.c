/* shaped.c - settings in a text, see shaping.h. */
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "pipeline/shaping_parts.h"

static const uint32_t DEAD = UINT32_MAX; /* a refusal that the text does not begin with */

/* Bytes of the text that stand between white space. */
typedef struct word {
    size_t begin, n_bytes;
} word;

struct dpi_shaped {
    const dpi_shaping *shaping;
    uint64_t *bits;    /* [n_words] what may come */
    uint32_t *matched; /* [n_bans + n_refusals] how many bytes of each the text ends with; of a
                          refusal all of it, but for white space */
    uint8_t *bytes;    /* [n_bytes] the text, where no words may be repeated */
    word *words;       /* [n_words] */
    size_t n_bytes, bytes_room, n_words, words_room;
    bool open;         /* the last word may go on */
    int32_t *come;     /* [n_come] tokens that have come, each once */
    uint64_t *has_come; /* [n_words of the shaping] the same, as a set */
    size_t n_come, come_room;
};

/* ---- Words ----------------------------------------------------------------------------------- */

static bool same_word(const dpi_shaped *t, size_t i, size_t j) {
    const word *a = &t->words[i], *b = &t->words[j];
    return a->n_bytes == b->n_bytes &&
           memcmp(t->bytes + a->begin, t->bytes + b->begin, a->n_bytes) == 0;
}

/* Whether no_repeat - 1 words before word i, which must be there, are those before word j > i; the
 * last of them may be beyond the last one. */
static bool same_before(const dpi_shaped *t, size_t i, size_t j) {
    for (size_t d = 1; d < (size_t)t->shaping->no_repeat; d++)
        if (!same_word(t, i - d, j - d))
            return false;
    return true;
}

/* The first word that may be the last of a run. */
static size_t first_last(const dpi_shaped *t) { return (size_t)t->shaping->no_repeat - 1; }

static void put_text(dpi_shaped *t, const uint8_t *text, size_t n) {
    memcpy(t->bytes + t->n_bytes, text, n);
    for (size_t i = 0; i < n; i++) {
        const bool space = dpi_is_space((char)text[i]);
        if (!space && !t->open)
            t->words[t->n_words++] = (word){t->n_bytes + i, 0};
        if (!space)
            t->words[t->n_words - 1].n_bytes++;
        t->open = !space;
    }
    t->n_bytes += n;
}

/* Whether a run of words would stand in the text twice behind a token. */
static bool would_repeat(dpi_shaped *t, int32_t token) {
    size_t n;
    const uint8_t *text = dpi_shaping_text(t->shaping, token, &n);
    const size_t n_bytes = t->n_bytes, n_words = t->n_words;
    const bool open = t->open;
    const word last = n_words > 0 ? t->words[n_words - 1] : (word){0, 0};
    bool found = false;
    put_text(t, text, n);
    for (size_t j = n_words - (open && !dpi_is_space((char)text[0])); j < t->n_words; j++)
        for (size_t i = first_last(t); i < j && !found; i++)
            found = same_before(t, i, j) && same_word(t, i, j);
    t->n_bytes = n_bytes;
    t->n_words = n_words;
    t->open = open;
    if (n_words > 0)
        t->words[n_words - 1] = last;
    return found;
}

/* ---- What may not come ----------------------------------------------------------------------- */

static void forbid(dpi_shaped *t, int32_t token) {
    t->bits[token / 64] &= ~(UINT64_C(1) << (token % 64));
}

static void forbid_bans(dpi_shaped *t) {
    const dpi_shaping *s = t->shaping;
    for (int32_t i = 0; i < s->n_bans + s->n_refusals; i++) {
        const dpi_ban *ban = &s->bans[i];
        const bool at_start = i >= s->n_bans;
        uint32_t k = t->matched[i];
        if (at_start ? k == DEAD : k == 0)
            continue;
        do {
            const int32_t *order = k == 0 ? s->by_word : s->by_bytes;
            for (int32_t j = ban->rest[k].begin; j < ban->rest[k].end; j++)
                forbid(t, order[j]);
            k = ban->border[k];
        } while (k > 0 && !at_start);
    }
}

/* The tokens by which the open word becomes word i. */
static void forbid_rest(dpi_shaped *t, size_t i) {
    const word *w = &t->words[i], *open = &t->words[t->n_words - 1];
    if (w->n_bytes <= open->n_bytes ||
        memcmp(t->bytes + w->begin, t->bytes + open->begin, open->n_bytes) != 0)
        return;
    const dpi_token_range r =
        dpi_shaping_find(t->shaping, false, true, t->bytes + w->begin + open->n_bytes,
                         w->n_bytes - open->n_bytes);
    for (int32_t j = r.begin; j < r.end; j++)
        forbid(t, t->shaping->by_bytes[j]);
}

/* The tokens by which the next word becomes word i. */
static void forbid_word(dpi_shaped *t, size_t i) {
    const dpi_shaping *s = t->shaping;
    const word *w = &t->words[i];
    const dpi_token_range r = dpi_shaping_find(s, true, true, t->bytes + w->begin, w->n_bytes);
    for (int32_t j = r.begin; j < r.end; j++)
        if (!t->open || dpi_is_space((char)s->pool[s->starts[s->by_word[j]]]))
            forbid(t, s->by_word[j]);
}

static void forbid_repeats(dpi_shaped *t) {
    const dpi_shaping *s = t->shaping;
    const size_t n = t->n_words;
    for (size_t i = first_last(t); t->open && i + 1 < n; i++)
        if (same_before(t, i, n - 1))
            forbid_rest(t, i);
    for (size_t i = first_last(t); i < n; i++)
        if (same_before(t, i, n))
            forbid_word(t, i);
    for (int32_t i = 0; i < s->n_several; i++)
        if (would_repeat(t, s->several[i]))
            forbid(t, s->several[i]);
}

const uint64_t *dpi_shaped_allow(dpi_shaped *t, const uint64_t *bits, bool *is_end) {
    const dpi_shaping *s = t ? t->shaping : NULL;
    uint64_t left = 0;
    *is_end = false;
    if (!s || !s->masks)
        return bits;
    for (int32_t i = 0; i < s->n_words; i++)
        t->bits[i] = (bits ? bits[i] : UINT64_MAX) & ~s->never[i];
    forbid_bans(t);
    if (s->no_repeat > 0)
        forbid_repeats(t);
    for (int32_t i = 0; i < s->n_words; i++)
        left |= t->bits[i];
    *is_end = left == 0;
    return *is_end ? s->ends : t->bits;
}

void dpi_shaped_shift(const dpi_shaped *t, float *logits) {
    const dpi_shaping *s = t ? t->shaping : NULL;
    for (int32_t i = 0; s && i < s->n_biases; i++)
        logits[s->biases[i].token] += (float)s->biases[i].bias;
    for (size_t i = 0; s && s->repeat_shift != 0 && i < t->n_come; i++)
        logits[t->come[i]] += s->repeat_shift;
}

/* ---- A token --------------------------------------------------------------------------------- */

static uint32_t match_next(const dpi_ban *ban, uint32_t k, uint8_t byte) {
    while (k > 0 && ban->bytes[k] != byte)
        k = ban->border[k];
    k += ban->bytes[k] == byte;
    return k == ban->n_bytes ? ban->border[k] : k;
}

/* A refusal is never complete: the token that completes it does not come. */
static uint32_t match_start(const dpi_ban *ban, uint32_t k, uint8_t byte) {
    if (k == DEAD || (k == 0 && dpi_is_space((char)byte)))
        return k;
    return ban->bytes[k] == byte && k + 1 < ban->n_bytes ? k + 1 : DEAD;
}

static void put_token(dpi_shaped *t, int32_t token, bool released, bool in_text) {
    const dpi_shaping *s = t->shaping;
    size_t n;
    const uint8_t *text = dpi_shaping_text(s, token, &n);
    for (size_t i = 0; i < n; i++)
        for (int32_t b = 0; b < s->n_bans + (released ? s->n_refusals : 0); b++)
            t->matched[b] = b < s->n_bans ? match_next(&s->bans[b], t->matched[b], text[i])
                                          : match_start(&s->bans[b], t->matched[b], text[i]);
    if (in_text && s->no_repeat > 0)
        put_text(t, text, n);
}

dpi_status dpi_shaped_reserve(dpi_shaped *t, dpi_error *err) {
    const size_t most = t ? t->shaping->max_bytes : 0;
    if (t && (!dpi_grow(&t->come, &t->come_room, t->n_come + 1, sizeof *t->come) ||
              !dpi_grow(&t->bytes, &t->bytes_room, t->n_bytes + most, 1) ||
              !dpi_grow(&t->words, &t->words_room, t->n_words + most, sizeof *t->words)))
        return dpi_no_memory(err, "what may come in a text");
    return DPI_STATUS_OK;
}

void dpi_shaped_begin(dpi_shaped *t, int32_t token, bool in_text) {
    if (t)
        put_token(t, token, false, in_text);
}

void dpi_shaped_push(dpi_shaped *t, int32_t token) {
    if (!t)
        return;
    put_token(t, token, true, true);
    if (!(t->has_come[token / 64] >> (token % 64) & 1))
        t->come[t->n_come++] = token;
    t->has_come[token / 64] |= UINT64_C(1) << (token % 64);
}

/* ---- Life ------------------------------------------------------------------------------------ */

dpi_status dpi_shaped_create(const dpi_shaping *shaping, dpi_shaped **text, dpi_error *err) {
    *text = NULL;
    if (!shaping)
        return DPI_STATUS_OK;
    dpi_shaped *t = dpi_calloc(1, sizeof *t);
    if (t) {
        t->shaping = shaping;
        t->bits = dpi_calloc((size_t)shaping->n_words, sizeof *t->bits);
        t->has_come = dpi_calloc((size_t)shaping->n_words, sizeof *t->has_come);
        t->matched =
            dpi_calloc((size_t)(shaping->n_bans + shaping->n_refusals), sizeof *t->matched);
    }
    if (!t || !t->bits || !t->has_come || !t->matched) {
        dpi_shaped_free(t);
        return dpi_no_memory(err, "what may come in a text");
    }
    *text = t;
    return DPI_STATUS_OK;
}

void dpi_shaped_free(dpi_shaped *t) {
    if (!t)
        return;
    const dpi_shaping *s = t->shaping;
    dpi_wipe_free(t->bits, (size_t)s->n_words * sizeof *t->bits);
    dpi_wipe_free(t->has_come, (size_t)s->n_words * sizeof *t->has_come);
    dpi_wipe_free(t->matched, (size_t)(s->n_bans + s->n_refusals) * sizeof *t->matched);
    dpi_wipe_free(t->bytes, t->bytes_room);
    dpi_wipe_free(t->words, t->words_room * sizeof *t->words);
    dpi_wipe_free(t->come, t->come_room * sizeof *t->come);
    dpi_wipe_free(t, sizeof *t);
}
