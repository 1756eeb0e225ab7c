/* cmd_attack.c - `dpinfer attack`: how much of documents can be found out from their perturbed
 * words, by mechanism and epsilon. */
#include <stdlib.h>
#include <string.h>

#include "audit/attack/attack.h"
#include "dpinfer/memory.h"
#include "serve/number.h"
#include "tools/command/attack_plot.h"
#include "tools/command/commands.h"
#include "tools/remote/attack_remote.h"
#include "tools/remote/remote_options.h"
#include "tools/shared/words_options.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/table.h"

enum { MAX_EPSILONS = 32, FORMAT_SVG = 4 };

typedef struct attacks {
    const args *a;
    words_input in;
    dpi_attack *attack;
    remote_options remote; /* url NULL: no model elsewhere guesses */
    int32_t mechanism[DPI_N_WORDS_MECHANISMS];
    double epsilon[MAX_EPSILONS];
    int n_mechanisms, n_epsilons, n_rows;
    attack_row rows[DPI_N_WORDS_MECHANISMS * MAX_EPSILONS]; /* in the order of the lists */
} attacks;

/* ---- Lists ----------------------------------------------------------------------------------- */

static int parse_mechanisms(attacks *k, const char *text) {
    for (const char *p = text;; p++) {
        const size_t n = strcspn(p, ",");
        int32_t m = 0;
        for (; m < DPI_N_WORDS_MECHANISMS; m++)
            if (strlen(dpi_words_mechanism_name(m)) == n &&
                strncmp(p, dpi_words_mechanism_name(m), n) == 0)
                break;
        for (int i = 0; i < k->n_mechanisms; i++)
            m = k->mechanism[i] == m ? DPI_N_WORDS_MECHANISMS : m;
        if (m == DPI_N_WORDS_MECHANISMS)
            return cli_fail(CLI_USAGE,
                            "--mechanism: found '%s', allowed are rantext, santext+, custext+, "
                            "exponential and calibrated, each once, between commas", text);
        k->mechanism[k->n_mechanisms++] = m;
        p += n;
        if (*p == '\0')
            return CLI_OK;
    }
}

static int parse_epsilons(attacks *k, const char *text) {
    for (const char *p = text;; p++) {
        double epsilon;
        const char *end = number_read(p, &epsilon);
        const bool ascends = k->n_epsilons == 0 || epsilon > k->epsilon[k->n_epsilons - 1];
        if (!end || !(epsilon >= .001 && epsilon <= 64) || !ascends ||
            (*end != ',' && *end != '\0') || k->n_epsilons == MAX_EPSILONS)
            return cli_fail(CLI_USAGE,
                            "--epsilon: found '%s', allowed are at most %d numbers 0.001..64, "
                            "ascending, between commas", text, MAX_EPSILONS);
        k->epsilon[k->n_epsilons++] = epsilon;
        p = end;
        if (*p == '\0')
            return CLI_OK;
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* A share and its interval: one cell for people, three for programs. */
static void add_share(table *t, const char *name, double share, double low, double high) {
    static const char *const names[DPI_N_GUESSES][2] = {
        {"nearest_low", "nearest_high"},   {"nearest_10_low", "nearest_10_high"},
        {"bayes_low", "bayes_high"},       {"language_low", "language_high"},
        {"context_low", "context_high"},   {"remote_low", "remote_high"},
    };
    if (t->format == TABLE_MD) {
        table_text(t, name, "%.3f (%.3f..%.3f)", share, low, high);
        return;
    }
    table_number(t, name, 6, share);
    for (int i = 0; i < DPI_N_GUESSES; i++)
        if (strcmp(name, attack_guess_name(i)) == 0) {
            table_number(t, names[i][0], 6, low);
            table_number(t, names[i][1], 6, high);
        }
}

static double share_of(int64_t k, int64_t n) { return n > 0 ? (double)k / (double)n : 0; }

static void add_row(table *t, const attack_row *row, bool synonyms) {
    const dpi_attack_result *r = &row->result;
    double low, high;
    table_text(t, "mechanism", "%s", dpi_words_mechanism_name(row->mechanism));
    table_number(t, "epsilon", 2, row->epsilon);
    table_number(t, "words", 0, (double)r->n_words);
    for (int guess = 0; guess < DPI_N_GUESSES; guess++) {
        if (r->n_guessed[guess] == 0)
            continue;
        const double share = attack_protection(r, guess, &low, &high);
        add_share(t, attack_guess_name(guess), share, low, high);
    }
    table_number(t, "bayes_mean", 4, 1 - r->best);
    table_number(t, "leaked_1", 4, share_of(r->n_leaked[0], r->n_grams[0]));
    table_number(t, "leaked_2", 4, share_of(r->n_leaked[1], r->n_grams[1]));
    table_number(t, "leaked_3", 4, share_of(r->n_leaked[2], r->n_grams[2]));
    table_number(t, "alike", 4, share_of(r->n_alike, r->n_drawn));
    if (synonyms)
        table_number(t, "synonyms", 4, share_of(r->n_synonyms, r->n_drawn));
    table_number(t, "distance", 4, r->distance);
    table_number(t, "list_10", 4, r->list[0]);
    table_number(t, "list_50", 4, r->list[1]);
    table_number(t, "list_90", 4, r->list[2]);
    table_number(t, "dropped", 4, share_of(r->n_dropped, r->n_dropped + r->n_words));
    table_print_row(t);
}

static void print_rows(const attacks *k) {
    const int format = (int)k->a->v[OPT_TABLE].i;
    if (format == FORMAT_SVG) {
        attack_plot(k->rows, k->n_rows);
        return;
    }
    table t = {.format = (table_format)format};
    for (int i = 0; i < k->n_rows; i++)
        add_row(&t, &k->rows[i], k->a->v[OPT_SYNONYMS].given);
    table_end(&t);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int add_document(void *user, int64_t index, const char *text, size_t n_bytes) {
    attacks *k = user;
    dpi_error err;
    (void)index;
    if (!text || dpi_attack_add(k->attack, text, n_bytes, &err) == DPI_STATUS_OK)
        return CLI_OK;
    return cli_fail_library(CLI_FAILED, &err);
}

static int read_synonyms(attacks *k) {
    enum { SYNONYMS_BYTES_MAX = 1 << 28 };
    const char *path = k->a->v[OPT_SYNONYMS].s;
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (!k->a->v[OPT_SYNONYMS].given)
        return CLI_OK;
    const int code = cli_read_text("synonyms", path, SYNONYMS_BYTES_MAX, &text, &n_bytes);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_attack_synonyms(k->attack, text, n_bytes, &err);
    dpi_private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, &err);
}

static int read_remote(attacks *k) {
    if (!k->a->v[OPT_REMOTE].given && !k->a->v[OPT_REMOTE_MODEL].given)
        return CLI_OK;
    const int code = remote_options_read(k->a, REMOTE_ALL, &k->remote);
    k->remote.n_tokens = attack_remote_tokens();
    return code;
}

static int open_attack(attacks *k) {
    dpi_attack_options o;
    dpi_error err;
    dpi_attack_options_init(&o);
    o.language = k->in.model && !k->a->v[OPT_NO_LANGUAGE].i;
    o.n_threads = k->in.options.n_threads;
    if (k->a->v[OPT_VECTORS].given)
        o.model = k->in.model;
    if (dpi_attack_create(k->in.vocabulary, &o, &k->attack, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const int code = read_synonyms(k);
    return code == CLI_OK ? words_each(&k->in, add_document, k) : code;
}

static int run_attacks(attacks *k) {
    dpi_perturb_options o = k->in.options;
    dpi_error err;
    for (int m = 0; m < k->n_mechanisms; m++)
        for (int e = 0; e < k->n_epsilons; e++) {
            attack_row *row = &k->rows[k->n_rows];
            *row = (attack_row){.mechanism = k->mechanism[m], .epsilon = k->epsilon[e]};
            o.mechanism = row->mechanism;
            o.epsilon = row->epsilon;
            dpi_attack_result_init(&row->result);
            if (dpi_attack_run(k->attack, &o, &row->result, &err) != DPI_STATUS_OK)
                return cli_fail_library(CLI_FAILED, &err);
            if (row->result.n_words == 0 && row->result.n_dropped == 0)
                return cli_fail(CLI_RECORDS, "no word in the documents");
            const int code =
                k->remote.url ? attack_remote(k->attack, &k->remote, &row->result) : CLI_OK;
            if (code != CLI_OK)
                return code;
            k->n_rows++;
        }
    return CLI_OK;
}

static int attack_main(const args *a) {
    attacks *k = calloc(1, sizeof *k);
    if (!k)
        return cli_no_memory("attacks");
    signals_clean_up(); /* there is nothing to finish */
    k->a = a;
    int code = parse_mechanisms(k, a->v[OPT_LIST_MECHANISM].s);
    if (code == CLI_OK)
        code = parse_epsilons(k, a->v[OPT_LIST_EPSILON].s);
    if (code == CLI_OK)
        code = words_options(a, WORDS_MODEL_MAYBE, &k->in);
    if (code == CLI_OK)
        code = read_remote(k);
    if (code == CLI_OK)
        code = words_open(&k->in);
    if (code == CLI_OK)
        code = open_attack(k);
    if (code == CLI_OK)
        code = run_attacks(k);
    if (code == CLI_OK)
        print_rows(k);
    dpi_attack_free(k->attack);
    dpi_private_free(k->remote.key);
    words_close(&k->in);
    free(k);
    return code;
}

const command command_attack = {
    .name = "attack",
    .bit = CMD_ATTACK,
    .arguments = "[MODEL] [DOCS]",
    .max_positional = 3,
    .run = attack_main,
    .summary = "how much can be found out from perturbed words",
    .details =
        "Perturbs DOCS (as 'dpinfer perturb' reads them) with each mechanism at each epsilon, and\n"
        "guesses the word behind each replacement. The table has the share of words that are NOT\n"
        "found, with its 95 % confidence interval, by who guesses:\n"
        "  nearest, nearest_10   the nearest word of the replacement (itself), one of its 10\n"
        "  bayes                 the best guess from the replacement alone; bayes_mean: its mean\n"
        "  language              MODEL, after the perturbed words before this one\n"
        "  context               MODEL, which also knows the mechanism\n"
        "With --vectors, MODEL is only who guesses, and may be left out.\n"
        "  remote                the model at --remote, which is sent the perturbed words\n"
        "leaked_N: N-grams of a document that its perturbed text has too. alike: words that\n"
        "became themselves or one of their 10 nearest; synonyms: of their line of --synonyms.\n"
        "distance: mean, from a word to its replacement. list_10, _50, _90: share of the\n"
        "vocabulary that words are drawn from, less for so many in a hundred. dropped: words that\n"
        "left nothing, which count for none of this. Results are as private as the documents.\n"
        "docs/inferdpt.md explains them.\n",
};
