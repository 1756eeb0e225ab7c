/* work.h - the work space of the graph: what a forward pass keeps for the backward pass, and room
 * for both, in the type `real`. Internal; a template like ops.h. */
#ifndef DPI_TRAIN_WORK_H
#define DPI_TRAIN_WORK_H

#include "train/attention.h"
#include "train/delta.h"
#include "train/graph.h"
#include "train/lora.h"

enum {
    HEAD_ROWS = 64,       /* rows whose logits are in the cache at a time */
    BASE_HEAD_ROWS = 256, /* with a base: each time its weights are made again */
    TILE_REALS = 1 << 20  /* most weights of a base that are f32 at a time */
};

/* What the backward pass of a layer needs of the forward pass. Rooms that the architecture does not
 * use are empty. */
typedef struct activations {
    real *x;        /* [context, dim] input of the layer */
    real *r1;       /* [context] of the first norm */
    real *n1;       /* [context, dim] normalised; without a norm x */
    real *qkv;      /* [context, qkv], normalised, rotated; of a delta net what the products gave */
    real *made;     /* [context, made] before the norms of heads; without these qkv */
    real *rq, *rk, *rv; /* [context, norms in a row] of those */
    real *dqkv;     /* [context, qkv] where later layers read its k and v; else that of the work
                       space */
    real *att;      /* [context, att] output of attention, or of a delta net */
    real *lse;      /* [context, n_head] */
    real *gates;    /* [context, q] of queries */
    real *gated;    /* [context, att] att times those; without gates att */
    real *u;        /* of a delta net: [context, keys]; what follows as delta.h has it */
    real *r_keys, *decay, *read, *r_read;
    real *attended; /* [context, dim] what attention adds, before its norm */
    real *r_att;    /* [context] of that norm */
    real *middle;   /* [context, dim] x + attention */
    real *r2;       /* [context] */
    real *n2;       /* [context, dim]; without a norm middle */
    real *gu;       /* [context, 2 ffn] */
    real *h;        /* [context, ffn] */
    real *fed;      /* [context, dim] what the feed-forward adds, before its norm */
    real *r_ffn;    /* [context] */
    /* With an input of the layer's own: */
    real *before;   /* [context, dim] what comes to it */
    real *input_gu; /* [context, 2 input] gate, input */
    real *input_h;  /* [context, input] */
    real *put_in;   /* [context, dim] what it adds, before its norm */
    real *r_input;  /* [context] */
    real *unscaled; /* [context, dim] with a scale of what the layer gives */
} activations;

/* Views of one array; layers' activations one after the other. */
typedef struct work {
    real *cs;     /* [n_rotations, context, n_rot]: cosines and sines */
    real *x;      /* [context, dim] output of the last layer */
    real *r;      /* [context] of the last norm */
    real *norm;   /* [context, dim] the last norm, rows that have a loss only */
    real *dnorm;  /* [context, dim] */
    real *packed; /* [context] weights of those rows */
    int32_t *rows, *targets; /* [context] which rows they are, and their targets */
    real *logits; /* [head_rows, n_vocab] */
    real *slope;  /* [n_vocab] of a row's logits, where they have a scale or a cap */
    real *blocks; /* [2, ATTN_BLOCK, context] */
    real *dx;     /* [context, dim] */
    real *dn;     /* [context, the larger of dim and att] */
    real *added;  /* [context, dim] what a block adds, or its gradient, where it has a norm or a
                     scale */
    real *dqkv;   /* as qkv */
    real *dmade;  /* as made, where heads have norms */
    real *mixed;  /* [context, mixed] where queries have gates: with them, or its gradient */
    real *du, *ddecay, *states, *row; /* of delta nets, as delta.h has it */
    real *dh;     /* [context, the larger of ffn and input] */
    /* With inputs of layers: */
    real *inputs;  /* [context, n_layer, input] */
    real *raw;     /* as inputs: their part that the embedding makes, before its norm */
    real *r_raw;   /* [context, n_layer] */
    real *dinputs; /* as inputs, where the embedding is trained */
    real *gate;    /* [context, input] */
    real *weights_of_inputs; /* [input] those of the norm */
    float *floats; /* [the larger of n_layer * input and dim] a row of the model's */
    real *ones;    /* [head_v] the weights of a norm without any */
    real *low;    /* [2, context, rank] where adapters are trained */
    real *unused; /* [the longest norm or filter] gradients of those that are not trained */
    real *tile;   /* [tile_reals] with a base, or with inputs of layers */
    real *layers;
    size_t size; /* of all, in reals */
} work;

static int32_t head_rows(const dpi_graph_shape *s) {
    const int32_t most = s->base ? BASE_HEAD_ROWS : HEAD_ROWS;
    return s->context < most ? s->context : most;
}
static bool has_gates(const dpi_graph_shape *s) { return s->arch->has_gated_queries; }
static int64_t tile_reals(const dpi_graph_shape *s) {
    const dpi_graph_widths wide = dpi_graph_widest(s);
    const int64_t sizes[] = {s->dim, s->n_vocab, wide.ffn, has_gates(s) ? 2 * wide.q : wide.q,
                             wide.att, delta_keys(&wide.delta)};
    int64_t rows = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        rows = sizes[i] > rows ? sizes[i] : rows;
    const int64_t most = s->dim * rows; /* of the largest matrix */
    return most < TILE_REALS ? most : TILE_REALS;
}
/* The most of any rotation. */
static int32_t n_rot_of(const dpi_graph_shape *s) {
    return s->n_rot ? s->n_rot : dpi_graph_sizes(s, 0).head_dim;
}
/* Of a rotation, as the layers that have it. */
static int32_t n_rot_at(const dpi_graph_shape *s, int32_t rotation) {
    for (int32_t l = 0; s->shapes && l < s->n_layer; l++)
        if ((int32_t)s->layers[l].rotation == rotation)
            return s->shapes[l].n_rot;
    return n_rot_of(s);
}
static int32_t n_rotations_of(const dpi_graph_shape *s) {
    return s->n_rotations ? s->n_rotations : 1;
}
/* Whose keys and values a layer reads. */
static int32_t kv_layer(const dpi_graph_shape *s, int32_t layer) {
    return layer - dpi_graph_sizes(s, layer).kv_back;
}
static bool is_shared(const dpi_graph_shape *s, int32_t layer) {
    for (int32_t l = layer + 1; l < s->n_layer; l++)
        if (kv_layer(s, l) == layer)
            return true;
    return false;
}

static real scale_or_1(float scale) { return scale > 0 ? (real)scale : 1; }
static bool has_residual_scale(const dpi_graph_shape *s) {
    return s->residual_scale > 0 && s->residual_scale != 1;
}
static bool bends_logits(const dpi_graph_shape *s) {
    return s->final_cap > 0 || (s->logit_scale > 0 && s->logit_scale != 1);
}

/* The next n reals of `base` (NULL: only counts), beginning on a cache line. */
static real *place(real *base, size_t *used, int64_t n) {
    const size_t line = 64 / sizeof(real);
    real *p = base ? base + *used : NULL;
    *used += ((size_t)n + line - 1) / line * line;
    return p;
}

/* Those of a layer, which begin at `base`. Returns their size. */
static int64_t map_layer(const dpi_graph_shape *s, int32_t layer, real *base, activations *a) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s, layer);
    const dpi_graph_places at = dpi_graph_places_of(s, layer);
    const dpi_delta_shape *delta = &wide.delta;
    const int64_t n = s->context, dim = s->dim, ffn = wide.ffn, input = wide.input;
    const int64_t n_read = delta->n_v_head ? n * wide.att : 0;
    const bool gated = has_gates(s) && wide.n_head > 0;
    const int64_t with_post_att = at.post_attn_norm.n ? n : 0;
    const int64_t with_post_ffn = at.post_ffn_norm.n ? n : 0, with_input = input ? n : 0;
    size_t used = 0;
    a->x = place(base, &used, n * dim);
    a->r1 = place(base, &used, n);
    a->n1 = at.attn_norm.n ? place(base, &used, n * dim) : a->x;
    a->qkv = place(base, &used, n * wide.qkv);
    a->made = at.q_norm.n ? place(base, &used, n * wide.made) : a->qkv;
    a->rq = place(base, &used, at.q_norm.n ? n * (wide.q / at.q_norm.n) : 0);
    a->rk = place(base, &used, at.k_norm.n ? n * (wide.k / at.k_norm.n) : 0);
    a->rv = place(base, &used, s->arch->norms_values ? n * wide.n_kv_head : 0);
    a->dqkv = is_shared(s, layer) ? place(base, &used, n * wide.qkv) : NULL;
    a->att = place(base, &used, n * wide.att);
    a->lse = place(base, &used, n * wide.n_head);
    a->gates = place(base, &used, gated ? n * wide.q : 0);
    a->gated = gated ? place(base, &used, n * wide.att) : a->att;
    a->u = place(base, &used, n * delta_keys(delta));
    a->r_keys = place(base, &used, n * 2 * delta->n_k_head);
    a->decay = place(base, &used, n * 2 * delta->n_v_head);
    a->read = place(base, &used, n_read);
    a->r_read = place(base, &used, n * delta->n_v_head);
    a->attended = place(base, &used, with_post_att * dim);
    a->r_att = place(base, &used, with_post_att);
    a->middle = place(base, &used, n * dim);
    a->r2 = place(base, &used, n);
    a->n2 = at.ffn_norm.n ? place(base, &used, n * dim) : a->middle;
    a->gu = place(base, &used, n * 2 * ffn);
    a->h = place(base, &used, n * ffn);
    a->fed = place(base, &used, with_post_ffn * dim);
    a->r_ffn = place(base, &used, with_post_ffn);
    a->before = place(base, &used, with_input * dim);
    a->input_gu = place(base, &used, n * 2 * input);
    a->input_h = place(base, &used, n * input);
    a->put_in = place(base, &used, with_input * dim);
    a->r_input = place(base, &used, with_input);
    a->unscaled = place(base, &used, at.output_scale.n ? n * dim : 0);
    return (int64_t)used;
}

/* Whether a layer has a norm behind a block; norms of heads. */
static bool has_post_norms(const dpi_graph_shape *s) {
    bool has = false;
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_graph_places at = dpi_graph_places_of(s, l);
        has = has || at.post_attn_norm.n > 0 || at.post_ffn_norm.n > 0;
    }
    return has;
}
static bool has_head_norms(const dpi_graph_shape *s) {
    bool has = false;
    for (int32_t l = 0; l < s->n_layer; l++)
        has = has || dpi_graph_places_of(s, l).q_norm.n > 0;
    return has;
}

/* What makes the inputs of layers. */
static void map_inputs(const dpi_graph_shape *s, work *w, real *base, size_t *used) {
    const dpi_graph_widths wide = dpi_graph_widest(s);
    const int64_t n = s->context, all = s->n_layer * (int64_t)wide.input;
    w->inputs = place(base, used, n * all);
    w->raw = place(base, used, n * all);
    w->r_raw = place(base, used, wide.input ? n * s->n_layer : 0);
    w->dinputs = place(base, used, s->lora ? 0 : n * all);
    w->gate = place(base, used, n * wide.input);
    w->weights_of_inputs = place(base, used, wide.input);
    /* A real has at least the size of a float. */
    w->floats = (float *)(void *)place(base, used, wide.input ? all > s->dim ? all : s->dim : 0);
    w->ones = place(base, used, s->arch->norms_values ? wide.head_v : 0);
}

/* What delta nets and gates of queries need beside their activations. */
static void map_mixing(const dpi_graph_shape *s, work *w, real *base, size_t *used) {
    const dpi_graph_widths wide = dpi_graph_widest(s);
    const int64_t n = s->context;
    w->mixed = place(base, used, has_gates(s) ? n * wide.mixed : 0);
    w->du = place(base, used, n * delta_keys(&wide.delta));
    w->ddecay = place(base, used, n * 2 * wide.delta.n_v_head);
    w->states = place(base, used, delta_states(&wide.delta, s->context));
    w->row = place(base, used, wide.delta.dim_v);
}

static work work_map(const dpi_graph_shape *s, real *base) {
    const dpi_graph_widths wide = dpi_graph_widest(s);
    const int64_t n = s->context, dim = s->dim;
    const int64_t norms[] = {dim, s->arch->norms_all_heads ? wide.q : wide.head, wide.head_v,
                             wide.input, (int64_t)delta_keys(&wide.delta) * wide.delta.n_tap};
    int64_t norm = 0; /* the longest */
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        norm = norms[i] > norm ? norms[i] : norm;
    size_t used = 0;
    activations first;
    work w = {.cs = place(base, &used, n_rotations_of(s) * n * n_rot_of(s))};
    w.x = place(base, &used, n * dim);
    w.r = place(base, &used, n);
    w.norm = place(base, &used, n * dim);
    w.dnorm = place(base, &used, n * dim);
    w.packed = place(base, &used, n);
    /* A real has at least the size of an int32. */
    w.rows = (int32_t *)(void *)place(base, &used, n);
    w.targets = (int32_t *)(void *)place(base, &used, n);
    w.logits = place(base, &used, (int64_t)head_rows(s) * s->n_vocab);
    w.slope = place(base, &used, bends_logits(s) ? s->n_vocab : 0);
    w.blocks = place(base, &used, 2 * ATTN_BLOCK * n);
    w.dx = place(base, &used, n * dim);
    w.dn = place(base, &used, n * (wide.att > dim ? wide.att : dim));
    w.added = place(base, &used, has_post_norms(s) || has_residual_scale(s) ? n * dim : 0);
    w.dqkv = place(base, &used, n * wide.qkv);
    w.dmade = place(base, &used, has_head_norms(s) ? n * wide.made : 0);
    map_mixing(s, &w, base, &used);
    w.dh = place(base, &used, n * (wide.input > wide.ffn ? wide.input : wide.ffn));
    map_inputs(s, &w, base, &used);
    w.low = place(base, &used, s->lora ? 2 * n * s->lora->rank : 0);
    w.unused = place(base, &used, s->lora || s->inputs || s->arch->norms_values ? norm : 0);
    w.tile = place(base, &used, s->base || s->inputs ? tile_reals(s) : 0);
    w.layers = base ? base + used : NULL;
    for (int32_t l = 0; l < s->n_layer; l++)
        used += (size_t)map_layer(s, l, NULL, &first);
    w.size = used;
    return w;
}

#endif
