/* shaping.c - settings over a vocabulary, see shaping.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "pipeline/shaping_parts.h"

static const char *const refusals[] = {
    "I'm sorry", "I\xe2\x80\x99m sorry", "I am sorry", "Sorry", "I apologize", "Apologies",
    "I cannot", "I can't", "I can\xe2\x80\x99t", "I'm unable", "I\xe2\x80\x99m unable",
    "I am unable", "I'm not able", "I\xe2\x80\x99m not able", "As an AI", "As a language model",
    "Sure", "Certainly", "Of course!", "Of course,", "Absolutely!", "Here is", "Here's",
    "Here\xe2\x80\x99s", "Here are", "Below is"};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

const char *dpi_refusal(int32_t i) { return i >= 0 && i < N_REFUSALS ? refusals[i] : NULL; }

/* ---- Orders of tokens ------------------------------------------------------------------------ */

static int rank(uint8_t byte) { return dpi_is_space((char)byte) ? byte : byte + 256; }

/* The text of a token, in by_word without the white space that it begins with. */
static const uint8_t *key_of(const dpi_shaping *s, bool by_word, int32_t token, size_t *n) {
    const uint8_t *text = dpi_shaping_text(s, token, n);
    for (; by_word && *n > 0 && dpi_is_space((char)*text); --*n)
        text++;
    return text;
}

/* An entry of an order while it is sorted. */
typedef struct entry {
    const uint8_t *bytes;
    size_t n_bytes;
    int32_t token;
} entry;

static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    for (size_t i = 0; i < x->n_bytes && i < y->n_bytes; i++)
        if (x->bytes[i] != y->bytes[i])
            return rank(x->bytes[i]) - rank(y->bytes[i]);
    return x->n_bytes != y->n_bytes ? (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes)
                                    : (x->token > y->token) - (x->token < y->token);
}

/* *order = the tokens with a text, sorted; s->n_texts of them. */
static dpi_status sort_tokens(dpi_shaping *s, bool by_word, int32_t **order, dpi_error *err) {
    entry *entries = dpi_calloc((size_t)s->n_tokens, sizeof *entries);
    *order = dpi_calloc((size_t)s->n_tokens, sizeof **order);
    s->n_texts = 0;
    for (int32_t i = 0; entries && i < s->n_tokens; i++)
        if (s->starts[i + 1] > s->starts[i]) {
            entry *e = &entries[s->n_texts++];
            e->bytes = key_of(s, by_word, i, &e->n_bytes);
            e->token = i;
        }
    if (entries && *order) {
        qsort(entries, (size_t)s->n_texts, sizeof *entries, compare_entries);
        for (int32_t i = 0; i < s->n_texts; i++)
            (*order)[i] = entries[i].token;
    }
    const bool done = entries && *order;
    free(entries);
    return done ? DPI_STATUS_OK : dpi_no_memory(err, "an order of all tokens");
}

/* Where a text stands beside those that begin with a key: before them (-1), among them, behind. */
static int side_of(const uint8_t *text, size_t n, const uint8_t *key, size_t n_key, bool whole) {
    for (size_t i = 0; i < n && i < n_key; i++)
        if (text[i] != key[i])
            return rank(text[i]) < rank(key[i]) ? -1 : 1;
    return n < n_key ? -1 : whole && n > n_key && !dpi_is_space((char)text[n_key]);
}

dpi_token_range dpi_shaping_find(const dpi_shaping *s, bool by_word, bool whole, const uint8_t *key,
                                 size_t n_key) {
    int32_t at[2];
    for (int end = 0; end < 2; end++) {
        int32_t low = end ? at[0] : 0, high = s->n_texts;
        while (low < high) {
            size_t n;
            const int32_t middle = low + (high - low) / 2;
            const int32_t token = (by_word ? s->by_word : s->by_bytes)[middle];
            const uint8_t *text = key_of(s, by_word, token, &n);
            if (side_of(text, n, key, n_key, whole) < end)
                low = middle + 1;
            else
                high = middle;
        }
        at[end] = low;
    }
    return (dpi_token_range){at[0], at[1]};
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static dpi_status keep_tokens(dpi_shaping *s, const dpi_mask_token *tokens, dpi_error *err) {
    size_t n_bytes = 0;
    for (int32_t i = 0; i < s->n_tokens; i++)
        n_bytes += tokens[i].bytes ? tokens[i].n_bytes : 0;
    s->pool = dpi_calloc(n_bytes, 1);
    s->starts = dpi_calloc((size_t)s->n_tokens + 1, sizeof *s->starts);
    s->ends = dpi_calloc((size_t)s->n_words, sizeof *s->ends);
    s->never = dpi_calloc((size_t)s->n_words, sizeof *s->never);
    s->several = dpi_calloc((size_t)s->n_tokens, sizeof *s->several);
    if (n_bytes > UINT32_MAX || !s->pool || !s->starts || !s->ends || !s->never || !s->several)
        return dpi_no_memory(err, "the texts of all tokens");
    for (int32_t i = 0; i < s->n_tokens; i++) {
        const uint32_t n = tokens[i].bytes ? tokens[i].n_bytes : 0;
        if (n > 0)
            memcpy(s->pool + s->starts[i], tokens[i].bytes, n);
        s->starts[i + 1] = s->starts[i] + n;
        s->max_bytes = n > s->max_bytes ? n : s->max_bytes;
        s->ends[i / 64] |= (uint64_t)tokens[i].is_end << (i % 64);
        s->never[i / 64] |= (uint64_t)(n == 0 && !tokens[i].is_end) << (i % 64);
    }
    for (int32_t i = s->n_tokens; i < s->n_words * 64; i++)
        s->never[i / 64] |= UINT64_C(1) << (i % 64);
    return DPI_STATUS_OK;
}

/* Tokens with a second word. */
static void find_several(dpi_shaping *s) {
    for (int32_t i = 0; i < s->n_tokens; i++) {
        size_t n, at = 0;
        const uint8_t *text = key_of(s, true, i, &n);
        while (at < n && !dpi_is_space((char)text[at]))
            at++;
        while (at < n && dpi_is_space((char)text[at]))
            at++;
        if (at < n)
            s->several[s->n_several++] = i;
    }
}

/* ---- Bans ------------------------------------------------------------------------------------ */

static bool has_text(const uint8_t *text, size_t n, const dpi_ban *ban) {
    for (size_t at = 0; at + ban->n_bytes <= n; at++)
        if (text[at] == ban->bytes[0] && memcmp(text + at, ban->bytes, ban->n_bytes) == 0)
            return true;
    return false;
}

static void find_borders(const dpi_ban *ban, uint32_t *border) {
    for (uint32_t n = 2, k = 0; n <= ban->n_bytes; n++) {
        while (k > 0 && ban->bytes[k] != ban->bytes[n - 1])
            k = border[k];
        k += ban->bytes[k] == ban->bytes[n - 1];
        border[n] = k;
    }
}

/* A ban, whose arrays the caller has; at_start: a refusal. */
static void make_ban(dpi_shaping *s, dpi_ban *ban, bool at_start) {
    find_borders(ban, ban->border);
    for (uint32_t k = at_start ? 0 : 1; k < ban->n_bytes; k++)
        ban->rest[k] = dpi_shaping_find(s, k == 0, false, ban->bytes + k, ban->n_bytes - k);
    for (int32_t i = 0; !at_start && i < s->n_tokens; i++) {
        size_t n;
        const uint8_t *text = dpi_shaping_text(s, i, &n);
        if (has_text(text, n, ban))
            s->never[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

static dpi_status add_ban(dpi_shaping *s, const char *text, size_t n, bool at_start,
                          dpi_error *err) {
    dpi_ban *ban = &s->bans[s->n_bans + s->n_refusals];
    ban->bytes = dpi_calloc(n, 1);
    ban->border = dpi_calloc(n + 1, sizeof *ban->border);
    ban->rest = dpi_calloc(n, sizeof *ban->rest);
    s->n_bans += !at_start;
    s->n_refusals += at_start;
    if (!ban->bytes || !ban->border || !ban->rest)
        return dpi_no_memory(err, "the texts that are banned");
    memcpy(ban->bytes, text, n);
    ban->n_bytes = (uint32_t)n;
    make_ban(s, ban, at_start);
    return DPI_STATUS_OK;
}

static dpi_status add_bans(dpi_shaping *s, const dpi_wording *w, bool marks_spaces,
                           dpi_error *err) {
    static const char mark[] = "\xe2\x96\x81";
    s->bans = dpi_calloc((size_t)(w->n_bans + 1 + N_REFUSALS), sizeof *s->bans);
    if (!s->bans)
        return dpi_no_memory(err, "the texts that are banned");
    if (marks_spaces)
        DPI_TRY(add_ban(s, mark, strlen(mark), false, err));
    for (int32_t i = 0; i < w->n_bans; i++)
        DPI_TRY(add_ban(s, w->bans[i].data, w->bans[i].n_bytes, false, err));
    for (int32_t i = 0; w->ban_refusals && i < N_REFUSALS; i++)
        DPI_TRY(add_ban(s, refusals[i], strlen(refusals[i]), true, err));
    return DPI_STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static dpi_status make_masks(dpi_shaping *s, const dpi_wording *w, bool marks_spaces,
                             dpi_error *err) {
    uint64_t ends = 0;
    for (int32_t i = 0; i < s->n_words; i++)
        ends |= s->ends[i];
    if (!ends)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ban or no_repeat: the model has no token that ends a text, and needs "
                        "one for where no other may come");
    find_several(s);
    DPI_TRY(sort_tokens(s, false, &s->by_bytes, err));
    DPI_TRY(sort_tokens(s, true, &s->by_word, err));
    return add_bans(s, w, marks_spaces, err);
}

static dpi_status keep_biases(dpi_shaping *s, const dpi_wording *w, dpi_error *err) {
    s->repeat_shift = (float)(-DPI_REPEAT_SCALE * log(w->repeat_penalty));
    s->biases = dpi_calloc((size_t)w->n_biases, sizeof *s->biases);
    if (!s->biases)
        return dpi_no_memory(err, "the biases of tokens");
    for (int32_t i = 0; i < w->n_biases; i++) {
        DPI_TRY(dpi_check_range("biases.token", w->biases[i].token, 0, s->n_tokens - 1, err));
        s->biases[s->n_biases++] = w->biases[i];
    }
    return DPI_STATUS_OK;
}

static bool has_masks(const dpi_wording *w) {
    return w->n_bans > 0 || w->ban_refusals || w->no_repeat > 0;
}

bool dpi_shaping_is_wanted(const dpi_wording *w) {
    return has_masks(w) || w->n_biases > 0 || w->repeat_penalty != 1;
}

dpi_status dpi_shaping_make(const dpi_wording *w, const dpi_mask_token *tokens, int32_t n,
                            bool marks_spaces, dpi_shaping **shaping, dpi_error *err) {
    *shaping = NULL;
    if (!dpi_shaping_is_wanted(w))
        return DPI_STATUS_OK;
    dpi_shaping *s = dpi_calloc(1, sizeof *s);
    if (!s)
        return dpi_no_memory(err, "what shapes a text");
    s->n_tokens = n;
    s->n_words = (n + 63) / 64;
    s->no_repeat = w->no_repeat;
    s->masks = has_masks(w);
    dpi_status status = keep_biases(s, w, err);
    if (status == DPI_STATUS_OK)
        status = keep_tokens(s, tokens, err);
    if (status == DPI_STATUS_OK && s->masks)
        status = make_masks(s, w, marks_spaces, err);
    if (status == DPI_STATUS_OK)
        *shaping = s;
    else
        dpi_shaping_free(s);
    return status;
}

void dpi_shaping_free(dpi_shaping *s) {
    if (!s)
        return;
    for (int32_t i = 0; i < s->n_bans + s->n_refusals; i++) {
        free(s->bans[i].bytes);
        free(s->bans[i].border);
        free(s->bans[i].rest);
    }
    free(s->bans);
    free(s->pool);
    free(s->starts);
    free(s->ends);
    free(s->never);
    free(s->several);
    free(s->by_bytes);
    free(s->by_word);
    free(s->biases);
    free(s);
}
