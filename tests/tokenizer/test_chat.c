/* test_chat.c - chat formats: names, recognition of templates, prompts token by token. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"
#include "tokenizer/chat_formats.h"

/* ---- Names --------------------------------------------------------------------------------- */

TEST(names_and_numbers_agree) {
    static const char *const few[] = {"auto", "none", "zephyr", "llama2", "llama3", "chatml"};
    char names[] = DPI_CHAT_NAMES, *rest = names, *name;
    int32_t chat, n = 0;
    for (; (name = strsep(&rest, "|")); n++) {
        assert_ok(dpi_chat_parse(name, &chat, ERR));
        assert_int_equal(chat, n);
        assert_string_equal(dpi_chat_name(n), name);
        if (n < 6)
            assert_string_equal(name, few[n]);
    }
    assert_null(dpi_chat_name(DPI_CHAT_UNKNOWN));
    assert_null(dpi_chat_name(n));
    chat = -9;
    assert_error(dpi_chat_parse("Zephyr", &chat, ERR), ARG, "\"Zephyr\" is unknown");
    assert_error(dpi_chat_parse("", &chat, ERR), ARG, "must be one of auto|none");
    assert_error(dpi_chat_parse(NULL, &chat, ERR), ARG, "NULL");
    assert_int_equal(chat, -9);
}

/* ---- Recognition --------------------------------------------------------------------------- */

/* The telling parts of published templates. */
static const struct {
    int32_t chat;
    const char *text;
} templates[] = {
    {DPI_CHAT_NONE, NULL},
    {DPI_CHAT_NONE, ""},
    /* TinyLlama-1.1B-Chat, Zephyr */
    {DPI_CHAT_ZEPHYR, "{% for message in messages %}\n{% if message['role'] == 'user' %}\n"
                      "{{ '<|user|>\\n' + message['content'] + eos_token }}\n"
                      "{% elif message['role'] == 'system' %}\n"
                      "{{ '<|system|>\\n' + message['content'] + eos_token }}"},
    {DPI_CHAT_ZEPHYR, "<|system|>\n{{ .System }}</s>\n<|user|>\n{{ .Prompt }}</s>\n"
                      "<|assistant|>\n"},
    /* Llama-2-chat */
    {DPI_CHAT_LLAMA2, "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' "
                      "%}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"},
    {DPI_CHAT_LLAMA2, "{% if messages[0]['role'] == 'system' %}{% set loop_messages = "
                      "messages[1:] %}{% set system_message = messages[0]['content'] %}"
                      "{% endif %}{% if loop.index0 == 0 and system_message != false %}"
                      "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' "
                      "+ message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
                      "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"},
    /* Llama-3-Instruct, Llama-3.1 and 3.2-Instruct */
    {DPI_CHAT_LLAMA3, "{% set content = '<|start_header_id|>' + message['role'] + "
                      "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"},
    {DPI_CHAT_LLAMA31, "{{- bos_token }}\n{%- if custom_tools is defined %}\n"
                      "{#- System message #}\n{{- \"<|start_header_id|>system"
                      "<|end_header_id|>\\n\\n\" }}\n{{- \"Cutting Knowledge Date: "
                      "December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + "
                      "\"\\n\\n\" }}\n{{- system_message }}\n{{- \"<|eot_id|>\" }}"},
    /* SmolLM2, with its system message, and the many others of this form */
    {DPI_CHAT_SMOLLM2, "{% for message in messages %}{% if loop.first and messages[0]['role'] "
                      "!= 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant "
                      "named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
                      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                      "'<|im_end|>' + '\n'}}{% endfor %}"},
    {DPI_CHAT_CHATML, "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                      "'<|im_end|>' + '\n'}}"},
    /* Mistral-7B-Instruct v0.1, v0.2 as first published, both in their later form, v0.3 */
    {DPI_CHAT_MISTRAL_V02, "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + "
                       "' [/INST]' }}{% elif message['role'] == 'assistant' %}"
                       "{{ message['content'] + eos_token + ' ' }}"},
    {DPI_CHAT_MISTRAL_V02, "{{ bos_token }}{% for message in messages %}{{ '[INST] ' + "
                       "message['content'] + ' [/INST]' }}{{ message['content'] + eos_token}}"},
    {DPI_CHAT_MISTRAL_V1, "{{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + "
                       "' [/INST]' }}"},
    {DPI_CHAT_MISTRAL_V3, "{{- \"[AVAILABLE_TOOLS] [\" }}{{- \"[INST] \" + message[\"content\"] "
                       "+ \"[/INST]\" }}"},
    /* Mistral Large, OLMo 2, Falcon 3, Phi 3, Phi 4; SmolVLM, and what is too little to tell */
    {DPI_CHAT_MISTRAL_V7, "{{- '[SYSTEM_PROMPT] ' + system_message + '[/SYSTEM_PROMPT]' }}"
                       "{{- '[INST] ' + message['content'] + '[/INST]' }}"},
    {DPI_CHAT_OLMO2, "{{ bos_token }}{{ '<|user|>\n' + message['content'] + '\n' }}"
                     "{{ '<|assistant|>\n' }}"},
    {DPI_CHAT_UNKNOWN, "{{ '<|user|>\n' + message['content'] + '\n' }}{% else %}"
                       "{{ '<|assistant|>\n' + message['content'] + eos_token + '\n' }}"},
    {DPI_CHAT_PHI3_MEDIUM, "{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + "
                       "'<|assistant|>' + '\n'}}{{ eos_token }}"},
    {DPI_CHAT_PHI4, "{{'<|im_start|>user<|im_sep|>' + message['content']}}"},
    {DPI_CHAT_GEMMA4, "{{- '<|turn>' + role + '\\n' -}}{{- message['content'] | trim -}}"
                      "{{- '<|turn>model\\n' -}}{{- '<|channel>thought\\n<channel|>' -}}"},
    {DPI_CHAT_GEMMA4_E2B, "{{- message['content'] | trim -}}{{- '<|turn>model\\n' -}}"},
    {DPI_CHAT_UNKNOWN, "<|im_start|>{{message['role']}}<end_of_utterance>"},
    {DPI_CHAT_UNKNOWN, "<start_of_turn>user"},
    {DPI_CHAT_UNKNOWN, "{{ '<|im_start|>system\\nYou are Hermes.<|im_end|>\\n' }}"},
    {DPI_CHAT_UNKNOWN, "<|user|>"},
    /* Firefunction, MiroThinker, and a DeepSeek-R1 that ends what the user says: like others */
    {DPI_CHAT_UNKNOWN, "'<|start_header_id|>' + ns.role + '<|end_header_id|>\n\n' "
                       "message['content'] | trim ' functools['"},
    {DPI_CHAT_UNKNOWN, "{%- set system_message.content = 'In' %}'<|im_start|>assistant\n' "
                       "enable_thinking '<think>\n\n</think>\n\n'"},
    {DPI_CHAT_UNKNOWN, "{{- '<｜User｜>' + message['content'] + '<｜end▁of▁sentence｜>' -}}"
                       "{{- '<｜Assistant｜><think>\n' -}}"},
    {DPI_CHAT_DEEPSEEK_R1, "{{- '<｜User｜>' + message['content'] -}}"
                           "{{- '<｜Assistant｜><think>\n' -}}"},
};

TEST(recognises_templates) {
    static pieces s;
    begin_pieces(&s, false);
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        const char *text = templates[i].text;
        dpi_vocab *vocab;
        LOAD(vocab, build_pieces(&b, &s);
             if (text) build_string(&b, "tokenizer.chat_template", text));
        if (dpi_vocab_chat(vocab) != templates[i].chat)
            fail_msg("%d, must be %d: %s", dpi_vocab_chat(vocab), templates[i].chat, text);
        dpi_vocab_free(vocab);
    }
}

TEST(says_what_a_template_looks_like) {
    static const struct {
        const char *text;
        int32_t nearest;
    } cases[] = {
        {"{{ '<|im_start|>system\nYou are Hermes.<|im_end|>\n' }}", DPI_CHAT_CHATML},
        {"<|im_start|><|im_sep|>", DPI_CHAT_PHI4},
        {"{% set system_message = 'You are' %}<|start_header_id|> | trim", DPI_CHAT_LLAMA3},
        {"default_system_message [SYSTEM_PROMPT][INST][/INST]", DPI_CHAT_MISTRAL_V7_TEKKEN},
        {"[INST] <<SYS>>", DPI_CHAT_LLAMA2},
        {"<start_of_turn>user", DPI_CHAT_GEMMA3},
        {"<|turn>user", DPI_CHAT_GEMMA4},
        {"<|user|>{{ message }}<|end|>", DPI_CHAT_PHI35},
        {"<|user|>", DPI_CHAT_OLMO2},
        {"{{ message }}", DPI_CHAT_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t nearest;
        assert_int_equal(dpi_chat_recognise(cases[i].text, strlen(cases[i].text), &nearest),
                         DPI_CHAT_UNKNOWN);
        assert_int_equal(nearest, cases[i].nearest);
    }
}

/* ---- Prompts of real vocabularies ------------------------------------------------------------ */

static void check_prompt(const dpi_vocab *vocab, int32_t chat, const char *system, const char *user,
                         const int32_t *wanted, size_t n_wanted) {
    int32_t ids[512];
    size_t n = 0;
    assert_ok(dpi_vocab_encode_prompt(vocab, chat, system, system ? strlen(system) : 0, user,
                                      strlen(user), ids, 512, &n, ERR));
    assert_same_ids(ids, n, wanted, n_wanted);
}

#define assert_prompt(vocab, chat, system, user, ...)                                              \
    do {                                                                                           \
        const int32_t ids_[] = {__VA_ARGS__};                                                      \
        check_prompt(vocab, chat, system, user, ids_, sizeof ids_ / sizeof ids_[0]);               \
    } while (0)

/* Ids as published for this vocabulary (github.com/lm-sys/FastChat/pull/3006, TinyLlama). */
TEST(renders_zephyr_for_tinyllama) {
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
TEST(renders_llama2) {
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
TEST(renders_llama3_for_llama3) {
    dpi_vocab *vocab = load_file("tokenizer/vocab-llama3-bpe.gguf");
    assert_prompt(vocab, DPI_CHAT_LLAMA3, "You are a helpful assistant", "Hello", 128000, 128006,
                  9125, 128007, 271, 2675, 527, 264, 11190, 18328, 128009, 128006, 882, 128007, 271,
                  9906, 128009, 128006, 78191, 128007, 271);
    assert_prompt(vocab, DPI_CHAT_LLAMA3, NULL, " Hello\n", 128000, 128006, 882, 128007, 271, 9906,
                  128009, 128006, 78191, 128007, 271);
    assert_prompt(vocab, DPI_CHAT_NONE, NULL, "Hello", 128000, 9906);
    dpi_vocab_free(vocab);
}

TEST(renders_plain_text) {
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

/* A part of the expected ids: a special token, or a text: the prefix space and one id per byte. */
typedef struct part {
    int32_t id;
    const char *text; /* NULL: the special token */
} part;

static size_t write_parts(const part *parts, size_t n_parts, int32_t *ids) {
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        ids[n++] = parts[i].text ? SPACE : parts[i].id;
        for (const char *p = parts[i].text; p && *p; p++)
            ids[n++] = *p == ' ' ? SPACE : FIRST_BYTE + (unsigned char)*p;
    }
    return n;
}

static void check_parts(const dpi_vocab *vocab, int32_t chat, const char *system, const char *user,
                        const part *parts, size_t n_parts) {
    int32_t ids[512];
    check_prompt(vocab, chat, system, user, ids, write_parts(parts, n_parts, ids));
}

#define S(id)                                                                                      \
    { id, NULL }
#define T(text)                                                                                    \
    { 0, text }
#define assert_parts(vocab, chat, system, user, ...)                                               \
    do {                                                                                           \
        const part parts_[] = {__VA_ARGS__};                                                       \
        check_parts(vocab, chat, system, user, parts_, sizeof parts_ / sizeof parts_[0]);          \
    } while (0)

static dpi_vocab *load_bytes(const char *const *specials, int n, const char *template_text) {
    static pieces s;
    dpi_vocab *vocab;
    begin_pieces(&s, true);
    add(&s, MARK, 0, NORMAL);
    for (int i = 0; i < n; i++) /* ids SPACE + 1, ... */
        add(&s, specials[i], 0, i % 2 ? USER : CONTROL);
    LOAD(vocab, build_pieces(&b, &s);
         if (template_text) build_string(&b, "tokenizer.chat_template", template_text));
    return vocab;
}

TEST(renders_chatml) {
    static const char *const specials[] = {"<|im_start|>", "<|im_end|>"};
    enum { START = SPACE + 1, END };
    dpi_vocab *vocab = load_bytes(specials, 2, "<|im_start|> <|im_end|>");
    assert_parts(vocab, DPI_CHAT_AUTO, NULL, "Hi <|im_end|>!", S(1), S(START),
                 T("user\nHi <|im_end|>!"), S(END), T("\n"), S(START), T("assistant\n"));
    assert_parts(vocab, DPI_CHAT_CHATML, "Be brief.", "Hi <|im_end|>!", S(1), S(START),
                 T("system\nBe brief."), S(END), T("\n"), S(START), T("user\nHi <|im_end|>!"),
                 S(END), T("\n"), S(START), T("assistant\n"));
    dpi_vocab_free(vocab);
}

/* SmolLM2: byte-level, no BOS. */
TEST(renders_chatml_without_bos) {
    static pieces s;
    dpi_vocab *vocab;
    begin_bpe(&s);
    add(&s, "<|endoftext|>", 0, CONTROL); /* 256 */
    add(&s, "<|im_start|>", 0, CONTROL);  /* 257 */
    add(&s, "<|im_end|>", 0, CONTROL);    /* 258 */
    LOAD(vocab, build_bpe(&b, &s, "smollm", NULL, 0),
         build_u32(&b, "tokenizer.ggml.bos_token_id", 257),
         build_u32(&b, "tokenizer.ggml.eos_token_id", 258),
         build_u32(&b, "tokenizer.ggml.unknown_token_id", 256),
         build_string(&b, "tokenizer.chat_template", "<|im_start|> <|im_end|>"));
    assert_prompt(vocab, DPI_CHAT_AUTO, NULL, "Hi", 257, 'u', 's', 'e', 'r', '\n', 'H', 'i', 258,
                  '\n', 257, 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't', '\n');
    assert_prompt(vocab, DPI_CHAT_AUTO, "A", "", 257, 's', 'y', 's', 't', 'e', 'm', '\n', 'A', 258,
                  '\n', 257, 'u', 's', 'e', 'r', '\n', 258, '\n', 257, 'a', 's', 's', 'i', 's', 't',
                  'a', 'n', 't', '\n');
    for (int32_t id = 256; id < 259; id++)
        assert_int_equal(dpi_vocab_is_eog(vocab, id), id != 257);
    dpi_vocab_free(vocab);
}

TEST(renders_llama3) {
    static const char *const specials[] = {"<|eot_id|>", "<|start_header_id|>",
                                           "<|end_header_id|>"};
    enum { EOT = SPACE + 1, START, END };
    dpi_vocab *vocab = load_bytes(specials, 3, "<|start_header_id|> | trim");
    assert_parts(vocab, DPI_CHAT_AUTO, "", "  Hi <|eot_id|>\n", S(1), S(START), T("user"), S(END),
                 T("\n\nHi <|eot_id|>"), S(EOT), S(START), T("assistant"), S(END), T("\n\n"));
    assert_parts(vocab, DPI_CHAT_LLAMA3, "\nBe brief. ", "  Hi <|eot_id|>\n", S(1), S(START),
                 T("system"), S(END), T("\n\nBe brief."), S(EOT), S(START), T("user"), S(END),
                 T("\n\nHi <|eot_id|>"), S(EOT), S(START), T("assistant"), S(END), T("\n\n"));
    dpi_vocab_free(vocab);
}

/* Earlier turns, as the documentation of each model writes a conversation. */
TEST(renders_turns) {
    static const char *const specials[] = {"<|im_start|>", "<|im_end|>", "<|eot_id|>",
                                           "<|start_header_id|>", "<|end_header_id|>"};
    enum { BOS = 1, EOS, START = SPACE + 1, END, EOT, HEAD, HEAD_END };
    static const dpi_turn turns[] = {{"A", "B</s>\n", 1, 6}, {"C", "D", 1, 1}};
    static const struct {
        int32_t chat;
        part parts[40];
    } cases[] = {
        {DPI_CHAT_NONE, {S(1), T("AB</s>\n\n\n---\n\nCD\n\n---\n\nE")}},
        {DPI_CHAT_QWEN3, {S(1), S(START), T("user\nA"), S(END), T("\n"), S(START),
                          T("assistant\nB</s>\n"), S(END), T("\n"), S(START), T("user\nC"), S(END),
                          T("\n"), S(START), T("assistant\nD"), S(END), T("\n"), S(START),
                          T("user\nE"), S(END), T("\n"), S(START),
                          T("assistant\n<think>\n\n</think>\n\n")}},
        {DPI_CHAT_LLAMA2, {S(1), T("[INST] A [/INST] B</s> "), S(EOS), S(BOS),
                           T("[INST] C [/INST] D "), S(EOS), S(BOS), T("[INST] E [/INST]")}},
        {DPI_CHAT_LLAMA3, {S(1), S(HEAD), T("user"), S(HEAD_END), T("\n\nA"), S(EOT), S(HEAD),
                           T("assistant"), S(HEAD_END), T("\n\nB</s>"), S(EOT), S(HEAD), T("user"),
                           S(HEAD_END), T("\n\nC"), S(EOT), S(HEAD), T("assistant"), S(HEAD_END),
                           T("\n\nD"), S(EOT), S(HEAD), T("user"), S(HEAD_END), T("\n\nE"), S(EOT),
                           S(HEAD), T("assistant"), S(HEAD_END), T("\n\n")}},
        {DPI_CHAT_MISTRAL_V1, {S(1), T("[INST] A [/INST] B</s>\n"), S(EOS), T("[INST] C [/INST] D"),
                               S(EOS), T("[INST] E [/INST]")}},
    };
    dpi_vocab *vocab = load_bytes(specials, 5, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[512], wanted[512];
        size_t n, n_wanted = 0, n_parts = 0;
        while (cases[i].parts[n_parts].id || cases[i].parts[n_parts].text)
            n_parts++;
        n_wanted = write_parts(cases[i].parts, n_parts, wanted);
        assert_ok(dpi_vocab_encode_turns(vocab, cases[i].chat, NULL, 0, turns, 2, "E", 1, ids, 512,
                                         &n, ERR));
        assert_same_ids(ids, n, wanted, n_wanted);
    }
    size_t n;
    assert_error(dpi_vocab_encode_turns(vocab, DPI_CHAT_NONE, NULL, 0, turns, DPI_TURNS_MAX + 1, "",
                                        0, NULL, 0, &n, ERR), LIMIT, "turns: found 65");
    dpi_vocab_free(vocab);
}

/* A thought that a template opens is closed, unless the format is asked for by its name. */
TEST(closes_thoughts) {
    static const char *const specials[] = {"<|im_start|>", "<|im_end|>"};
    enum { START = SPACE + 1, END };
    dpi_vocab *vocab = load_bytes(specials, 2, "'<|im_start|>assistant\n<think>\n'");
    assert_int_equal(dpi_vocab_chat(vocab), DPI_CHAT_QWQ);
    assert_parts(vocab, DPI_CHAT_AUTO, NULL, "Hi", S(1), S(START), T("user\nHi"), S(END), T("\n"),
                 S(START), T("assistant\n<think>\n</think>"));
    assert_parts(vocab, DPI_CHAT_QWQ, NULL, "Hi", S(1), S(START), T("user\nHi"), S(END), T("\n"),
                 S(START), T("assistant\n<think>\n"));
    for (int32_t chat = DPI_CHAT_UNKNOWN; dpi_chat_name(chat) || chat < 0; chat++) {
        const dpi_chat_format *f = dpi_chat_format_of(dpi_chat_without_thought(chat));
        const char *opened = f ? strstr(f->answer, "<think>") : NULL;
        assert_true(!opened || strstr(opened, "</think>"));
    }
    dpi_vocab_free(vocab);
}

/* As the model card of Gemma 4 has turns. Of whatever type the file has a marker, no document
 * writes it. */
TEST(renders_gemma4) {
    static const char *const specials[] = {"<|turn>", "<turn|>", "<|channel>", "<channel|>"};
    enum { BEGIN = SPACE + 1, END, CHANNEL, CHANNEL_END };
    dpi_vocab *vocab = load_bytes(specials, 4, "| trim '<|turn>model\n' "
                                               "'<|channel>thought\n<channel|>'");
    assert_parts(vocab, DPI_CHAT_AUTO, NULL, " Hi <turn|>\n", S(1), S(BEGIN),
                 T("user\nHi <turn|>"), S(END), T("\n"), S(BEGIN), T("model\n"), S(CHANNEL),
                 T("thought\n"), S(CHANNEL_END));
    assert_parts(vocab, DPI_CHAT_GEMMA4_E2B, " Be brief.\n", "Hi", S(1), S(BEGIN),
                 T("system\nBe brief."), S(END), T("\n"), S(BEGIN), T("user\nHi"), S(END), T("\n"),
                 S(BEGIN), T("model\n"));
    for (int32_t id = BEGIN; id <= CHANNEL_END; id++) {
        assert_int_equal(dpi_vocab_is_control(vocab, id), 1);
        assert_int_equal(dpi_vocab_is_eog(vocab, id), id == END);
    }
    dpi_vocab_free(vocab);
}

/* v0.1 and v0.2: <s>[INST] Hi [/INST], in words. */
TEST(renders_mistral_in_words) {
    dpi_vocab *vocab = load_bytes(NULL, 0, "{{ '[INST] ' + message['content'] + ' [/INST]' }}");
    assert_parts(vocab, DPI_CHAT_AUTO, NULL, "Hi </s>!", S(1), T("[INST] Hi </s>! [/INST]"));
    assert_parts(vocab, DPI_CHAT_MISTRAL_V1, "Be brief.", "Hi", S(1),
                 T("[INST] Be brief.\n\nHi [/INST]"));
    dpi_vocab_free(vocab);
}

/* v0.3: <s> [INST] "▁Hi" [/INST], where both markers are tokens and only SPM's space is between. */
TEST(renders_mistral_in_tokens) {
    static const char *const specials[] = {"[INST]", "<unused>", "[/INST]"};
    enum { BEGIN = SPACE + 1, END = SPACE + 3 };
    dpi_vocab *vocab = load_bytes(specials, 3, "{{ '[INST] ' + message['content'] + '[/INST]' }}");
    assert_parts(vocab, DPI_CHAT_AUTO, NULL, "Hi [/INST]!", S(1), S(BEGIN), T("Hi [/INST]!"),
                 S(END));
    assert_parts(vocab, DPI_CHAT_MISTRAL_V3, "Be brief.", "Hi", S(1), S(BEGIN),
                 T("Be brief.\n\nHi"), S(END));
    dpi_vocab_free(vocab);
}

/* Markers that the vocabulary has as tokens are tokens. */
TEST(renders_zephyr_with_marker_tokens) {
    static const char *const specials[] = {"<|user|>", "<|assistant|>"};
    enum { USER_MARK = SPACE + 1, ASSISTANT_MARK };
    dpi_vocab *vocab = load_bytes(specials, 2, NULL);
    assert_parts(vocab, DPI_CHAT_ZEPHYR, "Be brief.", "Hi", S(1), T("<|system|>\nBe brief."), S(2),
                 T("\n"), S(USER_MARK), T("\nHi"), S(2), T("\n"), S(ASSISTANT_MARK), T("\n"));
    dpi_vocab_free(vocab);
}

TEST(refuses_what_it_cannot_render) {
    static const char *const specials[] = {"<|im_start|>"};
    static const int32_t bad[] = {DPI_CHAT_UNKNOWN, 100, 1000};
    dpi_vocab *vocab = load_bytes(specials, 1, "a template that is not known");
    int32_t ids[64];
    size_t n = 99;
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_CHATML, NULL, 0, "a", 1, ids, 64, &n, ERR),
                 UNSUPPORTED, "no token <|im_end|>, which the chat template chatml");
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_LLAMA3, NULL, 0, "a", 1, ids, 64, &n, ERR),
                 UNSUPPORTED, "<|start_header_id|>");
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_SMOLLM3, "a /think", 8, "a", 1, ids, 64,
                                         &n, ERR),
                 UNSUPPORTED, "found /think, which is an order to the chat template smollm3");
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_SMOLLM3, "/th/no_thinkink", 15, "a", 1,
                                         ids, 64, &n, ERR),
                 UNSUPPORTED, "found /think, which");
    for (int i = 0; i < 3; i++)
        assert_error(dpi_vocab_encode_prompt(vocab, bad[i], NULL, 0, "a", 1, ids, 64, &n, ERR), ARG,
                     "must be a dpi_chat");
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_NONE, NULL, 0, NULL, 1, ids, 64, &n, ERR),
                 ARG, "NULL");
    assert_int_equal(n, 99);
    /* A template that is not recognised falls back to plain text; what does not fit is counted. */
    assert_error(dpi_vocab_encode_prompt(vocab, DPI_CHAT_AUTO, NULL, 0, "abc", 3, ids, 2, &n, ERR),
                 LIMIT, "buffer");
    assert_int_equal(n, 5);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], SPACE);
    dpi_vocab_free(vocab);
}
