/* test_published.c - chat formats against what published templates write: texts, ids, tokens that
 * end an answer, and recognition. */
#define _GNU_SOURCE /* memmem */
#include <unistd.h>

#include "dpinfer/json.h"
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"
#include "tokenizer/chat_formats.h"

/* Those of chat/cases.jsonl. THINKS: of its renderings the one with thinking off counts. HAS_BOS:
 * the file of the model says that it adds BOS. */
enum { THINKS = 1, HAS_BOS = 2 };
static const struct {
    const char *name;
    int32_t chat, flags;
} published[] = {
    {"smollm2", DPI_CHAT_SMOLLM2, 0}, {"qwen2.5-coder", DPI_CHAT_QWEN25, 0},
    {"qwen2", DPI_CHAT_QWEN15, 0}, {"qwen2.5", DPI_CHAT_QWEN25, 0},
    {"qwen3", DPI_CHAT_QWEN3, THINKS}, {"qwq-llamacpp", DPI_CHAT_QWQ_CLOSED, THINKS},
    {"qwen3.5", DPI_CHAT_QWEN35, THINKS}, {"qwen3-coder", DPI_CHAT_CHATML, 0},
    {"gemma3", DPI_CHAT_GEMMA3, 0}, {"gemma2", DPI_CHAT_GEMMA2, 0}, {"gemma1", DPI_CHAT_GEMMA2, 0},
    {"llama3", DPI_CHAT_LLAMA3, 0}, {"llama3-pkg", DPI_CHAT_LLAMA3, 0},
    {"llama3.1", DPI_CHAT_LLAMA31, 0}, {"llama3.2", DPI_CHAT_LLAMA31, 0},
    {"llama3.3", DPI_CHAT_LLAMA31, 0}, {"phi3.5-mini", DPI_CHAT_PHI35, 0},
    {"phi3-mini-gguf", DPI_CHAT_PHI3_MINI, 0}, {"phi3-mini", DPI_CHAT_PHI3_MINI, 0},
    {"phi3-small", DPI_CHAT_PHI3_SMALL, 0}, {"phi3-medium", DPI_CHAT_PHI3_MEDIUM, 0},
    {"phi3-vision", DPI_CHAT_PHI35, 0}, {"phi4", DPI_CHAT_PHI4, 0},
    {"mistral-v0.2-old", DPI_CHAT_MISTRAL_V02, 0}, {"mistral-v1", DPI_CHAT_MISTRAL_V1, 0},
    {"mistral-v3", DPI_CHAT_MISTRAL_V3, 0}, {"mistral-v3-tekken", DPI_CHAT_MISTRAL_V3_TEKKEN, 0},
    {"mistral-v7", DPI_CHAT_MISTRAL_V7, 0}, {"mistral-nemo", DPI_CHAT_MISTRAL_V3_TEKKEN, 0},
    {"mistral-small-3.2", DPI_CHAT_MISTRAL_SMALL32, 0},
    {"ministral-3-reasoning", DPI_CHAT_MINISTRAL3, 0}, {"devstral-small", DPI_CHAT_DEVSTRAL, 0},
    {"mistral-py", DPI_CHAT_MISTRAL_V02, 0}, {"mixtral-py", DPI_CHAT_MISTRAL_V02, 0},
    {"chatml-py", DPI_CHAT_CHATML, 0}, {"openhermes", DPI_CHAT_CHATML, 0},
    {"bielik3", DPI_CHAT_CHATML, THINKS | HAS_BOS}, {"granite3.0", DPI_CHAT_GRANITE, 0},
    {"granite3.3", DPI_CHAT_GRANITE33, 0}, {"granite4.0", DPI_CHAT_GRANITE40, 0},
    {"granite4.1", DPI_CHAT_GRANITE, 0}, {"smollm3-llamacpp", DPI_CHAT_SMOLLM3_UNSLOTH, THINKS},
    {"deepseek-r1-distill-qwen-llamacpp", DPI_CHAT_DEEPSEEK_R1_CLOSED, THINKS},
    {"deepseek-r1-distill-llama", DPI_CHAT_DEEPSEEK_R1, 0}, {"deepseek-v3", DPI_CHAT_DEEPSEEK, 0},
    {"zephyr", DPI_CHAT_ZEPHYR, 0}, {"llama2-vigogne", DPI_CHAT_VIGOGNE, 0},
    {"phi4-mini", DPI_CHAT_PHI4_MINI, 0}, {"olmo2", DPI_CHAT_OLMO2, 0},
    {"smollm3", DPI_CHAT_SMOLLM3, THINKS}, {"minicpm5", DPI_CHAT_QWEN3, THINKS | HAS_BOS},
};
enum { N_PUBLISHED = sizeof published / sizeof *published, MAX_PROMPT = 8192 };

/* A rendering: texts of the members of a line, NULL where there are none. */
typedef struct rendering {
    int32_t k; /* of published; -1: thinking is on */
    char *system, *user, *text, *bos;
    dpi_json line, stop;
} rendering;

static char *string_of(const dpi_json *object, const char *name) {
    dpi_json value;
    char *text;
    size_t n;
    dpi_json_member(object, name, &value);
    assert_ok(dpi_json_string(&value, &text, &n, ERR));
    return text;
}

static rendering read_rendering(const char *line, size_t n_bytes) {
    rendering r = {.k = -1};
    dpi_json options, messages, message;
    dpi_json_read(line, n_bytes, &r.line);
    char *name = string_of(&r.line, "template"), *role;
    for (int32_t k = 0; k < N_PUBLISHED; k++)
        if (strcmp(name, published[k].name) == 0)
            r.k = k;
    if (r.k < 0)
        fail_msg("the template %s has no row", name);
    dpi_private_free(name);
    dpi_json_member(&r.line, "options", &options);
    if ((published[r.k].flags & THINKS) && !memmem(options.text, options.n_bytes, "false", 5))
        r.k = -1;
    dpi_json_member(&r.line, "messages", &messages);
    dpi_json_first(&messages, &message);
    role = string_of(&message, "role");
    if (role && strcmp(role, "system") == 0) {
        r.system = string_of(&message, "content");
        const char *behind = strchr(message.text + message.n_bytes, '{');
        dpi_json_read(behind, (size_t)(messages.text + messages.n_bytes - 1 - behind), &message);
    }
    dpi_private_free(role);
    r.user = string_of(&message, "content");
    r.text = string_of(&r.line, "text");
    r.bos = string_of(&r.line, "bos");
    dpi_json_member(&r.line, "stop", &r.stop);
    return r;
}

static void free_rendering(rendering *r) {
    dpi_private_free(r->system);
    dpi_private_free(r->user);
    dpi_private_free(r->text);
    dpi_private_free(r->bos);
}

/* Bytes, and what templates write as tokens; BOS is that of the rendering. */
static const char *const markers[] = {
    "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<bos>", "<eos>", "<s>", "</s>",
    "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
    "<|user|>", "<|system|>", "<|assistant|>", "<|end|>", "<|start_of_role|>", "<|end_of_role|>",
    "<|begin_of_text|>", "<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
};
enum { N_MARKERS = sizeof markers / sizeof *markers };

static dpi_vocab *load_markers(const char *bos, bool add_bos) {
    static pieces s;
    dpi_vocab *vocab;
    uint32_t bos_id = 0, eos_id = 0;
    begin_bpe(&s);
    for (int i = 0; i < N_MARKERS; i++) {
        bos_id = strcmp(markers[i], bos) == 0 ? (uint32_t)s.n : bos_id;
        eos_id = strcmp(markers[i], "</s>") == 0 ? (uint32_t)s.n : eos_id;
        add(&s, markers[i], 0, CONTROL);
    }
    LOAD(vocab, build_bpe(&b, &s, "gpt-2", NULL, 0);
         if (bos_id > 0) build_u32(&b, "tokenizer.ggml.bos_token_id", bos_id);
         build_bool(&b, "tokenizer.ggml.add_bos_token", add_bos);
         build_u32(&b, "tokenizer.ggml.eos_token_id", eos_id));
    return vocab;
}

/* What ids of that vocabulary say, tokens by their texts. */
static void write_ids(const int32_t *ids, size_t n, char *out) {
    for (size_t i = 0; i < n; i++)
        out += ids[i] < FIRST_BPE ? sprintf(out, "%c", ids[i])
                                  : sprintf(out, "%s", markers[ids[i] - FIRST_BPE]);
    *out = '\0';
}

static void check_rendering(const rendering *r) {
    static char text[8 * MAX_PROMPT];
    int32_t ids[MAX_PROMPT];
    size_t n = 0;
    dpi_vocab *vocab = load_markers(r->bos, published[r->k].flags & HAS_BOS);
    dpi_status status = dpi_vocab_encode_prompt(
        vocab, published[r->k].chat, r->system, r->system ? strlen(r->system) : 0, r->user,
        strlen(r->user), ids, MAX_PROMPT, &n, ERR);
    if (r->text) {
        assert_ok(status);
        write_ids(ids, n, text);
        assert_string_equal(text, r->text);
    } else {
        assert_status(status, DPI_STATUS_UNSUPPORTED, "has no place for one");
    }
    for (int i = 0; i < N_MARKERS; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\"", markers[i]);
        if (memmem(r->stop.text, r->stop.n_bytes, quoted, strlen(quoted)))
            assert_int_equal(dpi_vocab_is_eog(vocab, FIRST_BPE + i), 1);
    }
    dpi_vocab_free(vocab);
}

/* Calls `check` with each rendering of a file with thinking off; says how many there were. */
static int for_renderings(const char *file, void (*check)(const rendering *r)) {
    int n_checked = 0;
    size_t n_bytes;
    require_data(file);
    char *lines = read_file(data_path(file), &n_bytes);
    for (char *line = lines, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        rendering r = read_rendering(line, (size_t)(end - line));
        if (r.k >= 0) {
            check(&r);
            n_checked++;
        }
        free_rendering(&r);
    }
    free(lines);
    return n_checked;
}

TEST(renders_as_published) {
    assert_true(for_renderings("chat/cases.jsonl", check_rendering) >= 51 * 9);
}

/* The line of chat/cases.jsonl with the same template, case and options. */
static rendering find_rendering(const char *cases, const dpi_json *wanted) {
    static const char *const members[] = {"template", "case", "options"};
    for (const char *line = cases, *end; *line; line = end + 1) {
        dpi_json found, a, b;
        int n_same = 0;
        end = strchr(line, '\n');
        dpi_json_read(line, (size_t)(end - line), &found);
        for (int i = 0; i < 3; i++) {
            dpi_json_member(&found, members[i], &a);
            dpi_json_member(wanted, members[i], &b);
            n_same += a.n_bytes == b.n_bytes && memcmp(a.text, b.text, a.n_bytes) == 0;
        }
        if (n_same == 3)
            return read_rendering(line, (size_t)(end - line));
    }
    fail_msg("no such case");
    return (rendering){.k = -1};
}

/* The ids of the same by Hugging Face, where there is the vocabulary. */
TEST(encodes_renderings_as_published) {
    enum { MAX_IDS = 2048 };
    require_data("chat/ids.jsonl");
    size_t n_bytes, n_cases, n_checked = 0;
    char *lines = read_file(data_path("chat/ids.jsonl"), &n_bytes);
    char *cases = read_file(data_path("chat/cases.jsonl"), &n_cases);
    char loaded[128] = "";
    dpi_vocab *vocab = NULL;
    for (char *line = lines, *end; *line; line = end + 1) {
        char file[128];
        dpi_json object, ids;
        int32_t wanted[MAX_IDS], got[MAX_IDS];
        size_t n_wanted, n = 0;
        end = strchr(line, '\n');
        dpi_json_read(line, (size_t)(end - line), &object);
        dpi_json_member(&object, "ids", &ids);
        char *name = string_of(&object, "vocabulary");
        snprintf(file, sizeof file, "tokenizer/%s", name);
        dpi_private_free(name);
        if (strcmp(file, loaded) != 0) {
            dpi_vocab_free(vocab);
            vocab = load_file(strcpy(loaded, file));
        }
        rendering r = find_rendering(cases, &object);
        if (r.k >= 0) {
            char *list = strndup(ids.text + 1, ids.n_bytes - 2);
            for (char *p = list; *p; p++)
                *p = *p == ',' ? ' ' : *p;
            parse_line(list, wanted, MAX_IDS, &n_wanted);
            free(list);
            assert_ok(dpi_vocab_encode_prompt(vocab, published[r.k].chat, r.system,
                                              r.system ? strlen(r.system) : 0, r.user,
                                              strlen(r.user), got, MAX_IDS, &n, ERR));
            assert_same_ids(got, n, wanted, n_wanted);
            n_checked++;
        }
        free_rendering(&r);
    }
    assert_true(n_checked > 60);
    dpi_vocab_free(vocab);
    free(lines);
    free(cases);
}

TEST(recognises_published_templates) {
    require_data("chat/cases.jsonl");
    int n = 0;
    for (int k = 0; k < N_PUBLISHED; k++) {
        char file[80];
        snprintf(file, sizeof file, "chat/%s.jinja", published[k].name);
        if (access(data_path(file), R_OK) != 0)
            continue; /* its licence does not allow a copy */
        size_t n_bytes;
        int32_t nearest;
        char *text = read_file(data_path(file), &n_bytes);
        int32_t chat = dpi_chat_recognise(text, n_bytes, &nearest);
        if (chat != published[k].chat)
            fail_msg("%s: %s, nearest %s", file, dpi_chat_name(chat), dpi_chat_name(nearest));
        assert_int_equal(nearest, chat);
        free(text);
        n++;
    }
    assert_true(n >= 30);
}
