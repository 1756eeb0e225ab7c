/* chat_formats.c - the chat formats, and the recognition of templates. A template in a file is
 * looked at, never run (CVE-2024-34359).
 * Source: the templates published with the models that are named here. Thinking is off wherever a
 * template can switch it off. A template that writes the day writes 26 July 2024, as that of Llama
 * 3.1 does where it is not told the day: a prompt is the same on every day. */
#define _GNU_SOURCE /* memmem */
#include "tokenizer/chat_formats.h"

#include <string.h>

#include "dpinfer/text.h"
#include "tokenizer/chat_texts.h"

#define LENGTH(table) (sizeof(table) / sizeof(table)[0])

/* ---- Formats --------------------------------------------------------------------------------- */

#define CHATML_ANSWER "<|im_start|>assistant\n"
#define CHATML                                                     \
    .system = {"<|im_start|>system\n", "<|im_end|>\n"},            \
    .user = {"<|im_start|>user\n", "<|im_end|>\n"}, .said = {CHATML_ANSWER, "<|im_end|>\n"}
#define QWQ CHATML, .flags = DPI_FORMAT_DROPS_THOUGHT | DPI_FORMAT_LINES_OFF_SAID
#define NO_THOUGHT "<think>\n\n</think>\n"
#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define LLAMA3                                                     \
    .flags = DPI_FORMAT_BOS | DPI_FORMAT_TRIM_SYSTEM | DPI_FORMAT_TRIM_USER, \
    .user = {HEADER("user"), "<|eot_id|>"}, .said = {HEADER("assistant"), "<|eot_id|>"}, \
    .answer = HEADER("assistant")
#define DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
#define LLAMA2(between)                                            \
    .flags = DPI_FORMAT_BOS | DPI_FORMAT_SPELLED | DPI_FORMAT_TRIM_JOINED, \
    .system = {"[INST] <<SYS>>\n", "\n<</SYS>>\n\n"}, .user = {"[INST] ", " [/INST]"}, \
    .joined = "", .said = {" ", " " DPI_CHAT_EOS between}, .answer = ""
#define SMOLLM3(date, end)                                         \
    .flags = DPI_FORMAT_TRIM_SYSTEM_END | DPI_FORMAT_SWITCHES | DPI_FORMAT_LINES_OFF_SAID, \
    .system = {"<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n" date \
               "Reasoning Mode: /no_think\n\n## Custom Instructions\n\n", "\n\n" end}, \
    .own_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face.", \
    .user = {"<|im_start|>user\n", "<|im_end|>\n"}, \
    .said = {CHATML_ANSWER NO_THOUGHT, "<|im_end|>\n"}, .answer = CHATML_ANSWER NO_THOUGHT
#define PHI3                                                       \
    .system = {"<|system|>\n", "<|end|>\n"}, .user = {"<|user|>\n", "<|end|>\n"}, \
    .said = {"<|assistant|>\n", "<|end|>\n"}, .answer = "<|assistant|>\n"
#define GEMMA                                                      \
    .user = {"<start_of_turn>user\n", "<end_of_turn>\n"}, \
    .said = {"<start_of_turn>model\n", "<end_of_turn>\n"}, .answer = "<start_of_turn>model\n"
#define GEMMA4                                                     \
    .flags = DPI_FORMAT_BOS | DPI_FORMAT_TRIM_SYSTEM | DPI_FORMAT_TRIM_USER, \
    .system = {"<|turn>system\n", "<turn|>\n"}, .user = {"<|turn>user\n", "<turn|>\n"}, \
    .said = {GEMMA4_ANSWER, "<turn|>\n"}
#define GEMMA4_ANSWER "<|turn>model\n"
#define MISTRAL_SYSTEM(space)                                      \
    .flags = DPI_FORMAT_BOS, .user = {"[INST]" space, "[/INST]"}, .answer = "", \
    .said = {space, DPI_CHAT_EOS}, .system = {"[SYSTEM_PROMPT]" space, "[/SYSTEM_PROMPT]"}
#define ROLE(role) "<|start_of_role|>" role "<|end_of_role|>"
#define GRANITE                                                    \
    .system = {ROLE("system"), "<|end_of_text|>\n"}, .user = {ROLE("user"), "<|end_of_text|>\n"}, \
    .said = {ROLE("assistant"), "<|end_of_text|>\n"}, .answer = ROLE("assistant")
#define DEEPSEEK(more)                                             \
    .flags = DPI_FORMAT_BOS | (more), .system = {"", ""}, .user = {"<｜User｜>", ""}, \
    .said = {DEEPSEEK_ANSWER, DPI_CHAT_EOS}
#define DEEPSEEK_ANSWER "<｜Assistant｜>"

static const dpi_chat_format formats[] = {
    /* No model was trained on a mark of these; this one begins a new document to all. */
    [DPI_CHAT_NONE] = {.system = {"", "\n\n"}, .user = {"", ""}, .said = {"", DPI_CHAT_MARK},
                       .answer = ""},
    [DPI_CHAT_ZEPHYR] = {.flags = DPI_FORMAT_SPELLED,
                         .system = {"<|system|>\n", DPI_CHAT_EOS "\n"},
                         .user = {"<|user|>\n", DPI_CHAT_EOS "\n"},
                         .said = {"<|assistant|>\n", DPI_CHAT_EOS "\n"},
                         .answer = "<|assistant|>\n"},
    [DPI_CHAT_LLAMA2] = {LLAMA2("<s>")},
    [DPI_CHAT_VIGOGNE] = {LLAMA2(""), .own_system = DPI_TEXT_VIGOGNE},
    [DPI_CHAT_LLAMA3] = {LLAMA3, .system = {HEADER("system"), "<|eot_id|>"}},
    [DPI_CHAT_LLAMA31] = {LLAMA3, .system = {HEADER("system") DATES, "<|eot_id|>"},
                          .own_system = ""},
    [DPI_CHAT_CHATML] = {CHATML, .answer = CHATML_ANSWER},
    [DPI_CHAT_SMOLLM2] = {CHATML, .answer = CHATML_ANSWER,
                          .own_system = "You are a helpful AI assistant named SmolLM, trained by "
                                        "Hugging Face"},
    [DPI_CHAT_SMOLLM3] = {SMOLLM3("Today Date: 26 July 2024\n", "")},
    [DPI_CHAT_SMOLLM3_UNSLOTH] = {SMOLLM3("", "<|im_end|>\n")},
    [DPI_CHAT_QWEN15] = {CHATML, .answer = CHATML_ANSWER,
                         .own_system = "You are a helpful assistant"},
    [DPI_CHAT_QWEN2] = {CHATML, .answer = CHATML_ANSWER,
                        .own_system = "You are a helpful assistant."},
    [DPI_CHAT_QWEN25] = {CHATML, .answer = CHATML_ANSWER,
                         .own_system = "You are Qwen, created by Alibaba Cloud. You are a helpful "
                                       "assistant."},
    [DPI_CHAT_QWEN3] = {CHATML, .answer = CHATML_ANSWER NO_THOUGHT "\n",
                        .flags = DPI_FORMAT_DROPS_THOUGHT | DPI_FORMAT_LINES_OFF_REST},
    [DPI_CHAT_QWEN35] = {CHATML, .answer = CHATML_ANSWER NO_THOUGHT "\n",
                         .flags = DPI_FORMAT_TRIM_SYSTEM | DPI_FORMAT_TRIM_USER |
                                  DPI_FORMAT_DROPS_THOUGHT | DPI_FORMAT_LINES_OFF_REST},
    [DPI_CHAT_QWQ] = {QWQ, .answer = CHATML_ANSWER "<think>\n"},
    [DPI_CHAT_QWQ_CLOSED] = {QWQ, .answer = CHATML_ANSWER "<think>\n</think>"},
    [DPI_CHAT_GEMMA2] = {GEMMA, .flags = DPI_FORMAT_BOS | DPI_FORMAT_TRIM_USER |
                                         DPI_FORMAT_REFUSES_SYSTEM},
    [DPI_CHAT_GEMMA3] = {GEMMA, .flags = DPI_FORMAT_BOS | DPI_FORMAT_TRIM_USER,
                         .system = {"<start_of_turn>user\n", "\n\n"}, .joined = ""},
    [DPI_CHAT_GEMMA4] = {GEMMA4, .answer = GEMMA4_ANSWER "<|channel>thought\n<channel|>"},
    [DPI_CHAT_GEMMA4_E2B] = {GEMMA4, .answer = GEMMA4_ANSWER}, /* and E4B: no empty thought */
    [DPI_CHAT_PHI3_MINI] = {PHI3, .flags = DPI_FORMAT_BOS | DPI_FORMAT_DROPS_SYSTEM},
    [DPI_CHAT_PHI3_MEDIUM] = {PHI3, .flags = DPI_FORMAT_DROPS_SYSTEM},
    [DPI_CHAT_PHI3_SMALL] = {PHI3, .flags = DPI_FORMAT_BOS},
    [DPI_CHAT_PHI35] = {PHI3},
    [DPI_CHAT_PHI4] = {.system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
                       .user = {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
                       .said = {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"},
                       .answer = "<|im_start|>assistant<|im_sep|>"},
    [DPI_CHAT_PHI4_MINI] = {.system = {"<|system|>", "<|end|>"}, .user = {"<|user|>", "<|end|>"},
                            .said = {"<|assistant|>", "<|end|>"}, .answer = "<|assistant|>"},
    [DPI_CHAT_MISTRAL_V02] = {.flags = DPI_FORMAT_BOS | DPI_FORMAT_SPELLED |
                                       DPI_FORMAT_REFUSES_SYSTEM,
                              .user = {"[INST] ", " [/INST]"}, .said = {"", DPI_CHAT_EOS},
                              .answer = ""},
    [DPI_CHAT_MISTRAL_V1] = {.flags = DPI_FORMAT_BOS | DPI_FORMAT_SPELLED,
                             .system = {" [INST] ", "\n\n"}, .user = {" [INST] ", " [/INST]"},
                             .joined = "", .said = {" ", DPI_CHAT_EOS}, .answer = ""},
    [DPI_CHAT_MISTRAL_V3] = {.flags = DPI_FORMAT_BOS | DPI_FORMAT_SYSTEM_LAST |
                                      DPI_FORMAT_TRIM_SAID,
                             .system = {"[INST] ", "\n\n"},
                             .user = {"[INST] ", "[/INST]"}, .joined = "",
                             .said = {" ", DPI_CHAT_EOS}, .answer = ""},
    [DPI_CHAT_MISTRAL_V3_TEKKEN] = {.flags = DPI_FORMAT_BOS | DPI_FORMAT_SYSTEM_LAST,
                                    .system = {"[INST]", "\n\n"},
                                    .user = {"[INST]", "[/INST]"}, .joined = "",
                                    .said = {"", DPI_CHAT_EOS}, .answer = ""},
    [DPI_CHAT_MISTRAL_V7] = {MISTRAL_SYSTEM(" ")},
    [DPI_CHAT_MISTRAL_V7_TEKKEN] = {MISTRAL_SYSTEM("")},
    [DPI_CHAT_MISTRAL_SMALL32] = {MISTRAL_SYSTEM(""), .own_system = DPI_TEXT_MISTRAL_SMALL},
    [DPI_CHAT_MINISTRAL3] = {MISTRAL_SYSTEM(""), .own_system = DPI_TEXT_MINISTRAL},
    [DPI_CHAT_DEVSTRAL] = {MISTRAL_SYSTEM(""), .own_system = __extension__ DPI_TEXT_DEVSTRAL},
    [DPI_CHAT_GRANITE] = {GRANITE},
    [DPI_CHAT_GRANITE33] = {GRANITE,
                            .own_system = "Knowledge Cutoff Date: April 2024. Today's Date: July "
                                          "26, 2024. You are Granite, developed by IBM. You are a "
                                          "helpful AI assistant."},
    [DPI_CHAT_GRANITE40] = {GRANITE,
                            .own_system = "You are a helpful assistant. Please ensure responses "
                                          "are professional, accurate, and safe."},
    [DPI_CHAT_OLMO2] = {.flags = DPI_FORMAT_BOS | DPI_FORMAT_SPELLED,
                        .system = {"<|system|>\n", "\n"}, .user = {"<|user|>\n", "\n"},
                        .said = {"<|assistant|>\n", DPI_CHAT_EOS "\n"},
                        .answer = "<|assistant|>\n"},
    [DPI_CHAT_DEEPSEEK] = {DEEPSEEK(0), .answer = DEEPSEEK_ANSWER},
    [DPI_CHAT_DEEPSEEK_R1] = {DEEPSEEK(DPI_FORMAT_DROPS_THOUGHT),
                              .answer = DEEPSEEK_ANSWER "<think>\n"},
    [DPI_CHAT_DEEPSEEK_R1_CLOSED] = {DEEPSEEK(DPI_FORMAT_DROPS_THOUGHT),
                                     .answer = DEEPSEEK_ANSWER "<think>\n</think>"},
};

const dpi_chat_format *dpi_chat_format_of(int32_t chat) {
    return chat > DPI_CHAT_AUTO && (size_t)chat < LENGTH(formats) ? &formats[chat] : NULL;
}

/* ---- Recognition ----------------------------------------------------------------------------- */

/* The first row whose texts `has` are all in the template, and of whose texts `lacks` none is; OWN
 * stands for a system text that the row does not know. In a template a line end is one or is
 * written \n: here it is one. */
#define OWN ""
static const struct {
    int32_t chat;
    const char *has[4], *lacks[5];
} signs[] = {
    {DPI_CHAT_UNKNOWN, {"<end_of_utterance>"}, {0}}, /* SmolVLM */
    {DPI_CHAT_PHI4, {"user<|im_sep|>"}, {"You are"}},
    {DPI_CHAT_SMOLLM2, {"You are a helpful AI assistant named SmolLM, trained by Hugging Face"
                        "<|im_end|>"}, {0}},
    {DPI_CHAT_SMOLLM3, {"## Custom Instructions\n\n", "Today Date: "}, {0}},
    {DPI_CHAT_SMOLLM3_UNSLOTH, {"## Custom Instructions\n\n", "named SmolLM"}, {0}},
    {DPI_CHAT_QWEN25, {"'<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a "
                       "helpful assistant.<|im_end|>\n'"}, {0}},
    {DPI_CHAT_QWEN2, {"'<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n'"}, {0}},
    {DPI_CHAT_QWEN15, {"'<|im_start|>system\nYou are a helpful assistant<|im_end|>\n'"}, {0}},
    {DPI_CHAT_QWEN35, {"<|im_start|>assistant\n", "'<think>\n\n</think>\n\n'", "render_content"},
     {0}},
    {DPI_CHAT_QWEN3, {"<|im_start|>assistant\n", "enable_thinking", "'<think>\n\n</think>\n\n'"},
     {"system_message.content = "}}, /* MiroThinker has a text of its own */
    {DPI_CHAT_QWQ_CLOSED, {"<|im_start|>assistant\n<think>\n'", "not enable_thinking",
                           "'</think>'"}, {0}},
    {DPI_CHAT_QWQ, {"<|im_start|>assistant\n<think>\n'"}, {"enable_thinking"}},
    {DPI_CHAT_CHATML, {"<|im_start|>assistant\n", "Zanim odpowiesz na pytanie"}, {0}}, /* Bielik */
    {DPI_CHAT_CHATML, {"<|im_start|>", "that can interact with a computer to solve tasks."}, {0}},
    {DPI_CHAT_CHATML, {"<|im_start|>", "<|im_end|>"}, {OWN, "enable_thinking", "<|im_sep|>",
                                            "assistant\n<think>", "You are a function"}},
    {DPI_CHAT_LLAMA31, {"<|start_header_id|>system<|end_header_id|>\n\n",
                        "\"Cutting Knowledge Date: December 2023\n\"", "\"Today Date: \""}, {0}},
    {DPI_CHAT_LLAMA3, {"<|start_header_id|>", "trim"}, {OWN, "Cutting Knowledge", "think",
                                                  "functools"}}, /* Firefunction */
    {DPI_CHAT_MISTRAL_SMALL32, {"[SYSTEM_PROMPT]", "You are Mistral Small 3, a Large",
                                "# WEB BROWSING INSTRUCTIONS", "# TOOL CALLING INSTRUCTIONS"}, {0}},
    {DPI_CHAT_MINISTRAL3, {"[SYSTEM_PROMPT]", "# HOW YOU SHOULD THINK AND ANSWER"}, {0}},
    {DPI_CHAT_DEVSTRAL, {"[SYSTEM_PROMPT]", "and using the OpenHands scaffold"}, {0}},
    {DPI_CHAT_MISTRAL_V7, {"[SYSTEM_PROMPT] ", "[INST] "}, {0}},
    {DPI_CHAT_MISTRAL_V7_TEKKEN, {"[SYSTEM_PROMPT]", "[INST]"}, {OWN, "[INST] "}},
    {DPI_CHAT_UNKNOWN, {"[SYSTEM_PROMPT]"}, {0}},
    {DPI_CHAT_VIGOGNE, {"<<SYS>>", "un assistant IA cr"}, {0}},
    {DPI_CHAT_LLAMA2, {"[INST] ", "<<SYS>>\n", "strip()"}, {OWN}},
    {DPI_CHAT_UNKNOWN, {"<<SYS>>"}, {0}},
    {DPI_CHAT_MISTRAL_V1, {"' [INST] '", "' [/INST]'", "system_message"}, {0}},
    {DPI_CHAT_MISTRAL_V02, {"'[INST] '", "' [/INST]'"}, {"system_message"}},
    {DPI_CHAT_MISTRAL_V3, {"[INST] ", "[/INST]"}, {" [/INST]"}},
    {DPI_CHAT_MISTRAL_V3_TEKKEN, {"[INST]", "[/INST]"}, {"[INST] ", " [/INST]"}},
    {DPI_CHAT_GEMMA3, {"<start_of_turn>", "first_user_prefix", "| trim"}, {0}},
    {DPI_CHAT_GEMMA2, {"<start_of_turn>", "System role not supported", "trim"}, {0}},
    {DPI_CHAT_GEMMA4, {"'<|turn>model\n'", "'<|channel>thought\n<channel|>'", "trim"}, {0}},
    {DPI_CHAT_GEMMA4_E2B, {"'<|turn>model\n'", "trim"}, {0}},
    {DPI_CHAT_GRANITE33, {"<|start_of_role|>", "Knowledge Cutoff Date: April 2024. Today's Date: ",
                          ". You are Granite, developed by IBM."}, {0}},
    {DPI_CHAT_GRANITE40, {"<|start_of_role|>", "Please ensure responses are professional, "
                                               "accurate, and safe."}, {0}},
    {DPI_CHAT_GRANITE, {"<|start_of_role|>"}, {OWN, "You are Granite", "Knowledge Cutoff Date"}},
    {DPI_CHAT_DEEPSEEK_R1_CLOSED, {"<｜Assistant｜><think>\n", "not enable_thinking", "</think>"},
     {0}},
    {DPI_CHAT_DEEPSEEK_R1, {"<｜Assistant｜><think>\n"},
     {"enable_thinking", "'<｜User｜>' + message['content'] + '<｜end▁of▁sentence｜>'"}},
    {DPI_CHAT_DEEPSEEK, {"<｜User｜>", "<｜Assistant｜>"}, {"think"}},
    {DPI_CHAT_PHI4_MINI, {"'|>' + message['content'] + '<|end|>'", "'<|assistant|>'"}, {0}},
    {DPI_CHAT_PHI3_SMALL, {"'|>' + '\n' + message['content'] + '<|end|>\n'", "{{ bos_token }}"},
     {0}},
    {DPI_CHAT_PHI35, {"'|>' + '\n' + message['content'] + '<|end|>\n'"}, {0}},
    {DPI_CHAT_PHI35, {"'<|user|>\n' + message['content'] + '<|end|>\n'", "'<|system|>\n'"}, {0}},
    {DPI_CHAT_PHI3_MINI, {"<|user|>' + '\n' + message['content'] + '<|end|>'", "{{ bos_token }}"},
     {"'system'"}},
    {DPI_CHAT_PHI3_MEDIUM, {"<|user|>' + '\n' + message['content'] + '<|end|>'"}, {"'system'"}},
    {DPI_CHAT_OLMO2, {"bos_token", "'<|user|>\n' + message['content'] + '\n'",
                      "'<|assistant|>\n'"}, {0}},
};

/* What a template that is not recognised looks like. */
static const struct {
    int32_t chat;
    const char *has;
} looks[] = {
    {DPI_CHAT_PHI4, "<|im_sep|>"},          {DPI_CHAT_CHATML, "<|im_start|>"},
    {DPI_CHAT_LLAMA3, "<|start_header_id|>"}, {DPI_CHAT_MISTRAL_V7_TEKKEN, "[SYSTEM_PROMPT]"},
    {DPI_CHAT_LLAMA2, "<<SYS>>"},           {DPI_CHAT_MISTRAL_V3, "[INST]"},
    {DPI_CHAT_GEMMA3, "<start_of_turn>"},   {DPI_CHAT_GRANITE, "<|start_of_role|>"},
    {DPI_CHAT_DEEPSEEK, "<｜User｜>"},      {DPI_CHAT_PHI35, "<|end|>"},
    {DPI_CHAT_OLMO2, "<|user|>"},           {DPI_CHAT_GEMMA4, "<|turn>"},
};

/* Bytes of `part` at a place of a template, where \n is a line end too; 0 if it is not there. */
static size_t match(const char *text, size_t n_bytes, const char *part) {
    size_t i = 0;
    for (; *part; part++) {
        if (i == n_bytes)
            return 0;
        if (*part == '\n' && text[i] == '\\' && n_bytes - i > 1 && text[i + 1] == 'n')
            i++;
        else if (text[i] != *part)
            return 0;
        i++;
    }
    return i;
}

/* Behind the first place of `part`; NULL if there is none. */
static const char *behind(const char *text, size_t n_bytes, const char *part) {
    for (size_t i = 0; i < n_bytes; i++) {
        const size_t n = match(text + i, n_bytes - i, part);
        if (n > 0)
            return text + i + n;
    }
    return NULL;
}

static bool contains(const char *text, size_t n_bytes, const char *part) {
    return behind(text, n_bytes, part) != NULL;
}

/* Zephyr puts the end-of-text token after the user's words; others have <|user|> too but end the
 * turn differently (Falcon 3, Phi 3, GLM). So look from <|user|> to the next such marker. */
static bool user_turn_ends_with_eos(const char *text, size_t n_bytes) {
    const char *end = text + n_bytes, *p = text;
    while ((p = behind(p, (size_t)(end - p), "<|user|>")) != NULL) {
        const char *next = memmem(p, (size_t)(end - p), "<|", 2);
        size_t n_turn = (size_t)((next ? next : end) - p);
        if (contains(p, n_turn, "eos_token") || contains(p, n_turn, "</s>"))
            return true;
    }
    return false;
}

/* A system text of a template's own begins with a letter, where others go on with the caller's. */
static bool has_own_system(const char *text, size_t n_bytes) {
    static const char *const places[] = {
        "<|im_start|>system\n",   "<<SYS>>\n",           "system_message = '",
        "system_message = \"",    "system_prompt = '",   "system_prompt = \"",
        "system<|end_header_id|>\n\n", "default_system_message",
    };
    const char *end = text + n_bytes;
    for (size_t i = 0; i < LENGTH(places); i++)
        for (const char *p = text; (p = behind(p, (size_t)(end - p), places[i])) != NULL;)
            if (p < end && ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z')))
                return true;
    return contains(text, n_bytes, "default_system");
}

static bool is_lacking(const char *text, size_t n_bytes, const char *sign) {
    return *sign ? !contains(text, n_bytes, sign) : !has_own_system(text, n_bytes);
}

static int32_t find_sign(const char *text, size_t n_bytes) {
    for (size_t i = 0; i < LENGTH(signs); i++) {
        bool fits = true;
        for (size_t k = 0; fits && k < LENGTH(signs[i].has) && signs[i].has[k]; k++)
            fits = contains(text, n_bytes, signs[i].has[k]);
        for (size_t k = 0; fits && k < LENGTH(signs[i].lacks) && signs[i].lacks[k]; k++)
            fits = is_lacking(text, n_bytes, signs[i].lacks[k]);
        if (fits)
            return signs[i].chat;
    }
    return user_turn_ends_with_eos(text, n_bytes) ? DPI_CHAT_ZEPHYR : DPI_CHAT_UNKNOWN;
}

int32_t dpi_chat_recognise(const char *text, size_t n_bytes, int32_t *nearest) {
    const int32_t chat = find_sign(text, n_bytes);
    *nearest = chat;
    if (chat != DPI_CHAT_UNKNOWN)
        return chat;
    *nearest = DPI_CHAT_NONE;
    for (size_t i = LENGTH(looks); i-- > 0;)
        if (contains(text, n_bytes, looks[i].has))
            *nearest = looks[i].chat;
    return DPI_CHAT_UNKNOWN;
}
