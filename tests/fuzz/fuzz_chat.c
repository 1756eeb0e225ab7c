/* fuzz_chat.c - libFuzzer target: any bytes as the chat template of a model file and as names of
 * formats. A template is recognised and never run: its format is one of the enum, and a prompt in
 * that format has as many special tokens whatever the texts say. (fuzz_tokenizer.c has the prompts
 * of each format.) */
#include "dpinfer/text.h"
#include "tests/support/vocab_build.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_BYTES = 1 << 16, MAX_IDS = 4 * MAX_BYTES + DPI_PROMPT_FRAME };

static int32_t ids[MAX_IDS];

static dpi_vocab *load(const char *template) {
    static pieces s;
    static const char *const turns[] = {
        "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|eot_id|>", "<|start_header_id|>",
        "<|end_header_id|>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<|user|>",
        "<|system|>", "<|assistant|>", "<|end|>", "<start_of_turn>", "<end_of_turn>",
        "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<｜User｜>", "<｜Assistant｜>"};
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    begin_pieces(&s, true);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        add(&s, turns[i], 0, CONTROL);
    build_begin(&b);
    build_pieces(&b, &s);
    build_u32(&b, "tokenizer.ggml.bos_token_id", 1);
    build_u32(&b, "tokenizer.ggml.eos_token_id", 2);
    build_string(&b, "tokenizer.chat_template", template);
    require_ok(load_image(&b, &vocab, &err));
    return vocab;
}

/* Without a system text where the format refuses one. */
static int32_t count_special(const dpi_vocab *vocab, int32_t chat, const char *text,
                             size_t n_bytes) {
    dpi_error err = {0};
    size_t n = 0;
    int32_t n_special = 0;
    if (dpi_vocab_encode_prompt(vocab, chat, "s", 1, text, n_bytes, ids, MAX_IDS, &n, &err) !=
        DPI_STATUS_OK)
        require_ok(
            dpi_vocab_encode_prompt(vocab, chat, NULL, 0, text, n_bytes, ids, MAX_IDS, &n, &err));
    for (size_t i = 0; i < n; i++)
        n_special += dpi_vocab_is_control(vocab, ids[i]);
    return n_special;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes > MAX_BYTES)
        return 0;
    char *text = copy_text(data, n_bytes);
    dpi_error err = {0};
    int32_t chat = -2;
    if (dpi_chat_parse(text, &chat, &err) == DPI_STATUS_OK)
        require(strcmp(dpi_chat_name(chat), text) == 0);
    else
        require(chat == -2 && err.message[0]);
    dpi_vocab *vocab = load(text);
    chat = dpi_vocab_chat(vocab);
    require(chat == DPI_CHAT_UNKNOWN || (chat != DPI_CHAT_AUTO && dpi_chat_name(chat)));
    require(dpi_chat_name(dpi_vocab_chat_nearest(vocab)));
    if (chat >= DPI_CHAT_ZEPHYR && n_bytes > 0)
        require(count_special(vocab, chat, text, n_bytes) == count_special(vocab, chat, "a", 1));
    dpi_vocab_free(vocab);
    free(text);
    return 0;
}
