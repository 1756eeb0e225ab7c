/* Texts by the rules of a wording: what is shown and where a text ends are those of a second
 * implementation that sees the whole text at once, however it is cut into tokens; generations go by
 * them; settings are refused by name. */
#include "dpinfer/drawing.h"
#include "dpinfer/memory.h"
#include "pipeline/word_rules.h"
#include "tests/support/own.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

OWNED(dpi_word_rules, dpi_word_rules_free)
OWNED(dpi_worded, dpi_worded_free)

enum { TEXT_BYTES = 1 << 15, N_PIECES = 40, N_STOPS = 3 };

static dpi_model *vocabulary, *tiny;
static void *image;
static int32_t n_vocab;

SETUP {
    DEFAULTS(dpi_model_options, o);
    DEFAULTS(dpi_model_info, info);
    const tiny_spec spec = tiny_default();
    o.vocab_only = 1;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, &o, &vocabulary, ERR));
    assert_ok(dpi_model_info_get(vocabulary, &info, ERR));
    n_vocab = info.n_vocab;
    tiny = tiny_open(&spec, 3, &image);
}

TEARDOWN {
    dpi_model_close(vocabulary);
    dpi_model_close(tiny);
    free(image);
}

static dpi_word_rules *rules_of(const dpi_wording *w, const dpi_model *model) {
    dpi_word_rules *rules = NULL;
    assert_ok(dpi_word_rules_create(w, model, &rules, ERR));
    return rules;
}

/* ---- The second implementation --------------------------------------------------------------- */

/* Bytes of the character that ends before `at`. */
static size_t last_bytes(const char *text, size_t at) {
    size_t n = 1;
    while (n < at && ((unsigned char)text[at - n] & 0xc0) == 0x80)
        n++;
    return n;
}

static bool is_space(const char *text, size_t n) {
    static const char *const spaces[] = {"\xc2\xa0", "\xe3\x80\x80"};
    if (n == 1)
        return strchr(" \t\n\v\f\r\x1c\x1d\x1e\x1f", *text) && *text;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (strlen(spaces[i]) == n && memcmp(text, spaces[i], n) == 0)
            return true;
    return false;
}

/* From the end to the beginning. */
static int32_t words_of(const char *text, size_t n) {
    int32_t words = 0;
    bool after_space = true;
    for (size_t step; n > 0; n -= step) {
        step = last_bytes(text, n);
        const bool space = is_space(text + n - step, step);
        words += !space && after_space;
        after_space = space;
    }
    return words;
}

/* Where the text ends, the bytes it must have come to for that in *seen; SIZE_MAX: nowhere. */
static size_t end_of(const dpi_wording *w, const char *text, size_t n, size_t *seen) {
    for (size_t at = 1; at <= n; at++) {
        size_t end = SIZE_MAX;
        for (int32_t i = 0; i < w->n_stops; i++) {
            const size_t stop = w->stops[i].n_bytes;
            if (stop <= at && memcmp(text + at - stop, w->stops[i].data, stop) == 0 &&
                words_of(text, at - stop) >= w->min_words && at - stop < end)
                end = at - stop;
        }
        const size_t step = last_bytes(text, at), before = at - step;
        if (end == SIZE_MAX && w->max_words > 0 && is_space(text + before, step) && before > 0 &&
            !is_space(text + before - last_bytes(text, before), last_bytes(text, before)) &&
            words_of(text, before) == w->max_words)
            end = before;
        *seen = at;
        if (end != SIZE_MAX)
            return end;
    }
    return SIZE_MAX;
}

/* What is shown of a text behind a kept answer, into out. */
static size_t shown_of(const dpi_wording *w, const char *answer, const char *text, size_t n,
                       char *out) {
    size_t seen, begin = 0, n_out = strlen(answer), end = end_of(w, text, n, &seen);
    memcpy(out, answer, n_out);
    memcpy(out + n_out, text, end < n ? end : n);
    n_out += end < n ? end : n;
    if (w->keep_space)
        return n_out;
    while (n_out > 0 && is_space(out + n_out - last_bytes(out, n_out), last_bytes(out, n_out)))
        n_out -= last_bytes(out, n_out);
    for (size_t k = 1; begin + k <= n_out && k < 4;)
        is_space(out + begin, k) ? (void)(begin += k, k = 1) : (void)k++;
    memmove(out, out + begin, n_out - begin);
    return n_out - begin;
}

/* ---- Any cut into tokens --------------------------------------------------------------------- */

/* Tokens of few characters, so that stops come often: any whose text has no others, and bytes of
 * longer characters, also such as never become one. */
static int32_t collect(int32_t *tokens) {
    int32_t n = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        dpi_decoder *decoder;
        const char *text;
        size_t n_bytes, first;
        assert_ok(dpi_decoder_create(vocabulary, &decoder, ERR));
        const int32_t before = n_vocab - 1; /* the space that a text begins with is dropped */
        assert_ok(dpi_decoder_push(decoder, before, &text, &first, ERR));
        assert_ok(dpi_decoder_push(decoder, id, &text, &n_bytes, ERR));
        const bool fits = n_bytes > 0 && n_bytes <= 4 && strspn(text, "ein\n. ") >= n_bytes;
        if (fits && n < 200)
            tokens[n++] = id;
        dpi_decoder_free(decoder);
    }
    return n;
}

/* Token ids of the bytes, which the vocabulary has one after the other. */
static int32_t byte_token(uint8_t byte) {
    int32_t ids[16];
    size_t n;
    assert_ok(dpi_tokenize(vocabulary, "\x01", 1, 0, ids, 16, &n, ERR));
    return ids[n - 1] - 1 + byte;
}

static void append(char *text, size_t *n, const char *piece, size_t n_bytes) {
    assert_true(*n + n_bytes <= TEXT_BYTES);
    if (n_bytes > 0)
        memcpy(text + *n, piece, n_bytes);
    *n += n_bytes;
}

/* The text of tokens as a decoder has it; at[i]: its bytes after token i. */
static size_t decode(const int32_t *tokens, int32_t n, char *text, size_t *at) {
    dpi_decoder *decoder;
    const char *piece;
    size_t n_text = 0, n_bytes;
    assert_ok(dpi_decoder_create(vocabulary, &decoder, ERR));
    for (int32_t i = 0; i < n; i++) {
        assert_ok(dpi_decoder_push(decoder, tokens[i], &piece, &n_bytes, ERR));
        append(text, &n_text, piece, n_bytes);
        at[i] = n_text;
    }
    dpi_decoder_finish(decoder, &piece, &n_bytes);
    append(text, &n_text, piece, n_bytes);
    dpi_decoder_free(decoder);
    return n_text;
}

/* Whole characters of the text, as stops. */
static void choose_stops(const char *text, size_t n, dpi_bytes *stops, uint64_t *seed) {
    for (int i = 0; i < N_STOPS; i++) {
        size_t end = 1 + (size_t)random_below(seed, (int32_t)n), begin = end;
        while (end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
            end++;
        begin = end;
        for (int k = random_below(seed, 4); k >= 0 && begin > 0; k--)
            begin -= last_bytes(text, begin);
        stops[i] = (dpi_bytes){text + begin, end - begin};
    }
}

/* The tokens one by one: what is shown, in pieces or at the end alone, and where they end and why.
 */
static size_t show(const dpi_word_rules *rules, const int32_t *tokens, int32_t n, bool pieces,
                   char *out, int32_t *n_pushed, int32_t *over) {
    OWN(dpi_worded) t = NULL;
    const char *shown;
    size_t n_bytes, n_out = 0;
    assert_ok(dpi_worded_create(rules, NULL, 0, &t, ERR));
    for (*n_pushed = 0; *n_pushed < n && dpi_worded_end_of(t) == DPI_END_NONE; (*n_pushed)++) {
        assert_ok(dpi_worded_push(t, tokens[*n_pushed], ERR));
        if (pieces) {
            dpi_worded_show(t, &shown, &n_bytes);
            append(out, &n_out, shown, n_bytes);
        }
    }
    assert_ok(dpi_worded_end(t, &shown, &n_bytes, ERR));
    *over = dpi_worded_end_of(t);
    append(out, &n_out, shown, n_bytes);
    return n_out;
}

TEST(test_any_cut) {
    static char text[TEXT_BYTES], wanted[TEXT_BYTES], out[TEXT_BYTES];
    static const uint8_t bytes[] = {0xc3, 0xa9, 0xc2, 0xa0, 0xe3, 0x80, 0x80, 0x80, '\t', ' '};
    int32_t pool[220], tokens[N_PIECES], n_over = 0, n_held = 0, n_words = 0;
    uint64_t seed = 4;
    const int32_t n_pool = collect(pool);
    assert_true(n_pool > 20);
    for (int round = 0; round < 4000; round++) {
        size_t at[N_PIECES], seen = 0, stopped = 0;
        dpi_bytes stops[N_STOPS];
        for (int32_t i = 0; i < N_PIECES; i++) {
            const int32_t pick = random_below(&seed, 16);
            tokens[i] = pick < 10 ? byte_token(bytes[pick]) : pool[random_below(&seed, n_pool)];
        }
        const size_t n = decode(tokens, N_PIECES, text, at);
        choose_stops(text, n, stops, &seed);
        const int32_t least = random_below(&seed, 2) ? random_below(&seed, 12) : 0;
        const int32_t most = random_below(&seed, 2) ? least + 1 + random_below(&seed, 8) : 0;
        dpi_wording w = {.struct_size = sizeof w, .repeat_penalty = 1, .stops = stops,
                         .n_stops = random_below(&seed, N_STOPS + 1), .min_words = least,
                         .max_words = most, .keep_space = random_below(&seed, 3) == 0};
        OWN(dpi_word_rules) rules = rules_of(&w, vocabulary);
        const size_t n_wanted = shown_of(&w, "", text, n, wanted);
        const size_t end = end_of(&w, text, n, &seen);
        int32_t n_pushed, over, n_tokens = 0;
        w.max_words = 0;
        const bool stops_there = end_of(&w, text, n, &stopped) != SIZE_MAX && stopped == seen;
        const int32_t why = end == SIZE_MAX ? DPI_END_NONE
                            : stops_there   ? DPI_END_STOP
                                            : DPI_END_WORDS;
        while (n_tokens < N_PIECES && (n_tokens == 0 || end == SIZE_MAX || at[n_tokens - 1] < seen))
            n_tokens++;
        for (int pieces = 0; pieces < 2; pieces++) {
            const size_t n_out = show(rules, tokens, N_PIECES, pieces, out, &n_pushed, &over);
            assert_int_equal(over, why);
            assert_int_equal(n_out, n_wanted);
            assert_memory_equal(out, wanted, n_wanted);
            assert_int_equal(n_pushed, n_tokens);
        }
        n_over += end != SIZE_MAX;
        n_words += why == DPI_END_WORDS;
        n_held += end != SIZE_MAX && n_tokens > 1 && at[n_tokens - 2] > end;
    }
    assert_in_range(n_over, 1000, 3900);
    assert_in_range(n_words, 100, n_over - 100);
    assert_true(n_held > 100); /* the stop has begun in an earlier token */
}

/* ---- Prompts --------------------------------------------------------------------------------- */

enum { N_ROOM = 200 };

static dpi_prompts *prompts_of(int32_t chat, const char *answer, dpi_prompts_info *info) {
    DEFAULTS(dpi_prompt_options, o);
    dpi_prompts *prompts = NULL;
    o.chat = chat;
    o.public_prompt = (dpi_bytes){"Write about {label}.", 20};
    o.private_prompt = (dpi_bytes){"As {reference} on {label}.", 26}; /* no earlier answer */
    o.label = (dpi_bytes){"rain", 4};
    o.answer = (dpi_bytes){answer, answer ? strlen(answer) : 0};
    assert_ok(dpi_prompts_create(vocabulary, &o, N_ROOM, &prompts, ERR));
    dpi_prompts_info_init(info);
    assert_ok(dpi_prompts_info_get(prompts, info, ERR));
    return prompts;
}

/* Private tokens of a record, with those of the answer behind them. */
static void check_record(const dpi_prompts *with, const dpi_prompts *without, const char *record,
                         const int32_t *answer, size_t n_answer) {
    int32_t *a, *b;
    size_t n_a, n_b;
    assert_ok(dpi_prompts_encode(with, record, strlen(record), &a, &n_a, ERR));
    assert_ok(dpi_prompts_encode(without, record, strlen(record), &b, &n_b, ERR));
    assert_true(n_a <= N_ROOM);
    assert_memory_equal(a + n_a - n_answer, answer, n_answer * sizeof *a);
    if (n_b + n_answer <= N_ROOM) { /* else more of the record is cut */
        assert_int_equal(n_a, n_b + n_answer);
        assert_memory_equal(a, b, n_b * sizeof *a);
    }
    dpi_private_free(a), dpi_private_free(b);
}

/* The answer stands at the end of every prompt, in the same tokens, and counts as a part of it. */
TEST(test_answer_in_prompts) {
    static char record[4000];
    memset(record, 'a', sizeof record - 1);
    for (int32_t chat = DPI_CHAT_AUTO; chat <= DPI_CHAT_NONE; chat++) {
        dpi_prompts_info a, b;
        int32_t answer[40];
        size_t n;
        dpi_prompts *with = prompts_of(chat, "On {label}: \"", &a);
        dpi_prompts *without = prompts_of(chat, NULL, &b);
        assert_ok(dpi_tokenize(vocabulary, "On rain: \"", 10, 0, answer, 40, &n, ERR));
        assert_true(a.n_answer == (int32_t)n && b.n_answer == 0);
        assert_true(a.n_public == b.n_public + a.n_answer && a.n_frame == b.n_frame + a.n_answer);
        assert_memory_equal(dpi_prompts_public(with), dpi_prompts_public(without),
                            (size_t)b.n_public * sizeof *answer);
        assert_memory_equal(dpi_prompts_public(with) + b.n_public, answer, n * sizeof *answer);
        check_record(with, without, "A record.", answer, n);
        check_record(with, without, record, answer, n);
        dpi_prompts_free(with), dpi_prompts_free(without);
    }
}

/* ---- Texts of a model ------------------------------------------------------------------------ */

enum { N_TEXTS = 12, N_TOKENS = 60 };

typedef struct drawn {
    char text[N_TEXTS][TEXT_BYTES / N_TEXTS];
    size_t n[N_TEXTS];
    int32_t ended[N_TEXTS], n_drawn[N_TEXTS];
} drawn;

static void draw(const dpi_word_rules *rules, const char *answer, drawn *d) {
    DEFAULTS(dpi_prompt_options, p);
    DEFAULTS(dpi_drawing_options, o);
    dpi_prompts *prompts;
    dpi_drawing *drawing;
    dpi_drawn_text t;
    p.public_prompt = (dpi_bytes){"ab", 2};
    p.answer = (dpi_bytes){answer, answer ? strlen(answer) : 0};
    assert_ok(dpi_prompts_create(tiny, &p, 64, &prompts, ERR));
    o.model = tiny, o.prompts = &prompts, o.n_prompts = 1, o.rules = rules;
    o.n_texts = N_TEXTS, o.n_parallel = 4, o.method.n_tokens = N_TOKENS, o.method.tau = 5;
    o.seeded = 1, o.seed = 3;
    assert_ok(dpi_drawing_open(&o, &drawing, ERR));
    for (int32_t i = 0; i < N_TEXTS; i++) {
        assert_ok(dpi_drawing_next(drawing, &t, ERR));
        d->n[i] = t.n_bytes, d->ended[i] = t.ended, d->n_drawn[i] = t.n_drawn;
        assert_true(t.n_bytes < sizeof d->text[i]);
        memcpy(d->text[i], t.data, t.n_bytes);
    }
    dpi_drawing_free(drawing);
    dpi_prompts_free(prompts);
}

/* What ends a text and what is shown of it change nothing before the end. An answer changes the
 * prompt, and stands before the text where it is kept. */
TEST(test_drawn) {
    static drawn all, some;
    static char wanted[TEXT_BYTES];
    static const char *const answers[] = {NULL, "a b"};
    const dpi_bytes stops[] = {{"w30", 3}, {"9", 1}};
    for (int a = 0; a < 2; a++) {
        dpi_wording w, raw;
        dpi_wording_init(&raw);
        raw.keep_space = 1;
        w = raw;
        w.keep_space = 0, w.stops = stops, w.n_stops = 2, w.max_words = 2;
        if (a == 1)
            w.answer = (dpi_bytes){answers[a], 3}, w.keep_answer = 1;
        OWN(dpi_word_rules) plain = rules_of(&raw, tiny);
        OWN(dpi_word_rules) rules = rules_of(&w, tiny);
        int32_t n_short = 0;
        draw(plain, answers[a], &all);
        draw(rules, answers[a], &some);
        for (int32_t i = 0; i < N_TEXTS; i++) {
            const size_t n =
                shown_of(&w, a == 1 ? answers[a] : "", all.text[i], all.n[i], wanted);
            assert_int_equal(some.n[i], n);
            assert_memory_equal(some.text[i], wanted, n);
            n_short += some.ended[i] && some.n_drawn[i] < all.n_drawn[i];
        }
        assert_true(n_short > 2);
    }
}

/* No text that the model ends has fewer words, and without the rule some have. */
TEST(test_min_words) {
    static drawn all, some;
    dpi_wording w;
    dpi_wording_init(&w);
    OWN(dpi_word_rules) plain = rules_of(NULL, tiny);
    w.min_words = 2;
    OWN(dpi_word_rules) rules = rules_of(&w, tiny);
    int32_t n_few = 0, n_ended = 0;
    draw(plain, NULL, &all);
    draw(rules, NULL, &some);
    for (int32_t i = 0; i < N_TEXTS; i++) {
        n_few += all.ended[i] && words_of(all.text[i], all.n[i]) < 2;
        n_ended += some.ended[i];
        assert_true(!some.ended[i] || words_of(some.text[i], some.n[i]) >= 2);
    }
    assert_true(n_few > 0);
    assert_true(n_ended > 0);
}

/* ---- Settings -------------------------------------------------------------------------------- */

TEST(test_refused) {
    static const char many[DPI_WORDING_TEXT_MAX + 1] = "x";
    static const dpi_bytes empty = {"", 0}, bad = {"\xff", 1}, nul = {"\0", 1},
                           large = {many, sizeof many};
    static const dpi_token_bias bias = {.token = 1, .bias = 101};
    dpi_wording w;
#define REFUSES(change, part)                                                                      \
    dpi_wording_init(&w), change, assert_error(dpi_wording_check(&w, ERR), ARG, part)
    REFUSES((w.stops = &empty, w.n_stops = 1), "stops: found a text of 0 bytes, allowed 1..256");
    REFUSES((w.stops = &large, w.n_stops = 1), "stops: found a text of 257 bytes");
    REFUSES((w.stops = &bad, w.n_stops = 1), "stops: found bytes that are no UTF-8");
    REFUSES((w.bans = &nul, w.n_bans = 1), "bans: found bytes");
    REFUSES(w.n_stops = 17, "stops is 17, must be 0..16");
    REFUSES(w.keep_answer = 1, "keep_answer is 1");
    REFUSES((w.min_words = 3, w.max_words = 2), "max_words is 2, must be 3..");
    REFUSES(w.no_repeat = 1, "no_repeat is 1");
    REFUSES(w.repeat_penalty = 2.1, "repeat_penalty: found 2.1, allowed 1..2");
    REFUSES((w.biases = &bias, w.n_biases = 1), "biases: found 101, allowed -100..100");
    REFUSES(w.answer = empty, "answer: found a text of 0 bytes, allowed 1..4096");
    REFUSES(w.struct_size = 1, "dpi_wording.struct_size is 1");
    dpi_wording_init(&w);
    assert_true(dpi_wording_is_default(&w));
}
