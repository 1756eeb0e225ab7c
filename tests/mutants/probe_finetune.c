/* probe_finetune.c - a private training, from its records to its file, see probes.h. */
#include "tests/mutants/probes.h"

#include <math.h>

#include "dpinfer/gaussian.h"

dpi_finetune_options training_options(const dpi_records *records, int32_t n_steps) {
    dpi_finetune_options o;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records, o.ledger = the_ledger, o.dataset = "people";
    o.sigma = 2, o.delta = 1e-3, o.n_units = 20, o.n_steps = n_steps;
    o.rank = 1, o.n_positions = 16, o.n_threads = 1;
    return o;
}

dpi_finetune *open_training(const dpi_finetune_options *o) {
    dpi_finetune *f;
    assert_ok(dpi_finetune_open(o, &f, ERR));
    return f;
}

void assert_claim(const dpi_finetune *f, int32_t n_steps, double pure) {
    const dpi_claim *c = dpi_finetune_claim_of(f);
    dpi_gaussian g;
    double epsilon;
    dpi_gaussian_init(&g);
    g.sigma = 2, g.sampling = dpi_claim_value(c->parts, "sampling"), g.n_steps = n_steps;
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &epsilon, ERR));
    hold(c->epsilon >= epsilon * (1 - 1e-12) + pure, "the claim is less than what it all costs");
}

void assert_charge(const dpi_finetune *f, int32_t n_steps, double pure) {
    const dpi_dataset_info info = info_of("people");
    dpi_cost cost;
    double divergence;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, n_steps, 2,
                           dpi_claim_value(dpi_finetune_claim_of(f)->parts, "sampling"), ERR));
    if (pure > 0)
        assert_ok(dpi_cost_add(&cost, DPI_COST_PURE, 1, pure, 0, ERR));
    assert_ok(dpi_cost_renyi(&cost, info.order, &divergence, ERR));
    hold((double)info.charged >= divergence * DPI_LEDGER_ONE,
         "the ledger is charged for less than it all costs");
}

/* Two people with two records each, and one with one; or the first one alone. */
static const char people[] =
    "id,text\na,one of a\na,two of a\nb,one of b\nb,two of b\nc,one of c\n";
static const char one[] = "id,text\na,one of a\na,two of a\n";

static dpi_records *open_people(const char *rows) {
    return make_records(rows == one ? "one.csv" : "people.csv", rows, "id", NULL);
}

/* Public numbers are the same whatever the records are, and epsilon is that of all steps. */
static void check_claims(void) {
    double expected[2];
    for (int i = 0; i < 2; i++) {
        const dpi_finetune_options o = training_options(open_people(i ? people : one), 30);
        dpi_finetune *f = open_training(&o);
        expected[i] = dpi_claim_value(dpi_finetune_claim_of(f)->parts, "expected");
        assert_claim(f, 30, 0);
        dpi_finetune_free(f);
    }
    hold(fabs(expected[1] - expected[0]) <= 0, "what sums are divided by depends on the records");
}

static void check_charge(double budget, bool fits) {
    new_ledger();
    add_dataset("people", budget, 1e-4, DPI_SCOPE_DATASET);
    const dpi_finetune_options o = training_options(open_people(people), 30);
    dpi_finetune *f = open_training(&o);
    hold(dpi_finetune_begin(f, ERR) == (fits ? DPI_STATUS_OK : DPI_STATUS_BUDGET),
         "a training that the budget does not allow begins");
    if (fits) {
        hold(dpi_examples_units(&f->examples).n == 3, "a record is a unit where people are");
        assert_charge(f, 30, 0);
    } else {
        hold(!f->examples.of, "records are read before they are paid for");
    }
    dpi_finetune_free(f);
}

/* With a budget for each unit: one that has spent it adds nothing, the others do. */
static void check_units(void) {
    new_ledger();
    add_dataset("people", 8, 1e-4, DPI_SCOPE_UNIT);
    const dpi_dataset_info info = info_of("people");
    const double all = (double)info.budget / DPI_LEDGER_ONE / info.order;
    assert_string_equal(pay("people", "a", .999 * all), "1");
    dpi_finetune_options o = training_options(open_people(people), 30);
    o.checkpoint = path_in(folder, "units.checkpoint");
    for (int round = 0; round < 2; round++) { /* the second time it goes on */
        dpi_finetune *f = open_training(&o);
        assert_ok(dpi_finetune_begin(f, ERR)); /* a unit that cannot pay is no failure */
        for (size_t i = 0; i < 5; i++)
            hold((f->examples.of[i].tokens != NULL) == (i >= 2),
                 i < 2 ? "a unit that cannot pay is trained on" : "a unit that pays is left out");
        dpi_finetune_free(f);
    }
    hold(info_of("people").n_charges == 2, "a training that goes on is charged anew");
}

/* The rows of a unit with a label are the same whatever the label of another one is, which need not
 * be one of the public ones. */
static void check_labels(void) {
    static const char *const labels[] = {"good", "bad", "new", "old"};
    static const char *const records[] = {"kind,text\nunheard of,one of a\nnew,two of b\n",
                                          "kind,text\nbad,one of a\nnew,two of b\n"};
    dpi_instruction_options o = {.text = {"{label}:", 8}, .chat = DPI_CHAT_NONE};
    dpi_example_format format = {.model = model, .n_positions = 32, .max_per_unit = 1};
    dpi_instructions in;
    dpi_examples examples[2];
    dpi_row_buffer buffers[2];
    dpi_row rows[2];
    o.labels = labels, o.n_labels = 4, o.n_positions = 32;
    assert_ok(dpi_instructions_make(model, &o, &in, ERR));
    format.instructions = &in, format.n_wrong = 2, format.mismatch = .2f;
    for (int i = 0; i < 2; i++) {
        dpi_records *of = make_records("labels.csv", records[i], NULL, "kind");
        assert_ok(dpi_row_buffer_create(32, &buffers[i], ERR));
        assert_ok(dpi_examples_read(of, &format, &examples[i], ERR));
    }
    for (uint64_t bits = 1; bits < 40; bits++)
        for (int32_t k = 0; k < 3; k++) {
            for (int i = 0; i < 2; i++) {
                const dpi_tuner_units u = dpi_examples_units(&examples[i]);
                assert_true(u.row(u.user, 1, k, bits * 0x9e3779b97f4a7c15u, &buffers[i], &rows[i]));
            }
            const size_t n_bytes = (size_t)rows[0].n * sizeof *rows[0].tokens;
            hold(rows[0].n == rows[1].n && !memcmp(rows[0].tokens, rows[1].tokens, n_bytes),
                 "rows of a unit depend on another one");
        }
    for (int i = 0; i < 2; i++) {
        dpi_examples_free(&examples[i]);
        dpi_row_buffer_free(&buffers[i]);
    }
    dpi_instructions_free(&in);
}

/* A report with a digit of this key, after `from`, made another one, which then does not hold. */
static void change_digit(const dpi_claim *c, const char *from, const char *key,
                         const char *message) {
    char *json;
    size_t n_bytes;
    dpi_report *report;
    dpi_verification v;
    dpi_verification_init(&v);
    assert_ok(dpi_report_of(c, NULL, NULL, &report, ERR));
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &json, &n_bytes, ERR));
    dpi_report_free(report);
    char *digit = strstr(strstr(json, from), key) + strlen(key);
    digit += strspn(digit, "0.");
    *digit = (char)(*digit - 1);
    if (dpi_report_parse("r", json, n_bytes, &report, ERR) == DPI_STATUS_OK) {
        assert_ok(dpi_report_verify(report, NULL, NULL, &v, ERR));
        hold(v.n_wrong > 0, message);
        dpi_report_free(report);
    }
    dpi_verification_free(&v);
    free(json);
}

/* A report whose epsilon is less than what follows from its parameters does not hold. */
static void check_report(void) {
    const dpi_finetune_options o = training_options(open_people(people), 30);
    dpi_finetune *f = open_training(&o);
    const dpi_claim *c = dpi_finetune_claim_of(f);
    change_digit(c, "\"statement\"", "\"epsilon\": ", "a report with a lower epsilon holds");
    change_digit(c, "\"follows\"", "\"epsilon\": ", "a report with a lower epsilon holds");
    change_digit(c, "\"data\"", "\"n_units\": ",
                 "a report with a rate that is not its units' holds");
    dpi_finetune_free(f);
}

/* A loss that was told of a step, which a process that dies must not draw again. */
static void check_told(void) {
    dpi_finetune_options o = training_options(open_people(people), 30);
    double loss;
    o.checkpoint = path_in(folder, "told.checkpoint"), o.checkpoint_steps = 1000;
    o.held_out = open_people(one);
    for (int i = 0; i < 2; i++) {
        dpi_finetune *f = open_training(&o);
        assert_ok(dpi_finetune_begin(f, ERR));
        hold(dpi_finetune_steps_done(f) == i, "a step of which a loss was told is drawn again");
        if (i == 0) {
            assert_ok(dpi_finetune_step(f, ERR));
            assert_ok(dpi_finetune_held_out(f, &loss, ERR));
        }
        dpi_finetune_free(f);
    }
}

TEST(finetune) {
    check_claims(); /* these without a ledger */
    check_told();
    check_labels();
    check_report();
    check_charge(8, true);
    check_units();
    check_charge(.05, false);
    close_ledger();
    probe_histogram();
}
