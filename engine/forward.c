/* forward.c - the transformer: one pass through a LLaMA model, or one that resembles it, for a
 * batch of rows, top to bottom.
 *
 * Shapes are [rows, columns]. A product w x has the bias of w added, where the model has one. What
 * the architecture (engine/arch/) does not have is NULL. How threads divide an operation and where
 * they wait stands in pass.h; where the bytes of a matrix are, in matrix.h. Source: Touvron et al.,
 * "LLaMA: Open and Efficient Foundation Language Models", 2023; grouped queries as in LLaMA 2. */
#include "engine/pass.h"

/* What a block computes with: x, normalised where a norm stands before it. */
static dpi_rows input(dpi_pass *p, const float *norm) {
    const dpi_work *a = &p->s->work;
    if (!norm) {
        dpi_pass_meet(p);
        return a->x;
    }
    dpi_pass_rms_norm(p, a->norm, a->x, norm); /* [rows, n_embd] */
    return a->norm;
}

/* x += w in, normalised before where a norm stands after the block. */
static void output(dpi_pass *p, const dpi_matrix *w, dpi_rows in, const float *post_norm) {
    if (post_norm)
        dpi_pass_add_normed(p, p->s->work.x, w, in, post_norm);
    else
        dpi_pass_add_linear(p, p->s->work.x, w, in);
}

/* The room of an array, for rows of n columns. */
static dpi_rows rows_of(dpi_rows room, int64_t n) { return (dpi_rows){room.at, n}; }

/* x += w_o attention(q, K, V). Query heads share the KV heads; some layers share K and V of an
 * earlier one. Where queries come with gates, these are what attention gives times
 * sigmoid(gate). */
static void attention(dpi_pass *p, int32_t index) {
    const dpi_layer *l = &p->s->model->layers[index];
    const dpi_work *a = &p->s->work;
    const bool gated = p->s->model->config.arch->has_gated_queries;
    const dpi_rows qg = rows_of(a->qg, l->wq.n_out);  /* [rows, n_head * 2 * head_dim] */
    const dpi_rows q = rows_of(a->q, l->wq.n_out / (1 + gated)); /* [rows, n_head * head_dim] */
    const dpi_rows k = rows_of(a->k, l->wk.n_out);    /* [rows, n_kv_head * head_dim] */
    const dpi_rows v = rows_of(a->v, dpi_extent_of(p->shape, DPI_EXTENT_V)); /* of head_dim_v */
    const dpi_rows att = rows_of(a->att, l->wo.n_in); /* [rows, n_head * head_dim_v] */
    const dpi_rows in = input(p, l->attn_norm);       /* [rows, n_embd] */
    const dpi_linear to_q = {gated ? qg : q, &l->wq}, to_k = {k, &l->wk}, to_v = {v, &l->wv};
    const bool has_kv = l->kv_layer == index;
    dpi_pass_project(p, &to_q, &to_k, &to_v, in); /* q, k and v = w in */
    if (gated)
        dpi_pass_copy_queries(p, q, qg);
    if (has_kv && p->s->model->config.arch->norms_values)
        dpi_pass_norm_values(p, v, l->wv.type ? v : k); /* v = norm(w_v in), or norm(w_k in) */
    if (l->q_norm)
        dpi_pass_norm_heads(p, q, k, l->q_norm, l->k_norm);
    if (l->rotation != DPI_ROTATION_NONE)
        dpi_pass_rope(p, q, k, l->rotation); /* by each row's position, in place */
    if (has_kv)
        dpi_pass_cache(p, index, k, v);      /* K, V [positions, ..] of each sequence */
    dpi_pass_attend(p, att, l->kv_layer, q); /* over the positions of l->window */
    if (gated)
        dpi_pass_gate_heads(p, att, qg);
    output(p, &l->wo, att, l->post_attn_norm); /* x [rows, n_embd] */
}

/* x += w_values (silu(z) * norm(S^T q)), with S the state of the layer, into which each row writes
 * its value at its key. */
static void delta_net(dpi_pass *p, int32_t index) {
    const dpi_layer *l = &p->s->model->layers[index];
    const dpi_work *a = &p->s->work;
    const dpi_rows u = rows_of(a->u, l->w_keys.n_out); /* [rows, 2 n_k_head dim + n_v_head dim_v] */
    const dpi_rows z = rows_of(a->z, l->w_z.n_out), o = rows_of(a->o, l->w_z.n_out);
    const dpi_rows beta = rows_of(a->beta, l->w_beta.n_out);    /* [rows, n_v_head] */
    const dpi_rows decay = rows_of(a->decay, l->w_decay.n_out); /* [rows, n_v_head] */
    const dpi_rows in = input(p, l->attn_norm);                 /* [rows, n_embd] */
    const dpi_linear to_u = {u, &l->w_keys}, to_z = {z, &l->w_z};
    const dpi_linear to_beta = {beta, &l->w_beta}, to_decay = {decay, &l->w_decay};
    dpi_pass_project_all(p, (const dpi_linear *const[]){&to_u, &to_z, &to_beta, &to_decay}, 4, in);
    dpi_pass_filter(p, u, index);           /* q, k and v: over the last n_tap positions */
    dpi_pass_gates(p, beta, decay, index);
    dpi_pass_norm_keys(p, u);               /* q and k */
    dpi_pass_delta(p, o, u, beta, decay, index);  /* o [rows, n_v_head * dim_v] */
    dpi_pass_gate_normed(p, z, o, l->value_norm); /* z, as large */
    output(p, &l->w_values, z, NULL);       /* x [rows, n_embd] */
}

/* x += w_down (act(w_gate in) * (w_up in)), act SiLU or GELU */
static void feed_forward(dpi_pass *p, int32_t index) {
    const dpi_layer *l = &p->s->model->layers[index];
    const dpi_work *a = &p->s->work;
    const dpi_rows in = input(p, l->ffn_norm);               /* [rows, n_embd] */
    const dpi_rows gate = rows_of(a->gate, l->w_gate.n_out); /* [rows, n_ff] */
    dpi_pass_gated(p, gate, &l->w_gate, &l->w_up, in);
    output(p, &l->w_down, gate, l->post_ffn_norm); /* x [rows, n_embd] */
}

/* x += norm(w_input (GELU(w_input_gate x) * u)), u the layer's own input of each row. */
static void layer_input(dpi_pass *p, int32_t index) {
    const dpi_layer *l = &p->s->model->layers[index];
    const dpi_work *a = &p->s->work;
    const dpi_rows in = input(p, NULL);                           /* x [rows, n_embd] */
    const dpi_rows gate = rows_of(a->gate, l->w_input_gate.n_out); /* [rows, n_input] */
    dpi_pass_gate_input(p, gate, &l->w_input_gate, in, a->inputs, index);
    output(p, &l->w_input, gate, l->post_input_norm); /* x [rows, n_embd] */
}

/* The tokens whose logits are wanted; NULL: all. */
typedef struct vocabulary {
    const int32_t *ids; /* [n_ids] */
    int32_t n_ids;
} vocabulary;

/* Logits = w_output norm(x), with their scale and their cap, of the rows that want them. */
static void head(dpi_pass *p, const void *context) {
    const dpi_model *m = p->s->model;
    const dpi_work *a = &p->s->work;
    const vocabulary *tokens = context;
    dpi_pass_select_head(p);
    dpi_pass_rms_norm(p, a->norm, a->x, m->output_norm); /* norm [n_head, n_embd] */
    dpi_pass_logits(p, &m->output, a->norm, tokens->ids, tokens->n_ids); /* [n_head, n_vocab] */
}

static void transformer(dpi_pass *p, const void *context) {
    const dpi_model *m = p->s->model;
    const dpi_work *a = &p->s->work;
    dpi_pass_embed(p, a->x, &m->embedding); /* x [rows, n_embd] */
    if (m->w_inputs.type)                   /* u [rows, n_layer * n_input] */
        dpi_pass_inputs(p, a->inputs, &m->w_inputs, input(p, NULL), m->inputs_norm,
                        &m->input_embedding);
    const dpi_states *wanted = p->s->states;
    const int32_t n_layer = wanted ? wanted->layers[wanted->n_layers - 1] + 1 : m->config.n_layer;
    for (int32_t i = 0, n_seen = 0; i < n_layer; i++) {
        p->shape = &m->config.shapes[i];
        (m->config.kind[i] == DPI_LAYER_DELTA ? delta_net : attention)(p, i);
        feed_forward(p, i);
        if (m->layers[i].w_input.type)
            layer_input(p, i);
        if (m->layers[i].output_scale)
            dpi_pass_scale(p, a->x, *m->layers[i].output_scale);
        if (m->control && m->control->of[i])
            dpi_pass_shift(p, a->x, m->control->of[i]); /* x + direction of each row's sequence */
        if (wanted && wanted->layers[n_seen] == i)
            dpi_pass_states(p, a->x, wanted, n_seen++);
    }
    if (p->batch->n_head > 0)
        head(p, context);
}

void dpi_forward(dpi_session *s, const dpi_token_batch *batch) {
    const vocabulary all = {NULL, 0};
    dpi_model_before_pass(s->model);
    dpi_pass_run(s, batch, s->model->n_weights * batch->n_rows, transformer, &all);
}

void dpi_forward_head(dpi_session *s, const dpi_token_batch *batch, const int32_t *ids,
                      int32_t n_ids) {
    const vocabulary tokens = {ids, n_ids};
    int64_t n_products = dpi_pass_logit_products(&s->model->output, ids, n_ids) * batch->n_head;
    dpi_pass_run(s, batch, n_products, head, &tokens);
}
