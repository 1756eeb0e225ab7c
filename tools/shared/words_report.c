/* words_report.c - see words_report.h. */
#include "tools/shared/words_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/shared/report_files.h"
#include "tools/shared/verdict.h"

static const char FORMAT[] = "dpinfer perturbed words", GUARANTEE[] = "local differential privacy";
enum { VERSION = 1 };

void words_count(words_released *r, const dpi_perturbed_word *words, size_t n) {
    int64_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += words[i].how != DPI_REPLACED_DROPPED;
    r->n_documents++;
    r->n_words += n_left;
    r->longest = n_left > r->longest ? n_left : r->longest;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void hash_text(const dpi_vocabulary *v, char text[17]) {
    snprintf(text, 17, "%016" PRIx64, dpi_vocabulary_hash(v));
}

static const char *unknown_words(const dpi_perturb_options *o) {
    return words_drop_unknown(o) ? "dropped, which shows" : "drawn from all words";
}

static json_t *report_of(const words_input *in, const dpi_certificate *c,
                         const words_released *r) {
    const dpi_perturb_options *o = &in->options;
    char hash[17], program[64];
    hash_text(in->vocabulary, hash);
    snprintf(program, sizeof program, "dpinfer %s", dpi_version());
    return json_pack(
        "{s:s, s:i, s:s, s:{s:s, s:f, s:f, s:f, s:i}, s:{s:i, s:i, s:s}, s:{s:o, s:o, s:f, s:f, "
        "s:f}, s:{s:I, s:I, s:I}, s:{s:s, s:s, s:s, s:f, s:o, s:o}}",
        "format", FORMAT, "version", VERSION, "program", program,
        "parameters", "mechanism", dpi_mechanism_name(o->mechanism), "epsilon", o->epsilon,
        "rare", o->rare, "replaced", o->replaced, "group_size", (int)o->group_size,
        "vocabulary", "n_words", (int)dpi_vocabulary_count(in->vocabulary), "n_dimensions",
        (int)dpi_vocabulary_dim(in->vocabulary), "hash", hash,
        "certificate", "epsilon", real_or_null(c->epsilon), "epsilon_finite",
        real_or_null(c->finite), "pairs_infinite", c->infinite, "kept", c->kept, "best_guess",
        c->best_guess,
        "released", "n_documents", (json_int_t)r->n_documents, "n_words", (json_int_t)r->n_words,
        "longest", (json_int_t)r->longest,
        "statement", "guarantee", GUARANTEE, "unit", "word", "unknown_words", unknown_words(o),
        "epsilon_nominal", c->nominal, "epsilon_word", real_or_null(c->epsilon), "epsilon_document",
        real_or_null(c->epsilon * (double)(r->longest > 0 ? r->longest : 1)));
}

int words_report_certify(const words_input *in, const dpi_perturber *perturber,
                         dpi_certificate *certificate) {
    dpi_error err;
    dpi_certificate_init(certificate);
    if (in->a->n_reports > 0 && dpi_perturb_certify(perturber, certificate, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return CLI_OK;
}

int words_report_write(const words_input *in, const dpi_certificate *certificate,
                       const words_released *released) {
    const args *a = in->a;
    if (a->n_reports == 0)
        return CLI_OK;
    json_t *report = report_of(in, certificate, released);
    char *text = report ? json_dumps(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(report);
    const int code = text ? report_files_all(a, text) : cli_no_memory("a report");
    dpi_private_free(text);
    return code;
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool words_report_is(const char *text, size_t n_bytes) {
    json_t *root = json_loadb(text, n_bytes, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    const bool is = format && strcmp(format, FORMAT) == 0;
    json_decref(root);
    return is;
}

/* What a report says; an epsilon that is null is INFINITY. */
typedef struct said {
    dpi_perturb_options options;
    dpi_certificate certificate;
    int32_t n_words, n_dimensions;
    const char *hash, *unknown; /* the report's */
    words_released released;
    double epsilon_word, epsilon_document;
} said;

static double epsilon_of(const json_t *value) {
    return json_is_null(value) ? (double)INFINITY
           : json_is_number(value) ? json_number_value(value)
                                   : (double)NAN;
}

static bool is_one_of(const char *name, int32_t *mechanism) {
    for (*mechanism = 0; name && *mechanism < DPI_N_MECHANISMS; ++*mechanism)
        if (strcmp(name, dpi_mechanism_name(*mechanism)) == 0)
            return true;
    return false;
}

/* A report says nothing that is not read. */
static bool read_said(json_t *root, said *s) {
    const char *format, *program, *mechanism, *guarantee, *unit;
    const json_t *epsilon, *finite, *nominal, *word, *document;
    int version, group_size, n_words, n_dimensions;
    json_int_t n_documents, n_all, longest;
    dpi_perturb_options_init(&s->options);
    if (json_unpack_ex(root, NULL, JSON_STRICT,
                       "{s:s, s:i, s:s, s:{s:s, s:F, s:F, s:F, s:i}, s:{s:i, s:i, s:s}, s:{s:o, "
                       "s:o, s:F, s:F, s:F}, s:{s:I, s:I, s:I}, s:{s:s, s:s, s:s, s:o, s:o, s:o}}",
                       "format", &format, "version", &version, "program", &program, "parameters",
                       "mechanism", &mechanism, "epsilon", &s->options.epsilon, "rare",
                       &s->options.rare, "replaced", &s->options.replaced, "group_size",
                       &group_size, "vocabulary", "n_words", &n_words, "n_dimensions",
                       &n_dimensions, "hash", &s->hash, "certificate", "epsilon", &epsilon,
                       "epsilon_finite", &finite, "pairs_infinite", &s->certificate.infinite,
                       "kept", &s->certificate.kept, "best_guess", &s->certificate.best_guess,
                       "released", "n_documents", &n_documents, "n_words", &n_all, "longest",
                       &longest, "statement", "guarantee", &guarantee, "unit", &unit,
                       "unknown_words", &s->unknown, "epsilon_nominal", &nominal, "epsilon_word",
                       &word, "epsilon_document", &document) != 0)
        return false;
    s->options.group_size = group_size;
    s->n_words = n_words;
    s->n_dimensions = n_dimensions;
    s->released = (words_released){n_documents, n_all, longest};
    s->certificate.epsilon = epsilon_of(epsilon);
    s->certificate.finite = epsilon_of(finite);
    s->certificate.nominal = epsilon_of(nominal);
    s->epsilon_word = epsilon_of(word);
    s->epsilon_document = epsilon_of(document);
    return version == VERSION && is_one_of(mechanism, &s->options.mechanism) &&
           strcmp(unit, "word") == 0 && strcmp(guarantee, GUARANTEE) == 0;
}

/* ---- Verification ---------------------------------------------------------------------------- */

static void check_number(verdict *k, const char *path, double recorded, double computed,
                         double error) {
    const bool ok = (isinf(recorded) && isinf(computed)) || fabs(recorded - computed) <= error;
    verdict_add(k, ok ? VERDICT_OK : VERDICT_WRONG, path, "recorded %.10g, computed %.10g",
                recorded, computed);
}

static void check_that(verdict *k, const char *path, bool ok, const char *what) {
    verdict_add(k, ok ? VERDICT_OK : VERDICT_WRONG, path, "%s", what);
}

static bool is_share(double x) { return x >= 0 && x <= 1; }

/* What holds of every certificate, up to rounding. A word that stays is a guess. */
static bool can_be(const dpi_certificate *c) {
    const double error = 1e-6;
    return c->finite >= 0 && isfinite(c->finite) && c->finite <= c->epsilon + error &&
           is_share(c->infinite) && c->kept >= 0 && c->kept <= c->best_guess + error &&
           c->best_guess <= 1 + error &&
           (isinf(c->epsilon) || (c->finite >= c->epsilon - error && c->infinite <= 0));
}

/* What holds of every vocabulary: Theorems L and C, and what the others cannot have. */
static void check_theorems(verdict *k, const said *s) {
    const dpi_perturb_options *o = &s->options;
    const double epsilon = s->certificate.epsilon;
    check_that(k, "parameters.epsilon", o->epsilon >= .001 && o->epsilon <= 64, "0.001..64");
    check_that(k, "parameters.rare", o->rare > 0 && o->rare <= 1, "0 < x <= 1");
    check_that(k, "parameters.replaced", is_share(o->replaced), "0..1");
    check_that(k, "parameters.group_size", o->group_size >= 2 && o->group_size <= 1000, "2..1000");
    if (o->mechanism == DPI_MECHANISM_EXPONENTIAL || o->mechanism == DPI_MECHANISM_CALIBRATED)
        check_that(k, "certificate.epsilon", epsilon <= o->epsilon, "not above parameters.epsilon");
    else if (o->mechanism == DPI_MECHANISM_SANTEXT && o->replaced < 1 &&
             dpi_perturb_frequent(o, s->n_words) > 0)
        check_that(k, "certificate.epsilon", isinf(epsilon),
                   "infinite: a frequent word can stay");
    else if (o->mechanism == DPI_MECHANISM_CUSTEXT && s->n_words > o->group_size)
        check_that(k, "certificate.epsilon", isinf(epsilon), "infinite: there are groups");
    else
        check_that(k, "certificate.epsilon", epsilon >= 0, "a number, or infinite");
    check_that(k, "vocabulary",
               s->n_words >= 1 && s->n_dimensions >= 1 && strlen(s->hash) == 16 &&
                   strspn(s->hash, "0123456789abcdef") == 16, "counts and a hash");
    check_that(k, "certificate", can_be(&s->certificate), "numbers that fit each other");
    check_that(k, "statement.unknown_words", strcmp(s->unknown, unknown_words(o)) == 0,
               unknown_words(o));
    check_number(k, "statement.epsilon_nominal", s->certificate.nominal, o->epsilon, 0);
    check_number(k, "statement.epsilon_word", s->epsilon_word, epsilon, 0);
    const int64_t longest = s->released.longest > 0 ? s->released.longest : 1;
    const double document = epsilon * (double)longest;
    check_number(k, "statement.epsilon_document", s->epsilon_document, document,
                 1e-9 * (1 + fabs(document)));
    check_that(k, "released",
               s->released.longest >= 0 && s->released.longest <= s->released.n_words &&
                   s->released.n_documents >= 0 &&
                   (double)s->released.n_words <=
                       (double)s->released.longest * (double)s->released.n_documents,
               "counts that can be");
}

static int open_vocabulary(const args *a, const said *s, dpi_model **model,
                           dpi_vocabulary **vocabulary) {
    dpi_error err;
    dpi_status status;
    if (a->v[OPT_VECTORS].given) {
        status = dpi_vocabulary_read(a->v[OPT_VECTORS].s, s->n_words, vocabulary, &err);
    } else {
        const dpi_model_options options = options_model(a);
        const int code = cli_open_model(a->model, &options, model, NULL);
        if (code != CLI_OK)
            return code;
        status = dpi_vocabulary_of_model(*model, s->n_words, vocabulary, &err);
    }
    if (status == DPI_STATUS_OK)
        status = dpi_vocabulary_measure(*vocabulary, NULL, 0, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

static int check_certificate(verdict *k, const said *s, const dpi_vocabulary *v) {
    dpi_perturber *p;
    dpi_certificate c;
    dpi_error err;
    char hash[17];
    hash_text(v, hash);
    check_that(k, "vocabulary.hash", strcmp(hash, s->hash) == 0, "that of these words and vectors");
    check_number(k, "vocabulary.n_words", s->n_words, dpi_vocabulary_count(v), 0);
    check_number(k, "vocabulary.n_dimensions", s->n_dimensions, dpi_vocabulary_dim(v), 0);
    if (k->n_wrong > 0)
        return CLI_OK; /* another vocabulary has another certificate */
    dpi_certificate_init(&c);
    if (dpi_perturber_create(v, &s->options, &p, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_REPORT, &err);
    const dpi_status status = dpi_perturb_certify(p, &c, &err);
    dpi_perturber_free(p);
    if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const double error = 1e-6;
    check_number(k, "certificate.epsilon", s->certificate.epsilon, c.epsilon, error);
    check_number(k, "certificate.epsilon_finite", s->certificate.finite, c.finite, error);
    check_number(k, "certificate.pairs_infinite", s->certificate.infinite, c.infinite, error);
    check_number(k, "certificate.kept", s->certificate.kept, c.kept, error);
    check_number(k, "certificate.best_guess", s->certificate.best_guess, c.best_guess, error);
    return CLI_OK;
}

int words_report_verify(const args *a, const char *text, size_t n_bytes) {
    const bool again = a->model || a->v[OPT_VECTORS].given;
    dpi_model *model = NULL;
    dpi_vocabulary *vocabulary = NULL;
    verdict k = {0};
    said s = {0};
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    int code = CLI_OK;
    if (!root || !read_said(root, &s))
        code = cli_fail(CLI_REPORT, "the report of perturbed words lacks a key, or has one of "
                                    "another type");
    if (code == CLI_OK)
        code = verdict_open(&k, a);
    if (code == CLI_OK)
        check_theorems(&k, &s);
    if (code == CLI_OK && again)
        code = open_vocabulary(a, &s, &model, &vocabulary);
    if (code == CLI_OK && again)
        code = check_certificate(&k, &s, vocabulary);
    if (code == CLI_OK)
        code = verdict_tell(&k, NULL, "%zu facts hold%s", k.n_ok,
                            again ? "; the certificate is that of the vocabulary"
                                  : "; the vocabulary was not looked at (--model FILE or "
                                    "--vectors FILE)");
    else
        verdict_close(&k);
    dpi_vocabulary_free(vocabulary);
    dpi_model_close(model);
    json_decref(root);
    return code;
}
