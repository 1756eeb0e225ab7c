/* attack_remote.c - see attack_remote.h. */
#include "tools/remote/attack_remote.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/shared/words_report.h"

/* Words of a request, and what an answer may take for each. */
enum { WORDS = 50, WORD_TOKENS = 24 };

/* Tong et al. 2025, Appendix D; the list of words stands between the two. */
static const char head[] =
    "Given a list of tokens, denoted as \"INPUTS,\" which have been subjected to text perturbation "
    "through differential privacy techniques, your task is to recover each token in the list to "
    "its most likely original one.\n"
    "As an example, consider the list \"INPUTS\":\n"
    "[\"Privacy\", \"LLM\", \"Text\"].\n"
    "The expected output format should be:\n"
    "[\n[\"Prediction\"], # Corresponding to \"Privacy\"\n[\"Prediction\"], # Corresponding to "
    "\"LLM\"\n[\"Prediction\"] # Corresponding to \"Text\"\n]\n"
    "\"Prediction\" represents the most plausible original tokens before perturbation.\n"
    "For the given list of \"INPUTS\":\n";
static const char tail[] = "\nGenerate predictions for each token in the list.";

/* The words of a document, and the guesses that are there. */
typedef struct document {
    const char **words; /* [n] the attack's */
    char **guesses;     /* [n] NULL: none */
    size_t n, n_sent, n_answered;
} document;

int attack_remote_tokens(void) { return WORDS * WORD_TOKENS; }

/* ---- What is sent --------------------------------------------------------------------------- */

static char *make_prompt(const char *const *words, size_t n) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = json_array_append_new(list, words_string(words[i])) == 0;
    char *text = ok ? json_dumps(list, 0) : NULL;
    json_decref(list);
    char *prompt = text ? dpi_private_malloc(sizeof head + strlen(text) + sizeof tail) : NULL;
    if (prompt)
        strcat(strcat(strcpy(prompt, head), text), tail);
    dpi_private_free(text);
    return prompt;
}

/* ---- What is answered ------------------------------------------------------------------------ */

/* The end of the string that begins at the quotation mark of text; NULL: it has none. */
static const char *end_of_string(const char *text) {
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && *++text == '\0')
            return NULL;
    return *text ? text : NULL;
}

/* The strings of an answer in their order, comments left out: a model seldom keeps to a format. */
static void read_guesses(const char *text, char **guesses, size_t n) {
    for (size_t i = 0; i < n && *text; text++) {
        if (*text == '#')
            text += strcspn(text, "\n");
        if (*text == '\0')
            return;
        if (*text != '"')
            continue;
        const char *end = end_of_string(text);
        if (!end)
            return;
        json_t *value = json_loadb(text, (size_t)(end - text) + 1, JSON_DECODE_ANY, NULL);
        guesses[i++] = value ? strdup(json_string_value(value)) : NULL;
        json_decref(value);
        text = end;
    }
}

/* ---- Documents ------------------------------------------------------------------------------- */

static int open_document(const dpi_attack *attack, size_t index, document *d) {
    dpi_error err;
    *d = (document){0};
    if (dpi_attack_shown(attack, index, NULL, 0, &d->n, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    d->words = calloc(d->n + 1, sizeof *d->words);
    d->guesses = calloc(d->n + 1, sizeof *d->guesses);
    if (!d->words || !d->guesses)
        return cli_no_memory("guesses");
    if (dpi_attack_shown(attack, index, d->words, d->n, &d->n, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return CLI_OK;
}

static void close_document(document *d) {
    for (size_t i = 0; d->guesses && i < d->n; i++)
        free(d->guesses[i]);
    free(d->guesses);
    free(d->words);
}

static size_t part_of(size_t n, size_t at) { return n - at < WORDS ? n - at : WORDS; }

static int send_part(remote *r, document *d, int *place) {
    const size_t n = part_of(d->n, d->n_sent);
    char *prompt = make_prompt(d->words + d->n_sent, n);
    const int code = prompt ? remote_send(r, prompt, place) : cli_no_memory("guesses");
    dpi_private_free(prompt);
    d->n_sent += n;
    return code;
}

static int receive_part(remote *r, document *d, int place) {
    char *text = NULL;
    const size_t n = part_of(d->n, d->n_answered);
    const int code = remote_answer_of(r, place, &text);
    if (code == CLI_OK && text)
        read_guesses(text, d->guesses + d->n_answered, n);
    dpi_private_free(text);
    d->n_answered += n;
    return code;
}

/* Requests of one document are in flight at a time, as many as are allowed. */
static int guess_document(remote *r, int n_in_flight, document *d) {
    int places[REMOTE_MOST_IN_FLIGHT], first = 0, n = 0, code = CLI_OK;
    while (code == CLI_OK && d->n_answered < d->n) {
        while (code == CLI_OK && n < n_in_flight && d->n_sent < d->n)
            code = send_part(r, d, &places[(first + n++) % n_in_flight]);
        if (code == CLI_OK)
            code = receive_part(r, d, places[first]);
        first = (first + 1) % n_in_flight;
        n--;
    }
    return code;
}

int attack_remote(const dpi_attack *attack, const remote_options *options,
                  dpi_attack_result *result) {
    remote *r;
    dpi_error err;
    int code = remote_open(options, &r);
    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < dpi_attack_documents(attack) && code == CLI_OK; i++) {
        document d;
        code = open_document(attack, i, &d);
        if (code == CLI_OK)
            code = guess_document(r, options->n_in_flight, &d);
        if (code == CLI_OK && dpi_attack_guess(attack, i, (const char *const *)d.guesses, d.n,
                                               result, &err) != DPI_STATUS_OK)
            code = cli_fail_library(CLI_FAILED, &err);
        close_document(&d);
    }
    remote_close(r);
    return code;
}
