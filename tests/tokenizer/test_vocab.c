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
    size_t n_texts, n_scores, n_types;
    uint32_t scores_type, types_type;
} parts;

static parts sound(void) {
    return (parts){
        .model = "llama",
        .texts = {"<unk>", "<s>", "</s>", "<0x0A>", MARK, "a", "b", "ab"},
        .scores = {0, 0, 0, 0, -1, -2, -3, -4},
        .types = {UNKNOWN, CONTROL, CONTROL, BYTE, NORMAL, NORMAL, NORMAL, NORMAL},
        .n_texts = 8, .n_scores = 8, .n_types = 8,
        .scores_type = DPI_GGUF_F32, .types_type = DPI_GGUF_I32,
    };
}

/* Counts of 0 leave the array out. */
static void build_parts(gguf_build *b, const parts *p) {
    build_begin(b);
    if (p->model)
        build_string(b, KEY("model"), p->model);
    if (p->n_texts)
        build_strings(b, KEY("tokens"), p->texts, p->n_texts);
    if (p->n_scores)
        build_array(b, KEY("scores"), p->scores_type, p->scores, p->n_scores, 4);
    if (p->n_types)
        build_array(b, KEY("token_type"), p->types_type, p->types, p->n_types, 4);
}

static void refused_parts(const parts *p, dpi_status wanted, const char *part, bool has_offset) {
    gguf_build b;
    build_parts(&b, p);
    refused(&b, wanted, part, has_offset);
}

static dpi_vocab *accepted(gguf_build *b) {
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    assert_ok(load_image(b, &vocab, &err), &err);
    return vocab;
}

static void accepts_the_sound_one(void **state) {
    (void)state;
    gguf_build b;
    parts p = sound();
    build_parts(&b, &p);
    dpi_vocab *vocab = accepted(&b);
    assert_int_equal(dpi_vocab_size(vocab), 8);
    assert_int_equal(dpi_vocab_bos(vocab), 1);
    static const int32_t eog[10] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    static const int32_t control[10] = {0, 1, 1, 1, 0, 0, 0, 0, 0, 0};
    for (int32_t id = -1; id < 9; id++) {
        assert_int_equal(dpi_vocab_is_eog(vocab, id), eog[id + 1]);
        assert_int_equal(dpi_vocab_is_control(vocab, id), control[id + 1]);
    }
    dpi_vocab_free(vocab);
    dpi_vocab_free(NULL);
}

static void refuses_other_models_by_name(void **state) {
    (void)state;
    static const char *const models[] = {"gpt", "bert", "t5", "no_vocab"};
    for (int i = 0; i < 4; i++) {
        parts p = sound();
        p.model = models[i];
        refused_parts(&p, DPI_STATUS_UNSUPPORTED, models[i], true);
    }
    parts p = sound();
    p.model = "lla\033[2Jma"; /* nothing that a terminal would obey */
    refused_parts(&p, DPI_STATUS_UNSUPPORTED, "lla?[2Jma", true);
    p.model = NULL;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.model is missing", false);
    gguf_build b;
    build_begin(&b);
    build_u32(&b, KEY("model"), 1);
    refused(&b, DPI_STATUS_FORMAT, "tokenizer.ggml.model", true);
}

static void refuses_wrong_lengths(void **state) {
    (void)state;
    parts p = sound();
    p.n_scores = 7;
    refused_parts(&p, DPI_STATUS_FORMAT, "scores has 7 items, must be 8", true);
    p = sound();
    p.n_texts = 7;
    refused_parts(&p, DPI_STATUS_FORMAT, "scores has 8 items, must be 7", true);
    p = sound();
    p.n_types = 3;
    refused_parts(&p, DPI_STATUS_FORMAT, "token_type has 3 items, must be 8", true);
    p = sound();
    p.n_scores = 0;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.scores is missing", false);
    p = sound();
    p.n_texts = 0;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.tokens is missing", false);
    gguf_build b;
    build_begin(&b);
    build_string(&b, KEY("model"), "llama");
    build_strings(&b, KEY("tokens"), NULL, 0);
    refused(&b, DPI_STATUS_FORMAT, "has 0 tokens, must be 1..262144", true);
}

static void refuses_wrong_types(void **state) {
    (void)state;
    parts p = sound();
    p.scores_type = DPI_GGUF_I32;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.scores", true);
    p.scores_type = DPI_GGUF_U32;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.scores", true);
    p = sound();
    p.types_type = DPI_GGUF_F32;
    refused_parts(&p, DPI_STATUS_FORMAT, "tokenizer.ggml.token_type", true);
    p = sound();
    p.n_texts = 0;
    gguf_build b;
    build_parts(&b, &p);
    build_string(&b, KEY("tokens"), "abc");
    refused(&b, DPI_STATUS_FORMAT, "tokenizer.ggml.tokens", true);
    p = sound();
    build_parts(&b, &p);
    build_u32(&b, "tokenizer.chat_template", 1);
    refused(&b, DPI_STATUS_FORMAT, "tokenizer.chat_template", true);
    static const char *const flags[] = {KEY("add_bos_token"), KEY("add_eos_token"),
                                        KEY("add_space_prefix")};
    for (int i = 0; i < 3; i++) {
        build_parts(&b, &p);
        build_u8(&b, flags[i], 1);
        refused(&b, DPI_STATUS_FORMAT, flags[i], true);
    }
}

static void refuses_too_much(void **state) {
    (void)state;
    char text[1026];
    memset(text, 'x', sizeof text);
    text[1025] = '\0';
    parts p = sound();
    p.texts[5] = text;
    refused_parts(&p, DPI_STATUS_FORMAT, "token 5 has 1025 bytes, at most 1024", true);
    text[1024] = '\0';
    gguf_build b;
    build_parts(&b, &p);
    dpi_vocab_free(accepted(&b));

    size_t n = (1 << 18) + 1;
    build_begin(&b);
    build_string(&b, KEY("model"), "llama");
    build_key(&b, KEY("tokens"), DPI_GGUF_ARRAY);
    build_put_u32(&b, DPI_GGUF_STRING);
    build_put_u64(&b, n);
    for (size_t i = 0; i < n; i++)
        build_put_string(&b, NULL, 0);
    refused(&b, DPI_STATUS_FORMAT, "has 262145 tokens", true);
}

static void refuses_bad_values(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        parts p = sound();
        p.scores[6] = bad[i];
        refused_parts(&p, DPI_STATUS_FORMAT, "score of token 6 is not finite", true);
    }
    static const int32_t types[] = {-1, 7, 1 << 30};
    for (int i = 0; i < 3; i++) {
        parts p = sound();
        p.types[6] = types[i];
        refused_parts(&p, DPI_STATUS_FORMAT, "type of token 6 is", true);
    }
    static const char *const bytes[] = {"<0x0a>", "<0xA>", "<0x0A", "<0x0A> ", "<0X0A>", "0x0A",
                                        "<0x0G>", "<0x+1>", "", "\n"};
    for (int i = 0; i < 10; i++) {
        parts p = sound();
        p.texts[3] = bytes[i];
        refused_parts(&p, DPI_STATUS_FORMAT, "token 3 is a byte token", true);
    }
    parts p = sound();
    p.texts[7] = "a";
    refused_parts(&p, DPI_STATUS_FORMAT, "tokens 5 and 7 have the same text", false);
    p = sound();
    p.texts[6] = p.texts[7] = ""; /* unused slots: no text, so no clash */
    gguf_build b;
    build_parts(&b, &p);
    dpi_vocab_free(accepted(&b));
}

static void refuses_special_ids_out_of_range(void **state) {
    (void)state;
    static const char *const keys[] = {KEY("bos_token_id"), KEY("eos_token_id"),
                                       KEY("unknown_token_id"), KEY("eot_token_id"),
                                       KEY("eom_token_id"), KEY("padding_token_id")};
    parts p = sound();
    for (int i = 0; i < 6; i++) {
        gguf_build b;
        build_parts(&b, &p);
        size_t at = build_u32(&b, keys[i], 8);
        dpi_vocab *vocab = NULL;
        dpi_error err = {0};
        assert_error(load_image(&b, &vocab, &err), DPI_STATUS_FORMAT, &err, keys[i]);
        assert_int_equal(err.offset, at);
        build_parts(&b, &p);
        build_u32(&b, keys[i], UINT32_MAX - 1);
        refused(&b, DPI_STATUS_FORMAT, keys[i], true);
        build_parts(&b, &p);
        build_i32(&b, keys[i], -2);
        refused(&b, DPI_STATUS_FORMAT, keys[i], true);
        build_parts(&b, &p);
        build_u64(&b, keys[i], UINT64_MAX);
        refused(&b, DPI_STATUS_FORMAT, keys[i], true);
        build_parts(&b, &p);
        build_f32(&b, keys[i], 1);
        refused(&b, DPI_STATUS_FORMAT, keys[i], true);
        build_parts(&b, &p);
        build_u32(&b, keys[i], 7);
        dpi_vocab_free(accepted(&b));
    }
    /* The defaults are held to the same rule. */
    p.n_texts = p.n_scores = p.n_types = 2;
    refused_parts(&p, DPI_STATUS_FORMAT, "eos_token_id is 2 by default, but there are 2", false);
    p.n_texts = p.n_scores = p.n_types = 1;
    refused_parts(&p, DPI_STATUS_FORMAT, "bos_token_id is 1 by default, but there are 1", false);
    gguf_build b;
    build_parts(&b, &p);
    build_u32(&b, KEY("bos_token_id"), UINT32_MAX);
    build_i32(&b, KEY("eos_token_id"), -1);
    dpi_vocab_free(accepted(&b));
}

static void knows_absent_special_tokens(void **state) {
    (void)state;
    parts p = sound();
    gguf_build b;
    dpi_error err = {0};
    build_parts(&b, &p);
    build_u32(&b, KEY("padding_token_id"), UINT32_MAX); /* as in real files */
    build_u32(&b, KEY("bos_token_id"), UINT32_MAX);
    dpi_vocab *vocab = accepted(&b);
    assert_int_equal(dpi_vocab_bos(vocab), -1);
    int32_t ids[4];
    size_t n;
    assert_ok(dpi_vocab_encode(vocab, "", 0, DPI_TOKENIZE_BOS, ids, 4, &n, &err), &err);
    assert_int_equal(n, 0);
    dpi_vocab_free(vocab);

    build_parts(&b, &p);
    build_u32(&b, KEY("bos_token_id"), UINT32_MAX);
    build_bool(&b, KEY("add_bos_token"), true);
    refused(&b, DPI_STATUS_FORMAT, "add_bos_token is true, but there is no BOS", true);

    build_parts(&b, &p);
    build_i32(&b, KEY("unknown_token_id"), -1);
    refused(&b, DPI_STATUS_FORMAT, "1 of 256 byte tokens and no unknown token", false);
}

/* Every way in which a token becomes the end of a text. */
static void collects_the_ends_of_text(void **state) {
    (void)state;
    static pieces s;
    gguf_build b;
    begin_pieces(&s, false);
    add(&s, "<|eot_id|>", 0, CONTROL);      /* 3 */
    add(&s, "<|eom_id|>", 0, USER);         /* 4 */
    add(&s, "<|im_end|>", 0, NORMAL);       /* 5 */
    add(&s, "<|end_of_text|>", 0, CONTROL); /* 6 */
    add(&s, "<|endoftext|>", 0, CONTROL);   /* 7 */
    add(&s, "<|im_start|>", 0, CONTROL);    /* 8: begins a turn */
    add(&s, "stop", 0, NORMAL);             /* 9: by eos_token_id */
    add(&s, "turn", 0, NORMAL);             /* 10: by eot_token_id */
    add(&s, "call", 0, NORMAL);             /* 11: by eom_token_id */
    add(&s, "pad", 0, NORMAL);              /* 12 */
    build_begin(&b);
    build_pieces(&b, &s);
    build_u32(&b, KEY("eos_token_id"), 9);
    build_u32(&b, KEY("eot_token_id"), 10);
    build_u32(&b, KEY("eom_token_id"), 11);
    build_u32(&b, KEY("padding_token_id"), 12);
    dpi_vocab *vocab = accepted(&b);
    static const int32_t eog[] = {0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0};
    for (int32_t id = 0; id < s.n; id++)
        assert_int_equal(dpi_vocab_is_eog(vocab, id), eog[id]);
    assert_int_equal(dpi_vocab_is_control(vocab, 9), 1);
    assert_int_equal(dpi_vocab_is_control(vocab, 12), 0);
    dpi_vocab_free(vocab);
    /* A line feed can end a text and is still needed to write one. */
    build_begin(&b);
    begin_pieces(&s, true);
    build_pieces(&b, &s);
    build_u32(&b, KEY("eos_token_id"), FIRST_BYTE + '\n');
    vocab = accepted(&b);
    assert_int_equal(dpi_vocab_is_eog(vocab, FIRST_BYTE + '\n'), 1);
    assert_int_equal(dpi_vocab_is_control(vocab, FIRST_BYTE + '\n'), 0);
    check_round_trip(vocab, "a\nb", 3);
    dpi_vocab_free(vocab);
    /* "</s>" as an ordinary word of another vocabulary is none. */
    s.p[2].type = NORMAL;
    build_begin(&b);
    build_pieces(&b, &s);
    build_u32(&b, KEY("eos_token_id"), 1);
    vocab = accepted(&b);
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 0);
    dpi_vocab_free(vocab);
}

/* Old files have no token types: bytes are told by their text, special tokens by their ids. */
static void reads_files_without_types(void **state) {
    (void)state;
    static pieces s;
    gguf_build b;
    const char *texts[260];
    float scores[260] = {0};
    begin_pieces(&s, true);
    for (int i = 0; i < FIRST_EXTRA; i++)
        texts[i] = s.p[i].text;
    texts[259] = MARK;
    build_begin(&b);
    build_string(&b, KEY("model"), "llama");
    build_strings(&b, KEY("tokens"), texts, 260);
    build_array(&b, KEY("scores"), DPI_GGUF_F32, scores, 260, 4);
    dpi_vocab *vocab = accepted(&b);
    int32_t ids[8];
    size_t n;
    dpi_error err = {0};
    assert_ok(dpi_vocab_encode(vocab, "A\n", 2, DPI_TOKENIZE_BOS, ids, 8, &n, &err), &err);
    assert_int_equal(n, 4);
    static const int32_t wanted[] = {1, 259, FIRST_BYTE + 'A', FIRST_BYTE + '\n'};
    assert_memory_equal(ids, wanted, sizeof wanted);
    for (int32_t id = 0; id < 260; id++)
        assert_int_equal(dpi_vocab_is_control(vocab, id), id < 3);
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 1);
    dpi_vocab_free(vocab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_the_sound_one),
        cmocka_unit_test(refuses_other_models_by_name),
        cmocka_unit_test(refuses_wrong_lengths),
        cmocka_unit_test(refuses_wrong_types),
        cmocka_unit_test(refuses_too_much),
        cmocka_unit_test(refuses_bad_values),
        cmocka_unit_test(refuses_special_ids_out_of_range),
        cmocka_unit_test(knows_absent_special_tokens),
        cmocka_unit_test(collects_the_ends_of_text),
        cmocka_unit_test(reads_files_without_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
