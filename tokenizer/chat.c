/* chat.c - chat formats: names, and prompts in the format of a table (chat_formats.h). */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/chat_formats.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"

/* ---- Names --------------------------------------------------------------------------------- */

#define NAME(value, name) [DPI_CHAT_##value] = name,
static const char *const names[] = {"auto", "none", DPI_CHAT_LIST(NAME)};
enum { N_NAMES = sizeof names / sizeof names[0] };

dpi_status dpi_chat_parse(const char *name, int32_t *chat, dpi_error *err) {
    if (!name || !chat)
        return dpi_fail(err, DPI_STATUS_ARG, "name and chat must not be NULL");
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(name, names[i]) == 0) {
            *chat = i;
            return DPI_STATUS_OK;
        }
    return dpi_fail(err, DPI_STATUS_ARG,
                    "chat template \"%.32s\" is unknown, must be one of " DPI_CHAT_NAMES, name);
}

const char *dpi_chat_name(int32_t chat) {
    return chat >= 0 && chat < N_NAMES ? names[chat] : NULL;
}

int32_t dpi_chat_without_thought(int32_t recognised) {
    switch (recognised) {
    case DPI_CHAT_UNKNOWN: return DPI_CHAT_NONE;
    case DPI_CHAT_QWQ: return DPI_CHAT_QWQ_CLOSED;
    case DPI_CHAT_DEEPSEEK_R1: return DPI_CHAT_DEEPSEEK_R1_CLOSED;
    default: return recognised;
    }
}

/* ---- Rendering ----------------------------------------------------------------------------- */

/* A prompt is a list of parts: ids of special tokens, and plain texts. Texts that touch are
 * encoded as one, so that merges cross their seams as in a string. */
typedef struct part {
    int32_t special;  /* -1: text */
    const char *text;
    size_t n_bytes;
} part;

/* Devstral's own system text may have 20 tokens; a turn of Granite has 14 parts. */
enum { MAX_PARTS = 64 + 16 * DPI_TURNS_MAX };

typedef struct prompt {
    const dpi_vocab *vocab;
    const dpi_chat_format *format;
    part parts[MAX_PARTS];
    int32_t n_parts;
    /* [n_missing] a special token that the format needs and the vocabulary lacks, NULL if none */
    const char *missing;
    size_t n_missing;
    char *system; /* [n_system] a copy of the system text where some of it is left out; owned */
    size_t n_system;
} prompt;

static void add_text(prompt *p, const char *text, size_t n_bytes) {
    if (n_bytes > 0)
        p->parts[p->n_parts++] = (part){-1, text, n_bytes};
}

static void add_id(prompt *p, int32_t id, const char *name, size_t n_name) {
    if (id >= 0) {
        p->parts[p->n_parts++] = (part){id, NULL, 0};
    } else if (!p->missing) {
        p->missing = name;
        p->n_missing = n_name;
    }
}

static int32_t find_special(const dpi_vocab *vocab, const char *text, size_t n_bytes) {
    int32_t id = dpi_vocab_find(vocab, text, n_bytes);
    if (id < 0)
        return -1;
    uint8_t type = vocab->tokens[id].type;
    return type == DPI_TOKEN_CONTROL || type == DPI_TOKEN_USER_DEFINED ? id : -1;
}

/* Text of a format. The first space of what begins a text is left to the encoder that adds one. */
static void add_literal(prompt *p, const char *text, size_t n_bytes) {
    const bool begins = p->n_parts == 0 || p->parts[p->n_parts - 1].special >= 0;
    if (begins && n_bytes > 0 && *text == ' ' && p->vocab->add_space_prefix)
        add_text(p, text + 1, n_bytes - 1);
    else
        add_text(p, text, n_bytes);
}

static bool is_thought(const char *marker, size_t n_bytes) {
    return (n_bytes == 7 && memcmp(marker, "<think>", 7) == 0) ||
           (n_bytes == 8 && memcmp(marker, "</think>", 8) == 0);
}

/* What a format writes itself. <...> and [...] are tokens where the vocabulary has them; `needed`:
 * it must, but for the marks of a thought, which are plain text to older vocabularies. */
static void add_markup(prompt *p, const char *text, bool needed) {
    const char *done = text;
    for (const char *at = text; *at; at++) {
        const char *end = *at == '<' ? strchr(at, '>') : *at == '[' ? strchr(at, ']') : NULL;
        const size_t n = end ? (size_t)(end + 1 - at) : 0;
        const int32_t id = n > 0 ? find_special(p->vocab, at, n) : -1;
        const bool is_eos = *at == *DPI_CHAT_EOS;
        if (id < 0 && !is_eos && (n == 0 || !needed || is_thought(at, n)))
            continue;
        add_literal(p, done, (size_t)(at - done));
        if (is_eos)
            add_id(p, p->vocab->eos, "EOS", 3);
        else
            add_id(p, id, at, n);
        at = is_eos ? at : end;
        done = at + 1;
    }
    add_literal(p, done, strlen(done));
}

typedef struct message {
    const char *system;
    size_t n_system; /* 0: none */
    const dpi_turn *turns; /* [n_turns] */
    size_t n_turns;
    const char *user;
    size_t n_user;
} message;

/* As the template does with the ends of the texts. */
static void trim_system(const dpi_chat_format *f, message *m) {
    if (f->flags & DPI_FORMAT_TRIM_SYSTEM)
        dpi_trim(&m->system, &m->n_system);
    if (f->flags & DPI_FORMAT_TRIM_SYSTEM_END)
        dpi_trim_end(m->system, &m->n_system);
}

/* `behind`: a system text stands before it in the same turn. */
static void trim_user(const dpi_chat_format *f, bool behind, const char **text, size_t *n_bytes) {
    if ((f->flags & DPI_FORMAT_TRIM_JOINED) && behind)
        dpi_trim_end(*text, n_bytes);
    else if (f->flags & (DPI_FORMAT_TRIM_USER | DPI_FORMAT_TRIM_JOINED))
        dpi_trim(text, n_bytes);
}

static void drop(size_t n, const char **text, size_t *n_bytes) {
    *text += n;
    *n_bytes -= n;
}

/* Takes off what stands before the end of the last thought, and that end; whether there was one. */
static bool drop_thought(const char **text, size_t *n_bytes) {
    static const char end[] = "</think>";
    bool found = false;
    for (const char *at; *n_bytes > 0 && (at = memmem(*text, *n_bytes, end, sizeof end - 1));
         found = true)
        drop((size_t)(at - *text) + sizeof end - 1, text, n_bytes);
    return found;
}

static void trim_said(const dpi_chat_format *f, const char **text, size_t *n_bytes) {
    if (f->flags & (DPI_FORMAT_TRIM_USER | DPI_FORMAT_TRIM_JOINED | DPI_FORMAT_TRIM_SAID))
        dpi_trim(text, n_bytes);
    const bool rest = (f->flags & DPI_FORMAT_DROPS_THOUGHT) && drop_thought(text, n_bytes);
    if ((f->flags & DPI_FORMAT_LINES_OFF_SAID) || (rest && (f->flags & DPI_FORMAT_LINES_OFF_REST)))
        while (*n_bytes > 0 && **text == '\n')
            drop(1, text, n_bytes);
}

/* Returns what goes before the user's text behind it. */
static const char *add_system(prompt *p, const message *m, bool given, bool needed) {
    const dpi_chat_format *f = p->format;
    add_markup(p, f->system[0], needed);
    if (given)
        add_text(p, m->system, m->n_system);
    else
        add_markup(p, f->own_system, false);
    add_markup(p, f->system[1], needed);
    return f->joined ? f->joined : f->user[0];
}

static void add_user(prompt *p, const char *before, const char *text, size_t n_bytes, bool needed) {
    trim_user(p->format, before != p->format->user[0], &text, &n_bytes);
    add_markup(p, before, needed);
    add_text(p, text, n_bytes);
    add_markup(p, p->format->user[1], needed);
}

static void add_said(prompt *p, const char *text, size_t n_bytes, bool needed) {
    trim_said(p->format, &text, &n_bytes);
    add_markup(p, p->format->said[0], needed);
    add_text(p, text, n_bytes);
    add_markup(p, p->format->said[1], needed);
}

/* The turns of a format; `given`: there is a system text of the caller. */
static void add_turns(prompt *p, const message *m, bool given) {
    const dpi_chat_format *f = p->format;
    const bool needed = !(f->flags & DPI_FORMAT_SPELLED);
    const bool has_system = given || f->own_system;
    const dpi_turn last = {m->user, NULL, m->n_user, 0};
    const size_t with_system = f->flags & DPI_FORMAT_SYSTEM_LAST ? m->n_turns : 0;
    for (size_t i = 0; i <= m->n_turns; i++) {
        const dpi_turn *t = i < m->n_turns ? &m->turns[i] : &last;
        const char *before = f->user[0];
        if (has_system && i == with_system)
            before = add_system(p, m, given, needed);
        add_user(p, before, t->user, t->n_user, needed);
        if (i < m->n_turns)
            add_said(p, t->answer, t->n_answer, needed);
    }
    add_markup(p, f->answer, needed);
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
        return dpi_no_memory(err, "the tokens of a prompt");
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
    const dpi_vocab *vocab = p->vocab;
    if (vocab->add_bos || ((p->format->flags & DPI_FORMAT_BOS) && vocab->bos >= 0))
        dpi_tokens_push(out, vocab->bos);
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

#define NO_THINK "/no_think"

/* The order not to think holds in any case here: it is taken out of the system text. */
static dpi_status drop_order(prompt *p, message *m, dpi_error *err) {
    const size_t n_order = strlen(NO_THINK);
    if (!(p->format->flags & DPI_FORMAT_SWITCHES) || m->n_system < n_order)
        return DPI_STATUS_OK;
    p->system = dpi_calloc(m->n_system, 1);
    if (!p->system)
        return dpi_no_memory(err, "the tokens of a prompt");
    p->n_system = m->n_system;
    size_t n = 0;
    for (size_t i = 0; i < m->n_system;)
        if (m->n_system - i >= n_order && memcmp(m->system + i, NO_THINK, n_order) == 0)
            i += n_order;
        else
            p->system[n++] = m->system[i++];
    m->system = p->system;
    m->n_system = n;
    return DPI_STATUS_OK;
}

/* Whether the format takes this system text, which NO_THINK was taken out of once. */
static dpi_status check_system(int32_t chat, const message *m, dpi_error *err) {
    static const char *const switches[] = {"/think", NO_THINK, "/system_override"};
    const dpi_chat_format *f = dpi_chat_format_of(chat);
    if (m->n_system == 0)
        return DPI_STATUS_OK;
    if (f->flags & DPI_FORMAT_REFUSES_SYSTEM)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "system: found a text, but the chat template %s has no place for one; put "
                        "it into the prompt", dpi_chat_name(chat));
    for (int i = 0; (f->flags & DPI_FORMAT_SWITCHES) && i < 3; i++)
        if (memmem(m->system, m->n_system, switches[i], strlen(switches[i])))
            return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                            "system: found %s, which is an order to the chat template %s, not a "
                            "text; leave it out", switches[i], dpi_chat_name(chat));
    return DPI_STATUS_OK;
}

static dpi_status render(prompt *p, int32_t chat, message m, dpi_error *err) {
    if (chat == DPI_CHAT_AUTO)
        chat = dpi_chat_without_thought(p->vocab->chat);
    p->format = dpi_chat_format_of(chat);
    if (!p->format)
        return dpi_fail(err, DPI_STATUS_ARG, "chat is %d, must be a dpi_chat, 0..%d", (int)chat,
                        N_NAMES - 1);
    DPI_TRY(drop_order(p, &m, err));
    DPI_TRY(check_system(chat, &m, err));
    if (p->format->flags & DPI_FORMAT_DROPS_SYSTEM)
        m.n_system = 0;
    bool given = m.n_system > 0;
    trim_system(p->format, &m);
    if (p->format->flags & DPI_FORMAT_TRIM_SYSTEM_END)
        given = m.n_system > 0;
    add_turns(p, &m, given);
    if (p->missing)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model's vocabulary has no token %.*s, which the chat template %s "
                        "needs", (int)p->n_missing, p->missing, dpi_chat_name(chat));
    return DPI_STATUS_OK;
}

dpi_status dpi_vocab_encode_turns(const dpi_vocab *vocab, int32_t chat, const char *system,
                                  size_t n_system, const dpi_turn *turns, size_t n_turns,
                                  const char *user, size_t n_user, int32_t *tokens,
                                  size_t capacity, size_t *n_tokens, dpi_error *err) {
    if ((!user && n_user > 0) || (!turns && n_turns > 0) || (!tokens && capacity > 0) || !n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "user, turns, tokens and n_tokens must not be NULL");
    if (n_turns > DPI_TURNS_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "turns: found %zu, allowed 0..%d", n_turns,
                        DPI_TURNS_MAX);
    message m = {system, system ? n_system : 0, turns, n_turns, user, n_user};
    prompt p = {.vocab = vocab};
    dpi_tokens out = {tokens, capacity, 0};
    dpi_status status = render(&p, chat, m, err);
    if (status == DPI_STATUS_OK)
        status = encode_parts(&p, &out, err);
    dpi_wipe_free(p.system, p.n_system);
    DPI_TRY(status);
    return dpi_tokens_finish(&out, n_tokens, err);
}

dpi_status dpi_vocab_encode_prompt(const dpi_vocab *vocab, int32_t chat, const char *system,
                                   size_t n_system, const char *user, size_t n_user,
                                   int32_t *tokens, size_t capacity, size_t *n_tokens,
                                   dpi_error *err) {
    return dpi_vocab_encode_turns(vocab, chat, system, n_system, NULL, 0, user, n_user, tokens,
                                  capacity, n_tokens, err);
}
