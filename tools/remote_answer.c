/* remote_answer.c - see remote_answer.h; and what is sent, remote_body. */
#include "tools/remote_answer.h"

#include <jansson.h>
#include <string.h>

#include "tools/cli.h"
#include "tools/remote.h"
#include "tools/words_options.h"

char *remote_body(const remote_options *o, const char *prompt) {
    json_t *body = json_pack("{s:s, s:[{s:s, s:o}], s:f, s:i}", "model", o->model, "messages",
                             "role", "user", "content", words_string(prompt), "temperature",
                             o->temperature, "max_tokens", o->n_tokens);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

static const char *string_at(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

int remote_answer(const char *answer, size_t n_bytes, char **text) {
    json_t *root = json_loadb(answer ? answer : "", n_bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *content = json_object_get(json_object_get(choice, "message"), "content");
    int code = CLI_OK;
    if (!json_is_string(content)) {
        code = cli_fail(CLI_FAILED, "the server's answer has no string "
                                    "choices[0].message.content: it is no OpenAI-style server");
    } else {
        const size_t n = json_string_length(content);
        *text = dpi_private_malloc(n + 1);
        if (*text)
            memcpy(*text, json_string_value(content), n + 1);
        else
            code = cli_fail(CLI_FAILED, "out of memory for an answer");
    }
    json_decref(root);
    return code;
}

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

/* Stars in the place of each whole key. */
static void hide_key(char *text, const char *key) {
    const size_t n = key ? strlen(key) : 0;
    for (char *p = text; n > 0 && (p = strstr(p, key)) != NULL; p += n)
        memset(p, '*', n);
}

void remote_words(const char *answer, size_t n_bytes, const char *key,
                  char words[REMOTE_WORDS_BYTES]) {
    json_t *root = json_loadb(answer ? answer : "", n_bytes, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    const char *message = json_is_string(error) ? json_string_value(error)
                                                : string_at(error, "message");
    if (!message)
        message = string_at(root, "message");
    const size_t n = message ? strlen(message) : n_bytes;
    char *copy = dpi_private_malloc(n + 1); /* the key goes before the words are cut */
    words[0] = '\0';
    if (copy) {
        if (n > 0)
            memcpy(copy, message ? message : answer, n);
        for (size_t i = 0; i < n; i++)
            copy[i] = copy[i] == '\0' ? ' ' : copy[i];
        copy[n] = '\0';
        hide_key(copy, key);
        copy_printable(copy, n, words);
    }
    dpi_private_free(copy);
    json_decref(root);
}
