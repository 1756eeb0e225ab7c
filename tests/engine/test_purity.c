/* Purity (docs/spec.md section 3): there is a function F(weights, prompt tokens, drawn tokens)
 * whose bits are the logits. F is computed alone; then in random batches of random companions,
 * slots, lengths, nulls, orders, shared beginnings and thread counts, with logits of all tokens and
 * of some, with Winograd products and without, and with weights that are packed while sessions run,
 * and compared bit for bit. */
#include <math.h>
#include <pthread.h>

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { MAX_SEQ = 12, MAX_PROMPT = 150, N_DRAWN = 6, N_CASES = 12 };

/* One prompt and what follows it, with its logits after the prompt and after each drawn token. */
typedef struct sequence {
    int32_t prompt[MAX_PROMPT], n_prompt;
    int32_t drawn[N_DRAWN];
    float *logits; /* [N_DRAWN + 1, n_vocab] */
} sequence;

static dpi_session *open_threads(const dpi_model *model, const dpi_session_options *base,
                                 int32_t n_seq, int32_t n_threads) {
    dpi_session_options o = *base;
    o.n_threads = n_threads;
    dpi_session *s = open_session(model, &o, n_seq, o.n_ctx);
    s->worth_sharing = 0; /* these models are too small to be shared between threads otherwise */
    return s;
}

static void compute_alone(const dpi_model *model, const dpi_session_options *base, sequence *q) {
    size_t n_vocab = (size_t)model->n_vocab;
    dpi_session *s = open_threads(model, base, 1, 1);
    dpi_error err;
    int32_t seq = 0;
    q->logits = malloc((N_DRAWN + 1) * n_vocab * sizeof *q->logits);
    assert_non_null(q->logits);
    assert_ok(dpi_session_prefill(s, 0, q->prompt, (size_t)q->n_prompt, NULL, &err), &err);
    for (int32_t t = 0;; t++) {
        memcpy(q->logits + (size_t)t * n_vocab, dpi_session_logits(s, 0), n_vocab * sizeof(float));
        if (t == N_DRAWN)
            break;
        assert_ok(dpi_session_step(s, 1, &seq, &q->drawn[t], &err), &err);
    }
    dpi_session_free(s);
}

/* Reads a prompt into a slot: whole, or after taking the beginning that it shares with one of the
 * earlier members, or some of it, from there. */
static void read_prompt(dpi_session *s, const sequence *all, const int32_t *members,
                        const int32_t *slots, int32_t i, uint64_t *seed) {
    const sequence *q = &all[members[i]];
    int32_t n = 0, j = random_below(seed, i + 1);
    dpi_error err;
    const sequence *other = &all[members[j]];
    while (j < i && n + 1 < q->n_prompt && n < other->n_prompt && q->prompt[n] == other->prompt[n])
        n++;
    n = n > 1 && random_below(seed, 2) ? 1 + random_below(seed, n) : n;
    if (n > 0)
        assert_ok(dpi_session_fork(s, slots[j], slots[i], n, &err), &err);
    assert_ok(
        dpi_session_prefill(s, slots[i], q->prompt + n, (size_t)(q->n_prompt - n), NULL, &err),
        &err);
}

static void shuffle(int32_t *x, int32_t n, uint64_t *seed) {
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = random_below(seed, i + 1), swap = x[i];
        x[i] = x[j];
        x[j] = swap;
    }
}

static void assert_same(const dpi_session *s, int32_t slot, const sequence *q, int32_t t,
                        size_t n_vocab, int32_t n_threads) {
    if (memcmp(dpi_session_logits(s, slot), q->logits + (size_t)t * n_vocab, n_vocab * 4) != 0)
        fail_msg("slot %d, prompt of %d, after %d drawn tokens, %d threads: bits differ", (int)slot,
                 (int)q->n_prompt, (int)t, (int)n_threads);
}

/* Logits of some tokens only, for the rows that a step left without: these are right, and others
 * were not computed beside them but in their group of 16. */
static void check_chosen(dpi_session *s, int32_t slot, const sequence *q, int32_t t,
                         const int32_t *ids, int32_t n_ids) {
    int32_t n_vocab = s->model->n_vocab;
    const float *logits = dpi_session_logits(s, slot), *wanted = q->logits + (int64_t)t * n_vocab;
    assert_non_null(logits);
    for (int32_t y = 0, i = 0; y < n_vocab; y++) {
        while (i < n_ids && ids[i] / DPI_PANEL_ROWS < y / DPI_PANEL_ROWS)
            i++;
        bool computed = i < n_ids && ids[i] / DPI_PANEL_ROWS == y / DPI_PANEL_ROWS;
        if (computed ? memcmp(&logits[y], &wanted[y], sizeof *logits) != 0 : !isnan(logits[y]))
            fail_msg("slot %d, token %d of a step's chosen ones: %s", (int)slot, (int)y,
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

/* Of a step's rows the first n_logits get all logits at once; the others those of random tokens,
 * and then all. */
static void step(dpi_session *s, int32_t n, const int32_t *seqs, const int32_t *tokens,
                 const int32_t *order, const sequence *all, const int32_t *members, int32_t t,
                 uint64_t *seed) {
    int32_t n_vocab = s->model->n_vocab, n_logits = random_below(seed, n + 1), n_ids;
    int32_t *ids = malloc((size_t)n_vocab * sizeof *ids);
    dpi_error err;
    assert_non_null(ids);
    assert_ok(dpi_session_step_partial(s, n, seqs, tokens, n_logits, &err), &err);
    for (int32_t r = 0; r < n; r++) {
        assert_true((dpi_session_logits(s, seqs[r]) != NULL) == (r < n_logits));
        for (int32_t y = 0; r >= n_logits && y < n_vocab; y++)
            s->logits[(int64_t)seqs[r] * n_vocab + y] = NAN;
    }
    const int32_t ends[] = {n_logits, n_logits + random_below(seed, n - n_logits + 1), n};
    for (int i = 0; i < 2; i++) { /* some rows have tokens of their own, as texts have */
        n_ids = choose_ids(n_vocab, ids, seed);
        assert_ok(dpi_session_logits_at(s, ends[i], ends[i + 1] - ends[i], ids, n_ids, &err), &err);
        for (int32_t r = ends[i]; r < ends[i + 1]; r++)
            check_chosen(s, seqs[r], &all[members[order[r]]], t, ids, n_ids);
    }
    /* what check_batch compares */
    assert_ok(dpi_session_logits_at(s, n_logits, n - n_logits, NULL, 0, &err), &err);
    free(ids);
}

/* A random batch: some of the sequences in random slots, the others null. */
static void check_batch(const dpi_model *model, const dpi_session_options *base, sequence *all,
                        uint64_t *seed) {
    static const int32_t threads[] = {1, 2, 3, 8};
    size_t n_vocab = (size_t)model->n_vocab;
    int32_t n_threads = threads[random_below(seed, 4)];
    int32_t n_slots = 1 + random_below(seed, MAX_SEQ), slots[MAX_SEQ], members[N_CASES];
    int32_t n = 1 + random_below(seed, n_slots); /* the other slots are null */
    for (int32_t i = 0; i < n_slots; i++)
        slots[i] = i;
    for (int32_t i = 0; i < N_CASES; i++)
        members[i] = i;
    shuffle(slots, n_slots, seed);
    shuffle(members, N_CASES, seed);
    dpi_session *s = open_threads(model, base, n_slots, n_threads);
    dpi_error err;
    for (int32_t i = 0; i < 4; i++) /* where kernels can, whatever this processor does better */
        s->kernels.tuning.winograd[i / 2][i % 2] = random_below(seed, 2);
    for (int32_t i = 0; i < n; i++) {
        if (random_below(seed, 4) == 0) { /* a slot that held something else before */
            assert_ok(dpi_session_prefill(s, slots[i], all[0].prompt, (size_t)all[0].n_prompt, NULL,
                                          &err), &err);
            dpi_session_reset(s, slots[i]);
        }
        read_prompt(s, all, members, slots, i, seed);
    }
    for (int32_t t = 0;; t++) {
        int32_t tokens[MAX_SEQ], seqs[MAX_SEQ], order[MAX_SEQ];
        for (int32_t i = 0; i < n; i++) {
            assert_same(s, slots[i], &all[members[i]], t, n_vocab, n_threads);
            order[i] = i;
        }
        if (t == N_DRAWN)
            break;
        shuffle(order, n, seed);
        for (int32_t i = 0; i < n; i++) {
            seqs[i] = slots[order[i]];
            tokens[i] = all[members[order[i]]].drawn[t];
        }
        if (t % 2)
            step(s, n, seqs, tokens, order, all, members, t + 1, seed);
        else
            assert_ok(dpi_session_step(s, n, seqs, tokens, &err), &err);
    }
    dpi_session_free(s);
}

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
    void *image;
    size_t n_bytes, n_logits = (N_DRAWN + 1) * (size_t)spec->n_vocab;
    dpi_model_options o;
    dpi_model *model = NULL;
    dpi_error err;
    user users[N_USERS];
    tiny_build(spec, spec->type + 1, &image, &n_bytes);
    dpi_model_options_init(&o);
    o.repack = DPI_REPACK_LATER;
    assert_ok(dpi_model_open_buffer(image, n_bytes, &o, &model, &err), &err);
    if (model->packed)
        assert_int_equal(model->packed->n_packed, 0);
    for (int i = 0; i < N_USERS; i++) {
        users[i] = (user){.model = model, .base = base, .q = all[i]};
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < N_USERS; i++)
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
    for (int i = 0; i < N_USERS; i++) {
        if (memcmp(users[i].q.logits, all[i].logits, n_logits * sizeof(float)) != 0)
            fail_msg("prompt of %d, weights packed meanwhile: bits differ", all[i].n_prompt);
        free(users[i].q.logits);
    }
    if (model->packed)
        assert_int_equal(model->packed->n_packed, model->packed->n);
    dpi_model_close(model);
    free(image);
}

static void check_model(const tiny_spec *spec, const dpi_session_options *base, int n_batches) {
    uint64_t seed = spec->type + 1;
    void *image;
    dpi_model *model = tiny_open(spec, seed, &image);
    sequence *all = calloc(N_CASES, sizeof *all);
    assert_non_null(all);
    for (int32_t i = 0; i < N_CASES; i++) {
        sequence *q = &all[i];
        q->n_prompt = i == 0 ? MAX_PROMPT : i == 1 ? 1 : i == 2 ? 64 : 1 + random_below(&seed, 100);
        int32_t n_shared = i > 0 && i % 3 > 0 ? 1 + random_below(&seed, q->n_prompt) : 0;
        for (int32_t t = 0; t < q->n_prompt; t++)
            q->prompt[t] = t < n_shared ? all[0].prompt[t] : random_below(&seed, spec->n_vocab);
        for (int32_t t = 0; t < N_DRAWN; t++)
            q->drawn[t] = random_below(&seed, spec->n_vocab);
        compute_alone(model, base, q);
    }
    for (int i = 0; i < n_batches; i++)
        check_batch(model, base, all, &seed);
    check_packing(spec, base, all);
    for (int32_t i = 0; i < N_CASES; i++)
        free(all[i].logits);
    free(all);
    dpi_model_close(model);
    free(image);
}

static const int n_batches_default = 4; /* DPI_PURITY_BATCHES: more, for a longer search */

static void check_type(uint32_t type) {
    const char *n = getenv("DPI_PURITY_BATCHES");
    int n_batches = n ? atoi(n) : n_batches_default;
    assert_true(n_batches > 0);
    tiny_spec spec = tiny_default();
    spec.type = type;
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa();
    for (o.exact = 0; o.exact <= 1; o.exact++)
        for (o.prefill = DPI_PREFILL_KERNELS; o.prefill <= DPI_PREFILL_BLAS; o.prefill++)
            check_model(&spec, &o, n_batches);
    o.exact = 0;
    o.prefill = DPI_PREFILL_AUTO;
    o.kv_type = DPI_KV_F32;
    check_model(&spec, &o, n_batches);
    spec.n_embd = 96, spec.n_head = 6, spec.n_kv_head = 3, spec.head_dim = 20, spec.head_dim_v = 32;
    spec.n_vocab = 333; /* the last group of 16 outputs is not whole */
    check_model(&spec, &o, n_batches);
    spec.tied = 1;
    check_model(&spec, &o, n_batches);
}

static void test_purity_F32(void **state) {
    (void)state;
    check_type(DPI_TYPE_F32);
}
static void test_purity_F16(void **state) {
    (void)state;
    check_type(DPI_TYPE_F16);
}
static void test_purity_Q8_0(void **state) {
    (void)state;
    check_type(DPI_TYPE_Q8_0);
}

/* The weight types without a search of their own above: one small model each. */
static void test_purity_other_types(void **state) {
    (void)state;
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++) {
        if (type->id == DPI_TYPE_F32 || type->id == DPI_TYPE_F16 || type->id == DPI_TYPE_Q8_0)
            continue;
        tiny_spec spec = tiny_default();
        spec.type = type->id;
        spec.n_layer = 1;
        spec.n_vocab = 333;
        spec.tied = i % 2;
        if (type->block > 32)
            spec.n_embd = spec.n_ff = type->block;
        dpi_session_options o;
        dpi_session_options_init(&o);
        o.isa = forced_isa();
        check_model(&spec, &o, 1);
        o.exact = 1;
        check_model(&spec, &o, 1);
    }
}

int main(void) {
    forced_isa(); /* skips before the first test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_purity_F32),
        cmocka_unit_test(test_purity_F16),
        cmocka_unit_test(test_purity_Q8_0),
        cmocka_unit_test(test_purity_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
