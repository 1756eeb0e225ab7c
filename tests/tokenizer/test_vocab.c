/* test_vocab.c - what a vocabulary in a model file must not be (docs/spec.md section 6, items 11 to
 * 13), and what is read from one that is sound. */
#include "tests/support/support.h"

#include <math.h>

#include "tests/support/vocab_build.h"

#define KEY(name) "tokenizer.ggml." name

/* A vocabulary that each case spoils in one place. */
typedef struct parts {
    const char *model;
    const char *texts[8];
    float scores[8];
    int32_t types[8];
    size_t n_texts, n_scores, n_types; /* 0: the array is left out */
    uint32_t scores_type, types_type;
} parts;

static parts sound(void) {
    parts p = {.model = "llama",
               .texts = {"<unk>", "<s>", "</s>", "<0x0A>", MARK, "a", "b", "ab"},
               .scores = {0, 0, 0, 0, -1, -2, -3, -4},
               .types = {UNKNOWN, CONTROL, CONTROL, BYTE, NORMAL, NORMAL, NORMAL, NORMAL}};
    p.n_texts = p.n_scores = p.n_types = 8;
    p.scores_type = DPI_GGUF_F32, p.types_type = DPI_GGUF_I32;
    return p;
}

static void build_parts(gguf_build *b, const parts *p) {
    if (p->model)
        build_string(b, KEY("model"), p->model);
    if (p->n_texts)
        build_strings(b, KEY("tokens"), p->texts, p->n_texts);
    if (p->n_scores)
        build_array(b, KEY("scores"), p->scores_type, p->scores, p->n_scores, 4);
    if (p->n_types)
        build_array(b, KEY("token_type"), p->types_type, p->types, p->n_types, 4);
}

/* The sound parts with one change, refused; with more keys, refused or accepted. */
#define REFUSED_PARTS(status, part, has_offset, ...)                                               \
    do {                                                                                           \
        parts p = sound();                                                                         \
        __VA_ARGS__;                                                                               \
        REFUSED(status, part, has_offset, build_parts(&b, &p));                                    \
    } while (0)
#define REFUSED_KEY(part, has_offset, ...)                                                         \
    do {                                                                                           \
        const parts sound_ = sound();                                                              \
        REFUSED(FORMAT, part, has_offset, build_parts(&b, &sound_), __VA_ARGS__);                  \
    } while (0)
#define ACCEPTED(p, ...)                                                                           \
    do {                                                                                           \
        dpi_vocab *vocab_;                                                                         \
        LOAD(vocab_, build_parts(&b, p); __VA_ARGS__);                                             \
        dpi_vocab_free(vocab_);                                                                    \
    } while (0)

TEST(accepts_the_sound_one) {
    static const int32_t eog[10] = {[3] = 1}, control[10] = {[1] = 1, [2] = 1, [3] = 1};
    parts p = sound();
    dpi_vocab *vocab;
    LOAD(vocab, build_parts(&b, &p));
    assert_int_equal(dpi_vocab_size(vocab), 8);
    assert_int_equal(dpi_vocab_bos(vocab), 1);
    for (int32_t id = -1; id < 9; id++) {
        assert_int_equal(dpi_vocab_is_eog(vocab, id), eog[id + 1]);
        assert_int_equal(dpi_vocab_is_control(vocab, id), control[id + 1]);
    }
    dpi_vocab_free(vocab);
    dpi_vocab_free(NULL);
}

TEST(refuses_other_models_by_name) {
    static const char *const models[][2] = {
        {"gpt", "gpt"},
        {"bert", "bert"},
        {"t5", "t5"},
        {"no_vocab", "no_vocab"},
        {"lla\033[2Jma", "lla?[2Jma"}, /* nothing that a terminal would obey */
    };
    for (int i = 0; i < 5; i++)
        REFUSED_PARTS(UNSUPPORTED, models[i][1], true, p.model = models[i][0]);
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.model is missing", false, p.model = NULL);
    REFUSED(FORMAT, "tokenizer.ggml.model", true, build_u32(&b, KEY("model"), 1));
}

TEST(refuses_wrong_lengths) {
    REFUSED_PARTS(FORMAT, "scores has 7 items, must be 8", true, p.n_scores = 7);
    REFUSED_PARTS(FORMAT, "scores has 8 items, must be 7", true, p.n_texts = 7);
    REFUSED_PARTS(FORMAT, "token_type has 3 items, must be 8", true, p.n_types = 3);
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.scores is missing", false, p.n_scores = 0);
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.tokens is missing", false, p.n_texts = 0);
    REFUSED(FORMAT, "has 0 tokens, must be 1..262144", true,
            build_string(&b, KEY("model"), "llama"), build_strings(&b, KEY("tokens"), NULL, 0));
}

TEST(refuses_wrong_types) {
    static const char *const flags[] = {KEY("add_bos_token"), KEY("add_eos_token"),
                                        KEY("add_space_prefix")};
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.scores", true, p.scores_type = DPI_GGUF_I32);
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.scores", true, p.scores_type = DPI_GGUF_U32);
    REFUSED_PARTS(FORMAT, "tokenizer.ggml.token_type", true, p.types_type = DPI_GGUF_F32);
    parts p = sound();
    p.n_texts = 0;
    REFUSED(FORMAT, "tokenizer.ggml.tokens", true, build_parts(&b, &p),
            build_string(&b, KEY("tokens"), "abc"));
    REFUSED_KEY("tokenizer.chat_template", true, build_u32(&b, "tokenizer.chat_template", 1));
    for (int i = 0; i < 3; i++)
        REFUSED_KEY(flags[i], true, build_u8(&b, flags[i], 1));
    p = sound();
    REFUSED(UNSUPPORTED, "remove_extra_whitespaces is true", true, build_parts(&b, &p),
            build_bool(&b, KEY("remove_extra_whitespaces"), true));
}

/* An array of n empty texts. */
static void build_empty_tokens(gguf_build *b, size_t n) {
    build_string(b, KEY("model"), "llama");
    build_key(b, KEY("tokens"), DPI_GGUF_ARRAY);
    build_put_u32(b, DPI_GGUF_STRING);
    build_put_u64(b, n);
    for (size_t i = 0; i < n; i++)
        build_put_string(b, NULL, 0);
}

TEST(refuses_too_much) {
    char text[1026] = {0};
    memset(text, 'x', 1025);
    REFUSED_PARTS(FORMAT, "token 5 has 1025 bytes, at most 1024", true, p.texts[5] = text);
    parts p = sound();
    p.texts[5] = text + 1;
    ACCEPTED(&p, );
    REFUSED(FORMAT, "has 262145 tokens", true, build_empty_tokens(&b, (1 << 18) + 1));
}

TEST(refuses_bad_values) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const int32_t types[] = {-1, 7, 1 << 30};
    static const char *const bytes[] = {"<0x0a>", "<0xA>",  "<0x0A",  "<0x0A> ", "<0X0A>",
                                        "0x0A",   "<0x0G>", "<0x+1>", "",        "\n"};
    for (int i = 0; i < 3; i++)
        REFUSED_PARTS(FORMAT, "score of token 6 is not finite", true, p.scores[6] = bad[i]);
    for (int i = 0; i < 3; i++)
        REFUSED_PARTS(FORMAT, "type of token 6 is", true, p.types[6] = types[i]);
    for (int i = 0; i < 10; i++)
        REFUSED_PARTS(FORMAT, "token 3 is a byte token", true, p.texts[3] = bytes[i]);
    REFUSED_PARTS(FORMAT, "tokens 5 and 7 have the same text", false, p.texts[7] = "a");
    parts p = sound();
    p.texts[6] = p.texts[7] = ""; /* unused slots: no text, so no clash */
    ACCEPTED(&p, );
}

TEST(refuses_special_ids_out_of_range) {
    static const char *const keys[] = {KEY("bos_token_id"),     KEY("eos_token_id"),
                                       KEY("unknown_token_id"), KEY("eot_token_id"),
                                       KEY("eom_token_id"),     KEY("padding_token_id"),
                                       KEY("fim_pad_token_id")};
    parts few = sound();
    for (int i = 0; i < 7; i++) {
        size_t at;
        REFUSED_KEY(keys[i], true, at = build_u32(&b, keys[i], 8));
        assert_int_equal(ERR->offset, at);
        REFUSED_KEY(keys[i], true, build_u32(&b, keys[i], UINT32_MAX - 1));
        REFUSED_KEY(keys[i], true, build_i32(&b, keys[i], -2));
        REFUSED_KEY(keys[i], true, build_u64(&b, keys[i], UINT64_MAX));
        REFUSED_KEY(keys[i], true, build_f32(&b, keys[i], 1));
        ACCEPTED(&few, build_u32(&b, keys[i], 7));
    }
    /* The defaults are held to the same rule. */
    REFUSED_PARTS(FORMAT, "eos_token_id is 2 by default, but there are 2", false,
                  p.n_texts = p.n_scores = p.n_types = 2);
    REFUSED_PARTS(FORMAT, "bos_token_id is 1 by default, but there are 1", false,
                  p.n_texts = p.n_scores = p.n_types = 1);
    few.n_texts = few.n_scores = few.n_types = 1;
    ACCEPTED(&few, build_u32(&b, KEY("bos_token_id"), UINT32_MAX),
             build_i32(&b, KEY("eos_token_id"), -1));
}

TEST(knows_absent_special_tokens) {
    parts p = sound();
    dpi_vocab *vocab;
    size_t n = 99;
    LOAD(vocab, build_parts(&b, &p),
         build_u32(&b, KEY("padding_token_id"), UINT32_MAX), /* as in real files */
         build_u32(&b, KEY("bos_token_id"), UINT32_MAX));
    assert_int_equal(dpi_vocab_bos(vocab), -1);
    assert_ok(dpi_vocab_encode(vocab, "", 0, DPI_TOKENIZE_BOS, NULL, 0, &n, ERR));
    assert_int_equal(n, 0);
    dpi_vocab_free(vocab);
    REFUSED_KEY("add_bos_token is true, but there is no BOS", true,
                build_u32(&b, KEY("bos_token_id"), UINT32_MAX),
                build_bool(&b, KEY("add_bos_token"), true));
    REFUSED_KEY("1 of 256 byte tokens and no unknown token", false,
                build_i32(&b, KEY("unknown_token_id"), -1));
}

/* Every way in which a token becomes the end of a text. */
TEST(collects_the_ends_of_text) {
    static const struct {
        piece piece;
        int32_t is_eog;
    } extra[] = {
        {{"<|eot_id|>", 0, CONTROL}, 1},
        {{"<|eom_id|>", 0, USER}, 1},
        {{"<|im_end|>", 0, NORMAL}, 1},
        {{"<|end_of_text|>", 0, CONTROL}, 1},
        {{"<|endoftext|>", 0, CONTROL}, 1},
        {{"<|im_start|>", 0, CONTROL}, 0}, /* begins a turn */
        {{"stop", 0, NORMAL}, 1},          /* 9: by eos_token_id */
        {{"turn", 0, NORMAL}, 1},          /* 10: by eot_token_id */
        {{"call", 0, NORMAL}, 1},          /* 11: by eom_token_id */
        {{"pad", 0, NORMAL}, 0},           /* 12 */
    };
    static pieces s;
    dpi_vocab *vocab;
    begin_pieces(&s, false);
    for (int i = 0; i < 10; i++)
        s.p[s.n++] = extra[i].piece;
    LOAD(vocab, build_pieces(&b, &s), build_u32(&b, KEY("eos_token_id"), 9),
         build_u32(&b, KEY("eot_token_id"), 10), build_u32(&b, KEY("eom_token_id"), 11),
         build_u32(&b, KEY("padding_token_id"), 12));
    for (int32_t id = 0; id < s.n; id++) /* </s> ends a text, too */
        assert_int_equal(dpi_vocab_is_eog(vocab, id), id < 3 ? id == 2 : extra[id - 3].is_eog);
    assert_int_equal(dpi_vocab_is_control(vocab, 9), 1);
    assert_int_equal(dpi_vocab_is_control(vocab, 12), 0);
    dpi_vocab_free(vocab);
    /* A line feed can end a text and is still needed to write one. */
    begin_pieces(&s, true);
    LOAD(vocab, build_pieces(&b, &s), build_u32(&b, KEY("eos_token_id"), FIRST_BYTE + '\n'));
    assert_int_equal(dpi_vocab_is_eog(vocab, FIRST_BYTE + '\n'), 1);
    assert_int_equal(dpi_vocab_is_control(vocab, FIRST_BYTE + '\n'), 0);
    check_round_trip(vocab, "a\nb", 3);
    dpi_vocab_free(vocab);
    /* "</s>" as an ordinary word of another vocabulary is none. */
    s.p[2].type = NORMAL;
    LOAD(vocab, build_pieces(&b, &s), build_u32(&b, KEY("eos_token_id"), 1));
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 0);
    dpi_vocab_free(vocab);
}

/* Old files have no token types: bytes are told by their text, special tokens by their ids. */
TEST(reads_files_without_types) {
    static pieces s;
    const char *texts[260];
    float scores[260] = {0};
    dpi_vocab *vocab;
    begin_pieces(&s, true);
    add(&s, MARK, 0, NORMAL); /* 259 */
    for (int i = 0; i < 260; i++)
        texts[i] = s.p[i].text;
    LOAD(vocab, build_string(&b, KEY("model"), "llama"),
         build_strings(&b, KEY("tokens"), texts, 260),
         build_array(&b, KEY("scores"), DPI_GGUF_F32, scores, 260, 4));
    assert_ids_bos(vocab, "A\n", 1, 259, FIRST_BYTE + 'A', FIRST_BYTE + '\n');
    for (int32_t id = 0; id < 260; id++)
        assert_int_equal(dpi_vocab_is_control(vocab, id), id < 3);
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 1);
    dpi_vocab_free(vocab);
}
