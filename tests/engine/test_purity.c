/* Purity (docs/spec.md section 3): there is a function F(weights, prompt tokens, drawn tokens)
 * whose bits are the logits. F is computed alone; then in random batches of random companions,
 * slots, lengths, nulls, orders, shared beginnings and thread counts, with logits of all tokens and
 * of some, with Winograd products and without, and with weights that are packed while sessions run,
 * and compared bit for bit. */
#include <math.h>
#include <pthread.h>

#include "tests/engine/adapter_build.h"
#include "tests/engine/engine_support.h"

enum { MAX_SEQ = 12, MAX_PROMPT = 150, N_DRAWN = 6, N_CASES = 12 };

/* One prompt and what follows it, with its logits after the prompt and after each drawn token. */
typedef struct sequence {
    int32_t prompt[MAX_PROMPT], n_prompt;
    int32_t drawn[N_DRAWN];
    float *logits; /* [N_DRAWN + 1, n_vocab] */
} sequence;

/* An adapter's file; "": models have none. A shared model in place of a spec's, which says only how
 * many tokens it has; NULL: that of the spec. */
static char adapter[300];
static const char *shared_model;

/* The model of a spec with the adapter; close it, then free *image. */
static dpi_model *open_adapted(const tiny_spec *spec, int32_t repack, void **image) {
    size_t n_bytes;
    dpi_model *model = NULL;
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.repack = repack ? repack : o.repack;
    o.adapter = adapter[0] ? adapter : NULL;
    *image = NULL;
    if (shared_model) {
        assert_ok(dpi_model_open(data_path(shared_model), &o, &model, ERR));
        return model;
    }
    tiny_build(spec, spec->type + 1, image, &n_bytes);
    assert_ok(dpi_model_open_buffer(*image, n_bytes, &o, &model, ERR));
    return model;
}

static dpi_session *open_threads(const dpi_model *model, const dpi_session_options *base,
                                 int32_t n_seq, int32_t n_threads) {
    dpi_session_options o = *base;
    o.n_threads = n_threads;
    dpi_session *s = open_session(model, &o, n_seq, o.n_ctx);
    s->worth_sharing = 0; /* these models are too small to be shared between threads otherwise */
    return s;
}

static void compute_alone(const dpi_model *model, const dpi_session_options *base, sequence *q) {
    const size_t n_vocab = (size_t)model->n_vocab;
    dpi_session *s = open_threads(model, base, 1, 1);
    q->logits = floats((N_DRAWN + 1) * n_vocab);
    assert_ok(dpi_session_prefill(s, 0, q->prompt, (size_t)q->n_prompt, NULL, ERR));
    for (int32_t t = 0; t <= N_DRAWN; t++) {
        if (t > 0)
            assert_ok(dpi_session_step(s, 1, &(int32_t){0}, &q->drawn[t - 1], ERR));
        memcpy(q->logits + (size_t)t * n_vocab, dpi_session_logits(s, 0), n_vocab * sizeof(float));
    }
    dpi_session_free(s);
}

/* ---- A batch --------------------------------------------------------------------------------- */

/* Some of the sequences in slots of a session; its other slots are null. */
typedef struct batch {
    dpi_session *s;
    const sequence *all;
    int32_t n, slots[MAX_SEQ], members[N_CASES]; /* slot slots[i] has all[members[i]] */
    uint64_t *seed;
} batch;

/* Reads a prompt into a slot: whole, or after copying the beginning that it shares with one of the
 * earlier members, or some of it, from there. */
static void read_prompt(const batch *b, int32_t i) {
    const int32_t j = random_below(b->seed, i + 1), slot = b->slots[i];
    const sequence *q = &b->all[b->members[i]], *other = &b->all[b->members[j]];
    int32_t n = 0;
    if (random_below(b->seed, 4) == 0) { /* a slot that held something else before */
        const sequence *old = &b->all[0];
        assert_ok(dpi_session_prefill(b->s, slot, old->prompt, (size_t)old->n_prompt, NULL, ERR));
        dpi_session_reset(b->s, slot);
    }
    while (j < i && n + 1 < q->n_prompt && n < other->n_prompt && q->prompt[n] == other->prompt[n])
        n++;
    n = n > 1 && random_below(b->seed, 2) ? 1 + random_below(b->seed, n) : n;
    n = dpi_session_forkable(b->s, b->slots[j], n);
    if (n > 0)
        assert_ok(dpi_session_fork(b->s, b->slots[j], slot, n, ERR));
    const int32_t n_pinned = n + random_below(b->seed, 1 + (q->n_prompt - n) / 3);
    if (n_pinned > 0)
        assert_ok(dpi_session_pin(b->s, slot, n_pinned, ERR));
    assert_ok(dpi_session_prefill(b->s, slot, q->prompt + n, (size_t)(q->n_prompt - n), NULL, ERR));
}

/* 0 to n - 1 in random order. */
static void shuffle(int32_t *x, int32_t n, uint64_t *seed) {
    for (int32_t i = 0; i < n; i++) {
        int32_t j = random_below(seed, i + 1);
        x[i] = x[j];
        x[j] = i;
    }
}

/* Logits of some tokens only, for the rows that a step left without: these are right, and others
 * were not computed beside them but in their group of 16. */
static void check_chosen(const batch *b, int32_t i, int32_t t, const int32_t *ids, int32_t n_ids) {
    const int32_t n_vocab = b->s->model->n_vocab;
    const float *logits = dpi_session_logits(b->s, b->slots[i]);
    const float *wanted = b->all[b->members[i]].logits + (int64_t)t * n_vocab;
    assert_non_null(logits);
    for (int32_t y = 0, k = 0; y < n_vocab; y++) {
        while (k < n_ids && ids[k] / DPI_PANEL_ROWS < y / DPI_PANEL_ROWS)
            k++;
        bool computed = k < n_ids && ids[k] / DPI_PANEL_ROWS == y / DPI_PANEL_ROWS;
        if (computed ? memcmp(&logits[y], &wanted[y], sizeof *logits) != 0 : !isnan(logits[y]))
            fail_msg("slot %d, token %d of a step's chosen ones: %s", b->slots[i], y,
                     computed ? "bits differ" : "computed");
    }
}

static int32_t choose_ids(int32_t n_vocab, int32_t *ids, uint64_t *seed) {
    int32_t n = 0, sparse = 1 + random_below(seed, 100);
    for (int32_t y = 0; y < n_vocab; y++)
        if (random_below(seed, sparse) == 0 || (y == n_vocab - 1 && random_below(seed, 2)))
            ids[n++] = y;
    return n;
}

/* The step to drawn token t, in random order. If `partial`, of its rows the first n_logits get all
 * logits at once; the others those of random tokens, and then all. */
static void step(const batch *b, int32_t t, bool partial) {
    const int32_t n = b->n, n_vocab = b->s->model->n_vocab;
    int32_t order[MAX_SEQ], seqs[MAX_SEQ], tokens[MAX_SEQ];
    shuffle(order, n, b->seed);
    for (int32_t r = 0; r < n; r++) {
        seqs[r] = b->slots[order[r]];
        tokens[r] = b->all[b->members[order[r]]].drawn[t - 1];
    }
    if (!partial) {
        assert_ok(dpi_session_step(b->s, n, seqs, tokens, ERR));
        return;
    }
    const int32_t n_logits = random_below(b->seed, n + 1);
    int32_t *ids = malloc((size_t)n_vocab * sizeof *ids);
    assert_non_null(ids);
    assert_ok(dpi_session_step_partial(b->s, n, seqs, tokens, n_logits, ERR));
    for (int32_t r = 0; r < n; r++) {
        assert_true((dpi_session_logits(b->s, seqs[r]) != NULL) == (r < n_logits));
        for (int32_t y = 0; r >= n_logits && y < n_vocab; y++)
            b->s->logits[(int64_t)seqs[r] * n_vocab + y] = NAN;
    }
    const int32_t ends[] = {n_logits, n_logits + random_below(b->seed, n - n_logits + 1), n};
    for (int i = 0; i < 2; i++) { /* some rows have tokens of their own, as texts have */
        int32_t n_ids = choose_ids(n_vocab, ids, b->seed);
        assert_ok(dpi_session_logits_at(b->s, ends[i], ends[i + 1] - ends[i], ids, n_ids, ERR));
        for (int32_t r = ends[i]; r < ends[i + 1]; r++)
            check_chosen(b, order[r], t, ids, n_ids);
    }
    /* what check_batch compares */
    assert_ok(dpi_session_logits_at(b->s, n_logits, n - n_logits, NULL, 0, ERR));
    free(ids);
}

static void check_batch(const dpi_model *model, const dpi_session_options *base,
                        const sequence *all, uint64_t *seed) {
    static const int32_t threads[] = {1, 2, 3, 8};
    const size_t n_vocab = (size_t)model->n_vocab;
    const int32_t n_threads = threads[random_below(seed, 4)];
    const int32_t n_slots = 1 + random_below(seed, MAX_SEQ);
    batch b = {.all = all, .n = 1 + random_below(seed, n_slots), .seed = seed};
    shuffle(b.slots, n_slots, seed);
    shuffle(b.members, N_CASES, seed);
    b.s = open_threads(model, base, n_slots, n_threads);
    for (int32_t i = 0; i < 4; i++) /* where kernels can, whatever this processor does better */
        b.s->kernels.tuning.winograd[i / 2][i % 2] = random_below(seed, 2);
    for (int32_t i = 0; i < b.n; i++)
        read_prompt(&b, i);
    for (int32_t t = 0; t <= N_DRAWN; t++) {
        if (t > 0)
            step(&b, t, t % 2 == 0);
        for (int32_t i = 0; i < b.n; i++) {
            const sequence *q = &all[b.members[i]];
            if (memcmp(dpi_session_logits(b.s, b.slots[i]), q->logits + (size_t)t * n_vocab,
                       n_vocab * sizeof(float)) != 0)
                fail_msg("slot %d, prompt of %d, after %d drawn tokens, %d threads: bits differ",
                         b.slots[i], q->n_prompt, t, n_threads);
        }
    }
    dpi_session_free(b.s);
}

/* ---- Sessions beside each other -------------------------------------------------------------- */

/* A session of its own on a model that others use at the same time. */
typedef struct user {
    const dpi_model *model;
    const dpi_session_options *base;
    sequence q;
    pthread_t thread;
} user;

static void *use(void *argument) {
    user *u = argument;
    compute_alone(u->model, u->base, &u->q);
    return NULL;
}

/* Some of the sequences at once, on a model whose weights are packed as it is used. */
static void check_packing(const tiny_spec *spec, const dpi_session_options *base,
                          const sequence *all) {
    enum { N_USERS = 3 };
    const size_t n_bytes_logits = (N_DRAWN + 1) * (size_t)spec->n_vocab * sizeof(float);
    void *image;
    dpi_model *model = open_adapted(spec, DPI_REPACK_LATER, &image);
    user users[N_USERS];
    if (model->packed)
        assert_int_equal(model->packed->n_packed, 0);
    for (int i = 0; i < N_USERS; i++) {
        users[i] = (user){.model = model, .base = base, .q = all[i]};
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < N_USERS; i++)
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
    for (int i = 0; i < N_USERS; i++) {
        if (memcmp(users[i].q.logits, all[i].logits, n_bytes_logits) != 0)
            fail_msg("prompt of %d, weights packed meanwhile: bits differ", all[i].n_prompt);
        free(users[i].q.logits);
    }
    if (model->packed)
        assert_int_equal(model->packed->n_packed, model->packed->n);
    dpi_model_close(model);
    free(image);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static void check_model(const tiny_spec *spec, const dpi_session_options *base, int n_batches) {
    static sequence all[N_CASES];
    uint64_t seed = spec->type + 1;
    void *image;
    dpi_model *model = open_adapted(spec, 0, &image);
    for (int32_t i = 0; i < N_CASES; i++) {
        sequence *q = &all[i];
        q->n_prompt = i == 0 ? MAX_PROMPT : i == 1 ? 1 : i == 2 ? 64 : 1 + random_below(&seed, 100);
        int32_t n_shared = i > 0 && i % 3 > 0 ? 1 + random_below(&seed, q->n_prompt) : 0;
        memcpy(q->prompt, all[0].prompt, (size_t)n_shared * sizeof *q->prompt);
        random_tokens(q->prompt + n_shared, q->n_prompt - n_shared, spec->n_vocab, &seed);
        random_tokens(q->drawn, N_DRAWN, spec->n_vocab, &seed);
        compute_alone(model, base, q);
    }
    for (int i = 0; i < n_batches; i++)
        check_batch(model, base, all, &seed);
    check_packing(spec, base, all);
    for (int32_t i = 0; i < N_CASES; i++)
        free(all[i].logits);
    dpi_model_close(model);
    free(image);
}

static void check_type(uint32_t type) {
    const char *n = getenv("DPI_PURITY_BATCHES"); /* more, for a longer search */
    const int n_batches = n ? atoi(n) : is_thin() ? 1 : 4;
    assert_true(n_batches > 0);
    tiny_spec spec = tiny_of(type);
    for (int i = 0; i < 4; i += is_thin() ? 3 : 1) {
        dpi_session_options o = isa_options(i % 2);
        o.prefill = i / 2 ? DPI_PREFILL_BLAS : DPI_PREFILL_KERNELS;
        check_model(&spec, &o, n_batches);
    }
    dpi_session_options o = isa_options(0);
    o.kv_type = DPI_KV_F32;
    if (!is_thin())
        check_model(&spec, &o, n_batches);
    spec.n_embd = 96, spec.n_head = 6, spec.n_kv_head = 3, spec.head_dim = 20, spec.head_dim_v = 32;
    spec.n_vocab = 333; /* the last group of 16 outputs is not whole */
    check_model(&spec, &o, n_batches);
    spec.tied = 1;
    if (!is_thin())
        check_model(&spec, &o, n_batches);
}

TEST(test_purity_F32) { check_type(DPI_TYPE_F32); }
TEST(test_purity_F16) { check_type(DPI_TYPE_F16); }
TEST(test_purity_Q8_0) { check_type(DPI_TYPE_Q8_0); }

/* Every weight type once, but those of a search of their own above if `others`. */
static void check_types(bool others) {
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++) {
        bool searched =
            type->id == DPI_TYPE_F32 || type->id == DPI_TYPE_F16 || type->id == DPI_TYPE_Q8_0;
        if ((others && searched) || (is_thin() && i % 4))
            continue;
        tiny_spec spec = tiny_of(type->id);
        if (others)
            spec.n_layer = 1, spec.n_vocab = 333, spec.tied = i % 2;
        else
            write_adapter(adapter, &spec, ALL_PARTS, 4);
        for (int32_t exact = is_thin() ? i / 4 % 2 : 0; exact <= 1; exact += is_thin() ? 2 : 1) {
            dpi_session_options o = isa_options(exact);
            check_model(&spec, &o, 1);
        }
    }
}

TEST(test_purity_other_types) { check_types(true); }

/* What the layers of other architectures have: norms of heads and after blocks, windows that begin
 * and end anywhere in a block, caps, scales. */
TEST(test_purity_architectures) {
    static const char *const files[] = {
        "arch/gemma3-Q-Q4_K_M.gguf", "arch/gemma2-A.gguf",   "arch/olmo3-A.gguf",
        "arch/phi3-Q-Q8_0.gguf",     "arch/smollm3-A.gguf",  "arch/granite-A.gguf",
        "arch/qwen3-Q-Q4_K_M.gguf",  "arch/mistral3-A.gguf", "arch/vaultgemma-A.gguf",
        "arch/qwen35-A.gguf",        "arch/qwen35-Q-Q4_K_M.gguf", "arch/gemma4-A.gguf",
        "arch/gemma4-e2b-A.gguf"};
    const tiny_spec spec = {.n_vocab = 512};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        require_data(files[i]); /* before a file is chosen, which the next test would have */
    for (size_t i = 0; i < sizeof files / sizeof *files; i += is_thin() ? 4 : 1) {
        shared_model = files[i];
        for (int32_t exact = is_thin(); exact <= 1; exact++) {
            dpi_session_options o = isa_options(exact);
            check_model(&spec, &o, 1);
        }
    }
    shared_model = NULL;
}

TEST(test_purity_adapters) {
    char dir[256];
    make_dir(dir, sizeof dir);
    snprintf(adapter, sizeof adapter, "%s/adapter.gguf", dir);
    check_types(false);
    adapter[0] = '\0';
    remove_dir(dir);
}
