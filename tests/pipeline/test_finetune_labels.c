/* Labels that are the values of several attributes: their fields, instructions and wrong labels;
 * and the histogram of labels that an adapter is released with. */
#include "pipeline/finetune/attributes.h"
#include "tests/pipeline/finetune_support.h"

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

static dpi_records *open_labelled(const char *name, const char *content) {
    DEFAULTS(dpi_records_options, o);
    o.label_fields = names, o.n_label_fields = 2;
    return read_records(name, content, &o);
}

static dpi_instruction_options options_of_text(void) {
    dpi_instruction_options o = {.text = {text, sizeof text - 1}, .chat = DPI_CHAT_NONE};
    o.labels = labels, o.n_labels = N_LABELS, o.attributes = names, o.n_attributes = 2;
    o.n_positions = 64;
    return o;
}

static dpi_instructions make_instructions(void) {
    const dpi_instruction_options o = options_of_text();
    dpi_instructions in;
    assert_ok(dpi_instructions_make(model, &o, &in, ERR));
    return in;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static void assert_label(const dpi_records *records, size_t unit, const char *wanted) {
    const char *label;
    size_t n_bytes;
    dpi_records_unit_label(records, unit, &label, &n_bytes);
    assert_int_equal(n_bytes, wanted ? strlen(wanted) : 0);
    if (wanted)
        assert_string_equal(label, wanted);
    else
        assert_null(label);
}

/* A label is there where all its fields are; an integer is its digits. */
TEST(test_fields) {
    static const char *const wanted[] = {"good\tbook", "bad\tpen",  NULL,
                                         "odd\that",   "sad\tbook", "good\tbook"};
    for (int k = 0; k < 2; k++) {
        OWN(dpi_records) r = k ? open_labelled("r.csv", csv) : open_labelled("r.jsonl", lines);
        assert_true(dpi_records_has_labels(r));
        assert_int_equal(dpi_records_unit_count(r), 6);
        for (size_t i = 0; i < 6; i++)
            assert_label(r, i, wanted[i]);
    }
    OWN(dpi_records) r = open_labelled("n.jsonl", "{\"text\": \"x\", \"mood\": 3, \"thing\": 4}");
    assert_label(r, 0, "3\t4");
    DEFAULTS(dpi_records_options, o);
    dpi_records *none = NULL;
    o.label_fields = names, o.n_label_fields = 9;
    assert_error(dpi_records_open(path_in(dir, "r.csv"), &o, &none, ERR), ARG, "n_label_fields");
}

/* As many fields as there may be, beside an ID and the text: each is found, wherever its column is,
 * and each that is not there is missed. */
TEST(test_most_fields) {
    enum { MOST = DPI_LABEL_FIELDS_MAX };
    static const char *const fields[MOST] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
    DEFAULTS(dpi_records_options, o);
    o.unit_field = "id", o.label_fields = fields, o.n_label_fields = MOST;
    for (int first = 0; first < MOST; first++) {
        char header[64] = "id", row[64] = "a", content[160], label[32] = "";
        for (int i = 0; i < MOST; i++) {
            const int f = (first + i) % MOST;
            sprintf(header + strlen(header), ",f%d%s", f, i == 4 ? ",text" : "");
            sprintf(row + strlen(row), ",v%d%s", f, i == 4 ? ",one" : "");
            sprintf(label + strlen(label), "%sv%d", i ? "\t" : "", i);
        }
        snprintf(content, sizeof content, "%s\n%s\n", header, row);
        OWN(dpi_records) records = read_records("most.csv", content, &o);
        assert_label(records, 0, label);
        char *byte = strstr(content, "v7"); /* one that is no UTF-8 */
        *byte = '\xff';
        OWN(dpi_records) other = read_records("most.csv", content, &o);
        assert_label(other, 0, NULL);
        char *last = strstr(content, fields[first]), missing[32];
        last[1] = 'x'; /* of the header */
        snprintf(missing, sizeof missing, "no column '%s'", fields[first]);
        write_file(path_in(dir, "missing.csv"), content, strlen(content));
        dpi_records *none = NULL;
        assert_error(dpi_records_open(path_in(dir, "missing.csv"), &o, &none, ERR), FORMAT,
                     missing);
    }
}

/* ---- Instructions ---------------------------------------------------------------------------- */

/* Each is that of the text with the values in it. */
TEST(test_instructions) {
    OWN_INSTRUCTIONS in = make_instructions();
    for (int32_t i = 0; i < N_LABELS; i++) {
        DEFAULTS(dpi_prompt_options, p);
        dpi_prompts *wanted;
        size_t n, n_wanted;
        OWN_ARRAY(char) made = NULL;
        p.chat = DPI_CHAT_NONE;
        p.public_prompt = (dpi_bytes){filled[i], strlen(filled[i])};
        assert_ok(dpi_prompts_create(model, &p, 64, &wanted, ERR));
        const int32_t *a = tokens_of(in.prompts[i], &n), *b = tokens_of(wanted, &n_wanted);
        assert_int_equal(n, n_wanted);
        assert_memory_equal(a, b, n * sizeof *a);
        dpi_prompts_free(wanted);
        assert_ok(dpi_finetune_instruction(text, names, 2, labels[i], &made, ERR));
        assert_string_equal(made, filled[i]);
    }
    assert_string_equal(in.attributes, "mood\tthing");
    assert_string_equal(in.lines, "good\tbook\nbad\tbook\ngood\tpen\nbad\tpen\nodd\that");
}

static void refuse(const dpi_instruction_options *o, const char *part) {
    dpi_instructions in;
    assert_error(dpi_instructions_make(model, o, &in, ERR), ARG, part);
    assert_null(in.prompts);
}

TEST(test_refused) {
    static const char *const few[] = {"good"}, *const blank[] = {"good\t "};
    static const char *const many[] = {"good\tbook\tred"}, *const twice[] = {"mood", "mood"};
    static const char *const other[] = {"mood", "colour"}, *const braced[] = {"mood", "th}"};
    dpi_instruction_options o;
#define REFUSES(change, part) o = options_of_text(), change, refuse(&o, part)
    REFUSES((o.labels = few, o.n_labels = 1), "needed are 2 values");
    REFUSES((o.labels = blank, o.n_labels = 1), "needed are 2 values");
    REFUSES((o.labels = many, o.n_labels = 1), "needed are 2 values");
    REFUSES(o.attributes = twice, "'mood' more than once");
    REFUSES(o.attributes = other, "no {colour}");
    REFUSES(o.attributes = braced, "a brace");
    REFUSES(o.n_labels = 0, "found without labels");
    REFUSES(o.n_attributes = 0, "no {label}");
    REFUSES((o.text = (dpi_bytes){"{mood} {thing} {label}", 22}), "found a {label}");
}

/* ---- Wrong labels ---------------------------------------------------------------------------- */

/* They have one other value, as often the one as the other, and a weight for their own number. A
 * label that differs in both values is never one; a record without such labels has one row. */
TEST(test_wrong) {
    enum { N = 1000 };
    OWN_INSTRUCTIONS in = make_instructions();
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    dpi_examples examples;
    dpi_row_buffer buffer;
    dpi_row row;
    uint64_t seed = 5;
    int found[N_LABELS] = {0};
    for (int32_t n_wrong = 1; n_wrong <= 4; n_wrong += 3) {
        dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 64};
        format.max_per_unit = 1, format.n_wrong = n_wrong, format.mismatch = .5f;
        assert_ok(dpi_examples_read(records, &format, &examples, ERR));
        assert_ok(dpi_row_buffer_create(64, &buffer, ERR));
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
}

/* ---- The histogram --------------------------------------------------------------------------- */

static dpi_finetune_options options_of(const dpi_records *records) {
    dpi_finetune_options o = say_options(records);
    o.instruction = (dpi_bytes){text, sizeof text - 1}, o.n_positions = 40;
    o.labels = labels, o.n_labels = N_LABELS, o.attributes = names, o.n_attributes = 2;
    o.sigma = 3, o.n_expected = 2, o.n_steps = 2, o.rank = 1, o.n_threads = 1, o.seeded = 0;
    o.histogram_epsilon = .25;
    return o;
}

/* Its part of epsilon is added to that of the steps, or taken off before sigma is found. */
TEST(test_epsilon) {
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    OWN(dpi_finetune) added = open_finetune(&o);
    const dpi_claim *c = dpi_finetune_claim_of(added);
    const double whole = epsilon_of(c, 2) + .25;
    assert_true(value_of(c, "sigma") == 3 && dpi_finetune_histogram_scale(c) == 4);
    assert_true(c->epsilon >= whole && c->epsilon < whole * (1 + 1e-12));
    o.sigma = 0, o.epsilon = 1, o.histogram_epsilon = .3; /* scale 4 */
    OWN(dpi_finetune) off = open_finetune(&o);
    c = dpi_finetune_claim_of(off);
    assert_true(epsilon_of(c, 2) <= .75 && epsilon_of(c, 2) > .7499 && c->epsilon <= 1);
    o.epsilon = .25;
    assert_not_opened(&o, "less than epsilon");
    o.histogram_epsilon = 1.5;
    assert_not_opened(&o, "histogram_epsilon");
    o.histogram_epsilon = -.5;
    assert_not_opened(&o, "histogram_epsilon");
}

/* The counts are those of the units with noise of the discrete Laplace law: mean, square, tail. */
TEST(test_noise) {
    enum { N = 4000 };
    static const double wanted[N_LABELS] = {2, 0, 0, 1, 1};
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    o.seeded = 1;
    const double r = exp(-.25), square = 2 * r / ((1 - r) * (1 - r)), all = (double)N * N_LABELS;
    const double zero = (1 - r) / (1 + r);
    double squares = 0, zeros = 0;
    OWN(dpi_finetune) f = begin(&o);
    for (int k = 0; k < N; k++) {
        f->counts[0] = 0; /* drawn anew */
        bool drawn = false;
        assert_ok(dpi_finetune_draw_counts(f, &drawn, ERR));
        assert_true(drawn);
        for (int i = 0; i < N_LABELS; i++) {
            const double noise = f->counts[1 + i] - wanted[i];
            squares += noise * noise;
            zeros += noise == 0;
        }
    }
    /* The fourth moment of Laplace noise is 6 times the square of the second: 7 deviations. */
    assert_true(fabs(squares / all / square - 1) < 7 * sqrt(5 / all));
    assert_true(fabs(zeros / all - zero) < 7 * sqrt(zero * (1 - zero) / all));
}

/* With the same bits one unit more is one more in one count. */
TEST(test_neighbours) {
    char longer[sizeof csv + 32];
    int32_t counts[2][1 + N_LABELS];
    snprintf(longer, sizeof longer, "%spen,seven,good\n", csv);
    for (int k = 0; k < 2; k++) {
        OWN(dpi_records) records = open_labelled("r.csv", k ? longer : csv);
        dpi_finetune_options o = options_of(records);
        o.seeded = 1, o.seed = 9;
        OWN(dpi_finetune) f = begin(&o);
        memcpy(counts[k], f->counts, sizeof counts[k]);
    }
    for (int i = 0; i <= N_LABELS; i++)
        assert_int_equal(counts[1][i] - counts[0][i], i == 3); /* good pen */
}

/* It is drawn once: a training that is stopped at any step goes on with it, and so does one that is
 * done and writes its adapter again. */
TEST(test_once) {
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    dpi_finetune_task task;
    int32_t kept[1 + N_LABELS], intact;
    /* Two draws are the same where five pairs of numbers are: each has at most .005 for that, so
     * that a second draw would go unseen with a chance below 4e-12. */
    o.checkpoint_steps = 1, o.histogram_epsilon = .01;
    for (int32_t done = 0; done <= 3; done++) {
        o.checkpoint = path_in(dir, "once");
        OWN(dpi_finetune) f = begin(&o);
        if (done == 0)
            memcpy(kept, f->counts, sizeof kept);
        assert_int_equal(f->counts[0], 1);
        assert_memory_equal(f->counts, kept, sizeof kept);
        steps(f, done < 2 ? done : 2);
        if (done == 3)
            assert_ok(dpi_finetune_write(f, path_in(dir, "a.gguf"), -1, ERR));
    }
    assert_ok(dpi_finetune_read_task(path_in(dir, "a.gguf"), &task, ERR));
    assert_int_equal(task.n_counts, N_LABELS);
    assert_string_equal(task.attributes, "mood\tthing");
    for (int i = 0; i < N_LABELS; i++)
        assert_int_equal(task.counts[i], kept[1 + i] > 0 ? kept[1 + i] : 0);
    dpi_finetune_task_free(&task);
    const dpi_claim claim = read_claim(path_in(dir, "a.gguf"), &intact);
    assert_int_equal(dpi_finetune_histogram_scale(&claim), 100);
    assert_true(intact && claim.epsilon > .01);
}

/* A training goes on with the labels and the noise of its histogram that it was begun with. */
TEST(test_other_labels) {
    static const char *const turned[] = {"bad\tbook", "good\tbook", "good\tpen", "bad\tpen",
                                         "odd\that"};
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    dpi_finetune_options o = options_of(records);
    o.checkpoint = path_in(dir, "labels"), o.checkpoint_steps = 1;
    OWN(dpi_finetune) f = begin(&o);
    dpi_finetune_free(f);
    for (int i = 0; i < 3; i++) {
        dpi_finetune_options changed = o;
        if (i == 0)
            changed.histogram_epsilon = .5;
        else if (i == 1)
            changed.labels = turned;
        else
            changed.mismatch = .3;
        f = open_finetune(&changed);
        assert_error(dpi_finetune_begin(f, ERR), FORMAT, "another configuration");
        dpi_finetune_free(f);
    }
    f = begin(&o);
}

/* Whichever unit has spent what it may: no record of it is read and it is in no count, and those
 * before and behind it are, also when the training goes on. */
TEST(test_who_pays) {
    static const char people[] = "id,thing,text,mood\na,book,one,good\nb,pen,two,bad\n"
                                 "a,book,three,good\nc,hat,four,odd\n";
    static const char ids[] = "abc", owners[] = "abac";
    static const int32_t label_of[] = {0, 3, 4};
    DEFAULTS(dpi_records_options, ro);
    ro.unit_field = "id", ro.label_fields = names, ro.n_label_fields = 2;
    OWN(dpi_records) records = read_records("payers.csv", people, &ro);
    for (int spent = 0; spent < 3; spent++) {
        const void *const id[] = {ids + spent};
        const size_t n_bytes[] = {1};
        uint8_t paid = 0;
        const dpi_ledger_units units = {.n = 1, .ids = id, .n_bytes = n_bytes, .pays = &paid};
        OWN(dpi_ledger) ledger = open_ledger(8, 1e-3, DPI_SCOPE_UNIT);
        DEFAULTS(dpi_dataset_info, info);
        DEFAULTS(dpi_charge_request, request);
        DEFAULTS(dpi_cost, cost);
        assert_ok(dpi_ledger_info(ledger, "people", &info, ERR));
        const double all = (double)info.budget / DPI_LEDGER_ONE / info.order;
        assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .999 * all, 0, ERR));
        request.cost = &cost, request.method = "outside", request.units = &units;
        assert_ok(dpi_ledger_reserve(ledger, "people", &request, NULL, ERR));
        dpi_finetune_options o = options_of(records);
        o.ledger = ledger, o.dataset = "people", o.checkpoint = path_in(dir, "who-pays");
        remove(o.checkpoint);
        for (int round = 0; round < 2; round++) {
            int64_t counts[N_LABELS];
            OWN(dpi_finetune) f = begin(&o);
            for (int i = 0; owners[i]; i++)
                assert_int_equal(f->examples.of[i].tokens != NULL, owners[i] != ids[spent]);
            dpi_examples_count(&f->examples, counts);
            for (int u = 0; u < 3; u++)
                assert_int_equal(counts[label_of[u]], u != spent);
        }
    }
}

/* What a ledger is charged with more, at its order A, is the divergence of randomised response. */
TEST(test_charge) {
    OWN(dpi_records) records = open_labelled("r.csv", csv);
    int64_t amount[2];
    double A = 0;
    for (int k = 0; k < 2; k++) {
        OWN(dpi_ledger) ledger = open_ledger(8, 1e-3, DPI_SCOPE_DATASET);
        dpi_finetune_options o = options_of(records);
        o.ledger = ledger, o.dataset = "people", o.histogram_epsilon = k * .25;
        OWN(dpi_finetune) f = begin(&o);
        amount[k] = dpi_finetune_claim_of(f)->ledger.charge;
        A = dpi_finetune_claim_of(f)->ledger.order;
    }
    const double p = 1 / (1 + exp(-.25)), q = 1 - p;
    const double more = log(pow(p, A) * pow(q, 1 - A) + pow(q, A) * pow(p, 1 - A)) / (A - 1);
    const double found = (double)(amount[1] - amount[0]) / (double)DPI_LEDGER_ONE;
    assert_true(fabs(found - more) < 1e-6 * more + 4 / (double)DPI_LEDGER_ONE);
}

TEST(test_shares) {
    static const int64_t counts[] = {30, 0, 10, 20}, none[] = {0, 0, 0, 0};
    static const int32_t wanted[] = {3, 0, 1, 2}, equal[] = {2, 2, 2, 2};
    int32_t shares[4];
    dpi_finetune_share(counts, 4, 6, shares);
    assert_memory_equal(shares, wanted, sizeof shares);
    dpi_finetune_share(none, 4, 8, shares);
    assert_memory_equal(shares, equal, sizeof shares);
}
