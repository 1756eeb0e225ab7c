/* Private training of adapters, from records to the file: what is settled, charged, kept, resumed
 * and verified. */
#include "tests/pipeline/finetune_support.h"

/* ---- What is settled ------------------------------------------------------------------------- */

TEST(test_settled) {
    dpi_finetune_options o = say_options(by_record);
    o.seeded = 0, o.sigma = 0, o.epsilon = 2;
    OWN(dpi_finetune) f = open_finetune(&o);
    const dpi_claim *c = dpi_finetune_claim_of(f);
    assert_true(c->epsilon <= 2 && c->epsilon >= 1.999 && c->epsilon == epsilon_of(c, 6));
    const double q = value_of(c, "sampling");
    assert_true(q >= .4 && q < .4 + 1e-9 && ldexp(q, 32) == floor(ldexp(q, 32)));
    assert_true(dpi_claim_is_private(c));
    o.epsilon = INFINITY;
    OWN(dpi_finetune) infinite = open_finetune(&o);
    assert_true(isinf(dpi_finetune_claim_of(infinite)->epsilon));
    assert_false(dpi_claim_is_private(dpi_finetune_claim_of(infinite)));
    o.epsilon = 0, o.sigma = 1, o.seeded = 1;
    OWN(dpi_finetune) seeded = open_finetune(&o);
    assert_false(dpi_claim_is_private(dpi_finetune_claim_of(seeded)));
    OWN_ARRAY(char) text = NULL;
    assert_ok(dpi_claim_statement(dpi_finetune_claim_of(seeded), 1, &text, ERR));
    assert_non_null(strstr(text, "Privacy statement: NOT PRIVATE"));
    assert_non_null(strstr(text, "guarantee          none (with secret randomness: ("));
}

TEST(test_refused) {
    dpi_finetune_options o;
#define REFUSES(change, part) o = say_options(by_record), change, assert_not_opened(&o, part)
    REFUSES(o.n_units = 0, "units: found none");
    REFUSES(o.delta = .1, "delta: found 0.1, allowed below 1 / units");
    REFUSES(o.epsilon = 1, "epsilon: found 1 with sigma 1.5");
    REFUSES(o.sigma = 0, "epsilon: found 0 with sigma 0"); /* no privacy is never the default */
    REFUSES(o.n_expected = 11, "expected: found 11");
    REFUSES(o.n_steps = 0, "steps");
    REFUSES(o.n_positions = 2, "positions: found 2, the instruction alone has");
    REFUSES(o.rank = 0, "rank");
}

/* ---- Examples -------------------------------------------------------------------------------- */

/* Tokens that begin each example of a label; NULL: without labels. */
static dpi_instructions make_instructions(const char *const *labels, int32_t n_labels) {
    const char *text = n_labels > 0 ? "of {label}:" : "say";
    dpi_instruction_options o = {{text, strlen(text)}, .chat = DPI_CHAT_NONE};
    dpi_instructions made;
    o.labels = labels, o.n_labels = n_labels, o.n_positions = 24;
    assert_ok(dpi_instructions_make(model, &o, &made, ERR));
    return made;
}

/* An example without labels: the instruction, the text, the end, as far as there is room; how many
 * tokens, and how many of the instruction. */
static size_t example_of(const dpi_prompts *instruction, const char *text, int32_t *tokens,
                         size_t *n_public) {
    size_t n;
    const int32_t *public = tokens_of(instruction, n_public);
    memcpy(tokens, public, *n_public * sizeof *tokens);
    assert_ok(dpi_tokenize(model, text, strlen(text), 0, tokens + *n_public, 300, &n, ERR));
    n += *n_public;
    tokens[n++] = 2;        /* </s> */
    return n < 25 ? n : 25; /* positions, and what comes after the last */
}

/* The row is an example of instruction `label`. */
static void check_row(const dpi_row *row, const dpi_instructions *in, int32_t label,
                      const char *text, float weight) {
    int32_t wanted[400];
    size_t n_public;
    const size_t n = example_of(in->prompts[label], text, wanted, &n_public) - 1;
    assert_int_equal(row->n, n);
    assert_int_equal(row->n_segments, 1);
    assert_memory_equal(row->tokens, wanted, n * sizeof *wanted);
    assert_memory_equal(row->targets, wanted + 1, n * sizeof *wanted);
    for (size_t t = 0; t < n; t++)
        assert_true(fabsf(row->weights[t] - (t + 1 < n_public ? 0 : weight)) < 1e-7f);
}

/* The rows of each unit, by what the tokenizer makes of its texts; NULL: the unit ends. */
static void check_examples(bool units, int32_t max_per_unit, const char *const *wanted,
                           int n_wanted) {
    OWN_INSTRUCTIONS in = make_instructions(NULL, 0);
    const dpi_example_format format = {
        .model = model, .instructions = &in, .n_positions = 24, .max_per_unit = max_per_unit};
    dpi_examples examples;
    dpi_row_buffer buffer;
    assert_ok(dpi_examples_read(units ? by_person : by_record, &format, &examples, ERR));
    assert_ok(dpi_row_buffer_create(24, &buffer, ERR));
    const dpi_tuner_units found = dpi_examples_units(&examples);
    int n = 0;
    for (int64_t u = 0; u < found.n; u++, n++) {
        dpi_row row;
        for (int32_t k = 0; found.row(found.user, u, k, 0, &buffer, &row); k++) {
            assert_true(n < n_wanted && wanted[n]);
            check_row(&row, &in, 0, wanted[n++], 1);
        }
    }
    assert_int_equal(n, n_wanted);
    dpi_row_buffer_free(&buffer);
    dpi_examples_free(&examples);
}

TEST(test_examples) {
    static const char long_one[] = "a long text of c that is cut where the positions end";
    static const char *const of_records[] = {
        "one of a", NULL, NULL,       "three of a", NULL,     "one of b", NULL,
        "nobody",   NULL, "two of b", NULL,         long_one, NULL};
    static const char *const of_persons[] = {
        "one of a", "three of a", NULL, "one of b", "two of b", NULL, NULL, long_one, NULL};
    static const char *const first_two[] = {"one of a", NULL, "one of b", "two of b",
                                            NULL,       NULL, long_one,   NULL};
    check_examples(false, 1, of_records, 13);
    check_examples(true, 4, of_persons, 9);
    check_examples(true, 3, of_persons, 9); /* a has as many as one may have */
    check_examples(true, 2, first_two, 8); /* a's second record is empty, and counts */
}

/* A record comes after its own label, and then after other ones with the opposite sign; each set of
 * two of the three others about equally often. A record of a label that is none has no row. */
TEST(test_mismatch) {
    static const char *const labels[] = {"good", "bad", "odd", "new"};
    enum { N = 3000 };
    OWN_INSTRUCTIONS in = make_instructions(labels, 4);
    DEFAULTS(dpi_records_options, o);
    dpi_examples examples;
    dpi_row_buffer buffer;
    dpi_row row;
    uint64_t seed = 24;
    int pairs[16] = {0};
    o.label_field = "label";
    OWN(dpi_records)
    records = read_records("labels.csv", "label,text\nbad,one\nnone of them,two\nodd,three\n", &o);
    dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 24};
    format.max_per_unit = 1, format.n_wrong = 2, format.mismatch = .25f;
    assert_ok(dpi_examples_read(records, &format, &examples, ERR));
    assert_ok(dpi_row_buffer_create(24, &buffer, ERR));
    const dpi_tuner_units units = dpi_examples_units(&examples);
    assert_int_equal(units.n, 3);
    assert_false(units.row(units.user, 1, 0, 0, &buffer, &row));
    for (int i = 0; i < N; i++) {
        uint64_t bits;
        int pair = 0;
        dpi_random_insecure(&seed, &bits, sizeof bits);
        assert_true(units.row(units.user, 0, 0, bits, &buffer, &row));
        check_row(&row, &in, 1, "one", 1);
        for (int32_t k = 1; k <= 2; k++) {
            assert_true(units.row(units.user, 0, k, bits, &buffer, &row));
            const int32_t label = label_of_row(&in, &row);
            assert_true(label != 1 && !(pair & 1 << label));
            check_row(&row, &in, label, "one", -.125f);
            pair |= 1 << label;
        }
        assert_false(units.row(units.user, 0, 3, bits, &buffer, &row));
        pairs[pair]++;
    }
    /* N/3 each, with a deviation of sqrt(N 2/9) = 26: six of them */
    assert_true(abs(pairs[5] - N / 3) < 155 && abs(pairs[9] - N / 3) < 155);
    assert_int_equal(pairs[5] + pairs[9] + pairs[12], N);
    dpi_row_buffer_free(&buffer);
    dpi_examples_free(&examples);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Trains; with a checkpoint the process "dies" after each of its steps. */
static void train(const dpi_finetune_options *o, bool dies, const char *name) {
    OWN(dpi_finetune) f = begin(o);
    for (int tries = 0; dpi_finetune_steps_done(f) < o->n_steps && tries < 100; tries++) {
        assert_ok(dpi_finetune_step(f, ERR));
        if (dies && tries % 3 != 2) {
            dpi_finetune_free(f);
            f = begin(o);
        }
    }
    assert_ok(dpi_finetune_write(f, path_in(dir, name), -1, ERR));
}

static void assert_same_files(const char *a, const char *b) {
    size_t n, m;
    OWN_ARRAY(char) x = read_file(path_in(dir, a), &n);
    OWN_ARRAY(char) y = read_file(path_in(dir, b), &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

TEST(test_resume) {
    dpi_finetune_options o = say_options(by_person);
    char state[300];
    snprintf(state, sizeof state, "%s/state", dir);
    train(&o, false, "whole.gguf");
    o.checkpoint = state;
    for (o.checkpoint_steps = 1; o.checkpoint_steps <= 2; o.checkpoint_steps++) {
        remove(state);
        o.n_threads = 2 + o.checkpoint_steps;
        train(&o, o.checkpoint_steps == 1, "parts.gguf");
        assert_same_files("parts.gguf", "whole.gguf");
        train(&o, false, "again.gguf"); /* nothing is left to do */
        assert_same_files("again.gguf", "whole.gguf");
    }
    remove(state);
    OWN(dpi_finetune) f = open_finetune(&o);
    OWN(dpi_finetune) second = open_finetune(&o);
    assert_error(dpi_finetune_step(f, ERR), STATE, "has not begun");
    assert_ok(dpi_finetune_begin(f, ERR));
    assert_error(dpi_finetune_begin(second, ERR), STATE, "another process");
    assert_error(dpi_finetune_write(f, path_in(dir, "half.gguf"), -1, ERR), STATE, "0 of 6 steps");
    dpi_finetune_free(f); /* lets others in */
    o.lr = .5;
    f = open_finetune(&o);
    assert_error(dpi_finetune_begin(f, ERR), FORMAT, "another configuration");
}

/* The last step is kept wherever it stands between two checkpoints: drawn again it would be one
 * more than what was paid for. */
TEST(test_last_step) {
    dpi_finetune_options o = say_options(by_record);
    o.checkpoint = path_in(dir, "last-step"), o.checkpoint_steps = 4, o.seeded = 0;
    OWN(dpi_finetune) f = begin(&o);
    steps(f, 6);
    dpi_finetune_free(f);
    f = begin(&o);
    assert_int_equal(dpi_finetune_steps_done(f), 6);
    assert_error(dpi_finetune_step(f, ERR), STATE, "all 6 steps are done");
}

/* The mean loss of public records is that of a session with the adapter, and moves with it. */
TEST(test_held_out) {
    static const char *const texts[] = {"one of a", NULL, "two of b"};
    static const size_t sizes[] = {8, 0, 8};
    OWN(dpi_records) held_out = NULL;
    OWN_INSTRUCTIONS in = make_instructions(NULL, 0);
    assert_ok(dpi_records_create(texts, sizes, 3, &held_out, ERR));
    dpi_finetune_options o = say_options(by_record);
    OWN(dpi_finetune) without = open_finetune(&o);
    double before, after, sum = 0, n = 0;
    assert_error(dpi_finetune_held_out(without, &before, ERR), STATE, "no held-out");
    o.held_out = held_out, o.lr = .05, o.checkpoint_steps = 1000;
    o.checkpoint = path_in(dir, "held-out");
    OWN(dpi_finetune) f = open_finetune(&o);
    assert_ok(dpi_finetune_held_out(f, &before, ERR));
    /* B of the adapter is 0: the loss is that of the base, by a session. */
    for (int r = 0; r < 3; r += 2) {
        int32_t tokens[400];
        size_t n_public;
        const size_t n_tokens = example_of(in.prompts[0], texts[r], tokens, &n_public);
        sum += engine_loss(model, tokens, n_public, n_tokens);
        n += (double)(n_tokens - n_public);
    }
    assert_true(fabs(before - sum / n) < 1e-4 * before);
    assert_ok(dpi_finetune_begin(f, ERR));
    steps(f, 2);
    assert_ok(dpi_finetune_held_out(f, &after, ERR));
    assert_true(fabs(after - before) > 1e-9 * before);
    dpi_finetune_free(f);
    o.checkpoint = path_in(dir, "held-out");
    f = begin(&o); /* a process that died: the steps that were told of are kept */
    assert_int_equal(dpi_finetune_steps_done(f), 2);
}

/* What is written is a whole adapter with its claim; a number that is changed is seen. */
TEST(test_file) {
    dpi_finetune_options o = say_options(by_record);
    o.seeded = 0;
    train(&o, false, "adapter.gguf");
    int32_t intact;
    size_t n;
    dpi_claim c = read_claim(path_in(dir, "adapter.gguf"), &intact);
    assert_true(value_of(&c, "sigma") == 1.5 && c.parts[0].n_runs == 6 && c.n_units == 10);
    assert_true(intact && dpi_claim_is_private(&c));
    OWN_ARRAY(char) bytes = read_file(path_in(dir, "adapter.gguf"), &n);
    bytes[n - 3] ^= 1;
    write_file(path_in(dir, "changed.gguf"), bytes, n);
    (void)read_claim(path_in(dir, "changed.gguf"), &intact);
    assert_false(intact);
    bytes[n - 3] ^= 1; /* as it was, but said to be a model that it was merged into */
    char *trained = memmem(bytes, n, "\"trained\":\"adapter\"", 19);
    assert_non_null(trained);
    memcpy(trained, "\"trained\":\"merged\" ", 19);
    write_file(path_in(dir, "changed.gguf"), bytes, n);
    assert_error(dpi_finetune_read_claim(path_in(dir, "changed.gguf"), &c, &intact, ERR), ARG,
                 "trained is of a model, and general.type says adapter");
    tiny_spec spec = tiny_default();
    write_base(&spec, path_in(dir, "model.gguf"));
    assert_error(dpi_finetune_read_claim(path_in(dir, "model.gguf"), &c, &intact, ERR),
                 FORMAT, "it is no adapter of 'dpinfer finetune'");
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static dpi_dataset_info people_of(dpi_ledger *ledger) {
    DEFAULTS(dpi_dataset_info, info);
    assert_ok(dpi_ledger_info(ledger, "people", &info, ERR));
    return info;
}

TEST(test_ledger) {
    OWN(dpi_ledger) ledger = open_ledger(3, 1e-4, DPI_SCOPE_DATASET);
    dpi_finetune_options o = say_options(by_person);
    char state[300];
    snprintf(state, sizeof state, "%s/state", dir);
    remove(state);
    o.ledger = ledger, o.dataset = "people";
    dpi_finetune *none;
    assert_error(dpi_finetune_open(&o, &none, ERR), UNSUPPORTED, "has none");
    o.seeded = 0, o.sigma = 4, o.checkpoint = state;
    for (int i = 0; i < 2; i++) { /* the second one goes on */
        OWN(dpi_finetune) f = open_finetune(&o);
        DEFAULTS(dpi_cost, cost);
        double divergence;
        assert_int_equal(people_of(ledger).n_charges, i);
        assert_ok(dpi_finetune_begin(f, ERR));
        assert_ok(dpi_finetune_step(f, ERR));
        assert_ok(dpi_finetune_keep(f, ERR));
        assert_int_equal(dpi_finetune_steps_done(f), i + 1);
        const dpi_dataset_info info = people_of(ledger);
        assert_int_equal(info.n_charges, 1);
        assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 6, 4,
                               value_of(dpi_finetune_claim_of(f), "sampling"), ERR));
        assert_ok(dpi_cost_renyi(&cost, info.order, &divergence, ERR));
        assert_true((double)info.charged >= divergence * DPI_LEDGER_ONE &&
                    (double)info.charged <= divergence * DPI_LEDGER_ONE * (1 + 1e-9) + 1);
    }
    o.checkpoint = NULL, o.sigma = .3; /* more than what is left: no record is read */
    OWN(dpi_finetune) f = open_finetune(&o);
    assert_int_equal(dpi_finetune_begin(f, ERR), DPI_STATUS_BUDGET);
    assert_null(f->examples.of);
    assert_error(dpi_finetune_step(f, ERR), STATE, "has not begun");
}

static void assert_not_begun(const dpi_finetune_options *o, const char *part) {
    OWN(dpi_finetune) f = open_finetune(o);
    assert_error(dpi_finetune_begin(f, ERR), FORMAT, part);
    assert_null(f->examples.of);
}

/* A charge of a training of five steps where there are six. */
static void charge_five(dpi_ledger *ledger) {
    DEFAULTS(dpi_cost, cost);
    DEFAULTS(dpi_charge_request, request);
    assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 5, 4, .4, ERR));
    request.cost = &cost, request.method = "gradients";
    assert_ok(dpi_ledger_reserve(ledger, "people", &request, NULL, ERR));
}

/* A training that goes on is one of the same numbers, of the dataset that has paid for it, and its
 * charge is there: of its amount, and counted. */
TEST(test_held_to_its_charge) {
    static const char other[] = "another configuration", missing[] = "is not in the ledger";
    dpi_finetune_options o = say_options(by_person);
    o.seeded = 0, o.sigma = 4, o.checkpoint = path_in(dir, "held");
    for (int k = 0; k < 2; k++) {
        OWN(dpi_ledger) ledger = open_ledger(3, 1e-4, DPI_SCOPE_DATASET);
        DEFAULTS(dpi_dataset_options, dataset);
        dataset.name = "others", dataset.epsilon = 3, dataset.delta = 1e-4;
        assert_ok(dpi_ledger_add(ledger, &dataset, ERR));
        o.ledger = ledger, o.dataset = "people";
        if (k == 1) { /* the checkpoint is that of the ledger before */
            charge_five(ledger);
            assert_not_begun(&o, missing);
            break;
        }
        OWN(dpi_finetune) f = begin(&o);
        steps(f, 1);
        assert_ok(dpi_finetune_keep(f, ERR));
        const int64_t charge = f->charge;
        dpi_finetune_free(f), f = NULL;
#define OTHER(change)                                                                              \
    do {                                                                                           \
        dpi_finetune_options changed = o;                                                          \
        changed.change;                                                                            \
        assert_not_begun(&changed, other);                                                         \
    } while (0)
        OTHER(max_per_unit = 3);
        OTHER(n_units = 11);
        OTHER(n_steps = 7);
        OTHER(delta = 2e-3);
        OTHER(sigma = 4.1);
        OTHER(n_expected = 3);
        OTHER(clip = .5);
        OTHER(dataset = "others");
        OTHER(ledger = NULL);
#undef OTHER
        OWN(dpi_finetune) same = begin(&o);
        assert_int_equal(dpi_finetune_steps_done(same), 1);
        dpi_finetune_free(same), same = NULL;
        assert_ok(dpi_ledger_give_back(ledger, charge, ERR));
        assert_not_begun(&o, missing);
    }
}

TEST(test_spent) {
    dpi_finetune_options o = say_options(by_record);
    OWN(dpi_finetune) f = begin(&o);
    const dpi_claim *c = dpi_finetune_claim_of(f);
    double spent, last = -1;
    for (int32_t i = 0; i <= 6; i++, last = spent) {
        steps(f, i);
        assert_ok(dpi_finetune_spent(f, &spent, ERR));
        assert_true(spent == (i > 0 ? epsilon_of(c, i) : 0) && spent > last);
    }
    assert_true(spent == c->epsilon);
}

/* No record at all is a training like any other. */
TEST(test_no_records) {
    OWN(dpi_records) records = NULL;
    assert_ok(dpi_records_create(NULL, NULL, 0, &records, ERR));
    dpi_finetune_options o = say_options(records);
    train(&o, false, "none.gguf");
}
