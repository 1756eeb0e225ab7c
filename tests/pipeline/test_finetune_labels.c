/* Labels that are the values of several attributes: their fields, instructions and wrong labels;
 * and the histogram of labels that an adapter is released with. */
#include <math.h>
#include <unistd.h>

#include "base/mem.h"
#include "dpinfer/gaussian.h"
#include "pipeline/finetune/attributes.h"
#include "pipeline/finetune/finetune.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];
static dpi_model *model;
static void *image;

static const char *const names[] = {"mood", "thing"};
/* "odd hat" alone differs from all others in both. */
static const char *const labels[] = {"good\tbook", "bad\tbook", "good\tpen", "bad\tpen",
                                     "odd\that"};
static const char text[] = "a {mood} {thing}, {mood}:";
static const char *const filled[] = {"a good book, good:", "a bad book, bad:", "a good pen, good:",
                                     "a bad pen, bad:", "a odd hat, odd:"};
enum { N_LABELS = 5 };

static const char csv[] = "thing,text,mood\nbook,one,good\npen,two,bad\n,three,good\n"
                          "hat,four,odd\nbook,five,sad\nbook,six,good\n";
static const char lines[] = "{\"thing\": \"book\", \"text\": \"one\", \"mood\": \"good\"}\n"
                            "{\"thing\": \"pen\", \"text\": \"two\", \"mood\": \"bad\"}\n"
                            "{\"text\": \"three\", \"mood\": \"good\"}\n"
                            "{\"thing\": \"hat\", \"text\": \"four\", \"mood\": \"odd\"}\n"
                            "{\"thing\": \"book\", \"text\": \"five\", \"mood\": \"sad\"}\n"
                            "{\"thing\": \"book\", \"text\": \"six\", \"mood\": \"good\"}\n";

static dpi_records *open_records(const char *name, const char *content) {
    dpi_records_options o;
    dpi_records *records;
    dpi_error err;
    write_file(path_in(dir, name), content, strlen(content));
    dpi_records_options_init(&o);
    o.label_fields = names, o.n_label_fields = 2;
    assert_ok(dpi_records_open(path_in(dir, name), &o, &records, &err), &err);
    return records;
}

static dpi_instruction_options options_of_text(void) {
    return (dpi_instruction_options){.text = {text, sizeof text - 1}, .chat = DPI_CHAT_NONE,
                                     .labels = labels, .n_labels = N_LABELS, .attributes = names,
                                     .n_attributes = 2, .n_positions = 64};
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* A label is there where all its fields are; an integer is its digits. */
static void test_fields(void **state) {
    (void)state;
    static const char *const wanted[] = {"good\tbook", "bad\tpen", NULL, "odd\that", "sad\tbook",
                                         "good\tbook"};
    dpi_records *both[] = {open_records("r.csv", csv), open_records("r.jsonl", lines),
                           open_records("n.jsonl", "{\"text\": \"x\", \"mood\": 3, \"thing\": 4}")};
    const char *label;
    size_t n_bytes;
    for (int k = 0; k < 2; k++) {
        assert_true(dpi_records_has_labels(both[k]));
        assert_int_equal(dpi_records_unit_count(both[k]), 6);
        for (size_t i = 0; i < 6; i++) {
            dpi_records_unit_label(both[k], i, &label, &n_bytes);
            assert_true(!label == !wanted[i]);
            if (label)
                assert_string_equal(label, wanted[i]);
            assert_int_equal(n_bytes, wanted[i] ? strlen(wanted[i]) : 0);
        }
    }
    dpi_records_unit_label(both[2], 0, &label, &n_bytes);
    assert_string_equal(label, "3\t4");
    for (int k = 0; k < 3; k++)
        dpi_records_close(both[k]);
    dpi_records_options o;
    dpi_records *none = NULL;
    dpi_error err;
    dpi_records_options_init(&o);
    o.label_fields = names, o.n_label_fields = 9;
    assert_error(dpi_records_open(path_in(dir, "r.csv"), &o, &none, &err), DPI_STATUS_ARG, &err,
                 "n_label_fields");
}

/* ---- Instructions ---------------------------------------------------------------------------- */

/* Each is that of the text with the values in it. */
static void test_instructions(void **state) {
    (void)state;
    const dpi_instruction_options o = options_of_text();
    dpi_instructions in;
    dpi_error err;
    assert_ok(dpi_instructions_make(model, &o, &in, &err), &err);
    for (int32_t i = 0; i < N_LABELS; i++) {
        dpi_prompt_options p;
        dpi_prompts *wanted;
        dpi_prompts_info a, b;
        char *made;
        dpi_prompt_options_init(&p);
        dpi_prompts_info_init(&a), dpi_prompts_info_init(&b);
        p.chat = DPI_CHAT_NONE;
        p.public_prompt = (dpi_bytes){filled[i], strlen(filled[i])};
        assert_ok(dpi_prompts_create(model, &p, 64, &wanted, &err), &err);
        assert_ok(dpi_prompts_info_get(wanted, &a, NULL), NULL);
        assert_ok(dpi_prompts_info_get(in.prompts[i], &b, NULL), NULL);
        assert_int_equal(a.n_public, b.n_public);
        assert_memory_equal(dpi_prompts_public(wanted), dpi_prompts_public(in.prompts[i]),
                            (size_t)a.n_public * sizeof(int32_t));
        dpi_prompts_free(wanted);
        assert_ok(dpi_finetune_instruction(text, names, 2, labels[i], &made, &err), &err);
        assert_string_equal(made, filled[i]);
        free(made);
    }
    assert_string_equal(in.attributes, "mood\tthing");
    assert_string_equal(in.lines, "good\tbook\nbad\tbook\ngood\tpen\nbad\tpen\nodd\that");
    dpi_instructions_free(&in);
}

static void refuse(const dpi_instruction_options *o, const char *part) {
    dpi_instructions in;
    dpi_error err;
    assert_error(dpi_instructions_make(model, o, &in, &err), DPI_STATUS_ARG, &err, part);
    assert_null(in.prompts);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const few[] = {"good"}, *const blank[] = {"good\t "};
    static const char *const many[] = {"good\tbook\tred"}, *const twice[] = {"mood", "mood"};
    static const char *const other[] = {"mood", "colour"}, *const braced[] = {"mood", "th}"};
    const dpi_instruction_options good = options_of_text();
    dpi_instruction_options o = good;
    o.labels = few, o.n_labels = 1;
    refuse(&o, "needed are 2 values");
    o.labels = blank;
    refuse(&o, "needed are 2 values");
    o.labels = many;
    refuse(&o, "needed are 2 values");
    o = good, o.attributes = twice;
    refuse(&o, "'mood' more than once");
    o = good, o.attributes = other;
    refuse(&o, "no {colour}");
    o = good, o.attributes = braced;
    refuse(&o, "a brace");
    o = good, o.n_labels = 0;
    refuse(&o, "found without labels");
    o = good, o.n_attributes = 0;
    refuse(&o, "no {label}");
    o = good, o.text = (dpi_bytes){"{mood} {thing} {label}", 22};
    refuse(&o, "found a {label}");
}

/* ---- Wrong labels ---------------------------------------------------------------------------- */

/* Which instruction a row begins with. */
static int32_t label_of_row(const dpi_instructions *in, const dpi_row *row) {
    for (int32_t l = 0; l < in->n; l++) {
        dpi_prompts_info info;
        dpi_prompts_info_init(&info);
        assert_ok(dpi_prompts_info_get(in->prompts[l], &info, NULL), NULL);
        if (memcmp(dpi_prompts_public(in->prompts[l]), row->tokens,
                   (size_t)info.n_public * sizeof(int32_t)) == 0)
            return l;
    }
    return -1;
}

/* They have one other value, as often the one as the other, and a weight for their own number. A
 * label that differs in both values is never one; a record without such labels has one row. */
static void test_wrong(void **state) {
    (void)state;
    enum { N = 1000 };
    const dpi_instruction_options o = options_of_text();
    dpi_instructions in;
    dpi_examples examples;
    dpi_row_buffer buffer;
    dpi_row row;
    uint64_t seed = 5;
    int found[N_LABELS] = {0};
    dpi_records *records = open_records("r.csv", csv);
    assert_ok(dpi_instructions_make(model, &o, &in, NULL), NULL);
    for (int32_t n_wrong = 1; n_wrong <= 4; n_wrong += 3) {
        const dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 64,
                                           .max_per_unit = 1, .n_wrong = n_wrong, .mismatch = .5f};
        assert_ok(dpi_examples_read(records, &format, &examples, NULL), NULL);
        assert_ok(dpi_row_buffer_create(64, &buffer, NULL), NULL);
        const dpi_tuner_units units = dpi_examples_units(&examples);
        const int32_t n_rows = 1 + (n_wrong < 2 ? n_wrong : 2);
        for (int i = 0; i < N; i++) {
            uint64_t bits;
            int set = 0;
            dpi_random_insecure(&seed, &bits, sizeof bits);
            for (int32_t k = 0; k < n_rows; k++) {
                assert_true(units.row(units.user, 0, k, bits, &buffer, &row));
                const int32_t label = label_of_row(&in, &row);
                const float weight = k == 0 ? 1 : -.5f / (float)(n_rows - 1);
                assert_true(k == 0 ? label == 0 : label == 1 || label == 2);
                assert_true(fabsf(row.weights[row.n - 1] - weight) < 1e-7f);
                set |= 1 << label;
                found[label] += n_wrong == 1;
            }
            assert_int_equal(__builtin_popcount((unsigned)set), n_rows);
            assert_false(units.row(units.user, 0, n_rows, bits, &buffer, &row));
            assert_true(units.row(units.user, 3, 0, bits, &buffer, &row)); /* odd hat */
            assert_int_equal(label_of_row(&in, &row), 4);
            assert_false(units.row(units.user, 3, 1, bits, &buffer, &row));
            assert_false(units.row(units.user, 2, 0, bits, &buffer, &row)); /* no thing */
            assert_false(units.row(units.user, 4, 0, bits, &buffer, &row)); /* sad: not public */
        }
        dpi_row_buffer_free(&buffer);
        dpi_examples_free(&examples);
    }
    assert_int_equal(found[1] + found[2], N);
    assert_true(abs(found[1] - N / 2) < 6 * 16); /* six deviations */
    dpi_instructions_free(&in);
    dpi_records_close(records);
}

/* ---- The histogram --------------------------------------------------------------------------- */

static dpi_finetune_options options_of(const dpi_records *records) {
    dpi_finetune_options o;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records;
    o.instruction = (dpi_bytes){text, sizeof text - 1};
    o.chat = DPI_CHAT_NONE;
    o.labels = labels, o.n_labels = N_LABELS;
    o.attributes = names, o.n_attributes = 2;
    o.n_positions = 40, o.sigma = 3, o.delta = 1e-3;
    o.n_units = 10, o.n_expected = 2, o.n_steps = 2, o.rank = 1;
    o.n_threads = 1;
    o.histogram_epsilon = .25;
    return o;
}

static dpi_finetune *open_finetune(const dpi_finetune_options *o) {
    dpi_finetune *f;
    dpi_error err;
    assert_ok(dpi_finetune_open(o, &f, &err), &err);
    return f;
}

static dpi_finetune *begin(const dpi_finetune_options *o) {
    dpi_finetune *f = open_finetune(o);
    dpi_error err;
    assert_ok(dpi_finetune_begin(f, &err), &err);
    return f;
}

/* Its part of epsilon is added to that of the steps, or taken off before sigma is found. */
static void test_epsilon(void **state) {
    (void)state;
    dpi_records *records = open_records("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    dpi_gaussian g;
    double steps;
    dpi_error err;
    dpi_finetune *f = open_finetune(&o);
    dpi_gaussian_init(&g);
    g.sigma = 3, g.sampling = dpi_finetune_claim_of(f)->sampling, g.n_steps = 2;
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &steps, NULL), NULL);
    assert_int_equal(dpi_finetune_claim_of(f)->histogram_scale, 4);
    assert_true(dpi_finetune_claim_of(f)->epsilon >= steps + .25);
    assert_true(dpi_finetune_claim_of(f)->epsilon < (steps + .25) * (1 + 1e-12));
    dpi_finetune_free(f);
    o.sigma = 0, o.epsilon = 1, o.histogram_epsilon = .3; /* scale 4 */
    f = open_finetune(&o);
    g.sigma = dpi_finetune_claim_of(f)->sigma;
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &steps, NULL), NULL);
    assert_true(steps <= .75 && steps > .7499);
    assert_true(dpi_finetune_claim_of(f)->epsilon <= 1);
    dpi_finetune_free(f);
    f = NULL;
    o.epsilon = .25;
    assert_error(dpi_finetune_open(&o, &f, &err), DPI_STATUS_ARG, &err, "less than epsilon");
    o.histogram_epsilon = 1.5;
    assert_error(dpi_finetune_open(&o, &f, &err), DPI_STATUS_ARG, &err, "histogram_epsilon");
    o.histogram_epsilon = -.5;
    assert_error(dpi_finetune_open(&o, &f, &err), DPI_STATUS_ARG, &err, "histogram_epsilon");
    dpi_records_close(records);
}

/* The counts are those of the units with noise of the discrete Laplace law: mean, square, tail. */
static void test_noise(void **state) {
    (void)state;
    enum { N = 4000 };
    static const double wanted[N_LABELS] = {2, 0, 0, 1, 1};
    dpi_records *records = open_records("r.csv", csv);
    const dpi_finetune_options o = options_of(records);
    const double r = exp(-.25), square = 2 * r / ((1 - r) * (1 - r)), all = (double)N * N_LABELS;
    const double zero = (1 - r) / (1 + r);
    double squares = 0, zeros = 0;
    dpi_finetune *f = begin(&o);
    for (int k = 0; k < N; k++) {
        f->counts[0] = 0; /* drawn anew */
        assert_ok(dpi_finetune_draw_counts(f, NULL), NULL);
        for (int i = 0; i < N_LABELS; i++) {
            const double noise = f->counts[1 + i] - wanted[i];
            squares += noise * noise;
            zeros += noise == 0;
        }
    }
    dpi_finetune_free(f);
    /* The fourth moment of Laplace noise is 6 times the square of the second: 7 deviations. */
    assert_true(fabs(squares / all / square - 1) < 7 * sqrt(5 / all));
    assert_true(fabs(zeros / all - zero) < 7 * sqrt(zero * (1 - zero) / all));
    dpi_records_close(records);
}

/* With the same bits one unit more is one more in one count. */
static void test_neighbours(void **state) {
    (void)state;
    char longer[sizeof csv + 32];
    snprintf(longer, sizeof longer, "%spen,seven,good\n", csv);
    dpi_records *both[] = {open_records("r.csv", csv), open_records("s.csv", longer)};
    int32_t counts[2][1 + N_LABELS];
    for (int k = 0; k < 2; k++) {
        dpi_finetune_options o = options_of(both[k]);
        o.seeded = 1, o.seed = 9;
        dpi_finetune *f = begin(&o);
        memcpy(counts[k], f->counts, sizeof counts[k]);
        dpi_finetune_free(f);
    }
    for (int i = 0; i <= N_LABELS; i++)
        assert_int_equal(counts[1][i] - counts[0][i], i == 3); /* good pen */
    dpi_records_close(both[0]), dpi_records_close(both[1]);
}

static void steps(dpi_finetune *f, int32_t until) {
    dpi_error err;
    while (dpi_finetune_steps_done(f) < until)
        assert_ok(dpi_finetune_step(f, &err), &err);
}

/* It is drawn once: a training that is stopped at any step goes on with it, and so does one that is
 * done and writes its adapter again. */
static void test_once(void **state) {
    (void)state;
    dpi_records *records = open_records("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    dpi_finetune_task task;
    dpi_finetune_claim claim;
    double recorded;
    int32_t kept[1 + N_LABELS], intact;
    dpi_error err;
    o.checkpoint = path_in(dir, "state"), o.checkpoint_steps = 1;
    o.histogram_epsilon = .01; /* two draws are hardly ever the same */
    char checkpoint[512];
    snprintf(checkpoint, sizeof checkpoint, "%s", o.checkpoint);
    o.checkpoint = checkpoint;
    for (int32_t done = 0; done <= 3; done++) {
        dpi_finetune *f = begin(&o);
        if (done == 0)
            memcpy(kept, f->counts, sizeof kept);
        assert_int_equal(f->counts[0], 1);
        assert_memory_equal(f->counts, kept, sizeof kept);
        steps(f, done < 2 ? done : 2);
        if (done == 3)
            assert_ok(dpi_finetune_write(f, path_in(dir, "a.gguf"), -1, &err), &err);
        dpi_finetune_free(f);
    }
    assert_ok(dpi_finetune_read_task(path_in(dir, "a.gguf"), &task, &err), &err);
    assert_int_equal(task.n_counts, N_LABELS);
    assert_string_equal(task.attributes, "mood\tthing");
    for (int i = 0; i < N_LABELS; i++)
        assert_int_equal(task.counts[i], kept[1 + i] > 0 ? kept[1 + i] : 0);
    dpi_finetune_task_free(&task);
    dpi_finetune_claim_init(&claim);
    assert_ok(dpi_finetune_read_claim(path_in(dir, "a.gguf"), &claim, &recorded, &intact, &err),
              &err);
    assert_int_equal(claim.histogram_scale, 100);
    assert_true(intact && recorded == claim.epsilon && claim.epsilon > .01);
    dpi_records_close(records);
}

/* What a ledger is charged with more, at its order A, is the divergence of randomised response. */
static void test_charge(void **state) {
    (void)state;
    dpi_records *records = open_records("r.csv", csv);
    int64_t amount[2];
    dpi_error err;
    double A = 0;
    for (int k = 0; k < 2; k++) {
        dpi_ledger_options lo;
        dpi_dataset_options dataset;
        dpi_dataset_info info;
        dpi_ledger *ledger;
        dpi_ledger_options_init(&lo);
        dpi_dataset_options_init(&dataset);
        dpi_dataset_info_init(&info);
        lo.create = 1;
        unlink(path_in(dir, "l.ledger"));
        assert_ok(dpi_ledger_open(path_in(dir, "l.ledger"), &lo, &ledger, &err), &err);
        dataset.name = "letters", dataset.epsilon = 8, dataset.delta = 1e-3;
        assert_ok(dpi_ledger_add(ledger, &dataset, &err), &err);
        dpi_finetune_options o = options_of(records);
        o.ledger = ledger, o.dataset = "letters";
        o.histogram_epsilon = k * .25;
        dpi_finetune *f = begin(&o);
        amount[k] = dpi_finetune_claim_of(f)->ledger.charge;
        A = dpi_finetune_claim_of(f)->ledger.order;
        dpi_finetune_free(f);
        dpi_ledger_close(ledger);
    }
    const double p = 1 / (1 + exp(-.25)), q = 1 - p;
    const double more = log(pow(p, A) * pow(q, 1 - A) + pow(q, A) * pow(p, 1 - A)) / (A - 1);
    const double found = (double)(amount[1] - amount[0]) / (double)DPI_LEDGER_ONE;
    assert_true(fabs(found - more) < 1e-6 * more + 4 / (double)DPI_LEDGER_ONE);
    dpi_records_close(records);
}

static void test_shares(void **state) {
    (void)state;
    static const int64_t counts[] = {30, 0, 10, 20}, none[] = {0, 0, 0, 0};
    int32_t shares[4];
    dpi_finetune_share(counts, 4, 6, shares);
    assert_true(shares[0] == 3 && shares[1] == 0 && shares[2] == 1 && shares[3] == 2);
    dpi_finetune_share(none, 4, 8, shares);
    for (int i = 0; i < 4; i++)
        assert_int_equal(shares[i], 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),     cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_epsilon),    cmocka_unit_test(test_noise),
        cmocka_unit_test(test_neighbours), cmocka_unit_test(test_once),
        cmocka_unit_test(test_charge),     cmocka_unit_test(test_shares)};
    const tiny_spec spec = tiny_default();
    make_dir(dir, sizeof dir);
    model = tiny_open(&spec, 5, &image);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dpi_model_close(model);
    free(image);
    remove_dir(dir);
    return failed;
}
