/* What may come next in a text. The oracle: the text with each token behind it, looked through as a
 * whole. Vocabularies, settings, grammars and texts are random. */
#include "pipeline/shaping.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

OWNED(dpi_shaping, dpi_shaping_free)
OWNED(dpi_shaped, dpi_shaped_free)

enum { TOKENS = 100, SIZE = 16, STEPS = 24, ROOM = 1024, END_TOKEN = 0 };

/* A vocabulary; text 0 is "", and ends a text. */
typedef struct vocabulary {
    char text[TOKENS][SIZE];
    dpi_mask_token tokens[TOKENS];
} vocabulary;

static void add_token(vocabulary *v, int i, const char *text, size_t n) {
    snprintf(v->text[i], SIZE, "%.*s", (int)n, text);
    v->tokens[i] = (dpi_mask_token){(const uint8_t *)v->text[i], (uint32_t)strlen(v->text[i]),
                                    i == END_TOKEN};
}

/* Tokens of 0 to `most` of these bytes. */
static void make_random(vocabulary *v, const char *bytes, int most, uint64_t *seed) {
    for (int i = 0; i < TOKENS; i++) {
        char text[SIZE];
        const int n = i == END_TOKEN ? 0 : random_below(seed, most + 1);
        for (int k = 0; k < n; k++)
            text[k] = bytes[random_below(seed, (int32_t)strlen(bytes))];
        add_token(v, i, text, (size_t)n);
    }
}

/* ---- Oracle ---------------------------------------------------------------------------------- */

/* Whether some n words of a text stand in it twice. */
static bool has_repeat(const char *text, int n) {
    const char *words[ROOM];
    size_t bytes[ROOM];
    int count = 0;
    for (const char *p = text; *(p += strspn(p, " \t\n\v\f\r")); p += bytes[count++]) {
        words[count] = p;
        bytes[count] = strcspn(p, " \t\n\v\f\r");
    }
    for (int i = 0; i + n <= count; i++)
        for (int j = i + 1; j + n <= count; j++) {
            int same = 0;
            while (same < n && bytes[i + same] == bytes[j + same] &&
                   memcmp(words[i + same], words[j + same], bytes[i + same]) == 0)
                same++;
            if (same == n)
                return true;
        }
    return false;
}

/* What the prompt has begun, and the text. */
typedef struct texts {
    const dpi_wording *w;
    const char *begun;
    bool in_text, marks_spaces;
} texts;

static bool obeys(const texts *x, const char *text) {
    char whole[2 * ROOM], ban[SIZE * 4];
    snprintf(whole, sizeof whole, "%s%s", x->begun, text);
    for (int32_t i = 0; i < x->w->n_bans; i++) {
        snprintf(ban, sizeof ban, "%.*s", (int)x->w->bans[i].n_bytes, x->w->bans[i].data);
        if (strstr(whole, ban))
            return false;
    }
    const char *begin = text + strspn(text, " \t\n\v\f\r");
    for (int32_t i = 0; x->w->ban_refusals && dpi_refusal(i); i++)
        if (strncmp(begin, dpi_refusal(i), strlen(dpi_refusal(i))) == 0)
            return false;
    return !(x->marks_spaces && strstr(whole, "\xe2\x96\x81")) &&
           !(x->w->no_repeat > 0 && has_repeat(x->in_text ? whole : text, x->w->no_repeat));
}

static bool has_bit(const uint64_t *bits, int i) { return bits[i / 64] >> (i % 64) & 1; }

/* The tokens that may come, which must be those of the oracle; returns how many. *is_end: none was
 * left. */
static int check_allowed(dpi_shaped *t, const vocabulary *v, const texts *x, const char *text,
                         const uint64_t *grammar, int *choices, bool *is_end) {
    char next[ROOM + SIZE];
    int n = 0;
    assert_ok(dpi_shaped_reserve(t, ERR));
    const uint64_t *bits = dpi_shaped_allow(t, grammar, is_end);
    for (int i = 0; i < TOKENS; i++) {
        const bool has_text = v->text[i][0] != '\0';
        snprintf(next, sizeof next, "%s%s", text, v->text[i]);
        bool wanted = (!grammar || has_bit(grammar, i)) && (i == END_TOKEN || has_text) &&
                      (!has_text || obeys(x, next));
        if (*is_end) {
            assert_false(wanted);
            wanted = i == END_TOKEN;
        }
        if (has_bit(bits, i) != wanted)
            fail_msg("token '%s' after '%s' + '%s'", v->text[i], x->begun, text);
        if (wanted && has_text)
            choices[n++] = i;
    }
    return n;
}

/* A text of random tokens that may come, behind a random beginning. Returns its number of steps. */
static int check_text(const vocabulary *v, const dpi_wording *w, bool marks_spaces,
                      uint64_t *seed) {
    char begun[ROOM] = "", text[ROOM] = "";
    texts x = {w, begun, random_below(seed, 2), marks_spaces};
    dpi_shaping *made = NULL;
    dpi_shaped *begin = NULL;
    assert_ok(dpi_shaping_make(w, v->tokens, TOKENS, marks_spaces, &made, ERR));
    OWN(dpi_shaping) shaping = made;
    assert_ok(dpi_shaped_create(shaping, &begin, ERR));
    OWN(dpi_shaped) t = begin;
    for (int n = random_below(seed, 4); n > 0; n--) {
        const int token = random_below(seed, TOKENS);
        char longer[ROOM];
        snprintf(longer, sizeof longer, "%.500s%s", begun, v->text[token]);
        const texts with = {w, longer, x.in_text, marks_spaces};
        if (!obeys(&with, ""))
            continue;
        memcpy(begun, longer, sizeof begun);
        assert_ok(dpi_shaped_reserve(t, ERR));
        dpi_shaped_begin(t, token, x.in_text);
    }
    for (int step = 0; step < STEPS; step++) {
        int choices[TOKENS];
        uint64_t grammar[2];
        bool is_end;
        for (int i = 0; i < 2; i++)
            grammar[i] = random_u64(seed) | random_u64(seed);
        const int n = check_allowed(t, v, &x, text, random_below(seed, 3) ? NULL : grammar, choices,
                                    &is_end);
        if (n == 0)
            return step;
        const int token = choices[random_below(seed, n)];
        dpi_shaped_push(t, token);
        strncat(text, v->text[token], SIZE);
        assert_true(obeys(&x, text));
    }
    return STEPS;
}

static dpi_wording default_wording(void) {
    dpi_wording w;
    dpi_wording_init(&w);
    return w;
}

TEST(test_bans) {
    uint64_t seed = 11;
    int n_steps = 0;
    for (int k = 0; k < 400; k++) {
        vocabulary v;
        char bans[4][8];
        dpi_bytes at[4];
        const bool marks = k % 3 == 0;
        const char *bytes = marks ? "ab\xe2\x96\x81 " : "ab \n\xc3\xa9";
        make_random(&v, bytes, 1 + random_below(&seed, 4), &seed);
        dpi_wording w = default_wording();
        w.bans = at;
        w.n_bans = 1 + random_below(&seed, 4);
        for (int i = 0; i < w.n_bans; i++) {
            at[i] = (dpi_bytes){bans[i], (size_t)(2 + random_below(&seed, 6))};
            for (size_t j = 0; j < at[i].n_bytes; j++)
                bans[i][j] = "aab "[random_below(&seed, 4)];
        }
        n_steps += check_text(&v, &w, marks, &seed);
    }
    assert_true(n_steps > 3000);
}

TEST(test_no_repeat) {
    const dpi_bytes ban = {"ab a", 4};
    uint64_t seed = 12;
    int n_steps = 0;
    for (int k = 0; k < 300; k++) {
        vocabulary v;
        make_random(&v, k % 2 ? "ab  " : "a \n\xc3\xa9", 1 + random_below(&seed, 5), &seed);
        dpi_wording w = default_wording();
        w.no_repeat = 1 + random_below(&seed, 3);
        w.bans = &ban;
        w.n_bans = k % 5 == 0;
        n_steps += check_text(&v, &w, false, &seed);
    }
    assert_true(n_steps > 1500);
}

/* Tokens are pieces of refusals, and white space. */
TEST(test_refusals) {
    uint64_t seed = 13;
    int n_refusals = 0;
    while (dpi_refusal(n_refusals))
        n_refusals++;
    for (int k = 0; k < 60; k++) {
        vocabulary v;
        make_random(&v, " \n", 2, &seed);
        for (int i = 20; i < TOKENS; i++) {
            char text[64];
            const char *from = dpi_refusal(random_below(&seed, n_refusals));
            const int at = random_below(&seed, 3) ? 0 : random_below(&seed, (int)strlen(from));
            snprintf(text, sizeof text, "%s%s", random_below(&seed, 2) ? "" : " ", from + at);
            add_token(&v, i, text, (size_t)(1 + random_below(&seed, SIZE - 2)));
        }
        dpi_wording w = default_wording();
        w.ban_refusals = 1;
        w.no_repeat = k % 2 ? 2 : 0;
        for (int i = 0; i < 3; i++)
            check_text(&v, &w, false, &seed);
    }
}

/* A bias is there from the first token on, the penalty of a token once it has come, and once. */
TEST(test_shifts) {
    static const struct row {
        int push;
        float wanted[4];
    } rows[] = {{-1, {0, 5, -3, 0}}, {1, {0, 3, -3, 0}}, {1, {0, 3, -3, 0}}, {3, {0, 3, -3, -2}}};
    vocabulary v;
    uint64_t seed = 14;
    dpi_shaping *made = NULL;
    dpi_shaped *begin = NULL;
    bool is_end;
    make_random(&v, "ab", 2, &seed);
    dpi_wording w = default_wording();
    w.biases = (dpi_token_bias[]){{.token = 1, .bias = 2}, {.token = 2, .bias = -3},
                                  {.token = 1, .bias = 3}};
    w.n_biases = 3;
    w.repeat_penalty = 1.1331484530668263; /* e^(1 / 8), 2 of 16 */
    assert_ok(dpi_shaping_make(&w, v.tokens, TOKENS, false, &made, ERR));
    OWN(dpi_shaping) shaping = made;
    assert_ok(dpi_shaped_create(shaping, &begin, ERR));
    OWN(dpi_shaped) t = begin;
    assert_ok(dpi_shaped_reserve(t, ERR));
    dpi_shaped_begin(t, 2, true); /* what the prompt has is no token of the text */
    for (const struct row *r = rows; r < END(rows); r++) {
        float logits[TOKENS] = {0};
        assert_ok(dpi_shaped_reserve(t, ERR));
        assert_null(dpi_shaped_allow(t, NULL, &is_end));
        if (r->push >= 0)
            dpi_shaped_push(t, r->push);
        dpi_shaped_shift(t, logits);
        for (int i = 0; i < 4; i++)
            assert_float_equal(logits[i], r->wanted[i], 1e-6);
        for (int i = 4; i < TOKENS; i++)
            assert_true(logits[i] == 0);
    }
}

TEST(test_nothing_and_faults) {
    vocabulary v;
    uint64_t seed = 15;
    dpi_shaping *shaping = NULL;
    make_random(&v, "ab", 2, &seed);
    dpi_wording w = default_wording();
    assert_ok(dpi_shaping_make(&w, v.tokens, TOKENS, false, &shaping, ERR));
    assert_null(shaping);
    w.biases = &(dpi_token_bias){.token = TOKENS};
    w.n_biases = 1;
    assert_error(dpi_shaping_make(&w, v.tokens, TOKENS, false, &shaping, ERR), ARG, "bias");
    w.n_biases = 0;
    w.no_repeat = 2;
    v.tokens[END_TOKEN].is_end = false;
    assert_error(dpi_shaping_make(&w, v.tokens, TOKENS, false, &shaping, ERR), UNSUPPORTED,
                 "no token that ends a text");
    v.tokens[END_TOKEN].is_end = true;
    dpi_status status = DPI_STATUS_MEMORY;
    for (int64_t i = 1; status == DPI_STATUS_MEMORY; i++) {
        fail_allocation(i);
        status = dpi_shaping_make(&w, v.tokens, TOKENS, false, &shaping, ERR);
        fail_allocation(0);
    }
    assert_ok(status);
    status = DPI_STATUS_MEMORY;
    dpi_shaped *t = NULL;
    for (int64_t i = 1; status == DPI_STATUS_MEMORY; i++) {
        fail_allocation(i);
        status = t ? DPI_STATUS_OK : dpi_shaped_create(shaping, &t, ERR);
        if (status == DPI_STATUS_OK)
            status = dpi_shaped_reserve(t, ERR);
        fail_allocation(0);
    }
    assert_ok(status);
    dpi_shaped_free(t);
    dpi_shaping_free(shaping);
}
