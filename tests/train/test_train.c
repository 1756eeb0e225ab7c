/* Training runs: what is read, that runs repeat and resume bit for bit, that the exported model
 * computes what was trained, and what is refused. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dpinfer/train.h"
#include "base/mem.h"
#include "tests/support/own.h"
#include "tests/support/support.h"
#include "train/corpus.h"
#include "train/export.h"

enum { STEPS = 8, MAX_STEPS = 400, N_EXAMPLES = 60 };

static char dir[256];

OWNED(dpi_train, dpi_train_free)
OWNED(dpi_model, dpi_model_close)
OWNED(dpi_session, dpi_session_free)

/* The path of a file of the folder, in a member of a configuration. */
#define SET_PATH(member, name) snprintf(member, sizeof member, "%s", path_in(dir, name))

static void write_text(const char *name, const char *text) {
    write_file(path_in(dir, name), text, strlen(text));
}

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
    DEFAULTS(dpi_train_config, c);
    SET_PATH(c.data[0], "train.jsonl"), SET_PATH(c.heldout, "heldout.jsonl");
    SET_PATH(c.vocab, "vocab"), SET_PATH(c.checkpoint, checkpoint);
    c.n_layer = 2, c.dim = 16, c.n_head = 4, c.n_kv_head = 2, c.ffn = 24, c.context = 64;
    c.batch_tokens = 256, c.steps = STEPS, c.lr = 1e-2, c.warmup = 3, c.prompt_weight = 0.25;
    c.checkpoint_steps = 3, c.heldout_steps = 4, c.threads = 1, c.seed = 5;
    return c;
}

SETUP {
    make_dir(dir, sizeof dir);
    write_vocab(path_in(dir, "vocab"));
    write_examples(path_in(dir, "train.jsonl"), 1, N_EXAMPLES);
    write_examples(path_in(dir, "heldout.jsonl"), 2, 12);
}

TEARDOWN { remove_dir(dir); }

/* ---- Runs ------------------------------------------------------------------------------------ */

/* The curve of a run; what follows says how it ends. */
typedef struct curve {
    double loss[MAX_STEPS + 1], heldout[MAX_STEPS + 1];
    int64_t n_tokens[MAX_STEPS + 1];             /* positions so far */
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

static dpi_status run(const dpi_train_config *config, curve *c, const char *output) {
    const dpi_train_hooks hooks = {sizeof hooks, on_step, should_stop, c};
    OWN(dpi_train) train = NULL;
    dpi_status status = dpi_train_create(config, &train, ERR);
    if (status == DPI_STATUS_OK)
        status = dpi_train_run(train, &hooks, ERR);
    if (status == DPI_STATUS_OK && output)
        status = dpi_train_export(train, path_in(dir, output), "F32", ERR);
    return status;
}

/* A whole run, which must go well. */
static curve run_all(const dpi_train_config *config, const char *output) {
    curve c = {0};
    assert_ok(run(config, &c, output));
    return c;
}

static dpi_status create(const dpi_train_config *config) {
    OWN(dpi_train) train = NULL;
    return dpi_train_create(config, &train, ERR);
}

static void assert_same_curve(const curve *a, const curve *b, int64_t from) {
    for (int64_t i = from; i <= STEPS; i++) {
        assert_memory_equal(&a->loss[i], &b->loss[i], sizeof a->loss[i]);
        assert_memory_equal(&a->heldout[i], &b->heldout[i], sizeof a->heldout[i]);
    }
}

static void assert_same_file(const char *a, const char *b) {
    size_t n, m;
    OWN_ARRAY(char) x = read_file(path_in(dir, a), &n);
    OWN_ARRAY(char) y = read_file(path_in(dir, b), &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

/* Killed between two checkpoints: the next run goes on from the last one, and ends with the
 * weights of a run that was left alone. First of the tests: a fork after threads of OpenMP
 * would not have them. */
TEST(test_killed_and_resumed) {
    dpi_train_config config = tiny_config("whole.ckpt");
    const curve whole = run_all(&config, "whole.gguf");
    assert_int_equal(whole.last, STEPS);
    assert_true(isfinite(whole.heldout[4]) && isnan(whole.heldout[5]));
    assert_true(isfinite(whole.heldout[STEPS]));
    config = tiny_config("killed.ckpt");
    const pid_t child = fork();
    if (child == 0) {
        (void)run(&config, &(curve){.kill_after = 5}, NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const curve rest = run_all(&config, "rest.gguf");
    assert_int_equal(rest.first, 4); /* the checkpoint was after step 3 */
    assert_same_curve(&whole, &rest, 4);
    assert_same_file("whole.gguf", "rest.gguf");
}

/* Another number of threads, more rows than there are gradients at a time, a stop that was
 * asked for. */
TEST(test_same_bits) {
    curve three = {.stop_after = 2};
    dpi_train_config config = tiny_config("one.ckpt");
    config.batch_tokens = 20 * config.context; /* crosses epochs, too */
    const curve one = run_all(&config, "one.gguf");
    SET_PATH(config.checkpoint, "three.ckpt"), config.threads = 3;
    assert_error(run(&config, &three, NULL), CANCELLED, "after step 2 of 8");
    three.stop_after = 0;
    assert_ok(run(&config, &three, "three.gguf"));
    assert_same_curve(&one, &three, 1);
    assert_same_file("one.gguf", "three.gguf");
    SET_PATH(config.checkpoint, "seed.ckpt"), config.seed++;
    assert_true(run_all(&config, NULL).loss[1] != one.loss[1]);
}

/* A row a step, for two epochs: each has every position once. */
TEST(test_epochs) {
    curve c = {0};
    OWN(dpi_train) train = NULL;
    dpi_train_config config = tiny_config("epochs.ckpt");
    config.batch_tokens = config.context, config.steps = 0, config.epochs = 2.1;
    assert_ok(dpi_train_create(&config, &train, ERR));
    dpi_train_info info = {.struct_size = sizeof info};
    assert_ok(dpi_train_info_get(train, &info, ERR));
    assert_int_equal(info.n_examples, N_EXAMPLES);
    assert_int_equal(info.n_too_long, 0);
    assert_int_equal(info.steps, (int64_t)ceil(2.1 * (double)info.n_rows));
    dpi_train_hooks hooks = {sizeof hooks, on_step, NULL, &c};
    assert_ok(dpi_train_run(train, &hooks, ERR));
    assert_int_equal(c.n_tokens[info.n_rows], info.n_tokens);
    int64_t step = info.n_rows;
    while (step < info.steps && c.n_tokens[step] < 2 * info.n_tokens)
        step++;
    assert_int_equal(c.n_tokens[step], 2 * info.n_tokens);
}

/* From a uniform guess to what the answers leave open, which is mostly where they end. */
TEST(test_learns) {
    dpi_train_config config = tiny_config("learns.ckpt");
    config.steps = MAX_STEPS;
    const curve c = run_all(&config, NULL);
    if (!(fabs(c.loss[1] - log(N_VOCAB)) < 0.2 && c.heldout[MAX_STEPS] < 1))
        fail_msg("loss %g at first, %g held out", c.loss[1], c.heldout[MAX_STEPS]);
}

/* The first steps of a schedule are those of the whole, where decay_steps says how long it is. */
TEST(test_decay) {
    dpi_train_config config = tiny_config("decay-whole.ckpt");
    config.steps = 20;
    const curve whole = run_all(&config, NULL);
    SET_PATH(config.checkpoint, "decay-part.ckpt"), config.steps = 10, config.decay_steps = 20;
    const curve part = run_all(&config, NULL);
    SET_PATH(config.checkpoint, "decay-other.ckpt"), config.decay_steps = 0;
    const curve other = run_all(&config, NULL);
    assert_int_equal(part.last, 10);
    assert_memory_equal(part.loss + 1, whole.loss + 1, 10 * sizeof *part.loss);
    assert_true(other.loss[10] != whole.loss[10]);
}

/* A run that starts from a file has its weights and its vocabulary, bit for bit. */
TEST(test_starts_from_file) {
    dpi_train_config config = tiny_config("from.ckpt");
    config.steps = 40;
    const curve first = run_all(&config, "from.gguf");

    config = tiny_config("init.ckpt");
    config.seed = 77;
    SET_PATH(config.init, "from.gguf"), SET_PATH(config.vocab, "from.gguf");
    OWN(dpi_train) train = NULL;
    assert_ok(dpi_train_create(&config, &train, ERR));
    assert_ok(dpi_train_export(train, path_in(dir, "same.gguf"), "F32", ERR));
    assert_same_file("from.gguf", "same.gguf");
    const curve second = run_all(&config, NULL);
    assert_int_equal(second.first, 1);
    assert_true(second.loss[1] < (first.loss[1] + first.loss[40]) / 2);
    config.steps = STEPS + 1; /* a checkpoint comes before the file */
    assert_int_equal(run_all(&config, NULL).first, STEPS + 1);

    config = tiny_config("layers.ckpt");
    SET_PATH(config.init, "from.gguf"), config.n_layer = 3;
    assert_error(create(&config), FORMAT, "from.gguf: has no tensor blk.2.attn_norm.weight");
    config.n_layer = 1;
    assert_error(create(&config), UNSUPPORTED,
                 "from.gguf: tensor blk.1.attn_norm.weight is none of the model");
    config.n_layer = 2, config.ffn = 32;
    assert_error(create(&config), FORMAT,
                 "from.gguf: blk.0.ffn_gate.weight is 16 x 24, must be 16 x 32");
    SET_PATH(config.init, "none.gguf");
    assert_error(create(&config), IO, "none.gguf");
    SET_PATH(config.vocab, "none.gguf");
    assert_error(create(&config), IO, "none.gguf");
}

/* ---- Examples -------------------------------------------------------------------------------- */

static dpi_graph_shape shape_of(int32_t dim, int32_t tied) {
    dpi_graph_shape s = {.arch = &dpi_arch_llama, .n_layer = 2, .dim = dim, .n_head = 4};
    s.n_kv_head = 2, s.ffn = 40;
    s.n_vocab = N_VOCAB, s.context = 64, s.tied = tied, s.rms_eps = 1e-5f, s.rope_base = 500;
    return s;
}

/* What is exported with the vocabulary, opened; without params its vocabulary alone. */
static dpi_model *export_model(const dpi_graph_shape *shape, const float *params) {
    const dpi_train_config config = {.name = "test", .sampling_top_k = 7, .sampling_temp = 0.6};
    const char *path = path_in(dir, "model.gguf");
    dpi_vocab_text vocab;
    DEFAULTS(dpi_model_options, options);
    dpi_model *model;
    assert_ok(dpi_vocab_text_read(path_in(dir, "vocab"), &vocab, ERR));
    assert_int_equal(vocab.n, N_VOCAB);
    assert_int_equal(vocab.eos, IM_END);
    assert_ok(dpi_export_gguf(path, &config, shape, &vocab, params, ERR));
    dpi_vocab_text_free(&vocab);
    options.vocab_only = !params;
    assert_ok(dpi_model_open(path, &options, &model, ERR));
    return model;
}

TEST(test_example_tokens) {
    write_text("one.jsonl", "\n{\"user\": \"a<|im_end|>\", \"assistant\": \"b\"}\n");
    const dpi_graph_shape shape = shape_of(16, 1);
    OWN(dpi_model) model = export_model(&shape, NULL);
    dpi_corpus corpus;
    const char *path = path_in(dir, "one.jsonl");
    assert_ok(dpi_corpus_read(model, IM_END, &path, 1, 64, 1, &corpus, ERR));
    /* The words of a turn begin with a space, as every text does; those of a control token in a
     * request are text: bytes, but for letters. N, newline; S, space; [ and ], turns; ^, begin. */
    static const char wanted[] = "^[SuserNa<|im_end|>]SN[SassistantNSb]";
    enum { N = sizeof wanted - 1 };
    assert_int_equal(corpus.n, 1);
    assert_int_equal(corpus.begins[1], N);
    for (int i = 0; i < N; i++) {
        const int c = wanted[i];
        assert_int_equal(corpus.tokens[i], c == '^'               ? 1
                                           : c == '['             ? IM_START
                                           : c == ']'             ? IM_END
                                           : c == 'S'             ? SPACE
                                           : c == 'N'             ? BYTE + '\n'
                                           : c >= 'a' && c <= 'z' ? LETTER + c - 'a'
                                                                  : BYTE + c);
    }
    assert_int_equal(corpus.n_prompt[0], N - 3);
    dpi_corpus_free(&corpus);
}

/* ---- The exported model ---------------------------------------------------------------------- */

static void compare_inference(int32_t tied) {
    enum { N = 50 };
    dpi_graph_shape s = shape_of(32, tied);
    dpi_graph_layout at;
    dpi_graph_layout_of(&s, &at);
    const dpi_graph *graph = dpi_graph_best();
    dpi_blas blas;
    assert_ok(dpi_blas_open(&blas, 1, ERR));
    s.blas = &blas;
    OWN_ARRAY(float) params = dpi_calloc((size_t)at.n_params, sizeof *params);
    OWN_ARRAY(float) work = dpi_calloc(graph->work_size(&s), sizeof *work);
    static float trained[N * N_VOCAB], inferred[N * N_VOCAB];
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

    OWN(dpi_model) model = export_model(&s, params);
    DEFAULTS(dpi_session_options, options);
    options.exact = 1;
    OWN(dpi_session) session = open_session(model, &options, 1, 0);
    dpi_model_info info = {.struct_size = sizeof info};
    assert_ok(dpi_model_info_get(model, &info, ERR));
    assert_int_equal(info.chat_template, DPI_CHAT_CHATML);
    assert_int_equal(info.tied_output, tied);
    assert_int_equal(info.sampling_top_k, 7);
    assert_true(info.sampling_temp == 0.6);
    assert_int_equal(dpi_token_is_eog(model, IM_END), 1);
    assert_ok(dpi_session_prefill(session, 0, tokens, N, inferred, ERR));
    double error = 0, square = 0;
    for (int i = 0; i < N * N_VOCAB; i++) {
        error += pow((double)trained[i] - (double)inferred[i], 2);
        square += pow((double)inferred[i], 2);
    }
    if (!(error <= 1e-9 * square))
        fail_msg("NMSE of training's logits against inference's: %g", error / square);
}

TEST(test_inference_agrees) {
    compare_inference(1);
    compare_inference(0);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

TEST(test_checkpoint_refusals) {
    const dpi_train_config config = tiny_config("bad.ckpt");
    const char *path = config.checkpoint;
    dpi_train_config other = config;
    (void)run_all(&config, NULL);
    size_t n;
    OWN_ARRAY(char) data = read_file(path, &n);
    other.lr *= 2;
    assert_error(create(&other), FORMAT, "bad.ckpt is of a run with another configuration");
    other = config, other.steps = 4;
    assert_error(create(&other), ARG, "has done 8 steps, steps is 4");
    other = config, other.steps = 20, other.threads = 2;
    assert_ok(create(&other));
    SET_PATH(other.data[0], "heldout.jsonl");
    assert_error(create(&other), FORMAT, "bad.ckpt is of a run on other data");

    write_file(path, data, n - 1);
    assert_error(create(&config), FORMAT, "bytes, must have");
    write_file(path, data, 20);
    assert_error(create(&config), FORMAT, "a checkpoint has more");
    data[n / 2] ^= 1;
    write_file(path, data, n);
    assert_error(create(&config), FORMAT, "bad.ckpt is damaged");
    data[0] ^= 1;
    write_file(path, data, n);
    assert_error(create(&config), FORMAT, "bad.ckpt is not a checkpoint");
}

/* Every allocation of creation fails once. One that a line of the data needs is asked for again. */
TEST(test_memory) {
    dpi_train_config config = tiny_config("memory.ckpt");
    write_examples(path_in(dir, "few.jsonl"), 3, 6);
    SET_PATH(config.data[0], "few.jsonl");
    fail_allocation(0);
    assert_ok(create(&config));
    const int64_t n = fail_allocation(0);
    int64_t n_failed = 0;
    assert_true(n > 50);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        const dpi_status status = create(&config);
        fail_allocation(0);
        n_failed += status != DPI_STATUS_OK;
        if (status != DPI_STATUS_OK)
            assert_error(status, MEMORY, "memory");
    }
    assert_true(n_failed > 30);
}

static dpi_status read_config(const char *text, dpi_train_config *c) {
    write_text("c.conf", text);
    dpi_train_config_init(c);
    return dpi_train_config_read(path_in(dir, "c.conf"), c, ERR);
}

/* What a file says, and what is said about it. */
typedef struct refusal {
    const char *text, *message;
} refusal;

TEST(test_config_file) {
    static const refusal cases[] = {
        {"dim = 64\nlayers = 3\n", "c.conf:2: key 'layers' is unknown"},
        {"dim 64", "c.conf:1: found no '=', must be key = value"},
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
    dpi_train_config c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(read_config(cases[i].text, &c), FORMAT, cases[i].message);
    assert_ok(read_config("  dim=48\r\ndata = a b \ndata = c # d\nlr = 1e-3", &c));
    assert_int_equal(c.dim, 48);
    assert_string_equal(c.data[0], "a b");
    assert_string_equal(c.data[1], "c");
    assert_true(c.lr == 1e-3);
    assert_error(dpi_train_config_read(path_in(dir, "none"), &c, ERR), IO, "none");
}

TEST(test_config_rules) {
    dpi_train_config c;
#define REFUSES(change, message)                                                                   \
    c = tiny_config("refused.ckpt"), change;                                                       \
    assert_error(create(&c), ARG, message)
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

TEST(test_data_refusals) {
    static const refusal cases[] = {
        {"{\"user\": \"a\", \"assistant\": \"b\"}\n{\"user\": 1}\n",
         "bad.data:2: must be an object"},
        {"\n\n{\n", "bad.data:3: not a JSON object"},
        {"", "bad.data: no example fits into 64 positions"},
        /* of a vocabulary */
        {"<unk>\t0\n<s>\t0\n", "has no piece <|im_end|>"},
        {"<unk>\t0\n<s> 0\n", "bad.data:2: must be a piece"},
    };
    for (int i = 0; i < 5; i++) {
        dpi_train_config c = tiny_config("data.ckpt");
        if (i < 3)
            SET_PATH(c.data[0], "bad.data");
        else
            SET_PATH(c.vocab, "bad.data");
        write_text("bad.data", cases[i].text);
        assert_error(create(&c), FORMAT, cases[i].message);
    }
}
