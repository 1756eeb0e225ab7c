/* probe_histogram.c - see probe_histogram.h. */
#include "tests/mutations/probe_histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/gaussian.h"
#include "pipeline/finetune/finetune.h"

enum { N_LABELS = 3, SCALE = 8, DRAWS = 4000 };

static const char *const labels[] = {"good", "bad", "odd"};

/* Of one person four records with a label; of another one; and with `more` a third person. */
static dpi_records *open_records(const char *folder, int more) {
    char path[400];
    dpi_records_options o;
    dpi_records *records = NULL;
    snprintf(path, sizeof path, "%s/histogram.csv", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return NULL;
    fprintf(file, "id,label,text\na,good,1\na,good,2\na,good,3\na,good,4\nb,bad,5\n%s",
            more ? "c,odd,6\nc,odd,7\nc,odd,8\n" : "");
    fclose(file);
    dpi_records_options_init(&o);
    o.unit_field = "id", o.label_field = "label";
    return dpi_records_open(path, &o, &records, NULL) == DPI_STATUS_OK ? records : NULL;
}

static dpi_finetune *begin(const dpi_model *model, const dpi_records *records, dpi_ledger *ledger,
                           const char *checkpoint, uint64_t seed) {
    dpi_finetune_options o;
    dpi_finetune *f = NULL;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records, o.ledger = ledger, o.dataset = "people";
    o.labels = labels, o.n_labels = N_LABELS, o.checkpoint = checkpoint;
    o.instruction = (dpi_bytes){"{label}:", 8}, o.chat = DPI_CHAT_NONE;
    o.histogram_epsilon = 1. / SCALE;
    o.sigma = 2, o.delta = 1e-3, o.n_units = 20, o.n_steps = 2;
    o.rank = 1, o.n_positions = 16, o.n_threads = 1;
    o.seeded = seed != 0, o.seed = seed;
    if (dpi_finetune_open(&o, &f, NULL) == DPI_STATUS_OK &&
        dpi_finetune_begin(f, NULL) == DPI_STATUS_OK)
        return f;
    dpi_finetune_free(f);
    return NULL;
}

/* The square of the noise about counts of 1, 1, 0: 8 deviations. */
static const char *check_noise(dpi_finetune *f) {
    const double r = exp(-1. / SCALE), wanted = 2 * r / ((1 - r) * (1 - r));
    double squares = 0;
    for (int k = 0; k < DRAWS; k++) {
        f->counts[0] = 0;
        if (dpi_finetune_draw_counts(f, NULL) != DPI_STATUS_OK)
            return "no histogram";
        for (int i = 0; i < N_LABELS; i++)
            squares += pow(f->counts[1 + i] - (i < 2), 2);
    }
    const double n = (double)DRAWS * N_LABELS;
    return fabs(squares / n / wanted - 1) < 8 * sqrt(5 / n)
               ? 0
               : "the histogram has other noise than its scale";
}

/* With the same bits one unit more moves one count by 1. */
static const char *check_neighbours(const dpi_model *model, const char *folder) {
    int64_t moved = 0;
    int32_t counts[2][1 + N_LABELS] = {0};
    for (int more = 0; more < 2; more++) {
        dpi_records *records = open_records(folder, more);
        dpi_finetune *f = begin(model, records, NULL, NULL, 7);
        if (f)
            memcpy(counts[more], f->counts, sizeof counts[more]);
        dpi_finetune_free(f);
        dpi_records_close(records);
    }
    for (int i = 1; i <= N_LABELS; i++)
        moved += llabs((long long)counts[1][i] - counts[0][i]);
    return moved == 1 ? 0 : "a unit counts more than once";
}

static const char *check_claim(const dpi_finetune *f) {
    const dpi_finetune_claim *c = dpi_finetune_claim_of(f);
    dpi_gaussian g;
    double steps;
    dpi_gaussian_init(&g);
    g.sigma = 2, g.sampling = c->sampling, g.n_steps = 2;
    if (dpi_gaussian_epsilon(&g, 1e-3, &steps, NULL) != DPI_STATUS_OK)
        return "no epsilon";
    return c->epsilon < steps + 1. / SCALE ? "the claim leaves the histogram out" : 0;
}

/* A training that goes on has the counts that it had. */
static const char *check_once(const dpi_model *model, const dpi_records *records,
                              const char *folder) {
    char path[400];
    int32_t counts[6][1 + N_LABELS] = {0};
    snprintf(path, sizeof path, "%s/histogram.checkpoint", folder);
    remove(path);
    for (int k = 0; k < 6; k++) {
        dpi_finetune *f = begin(model, records, NULL, path, 0);
        if (!f)
            return "a training with a histogram does not go on";
        memcpy(counts[k], f->counts, sizeof counts[k]);
        dpi_finetune_free(f);
        if (memcmp(counts[k], counts[0], sizeof counts[0]) != 0)
            return "the histogram is drawn anew where a training goes on";
    }
    return 0;
}

static const char *check_charge(const dpi_model *model, const dpi_records *records,
                                const char *folder) {
    char path[400];
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_dataset_info info;
    dpi_ledger *ledger = NULL;
    dpi_cost cost;
    double divergence = INFINITY;
    snprintf(path, sizeof path, "%s/histogram.ledger", folder);
    remove(path);
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    dpi_dataset_info_init(&info);
    dpi_cost_init(&cost);
    options.create = 1;
    dataset.name = "people", dataset.epsilon = 8, dataset.delta = 1e-3;
    if (dpi_ledger_open(path, &options, &ledger, NULL) != DPI_STATUS_OK ||
        dpi_ledger_add(ledger, &dataset, NULL) != DPI_STATUS_OK)
        return "no ledger";
    dpi_finetune *f = begin(model, records, ledger, NULL, 0);
    const bool charged =
        f && dpi_ledger_info(ledger, "people", &info, NULL) == DPI_STATUS_OK &&
        dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 2, 2, dpi_finetune_claim_of(f)->sampling, NULL) ==
            DPI_STATUS_OK &&
        dpi_cost_add(&cost, DPI_COST_PURE, 1, 1. / SCALE, 0, NULL) == DPI_STATUS_OK &&
        dpi_cost_renyi(&cost, info.order, &divergence, NULL) == DPI_STATUS_OK &&
        (double)info.charged >= divergence * DPI_LEDGER_ONE;
    dpi_finetune_free(f);
    dpi_ledger_close(ledger);
    return charged ? 0 : "the ledger is not charged for the histogram";
}

const char *probe_histogram(const dpi_model *model, const char *folder) {
    const char *fault = check_neighbours(model, folder);
    dpi_records *records = open_records(folder, 0);
    dpi_finetune *f = begin(model, records, NULL, NULL, 0);
    fault = fault ? fault : f ? check_claim(f) : "no training with a histogram";
    fault = fault ? fault : check_noise(f);
    fault = fault ? fault : check_once(model, records, folder);
    fault = fault ? fault : check_charge(model, records, folder);
    dpi_finetune_free(f);
    dpi_records_close(records);
    return fault;
}
