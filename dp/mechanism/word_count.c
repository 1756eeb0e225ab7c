/* word_count.c - how many records hold a public word, with discrete Gaussian noise. The whole of a
 * mechanism is in this file, and so it is the one to begin a new one with. dp/PRIVACY.md section
 * 26. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/parameters.h"

enum { EPSILON, WORD }; /* parameters */
enum { VARIANCE };      /* results */

static const dpi_parameter epsilon = {
    .name = "epsilon", .option = "epsilon", .key = "budget_epsilon", .label = "epsilon, budget",
    .unit = "", .type = DPI_PARAMETER_REAL, .min = 0, .min_open = 1, .max = 1e6,
    .default_value = 1, .help = "what the number may cost at most"};
static const dpi_parameter word = {
    .name = "word", .option = "word", .key = "word", .label = "word", .unit = "",
    .type = DPI_PARAMETER_TEXT, .max = DPI_MECHANISM_TEXT_MAX,
    .help = "PUBLIC: the word that records are asked for, in ASCII letters of any case"};
static const dpi_parameter *const parameters[] = {[EPSILON] = &epsilon, [WORD] = &word, NULL};

static bool is_letter(char c) {
    return (unsigned char)c >= 0x80 || (c >= '0' && c <= '9') ||
           ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* A record is in the count or not, however often it holds the word: the sensitivity is 1. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    double rho;
    DPI_TRY(dpi_check_range("runs", p->n_runs, 1, 1, err));
    /* Of no records every delta would be below one of them. */
    DPI_TRY(dpi_check_range("records", c->n_units, 1, INT64_C(1) << 53, err));
    if (p->text[0] == '\0')
        return dpi_fail(err, DPI_STATUS_ARG, "word: found none, needed is one");
    for (const char *t = p->text; *t; t++)
        if (!is_letter(*t))
            return dpi_fail(err, DPI_STATUS_ARG, "word: found '%s', allowed are letters and digits",
                            p->text);
    DPI_TRY(dpi_zcdp_rho(p->values[EPSILON], c->delta, &rho, err));
    const int64_t variance = dpi_noise_variance_for(fmin(rho, 128.0 / DPI_NOISE_VARIANCE_MIN));
    if (variance == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g, too small for the noise",
                        p->values[EPSILON]);
    p->results[VARIANCE] = (double)variance;
    p->rho = dpi_rho_gaussian_bound(variance);
    dpi_part_cost(p, DPI_COST_ZCDP, 1, p->rho, 0);
    return dpi_zcdp_epsilon(p->rho, c->delta, &p->epsilon, err);
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    (void)c;
    dpi_facts_add(f, "variance", NULL, DPI_FACT_INT, DPI_FACT_REALISED)->integer =
        (int64_t)p->results[VARIANCE];
    dpi_facts_real(f, NULL, "sigma, noise", sqrt(p->results[VARIANCE] / 256));
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)c;
    dpi_text_add(t, "The records that hold the word '%s' were counted, and random noise was added "
                    "to the number. Only this number is given away.", p->text);
}

static const char *const assumptions[] = {
    "A record adds 1 to the count at most; discrete Gaussian noise of variance s on it is "
    "1 / (2 s)-zCDP (Canonne, Kamath and Steinke 2020). Holds for any records.", NULL};

/* ---- The number ------------------------------------------------------------------------------ */

static int32_t count(const dpi_claim_part *p) {
    (void)p;
    return 1;
}

static void name(const dpi_claim_part *p, int32_t i, char *text, size_t size) {
    (void)i;
    snprintf(text, size, "records with '%s'", p->text);
}

static void add(const dpi_claim_part *p, const char *record, size_t n_bytes, int64_t *numbers) {
    const size_t n = strlen(p->text);
    for (size_t i = 0; i + n <= n_bytes; i++)
        if (dpi_same_letters(record + i, p->text, n) && (i == 0 || !is_letter(record[i - 1])) &&
            (i + n == n_bytes || !is_letter(record[i + n]))) {
            numbers[0]++;
            return;
        }
}

static dpi_status release(const dpi_claim_part *p, dpi_random_fn random, void *user,
                          int64_t *numbers, int32_t n, dpi_error *err) {
    int64_t noise;
    (void)n;
    DPI_TRY(dpi_noise_gaussian((int64_t)p->results[VARIANCE], random, user, &noise, err));
    numbers[0] += noise;
    return DPI_STATUS_OK;
}

static const dpi_statistic_ops statistic = {count, name, add, release};

const dpi_mechanism_ops dpi_mechanism_word_count = {
    .info = {.name = "word_count",
             .title = "a count of records that hold a word, with discrete Gaussian noise",
             .help = "how many records hold a public word, with noise",
             .source = "Canonne, Kamath and Steinke 2020",
             .proof = "dp/PRIVACY.md section 26",
             .runs = "counts"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL,
    .uses = DPI_USES_UNITS | DPI_USES_DELTA,
    .accounting = "zCDP of one count",
    .output = "the number of records that hold a word, with noise",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .statistic = &statistic,
    .facts = facts,
};
