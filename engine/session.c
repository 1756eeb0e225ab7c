#include "engine/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/bench.h"
#include "dpinfer/process.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "engine/outside.h"

enum {
    MAX_THREADS = 1024,
    WORTH_SHARING = 1 << 24, /* about a millisecond of one core */
};

void dpi_session_options_init_size(dpi_session_options *options, size_t size) {
    dpi_session_options made = {0};
    made.n_seq = 1;
    dpi_struct_init(options, size, &made, sizeof made);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* The options with their defaults resolved. */
static dpi_status resolve(const dpi_model *model, const dpi_session_options *options,
                          dpi_session_options *out, dpi_error *err) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    *out = o;
    if (options) {
        DPI_CHECK_FIXED(dpi_session_options, options, err);
        o = *options;
    }
    if (model->vocab_only && !model->logits)
        return dpi_fail(err, DPI_STATUS_STATE, "the model was opened without its weights");
    /* How many sequences there are may be private (dp/PRIVACY.md section 10): no message has it. */
    if (o.n_seq < 1 || o.n_seq > DPI_SEQUENCES_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "n_seq must be 1..%d", (int)DPI_SEQUENCES_MAX);
    DPI_TRY(dpi_check_range("n_kept", o.n_kept, 0, DPI_SEQUENCES_MAX, err));
    DPI_TRY(dpi_check_range("n_ctx", o.n_ctx, 0, model->config.n_ctx_max, err));
    DPI_TRY(dpi_check_range("n_threads", o.n_threads, 0, MAX_THREADS, err));
    DPI_TRY(dpi_check_range("kv_type", o.kv_type, DPI_KV_F16, DPI_KV_F32, err));
    DPI_TRY(dpi_check_range("exact", o.exact, 0, 1, err));
    DPI_TRY(dpi_check_range("prefill", o.prefill, DPI_PREFILL_AUTO, DPI_PREFILL_BLAS, err));
    if (o.n_ctx == 0)
        o.n_ctx = model->config.n_ctx_train;
    if (o.n_threads == 0)
        o.n_threads = dpi_processors();
    if (o.exact || model->logits) /* of the caller's logits the cache has tokens */
        o.kv_type = DPI_KV_F32;
    *out = o;
    return DPI_STATUS_OK;
}

/* Lays out buffers one after the other, each on a cache line of its own. With base NULL it only
 * counts. */
typedef struct layout {
    unsigned char *base;
    uint64_t used;
    bool overflow;
} layout;

static void *place(layout *l, uint64_t a, uint64_t b, uint64_t size) {
    enum { LINE = 64 };
    uint64_t n, start = l->used;
    if (!dpi_mul_u64(a, b, &n) || !dpi_mul_u64(n, size, &n) || !dpi_add_u64(n, LINE - 1, &n) ||
        !dpi_add_u64(start, n / LINE * LINE, &l->used)) {
        l->overflow = true;
        return NULL;
    }
    return l->base ? l->base + start : NULL;
}

/* Activations [s->max_rows, n]. */
static dpi_rows place_rows(const dpi_session *s, layout *l, uint64_t n) {
    return (dpi_rows){place(l, (uint64_t)s->max_rows, n, sizeof(float)), (int64_t)n};
}

/* Of any layer. */
static uint64_t most(const dpi_config *c, dpi_extent extent) {
    int64_t n = 0;
    for (int32_t i = 0; i < c->n_layer; i++) {
        const int64_t of_layer = dpi_extent_of(&c->shapes[i], extent);
        n = of_layer > n ? of_layer : n;
    }
    return (uint64_t)n;
}

static void place_work(dpi_session *s, layout *l) {
    const dpi_config *c = &s->model->config;
    dpi_work *w = &s->work;
    uint64_t rows = (uint64_t)s->max_rows, threads = (uint64_t)s->n_threads;
    const uint64_t n_embd = (uint64_t)c->n_embd, n_ff = most(c, DPI_EXTENT_FF);
    const uint64_t n_o = most(c, DPI_EXTENT_ATT), n_values = most(c, DPI_EXTENT_VALUES);
    const uint64_t n_input = (uint64_t)c->n_input;
    const uint64_t of_inputs[] = {n_embd, n_ff, n_o, n_values, n_input};
    uint64_t max_in = 0;
    for (size_t i = 0; i < sizeof of_inputs / sizeof *of_inputs; i++)
        max_in = of_inputs[i] > max_in ? of_inputs[i] : max_in;
    w->max_in = (int64_t)max_in;
    uint64_t max_blocks = max_in / DPI_Q8_BLOCK + 1;
    w->x = place_rows(s, l, n_embd);
    w->norm = place_rows(s, l, n_embd);
    w->squares = place_rows(s, l, (uint64_t)dpi_n_tiles(c->n_embd));
    w->q = place_rows(s, l, most(c, DPI_EXTENT_Q));
    w->k = place_rows(s, l, most(c, DPI_EXTENT_K));
    w->v = place_rows(s, l, most(c, DPI_EXTENT_V));
    w->att = place_rows(s, l, n_o);
    if (c->arch->has_gated_queries)
        w->qg = place_rows(s, l, most(c, DPI_EXTENT_QG));
    w->u = place_rows(s, l, most(c, DPI_EXTENT_KEYS));
    w->z = place_rows(s, l, n_values);
    w->o = place_rows(s, l, n_values);
    w->beta = place_rows(s, l, most(c, DPI_EXTENT_V_HEADS));
    w->decay = place_rows(s, l, most(c, DPI_EXTENT_V_HEADS));
    w->out = place_rows(s, l, n_embd);
    w->gate = place_rows(s, l, n_ff > n_input ? n_ff : n_input);
    w->up = place_rows(s, l, n_ff);
    w->inputs = place_rows(s, l, (uint64_t)c->n_layer * n_input);
    w->input_embd = place_rows(s, l, (uint64_t)c->n_layer * n_input);
    w->q8.plain = place(l, rows, max_blocks, sizeof *w->q8.plain);
    w->q8.sums = place(l, rows, max_blocks, sizeof *w->q8.sums);
    w->q8.winograd = place(l, rows, max_blocks, sizeof *w->q8.winograd);
    w->out_squares = place_rows(s, l, (uint64_t)dpi_n_tiles(c->n_embd));
    w->qk_squares = place_rows(s, l, 2);
    w->cs = place_rows(s, l, (uint64_t)(c->n_rot * dpi_model_rotations(s->model)));
    if (s->model->adapters)
        w->low = place_rows(s, l, DPI_ADAPTER_PLACES * (uint64_t)s->model->adapters->max_rank);
    w->scratch = place(l, threads * DPI_TILE_OUT, max_in, sizeof(float));
    w->head = place(l, threads * DPI_TILE_OUT, rows, sizeof(float));
    for (int32_t i = 0; i < c->n_layer; i++) {
        const dpi_shape *of = &c->shapes[i];
        const int64_t n_q = (int64_t)DPI_ATTEND_ROWS * (of->n_head / of->n_kv_head);
        const int64_t n = n_q * (of->head_dim + of->head_dim_v);
        w->n_ml = 2 * n_q > w->n_ml ? 2 * n_q : w->n_ml;
        w->n_gathered = n > w->n_gathered ? n : w->n_gathered;
    }
    w->ml = place(l, threads, (uint64_t)w->n_ml, sizeof(float));
    w->gathered = place(l, threads, (uint64_t)w->n_gathered, sizeof(float));
    s->shares = place(l, 2 * threads, 1, sizeof *s->shares);
}

static void lay_out(dpi_session *s, layout *l) {
    const dpi_config *c = &s->model->config;
    uint64_t rows = (uint64_t)s->max_rows, n_seq = (uint64_t)s->n_seq;
    place_work(s, l);
    s->freqs = place(l, (uint64_t)c->n_rot / 2, (uint64_t)dpi_model_rotations(s->model),
                     sizeof(double));
    s->logits = place(l, n_seq, (uint64_t)s->model->n_vocab, sizeof(float));
    s->ready = place(l, n_seq, 1, 1);
    s->dest = place(l, rows, 1, sizeof(float *));
    s->row_seq = place(l, rows, 1, sizeof(int32_t));
    s->row_pos = place(l, rows, 1, sizeof(int32_t));
    s->row_token = place(l, rows, 1, sizeof(int32_t));
    s->vectors = place(l, n_seq + (uint64_t)s->n_kept, 1, sizeof(int32_t));
    s->seen = place(l, n_seq, 1, 1);
}

static void apply(dpi_session *s, const dpi_model *model, const dpi_session_options *o) {
    s->model = model;
    s->n_seq = o->n_seq;
    s->n_kept = o->n_kept;
    s->n_ctx = o->n_ctx;
    s->n_threads = o->n_threads;
    s->exact = o->exact;
    s->worth_sharing = WORTH_SHARING;
    s->max_rows = o->n_seq > DPI_CHUNK ? o->n_seq : DPI_CHUNK;
    s->cancel = o->cancel;
    s->cancel_user = o->cancel_user;
}

dpi_status dpi_session_memory(const dpi_model *model, const dpi_session_options *options,
                              int32_t n_tokens, int32_t n_prefix, uint64_t *n_bytes,
                              dpi_error *err) {
    dpi_session s;
    dpi_session_options o;
    memset(&s, 0, sizeof s);
    DPI_TRY(resolve(model, options, &o, err));
    DPI_TRY(dpi_check_range("n_tokens", n_tokens, 0, o.n_ctx, err));
    DPI_TRY(dpi_check_range("n_prefix", n_prefix, 0, n_tokens, err));
    apply(&s, model, &o);
    layout l = {NULL, 0, false};
    lay_out(&s, &l);
    dpi_status status = dpi_kv_init(&s.kv, &model->config, 0, o.n_ctx, o.kv_type, err);
    if (status == DPI_STATUS_OK &&
        (l.overflow || !dpi_kv_bytes(&s.kv, o.n_seq, n_tokens, n_prefix, n_bytes) ||
         !dpi_add_u64(*n_bytes, l.used + sizeof s, n_bytes)))
        status = dpi_fail(err, DPI_STATUS_LIMIT, "the size of the session overflows");
    dpi_kv_free(&s.kv);
    return status;
}

/* ---- Sets of a control vector ---------------------------------------------------------------- */

static int32_t n_sets(const dpi_model *model) {
    return model->control ? model->control->n_sets : 1;
}

/* Whoever does not know of them would use the first one for all. */
static dpi_status check_sets(const dpi_model *model, const dpi_session_options *o,
                             dpi_error *err) {
    DPI_TRY(dpi_check_range("steers", o->steers, 0, 1, err));
    return o->steers || n_sets(model) == 1
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                          "the control vector has %d sets, of labels: allowed is one, or work that "
                          "has labels ('generate --steer')", (int)n_sets(model));
}

static dpi_status check_chosen(const dpi_session *s, int32_t seq, dpi_error *err) {
    return s->vectors[seq] >= 0 ? DPI_STATUS_OK
                                : dpi_fail(err, DPI_STATUS_STATE,
                                           "sequence %d has none of the %d sets of the control "
                                           "vector: dpi_session_steer says which", (int)seq,
                                           (int)n_sets(s->model));
}

dpi_status dpi_session_steer(dpi_session *s, int32_t seq, int32_t set, dpi_error *err) {
    if (seq < 0 || seq >= s->n_seq)
        return dpi_fail(err, DPI_STATUS_ARG, "sequence %d, must be one of the session's",
                        (int)seq);
    DPI_TRY(dpi_check_range("set", set, 0, n_sets(s->model) - 1, err));
    if (s->kv.seqs[seq].length > 0)
        return dpi_fail(err, DPI_STATUS_STATE, "sequence %d has tokens: its set is chosen before",
                        (int)seq);
    s->vectors[seq] = set;
    return DPI_STATUS_OK;
}

/* ---- Creation -------------------------------------------------------------------------------- */

dpi_status dpi_session_create(const dpi_model *model, const dpi_session_options *options,
                              dpi_session **session, dpi_error *err) {
    dpi_session_options o;
    DPI_TRY(resolve(model, options, &o, err));
    DPI_TRY(check_sets(model, &o, err));
    dpi_kernels kernels;
    DPI_TRY(dpi_kernels_init(&kernels, o.isa, err));
    kernels.tuning = model->cpu.tuning;
    o.n_threads = dpi_process_threads(o.n_threads);
    dpi_session *s = dpi_calloc(1, sizeof *s);
    if (!s)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a session");
    apply(s, model, &o);
    s->kernels = kernels;
    s->read_seq = -1;
    dpi_status status =
        dpi_kv_init(&s->kv, &model->config, o.n_seq + o.n_kept, o.n_ctx, o.kv_type, err);
    layout l = {NULL, 0, false};
    lay_out(s, &l);
    if (status == DPI_STATUS_OK && !l.overflow) {
        s->memory_bytes = l.used;
        s->memory = dpi_calloc(1, l.used);
    }
    if (status == DPI_STATUS_OK && !s->memory)
        status = dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a session");
    if (status == DPI_STATUS_OK && (o.prefill == DPI_PREFILL_BLAS ||
                                    (o.prefill == DPI_PREFILL_AUTO && kernels.isa == DPI_ISA_REF)))
        status = dpi_blas_open(&s->blas, s->n_threads, err);
    if (status != DPI_STATUS_OK) {
        dpi_session_free(s);
        return status;
    }
    l = (layout){s->memory, 0, false};
    lay_out(s, &l);
    for (int32_t i = 0; i < s->n_seq + s->n_kept; i++)
        s->vectors[i] = n_sets(model) == 1 ? 0 : -1;
    for (int32_t i = 0; i < dpi_model_rotations(s->model); i++)
        s->magnitudes[i] = dpi_model_frequencies(s->model, (dpi_rotation)i, s->n_ctx,
                                                 s->freqs + i * (s->model->config.n_rot / 2));
    *session = s;
    return DPI_STATUS_OK;
}

void dpi_session_free(dpi_session *s) {
    if (!s)
        return;
    dpi_kv_free(&s->kv);
    dpi_blas_close(&s->blas);
    dpi_wipe_free(s->memory, s->memory_bytes);
    free(s);
}

/* ---- Tokens in, logits out ------------------------------------------------------------------- */

static dpi_status check_token(const dpi_session *s, int32_t token, dpi_error *err) {
    if (token < 0 || token >= s->model->n_vocab)
        return dpi_fail(err, DPI_STATUS_ARG, "token id out of range, must be 0..%d",
                        (int)s->model->n_vocab - 1);
    return DPI_STATUS_OK;
}

static dpi_status check_room(const dpi_session *s, int32_t seq, size_t n_tokens, dpi_error *err) {
    if (seq < 0 || seq >= s->n_seq)
        return dpi_fail(err, DPI_STATUS_ARG, "sequence %d, must be one of the session's",
                        (int)seq);
    DPI_TRY(check_chosen(s, seq, err));
    if (n_tokens > (size_t)(s->n_ctx - s->kv.seqs[seq].length))
        return dpi_fail(err, DPI_STATUS_LIMIT, "sequence %d would exceed the context of %d tokens",
                        (int)seq, (int)s->n_ctx);
    return DPI_STATUS_OK;
}

static float *logits_of(const dpi_session *s, int32_t seq) {
    return s->logits + (int64_t)seq * s->model->n_vocab;
}

/* A pass; where it fails nothing is appended. */
static dpi_status forward(dpi_session *s, const dpi_token_batch *batch, dpi_error *err) {
    if (s->model->logits)
        return dpi_outside_forward(s, batch, err);
    dpi_forward(s, batch);
    return DPI_STATUS_OK;
}

/* Of all tokens the logits go to all_logits, if it is not NULL; with s->states there are none. */
static dpi_status read_prompt(dpi_session *s, int32_t seq, const int32_t *tokens, size_t n_tokens,
                              float *all_logits, dpi_error *err) {
    DPI_TRY(check_room(s, seq, n_tokens, err));
    if (n_tokens == 0 || !tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "prefill of no tokens, must be 1 or more");
    for (size_t i = 0; i < n_tokens; i++)
        DPI_TRY(check_token(s, tokens[i], err));
    dpi_kv_seq *kv = &s->kv.seqs[seq];
    DPI_TRY(dpi_kv_reserve(&s->kv, seq, DPI_KV_ALL, kv->length + (int32_t)n_tokens, err));
    s->rest.n_rows = 0;
    s->read_seq = -1;
    int64_t n_vocab = s->model->n_vocab;
    for (size_t done = 0; done < n_tokens;) {
        dpi_status status = DPI_STATUS_OK;
        if (s->cancel && s->cancel(s->cancel_user))
            status = dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while reading a prompt");
        /* Up to the next multiple of DPI_CHUNK, so that a position always has the same row. */
        int32_t first = kv->length % DPI_CHUNK;
        const int32_t until_pin = dpi_kv_until_pin(&s->kv, seq);
        size_t left = n_tokens - done, room = (size_t)(DPI_CHUNK - first);
        room = room < (size_t)until_pin ? room : (size_t)until_pin;
        dpi_token_batch batch = {
            .first = first, .n_rows = (int32_t)(left < room ? left : room), .is_prompt = 1};
        if (status == DPI_STATUS_OK)
            status = dpi_kv_reserve(&s->kv, seq, DPI_KV_WINDOW, kv->length + batch.n_rows, err);
        for (int32_t r = 0; r < batch.n_rows && status == DPI_STATUS_OK; r++) {
            s->row_seq[r] = seq;
            s->row_pos[r] = kv->length + r;
            s->row_token[r] = tokens[done + (size_t)r];
            s->dest[r] = all_logits ? all_logits + (int64_t)(done + (size_t)r) * n_vocab
                                    : logits_of(s, seq);
        }
        batch.head_first = all_logits ? 0 : batch.n_rows - 1;
        batch.n_head = !s->states && (all_logits || left <= room)
                           ? batch.n_rows - batch.head_first
                           : 0;
        if (status == DPI_STATUS_OK)
            status = forward(s, &batch, err);
        if (status != DPI_STATUS_OK) {
            dpi_session_reset(s, seq);
            return status;
        }
        dpi_kv_advance(&s->kv, seq, batch.n_rows);
        s->n_read = batch.n_head;
        s->ready[seq] = !s->states && done + (size_t)batch.n_rows == n_tokens;
        done += (size_t)batch.n_rows;
    }
    s->read_seq = s->states ? -1 : seq;
    if (all_logits)
        memcpy(logits_of(s, seq), all_logits + (int64_t)(n_tokens - 1) * n_vocab,
               (size_t)n_vocab * sizeof *all_logits);
    return DPI_STATUS_OK;
}

dpi_status dpi_session_prefill(dpi_session *s, int32_t seq, const int32_t *tokens, size_t n_tokens,
                               float *all_logits, dpi_error *err) {
    return read_prompt(s, seq, tokens, n_tokens, all_logits, err);
}

dpi_status dpi_session_read_states(dpi_session *s, int32_t seq, const int32_t *tokens,
                                   size_t n_tokens, const dpi_states *states, dpi_error *err) {
    if (s->model->logits)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model's logits are computed elsewhere: there are no states");
    s->states = states;
    const dpi_status status = read_prompt(s, seq, tokens, n_tokens, NULL, err);
    s->states = NULL;
    return status;
}

static dpi_status check_rows(dpi_session *s, int32_t n_rows, const int32_t *seqs,
                             const int32_t *tokens, dpi_error *err) {
    if (n_rows < 1 || n_rows > s->n_seq)
        return dpi_fail(err, DPI_STATUS_ARG, "n_rows must be 1 to the session's n_seq");
    memset(s->seen, 0, (size_t)s->n_seq);
    for (int32_t r = 0; r < n_rows; r++) {
        DPI_TRY(check_room(s, seqs[r], 1, err));
        DPI_TRY(check_token(s, tokens[r], err));
        if (s->seen[seqs[r]]++)
            return dpi_fail(err, DPI_STATUS_ARG, "sequence %d occurs twice in a step",
                            (int)seqs[r]);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_session_step(dpi_session *s, int32_t n_rows, const int32_t *seqs,
                            const int32_t *tokens, dpi_error *err) {
    return dpi_session_step_partial(s, n_rows, seqs, tokens, n_rows, err);
}

dpi_status dpi_session_step_partial(dpi_session *s, int32_t n_rows, const int32_t *seqs,
                                    const int32_t *tokens, int32_t n_logits, dpi_error *err) {
    DPI_TRY(check_rows(s, n_rows, seqs, tokens, err));
    if (n_logits < 0 || n_logits > n_rows)
        return dpi_fail(err, DPI_STATUS_ARG, "n_logits must be 0 to the step's n_rows");
    for (int32_t r = 0; r < n_rows; r++)
        for (dpi_kv_kind kind = 0; kind < DPI_KV_KINDS; kind++)
            DPI_TRY(dpi_kv_reserve(&s->kv, seqs[r], kind, s->kv.seqs[seqs[r]].length + 1, err));
    for (int32_t r = 0; r < n_rows; r++) {
        s->row_seq[r] = seqs[r];
        s->row_pos[r] = s->kv.seqs[seqs[r]].length;
        s->row_token[r] = tokens[r];
        s->dest[r] = logits_of(s, seqs[r]);
    }
    dpi_token_batch batch = {.n_rows = n_rows, .n_head = n_logits};
    s->read_seq = -1;
    s->rest.n_rows = 0;
    DPI_TRY(forward(s, &batch, err));
    for (int32_t r = 0; r < n_rows; r++) {
        dpi_kv_advance(&s->kv, seqs[r], 1);
        s->ready[seqs[r]] = r < n_logits;
    }
    s->rest = batch;
    s->rest.head_first = n_logits;
    return DPI_STATUS_OK;
}

static dpi_status check_ids(const dpi_session *s, const int32_t *ids, int32_t n_ids,
                            dpi_error *err) {
    if (ids && n_ids < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "n_ids is %d, must be 0 or more", (int)n_ids);
    for (int32_t i = 0; ids && i < n_ids; i++) {
        DPI_TRY(check_token(s, ids[i], err));
        if (i > 0 && ids[i] <= ids[i - 1])
            return dpi_fail(err, DPI_STATUS_ARG, "token ids must ascend");
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_session_logits_at(dpi_session *s, int32_t first_row, int32_t n_rows,
                                 const int32_t *ids, int32_t n_ids, dpi_error *err) {
    DPI_TRY(check_ids(s, ids, n_ids, err));
    dpi_token_batch batch = s->rest;
    if (batch.n_rows == 0)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "logits of chosen tokens come after a step, with nothing between");
    if (first_row < batch.head_first || n_rows < 0 || n_rows > batch.n_rows - first_row)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "first_row and n_rows must name rows that the step left without logits");
    batch.head_first = first_row;
    batch.n_head = n_rows;
    if (n_rows > 0 && s->model->logits)
        DPI_TRY(dpi_outside_head(s, &batch, err));
    else if (n_rows > 0)
        dpi_forward_head(s, &batch, ids, n_ids);
    for (int32_t r = first_row; r < first_row + n_rows; r++)
        s->ready[s->row_seq[r]] = 1;
    return DPI_STATUS_OK;
}

dpi_status dpi_session_pin(dpi_session *s, int32_t seq, int32_t n_tokens, dpi_error *err) {
    if (seq < 0 || seq >= s->n_seq)
        return dpi_fail(err, DPI_STATUS_ARG, "pin of sequence %d, must be one of the session's",
                        (int)seq);
    if (n_tokens < 1 || n_tokens > s->n_ctx || n_tokens < s->kv.seqs[seq].length)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "pin of fewer tokens than the sequence holds, or more than the context");
    return dpi_kv_pin(&s->kv, seq, n_tokens, err);
}

int32_t dpi_session_forkable(const dpi_session *s, int32_t from, int32_t n_tokens) {
    const int32_t length = dpi_session_length(s, from);
    const int32_t most = n_tokens < length ? n_tokens : length;
    return most < 1 ? 0 : dpi_kv_forkable(&s->kv, from, most);
}

dpi_status dpi_session_fork(dpi_session *s, int32_t from, int32_t to, int32_t n_tokens,
                            dpi_error *err) {
    const int32_t n_all = s->kv.n_seq;
    if (from < 0 || from >= n_all || to < 0 || to >= n_all || from == to)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "fork of sequence %d to %d, must be two of the session's", (int)from,
                        (int)to);
    if (n_tokens < 1 || n_tokens > s->kv.seqs[from].length)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "fork of more tokens than the sequence holds, or none");
    if (dpi_kv_forkable(&s->kv, from, n_tokens) < n_tokens)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "fork of a sequence that has grown, and was not pinned there");
    dpi_session_reset(s, to);
    DPI_TRY(dpi_kv_fork(&s->kv, from, to, n_tokens, err));
    s->vectors[to] = s->vectors[from];
    if (from >= s->n_seq || to >= s->n_seq) /* one that only holds tokens */
        return DPI_STATUS_OK;
    s->ready[to] = s->ready[from] && n_tokens == s->kv.seqs[from].length;
    if (s->ready[to])
        memcpy(logits_of(s, to), logits_of(s, from), (size_t)s->model->n_vocab * sizeof(float));
    return DPI_STATUS_OK;
}

float *dpi_session_logits_row(dpi_session *s, int32_t seq) {
    return seq < 0 || seq >= s->n_seq || !s->ready[seq] ? NULL : logits_of(s, seq);
}

const float *dpi_session_logits(const dpi_session *s, int32_t seq) {
    return seq < 0 || seq >= s->n_seq || !s->ready[seq] ? NULL : logits_of(s, seq);
}

/* The rows of a prompt stand at their positions in its chunk, and the head has normalised the last
 * n_read. */
dpi_status dpi_session_features_last(const dpi_session *s, int32_t seq, int32_t n, float *features,
                                     dpi_error *err) {
    if (seq < 0 || seq >= s->n_seq || !features)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "sequence %d, must be one of the session's; features must not be NULL",
                        (int)seq);
    if (s->model->logits)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "features: logits that the caller computes have none");
    if (s->read_seq != seq)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "features come after a prefill of their sequence, with "
                        "nothing computed between");
    if (n < 1 || n > s->n_read)
        return dpi_fail(err, DPI_STATUS_ARG, "features of the last %d tokens, must be 1 to %d",
                        (int)n, (int)s->n_read);
    const dpi_rows norm = s->work.norm;
    const int64_t row = (s->kv.seqs[seq].length - 1) % DPI_CHUNK - (n - 1);
    memcpy(features, norm.at + row * norm.n, (size_t)(n * norm.n) * sizeof *features);
    return DPI_STATUS_OK;
}

dpi_status dpi_session_features(const dpi_session *s, int32_t seq, float *features,
                                dpi_error *err) {
    return dpi_session_features_last(s, seq, 1, features, err);
}

int32_t dpi_session_length(const dpi_session *s, int32_t seq) {
    return seq < 0 || seq >= s->kv.n_seq ? -1 : s->kv.seqs[seq].length;
}

void dpi_session_reset(dpi_session *s, int32_t seq) {
    if (seq < 0 || seq >= s->kv.n_seq)
        return;
    dpi_kv_reset(&s->kv, seq);
    if (seq >= s->n_seq)
        return;
    s->ready[seq] = 0;
    s->rest.n_rows = 0;
    s->read_seq = s->read_seq == seq ? -1 : s->read_seq;
    dpi_wipe(logits_of(s, seq), (size_t)s->model->n_vocab * sizeof(float));
}

const dpi_model *dpi_session_model(const dpi_session *s) { return s->model; }
int32_t dpi_session_n_ctx(const dpi_session *s) { return s->n_ctx; }
int32_t dpi_session_n_threads(const dpi_session *s) { return s->n_threads; }
int32_t dpi_session_isa(const dpi_session *s) { return s->kernels.isa; }

void dpi_session_attention(const dpi_session *s, double *seconds, double *operations) {
    *seconds = s->attention_seconds;
    *operations = s->attention_operations;
}
