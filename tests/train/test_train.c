/* Training runs: what is read, that runs repeat and resume bit for bit, that the exported model
 * computes what was trained, and what is refused. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dpinfer/train.h"
#include "base/mem.h"
#include "tests/support/support.h"
#include "train/corpus.h"
#include "train/export.h"

enum { STEPS = 8, MAX_STEPS = 400, N_EXAMPLES = 60 };

static char dir[256];

/* ---- Files ----------------------------------------------------------------------------------- */

/* <unk> <s> </s> <|im_start|> <|im_end|>, the bytes from 5 on, U+2581 (261), the letters a..z. */
enum { IM_START = 3, IM_END = 4, BYTE = 5, SPACE = 261, LETTER = 262, N_VOCAB = LETTER + 26 };

static void write_vocab(const char *path) {
    FILE *f = fopen(path, "w");
    fputs("<unk>\t0\n<s>\t0\n</s>\t0\n<|im_start|>\t0\n<|im_end|>\t0\n", f);
    for (int i = 0; i < 256; i++)
        fprintf(f, "<0x%02X>\t0\n", (unsigned)i);
    fputs("\xe2\x96\x81\t-1\n", f);
    for (int i = 0; i < 26; i++)
        fprintf(f, "%c\t-%d\n", 'a' + i, i + 2);
    fclose(f);
}

/* Examples of several lengths in which the answer repeats a word of the request. */
static void write_examples(const char *path, uint64_t seed, int n) {
    FILE *f = fopen(path, "w");
    for (int i = 0; i < n; i++) {
        char word[8] = "";
        int letters = 1 + random_below(&seed, 3), times = 1 + random_below(&seed, 6);
        for (int j = 0; j < letters; j++)
            word[j] = (char)('a' + random_below(&seed, 4));
        fprintf(f, "{\"user\": \"say %s\", \"assistant\": \"", word);
        for (int j = 0; j < times; j++)
            fprintf(f, "%s%s", j ? " " : "", word);
        fputs("\"}\n", f);
    }
    fclose(f);
}

static dpi_train_config tiny_config(const char *checkpoint) {
    dpi_train_config c;
    dpi_train_config_init(&c);
    snprintf(c.data[0], sizeof c.data[0], "%s", path_in(dir, "train.jsonl"));
    snprintf(c.heldout, sizeof c.heldout, "%s", path_in(dir, "heldout.jsonl"));
    snprintf(c.vocab, sizeof c.vocab, "%s", path_in(dir, "vocab"));
    snprintf(c.checkpoint, sizeof c.checkpoint, "%s", path_in(dir, checkpoint));
    c.n_layer = 2, c.dim = 16, c.n_head = 4, c.n_kv_head = 2, c.ffn = 24, c.context = 64;
    c.batch_tokens = 256, c.steps = STEPS, c.lr = 1e-2, c.warmup = 3, c.prompt_weight = 0.25;
    c.checkpoint_steps = 3, c.heldout_steps = 4, c.threads = 1, c.seed = 5;
    return c;
}

static int set_up(void **state) {
    (void)state;
    make_dir(dir, sizeof dir);
    write_vocab(path_in(dir, "vocab"));
    write_examples(path_in(dir, "train.jsonl"), 1, N_EXAMPLES);
    write_examples(path_in(dir, "heldout.jsonl"), 2, 12);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    remove_dir(dir);
    return 0;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* The curve of a run; what follows says how it ends. */
typedef struct curve {
    double loss[MAX_STEPS + 1], heldout[MAX_STEPS + 1];
    int64_t n_tokens[MAX_STEPS + 1]; /* positions so far */
    int64_t first, last, kill_after, stop_after; /* 0: never */
} curve;

static void on_step(void *user, const dpi_train_progress *p) {
    curve *c = user;
    c->first = c->first ? c->first : p->step;
    c->last = p->step;
    c->loss[p->step] = p->loss;
    c->n_tokens[p->step] = c->n_tokens[p->step - 1] + p->n_tokens;
    c->heldout[p->step] = p->heldout_loss;
    if (p->step == c->kill_after)
        raise(SIGKILL);
}

static int32_t should_stop(void *user) {
    const curve *c = user;
    return c->stop_after > 0 && c->last == c->stop_after;
}

static dpi_status run(const dpi_train_config *config, curve *c, const char *output,
                      dpi_error *err) {
    dpi_train *train;
    dpi_status status = dpi_train_create(config, &train, err);
    if (status != DPI_STATUS_OK)
        return status;
    dpi_train_hooks hooks = {sizeof hooks, on_step, should_stop, c};
    status = dpi_train_run(train, &hooks, err);
    if (status == DPI_STATUS_OK && output)
        status = dpi_train_export(train, output, "F32", err);
    dpi_train_free(train);
    return status;
}

static void assert_same_curve(const curve *a, const curve *b, int64_t from) {
    for (int64_t i = from; i <= STEPS; i++) {
        assert_memory_equal(&a->loss[i], &b->loss[i], sizeof a->loss[i]);
        assert_memory_equal(&a->heldout[i], &b->heldout[i], sizeof a->heldout[i]);
    }
}

static void assert_same_file(const char *a, const char *b) {
    size_t n, m;
    char *x = read_file(a, &n), *y = read_file(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x), free(y);
}

/* Killed between two checkpoints: the next run goes on from the last one, and ends with the
 * weights of a run that was left alone. First of the tests: a fork after threads of OpenMP
 * would not have them. */
static void test_killed_and_resumed(void **state) {
    (void)state;
    dpi_error err;
    curve whole = {0}, killed = {.kill_after = 5}, rest = {0};
    dpi_train_config config = tiny_config("whole.ckpt");
    assert_ok(run(&config, &whole, path_in(dir, "whole.gguf"), &err), &err);
    assert_int_equal(whole.last, STEPS);
    assert_true(isfinite(whole.heldout[4]) && isnan(whole.heldout[5]));
    assert_true(isfinite(whole.heldout[STEPS]));

    config = tiny_config("killed.ckpt");
    pid_t child = fork();
    if (child == 0) {
        run(&config, &killed, NULL, NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_ok(run(&config, &rest, path_in(dir, "rest.gguf"), &err), &err);
    assert_int_equal(rest.first, 4); /* the checkpoint was after step 3 */
    assert_same_curve(&whole, &rest, 4);
    assert_same_file(path_in(dir, "whole.gguf"), path_in(dir, "rest.gguf"));
}

/* Another number of threads, more rows than there are gradients at a time, a stop that was
 * asked for. */
static void test_same_bits(void **state) {
    (void)state;
    dpi_error err;
    curve one = {0}, three = {.stop_after = 2}, other = {0};
    dpi_train_config config = tiny_config("one.ckpt");
    config.batch_tokens = 20 * config.context; /* crosses epochs, too */
    assert_ok(run(&config, &one, path_in(dir, "one.gguf"), &err), &err);
    snprintf(config.checkpoint, sizeof config.checkpoint, "%s", path_in(dir, "three.ckpt"));
    config.threads = 3;
    assert_error(run(&config, &three, NULL, &err), DPI_STATUS_CANCELLED, &err, "after step 2 of 8");
    three.stop_after = 0;
    assert_ok(run(&config, &three, path_in(dir, "three.gguf"), &err), &err);
    assert_same_curve(&one, &three, 1);
    assert_same_file(path_in(dir, "one.gguf"), path_in(dir, "three.gguf"));
    config.seed++;
    snprintf(config.checkpoint, sizeof config.checkpoint, "%s", path_in(dir, "seed.ckpt"));
    assert_ok(run(&config, &other, NULL, &err), &err);
    assert_true(other.loss[1] != one.loss[1]);
}

/* A row a step, for two epochs: each has every position once. */
static void test_epochs(void **state) {
    (void)state;
    dpi_error err;
    curve c = {0};
    dpi_train *train;
    dpi_train_config config = tiny_config("epochs.ckpt");
    config.batch_tokens = config.context;
    config.steps = 0;
    config.epochs = 2.1;
    assert_ok(dpi_train_create(&config, &train, &err), &err);
    dpi_train_info info = {.struct_size = sizeof info};
    assert_ok(dpi_train_info_get(train, &info, &err), &err);
    assert_int_equal(info.n_examples, N_EXAMPLES);
    assert_int_equal(info.n_too_long, 0);
    assert_int_equal(info.steps, (int64_t)ceil(2.1 * (double)info.n_rows));
    dpi_train_hooks hooks = {sizeof hooks, on_step, NULL, &c};
    assert_ok(dpi_train_run(train, &hooks, &err), &err);
    assert_int_equal(c.n_tokens[info.n_rows], info.n_tokens);
    int64_t step = info.n_rows;
    while (step < info.steps && c.n_tokens[step] < 2 * info.n_tokens)
        step++;
    assert_int_equal(c.n_tokens[step], 2 * info.n_tokens);
    dpi_train_free(train);
}

/* From a uniform guess to what the answers leave open, which is mostly where they end. */
static void test_learns(void **state) {
    (void)state;
    dpi_error err;
    curve c = {0};
    dpi_train_config config = tiny_config("learns.ckpt");
    config.steps = MAX_STEPS;
    assert_ok(run(&config, &c, NULL, &err), &err);
    if (!(fabs(c.loss[1] - log(N_VOCAB)) < 0.2 && c.heldout[MAX_STEPS] < 1))
        fail_msg("loss %g at first, %g held out", c.loss[1], c.heldout[MAX_STEPS]);
}

/* The first steps of a schedule are those of the whole, where decay_steps says how long it is. */
static void test_decay(void **state) {
    (void)state;
    dpi_error err;
    curve whole = {0}, part = {0}, other = {0};
    dpi_train_config config = tiny_config("decay-whole.ckpt");
    config.steps = 20;
    assert_ok(run(&config, &whole, NULL, &err), &err);
    config = tiny_config("decay-part.ckpt");
    config.steps = 10, config.decay_steps = 20;
    assert_ok(run(&config, &part, NULL, &err), &err);
    config = tiny_config("decay-other.ckpt");
    config.steps = 10;
    assert_ok(run(&config, &other, NULL, &err), &err);
    assert_int_equal(part.last, 10);
    for (int64_t i = 1; i <= 10; i++)
        if (part.loss[i] != whole.loss[i])
            fail_msg("step %d: %.17g, %.17g", (int)i, part.loss[i], whole.loss[i]);
    assert_true(other.loss[10] != whole.loss[10]);
}

static dpi_status create(const dpi_train_config *config, dpi_error *err) {
    dpi_train *train;
    dpi_status status = dpi_train_create(config, &train, err);
    if (status == DPI_STATUS_OK)
        dpi_train_free(train);
    return status;
}

static dpi_status export_start(const dpi_train_config *config, const char *path, dpi_error *err) {
    dpi_train *train;
    dpi_status status = dpi_train_create(config, &train, err);
    if (status == DPI_STATUS_OK) {
        status = dpi_train_export(train, path, "F32", err);
        dpi_train_free(train);
    }
    return status;
}

/* A run that starts from a file has its weights and its vocabulary, bit for bit. */
static void test_starts_from_file(void **state) {
    (void)state;
    dpi_error err;
    curve first = {0}, second = {0};
    char from[512];
    snprintf(from, sizeof from, "%s", path_in(dir, "from.gguf"));
    dpi_train_config config = tiny_config("from.ckpt");
    config.steps = 40;
    assert_ok(run(&config, &first, from, &err), &err);

    config = tiny_config("init.ckpt");
    config.seed = 77;
    snprintf(config.init, sizeof config.init, "%s", from);
    snprintf(config.vocab, sizeof config.vocab, "%s", from);
    assert_ok(export_start(&config, path_in(dir, "same.gguf"), &err), &err);
    assert_same_file(from, path_in(dir, "same.gguf"));
    assert_ok(run(&config, &second, NULL, &err), &err);
    assert_int_equal(second.first, 1);
    assert_true(second.loss[1] < (first.loss[1] + first.loss[40]) / 2);
    second = (curve){0}; /* a checkpoint comes before the file */
    config.steps = STEPS + 1;
    assert_ok(run(&config, &second, NULL, &err), &err);
    assert_int_equal(second.first, STEPS + 1);

    config = tiny_config("layers.ckpt");
    snprintf(config.init, sizeof config.init, "%s", from);
    config.n_layer = 3;
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err,
                 "from.gguf: has no tensor blk.2.attn_norm.weight");
    config.n_layer = 2, config.ffn = 32;
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err,
                 "from.gguf: blk.0.ffn_gate.weight is 16 x 24, must be 16 x 32");
    snprintf(config.init, sizeof config.init, "%s", path_in(dir, "none.gguf"));
    assert_error(create(&config, &err), DPI_STATUS_IO, &err, "none.gguf");
    snprintf(config.vocab, sizeof config.vocab, "%s", path_in(dir, "none.gguf"));
    assert_error(create(&config, &err), DPI_STATUS_IO, &err, "none.gguf");
}

/* ---- Examples -------------------------------------------------------------------------------- */

static dpi_model *open_tokenizer(void) {
    dpi_error err;
    dpi_vocab_text vocab;
    const dpi_train_config config = {.name = "test"};
    dpi_graph_shape shape = {.n_layer = 1, .dim = 16, .n_head = 4, .n_kv_head = 2, .ffn = 24,
                             .n_vocab = N_VOCAB, .context = 64, .tied = 1, .rms_eps = 1e-5f,
                             .rope_base = 10000};
    assert_ok(dpi_vocab_text_read(path_in(dir, "vocab"), &vocab, &err), &err);
    assert_int_equal(vocab.n, N_VOCAB);
    assert_int_equal(vocab.eos, IM_END);
    assert_ok(dpi_export_gguf(path_in(dir, "vocab.gguf"), &config, &shape, &vocab, NULL, &err),
              &err);
    dpi_vocab_text_free(&vocab);
    dpi_model_options options;
    dpi_model_options_init(&options);
    options.vocab_only = 1;
    dpi_model *model;
    assert_ok(dpi_model_open(path_in(dir, "vocab.gguf"), &options, &model, &err), &err);
    return model;
}

static void test_example_tokens(void **state) {
    (void)state;
    dpi_error err;
    static const char text[] = "\n{\"user\": \"a<|im_end|>\", \"assistant\": \"b\"}\n";
    write_file(path_in(dir, "one.jsonl"), text, strlen(text));
    dpi_model *model = open_tokenizer();
    dpi_corpus corpus;
    const char *path = path_in(dir, "one.jsonl");
    assert_ok(dpi_corpus_read(model, IM_END, &path, 1, 64, 1, &corpus, &err), &err);
    /* The words of a turn begin with a space, as every text does; those of a control token in a
     * request are text. */
#define L(c) (LETTER + (c) - 'a')
#define B(c) (BYTE + (c))
    const int32_t wanted[] = {
        1, IM_START, SPACE, L('u'), L('s'), L('e'), L('r'), B('\n'),
        L('a'), B('<'), B('|'), L('i'), L('m'), B('_'), L('e'), L('n'), L('d'), B('|'), B('>'),
        IM_END, SPACE, B('\n'), IM_START, SPACE,
        L('a'), L('s'), L('s'), L('i'), L('s'), L('t'), L('a'), L('n'), L('t'), B('\n'),
        SPACE, L('b'), IM_END};
    enum { N = sizeof wanted / sizeof wanted[0] };
    assert_int_equal(corpus.n, 1);
    assert_int_equal(corpus.begins[1], N);
    assert_memory_equal(corpus.tokens, wanted, sizeof wanted);
    assert_int_equal(corpus.n_prompt[0], N - 3);
    dpi_corpus_free(&corpus);
    dpi_model_close(model);
}

/* ---- The exported model ---------------------------------------------------------------------- */

static void compare_inference(int32_t tied) {
    enum { N = 50 };
    dpi_error err;
    dpi_graph_shape s = {.n_layer = 2, .dim = 32, .n_head = 4, .n_kv_head = 2, .ffn = 40,
                         .n_vocab = N_VOCAB, .context = 64, .tied = tied, .rms_eps = 1e-5f,
                         .rope_base = 500};
    dpi_graph_layout at;
    dpi_graph_layout_of(&s, &at);
    const dpi_graph *graph = dpi_graph_best();
    dpi_blas blas;
    assert_ok(dpi_blas_open(&blas, 1, &err), &err);
    s.blas = &blas;
    float *params = dpi_calloc((size_t)at.n_params, sizeof *params);
    float *work = dpi_calloc(graph->work_size(&s), sizeof *work);
    float *trained = dpi_calloc(N * N_VOCAB, sizeof *trained);
    float *inferred = dpi_calloc(N * N_VOCAB, sizeof *inferred);
    uint64_t seed = 21;
    for (int64_t i = 0; i < at.n_params; i++)
        params[i] = (float)(0.3 * random_normal(&seed));
    int32_t tokens[N], begins[] = {0, N};
    for (int i = 0; i < N; i++)
        tokens[i] = random_below(&seed, N_VOCAB);
    dpi_row row = {N, 1, begins, tokens, NULL, NULL};
    graph->work_init(&s, work);
    graph->logits(&s, params, &row, trained, work);
    dpi_blas_close(&blas);

    dpi_vocab_text vocab;
    const dpi_train_config config = {.name = "test", .sampling_top_k = 7, .sampling_temp = 0.6};
    assert_ok(dpi_vocab_text_read(path_in(dir, "vocab"), &vocab, &err), &err);
    assert_ok(dpi_export_gguf(path_in(dir, "model.gguf"), &config, &s, &vocab, params, &err), &err);
    dpi_vocab_text_free(&vocab);
    dpi_model *model;
    dpi_session *session;
    dpi_session_options options;
    dpi_session_options_init(&options);
    options.exact = 1;
    assert_ok(dpi_model_open(path_in(dir, "model.gguf"), NULL, &model, &err), &err);
    dpi_model_info info = {.struct_size = sizeof info};
    assert_ok(dpi_model_info_get(model, &info, &err), &err);
    assert_int_equal(info.chat_template, DPI_CHAT_CHATML);
    assert_int_equal(info.tied_output, tied);
    assert_int_equal(info.sampling_top_k, 7);
    assert_true(info.sampling_temp == 0.6);
    assert_int_equal(dpi_token_is_eog(model, IM_END), 1);
    assert_ok(dpi_session_create(model, &options, &session, &err), &err);
    assert_ok(dpi_session_prefill(session, 0, tokens, N, inferred, &err), &err);
    double error = 0, square = 0;
    for (int i = 0; i < N * N_VOCAB; i++) {
        error += pow((double)trained[i] - (double)inferred[i], 2);
        square += pow((double)inferred[i], 2);
    }
    if (!(error <= 1e-9 * square))
        fail_msg("NMSE of training's logits against inference's: %g", error / square);
    dpi_session_free(session);
    dpi_model_close(model);
    free(params), free(work), free(trained), free(inferred);
}

static void test_inference_agrees(void **state) {
    (void)state;
    compare_inference(1);
    compare_inference(0);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_checkpoint_refusals(void **state) {
    (void)state;
    dpi_error err;
    curve c = {0};
    dpi_train_config config = tiny_config("bad.ckpt"), other;
    char path[512];
    snprintf(path, sizeof path, "%s", path_in(dir, "bad.ckpt"));
    assert_ok(run(&config, &c, NULL, &err), &err);
    size_t n;
    char *data = read_file(path, &n);

    other = config;
    other.lr *= 2;
    assert_error(create(&other, &err), DPI_STATUS_FORMAT, &err,
                 "bad.ckpt is of a run with another configuration");
    other = config;
    other.steps = 4;
    assert_error(create(&other, &err), DPI_STATUS_ARG, &err, "has done 8 steps, steps is 4");
    other = config;
    other.steps = 20;
    other.threads = 2;
    assert_ok(create(&other, &err), &err);
    snprintf(other.data[0], sizeof other.data[0], "%s", path_in(dir, "heldout.jsonl"));
    assert_error(create(&other, &err), DPI_STATUS_FORMAT, &err,
                 "bad.ckpt is of a run on other data");

    write_file(path, data, n - 1);
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err, "bytes, must have");
    write_file(path, data, 20);
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err, "a checkpoint has more");
    data[n / 2] ^= 1;
    write_file(path, data, n);
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err, "bad.ckpt is damaged");
    data[0] ^= 1;
    write_file(path, data, n);
    assert_error(create(&config, &err), DPI_STATUS_FORMAT, &err, "bad.ckpt is not a checkpoint");
    free(data);
}

/* Every allocation of creation fails once. One that a line of the data needs is asked for again. */
static void test_memory(void **state) {
    (void)state;
    dpi_error err;
    dpi_train_config config = tiny_config("memory.ckpt");
    write_examples(path_in(dir, "few.jsonl"), 3, 6);
    snprintf(config.data[0], sizeof config.data[0], "%s", path_in(dir, "few.jsonl"));
    fail_allocation(0);
    assert_ok(create(&config, &err), &err);
    int64_t n = fail_allocation(0), n_failed = 0;
    assert_true(n > 50);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        dpi_status status = create(&config, &err);
        fail_allocation(0);
        n_failed += status != DPI_STATUS_OK;
        if (status != DPI_STATUS_OK)
            assert_error(status, DPI_STATUS_MEMORY, &err, "memory");
    }
    assert_true(n_failed > 30);
}

static void test_config_file(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"dim = 64\nlayers = 3\n", "c.conf:2: key 'layers' is unknown"},
        {"dim 64", "c.conf:1: found 'dim 64', must be key = value"},
        {"# x\n\ndim = sixty # y\n",
         "c.conf:3: dim is 'sixty', allowed: a whole number in 2..16384"},
        {"dim = 1", "dim is '1'"},
        {"dim = 64.5", "dim is '64.5'"},
        {"lr = nan", "lr is 'nan', allowed: 0..1"},
        {"lr = 2", "lr is '2', allowed: 0..1"},
        {"seed = -1", "seed is '-1'"},
        {"dim = 64\ndim = 64\n", "c.conf:2: key dim is given twice"},
        {"vocab =", "vocab is '', allowed: text of 1..1023 bytes"},
        {"data=1\ndata=2\ndata=3\ndata=4\ndata=5\ndata=6\ndata=7\ndata=8\ndata=9\n",
         "c.conf:9: data is '9', allowed: 8 data files at most"},
    };
    dpi_error err;
    dpi_train_config c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(path_in(dir, "c.conf"), cases[i].text, strlen(cases[i].text));
        dpi_train_config_init(&c);
        assert_error(dpi_train_config_read(path_in(dir, "c.conf"), &c, &err), DPI_STATUS_FORMAT,
                     &err, cases[i].message);
    }
    static const char good[] = "  dim=48\r\ndata = a b \ndata = c # d\nlr = 1e-3";
    write_file(path_in(dir, "c.conf"), good, strlen(good));
    dpi_train_config_init(&c);
    assert_ok(dpi_train_config_read(path_in(dir, "c.conf"), &c, &err), &err);
    assert_int_equal(c.dim, 48);
    assert_string_equal(c.data[0], "a b");
    assert_string_equal(c.data[1], "c");
    assert_true(c.lr == 1e-3);
    assert_error(dpi_train_config_read(path_in(dir, "none"), &c, &err), DPI_STATUS_IO, &err,
                 "none");
}

#define REFUSES(change, message)                                              \
    do {                                                                      \
        dpi_train_config c = tiny_config("refused.ckpt");                     \
        change;                                                               \
        assert_error(create(&c, &err), DPI_STATUS_ARG, &err, message);        \
    } while (0)

static void test_config_rules(void **state) {
    (void)state;
    dpi_error err;
    REFUSES(c.struct_size = 1, "struct_size is 1");
    REFUSES(c.n_head = 3, "dim is 16, must be an even multiple of n_head, 3");
    REFUSES(c.n_kv_head = 3, "n_head is 4, must be a multiple of n_kv_head, 3");
    REFUSES(c.batch_tokens = 100, "batch_tokens is 100, must be a multiple of context, 64");
    REFUSES(c.steps = 0, "one of them must be given");
    REFUSES(c.epochs = 1, "one of them must be given");
    REFUSES(c.lr_floor = 0.5, "lr_floor is 0.5, must be at most lr");
    REFUSES(c.clip = -1, "clip is -1, allowed: 0..1000000");
    REFUSES(c.data[0][0] = '\0', "data has 0 bytes");
}

static void test_data_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"user\": \"a\", \"assistant\": \"b\"}\n{\"user\": 1}\n",
         "bad.jsonl:2: must be an object"},
        {"\n\n{\n", "bad.jsonl:3: not a JSON object"},
        {"", "bad.jsonl: no example fits into 64 positions"},
    };
    dpi_error err;
    dpi_train_config c = tiny_config("data.ckpt");
    snprintf(c.data[0], sizeof c.data[0], "%s", path_in(dir, "bad.jsonl"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(path_in(dir, "bad.jsonl"), cases[i].text, strlen(cases[i].text));
        assert_error(create(&c, &err), DPI_STATUS_FORMAT, &err, cases[i].message);
    }
    static const char *const vocabs[][2] = {{"<unk>\t0\n<s>\t0\n", "has no piece <|im_end|>"},
                                            {"<unk>\t0\n<s> 0\n", "bad.vocab:2: must be a piece"}};
    c = tiny_config("data.ckpt");
    snprintf(c.vocab, sizeof c.vocab, "%s", path_in(dir, "bad.vocab"));
    for (size_t i = 0; i < 2; i++) {
        write_file(path_in(dir, "bad.vocab"), vocabs[i][0], strlen(vocabs[i][0]));
        assert_error(create(&c, &err), DPI_STATUS_FORMAT, &err, vocabs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_and_resumed),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_starts_from_file),
        cmocka_unit_test(test_decay),
        cmocka_unit_test(test_example_tokens),
        cmocka_unit_test(test_inference_agrees),
        cmocka_unit_test(test_checkpoint_refusals),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_config_file),
        cmocka_unit_test(test_config_rules),
        cmocka_unit_test(test_data_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
