/* probe_histogram.c - see probes.h. */
#include "tests/mutants/probes.h"

#include <math.h>

enum { N_LABELS = 3, SCALE = 8, DRAWS = 4000 };

/* Of one person four records with a label; of another one; and of a third person. */
#define TWO "id,label,text\na,good,1\na,good,2\na,good,3\na,good,4\nb,bad,5\n"
#define THREE TWO "c,odd,6\nc,odd,7\nc,odd,8\n"

static dpi_finetune *begin(const dpi_records *records, const char *checkpoint, uint64_t seed) {
    static const char *const labels[] = {"good", "bad", "odd"};
    dpi_finetune_options o = training_options(records, 2);
    o.labels = labels, o.n_labels = N_LABELS, o.checkpoint = checkpoint;
    o.instruction = (dpi_bytes){"{label}:", 8}, o.chat = DPI_CHAT_NONE;
    o.histogram_epsilon = 1. / SCALE;
    o.seeded = seed != 0, o.seed = seed;
    dpi_finetune *f = open_training(&o);
    assert_ok(dpi_finetune_begin(f, ERR));
    return f;
}

/* The square of the noise about counts of 1, 1, 0: 8 deviations. */
static void check_noise(dpi_finetune *f) {
    const double r = exp(-1. / SCALE), wanted = 2 * r / ((1 - r) * (1 - r));
    const double n = (double)DRAWS * N_LABELS;
    double squares = 0;
    for (int k = 0; k < DRAWS; k++) {
        f->counts[0] = 0;
        assert_ok(dpi_finetune_draw_counts(f, &(bool){false}, ERR));
        for (int i = 0; i < N_LABELS; i++)
            squares += pow(f->counts[1 + i] - (i < 2), 2);
    }
    hold(fabs(squares / n / wanted - 1) < 8 * sqrt(5 / n),
         "the histogram has other noise than its scale");
}

/* With the same bits one unit more moves one count by 1. */
static void check_neighbours(void) {
    int32_t counts[2][1 + N_LABELS], moved = 0;
    for (int more = 0; more < 2; more++) {
        dpi_records *records = make_records("more.csv", more ? THREE : TWO, "id", "label");
        dpi_finetune *f = begin(records, NULL, 7);
        memcpy(counts[more], f->counts, sizeof counts[more]);
        dpi_finetune_free(f);
    }
    for (int i = 1; i <= N_LABELS; i++)
        moved += abs(counts[1][i] - counts[0][i]);
    hold(moved == 1, "a unit counts more than once");
}

/* A training that goes on has the counts that it had. */
static void check_once(const dpi_records *records) {
    int32_t first[1 + N_LABELS];
    for (int k = 0; k < 6; k++) {
        dpi_finetune *f = begin(records, path_in(folder, "histogram.checkpoint"), 0);
        if (k == 0)
            memcpy(first, f->counts, sizeof first);
        hold(memcmp(first, f->counts, sizeof first) == 0,
             "the histogram is drawn anew where a training goes on");
        dpi_finetune_free(f);
    }
}

void probe_histogram(void) {
    check_neighbours();
    dpi_records *records = make_records("histogram.csv", TWO, "id", "label");
    dpi_finetune *f = begin(records, NULL, 0);
    assert_claim(f, 2, 1. / SCALE);
    check_noise(f);
    dpi_finetune_free(f);
    check_once(records);
    new_ledger();
    add_dataset("people", 8, 1e-3, DPI_SCOPE_DATASET);
    f = begin(records, NULL, 0);
    assert_charge(f, 2, 1. / SCALE);
    dpi_finetune_free(f);
}
