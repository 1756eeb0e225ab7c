/* decode.c - ids to UTF-8, one token at a time. Bytes go through a small automaton that lets
 * whole sequences out and replaces what cannot be UTF-8, one U+FFFD per maximal subpart (the
 * Unicode Standard, section 3.9, "U+FFFD substitution of maximal subparts"). */
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "tokenizer/vocab.h"

struct dpi_decoder {
    const dpi_vocab *vocab;
    unsigned char held[4]; /* the start of an unfinished sequence */
    int32_t n_held;
    int32_t n_needed;        /* bytes of that sequence */
    unsigned char low, high; /* range of its next byte */
    bool drop_space; /* the next character, if it is a space, is the one that encoding adds */
    char *text;      /* [capacity] output of one call */
    size_t n_text, capacity;
};

static const char replacement[3] = "\xef\xbf\xbd"; /* U+FFFD */

static void put(dpi_decoder *d, const void *bytes, size_t n_bytes) {
    if (d->vocab->kind->space_mark && n_bytes == strlen(DPI_SPACE_MARK) &&
        memcmp(bytes, DPI_SPACE_MARK, n_bytes) == 0) {
        bytes = " ";
        n_bytes = 1;
    }
    bool drop = d->drop_space && n_bytes == 1 && *(const char *)bytes == ' ';
    d->drop_space = false;
    if (drop)
        return;
    memcpy(d->text + d->n_text, bytes, n_bytes);
    d->n_text += n_bytes;
}

static void put_held(dpi_decoder *d) {
    if (d->n_held > 0)
        put(d, replacement, sizeof replacement);
    d->n_held = 0;
    dpi_wipe(d->held, sizeof d->held);
}

/* Begins a sequence of n bytes whose second one is in [low, high]. */
static void hold(dpi_decoder *d, unsigned char byte, int32_t n, unsigned char low,
                 unsigned char high) {
    d->held[0] = byte;
    d->n_held = 1;
    d->n_needed = n;
    d->low = low;
    d->high = high;
}

static void begin(dpi_decoder *d, unsigned char byte) {
    if (byte < 0x80)
        put(d, &byte, 1);
    else if (byte >= 0xc2 && byte <= 0xdf)
        hold(d, byte, 2, 0x80, 0xbf);
    else if (byte >= 0xe0 && byte <= 0xef) /* no overlong forms, no surrogates */
        hold(d, byte, 3, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf);
    else if (byte >= 0xf0 && byte <= 0xf4) /* no overlong forms, nothing past U+10FFFF */
        hold(d, byte, 4, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf);
    else
        put(d, replacement, sizeof replacement);
}

static void add_byte(dpi_decoder *d, unsigned char byte) {
    if (d->n_held == 0 || byte < d->low || byte > d->high) {
        put_held(d);
        begin(d, byte);
        return;
    }
    d->held[d->n_held++] = byte;
    d->low = 0x80;
    d->high = 0xbf;
    if (d->n_held == d->n_needed) {
        put(d, d->held, (size_t)d->n_held);
        d->n_held = 0;
    }
}

static void add_text(dpi_decoder *d, const dpi_token *t) {
    for (uint32_t i = 0; i < t->n_bytes; i++)
        add_byte(d, (unsigned char)t->text[i]);
}

static void add_plain(dpi_decoder *d, const dpi_token *t) {
    if (!d->vocab->kind->byte_level) {
        add_text(d, t);
        return;
    }
    for (size_t i = 0, used; i < t->n_bytes; i += used)
        add_byte(d, dpi_bpe_next_byte(t->text + i, t->n_bytes - i, &used));
}

int32_t dpi_vocab_drops_space(const dpi_vocab *vocab) { return vocab->add_space_prefix; }
int32_t dpi_vocab_marks_spaces(const dpi_vocab *vocab) { return vocab->kind->space_mark; }

/* A user-defined token may be followed by a space that is lost. */
size_t dpi_vocab_token_bytes(const dpi_vocab *vocab, int32_t token, uint8_t *bytes) {
    const dpi_token *t = &vocab->tokens[token];
    const size_t n_mark = strlen(DPI_SPACE_MARK);
    const bool is_user = t->type == DPI_TOKEN_USER_DEFINED;
    size_t n = 0;
    if (t->type == DPI_TOKEN_BYTE) {
        bytes[0] = t->byte;
        return 1;
    }
    if (t->type == DPI_TOKEN_UNKNOWN || t->type == DPI_TOKEN_CONTROL ||
        (is_user && vocab->add_space_prefix))
        return 0;
    for (size_t i = 0, used; i < t->n_bytes; i += used) {
        const char *at = t->text + i;
        const bool is_mark = vocab->kind->space_mark && t->n_bytes - i >= n_mark &&
                             memcmp(at, DPI_SPACE_MARK, n_mark) == 0;
        used = is_mark ? n_mark : 1;
        bytes[n++] = is_mark                                    ? ' '
                     : vocab->kind->byte_level && !is_user
                         ? dpi_bpe_next_byte(at, t->n_bytes - i, &used)
                         : (uint8_t)*at;
    }
    return n;
}

dpi_status dpi_vocab_decoder(const dpi_vocab *vocab, dpi_decoder **decoder, dpi_error *err) {
    dpi_decoder *d = dpi_calloc(1, sizeof *d);
    /* Each byte of a token can come out as a replacement, and so can the one held sequence. */
    size_t capacity = ((size_t)vocab->max_bytes + 2) * sizeof replacement;
    char *text = dpi_calloc(capacity, 1);
    if (!d || !text) {
        dpi_wipe_free(d, sizeof *d);
        dpi_wipe_free(text, capacity);
        return dpi_no_memory(err, "a decoder");
    }
    d->vocab = vocab;
    d->text = text;
    d->capacity = capacity;
    d->drop_space = vocab->add_space_prefix;
    *decoder = d;
    return DPI_STATUS_OK;
}

/* The encoder adds a space to a text that begins or that follows a special or user-defined token:
 * the same places lose one here, so that decoding is its inverse. */
dpi_status dpi_decoder_push(dpi_decoder *d, int32_t token, const char **text, size_t *n_bytes,
                            dpi_error *err) {
    if (!d || !text || !n_bytes)
        return dpi_fail(err, DPI_STATUS_ARG, "decoder, text and n_bytes must not be NULL");
    if (token < 0 || token >= d->vocab->n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "token is %d, must be 0..%d", (int)token,
                        (int)d->vocab->n_tokens - 1);
    const dpi_token *t = &d->vocab->tokens[token];
    d->n_text = 0;
    switch ((dpi_token_type)t->type) {
    case DPI_TOKEN_UNKNOWN: /* in the middle of a text: no space was added after it */
        put_held(d);
        break;
    case DPI_TOKEN_CONTROL:
        put_held(d);
        d->drop_space = d->vocab->add_space_prefix;
        break;
    case DPI_TOKEN_USER_DEFINED:
        d->drop_space = false;
        add_text(d, t);
        d->drop_space = d->vocab->add_space_prefix;
        break;
    case DPI_TOKEN_BYTE:
        add_byte(d, t->byte);
        break;
    case DPI_TOKEN_UNDEFINED:
    case DPI_TOKEN_NORMAL:
    case DPI_TOKEN_UNUSED:
        add_plain(d, t);
        break;
    }
    *text = d->text;
    *n_bytes = d->n_text;
    return DPI_STATUS_OK;
}

void dpi_decoder_finish(dpi_decoder *d, const char **text, size_t *n_bytes) {
    d->n_text = 0;
    put_held(d);
    d->drop_space = d->vocab->add_space_prefix;
    *text = d->text;
    *n_bytes = d->n_text;
}

void dpi_decoder_free(dpi_decoder *d) {
    if (!d)
        return;
    dpi_wipe_free(d->text, d->capacity);
    dpi_wipe_free(d, sizeof *d);
}

/* ---- For people ------------------------------------------------------------------------------ */

static dpi_status check_tokens(const dpi_vocab *v, const int32_t *tokens, size_t n,
                               dpi_error *err) {
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= v->n_tokens)
            return dpi_fail(err, DPI_STATUS_ARG, "token %d: allowed 0..%d", (int)tokens[i],
                            (int)v->n_tokens - 1);
    return DPI_STATUS_OK;
}

/* A token gives its bytes, at most three more where they are no UTF-8, or its name. */
dpi_status dpi_vocab_show(const dpi_vocab *v, const int32_t *tokens, size_t n_tokens, char **text,
                          dpi_error *err) {
    dpi_decoder *d = NULL;
    size_t n = 0;
    DPI_TRY(check_tokens(v, tokens, n_tokens, err));
    DPI_TRY(dpi_vocab_decoder(v, &d, err));
    char *made = dpi_private_malloc(n_tokens * 4 * ((size_t)v->max_bytes + 1) + 1);
    dpi_status status = made ? DPI_STATUS_OK : dpi_no_memory(err, "the tokens");
    for (size_t i = 0; i <= n_tokens && status == DPI_STATUS_OK; i++) {
        const dpi_token *t = i < n_tokens ? &v->tokens[tokens[i]] : NULL;
        const bool is_name = t && (t->type == DPI_TOKEN_CONTROL || t->type == DPI_TOKEN_UNKNOWN);
        const char *piece;
        size_t n_piece;
        if (t && !is_name)
            status = dpi_decoder_push(d, tokens[i], &piece, &n_piece, err);
        else
            dpi_decoder_finish(d, &piece, &n_piece);
        if (status == DPI_STATUS_OK && n_piece > 0)
            memcpy(made + n, piece, n_piece), n += n_piece;
        if (is_name)
            memcpy(made + n, t->text, t->n_bytes), n += t->n_bytes;
    }
    dpi_decoder_free(d);
    if (status != DPI_STATUS_OK) {
        dpi_private_free(made);
        return status;
    }
    made[n] = '\0';
    *text = made;
    return DPI_STATUS_OK;
}
