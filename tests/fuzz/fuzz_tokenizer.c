/* fuzz_tokenizer.c - libFuzzer target: the first two bytes of the input choose what is done with
 * the rest and with which vocabulary: that of the GGUF file $DPI_FUZZ_VOCAB, else one made here in
 * which everything can happen (ties, user-defined tokens, tokens that are not UTF-8), or one that
 * the input itself spells out. */
#define _GNU_SOURCE /* memmem */
#include "tests/support/vocab_build.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_BYTES = 4096, MAX_IDS = 4 * MAX_BYTES + DPI_PROMPT_FRAME };

enum { N_VOCABS = 8 };

static dpi_vocab *vocabs[N_VOCABS];
static dpi_vocab *vocab; /* the one in use */
static int32_t ids[MAX_IDS], again[MAX_IDS];

/* Adds tokens of a type; scores of normal ones are -0, ..., -4. */
static void add_all(pieces *s, int32_t type, const char *const *texts) {
    for (int i = 0; texts[i]; i++)
        add(s, texts[i], type == NORMAL ? -(float)(i % 5) : 0, type);
}

#define ADD_ALL(s, type, ...) add_all(s, type, (const char *const[]){__VA_ARGS__, NULL})
#define ADD_TURNS(s, ...)                                                                          \
    ADD_ALL(s, CONTROL, "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>",         \
            "<|end_header_id|>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",       \
            "<|im_sep|>", "<|user|>", "<|system|>", "<|assistant|>", "<|end|>", "<start_of_turn>", \
            "<end_of_turn>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>",            \
            "<｜User｜>", "<｜Assistant｜>", __VA_ARGS__)

static dpi_vocab *load_spm(void) {
    static pieces s;
    begin_pieces(&s, true);
    ADD_ALL(&s, NORMAL, MARK, MARK MARK, MARK "a", "a", "b", "ab", "ba", "aa", "aab", "bab", "<",
            "s", ">", "</", "s>", "<|", "|>", "\xe2", "\x96", "\xe2\x96", "\xc3\xa9",
            "\xf0\x9f\x98\x80", "\xff\xff", "\n");
    ADD_ALL(&s, USER, "x", "xy", "yx", "xyx", "  ", "\xe2\x96\xff", "aaaa");
    ADD_TURNS(&s, NULL);
    return load_pieces(&s);
}

static dpi_vocab *load_bytes(const char *pre) {
    static pieces s;
    static const char *const merges[] = {
        "aa b", "a b", "\xc4\xa0 \xc4\xa0", "b a",       "a a", "ab ab",
        "1 2",  "< |", "\xc3\xa2 \xc4\xb8", "\xc4\xa0 z"};
    gguf_build b;
    dpi_vocab *loaded = NULL;
    dpi_error err = {0};
    begin_bpe(&s);
    ADD_ALL(&s, NORMAL, "ab", "ba", "aa", "aab", "abab", "<|", "\xc4\xa0\xc4\xa0", "\xc4\xa0z",
            "\xc3\xa2\xc4\xb8", "12", "bba");
    ADD_ALL(&s, USER, "xy", "xyx", "  ", "\n\n");
    ADD_TURNS(&s, "</s>");
    build_begin(&b);
    build_bpe(&b, &s, pre, merges, 10);
    build_u32(&b, "tokenizer.ggml.eos_token_id", (uint32_t)s.n - 1);
    require_ok(load_image(&b, &loaded, &err));
    return loaded;
}

static void load_vocabs(void) {
    const char *path = getenv("DPI_FUZZ_VOCAB");
    dpi_error err = {0};
    if (path) {
        dpi_gguf *gguf;
        require_ok(dpi_gguf_open(path, true, &gguf, &err));
        require_ok(dpi_vocab_create(gguf, &vocabs[0], &err));
        dpi_gguf_close(gguf);
        for (int i = 1; i < N_VOCABS; i++)
            vocabs[i] = vocabs[0];
        return;
    }
    vocabs[0] = load_spm();
    vocabs[1] = load_bytes("llama-bpe");
    vocabs[2] = load_bytes("smollm");
    vocabs[3] = load_bytes(NULL);
    vocabs[4] = load_bytes("qwen35");
    vocabs[5] = load_bytes("gpt-4o");
    vocabs[6] = load_bytes("tekken");
    vocabs[7] = load_bytes("deepseek-v3");
}

/* The Unicode Standard, table 3-7. */
static bool is_utf8(const char *text, size_t n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < n_bytes;) {
        unsigned char c = s[i];
        size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (n == 0 || n > n_bytes - i)
            return false;
        for (size_t j = 1; j < n; j++)
            if ((s[i + j] & 0xc0) != 0x80)
                return false;
        if ((c == 0xe0 && s[i + 1] < 0xa0) || (c == 0xed && s[i + 1] > 0x9f) ||
            (c == 0xf0 && s[i + 1] < 0x90) || (c == 0xf4 && s[i + 1] > 0x8f))
            return false;
        i += n;
    }
    return true;
}

/* Every piece that comes out is whole UTF-8. `wanted` (may be NULL): what must come out. */
static void check_decoding(const int32_t *tokens, size_t n, const char *wanted, size_t n_wanted) {
    dpi_error err = {0};
    dpi_decoder *d;
    size_t used = 0;
    require_ok(dpi_vocab_decoder(vocab, &d, &err));
    for (size_t i = 0; i <= n; i++) {
        const char *text;
        size_t n_text;
        if (i < n)
            require_ok(dpi_decoder_push(d, tokens[i], &text, &n_text, &err));
        else
            dpi_decoder_finish(d, &text, &n_text);
        require(is_utf8(text, n_text));
        if (wanted)
            require(n_text <= n_wanted - used && memcmp(wanted + used, text, n_text) == 0);
        used += n_text;
    }
    require(!wanted || used == n_wanted);
    dpi_decoder_free(d);
}

static void fuzz_text(const char *text, size_t n_bytes, size_t capacity) {
    dpi_error err = {0};
    size_t n = 0, m = 0;
    require_ok(dpi_vocab_encode(vocab, text, n_bytes, 0, ids, MAX_IDS, &n, &err));
    require(n <= 4 * n_bytes + 4);
    for (size_t i = 0; i < n; i++) {
        require(ids[i] >= 0 && ids[i] < dpi_vocab_size(vocab));
        require(!dpi_vocab_is_control(vocab, ids[i]) && !dpi_vocab_is_eog(vocab, ids[i]));
    }
    /* vocabs[4] composes what it reads. */
    bool lossy = !is_utf8(text, n_bytes) || memmem(text, n_bytes, MARK, 3) || vocab == vocabs[4];
    check_decoding(ids, n, lossy ? NULL : text, n_bytes);
    /* A smaller buffer holds the same beginning. */
    capacity %= n + 2;
    dpi_status status = dpi_vocab_encode(vocab, text, n_bytes, 0, again, capacity, &m, &err);
    require(m == n && (status == DPI_STATUS_OK) == (n <= capacity));
    require(memcmp(ids, again, (n < capacity ? n : capacity) * sizeof *ids) == 0);
}

static void fuzz_prompt(int32_t chat, const char *text, size_t n_bytes, size_t split) {
    dpi_error err = {0};
    size_t n = 0;
    split %= n_bytes + 1;
    dpi_status status = dpi_vocab_encode_prompt(vocab, chat, text, split, text + split,
                                                n_bytes - split, ids, MAX_IDS, &n, &err);
    if (status != DPI_STATUS_OK) {
        require(status == DPI_STATUS_UNSUPPORTED); /* no such tokens, no place for a system text */
        return;
    }
    require(n <= 4 * n_bytes + DPI_PROMPT_FRAME);
    int32_t n_special = 0;
    for (size_t i = 0; i < n; i++)
        n_special += dpi_vocab_is_control(vocab, ids[i]);
    check_decoding(ids, n, NULL, 0);
    /* The count of special tokens depends on the format, not on what the texts say. */
    size_t n_plain = 0;
    int32_t n_plain_special = 0;
    require_ok(dpi_vocab_encode_prompt(vocab, chat, "a", split ? 1 : 0, "a", 1, again, MAX_IDS,
                                       &n_plain, &err));
    for (size_t i = 0; i < n_plain; i++)
        n_plain_special += dpi_vocab_is_control(vocab, again[i]);
    require(n_special == n_plain_special);
}

/* A vocabulary spelled out: lines of tokens, an empty line, lines of merges, an empty line, the
 * chat template, an empty line, a text to encode. A token's first byte is its type. */
static void fuzz_vocabulary(char *text, size_t n_bytes, const char *pre) {
    enum { MAX_LINES = 600 };
    const char *lines[MAX_LINES], *part[4] = {"", "", "", ""};
    int32_t types[MAX_LINES];
    size_t n_tokens = 0, n_lines = 0;
    char *image = copy_text(text, n_bytes), *rest = image; /* NULs inside end lines early */
    for (int i = 0; i < 4 && rest; i++) {
        part[i] = rest;
        rest = strstr(rest, "\n\n");
        if (rest) {
            *rest = '\0';
            rest += 2;
        }
    }
    gguf_build b;
    build_begin(&b);
    build_string(&b, "tokenizer.ggml.model", "gpt2");
    build_string(&b, "tokenizer.ggml.pre", pre);
    for (int i = 0; i < 2; i++) {
        char *save, *line = strtok_r((char *)(uintptr_t)part[i], "\n", &save);
        for (n_lines = 0; line && n_lines < MAX_LINES; line = strtok_r(NULL, "\n", &save)) {
            types[n_lines] = i == 0 ? line[0] % 8 : 0;
            lines[n_lines++] = i == 0 ? line + 1 : line;
        }
        n_tokens = i == 0 ? n_lines : n_tokens;
        build_strings(&b, i == 0 ? "tokenizer.ggml.tokens" : "tokenizer.ggml.merges", lines,
                      n_lines);
        if (i == 0)
            build_array(&b, "tokenizer.ggml.token_type", DPI_GGUF_I32, types, n_tokens, 4);
    }
    build_string(&b, "tokenizer.chat_template", part[2]);
    dpi_error err = {0};
    vocab = NULL;
    if (load_image(&b, &vocab, &err) == DPI_STATUS_OK) {
        size_t n = 0;
        require_ok(dpi_vocab_encode(vocab, part[3], strlen(part[3]), 0, ids, MAX_IDS, &n, &err));
        require(n <= 4 * strlen(part[3]) + 5);
        check_decoding(ids, n, NULL, 0);
        for (int32_t i = 0; i < dpi_vocab_size(vocab); i++)
            check_decoding(&i, 1, NULL, 0);
        dpi_vocab_free(vocab);
    }
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (!vocabs[0])
        load_vocabs();
    if (n_bytes < 4 || n_bytes > MAX_BYTES)
        return 0;
    uint8_t mode = data[0];
    size_t number = (size_t)data[2] << 8 | data[3];
    vocab = vocabs[data[1] % N_VOCABS];
    size_t n = n_bytes - 4;
    char *text = copy_bytes(data + 4, n, n);
    if (mode % 8 == 0) {
        for (size_t i = 0; i + 1 < n; i += 2)
            ids[i / 2] = (((unsigned char)text[i] << 8) | (unsigned char)text[i + 1]) %
                         dpi_vocab_size(vocab);
        check_decoding(ids, n / 2, NULL, 0);
    } else if (mode % 8 <= 2) {
        fuzz_prompt(data[2] % 42, text, n, number);
    } else if (mode % 8 == 3) {
        fuzz_vocabulary(text, n, data[1] % 2 ? "llama-bpe" : "default");
    } else {
        fuzz_text(text, n, number);
    }
    free(text);
    return 0;
}
