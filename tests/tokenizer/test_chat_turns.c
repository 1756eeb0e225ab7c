/* test_chat_turns.c - conversations of several turns, and what a template takes off their texts.
 * Each text is what Jinja2 makes of the published template of the format. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"

static const char *const markers[] = {
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]", "[/INST]", "<｜User｜>", "<｜Assistant｜>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
};
enum { N_MARKERS = sizeof markers / sizeof *markers, MAX_TOKENS = 4096 };

static dpi_vocab *load_markers(void) {
    static pieces s;
    dpi_vocab *vocab;
    begin_bpe(&s);
    for (int i = 0; i < N_MARKERS; i++)
        add(&s, markers[i], 0, CONTROL);
    LOAD(vocab, build_bpe(&b, &s, "gpt-2", NULL, 0);
         build_u32(&b, "tokenizer.ggml.bos_token_id", FIRST_BPE);
         build_u32(&b, "tokenizer.ggml.eos_token_id", FIRST_BPE + 1));
    return vocab;
}

/* What ids of that vocabulary say, tokens by their texts. */
static void write_ids(const int32_t *ids, size_t n, char *out) {
    for (size_t i = 0; i < n; i++)
        out += ids[i] < FIRST_BPE ? sprintf(out, "%c", ids[i])
                                  : sprintf(out, "%s", markers[ids[i] - FIRST_BPE]);
    *out = '\0';
}

typedef struct said {
    const char *user, *answer;
} said;

static void check(const dpi_vocab *vocab, int32_t chat, const char *system, const said *turns,
                  const char *user, const char *wanted) {
    static char text[16 * MAX_TOKENS];
    int32_t ids[MAX_TOKENS];
    dpi_turn earlier[4];
    size_t n_turns = 0, n = 0;
    for (; n_turns < 4 && turns[n_turns].user; n_turns++)
        earlier[n_turns] = (dpi_turn){turns[n_turns].user, turns[n_turns].answer,
                                      strlen(turns[n_turns].user), strlen(turns[n_turns].answer)};
    assert_ok(dpi_vocab_encode_turns(vocab, chat, system, system ? strlen(system) : 0, earlier,
                                     n_turns, user, strlen(user), ids, MAX_TOKENS, &n, ERR));
    write_ids(ids, n, text);
    assert_string_equal(text, wanted);
}

/* Mistral v3 and Nemo: `loop.last and system_message is defined`. v1 has it in the first turn. */
TEST(puts_the_system_text_where_the_template_does) {
    static const said one[4] = {{"A", "B"}}, two[4] = {{"A", "B"}, {"C", "D"}}, none[4] = {{0}};
    dpi_vocab *vocab = load_markers();
    check(vocab, DPI_CHAT_MISTRAL_V3_TEKKEN, "S", one, "C",
          "<s>[INST]A[/INST]B</s>[INST]S\n\nC[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V3_TEKKEN, "S", two, "E",
          "<s>[INST]A[/INST]B</s>[INST]C[/INST]D</s>[INST]S\n\nE[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V3_TEKKEN, "S", none, "C", "<s>[INST]S\n\nC[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V3_TEKKEN, NULL, one, "C",
          "<s>[INST]A[/INST]B</s>[INST]C[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V3, "S", one, "C",
          "<s>[INST] A[/INST] B</s>[INST] S\n\nC[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V1, "S", one, "C",
          "<s> [INST] S\n\nA [/INST] B</s> [INST] C [/INST]");
    dpi_vocab_free(vocab);
}

TEST(trims_earlier_answers_as_the_template_does) {
    static const said blank[4] = {{"A", " B\n"}}, lines[4] = {{"A", "\n\n B\n"}};
    dpi_vocab *vocab = load_markers();
    check(vocab, DPI_CHAT_MISTRAL_V3, NULL, blank, "C",
          "<s>[INST] A[/INST] B</s>[INST] C[/INST]");
    check(vocab, DPI_CHAT_MISTRAL_V3_TEKKEN, NULL, blank, "C",
          "<s>[INST]A[/INST] B\n</s>[INST]C[/INST]");
    check(vocab, DPI_CHAT_QWQ_CLOSED, NULL, lines, "C",
          "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n B\n<|im_end|>\n"
          "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n<think>\n</think>");
    check(vocab, DPI_CHAT_QWEN3, NULL, lines, "C",
          "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n\n\n B\n<|im_end|>\n"
          "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    check(vocab, DPI_CHAT_SMOLLM3_UNSLOTH, "S", lines, "C",
          "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
          "Reasoning Mode: /no_think\n\n## Custom Instructions\n\nS\n\n<|im_end|>\n"
          "<|im_start|>user\nA<|im_end|>\n"
          "<|im_start|>assistant\n<think>\n\n</think>\n B\n<|im_end|>\n"
          "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n");
    dpi_vocab_free(vocab);
}

/* The turn that holds the system text keeps its front. Vigogne begins no turn but the first. */
TEST(trims_each_user_text_of_llama2_by_itself) {
    static const said turns[4] = {{" A ", "B"}};
    dpi_vocab *vocab = load_markers();
    check(vocab, DPI_CHAT_LLAMA2, "S", turns, " C ",
          "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\n A [/INST] B </s><s>[INST] C [/INST]");
    check(vocab, DPI_CHAT_LLAMA2, NULL, turns, " C ",
          "<s>[INST] A [/INST] B </s><s>[INST] C [/INST]");
    check(vocab, DPI_CHAT_VIGOGNE, "S", turns, " C",
          "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\n A [/INST] B </s>[INST] C [/INST]");
    dpi_vocab_free(vocab);
}

TEST(drops_thoughts_of_earlier_answers) {
    static const said turns[4] = {{"A", "x</think>\n\nB"}},
                      more[4] = {{"A", "x</think>y</think>B"}}, rest[4] = {{"A", "x</think>"}};
#define QWEN(answer, end)                                                                          \
    "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n" answer "<|im_end|>\n"                 \
    "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n<think>\n" end
    dpi_vocab *vocab = load_markers();
    check(vocab, DPI_CHAT_QWEN3, NULL, turns, "C", QWEN("B", "\n</think>\n\n"));
    check(vocab, DPI_CHAT_QWEN35, NULL, more, "C", QWEN("B", "\n</think>\n\n"));
    check(vocab, DPI_CHAT_QWEN35, NULL, rest, "C", QWEN("", "\n</think>\n\n"));
    check(vocab, DPI_CHAT_QWQ, NULL, turns, "C", QWEN("B", ""));
    check(vocab, DPI_CHAT_CHATML, NULL, turns, "C",
          "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\nx</think>\n\nB<|im_end|>\n"
          "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n");
    check(vocab, DPI_CHAT_DEEPSEEK_R1_CLOSED, NULL, turns, "C",
          "<s><｜User｜>A<｜Assistant｜>\n\nB</s>"
          "<｜User｜>C<｜Assistant｜><think>\n</think>");
    check(vocab, DPI_CHAT_DEEPSEEK, NULL, turns, "C",
          "<s><｜User｜>A<｜Assistant｜>x</think>\n\nB</s>"
          "<｜User｜>C<｜Assistant｜>");
    dpi_vocab_free(vocab);
}

/* The order of SmolLM3's users is no part of the system text. */
TEST(drops_the_order_not_to_think) {
    static const said none[4] = {{0}};
    static const struct {
        const char *given, *left;
    } cases[] = {
        {"Be brief. /no_think", "Be brief."},
        {"/no_think Be /no_thinkbrief.", " Be brief."},
        {"/no_thin", "/no_thin"},
        {" /no_think", "You are a helpful AI assistant named SmolLM, trained by Hugging Face."},
    };
    dpi_vocab *vocab = load_markers();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[512];
        snprintf(wanted, sizeof wanted,
                 "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
                 "Reasoning Mode: /no_think\n\n## Custom Instructions\n\n%s\n\n<|im_end|>\n"
                 "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n",
                 cases[i].left);
        check(vocab, DPI_CHAT_SMOLLM3_UNSLOTH, cases[i].given, none, "C", wanted);
    }
    dpi_vocab_free(vocab);
}
