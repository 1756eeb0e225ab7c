/* test_tokenizer.c - SPM encoding. Expected ids come from the golden files, from strings worked out
 * by hand, and from a slow encoder written here. */
#include "dpinfer/json.h"
#include "tests/support/support.h"

#include "tests/support/failing.h"
#include "tests/support/vocab_build.h"
#include "tokenizer/vocab.h"

/* ---- Golden data ---------------------------------------------------------------------------- */

TEST(encodes_golden_strings) {
    check_golden_strings("tokenizer/vocab-llama-spm.gguf", "tokenizer/llama-spm.inp",
                         "tokenizer/llama-spm.out");
}

TEST(encodes_random_strings) {
    check_random_strings("tokenizer/vocab-llama-spm.gguf", "tokenizer/random-spm.tokens");
}

/* Strings on which llama.cpp errs: {"string": text, "hf": [ids], ...}, one on a line. */
static void check_differing(const dpi_vocab *vocab, const char *file) {
    size_t n_bytes;
    char *lines = read_file(data_path(file), &n_bytes);
    for (char *line = lines, *end; *line; line = end + 1) {
        dpi_json object, string, hf;
        int32_t wanted[4096];
        size_t n, n_text;
        char *text;
        end = strchr(line, '\n');
        dpi_json_read(line, (size_t)(end - line), &object);
        dpi_json_member(&object, "string", &string);
        dpi_json_member(&object, "hf", &hf);
        assert_ok(dpi_json_string(&string, &text, &n_text, ERR));
        char *list = strndup(hf.text + 1, hf.n_bytes - 2);
        for (char *p = list; *p; p++)
            *p = *p == ',' ? ' ' : *p;
        parse_line(list, wanted, 4096, &n);
        check_ids(vocab, text, n_text, wanted, n);
        free(list);
        dpi_private_free(text);
    }
    free(lines);
}

/* Every pre-tokenizer, by Hugging Face's tokenizers. */
TEST(encodes_as_hugging_face_does) {
    static const struct {
        const char *name, *vocab;
        bool differs;
    } tokenizers[] = {
        {"qwen2", "vocab-qwen2", true},         {"qwen35", "rule-qwen35", true},
        {"tekken", "rule-tekken", true},        {"gpt-4o", "vocab-gpt-4o", true},
        {"deepseek-r1-qwen", "rule-deepseek-r1-qwen", false},
        {"deepseek-v3", "vocab-deepseek-v3", true},
        {"smollm", "vocab-smollm", true},       {"refact", "vocab-refact", true},
        {"dbrx", "rule-dbrx", false},           {"llama3", "vocab-llama3-bpe", true},
        {"gemma3", "vocab-gemma3", true},       {"phi-3", "vocab-phi-3", false},
        {"llama-spm", "vocab-llama-spm", false},
    };
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        char file[3][80];
        snprintf(file[0], sizeof *file, "tokenizer/%s.gguf", tokenizers[i].vocab);
        snprintf(file[1], sizeof *file, "tokenizer/many-%s.strings", tokenizers[i].name);
        snprintf(file[2], sizeof *file, "tokenizer/many-%s.tokens", tokenizers[i].name);
        dpi_vocab *vocab = load_file(file[0]);
        check_golden(vocab, file[1], "", 1, file[2], 1500, false);
        snprintf(file[0], sizeof *file, "tokenizer/many-%s.differ.jsonl", tokenizers[i].name);
        if (tokenizers[i].differs)
            check_differing(vocab, file[0]);
        dpi_vocab_free(vocab);
    }
}

/* ---- Merges in place of scores --------------------------------------------------------------- */

static bool is_normal(const dpi_vocab *v, const char *text, size_t n_bytes) {
    const int32_t id = dpi_vocab_find(v, text, n_bytes);
    return id >= 0 && v->tokens[id].type == NORMAL;
}

static size_t begin_strings(gguf_build *b, const char *key, uint64_t n) {
    build_key(b, key, DPI_GGUF_ARRAY);
    build_put_u32(b, DPI_GGUF_STRING);
    return build_put_u64(b, n);
}

/* As transformers makes them of a vocabulary whose scores fall with ids: those that give the first
 * token before others, and of one token those with the longest left part. */
static void build_merges(gguf_build *b, const dpi_vocab *v) {
    const size_t count = begin_strings(b, "tokenizer.ggml.merges", 0);
    uint64_t n = 0;
    for (const dpi_token *t = v->tokens; t < v->tokens + v->n_tokens; t++)
        for (uint32_t left = t->type == NORMAL ? t->n_bytes : 0; left-- > 1;) {
            char merge[1024];
            if (!is_normal(v, t->text, left) || !is_normal(v, t->text + left, t->n_bytes - left))
                continue;
            snprintf(merge, sizeof merge, "%.*s %.*s", (int)left, t->text,
                     (int)(t->n_bytes - left), t->text + left);
            build_put_string(b, merge, t->n_bytes + 1);
            n++;
        }
    build_poke_u64(b, count, n);
}

/* The vocabulary of Gemma 3 in the form of Gemma 4: Hugging Face's ids of these strings. */
TEST(encodes_by_merges) {
    const char *const file = "tokenizer/vocab-gemma3.gguf";
    dpi_vocab *scored = load_file(file), *merged = NULL;
    dpi_gguf *gguf;
    gguf_build b;
    assert_ok(dpi_gguf_open(data_path(file), true, &gguf, ERR));
    const dpi_gguf_kv *tokens = dpi_gguf_find(gguf, "tokenizer.ggml.tokens");
    const dpi_gguf_kv *types = dpi_gguf_find(gguf, "tokenizer.ggml.token_type");
    build_begin(&b);
    build_string(&b, "tokenizer.ggml.model", "gemma4");
    begin_strings(&b, tokens->key, tokens->n_items);
    build_put(&b, tokens->data, tokens->n_bytes);
    build_array(&b, types->key, DPI_GGUF_I32, types->data, types->n_items, sizeof(int32_t));
    build_merges(&b, scored);
    merged = accepted(&b);
    check_golden(merged, "tokenizer/many-gemma3.strings", "", 1, "tokenizer/many-gemma3.tokens",
                 1500, false);
    check_differing(merged, "tokenizer/many-gemma3.differ.jsonl");
    assert_ids_bos(merged, "", 2);
    dpi_gguf_close(gguf);
    dpi_vocab_free(scored), dpi_vocab_free(merged);
}

/* A pair without a merge stays two tokens, and the earliest merge is first. */
TEST(merges_in_order) {
    static const char *const merges[] = {"b c", "a b", MARK " a"};
    static pieces s;
    dpi_vocab *vocab;
    begin_pieces(&s, true);
    for (const char *const *p = (const char *const[]){"a", "b", "c", MARK, "ab", "bc", MARK "a",
                                                      "abc", "ca", NULL}; *p; p++)
        add(&s, *p, 0, NORMAL);
    LOAD(vocab, build_tokens(&b, &s, "gemma4", false),
         build_strings(&b, "tokenizer.ggml.merges", merges, 3));
    enum { A = FIRST_EXTRA, B, C, SPACE, AB, BC, SPACE_A };
    assert_ids(vocab, "abc", A, BC);
    assert_ids(vocab, "cab a", C, AB, SPACE_A);
    assert_ids(vocab, " \xc3\xa9", SPACE, FIRST_BYTE + 0xc3, FIRST_BYTE + 0xa9);
    check_round_trip(vocab, " abc  a\n\xc3\xa9", 11);
    dpi_vocab_free(vocab);
    REFUSED(FORMAT, "tokenizer.ggml.merges is missing", false,
            build_tokens(&b, &s, "gemma4", false));
}

TEST(encodes_the_story_prompt) {
    static const char text[] = "Once upon a time, there was a little girl named Lily.";
    dpi_vocab *vocab = load_file("models/stories260K.gguf");
    require_data("golden/stories260K-prompt.txt");
    size_t n_bytes, n_wanted, n;
    char *line = read_file(data_path("golden/stories260K-prompt.txt"), &n_bytes);
    int32_t wanted[64], ids[64];
    parse_line(line, wanted, 64, &n_wanted);
    assert_ok(dpi_vocab_encode(vocab, text, strlen(text), DPI_TOKENIZE_BOS, ids, 64, &n, ERR));
    assert_same_ids(ids, n, wanted, n_wanted);
    assert_int_equal(dpi_vocab_size(vocab), 512);
    assert_int_equal(dpi_vocab_bos(vocab), 1);
    assert_int_equal(dpi_vocab_chat(vocab), DPI_CHAT_NONE);
    dpi_vocab_free(vocab);
    free(line);
}

/* ---- Against a slow encoder ------------------------------------------------------------------ */

static int32_t find_piece(const pieces *s, const char *text, size_t n, bool mergeable) {
    for (int32_t i = 0; i < s->n; i++) {
        int32_t type = s->p[i].type;
        bool plain = type == NORMAL || type == UNUSED ||
                     (type == USER && !strstr(s->p[i].text, MARK)); /* whose text has a space */
        if ((!mergeable || plain) && strlen(s->p[i].text) == n &&
            memcmp(s->p[i].text, text, n) == 0)
            return i;
    }
    return -1;
}

static const char *unmark(const char *text, char *out) {
    char *end = out;
    for (size_t n; *text; text += n) {
        n = strncmp(text, MARK, 3) == 0 ? 3 : 1;
        *end++ = n == 3 ? ' ' : *text;
    }
    *end = '\0';
    return out;
}

/* One fragment: the text with spaces replaced, cut into characters; while there is a pair that is
 * a token, the best is merged, the leftmost of equals. */
static size_t slow_fragment(const pieces *s, const char *text, size_t n_bytes, int32_t *ids) {
    char buffer[1024];
    size_t starts[1025], n = 0, used = strlen(strcpy(buffer, MARK));
    for (size_t i = 0; i < n_bytes; i++) {
        if (text[i] == ' ')
            used += strlen(strcpy(buffer + used, MARK));
        else
            buffer[used++] = text[i];
    }
    for (size_t i = 0; i < used;) {
        unsigned char c = (unsigned char)buffer[i];
        starts[n++] = i;
        i += c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    }
    starts[n] = used;
    for (;;) {
        size_t best = n;
        float best_score = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int32_t id = find_piece(s, buffer + starts[i], starts[i + 2] - starts[i], true);
            if (id >= 0 && (best == n || s->p[id].score > best_score)) {
                best = i;
                best_score = s->p[id].score;
            }
        }
        if (best == n)
            break;
        memmove(starts + best + 1, starts + best + 2, (n - best - 1) * sizeof *starts);
        n--;
    }
    size_t n_ids = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = find_piece(s, buffer + starts[i], starts[i + 1] - starts[i], true);
        if (id >= 0)
            ids[n_ids++] = id;
        for (size_t j = starts[i]; id < 0 && j < starts[i + 1]; j++)
            ids[n_ids++] = FIRST_BYTE + (unsigned char)buffer[j];
    }
    return n_ids;
}

/* The longest user-defined token at the leftmost place first; U+2581 is a space. */
static size_t slow_encode(const pieces *s, const char *marked, int32_t *ids) {
    char text[1024], token[64];
    size_t n = 0, begin = 0;
    unmark(marked, text);
    for (size_t i = 0; text[i];) {
        size_t longest = 0;
        int32_t found = -1;
        for (int32_t id = 0; id < s->n; id++)
            if (s->p[id].type == USER && strlen(unmark(s->p[id].text, token)) > longest &&
                strncmp(text + i, token, strlen(token)) == 0) {
                longest = strlen(token);
                found = id;
            }
        if (found >= 0) {
            n += i > begin ? slow_fragment(s, text + begin, i - begin, ids + n) : 0;
            ids[n++] = found;
            begin = i + longest;
        }
        i += found >= 0 ? longest : 1;
    }
    return n + (text[begin] ? slow_fragment(s, text + begin, strlen(text + begin), ids + n) : 0);
}

/* Small alphabets, few distinct scores (so many ties, also of 0 and -0), tokens of every type. */
static void random_pieces(pieces *s, uint64_t *rng, char texts[64][40], const char *const *letters,
                          int32_t n_letters) {
    begin_pieces(s, true);
    for (int i = 0; i < 64; i++) {
        int32_t length = 1 + random_below(rng, 5);
        texts[i][0] = '\0';
        while (length-- > 0)
            strcat(texts[i], letters[random_below(rng, n_letters)]);
        if (find_piece(s, texts[i], strlen(texts[i]), false) >= 0)
            continue;
        int32_t draw = random_below(rng, 40);
        int32_t type = draw < 2 ? USER : draw == 2 ? CONTROL : draw == 3 ? UNUSED : NORMAL;
        float score = (float)(4 - random_below(rng, 8));
        add(s, texts[i], score == 0 && i % 2 ? -0.0f : score, type);
    }
}

TEST(agrees_with_a_slow_encoder) {
    static const char *const letters[] = {"a", "b", "c", MARK, "\xc3\xa9", "\xf0\x9f\x98\x80"};
    static const char *const inputs[] = {
        "a",  "b",    "c",    " ",        "a", "b", "\xc3\xa9", MARK, "\xf0\x9f\x98\x80",
        "\n", "\xff", "\xe2", "\xe2\x96", "d"};
    static pieces s;
    uint64_t rng = 1;
    int n_user = 0;
    for (int round = 0; round < 60; round++) {
        char texts[64][40];
        random_pieces(&s, &rng, texts, letters, round % 3 == 0 ? 2 : 6);
        dpi_vocab *vocab = load_pieces(&s);
        for (int k = 0; k < 60; k++) {
            char text[256] = "";
            int32_t ids[1024], n_parts = random_below(&rng, 40);
            int32_t n_inputs = k % 2 ? 14 : 6;
            while (n_parts-- > 0)
                strcat(text, inputs[random_below(&rng, n_inputs)]);
            size_t n = slow_encode(&s, text, ids);
            for (size_t i = 0; i < n; i++)
                n_user += s.p[ids[i]].type == USER;
            check_ids(vocab, text, strlen(text), ids, n);
        }
        dpi_vocab_free(vocab);
    }
    assert_true(n_user > 100); /* or nothing was tried */
}

/* One line: of random letters, of one letter (a long chain of ties). */
TEST(encodes_a_long_line_in_linear_time) {
    static pieces s;
    static const char *const words[] = {"a",    "b",    "aa",     "ab",   "ba",  "aab",
                                        "abab", "bbbb", "babaab", "abba", "baab"};
    begin_pieces(&s, true);
    for (int i = 0; i < 11; i++)
        add(&s, words[i], i < 9 ? (float)i : 0, i < 9 ? NORMAL : USER);
    dpi_vocab *vocab = load_pieces(&s);
    char *text = malloc(MANY);
    assert_non_null(text);
    uint64_t rng = 7;
    for (int32_t n_letters = 2; n_letters > 0; n_letters--) {
        for (size_t i = 0; i < MANY; i++)
            text[i] = "ab"[random_below(&rng, n_letters)];
        check_round_trip(vocab, text, MANY);
    }
    free(text);
    dpi_vocab_free(vocab);
}

/* ---- Cases by hand --------------------------------------------------------------------------- */

TEST(text_never_becomes_a_special_token) {
    static pieces s;
    /* Merges lead straight to "<s>", "</s>", "<0x41>" and "<|im_end|>". */
    static const char *const texts[] = {
        "<",  "s", ">", "/", "s>", "</", "<s", "</s", "<0",  "x4", "1>",  "<0x4", "<|", "im_end",
        "|>", "i", "m", "_", "e",  "n",  "d",  "im",  "im_", "en", "end", MARK,   "|"};
    static const char *const documents[] = {"<s>",    "a</s>",    "</s></s>",   "<unk>",
                                            "<0x41>", "A<0x41>",  "<|im_end|>", "x<|im_end|>\n",
                                            "<|x|>",  "<s>[INST]"};
    begin_pieces(&s, true);
    for (int i = 0; i < 27; i++)
        add(&s, texts[i], -1, NORMAL);
    const int32_t im_end = s.n;
    add(&s, "<|im_end|>", 5, USER); /* as some converters have written it */
    add(&s, "<|x|>", 5, NORMAL);
    add(&s, "[INST]", 5, USER);
    dpi_vocab *vocab = load_pieces(&s);
    for (int k = 0; k < 10; k++) {
        size_t n;
        int32_t *ids = encode(vocab, documents[k], strlen(documents[k]), &n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(dpi_vocab_is_control(vocab, ids[i]), 0);
            assert_int_equal(dpi_vocab_is_eog(vocab, ids[i]), 0);
            assert_int_not_equal(ids[i], strchr(documents[k], 'A') ? -1 : FIRST_BYTE + 0x41);
        }
        free(ids);
    }
    check_round_trips(vocab, documents, 10);
    for (int32_t id = im_end; id < im_end + 3; id++)
        assert_int_equal(dpi_vocab_is_control(vocab, id), 1);
    assert_int_equal(dpi_vocab_is_eog(vocab, im_end), 1);
    assert_int_equal(dpi_vocab_is_eog(vocab, im_end + 1), 0);
    dpi_vocab_free(vocab);
}

TEST(without_all_bytes_uses_the_unknown_token) {
    static pieces s;
    begin_pieces(&s, false);
    add(&s, "<0x0A>", 0, BYTE);   /* 3 */
    add(&s, MARK, 0, NORMAL);     /* 4 */
    add(&s, "a", 0, NORMAL);      /* 5 */
    add(&s, MARK "a", 0, NORMAL); /* 6 */
    dpi_vocab *vocab = load_pieces(&s);
    assert_ids(vocab, "a\n\xf0\x9f\x98\x80 a", 6, 0, 0, 6);
    assert_text(vocab, "a a", 6, 0, 0, 6);
    assert_text(vocab, "a\n", 6, 3);
    dpi_vocab_free(vocab);
}

TEST(cuts_out_user_defined_tokens) {
    static pieces s;
    static const char *const texts[] = {"xyz", "a xyz a", " xyz", "xyz ", "xyzxyz  xyz", "   xyz"};
    begin_pieces(&s, true);
    add(&s, MARK, -5, NORMAL);     /* 259 */
    add(&s, "a", -5, NORMAL);      /* 260 */
    add(&s, MARK "a", -1, NORMAL); /* 261 */
    add(&s, "xyz", 0, USER);       /* 262 */
    add(&s, "zx", 0, USER);        /* 263 */
    add(&s, "  ", 0, USER);        /* 264 */
    add(&s, "xyzxyz", 0, USER);    /* 265 */
    add(&s, "", 0, USER);          /* 266: never matches */
    dpi_vocab *vocab = load_pieces(&s);
    assert_ids(vocab, "xyz", 262);
    assert_ids(vocab, "axyza", 261, 262, 261); /* a prefix space after it, too */
    assert_ids(vocab, "xyz a", 262, 259, 261);
    assert_ids(vocab, "xyzxyz", 265);
    assert_ids(vocab, "xyzxyzxyz", 265, 262);
    assert_ids(vocab, "zxyz", 263, 259, FIRST_BYTE + 'y', FIRST_BYTE + 'z'); /* the leftmost */
    assert_ids(vocab, "a" MARK " ", 261, 264); /* U+2581 is a space */
    assert_ids(vocab, "zx", 263);
    assert_ids(vocab, "   ", 264, 259, 259);
    assert_ids(vocab, "a  a", 261, 264, 261);
    assert_text(vocab, "axyza", 261, 262, 261);
    assert_text(vocab, "xyz a", 262, 259, 261);
    assert_text(vocab, "  a", 264, 261);
    assert_text(vocab, "", 266);
    check_round_trips(vocab, texts, 6);
    dpi_vocab_free(vocab);
}

TEST(honours_the_flags) {
    static pieces s;
    begin_pieces(&s, true);
    add(&s, MARK, -5, NORMAL); /* 259 */
    add(&s, "a", -5, NORMAL);  /* 260 */
    for (int bits = 0; bits < 4; bits++) {
        const bool bos = bits & 1, space = bits & 2;
        dpi_vocab *vocab;
        LOAD(vocab, build_pieces(&b, &s), build_bool(&b, "tokenizer.ggml.add_bos_token", bos),
             build_bool(&b, "tokenizer.ggml.add_space_prefix", space),
             build_bool(&b, "tokenizer.ggml.add_eos_token", true));
        const int32_t wanted[] = {1, 259, 260}, without_space[] = {1, 260};
        int32_t ids[8];
        size_t n;
        assert_ok(dpi_vocab_encode(vocab, "a", 1, DPI_TOKENIZE_BOS, ids, 8, &n, ERR));
        assert_same_ids(ids, n, (space ? wanted : without_space) + !bos, 1u + bos + space);
        /* A space in front of the text is kept when the encoder adds none. */
        assert_text(vocab, space ? "a" : " a", 1, 259, 260);
        check_round_trip(vocab, " a", 2);
        dpi_vocab_free(vocab);
    }
}

TEST(counts_what_does_not_fit) {
    static pieces s;
    begin_pieces(&s, true);
    add(&s, MARK, -5, NORMAL); /* 259 */
    dpi_vocab *vocab = load_pieces(&s);
    const int32_t wanted[5] = {1, 259, FIRST_BYTE + 'a', FIRST_BYTE + 'b', FIRST_BYTE + 'c'};
    for (size_t capacity = 0; capacity <= 6; capacity++) {
        int32_t ids[6] = {-7, -7, -7, -7, -7, -7};
        size_t n = 99, stored = capacity < 5 ? capacity : 5;
        dpi_status status =
            dpi_vocab_encode(vocab, "abc", 3, DPI_TOKENIZE_BOS, ids, capacity, &n, ERR);
        if (capacity < 5)
            assert_error(status, LIMIT, "buffer");
        else
            assert_ok(status);
        assert_int_equal(n, 5);
        assert_memory_equal(ids, wanted, stored * sizeof *ids);
        for (size_t i = stored; i < 6; i++)
            assert_int_equal(ids[i], -7);
    }
    size_t n = 99;
    assert_ok(dpi_vocab_encode(vocab, NULL, 0, 0, NULL, 0, &n, ERR));
    assert_int_equal(n, 0); /* the empty text has no ids, not even a prefix space */
    n = 99;
    assert_error(dpi_vocab_encode(vocab, NULL, 1, 0, NULL, 0, &n, ERR), ARG, "NULL");
    assert_error(dpi_vocab_encode(vocab, "a", 1, 0, NULL, 1, &n, ERR), ARG, "NULL");
    assert_error(dpi_vocab_encode(vocab, "a", 1, 2, NULL, 0, &n, ERR), ARG, "flags");
    assert_int_equal(n, 99);
    dpi_vocab_free(vocab);
}

/* ---- Running out of memory ------------------------------------------------------------------- */

TEST(survives_allocation_failures) {
    static pieces s;
    begin_pieces(&s, true);
    add(&s, MARK "a", 0, NORMAL);
    add(&s, "x", 0, USER);
    gguf_build b;
    dpi_gguf *gguf;
    build_begin(&b);
    build_pieces(&b, &s);
    build_end(&b);
    assert_ok(dpi_gguf_open_buffer(b.data, b.n_bytes, &gguf, ERR));
    dpi_vocab *vocab = NULL;
    int64_t n = 1;
    for (; fails(n, dpi_vocab_create(gguf, &vocab, ERR), "no memory"); n++)
        assert_null(vocab);
    assert_true(n > 6);
    dpi_gguf_close(gguf);
    build_free(&b);

    dpi_decoder *d = NULL;
    for (n = 1; fails(n, dpi_vocab_decoder(vocab, &d, ERR), "no memory"); n++)
        assert_null(d);
    assert_true(n > 1);
    dpi_decoder_free(d);

    int32_t ids[64];
    size_t n_ids = 99;
    for (n = 1; fails(n,
                      dpi_vocab_encode_prompt(vocab, DPI_CHAT_ZEPHYR, "a", 1, "a x a", 5, ids, 64,
                                              &n_ids, ERR),
                      "no memory");
         n++)
        assert_int_equal(n_ids, 99);
    assert_true(n > 13);
    dpi_vocab_free(vocab);
}
