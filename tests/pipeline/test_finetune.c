/* Private training of adapters, from records to the file: what is settled, charged, kept, resumed
 * and verified. */
#include "pipeline/finetune/finetune.h"

#include <math.h>

#include "base/mem.h"
#include "dpinfer/gaussian.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];
static dpi_model *model;
static void *image;

/* Three records of person a, of which the second is empty, two of b, one without an ID, one of c.
 */
static const char people[] = "id,text\n"
                             "a,one of a\na,\na,three of a\nb,one of b\n,nobody\nb,two of b\n"
                             "c,a long text of c that is cut where the positions end\n";

static dpi_records *open_records(bool units) {
    dpi_records_options o;
    dpi_records *records;
    dpi_error err;
    write_file(path_in(dir, "people.csv"), people, sizeof people - 1);
    dpi_records_options_init(&o);
    o.unit_field = units ? "id" : NULL;
    assert_ok(dpi_records_open(path_in(dir, "people.csv"), &o, &records, &err), &err);
    return records;
}

static dpi_finetune_options options_of(const dpi_records *records) {
    dpi_finetune_options o;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records;
    o.instruction = (dpi_bytes){"say", 3};
    o.chat = DPI_CHAT_NONE;
    o.n_positions = 24;
    o.sigma = 1.5, o.delta = 1e-3;
    o.n_units = 10, o.n_expected = 4;
    o.n_steps = 6, o.rank = 2;
    o.n_threads = 2;
    o.seeded = 1, o.seed = 42;
    return o;
}

static dpi_finetune *open_finetune(const dpi_finetune_options *o) {
    dpi_finetune *f;
    dpi_error err;
    assert_ok(dpi_finetune_open(o, &f, &err), &err);
    return f;
}

/* ---- What is settled ------------------------------------------------------------------------- */

static void test_settled(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    dpi_finetune_options o = options_of(records);
    o.seeded = 0, o.sigma = 0, o.epsilon = 2;
    dpi_finetune *f = open_finetune(&o);
    const dpi_finetune_claim *c = dpi_finetune_claim_of(f);
    dpi_gaussian g;
    double epsilon;
    dpi_gaussian_init(&g);
    g.sigma = c->sigma, g.sampling = c->sampling, g.n_steps = 6;
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &epsilon, NULL), NULL);
    assert_true(c->epsilon <= 2 && c->epsilon >= 1.999 && c->epsilon == epsilon);
    assert_true(c->sampling >= .4 && c->sampling < .4 + 1e-9);
    assert_true(ldexp(c->sampling, 32) == floor(ldexp(c->sampling, 32)));
    assert_true(dpi_finetune_is_private(c));
    dpi_finetune_free(f);
    o.epsilon = INFINITY;
    f = open_finetune(&o);
    assert_true(isinf(dpi_finetune_claim_of(f)->epsilon));
    assert_false(dpi_finetune_is_private(dpi_finetune_claim_of(f)));
    dpi_finetune_free(f);
    o.epsilon = 0, o.sigma = 1, o.seeded = 1;
    f = open_finetune(&o);
    assert_false(dpi_finetune_is_private(dpi_finetune_claim_of(f)));
    char *text;
    assert_ok(dpi_finetune_statement(dpi_finetune_claim_of(f), &text, NULL), NULL);
    assert_non_null(strstr(text, "Privacy statement: NOT PRIVATE"));
    assert_non_null(strstr(text, "guarantee          none (with secret randomness: ("));
    free(text);
    dpi_finetune_free(f);
    dpi_records_close(records);
}

static void assert_not_opened(const dpi_finetune_options *o, const char *part) {
    dpi_finetune *f = NULL;
    dpi_error err;
    assert_error(dpi_finetune_open(o, &f, &err), DPI_STATUS_ARG, &err, part);
    assert_null(f);
}

static void test_refused(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    const dpi_finetune_options good = options_of(records);
    dpi_finetune_options o = good;
    o.n_units = 0;
    assert_not_opened(&o, "units: found none");
    o = good, o.delta = .1;
    assert_not_opened(&o, "delta: found 0.1, allowed below 1 / units");
    o = good, o.epsilon = 1;
    assert_not_opened(&o, "epsilon: found 1 with sigma 1.5");
    o = good, o.sigma = 0; /* no privacy is never what is left when nothing is given */
    assert_not_opened(&o, "epsilon: found 0 with sigma 0");
    o = good, o.n_expected = 11;
    assert_not_opened(&o, "expected: found 11");
    o = good, o.n_steps = 0;
    assert_not_opened(&o, "steps");
    o = good, o.n_positions = 2;
    assert_not_opened(&o, "positions: found 2, the instruction alone has");
    o = good, o.rank = 0;
    assert_not_opened(&o, "rank");
    dpi_records_close(records);
}

/* ---- Examples -------------------------------------------------------------------------------- */

/* Tokens that begin each example of `label`; NULL: without labels. */
static dpi_instructions make_instructions(const char *const *labels, int32_t n_labels) {
    const char *text = n_labels > 0 ? "of {label}:" : "say";
    dpi_instructions made;
    dpi_error err;
    const dpi_instruction_options o = {.text = {text, strlen(text)}, .chat = DPI_CHAT_NONE,
                                       .labels = labels, .n_labels = n_labels, .n_positions = 24};
    assert_ok(dpi_instructions_make(model, &o, &made, &err), &err);
    return made;
}

/* The row is instruction `label`, the text, the end, as far as there is room. */
static void check_row(const dpi_row *row, const dpi_instructions *in, int32_t label,
                      const char *text, float weight) {
    int32_t wanted[400];
    size_t n_text, n;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    assert_ok(dpi_prompts_info_get(in->prompts[label], &info, NULL), NULL);
    n = (size_t)info.n_public;
    memcpy(wanted, dpi_prompts_public(in->prompts[label]), n * sizeof *wanted);
    assert_ok(dpi_tokenize(model, text, strlen(text), 0, wanted + n, 300, &n_text, NULL), NULL);
    n += n_text;
    wanted[n++] = 2; /* </s> */
    if (n > 25)
        n = 25; /* positions, and what comes after the last */
    assert_int_equal(row->n, n - 1);
    assert_int_equal(row->n_segments, 1);
    assert_memory_equal(row->tokens, wanted, (n - 1) * sizeof *wanted);
    assert_memory_equal(row->targets, wanted + 1, (n - 1) * sizeof *wanted);
    for (int32_t t = 0; t < row->n; t++)
        assert_true(fabsf(row->weights[t] - (t + 1 < info.n_public ? 0 : weight)) < 1e-7f);
}

/* The rows of each unit, by what the tokenizer makes of its texts. */
static void check_examples(bool units, int32_t max_per_unit, const char *const *wanted,
                           int n_wanted) {
    dpi_records *records = open_records(units);
    dpi_instructions in = make_instructions(NULL, 0);
    const dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 24,
                                       .max_per_unit = max_per_unit};
    dpi_examples examples;
    dpi_row_buffer buffer;
    assert_ok(dpi_examples_read(records, &format, &examples, NULL), NULL);
    assert_ok(dpi_row_buffer_create(24, &buffer, NULL), NULL);
    const dpi_tuner_units found = dpi_examples_units(&examples);
    int n = 0;
    for (int64_t u = 0; u < found.n; u++) {
        dpi_row row;
        for (int32_t k = 0; found.row(found.user, u, k, 0, &buffer, &row); k++) {
            assert_true(n < n_wanted && wanted[n]);
            check_row(&row, &in, 0, wanted[n], 1);
            n++;
        }
        n++; /* the unit ends: a NULL */
    }
    assert_int_equal(n, n_wanted);
    dpi_row_buffer_free(&buffer);
    dpi_examples_free(&examples);
    dpi_instructions_free(&in);
    dpi_records_close(records);
}

/* A record comes after its own label, and then after other ones with the opposite sign; each set of
 * two of the three others about equally often. A record of a label that is none has no row. */
static void test_mismatch(void **state) {
    (void)state;
    static const char lines[] = "label,text\nbad,one\nnone of them,two\nodd,three\n";
    static const char *const labels[] = {"good", "bad", "odd", "new"};
    enum { N = 3000 };
    dpi_instructions in = make_instructions(labels, 4);
    dpi_records_options o;
    dpi_records *records;
    dpi_examples examples;
    dpi_row_buffer buffer;
    dpi_row row;
    uint64_t seed = 24;
    int pairs[16] = {0};
    write_file(path_in(dir, "labels.csv"), lines, sizeof lines - 1);
    dpi_records_options_init(&o);
    o.label_field = "label";
    assert_ok(dpi_records_open(path_in(dir, "labels.csv"), &o, &records, NULL), NULL);
    const dpi_example_format format = {.model = model, .instructions = &in, .n_positions = 24,
                                       .max_per_unit = 1, .n_wrong = 2, .mismatch = .25f};
    assert_ok(dpi_examples_read(records, &format, &examples, NULL), NULL);
    assert_ok(dpi_row_buffer_create(24, &buffer, NULL), NULL);
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
            int32_t label = -1;
            for (int32_t l = 0; l < 4; l++) {
                const int32_t *prompt = dpi_prompts_public(in.prompts[l]);
                dpi_prompts_info info;
                dpi_prompts_info_init(&info);
                assert_ok(dpi_prompts_info_get(in.prompts[l], &info, NULL), NULL);
                if (memcmp(prompt, row.tokens, (size_t)info.n_public * sizeof *prompt) == 0)
                    label = l;
            }
            assert_true(label >= 0 && label != 1 && !(pair & 1 << label));
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
    dpi_instructions_free(&in);
    dpi_records_close(records);
}

static void test_examples(void **state) {
    (void)state;
    static const char long_one[] = "a long text of c that is cut where the positions end";
    static const char *const by_record[] = {
        "one of a", NULL, NULL,       "three of a", NULL,     "one of b", NULL,
        "nobody",   NULL, "two of b", NULL,         long_one, NULL};
    static const char *const by_unit[] = {"one of a", "three of a", NULL, "one of b", "two of b",
                                          NULL, NULL, long_one, NULL};
    static const char *const first_two[] = {"one of a", NULL, "one of b", "two of b", NULL, NULL,
                                            long_one, NULL};
    check_examples(false, 1, by_record, 13);
    check_examples(true, 4, by_unit, 9);
    check_examples(true, 2, first_two, 8); /* a's second record is empty, and counts */
}

/* The checkpoint of a test. */
static const char *state_path(void) {
    static char path[512];
    snprintf(path, sizeof path, "%s/state", dir);
    return path;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Trains; with a checkpoint the process "dies" after each of its steps. */
static void train(const dpi_finetune_options *o, bool dies, const char *path) {
    dpi_error err;
    dpi_finetune *f = open_finetune(o);
    assert_ok(dpi_finetune_begin(f, &err), &err);
    for (int tries = 0; dpi_finetune_steps_done(f) < o->n_steps && tries < 100; tries++) {
        assert_ok(dpi_finetune_step(f, &err), &err);
        if (dies && tries % 3 != 2) {
            dpi_finetune_free(f);
            f = open_finetune(o);
            assert_ok(dpi_finetune_begin(f, &err), &err);
        }
    }
    assert_ok(dpi_finetune_write(f, path, -1, &err), &err);
    dpi_finetune_free(f);
}

static void assert_same_files(const char *a, const char *b) {
    size_t n, m;
    char *x = read_file(a, &n), *y = read_file(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x), free(y);
}

static void test_resume(void **state) {
    (void)state;
    dpi_records *records = open_records(true);
    dpi_finetune_options o = options_of(records);
    train(&o, false, path_in(dir, "whole.gguf"));
    for (o.checkpoint_steps = 1; o.checkpoint_steps <= 2; o.checkpoint_steps++) {
        o.checkpoint = state_path();
        o.n_threads = 2 + o.checkpoint_steps;
        train(&o, o.checkpoint_steps == 1, path_in(dir, "parts.gguf"));
        assert_same_files(path_in(dir, "parts.gguf"), path_in(dir, "whole.gguf"));
        train(&o, false, path_in(dir, "again.gguf")); /* nothing is left to do */
        assert_same_files(path_in(dir, "again.gguf"), path_in(dir, "whole.gguf"));
        remove(state_path());
    }
    dpi_finetune *f = open_finetune(&o), *other = open_finetune(&o);
    dpi_error err;
    assert_error(dpi_finetune_step(f, &err), DPI_STATUS_STATE, &err, "has not begun");
    assert_ok(dpi_finetune_begin(f, &err), &err);
    assert_error(dpi_finetune_begin(other, &err), DPI_STATUS_STATE, &err, "another process");
    assert_error(dpi_finetune_write(f, path_in(dir, "half.gguf"), -1, &err), DPI_STATUS_STATE, &err,
                 "0 of 6 steps");
    dpi_finetune_free(other);
    dpi_finetune_free(f);
    o.lr = .5;
    f = open_finetune(&o);
    assert_error(dpi_finetune_begin(f, &err), DPI_STATUS_FORMAT, &err, "another configuration");
    dpi_finetune_free(f);
    remove(state_path());
    dpi_records_close(records);
}

/* The mean loss of public records is that of a session with the adapter, and moves with it. */
static void test_held_out(void **state) {
    (void)state;
    static const char *const texts[] = {"one of a", NULL, "two of b"};
    static const size_t sizes[] = {8, 0, 8};
    dpi_records *records = open_records(false), *held_out;
    dpi_error err;
    assert_ok(dpi_records_create(texts, sizes, 3, &held_out, NULL), NULL);
    dpi_finetune_options o = options_of(records);
    dpi_finetune *f = open_finetune(&o);
    double before, after;
    assert_error(dpi_finetune_held_out(f, &before, &err), DPI_STATUS_STATE, &err, "no held-out");
    dpi_finetune_free(f);
    o.held_out = held_out, o.lr = .05, o.checkpoint = state_path(), o.checkpoint_steps = 1000;
    f = open_finetune(&o);
    assert_ok(dpi_finetune_held_out(f, &before, &err), &err);
    /* B of the adapter is 0: the loss is that of the base, by a session. */
    dpi_instructions in = make_instructions(NULL, 0);
    dpi_prompts_info info;
    dpi_session_options so;
    double sum = 0, n = 0;
    dpi_prompts_info_init(&info);
    dpi_session_options_init(&so);
    so.exact = 1;
    assert_ok(dpi_prompts_info_get(in.prompts[0], &info, NULL), NULL);
    for (int r = 0; r < 3; r += 2) {
        int32_t tokens[64];
        size_t n_text, first = (size_t)info.n_public;
        dpi_session *session;
        memcpy(tokens, dpi_prompts_public(in.prompts[0]), first * sizeof *tokens);
        assert_ok(dpi_tokenize(model, texts[r], 8, 0, tokens + first, 32, &n_text, NULL), NULL);
        tokens[first + n_text] = 2;
        n_text = first + n_text + 1 < 25 ? first + n_text + 1 : 25;
        dpi_model_info m;
        dpi_model_info_init(&m);
        assert_ok(dpi_model_info_get(model, &m, NULL), NULL);
        float *logits = malloc(n_text * (size_t)m.n_vocab * sizeof *logits);
        assert_ok(dpi_session_create(model, &so, &session, NULL), NULL);
        assert_ok(dpi_session_prefill(session, 0, tokens, n_text, logits, NULL), NULL);
        for (size_t t = first; t < n_text; t++, n++) {
            const float *row = logits + (t - 1) * (size_t)m.n_vocab;
            double total = 0;
            for (int32_t v = 0; v < m.n_vocab; v++)
                total += exp((double)row[v]);
            sum += log(total) - (double)row[tokens[t]];
        }
        free(logits);
        dpi_session_free(session);
    }
    assert_true(fabs(before - sum / n) < 1e-4 * before);
    assert_ok(dpi_finetune_begin(f, &err), &err);
    for (int i = 0; i < 2; i++)
        assert_ok(dpi_finetune_step(f, &err), &err);
    assert_ok(dpi_finetune_held_out(f, &after, &err), &err);
    assert_true(fabs(after - before) > 1e-9 * before);
    dpi_finetune_free(f);
    f = open_finetune(&o); /* a process that died: the steps that were told of are kept */
    assert_ok(dpi_finetune_begin(f, &err), &err);
    assert_int_equal(dpi_finetune_steps_done(f), 2);
    dpi_finetune_free(f), remove(state_path());
    dpi_instructions_free(&in);
    dpi_records_close(held_out);
    dpi_records_close(records);
}

/* What is written is a whole adapter with its claim; a number that is changed is seen. */
static void test_file(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    dpi_finetune_options o = options_of(records);
    o.seeded = 0;
    train(&o, false, path_in(dir, "adapter.gguf"));
    dpi_finetune_claim c;
    double recorded;
    int32_t intact;
    dpi_error err;
    size_t n, n_image;
    dpi_finetune_claim_init(&c);
    assert_ok(dpi_finetune_read_claim(path_in(dir, "adapter.gguf"), &c, &recorded, &intact, &err),
              &err);
    assert_true(c.epsilon == recorded && c.sigma == 1.5 && c.n_steps == 6 && c.n_units == 10);
    assert_true(intact && dpi_finetune_is_private(&c));
    tiny_spec spec = tiny_default();
    void *copy;
    tiny_build(&spec, 5, &copy, &n_image);
    dpi_model_options options;
    dpi_model *adapted;
    dpi_model_info info;
    dpi_model_options_init(&options);
    dpi_model_info_init(&info);
    options.adapter = path_in(dir, "adapter.gguf");
    assert_ok(dpi_model_open_buffer(copy, n_image, &options, &adapted, &err), &err);
    assert_ok(dpi_model_info_get(adapted, &info, &err), &err);
    assert_true(info.adapter_rank == 2 && info.n_adapted == 14 && info.adapter_scale == 8);
    dpi_model_close(adapted);
    free(copy);
    char *bytes = read_file(path_in(dir, "adapter.gguf"), &n);
    bytes[n - 3] ^= 1;
    write_file(path_in(dir, "changed.gguf"), bytes, n);
    free(bytes);
    assert_ok(dpi_finetune_read_claim(path_in(dir, "changed.gguf"), &c, &recorded, &intact, &err),
              &err);
    assert_false(intact);
    tiny_build(&spec, 5, &copy, &n_image);
    write_file(path_in(dir, "model.gguf"), copy, n_image);
    free(copy);
    assert_error(dpi_finetune_read_claim(path_in(dir, "model.gguf"), &c, &recorded, &intact, &err),
                 DPI_STATUS_FORMAT, &err, "it is no adapter of 'dpinfer finetune'");
    dpi_records_close(records);
}

/* The logits of the engine with the adapter are those of the graph that was trained. */
static void test_same_model(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    dpi_finetune_options o = options_of(records);
    o.lr = .05;
    dpi_error err;
    dpi_finetune *f = open_finetune(&o);
    assert_ok(dpi_finetune_begin(f, &err), &err);
    while (dpi_finetune_steps_done(f) < o.n_steps)
        assert_ok(dpi_finetune_step(f, &err), &err);
    assert_ok(dpi_finetune_write(f, path_in(dir, "same.gguf"), -1, &err), &err);
    tiny_spec spec = tiny_default();
    void *copy;
    size_t n_image;
    tiny_build(&spec, 5, &copy, &n_image);
    dpi_model_options options;
    dpi_model *models[2];
    dpi_model_options_init(&options);
    assert_ok(dpi_model_open_buffer(copy, n_image, &options, &models[0], &err), &err);
    options.adapter = path_in(dir, "same.gguf");
    assert_ok(dpi_model_open_buffer(copy, n_image, &options, &models[1], &err), &err);
    static const int32_t tokens[] = {1, 263, 270, 99, 300, 12, 31}, begins[] = {0, 6};
    static const float ones[] = {1, 1, 1, 1, 1, 1};
    const dpi_row row = {6, 1, begins, tokens, tokens + 1, ones};
    double loss[2] = {0, 0};
    float *logits = malloc(6 * 320 * sizeof *logits);
    for (int i = 0; i < 2; i++) {
        dpi_session_options so;
        dpi_session_options_init(&so);
        so.exact = 1;
        dpi_session *s = open_session(models[i], &so, 1, 8);
        assert_ok(dpi_session_prefill(s, 0, tokens, 6, logits, &err), &err);
        for (int t = 0; t < 6; t++) {
            double sum = 0;
            for (int y = 0; y < 320; y++)
                sum += exp((double)logits[t * 320 + y]);
            loss[i] += log(sum) - (double)logits[t * 320 + tokens[t + 1]];
        }
        dpi_session_free(s);
        dpi_model_close(models[i]);
    }
    const double wanted = dpi_tuner_loss(f->tuner, &row);
    assert_true(fabs(loss[1] - wanted) < 1e-4 * wanted && fabs(loss[0] - wanted) > 1e-2);
    free(logits), free(copy);
    dpi_finetune_free(f);
    dpi_records_close(records);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static dpi_ledger *open_ledger(int32_t scope) {
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_ledger *ledger;
    dpi_error err;
    remove(path_in(dir, "year.ledger"));
    dpi_ledger_options_init(&options);
    options.create = 1;
    assert_ok(dpi_ledger_open(path_in(dir, "year.ledger"), &options, &ledger, &err), &err);
    dpi_dataset_options_init(&dataset);
    dataset.name = "people", dataset.epsilon = 3, dataset.delta = 1e-4, dataset.scope = scope;
    assert_ok(dpi_ledger_add(ledger, &dataset, &err), &err);
    return ledger;
}

static void test_ledger(void **state) {
    (void)state;
    dpi_records *records = open_records(true);
    dpi_finetune_options o = options_of(records);
    dpi_error err;
    dpi_dataset_info info;
    dpi_cost cost;
    double divergence;
    dpi_dataset_info_init(&info);
    o.ledger = open_ledger(DPI_SCOPE_DATASET), o.dataset = "people";
    dpi_finetune *f;
    assert_error(dpi_finetune_open(&o, &f, &err), DPI_STATUS_UNSUPPORTED, &err, "has none");
    o.seeded = 0, o.sigma = 4, o.checkpoint = state_path();
    for (int i = 0; i < 2; i++) { /* the second one goes on */
        f = open_finetune(&o);
        assert_ok(dpi_ledger_info(o.ledger, "people", &info, &err), &err);
        assert_int_equal(info.n_charges, i);
        assert_ok(dpi_finetune_begin(f, &err), &err);
        assert_ok(dpi_finetune_step(f, &err), &err);
        assert_ok(dpi_finetune_keep(f, &err), &err);
        assert_int_equal(dpi_finetune_steps_done(f), i + 1);
        assert_ok(dpi_ledger_info(o.ledger, "people", &info, &err), &err);
        assert_int_equal(info.n_charges, 1);
        dpi_cost_init(&cost);
        assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 6, 4, dpi_finetune_claim_of(f)->sampling,
                               &err), &err);
        assert_ok(dpi_cost_renyi(&cost, info.order, &divergence, &err), &err);
        assert_true((double)info.charged >= divergence * DPI_LEDGER_ONE &&
                    (double)info.charged <= divergence * DPI_LEDGER_ONE * (1 + 1e-9) + 1);
        dpi_finetune_free(f);
    }
    o.checkpoint = NULL, o.sigma = .3; /* more than what is left: no record is read */
    f = open_finetune(&o);
    assert_int_equal(dpi_finetune_begin(f, &err), DPI_STATUS_BUDGET);
    assert_null(f->examples.of);
    assert_error(dpi_finetune_step(f, &err), DPI_STATUS_STATE, &err, "has not begun");
    dpi_finetune_free(f);
    dpi_ledger_close(o.ledger);
    remove(state_path());
    dpi_records_close(records);
}

static void test_spent(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    dpi_finetune_options o = options_of(records);
    dpi_finetune *f = open_finetune(&o);
    dpi_gaussian g;
    double spent, wanted, last = 0;
    dpi_gaussian_init(&g);
    assert_ok(dpi_finetune_begin(f, NULL), NULL);
    for (int32_t i = 0; i < 6; i++) {
        assert_ok(dpi_finetune_spent(f, &spent, NULL), NULL);
        g.sigma = 1.5, g.sampling = dpi_finetune_claim_of(f)->sampling, g.n_steps = i;
        if (i > 0)
            assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &wanted, NULL), NULL);
        assert_true(i == 0 ? spent == 0 : spent == wanted && spent > last);
        last = spent;
        assert_ok(dpi_finetune_step(f, NULL), NULL);
    }
    assert_ok(dpi_finetune_spent(f, &spent, NULL), NULL);
    assert_true(spent == dpi_finetune_claim_of(f)->epsilon);
    dpi_finetune_free(f);
    dpi_records_close(records);
}

/* No record at all is a training like any other. */
static void test_no_records(void **state) {
    (void)state;
    dpi_records *records;
    assert_ok(dpi_records_create(NULL, NULL, 0, &records, NULL), NULL);
    dpi_finetune_options o = options_of(records);
    train(&o, false, path_in(dir, "none.gguf"));
    dpi_records_close(records);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settled),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_examples), cmocka_unit_test(test_held_out),
        cmocka_unit_test(test_mismatch), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_file),     cmocka_unit_test(test_same_model),
        cmocka_unit_test(test_ledger),   cmocka_unit_test(test_no_records),
        cmocka_unit_test(test_spent),
    };
    tiny_spec spec = tiny_default();
    make_dir(dir, sizeof dir), model = tiny_open(&spec, 5, &image);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dpi_model_close(model), free(image);
    remove_dir(dir);
    return failed;
}
