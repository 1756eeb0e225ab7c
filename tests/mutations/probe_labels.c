/* probe_labels.c - see probe_labels.h. */
#include "tests/mutations/probe_labels.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/release/release.h"
#include "tests/mutations/probe_ledger.h"

enum { N_LABELED = 3 };

typedef struct labeled {
    int32_t n_texts[N_LABELED]; /* of each label */
    int32_t n_read[N_LABELED];  /* records in them */
    int64_t charged;
} labeled;

/* A run with the labels a, b, c. False: it does not begin. */
static bool run_labels(const dpi_model *model, dpi_ledger *ledger, const char *path,
                       dpi_release_options *o, labeled *seen) {
    static const char *const names[] = {"a", "b", "c"};
    dpi_records_options source;
    dpi_records *records = NULL;
    dpi_release *r = NULL;
    *seen = (labeled){0};
    dpi_records_options_init(&source);
    source.unit_field = "unit";
    source.label_field = "label";
    if (dpi_records_open(path, &source, &records, NULL) != DPI_STATUS_OK)
        return false;
    o->model = model;
    o->records = records;
    o->n_labels = N_LABELED;
    o->label_names = names;
    o->n_tokens = 2;
    o->session.n_threads = 1;
    o->prompts.chat = DPI_CHAT_NONE;
    o->method.delta = 1e-3;
    o->ledger = ledger;
    const int64_t before = probe_charged(ledger, o->dataset);
    const bool ok = dpi_release_open(o, &r, NULL) == DPI_STATUS_OK &&
                    dpi_release_begin(r, NULL) == DPI_STATUS_OK;
    seen->charged = probe_charged(ledger, o->dataset) - before;
    for (int32_t i = 0; ok && i < dpi_release_claim(r)->n_texts; i++) {
        int32_t *tokens[64] = {0};
        size_t n_tokens[64] = {0}, n_bytes;
        dpi_place place = {.tokens = tokens, .n_tokens = n_tokens};
        const char *label;
        dpi_release_label(r, i, &label, &n_bytes);
        seen->n_texts[label[0] - 'a']++;
        if (r->n_slots > 64 || dpi_release_load_batch(r, i, &place, NULL) != DPI_STATUS_OK)
            continue;
        for (size_t slot = 0; slot < r->n_slots; slot++)
            seen->n_read[label[0] - 'a'] += tokens[slot] != NULL;
        dpi_release_drop_batch(r, &place);
    }
    dpi_release_free(r);
    dpi_records_close(records);
    return ok;
}

/* 4 records of `one`, 8 of b, 2 of c. */
static bool read_their_own(const labeled *seen) {
    return seen->n_read[0] == 4 && seen->n_read[1] == 8 && seen->n_read[2] == 2;
}

/* a: one unit with 8 records; b: 8 units; c: 2 units and one that has b first. */
static bool write_labeled(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fputs("unit,label,text\n", f);
    for (int i = 0; i < 8; i++)
        fprintf(f, "one,a,letter %d\nb%d,b,letter\n", i, i);
    fputs("c1,c,letter\nc2,c,letter\nb0,c,letter of another label\n", f);
    return fclose(f) == 0;
}

static const char *check_labels(dpi_ledger *ledger, const dpi_model *model, const char *folder) {
    char path[300];
    labeled seen;
    dpi_release_options o;
    dpi_cost cost;
    double texts;
    snprintf(path, sizeof path, "%s/labels.csv", folder);
    if (!write_labeled(path) ||
        probe_add(ledger, "labels", 5000, 1e-5, DPI_SCOPE_DATASET) != DPI_STATUS_OK)
        return "a dataset was refused";
    dpi_release_options_init(&o);
    o.dataset = "labels";
    o.batch = 2;
    o.method.rho = 1;
    if (!run_labels(model, ledger, path, &o, &seen))
        return "a release with labels was refused";
    if (seen.n_texts[0] != 1 || seen.n_texts[1] != 4 || seen.n_texts[2] != 1 ||
        !read_their_own(&seen))
        return "a label has records that are not its own, or lacks some";
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.n_texts = 9;
    if (!run_labels(model, ledger, path, &o, &seen) || !read_their_own(&seen))
        return "a unit is not in one text of its label, as a whole";
    o.method.rho = 9;
    o.histogram_rho = 8; /* sigma 1/4 */
    o.n_texts = 110;
    if (!run_labels(model, ledger, path, &o, &seen))
        return "a release with a histogram was refused";
    if (seen.n_texts[0] > 40 || seen.n_texts[1] < 50)
        return "the histogram does not count units";
    dpi_cost_init(&cost);
    if (dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 7.9, 0, NULL) != DPI_STATUS_OK ||
        dpi_cost_renyi(&cost, 2, &texts, NULL) != DPI_STATUS_OK ||
        (double)seen.charged < texts * DPI_LEDGER_ONE)
        return "a histogram is not charged";
    /* With much noise the shares differ from run to run. */
    o.histogram_rho = .001;
    o.method.rho = 1;
    labeled first;
    if (!run_labels(model, ledger, path, &o, &first))
        return "a release with a histogram was refused";
    for (int i = 0; i < 20; i++) {
        if (!run_labels(model, ledger, path, &o, &seen))
            return "a release with a histogram was refused";
        if (memcmp(first.n_texts, seen.n_texts, sizeof first.n_texts) != 0)
            return NULL;
    }
    return "the histogram has no noise";
}

/* The units of b have paid for another run, and do not count: 1 unit of a and 2 of c do, with noise
 * of sigma 1/4. */
static const char *check_unpaid_labels(dpi_ledger *ledger, const dpi_model *model,
                                       const char *folder) {
    static const void *const ids[] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
    static const size_t n_bytes[] = {2, 2, 2, 2, 2, 2, 2, 2};
    uint8_t pays[8];
    const dpi_ledger_units units = {.n = 8, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    char path[300];
    labeled seen;
    dpi_release_options o;
    snprintf(path, sizeof path, "%s/labels.csv", folder); /* of check_labels */
    if (probe_add(ledger, "unpaid", 50, 1e-5, DPI_SCOPE_UNIT) != DPI_STATUS_OK ||
        probe_reserve(ledger, "unpaid", 15, &units) != DPI_STATUS_OK || !pays[0] || !pays[7])
        return "units were refused";
    dpi_release_options_init(&o);
    o.dataset = "unpaid";
    o.batch = 2;
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.method.rho = 9;
    o.histogram_rho = 8;
    o.n_texts = 110;
    if (!run_labels(model, ledger, path, &o, &seen))
        return "a release with a histogram was refused";
    return seen.n_read[1] > 0     ? "a unit that cannot pay is read"
           : seen.n_texts[1] > 60 ? "the histogram counts units that do not pay"
                                  : NULL;
}

const char *probe_labels(dpi_ledger *ledger, const dpi_model *model, const char *folder) {
    const char *fault = check_labels(ledger, model, folder);
    return fault ? fault : check_unpaid_labels(ledger, model, folder);
}
