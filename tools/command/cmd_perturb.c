/* cmd_perturb.c - `dpinfer perturb`: documents whose words are replaced before they leave the
 * machine, and what that guarantees. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "tools/command/commands.h"
#include "tools/shared/words_report.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

/* What the command has open. */
typedef struct perturb {
    const args *a;
    words_input in;
    dpi_perturber *perturber;
    dpi_certificate certificate; /* of the report */
    dpi_words_released released;
    output out;
} perturb;

static int open_perturber(perturb *p) {
    dpi_error err;
    return dpi_perturber_create(p->in.vocabulary, &p->in.options, &p->perturber, &err) ==
                   DPI_STATUS_OK
               ? CLI_OK
               : cli_fail_library(CLI_USAGE, &err);
}

static int read_options(perturb *p) {
    const args *a = p->a;
    const int n_models = a->v[OPT_VECTORS].given ? 0 : 1;
    if (a->v[OPT_CERTIFY].i && a->n_positional > n_models)
        return cli_fail(CLI_USAGE, "--certify reads no document, and '%s' is given",
                        a->positional[n_models]);
    const int code = words_options(a, WORDS_MODEL_OR_VECTORS, &p->in);
    return code == CLI_OK ? output_probe(a->v[OPT_OUTPUT].s) : code;
}

/* ---- Documents ------------------------------------------------------------------------------- */

static json_t *json_of_words(const dpi_perturbed_word *words, size_t n) {
    static const char *const how[] = {"drawn", "unknown", "number", "kept", "dropped"};
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        char *word = dpi_private_malloc(words[i].n_bytes + 1);
        if (!word) {
            json_decref(list);
            return NULL;
        }
        memcpy(word, words[i].word, words[i].n_bytes);
        word[words[i].n_bytes] = '\0';
        json_t *replacement = words[i].how == DPI_REPLACED_KEPT ? words_string(word)
                              : words[i].how == DPI_REPLACED_DROPPED
                                  ? json_null()
                                  : words_string(words[i].replacement);
        json_t *item = json_pack("{s:o, s:o, s:s}", "word", words_string(word), "replacement",
                                 replacement, "how", how[words[i].how]);
        dpi_private_free(word);
        if (!item || json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int write_json(perturb *p, json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        return cli_no_memory("a document");
    int code = output_show(&p->out, text, strlen(text));
    if (code == CLI_OK)
        code = output_write(&p->out, "\n", 1);
    dpi_private_free(text);
    return code;
}

/* index < 0: the document of standard input. text NULL: a record that is null. */
static int write_document(void *user, int64_t index, const char *text, size_t n_bytes) {
    perturb *p = user;
    const dpi_perturbed_word *words = NULL;
    size_t n = 0;
    dpi_error err;
    if (text && dpi_perturb(p->perturber, text, n_bytes, &words, &n, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (text)
        dpi_words_count(&p->released, words, n);
    const char *perturbed = dpi_perturbed_text(p->perturber);
    if (index < 0 && !p->a->v[OPT_JSON].i) {
        const int code = output_show(&p->out, perturbed, strlen(perturbed));
        return code == CLI_OK ? output_write(&p->out, "\n", 1) : code;
    }
    json_t *object = json_object();
    const bool whole =
        (index < 0 || json_object_set_new(object, "index", json_integer(index)) == 0) &&
        json_object_set_new(object, "text", text ? words_string(perturbed) : json_null()) == 0 &&
        (!p->a->v[OPT_JSON].i ||
         json_object_set_new(object, "words", json_of_words(words, n)) == 0);
    if (!whole) {
        json_decref(object);
        return cli_no_memory("a document");
    }
    return write_json(p, object);
}

/* ---- What is guaranteed ---------------------------------------------------------------------- */

/* The nominal epsilon under its paper's name, and the true one beside it. To stderr, whatever was
 * written. */
static int write_statement(const perturb *p) {
    const dpi_perturb_options *o = &p->in.options;
    const bool ok =
        fprintf(
            stderr,
            "\nWORDS PERTURBED: local differential privacy of each word by itself\n"
            "  mechanism    %s, over %" PRId32 " words of %" PRId32 " dimensions\n"
            "  epsilon      %g for a word, as its paper counts\n"
            "  true epsilon %s\n"
            "  a document   of L words has L times the epsilon of a word: for most texts that is\n"
            "               no protection of the whole. Many words can be guessed from context.\n"
            "  not hidden   the number of words, where they stand%s\n",
            dpi_words_mechanism_name(o->mechanism), dpi_vocabulary_count(p->in.vocabulary),
            dpi_vocabulary_dim(p->in.vocabulary), o->epsilon, words_truth(o, p->in.vocabulary),
            words_drop_unknown(o) ? ", that unknown words were dropped" : "") >= 0 &&
        fflush(stderr) == 0;
    return ok ? CLI_OK : CLI_FAILED;
}

static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void add_bound(facts *f, const char *key, const char *label, double value) {
    facts_json(f, key, real_or_null(value));
    if (isfinite(value))
        facts_bound(f, NULL, label, value);
    else
        facts_line(f, label, "infinite");
}

static int certify(perturb *p) {
    dpi_certificate c;
    dpi_error err;
    facts f;
    dpi_certificate_init(&c);
    if (dpi_perturb_certify(p->perturber, &c, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    facts_init(&f);
    facts_text(&f, "mechanism", "mechanism", dpi_words_mechanism_name(p->in.options.mechanism));
    facts_int(&f, "n_words", "words", dpi_vocabulary_count(p->in.vocabulary));
    facts_int(&f, "n_dimensions", "dimensions", dpi_vocabulary_dim(p->in.vocabulary));
    facts_real(&f, "epsilon_nominal", "nominal epsilon", c.nominal);
    add_bound(&f, "epsilon", "true epsilon", c.epsilon);
    add_bound(&f, "epsilon_finite", "where finite", c.finite);
    add_bound(&f, "epsilon_pairs_50", "of half the pairs", c.quantile[0]);
    add_bound(&f, "epsilon_pairs_90", "of 90 % of pairs", c.quantile[1]);
    add_bound(&f, "epsilon_pairs_99", "of 99 % of pairs", c.quantile[2]);
    facts_real(&f, "pairs_infinite", "infinite pairs", c.infinite);
    facts_int(&f, "n_pairs", NULL, c.n_pairs);
    facts_real(&f, "kept", "word unchanged", c.kept);
    facts_real(&f, "best_guess", "best guess right", c.best_guess);
    facts_real(&f, "list", "candidates", c.list);
    add_bound(&f, "epsilon_100_words", "100 words", 100 * c.epsilon);
    char *json = p->a->v[OPT_JSON].i ? json_dumps(f.json, JSON_INDENT(2)) : NULL;
    if (f.failed || (p->a->v[OPT_JSON].i && !json) || fflush(f.stream) != 0) {
        facts_free(&f);
        return cli_no_memory("a document");
    }
    int code = output_write(&p->out, json ? json : f.text, json ? strlen(json) : f.n_text);
    if (code == CLI_OK && json)
        code = output_write(&p->out, "\n", 1);
    dpi_private_free(json);
    facts_free(&f);
    return code;
}

/* ---- All ------------------------------------------------------------------------------------- */

static int write_all(perturb *p) {
    int code = words_report_certify(&p->in, p->perturber, &p->certificate);
    if (code == CLI_OK)
        code = output_open(&p->out, p->a->v[OPT_OUTPUT].s, p->a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK)
        code = p->a->v[OPT_CERTIFY].i ? certify(p) : words_each(&p->in, write_document, p);
    code = output_finish(&p->out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    if (code == CLI_OK)
        code = words_report_write(&p->in, &p->certificate, &p->released);
    return code == CLI_OK && !p->a->v[OPT_CERTIFY].i ? write_statement(p) : code;
}

static int perturb_main(const args *a) {
    perturb p = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* there is nothing to finish */
    int code = read_options(&p);
    if (code == CLI_OK)
        code = words_open(&p.in);
    if (code == CLI_OK)
        code = open_perturber(&p);
    if (code == CLI_OK)
        code = write_all(&p);
    dpi_perturber_free(p.perturber);
    words_close(&p.in);
    return code;
}

const command command_perturb = {
    .name = "perturb",
    .bit = CMD_PERTURB,
    .arguments = "[MODEL] [DOCS]",
    .max_positional = 3,
    .run = perturb_main,
    .summary = "documents whose words are replaced, for a model elsewhere",
    .details =
        "Replaces each word by one that is drawn for it, with local differential privacy, before\n"
        "a prompt leaves the machine. Words and distances come from the token embeddings of\n"
        "MODEL or from --vectors. DOCS is a folder of .txt files, a .jsonl or a .csv, and gives\n"
        "one JSON object per document; without it standard input is one document, and gives a\n"
        "text.\n"
        "The epsilon of --epsilon is of one word and is what the mechanism's paper calls so.\n"
        "--certify computes the one that holds: it is infinite for custext+, for rantext where\n"
        "the vocabulary has numbers, and for santext+ unless --rare is 1. It holds as it stands\n"
        "for 'exponential' and 'calibrated'.\n"
        "docs/inferdpt.md says when this protects, and when 'dpinfer run' does it better.\n",
};
