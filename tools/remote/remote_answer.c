/* remote_answer.c - see remote_answer.h; and what is sent, remote_body. */
#include "tools/remote/remote_answer.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/remote/remote.h"
#include "tools/shared/words_options.h"
#include "tools/terminal/cli.h"

char *remote_body(const remote_options *o, const char *prompt) {
    json_t *body = json_pack("{s:s, s:[{s:s, s:o}], s:i}", "model", o->model, "messages", "role",
                             "user", "content", words_string(prompt), o->limit, o->n_tokens);
    const bool ok = body && (isnan(o->temperature) ||
                             json_object_set_new(body, "temperature",
                                                 json_real(o->temperature)) == 0);
    char *text = ok ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

/* ---- The key --------------------------------------------------------------------------------- */

/* "u002d" of \u002d. */
static bool is_code_of(const char *text, char c) {
    char code[8];
    snprintf(code, sizeof code, "u%04x", (unsigned char)c);
    return strncasecmp(text, code, 5) == 0;
}

/* Bytes at the beginning of the text that spell the key: as it is, or with escapes of JSON, also of
 * JSON within JSON. 0: they do not. */
static size_t spelled(const char *text, const char *key) {
    const char *p = text;
    for (; *key; key++) {
        const size_t n = strspn(p, "\\");
        p += n;
        if (n > 0 && is_code_of(p, *key))
            p += 5;
        else if (*key != '\\' && *p++ != *key) /* a backslash of the key's own is among the n */
            return 0;
    }
    return (size_t)(p - text);
}

/* A copy of the text [n_bytes], with stars in the place of each whole key, and NUL as a space. The
 * caller frees it with dpi_private_free. NULL: no memory. */
static char *copy_without_key(const char *text, size_t n_bytes, const char *key) {
    char *copy = dpi_private_malloc(n_bytes + 1);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < n_bytes; i++)
        copy[i] = text[i] == '\0' ? ' ' : text[i];
    copy[n_bytes] = '\0';
    for (char *p = copy; key && *p;) {
        const size_t n = spelled(p, key), n_other = strspn(p, "\\");
        if (n > 0)
            memset(p, '*', n);
        p += n > 0 ? n : n_other > 0 ? n_other : 1;
    }
    return copy;
}

/* ---- Words of the server --------------------------------------------------------------------- */

static void copy_printable(const char *from, size_t n_bytes, char words[REMOTE_WORDS_BYTES]) {
    size_t n = 0;
    for (size_t i = 0; i < n_bytes && n + 1 < REMOTE_WORDS_BYTES; i++) {
        const char c = from[i];
        if (c >= ' ' && c <= '~')
            words[n++] = c;
        else if (n > 0 && words[n - 1] != ' ')
            words[n++] = ' ';
    }
    words[n] = '\0';
}

/* Its words for a message: the key goes before they are cut. */
static void words_of(const char *text, size_t n_bytes, const char *key,
                     char words[REMOTE_WORDS_BYTES]) {
    char *copy = copy_without_key(text, n_bytes, key);
    words[0] = '\0';
    if (copy)
        copy_printable(copy, n_bytes, words);
    dpi_private_free(copy);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* A refusal, or a call of a tool: of this prompt, and nothing is wrong with the server. */
static void tell_no_content(const dpi_json *message, const char *key) {
    dpi_json refusal;
    char *text, words[REMOTE_WORDS_BYTES] = "";
    size_t n_bytes;
    dpi_json_member(message, "refusal", &refusal);
    if (dpi_json_string(&refusal, &text, &n_bytes, NULL) == DPI_STATUS_OK && text)
        words_of(text, n_bytes, key, words);
    dpi_private_free(text);
    cli_note("note: the server sent an answer without content%s%s", words[0] ? ": " : "", words);
}

static int copy_content(const dpi_json *content, const char *key, char **text) {
    char *whole;
    size_t n_bytes;
    const bool has_memory = dpi_json_string(content, &whole, &n_bytes, NULL) == DPI_STATUS_OK;
    if (has_memory && !whole)
        return cli_fail(CLI_FAILED, "the server's answer has no string choices[0].message.content: "
                                    "it is no OpenAI-style server");
    *text = whole ? copy_without_key(whole, n_bytes, key) : NULL;
    dpi_private_free(whole);
    return *text ? CLI_OK : cli_no_memory("an answer");
}

int remote_answer(const char *answer, size_t n_bytes, const char *key, char **text) {
    dpi_json at, message, content;
    dpi_json_read(answer ? answer : "", n_bytes, &at);
    dpi_json_member(&at, "choices", &at);
    dpi_json_first(&at, &at);
    dpi_json_member(&at, "message", &message);
    dpi_json_member(&message, "content", &content);
    *text = NULL;
    if (message.type != DPI_JSON_OBJECT ||
        (content.type != DPI_JSON_NONE && content.type != DPI_JSON_NULL))
        return copy_content(&content, key, text);
    tell_no_content(&message, key);
    return CLI_OK;
}

void remote_words(const char *answer, size_t n_bytes, const char *key,
                  char words[REMOTE_WORDS_BYTES]) {
    dpi_json root, error, message;
    char *text;
    size_t n_text;
    dpi_json_read(answer ? answer : "", n_bytes, &root);
    dpi_json_member(&root, "error", &error);
    dpi_json_member(&error, "message", &message);
    if (error.type == DPI_JSON_STRING)
        message = error;
    if (message.type != DPI_JSON_STRING)
        dpi_json_member(&root, "message", &message);
    if (dpi_json_string(&message, &text, &n_text, NULL) == DPI_STATUS_OK && text)
        words_of(text, n_text, key, words);
    else
        words_of(answer, n_bytes, key, words);
    dpi_private_free(text);
}
