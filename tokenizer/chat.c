/* chat.c - chat formats: which one a model file wants, and fixed renderers for each. A
 * template in a file is looked at, never run (CVE-2024-34359).
 * Source: the chat templates published with TinyLlama-1.1B-Chat and Zephyr, Llama-2-chat,
 * Llama-3-Instruct and its successors, SmolLM2-Instruct (ChatML), Mistral-7B-Instruct v0.1 to v0.3.
 * What a template adds of its own is left out: SmolLM2's system message and the dates of Llama 3.1
 * are there only if the caller gives them as a system message. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/vocab.h"

/* ---- Names --------------------------------------------------------------------------------- */

static const struct {
    int32_t chat;
    const char *name;
} names[] = {
    {DPI_CHAT_AUTO, "auto"},     {DPI_CHAT_NONE, "none"},     {DPI_CHAT_ZEPHYR, "zephyr"},
    {DPI_CHAT_LLAMA2, "llama2"}, {DPI_CHAT_LLAMA3, "llama3"}, {DPI_CHAT_CHATML, "chatml"},
    {DPI_CHAT_MISTRAL, "mistral"},
};
enum { N_NAMES = sizeof names / sizeof names[0] };

dpi_status dpi_chat_parse(const char *name, int32_t *chat, dpi_error *err) {
    if (!name || !chat)
        return dpi_fail(err, DPI_STATUS_ARG, "name and chat must not be NULL");
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(name, names[i].name) == 0) {
            *chat = names[i].chat;
            return DPI_STATUS_OK;
        }
    return dpi_fail(err, DPI_STATUS_ARG,
                    "chat template \"%.32s\" is unknown, must be auto, none, zephyr, llama2, "
                    "llama3, chatml or mistral",
                    name);
}

const char *dpi_chat_name(int32_t chat) {
    for (int i = 0; i < N_NAMES; i++)
        if (names[i].chat == chat)
            return names[i].name;
    return NULL;
}

/* ---- Recognition --------------------------------------------------------------------------- */

static bool contains(const char *text, size_t n_bytes, const char *part) {
    return memmem(text, n_bytes, part, strlen(part)) != NULL;
}

/* Zephyr puts the end-of-text token after the user's words; others have <|user|> too but end the
 * turn differently (Falcon 3, Phi 3, GLM). So look from <|user|> to the next such marker. */
static bool user_turn_ends_with_eos(const char *text, size_t n_bytes) {
    static const char user[] = "<|user|>";
    const size_t n_user = sizeof user - 1;
    const char *end = text + n_bytes, *p = text;
    while ((p = memmem(p, (size_t)(end - p), user, n_user)) != NULL) {
        p += n_user;
        const char *next = memmem(p, (size_t)(end - p), "<|", 2);
        size_t n_turn = (size_t)((next ? next : end) - p);
        if (contains(p, n_turn, "eos_token") || contains(p, n_turn, "</s>"))
            return true;
    }
    return false;
}

int32_t dpi_chat_recognise(const char *text, size_t n_bytes) {
    /* Phi 4 and SmolVLM use <|im_start|> in formats of their own. */
    if (contains(text, n_bytes, "<|im_sep|>") || contains(text, n_bytes, "<end_of_utterance>"))
        return DPI_CHAT_UNKNOWN;
    if (contains(text, n_bytes, "<|im_start|>"))
        return DPI_CHAT_CHATML;
    if (contains(text, n_bytes, "<|start_header_id|>"))
        return DPI_CHAT_LLAMA3;
    if (contains(text, n_bytes, "[SYSTEM_PROMPT]")) /* Mistral's from 2024-11 on */
        return DPI_CHAT_UNKNOWN;
    if (contains(text, n_bytes, "[INST]"))
        return contains(text, n_bytes, "<<SYS>>") ? DPI_CHAT_LLAMA2 : DPI_CHAT_MISTRAL;
    return user_turn_ends_with_eos(text, n_bytes) ? DPI_CHAT_ZEPHYR : DPI_CHAT_UNKNOWN;
}

/* ---- Rendering ----------------------------------------------------------------------------- */

/* A prompt is a list of parts: ids of special tokens, and plain texts. Texts that touch are
 * encoded as one, so that merges cross their seams as in a string. */
typedef struct part {
    int32_t special;  /* -1: text */
    const char *text;
    size_t n_bytes;
} part;

enum { MAX_PARTS = 32 }; /* the longest format has 16 */

typedef struct prompt {
    const dpi_vocab *vocab;
    part parts[MAX_PARTS];
    int32_t n_parts;
    const char *missing; /* a special token that the format needs and the vocabulary lacks */
} prompt;

static void add_text(prompt *p, const char *text, size_t n_bytes) {
    p->parts[p->n_parts++] = (part){-1, text, n_bytes};
}

static void add_literal(prompt *p, const char *text) { add_text(p, text, strlen(text)); }

static void add_id(prompt *p, int32_t id, const char *name) {
    if (id >= 0)
        p->parts[p->n_parts++] = (part){id, NULL, 0};
    else if (!p->missing)
        p->missing = name;
}

static int32_t find_special(const dpi_vocab *vocab, const char *text) {
    int32_t id = dpi_vocab_find(vocab, text, strlen(text));
    if (id < 0)
        return -1;
    uint8_t type = vocab->tokens[id].type;
    return type == DPI_TOKEN_CONTROL || type == DPI_TOKEN_USER_DEFINED ? id : -1;
}

static void add_special(prompt *p, const char *text) {
    add_id(p, find_special(p->vocab, text), text);
}

/* A marker that some vocabularies have as a token and others spell out. */
static void add_marker(prompt *p, const char *text) {
    if (find_special(p->vocab, text) >= 0)
        add_special(p, text);
    else
        add_literal(p, text);
}

/* ASCII white space off the ends, as the published templates of Llama 2 and 3 do. */
static void trim_end(const char *text, size_t *n_bytes) {
    while (*n_bytes > 0 && dpi_is_space(text[*n_bytes - 1]))
        --*n_bytes;
}

static void trim(const char **text, size_t *n_bytes) {
    trim_end(*text, n_bytes);
    while (*n_bytes > 0 && dpi_is_space(**text)) {
        ++*text;
        --*n_bytes;
    }
}

typedef struct message {
    const char *system;
    size_t n_system; /* 0: none */
    const char *user;
    size_t n_user;
} message;

static void render_none(prompt *p, const message *m) {
    if (m->n_system > 0) {
        add_text(p, m->system, m->n_system);
        add_literal(p, "\n\n");
    }
    add_text(p, m->user, m->n_user);
}

static void zephyr_turn(prompt *p, const char *marker, const char *text, size_t n_bytes) {
    add_marker(p, marker);
    add_literal(p, "\n");
    add_text(p, text, n_bytes);
    add_id(p, p->vocab->eos, "EOS");
    add_literal(p, "\n");
}

static void render_zephyr(prompt *p, const message *m) {
    if (m->n_system > 0)
        zephyr_turn(p, "<|system|>", m->system, m->n_system);
    zephyr_turn(p, "<|user|>", m->user, m->n_user);
    add_marker(p, "<|assistant|>");
    add_literal(p, "\n");
}

static void render_llama2(prompt *p, const message *m) {
    const char *user = m->user;
    size_t n_user = m->n_user;
    add_literal(p, "[INST] ");
    if (m->n_system > 0) {
        add_literal(p, "<<SYS>>\n");
        add_text(p, m->system, m->n_system);
        add_literal(p, "\n<</SYS>>\n\n");
        trim_end(user, &n_user);
    } else {
        trim(&user, &n_user);
    }
    add_text(p, user, n_user);
    add_literal(p, " [/INST]");
}

/* [INST] is plain text in v0.1 and v0.2, with spaces inside, and a token in v0.3, where the only
 * space is the one that SPM puts in front of the user's words. System messages join those. */
static void render_mistral(prompt *p, const message *m) {
    bool tokens = find_special(p->vocab, "[INST]") >= 0;
    if (tokens)
        add_special(p, "[INST]");
    else
        add_literal(p, "[INST] ");
    if (m->n_system > 0) {
        add_text(p, m->system, m->n_system);
        add_literal(p, "\n\n");
    }
    add_text(p, m->user, m->n_user);
    if (tokens)
        add_special(p, "[/INST]");
    else
        add_literal(p, " [/INST]");
}

static void llama3_header(prompt *p, const char *role) {
    add_special(p, "<|start_header_id|>");
    add_literal(p, role);
    add_special(p, "<|end_header_id|>");
    add_literal(p, "\n\n");
}

static void llama3_turn(prompt *p, const char *role, const char *text, size_t n_bytes) {
    trim(&text, &n_bytes);
    llama3_header(p, role);
    add_text(p, text, n_bytes);
    add_special(p, "<|eot_id|>");
}

static void render_llama3(prompt *p, const message *m) {
    if (m->n_system > 0)
        llama3_turn(p, "system", m->system, m->n_system);
    llama3_turn(p, "user", m->user, m->n_user);
    llama3_header(p, "assistant");
}

static void chatml_turn(prompt *p, const char *role, const char *text, size_t n_bytes) {
    add_special(p, "<|im_start|>");
    add_literal(p, role);
    add_text(p, text, n_bytes);
    add_special(p, "<|im_end|>");
    add_literal(p, "\n");
}

static void render_chatml(prompt *p, const message *m) {
    if (m->n_system > 0)
        chatml_turn(p, "system\n", m->system, m->n_system);
    chatml_turn(p, "user\n", m->user, m->n_user);
    add_special(p, "<|im_start|>");
    add_literal(p, "assistant\n");
}

/* Encodes parts[begin, end), all of them texts, as one text. */
static dpi_status encode_texts(const prompt *p, int32_t begin, int32_t end, dpi_tokens *out,
                               dpi_error *err) {
    uint64_t n_bytes = 0;
    for (int32_t i = begin; i < end; i++)
        if (!dpi_add_u64(n_bytes, p->parts[i].n_bytes, &n_bytes))
            return dpi_fail(err, DPI_STATUS_ARG, "a prompt is too long");
    if (n_bytes == 0)
        return DPI_STATUS_OK;
    char *text = dpi_calloc((size_t)n_bytes, 1);
    if (!text)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory to encode a prompt");
    size_t used = 0;
    for (int32_t i = begin; i < end; i++) {
        if (p->parts[i].n_bytes > 0)
            memcpy(text + used, p->parts[i].text, p->parts[i].n_bytes);
        used += p->parts[i].n_bytes;
    }
    dpi_status status = dpi_vocab_encode_plain(p->vocab, text, used, out, err);
    dpi_wipe_free(text, used);
    return status;
}

static dpi_status encode_parts(const prompt *p, dpi_tokens *out, dpi_error *err) {
    for (int32_t i = 0; i < p->n_parts;) {
        int32_t end = i + 1;
        if (p->parts[i].special >= 0) {
            dpi_tokens_push(out, p->parts[i].special);
        } else {
            while (end < p->n_parts && p->parts[end].special < 0)
                end++;
            DPI_TRY(encode_texts(p, i, end, out, err));
        }
        i = end;
    }
    return DPI_STATUS_OK;
}

static dpi_status render(prompt *p, int32_t chat, const message *m, dpi_error *err) {
    if (chat == DPI_CHAT_AUTO)
        chat = p->vocab->chat == DPI_CHAT_UNKNOWN ? DPI_CHAT_NONE : p->vocab->chat;
    switch (chat) {
    case DPI_CHAT_NONE:
        render_none(p, m);
        break;
    case DPI_CHAT_ZEPHYR:
        render_zephyr(p, m);
        break;
    case DPI_CHAT_LLAMA2:
        render_llama2(p, m);
        break;
    case DPI_CHAT_LLAMA3:
        render_llama3(p, m);
        break;
    case DPI_CHAT_CHATML:
        render_chatml(p, m);
        break;
    case DPI_CHAT_MISTRAL:
        render_mistral(p, m);
        break;
    default:
        return dpi_fail(err, DPI_STATUS_ARG, "chat is %d, must be a dpi_chat, 0..6", (int)chat);
    }
    if (p->missing)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model's vocabulary has no token %s, which the chat template %s needs",
                        p->missing, dpi_chat_name(chat));
    return DPI_STATUS_OK;
}

dpi_status dpi_vocab_encode_prompt(const dpi_vocab *vocab, int32_t chat, const char *system,
                                   size_t n_system, const char *user, size_t n_user,
                                   int32_t *tokens, size_t capacity, size_t *n_tokens,
                                   dpi_error *err) {
    if ((!user && n_user > 0) || (!tokens && capacity > 0) || !n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "user, tokens and n_tokens must not be NULL");
    message m = {system, system ? n_system : 0, user, n_user};
    prompt p = {.vocab = vocab};
    DPI_TRY(render(&p, chat, &m, err));
    dpi_tokens out = {tokens, capacity, 0};
    if (vocab->add_bos)
        dpi_tokens_push(&out, vocab->bos);
    DPI_TRY(encode_parts(&p, &out, err));
    return dpi_tokens_finish(&out, n_tokens, err);
}
