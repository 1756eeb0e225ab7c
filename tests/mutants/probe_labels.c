/* probe_labels.c - see probes.h. */
#include "tests/mutants/probes.h"

#include "pipeline/release/release.h"

enum { N_LABELED = 3 };

typedef struct labeled {
    int32_t n_texts[N_LABELED]; /* of each label */
    int32_t n_read[N_LABELED];  /* records in them */
    int64_t charged;
} labeled;

/* A run with the labels a, b, c. */
static labeled run_labels(const char *dataset, int32_t adjacency, double rho, double histogram_rho,
                          int32_t n_texts) {
    static const char *const names[] = {"a", "b", "c"};
    dpi_release_options o = small_release(model, make_records("labels.csv", NULL, "unit", "label"));
    labeled seen = {.charged = -info_of(dataset).charged};
    o.n_labels = N_LABELED, o.label_names = names;
    o.batch = 2, o.n_tokens = 2, o.n_texts = n_texts, o.ledger = the_ledger, o.dataset = dataset;
    o.method.adjacency = adjacency, o.method.rho = rho, o.histogram_rho = histogram_rho;
    dpi_release *r = open_release(&o);
    assert_ok(dpi_release_begin(r, ERR));
    seen.charged += info_of(dataset).charged;
    for (int32_t i = 0; i < dpi_release_run(r)->n_texts; i++) {
        int32_t *tokens[64] = {0};
        size_t n_tokens[64] = {0}, n_bytes;
        dpi_slots slots = {.tokens = tokens, .n_tokens = n_tokens};
        const char *label;
        dpi_release_label(r, i, &label, &n_bytes);
        seen.n_texts[label[0] - 'a']++;
        if (r->source.n_slots > 64 ||
            dpi_source_load(&r->source, i, NULL, &slots, NULL) != DPI_STATUS_OK)
            continue;
        for (size_t slot = 0; slot < r->source.n_slots; slot++)
            seen.n_read[label[0] - 'a'] += tokens[slot] != NULL;
        dpi_source_drop(&r->source, &slots);
    }
    dpi_release_free(r);
    return seen;
}

/* 4 records of `one`, 8 of b, 2 of c. */
static bool read_their_own(const labeled *seen) {
    return seen->n_read[0] == 4 && seen->n_read[1] == 8 && seen->n_read[2] == 2;
}

/* a: one unit with 8 records; b: 8 units; c: 2 units and one that has b first. */
static void write_labeled(void) {
    char lines[1024] = "unit,label,text\n";
    for (int i = 0; i < 8; i++)
        snprintf(lines + strlen(lines), 64, "one,a,letter %d\nb%d,b,letter\n", i, i);
    strcat(lines, "c1,c,letter\nc2,c,letter\nb0,c,letter of another label\n");
    write_file(path_in(folder, "labels.csv"), lines, strlen(lines));
}

static void check_labels(void) {
    dpi_cost cost;
    double texts;
    add_dataset("labels", 5000, 1e-5, DPI_SCOPE_DATASET);
    add_dataset("labels by position", 5000, 1e-5, DPI_SCOPE_DATASET);
    labeled seen = run_labels("labels by position", DPI_ADJACENCY_REPLACE_BY_NULL, 1, 0, 0);
    hold(seen.n_texts[0] == 1 && seen.n_texts[1] == 4 && seen.n_texts[2] == 1 &&
             read_their_own(&seen),
         "a label has records that are not its own, or lacks some");
    /* The units are in batches of any label, and the counts are right, once in 55 runs. */
    for (int i = 0; i < 6; i++) {
        seen = run_labels("labels", DPI_ADJACENCY_ADD_REMOVE, 1, 0, 9);
        hold(read_their_own(&seen), "a unit is not in one text of its label, as a whole");
    }
    /* Noise of sigma 1/4 on 1, 8 and 2: these bounds are 18 sigma away. */
    seen = run_labels("labels", DPI_ADJACENCY_ADD_REMOVE, 9, 8, 110);
    hold(seen.n_texts[0] <= 40 && seen.n_texts[1] >= 50, "the histogram does not count units");
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 7.9, 0, ERR));
    assert_ok(dpi_cost_renyi(&cost, 2, &texts, ERR));
    hold((double)seen.charged >= texts * DPI_LEDGER_ONE, "a histogram is not charged");
    /* With much noise the shares differ from run to run: two are the same at most once in 4, as
     * where a label has all of them. */
    const labeled first = run_labels("labels", DPI_ADJACENCY_ADD_REMOVE, 1, .001, 110);
    int n_same = 0;
    do {
        seen = run_labels("labels", DPI_ADJACENCY_ADD_REMOVE, 1, .001, 110);
        hold(++n_same <= 20, "the histogram has no noise");
    } while (memcmp(first.n_texts, seen.n_texts, sizeof first.n_texts) == 0);
}

/* The units of b have paid for another run, and do not count: 1 unit of a and 2 of c do, with noise
 * of sigma 1/4. More than 60 of the 110 texts are 7.3 sigma away. */
static void check_unpaid_labels(void) {
    add_dataset("unpaid", 50, 1e-5, DPI_SCOPE_UNIT);
    assert_string_equal(pay("unpaid", "b0 b1 b2 b3 b4 b5 b6 b7", 15), "11111111");
    const labeled seen = run_labels("unpaid", DPI_ADJACENCY_ADD_REMOVE, 9, 8, 110);
    hold(seen.n_read[1] == 0, "a unit that cannot pay is read");
    hold(seen.n_texts[1] <= 60, "the histogram counts units that do not pay");
}

void probe_labels(void) {
    write_labeled();
    check_labels();
    check_unpaid_labels();
}
