/* probe_finetune.c - see probe_finetune.h. */
#include "tests/mutations/probe_finetune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/gaussian.h"
#include "pipeline/finetune/finetune.h"
#include "tests/mutations/probe_histogram.h"

/* Two people with two records each, and one with one. */
static dpi_records *open_records(const char *folder, int n_lines) {
    static const char *const lines[] = {"a,one of a", "a,two of a", "b,one of b", "b,two of b",
                                        "c,one of c"};
    char path[400];
    dpi_records_options o;
    dpi_records *records = NULL;
    snprintf(path, sizeof path, "%s/people.csv", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return NULL;
    fputs("id,text\n", file);
    for (int i = 0; i < n_lines; i++)
        fprintf(file, "%s\n", lines[i]);
    fclose(file);
    dpi_records_options_init(&o);
    o.unit_field = "id";
    return dpi_records_open(path, &o, &records, NULL) == DPI_STATUS_OK ? records : NULL;
}

static dpi_ledger *open_ledger(const char *folder, double epsilon, int32_t scope) {
    char path[400];
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_ledger *ledger = NULL;
    snprintf(path, sizeof path, "%s/training.ledger", folder);
    remove(path);
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    options.create = 1;
    dataset.name = "people", dataset.epsilon = epsilon, dataset.delta = 1e-4;
    dataset.scope = scope;
    if (dpi_ledger_open(path, &options, &ledger, NULL) != DPI_STATUS_OK)
        return NULL;
    return dpi_ledger_add(ledger, &dataset, NULL) == DPI_STATUS_OK ? ledger : NULL;
}

static dpi_finetune *open_finetune(const dpi_model *model, const dpi_records *records,
                                   dpi_ledger *ledger) {
    dpi_finetune_options o;
    dpi_finetune *f = NULL;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records, o.ledger = ledger, o.dataset = "people";
    o.sigma = 2, o.delta = 1e-3, o.n_units = 20, o.n_steps = 30;
    o.rank = 1, o.n_positions = 16, o.n_threads = 1;
    return dpi_finetune_open(&o, &f, NULL) == DPI_STATUS_OK ? f : NULL;
}

/* Public numbers are the same whatever the records are, and epsilon is that of all steps. */
static const char *check_claims(const dpi_model *model, const char *folder) {
    const char *fault = 0;
    double expected = 0;
    for (int i = 0; i < 2 && !fault; i++) {
        dpi_records *records = open_records(folder, i ? 5 : 2);
        dpi_finetune *f = open_finetune(model, records, NULL);
        if (!f)
            return "no training";
        const dpi_finetune_claim *c = dpi_finetune_claim_of(f);
        dpi_gaussian g;
        double epsilon = 0;
        dpi_gaussian_init(&g);
        g.sigma = 2, g.sampling = c->sampling, g.n_steps = 30;
        if (i > 0 && fabs(c->n_expected - expected) > 0)
            fault = "what sums are divided by depends on the records";
        expected = c->n_expected;
        if (dpi_gaussian_epsilon(&g, 1e-3, &epsilon, NULL) != DPI_STATUS_OK ||
            c->epsilon < epsilon * (1 - 1e-12))
            fault = "the claim is less than what all steps cost";
        dpi_finetune_free(f);
        dpi_records_close(records);
    }
    return fault;
}

static const char *check_charge(const dpi_model *model, const char *folder, double budget,
                                bool fits) {
    dpi_records *records = open_records(folder, 5);
    dpi_ledger *ledger = open_ledger(folder, budget, DPI_SCOPE_DATASET);
    dpi_finetune *f = open_finetune(model, records, ledger);
    dpi_dataset_info info;
    dpi_cost cost;
    double divergence = 0;
    const char *fault = 0;
    dpi_dataset_info_init(&info);
    dpi_cost_init(&cost);
    if (!f)
        return "no training";
    const dpi_status status = dpi_finetune_begin(f, NULL);
    if (status != (fits ? DPI_STATUS_OK : DPI_STATUS_BUDGET))
        fault = "a training that the budget does not allow begins";
    else if (!fits && f->examples.of)
        fault = "records are read before they are paid for";
    else if (fits && dpi_examples_units(&f->examples).n != 3)
        fault = "a record is a unit where people are";
    if (!fault && fits &&
        (dpi_ledger_info(ledger, "people", &info, NULL) != DPI_STATUS_OK ||
         dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 30, 2, dpi_finetune_claim_of(f)->sampling, NULL) !=
             DPI_STATUS_OK ||
         dpi_cost_renyi(&cost, info.order, &divergence, NULL) != DPI_STATUS_OK ||
         (double)info.charged < divergence * DPI_LEDGER_ONE))
        fault = "the ledger is charged for less than all steps";
    dpi_finetune_free(f);
    dpi_ledger_close(ledger);
    dpi_records_close(records);
    return fault;
}

/* Of a training that begins, or goes on. a has two records, b two, c one. */
static const char *check_payers(const dpi_model *model, const dpi_records *records,
                                dpi_ledger *ledger, const char *checkpoint) {
    dpi_finetune *f = open_finetune(model, records, ledger);
    const char *fault = 0;
    if (!f)
        return "no training with a budget for each unit";
    f->options.checkpoint = checkpoint;
    if (dpi_finetune_begin(f, NULL) != DPI_STATUS_OK)
        fault = "a unit that cannot pay is a failure";
    for (size_t i = 0; i < 5 && !fault; i++)
        if ((f->examples.of[i].tokens != NULL) != (i >= 2))
            fault = i < 2 ? "a unit that cannot pay is trained on" : "a unit that pays is left out";
    dpi_finetune_free(f);
    return fault;
}

/* With a budget for each unit: one that has spent it adds nothing, the others do. */
static const char *check_units(const dpi_model *model, const char *folder) {
    char checkpoint[400];
    static const void *const ids[] = {"a"};
    static const size_t n_bytes[] = {1};
    uint8_t paid = 0;
    const dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = &paid};
    dpi_records *records = open_records(folder, 5);
    dpi_ledger *ledger = open_ledger(folder, 8, DPI_SCOPE_UNIT);
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_cost cost;
    const char *fault = 0;
    snprintf(checkpoint, sizeof checkpoint, "%s/units.checkpoint", folder);
    remove(checkpoint);
    dpi_dataset_info_init(&info);
    dpi_charge_request_init(&request);
    dpi_cost_init(&cost);
    request.cost = &cost, request.method = "outside", request.units = &units;
    if (dpi_ledger_info(ledger, "people", &info, NULL) != DPI_STATUS_OK ||
        dpi_cost_add(&cost, DPI_COST_ZCDP, 1,
                     .999 * (double)info.budget / DPI_LEDGER_ONE / info.order, 0, NULL) !=
            DPI_STATUS_OK ||
        dpi_ledger_reserve(ledger, "people", &request, NULL, NULL) != DPI_STATUS_OK)
        return "no budget for each unit";
    for (int i = 0; i < 2 && !fault; i++) /* the second time it goes on */
        fault = check_payers(model, records, ledger, checkpoint);
    if (!fault && (dpi_ledger_info(ledger, "people", &info, NULL) != DPI_STATUS_OK ||
                   info.n_charges != 2))
        fault = "a training that goes on is charged anew";
    dpi_ledger_close(ledger);
    dpi_records_close(records);
    return fault;
}

/* A unit with a label that is none of the public ones, and one with a label, whose rows are those
 * of the unit whatever the label of the other unit is. */
typedef struct labelled {
    dpi_records *records;
    dpi_examples examples;
} labelled;

static bool read_labelled(const char *folder, const char *other, const dpi_example_format *format,
                          labelled *l) {
    char path[400];
    dpi_records_options o;
    snprintf(path, sizeof path, "%s/labels.csv", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "kind,text\n%s,one of a\nnew,two of b\n", other);
    fclose(file);
    dpi_records_options_init(&o);
    o.label_field = "kind";
    *l = (labelled){0};
    return dpi_records_open(path, &o, &l->records, NULL) == DPI_STATUS_OK &&
           dpi_examples_read(l->records, format, &l->examples, NULL) == DPI_STATUS_OK;
}

static bool has_same_rows(const labelled *a, const labelled *b, const dpi_row_buffer buffers[2]) {
    const dpi_tuner_units u = dpi_examples_units(&a->examples);
    const dpi_tuner_units v = dpi_examples_units(&b->examples);
    for (uint64_t bits = 1; bits < 40; bits++)
        for (int32_t k = 0; k < 3; k++) {
            dpi_row x, y;
            if (!u.row(u.user, 1, k, bits * 0x9e3779b97f4a7c15u, &buffers[0], &x) ||
                !v.row(v.user, 1, k, bits * 0x9e3779b97f4a7c15u, &buffers[1], &y) || x.n != y.n ||
                memcmp(x.tokens, y.tokens, (size_t)x.n * sizeof *x.tokens) != 0)
                return false;
        }
    return true;
}

static const char *check_labels(const dpi_model *model, const char *folder) {
    static const char *const labels[] = {"good", "bad", "new", "old"};
    static const dpi_bytes text = {"{label}:", 8};
    dpi_instructions in;
    dpi_row_buffer buffers[2] = {0};
    labelled a = {0}, b = {0};
    const char *fault = 0;
    const dpi_instruction_options o = {.text = text, .chat = DPI_CHAT_NONE, .labels = labels,
                                       .n_labels = 4, .n_positions = 32};
    if (dpi_instructions_make(model, &o, &in, NULL) != DPI_STATUS_OK ||
        dpi_row_buffer_create(32, &buffers[0], NULL) != DPI_STATUS_OK ||
        dpi_row_buffer_create(32, &buffers[1], NULL) != DPI_STATUS_OK)
        return "no instructions";
    const dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 32,
                                       .max_per_unit = 1, .n_wrong = 2, .mismatch = .2f};
    if (!read_labelled(folder, "unheard of", &format, &a) ||
        !read_labelled(folder, "bad", &format, &b))
        fault = "a record with another label is a failure";
    else if (!has_same_rows(&a, &b, buffers))
        fault = "rows of a unit depend on another one";
    dpi_examples_free(&a.examples), dpi_examples_free(&b.examples);
    dpi_records_close(a.records), dpi_records_close(b.records);
    dpi_row_buffer_free(&buffers[0]), dpi_row_buffer_free(&buffers[1]);
    dpi_instructions_free(&in);
    return fault;
}

/* A report whose epsilon is less than what follows from its parameters does not hold. */
static const char *check_report(const dpi_model *model, const char *folder) {
    char path[400], *json = NULL;
    dpi_verification v;
    dpi_records *records = open_records(folder, 5);
    dpi_finetune *f = open_finetune(model, records, NULL);
    const dpi_finetune_texts texts = {.adapter = path, .n_texts = 1, .temp = 1, .top_p = 1};
    const char *fault = "no report";
    snprintf(path, sizeof path, "%s/people.csv", folder);
    dpi_verification_init(&v);
    if (f && dpi_finetune_report(dpi_finetune_claim_of(f), &texts, &json, NULL) == DPI_STATUS_OK) {
        char *digit = strstr(json, "\"epsilon\": ") + strlen("\"epsilon\": ");
        while (*digit == '0' || *digit == '.')
            digit++;
        *digit = (char)(*digit - 1);
        fault = dpi_finetune_report_verify(json, strlen(json), NULL, NULL, &v, NULL) !=
                            DPI_STATUS_OK || v.n_wrong != 1
                    ? "a report with a lower epsilon holds"
                    : 0;
    }
    dpi_verification_free(&v);
    free(json);
    dpi_finetune_free(f);
    dpi_records_close(records);
    return fault;
}

/* A loss that was told of a step, which a process that dies must not draw again. */
static const char *check_told(const dpi_model *model, const char *folder) {
    dpi_records *records = open_records(folder, 5), *held_out = open_records(folder, 2);
    char checkpoint[400];
    const char *fault = 0;
    double loss;
    snprintf(checkpoint, sizeof checkpoint, "%s/told.checkpoint", folder);
    remove(checkpoint);
    for (int i = 0; i < 2 && !fault; i++) {
        dpi_finetune *f = open_finetune(model, records, NULL);
        if (!f)
            return "no training";
        f->options.checkpoint = checkpoint, f->options.checkpoint_steps = 1000;
        f->options.held_out = held_out;
        if (dpi_finetune_begin(f, NULL) != DPI_STATUS_OK || dpi_finetune_steps_done(f) != i)
            fault = i ? "a step of which a loss was told is drawn again" : "no begin";
        else if (i == 0 && (dpi_finetune_step(f, NULL) != DPI_STATUS_OK ||
                            dpi_finetune_held_out(f, &loss, NULL) != DPI_STATUS_OK))
            fault = "no loss of public records";
        dpi_finetune_free(f);
    }
    dpi_records_close(held_out);
    dpi_records_close(records);
    return fault;
}

const char *probe_finetune(const dpi_model *model, const char *folder) {
    const char *fault = check_claims(model, folder);
    fault = fault ? fault : check_told(model, folder);
    fault = fault ? fault : check_labels(model, folder);
    fault = fault ? fault : check_charge(model, folder, 8, true);
    fault = fault ? fault : check_units(model, folder);
    fault = fault ? fault : probe_histogram(model, folder);
    fault = fault ? fault : check_report(model, folder);
    return fault ? fault : check_charge(model, folder, .05, false);
}
