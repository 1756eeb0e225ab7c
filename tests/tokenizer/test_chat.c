/* test_chat.c - chat formats: names, recognition of templates, prompts token by token. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"

/* ---- Names --------------------------------------------------------------------------------- */

static void names_and_numbers_agree(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t chat;
    } list[] = {{"auto", 0},   {"none", 1},   {"zephyr", 2}, {"llama2", 3},
                {"llama3", 4}, {"chatml", 5}, {"mistral", 6}};
    dpi_error err = {0};
    for (int i = 0; i < 7; i++) {
        int32_t chat = -9;
        assert_ok(dpi_chat_parse(list[i].name, &chat, &err), &err);
        assert_int_equal(chat, list[i].chat);
        assert_string_equal(dpi_chat_name(chat), list[i].name);
    }
    assert_null(dpi_chat_name(DPI_CHAT_UNKNOWN));
    assert_null(dpi_chat_name(7));
    int32_t chat = -9;
    assert_error(dpi_chat_parse("Zephyr", &chat, &err), DPI_STATUS_ARG, &err,
                 "\"Zephyr\" is unknown");
    assert_error(dpi_chat_parse("", &chat, &err), DPI_STATUS_ARG, &err, "must be auto, none");
    assert_error(dpi_chat_parse(NULL, &chat, &err), DPI_STATUS_ARG, &err, "NULL");
    assert_int_equal(chat, -9);
}

/* ---- Recognition --------------------------------------------------------------------------- */

static int32_t recognised(const char *template_text) {
    static pieces s;
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    begin_pieces(&s, false);
    build_begin(&b);
    build_pieces(&b, &s);
    if (template_text)
        build_string(&b, "tokenizer.chat_template", template_text);
    assert_ok(load_image(&b, &vocab, &err), &err);
    int32_t chat = dpi_vocab_chat(vocab);
    dpi_vocab_free(vocab);
    return chat;
}

/* The telling parts of published templates. */
static void recognises_templates(void **state) {
    (void)state;
    assert_int_equal(recognised(NULL), DPI_CHAT_NONE);
    assert_int_equal(recognised(""), DPI_CHAT_NONE);
    /* TinyLlama-1.1B-Chat, Zephyr */
    assert_int_equal(
        recognised("{% for message in messages %}\n{% if message['role'] == 'user' %}\n"
                   "{{ '<|user|>\\n' + message['content'] + eos_token }}\n"
                   "{% elif message['role'] == 'system' %}\n"
                   "{{ '<|system|>\\n' + message['content'] + eos_token }}"),
        DPI_CHAT_ZEPHYR);
    assert_int_equal(recognised("<|system|>\n{{ .System }}</s>\n<|user|>\n{{ .Prompt }}</s>\n"
                                "<|assistant|>\n"), DPI_CHAT_ZEPHYR);
    /* Llama-2-chat */
    assert_int_equal(
        recognised("{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' "
                   "%}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"),
        DPI_CHAT_LLAMA2);
    assert_int_equal(
        recognised("{% if messages[0]['role'] == 'system' %}{% set loop_messages = "
                   "messages[1:] %}{% set system_message = messages[0]['content'] %}"
                   "{% endif %}{% if loop.index0 == 0 and system_message != false %}"
                   "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' "
                   "+ message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
                   "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"),
        DPI_CHAT_LLAMA2);
    /* Llama-3-Instruct, Llama-3.1 and 3.2-Instruct */
    assert_int_equal(
        recognised("{% set content = '<|start_header_id|>' + message['role'] + "
                   "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"),
        DPI_CHAT_LLAMA3);
    assert_int_equal(recognised("{{- bos_token }}\n{%- if custom_tools is defined %}\n"
                                "{#- System message #}\n{{- \"<|start_header_id|>system"
                                "<|end_header_id|>\\n\\n\" }}\n{{- \"Cutting Knowledge Date: "
                                "December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + "
                                "\"\\n\\n\" }}\n{{- system_message }}\n{{- \"<|eot_id|>\" }}"),
                     DPI_CHAT_LLAMA3);
}

static void recognises_later_templates(void **state) {
    (void)state;
    /* SmolLM2, with its system message, and the many others of this form */
    assert_int_equal(
        recognised("{% for message in messages %}{% if loop.first and messages[0]['role'] "
                   "!= 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant "
                   "named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
                   "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                   "'<|im_end|>' + '\n'}}{% endfor %}"),
        DPI_CHAT_CHATML);
    assert_int_equal(recognised("{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                                "'<|im_end|>' + '\n'}}"), DPI_CHAT_CHATML);
    /* Mistral-7B-Instruct v0.1, v0.2 as first published, both in their later form, v0.3 */
    assert_int_equal(
        recognised("{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + "
                   "' [/INST]' }}{% elif message['role'] == 'assistant' %}"
                   "{{ message['content'] + eos_token + ' ' }}"),
        DPI_CHAT_MISTRAL);
    assert_int_equal(recognised("{{ bos_token }}{% for message in messages %}{{ '[INST] ' + "
                                "message['content'] + ' [/INST]' }}{{ message['content'] + "
                                "eos_token}}"), DPI_CHAT_MISTRAL);
    assert_int_equal(recognised("{{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + "
                                "' [/INST]' }}"), DPI_CHAT_MISTRAL);
    assert_int_equal(
        recognised("{{- \"[AVAILABLE_TOOLS] [\" }}{{- \"[INST] \" + message[\"content\"] "
                   "+ \"[/INST]\" }}"),
        DPI_CHAT_MISTRAL);
}

/* Mistral's later ones, Falcon 3, Phi 3, Phi 4, SmolVLM, Gemma: known to be something else. */
static void recognises_no_others(void **state) {
    (void)state;
    assert_int_equal(recognised("{{- '[SYSTEM_PROMPT] ' + system_message + '[/SYSTEM_PROMPT]' }}"
                                "{{- '[INST] ' + message['content'] + '[/INST]' }}"),
                     DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("{{ '<|user|>\n' + message['content'] + '\n' }}{% else %}"
                                "{{ '<|assistant|>\n' + message['content'] + eos_token + '\n' }}"),
                     DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + "
                                "'<|assistant|>' + '\n'}}{{ eos_token }}"), DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("{{'<|im_start|>user<|im_sep|>' + message['content']}}"),
                     DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("<|im_start|>{{message['role']}}<end_of_utterance>"),
                     DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("<start_of_turn>user"), DPI_CHAT_UNKNOWN);
    assert_int_equal(recognised("<|user|>"), DPI_CHAT_UNKNOWN);
}

/* ---- Prompts of real vocabularies ------------------------------------------------------------ */

static void check_prompt(const dpi_vocab *vocab, int32_t chat, const char *system, const char *user,
                         const int32_t *wanted, size_t n_wanted) {
    int32_t ids[512];
    size_t n = 0;
    dpi_error err = {0};
    assert_ok(dpi_vocab_encode_prompt(vocab, chat, system, system ? strlen(system) : 0, user,
                                      strlen(user), ids, 512, &n, &err), &err);
    for (size_t i = 0; i < n && i < n_wanted; i++)
        if (ids[i] != wanted[i])
            fail_msg("token %zu is %d, must be %d", i, (int)ids[i], (int)wanted[i]);
    assert_int_equal(n, n_wanted);
}

#define assert_prompt(vocab, chat, system, user, ...)                                     \
    do {                                                                                  \
        const int32_t ids_[] = {__VA_ARGS__};                                             \
        check_prompt(vocab, chat, system, user, ids_, sizeof ids_ / sizeof ids_[0]);      \
    } while (0)

/* Ids as published for this vocabulary (github.com/lm-sys/FastChat/pull/3006, TinyLlama). */
static void renders_zephyr_for_tinyllama(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file("tokenizer/vocab-llama-spm.gguf");
    assert_prompt(vocab, DPI_CHAT_ZEPHYR, "You are an AI.", "What is up?", 1, 529, 29989, 5205,
                  29989, 29958, 13, 3492, 526, 385, 319, 29902, 29889, 2, 29871, 13, 29966, 29989,
                  1792, 29989, 29958, 13, 5618, 338, 701, 29973, 2, 29871, 13, 29966, 29989, 465,
                  22137, 29989, 29958, 13);
    assert_prompt(vocab, DPI_CHAT_ZEPHYR, NULL, "What is up?", 1, 529, 29989, 1792, 29989, 29958,
                  13, 5618, 338, 701, 29973, 2, 29871, 13, 29966, 29989, 465, 22137, 29989, 29958,
                  13);
    /* What the user says about </s> does not end the turn. */
    assert_prompt(vocab, DPI_CHAT_ZEPHYR, NULL, "up</s>", 1, 529, 29989, 1792, 29989, 29958, 13,
                  786, 829, 29879, 29958, 2, 29871, 13, 29966, 29989, 465, 22137, 29989, 29958, 13);
    dpi_vocab_free(vocab);
}

/* "[INST]" is 518 25580 29962, "<<SYS>>\n" 3532 14816 29903 6778 13 in Llama 2's documentation. */
static void renders_llama2(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file("tokenizer/vocab-llama-spm.gguf");
    assert_prompt(vocab, DPI_CHAT_LLAMA2, "You are a helpful assistant.", "Hello \n", 1, 518, 25580,
                  29962, 3532, 14816, 29903, 6778, 13, 3492, 526, 263, 8444, 20255, 29889, 13,
                  29966, 829, 14816, 29903, 6778, 13, 13, 10994, 518, 29914, 25580, 29962);
    assert_prompt(vocab, DPI_CHAT_LLAMA2, NULL, " \tHello\n", 1, 518, 25580, 29962, 15043, 518,
                  29914, 25580, 29962);
    dpi_vocab_free(vocab);
}

/* <|begin_of_text|> 128000, <|start_header_id|> 128006, <|end_header_id|> 128007, <|eot_id|>
 * 128009; user 882, system 9125, assistant 78191, a blank line 271: as in the model card of
 * Llama 3. */
static void renders_llama3_for_llama3(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file("tokenizer/vocab-llama3-bpe.gguf");
    assert_prompt(vocab, DPI_CHAT_LLAMA3, "You are a helpful assistant", "Hello", 128000, 128006,
                  9125, 128007, 271, 2675, 527, 264, 11190, 18328, 128009, 128006, 882, 128007, 271,
                  9906, 128009, 128006, 78191, 128007, 271);
    assert_prompt(vocab, DPI_CHAT_LLAMA3, NULL, " Hello\n", 128000, 128006, 882, 128007, 271, 9906,
                  128009, 128006, 78191, 128007, 271);
    assert_prompt(vocab, DPI_CHAT_NONE, NULL, "Hello", 128000, 9906);
    dpi_vocab_free(vocab);
}

static void renders_plain_text(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file("tokenizer/vocab-llama-spm.gguf");
    /* "Hello world" is 15043 3186 in the golden strings; 13 is a line feed. */
    assert_prompt(vocab, DPI_CHAT_NONE, NULL, "Hello world", 1, 15043, 3186);
    assert_prompt(vocab, DPI_CHAT_NONE, "Hello world", "Hello", 1, 15043, 3186, 13, 13, 10994);
    assert_prompt(vocab, DPI_CHAT_AUTO, NULL, "Hello world", 1, 15043, 3186);
    assert_prompt(vocab, DPI_CHAT_NONE, NULL, "", 1);
    dpi_vocab_free(vocab);
}

/* ---- Prompts of a vocabulary of bytes -------------------------------------------------------- */

enum { SPACE = FIRST_EXTRA };

/* Expected ids: special tokens as they are, texts with the prefix space and one id per byte. */
typedef struct expected {
    int32_t ids[512];
    size_t n;
} expected;

static void special(expected *e, int32_t id) { e->ids[e->n++] = id; }

static void plain(expected *e, const char *text) {
    e->ids[e->n++] = SPACE;
    for (; *text; text++)
        e->ids[e->n++] = *text == ' ' ? SPACE : FIRST_BYTE + (unsigned char)*text;
}

static dpi_vocab *load_bytes(const char *const *specials, int n, const char *template_text) {
    static pieces s;
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    begin_pieces(&s, true);
    add(&s, MARK, 0, NORMAL);
    for (int i = 0; i < n; i++) /* ids SPACE + 1, ... */
        add(&s, specials[i], 0, i % 2 ? USER : CONTROL);
    build_begin(&b);
    build_pieces(&b, &s);
    if (template_text)
        build_string(&b, "tokenizer.chat_template", template_text);
    assert_ok(load_image(&b, &vocab, &err), &err);
    return vocab;
}

static void renders_chatml(void **state) {
    (void)state;
    static const char *const specials[] = {"<|im_start|>", "<|im_end|>"};
    enum { START = SPACE + 1, END };
    dpi_vocab *vocab = load_bytes(specials, 2, "<|im_start|>");
    for (int with_system = 0; with_system < 2; with_system++) {
        expected e = {.n = 0};
        special(&e, 1);
        if (with_system) {
            special(&e, START);
            plain(&e, "system\nBe brief.");
            special(&e, END);
            plain(&e, "\n");
        }
        special(&e, START);
        plain(&e, "user\nHi <|im_end|>!");
        special(&e, END);
        plain(&e, "\n");
        special(&e, START);
        plain(&e, "assistant\n");
        check_prompt(vocab, with_system ? DPI_CHAT_CHATML : DPI_CHAT_AUTO,
                     with_system ? "Be brief." : NULL, "Hi <|im_end|>!", e.ids, e.n);
    }
    dpi_vocab_free(vocab);
}

/* SmolLM2: byte-level, no BOS, and no system message but the caller's. */
static void renders_chatml_without_bos(void **state) {
    (void)state;
    static pieces s;
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    begin_bpe(&s);
    add(&s, "<|endoftext|>", 0, CONTROL); /* 256 */
    add(&s, "<|im_start|>", 0, CONTROL);  /* 257 */
    add(&s, "<|im_end|>", 0, CONTROL);    /* 258 */
    build_begin(&b);
    build_bpe(&b, &s, "smollm", NULL, 0);
    build_u32(&b, "tokenizer.ggml.bos_token_id", 257);
    build_u32(&b, "tokenizer.ggml.eos_token_id", 258);
    build_u32(&b, "tokenizer.ggml.unknown_token_id", 256);
    build_string(&b, "tokenizer.chat_template", "{{ '<|im_start|>system\nYou are a helpful AI "
                                                "assistant named SmolLM'}}");
    assert_ok(load_image(&b, &vocab, &err), &err);
    assert_prompt(vocab, DPI_CHAT_AUTO, NULL, "Hi", 257, 'u', 's', 'e', 'r', '\n', 'H', 'i', 258,
                  '\n', 257, 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't', '\n');
    assert_prompt(vocab, DPI_CHAT_AUTO, "A", "", 257, 's', 'y', 's', 't', 'e', 'm', '\n', 'A', 258,
                  '\n', 257, 'u', 's', 'e', 'r', '\n', 258, '\n', 257, 'a', 's', 's', 'i', 's', 't',
                  'a', 'n', 't', '\n');
    for (int32_t id = 256; id < 259; id++)
        assert_int_equal(dpi_vocab_is_eog(vocab, id), id != 257);
    dpi_vocab_free(vocab);
}

static void renders_llama3(void **state) {
    (void)state;
    static const char *const specials[] = {"<|eot_id|>", "<|start_header_id|>",
                                           "<|end_header_id|>"};
    enum { EOT = SPACE + 1, START, END };
    dpi_vocab *vocab = load_bytes(specials, 3, "<|start_header_id|>");
    for (int with_system = 0; with_system < 2; with_system++) {
        expected e = {.n = 0};
        special(&e, 1);
        if (with_system) {
            special(&e, START);
            plain(&e, "system");
            special(&e, END);
            plain(&e, "\n\nBe brief.");
            special(&e, EOT);
        }
        special(&e, START);
        plain(&e, "user");
        special(&e, END);
        plain(&e, "\n\nHi <|eot_id|>");
        special(&e, EOT);
        special(&e, START);
        plain(&e, "assistant");
        special(&e, END);
        plain(&e, "\n\n");
        check_prompt(vocab, with_system ? DPI_CHAT_LLAMA3 : DPI_CHAT_AUTO,
                     with_system ? "\nBe brief. " : "", "  Hi <|eot_id|>\n", e.ids, e.n);
    }
    dpi_vocab_free(vocab);
}

/* v0.1 and v0.2: <s>[INST] Hi [/INST], in words. */
static void renders_mistral_in_words(void **state) {
    (void)state;
    dpi_vocab *vocab = load_bytes(NULL, 0, "{{ '[INST] ' + message['content'] + ' [/INST]' }}");
    expected e = {.n = 0};
    special(&e, 1);
    plain(&e, "[INST] Hi </s>! [/INST]");
    check_prompt(vocab, DPI_CHAT_AUTO, NULL, "Hi </s>!", e.ids, e.n);
    e.n = 0;
    special(&e, 1);
    plain(&e, "[INST] Be brief.\n\nHi [/INST]");
    check_prompt(vocab, DPI_CHAT_MISTRAL, "Be brief.", "Hi", e.ids, e.n);
    dpi_vocab_free(vocab);
}

/* v0.3: <s> [INST] "▁Hi" [/INST], where both markers are tokens and only SPM's space is between. */
static void renders_mistral_in_tokens(void **state) {
    (void)state;
    static const char *const specials[] = {"[INST]", "<unused>", "[/INST]"};
    enum { BEGIN = SPACE + 1, END = SPACE + 3 };
    dpi_vocab *vocab = load_bytes(specials, 3, "{{ '[INST] ' + message['content'] + '[/INST]' }}");
    expected e = {.n = 0};
    special(&e, 1);
    special(&e, BEGIN);
    plain(&e, "Hi [/INST]!");
    special(&e, END);
    check_prompt(vocab, DPI_CHAT_AUTO, NULL, "Hi [/INST]!", e.ids, e.n);
    e.n = 0;
    special(&e, 1);
    special(&e, BEGIN);
    plain(&e, "Be brief.\n\nHi");
    special(&e, END);
    check_prompt(vocab, DPI_CHAT_MISTRAL, "Be brief.", "Hi", e.ids, e.n);
    dpi_vocab_free(vocab);
}

/* Markers that the vocabulary has as tokens are tokens. */
static void renders_zephyr_with_marker_tokens(void **state) {
    (void)state;
    static const char *const specials[] = {"<|user|>", "<|assistant|>"};
    enum { USER_MARK = SPACE + 1, ASSISTANT_MARK };
    dpi_vocab *vocab = load_bytes(specials, 2, NULL);
    expected e = {.n = 0};
    special(&e, 1);
    plain(&e, "<|system|>\nBe brief.");
    special(&e, 2);
    plain(&e, "\n");
    special(&e, USER_MARK);
    plain(&e, "\nHi");
    special(&e, 2);
    plain(&e, "\n");
    special(&e, ASSISTANT_MARK);
    plain(&e, "\n");
    check_prompt(vocab, DPI_CHAT_ZEPHYR, "Be brief.", "Hi", e.ids, e.n);
    dpi_vocab_free(vocab);
}

static void refuses_what_it_cannot_render(void **state) {
    (void)state;
    static const char *const specials[] = {"<|im_start|>"};
    dpi_vocab *vocab = load_bytes(specials, 1, "a template that is not known");
    dpi_error err = {0};
    int32_t ids[64];
    size_t n = 99;
    assert_error(
        dpi_vocab_encode_prompt(vocab, DPI_CHAT_CHATML, NULL, 0, "a", 1, ids, 64, &n, &err),
        DPI_STATUS_UNSUPPORTED, &err, "no token <|im_end|>, which the chat template chatml");
    assert_error(
        dpi_vocab_encode_prompt(vocab, DPI_CHAT_LLAMA3, NULL, 0, "a", 1, ids, 64, &n, &err),
        DPI_STATUS_UNSUPPORTED, &err, "<|start_header_id|>");
    static const int32_t bad[] = {DPI_CHAT_UNKNOWN, 7, 1000};
    for (int i = 0; i < 3; i++)
        assert_error(dpi_vocab_encode_prompt(vocab, bad[i], NULL, 0, "a", 1, ids, 64, &n, &err),
                     DPI_STATUS_ARG, &err, "must be a dpi_chat");
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_NONE, NULL, 0, NULL, 1, ids, 64, &n, &err),
                 DPI_STATUS_ARG, &err, "NULL");
    assert_int_equal(n, 99);
    /* A template that is not recognised falls back to plain text; what does not fit is counted. */
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_AUTO, NULL, 0, "abc", 3, ids, 2, &n, &err),
                 DPI_STATUS_LIMIT, &err, "buffer");
    assert_int_equal(n, 5);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], SPACE);
    dpi_vocab_free(vocab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_agree),
        cmocka_unit_test(recognises_templates),
        cmocka_unit_test(recognises_later_templates),
        cmocka_unit_test(recognises_no_others),
        cmocka_unit_test(renders_zephyr_for_tinyllama),
        cmocka_unit_test(renders_llama2),
        cmocka_unit_test(renders_llama3_for_llama3),
        cmocka_unit_test(renders_plain_text),
        cmocka_unit_test(renders_chatml),
        cmocka_unit_test(renders_llama3),
        cmocka_unit_test(renders_mistral_in_words),
        cmocka_unit_test(renders_mistral_in_tokens),
        cmocka_unit_test(renders_chatml_without_bos),
        cmocka_unit_test(renders_zephyr_with_marker_tokens),
        cmocka_unit_test(refuses_what_it_cannot_render),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
