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
    real *qkv;      /* [context, qkv], normalised, rotated; of a delta net [context, n_mixed], what
                       the products gave */
    real *qk;       /* [context, q + k] before the norms of heads */
    real *rq, *rk;  /* [context, norms in a row] of those */
    real *att;      /* [context, n_mix] output of attention, or of a delta net */
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
    real *dn;     /* [context, the largest of dim and n_mix] */
    real *added;  /* [context, dim] what a block adds, or its gradient, where it has a norm or a
                     scale */
    real *dqkv;   /* [context, the largest of qkv and n_mixed] */
    real *mixed;  /* [context, n_mixed] where queries have gates: with them, or its gradient */
    real *du, *ddecay, *states, *row; /* of delta nets, as delta.h has it */
    real *dqk;    /* [q + k] of a row, before the norms of heads */
    real *dh;     /* [context, ffn] */
    real *low;    /* [2, context, rank] where adapters are trained */
    real *unused; /* [the longest norm or filter] gradients of those that are not trained */
    real *tile;   /* [tile_reals] with a base */
    real *layers;
    int64_t sizes[DPI_LAYER_KINDS]; /* of a layer's activations */
    size_t size; /* of all, in reals */
} work;

static int32_t head_rows(const dpi_graph_shape *s) {
    const int32_t most = s->base ? BASE_HEAD_ROWS : HEAD_ROWS;
    return s->context < most ? s->context : most;
}
static bool has_gates(const dpi_graph_shape *s) { return s->arch->has_gated_queries; }
static int64_t tile_reals(const dpi_graph_shape *s) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    const int64_t sizes[] = {s->dim,           s->n_vocab, s->ffn,
                             has_gates(s) ? 2 * wide.q : wide.q, wide.att,
                             delta_keys(&s->delta)};
    int64_t rows = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        rows = sizes[i] > rows ? sizes[i] : rows;
    const int64_t most = s->dim * rows; /* of the largest matrix */
    return most < TILE_REALS ? most : TILE_REALS;
}
static int32_t n_rot_of(const dpi_graph_shape *s) {
    return s->n_rot ? s->n_rot : dpi_graph_widths_of(s).head;
}
static int32_t n_rotations_of(const dpi_graph_shape *s) {
    return s->n_rotations ? s->n_rotations : 1;
}
static int32_t qkv_of(const dpi_graph_shape *s) { return dpi_graph_widths_of(s).qkv; }

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
static int64_t map_layer(const dpi_graph_shape *s, const dpi_graph_layout *at, real *base,
                         activations *a) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    const int64_t n = s->context, dim = s->dim, ffn = s->ffn;
    const bool normed = at->q_norm.n > 0, attends = at->kind == DPI_LAYER_ATTENTION;
    const int64_t n_delta = attends ? 0 : n; /* positions that a delta net keeps */
    const bool post_att = at->post_attn_norm.n > 0, post_ffn = at->post_ffn_norm.n > 0;
    size_t used = 0;
    a->x = place(base, &used, n * dim);
    a->r1 = place(base, &used, n);
    a->n1 = at->attn_norm.n ? place(base, &used, n * dim) : a->x;
    a->qkv = place(base, &used, n * (attends ? wide.qkv : at->n_mixed));
    a->qk = place(base, &used, normed ? n * (wide.q + wide.k) : 0);
    a->rq = place(base, &used, normed ? n * (wide.q / at->q_norm.n) : 0);
    a->rk = place(base, &used, normed ? n * (wide.k / at->k_norm.n) : 0);
    a->att = place(base, &used, n * at->n_mix);
    a->lse = place(base, &used, attends ? n * s->n_head : 0);
    a->gates = place(base, &used, attends && has_gates(s) ? n * wide.q : 0);
    a->gated = attends && has_gates(s) ? place(base, &used, n * wide.att) : a->att;
    a->u = place(base, &used, n_delta * delta_keys(&s->delta));
    a->r_keys = place(base, &used, n_delta * 2 * s->delta.n_k_head);
    a->decay = place(base, &used, n_delta * 2 * s->delta.n_v_head);
    a->read = place(base, &used, n_delta * at->n_mix);
    a->r_read = place(base, &used, n_delta * s->delta.n_v_head);
    a->attended = place(base, &used, post_att ? n * dim : 0);
    a->r_att = place(base, &used, post_att ? n : 0);
    a->middle = place(base, &used, n * dim);
    a->r2 = place(base, &used, n);
    a->n2 = at->ffn_norm.n ? place(base, &used, n * dim) : a->middle;
    a->gu = place(base, &used, n * 2 * ffn);
    a->h = place(base, &used, n * ffn);
    a->fed = place(base, &used, post_ffn ? n * dim : 0);
    a->r_ffn = place(base, &used, post_ffn ? n : 0);
    return (int64_t)used;
}

/* kinds: the layout of each kind of layer. */
static work work_map(const dpi_graph_shape *s, const dpi_graph_layout kinds[DPI_LAYER_KINDS],
                     real *base) {
    const dpi_graph_layout *at = &kinds[DPI_LAYER_ATTENTION], *delta = &kinds[DPI_LAYER_DELTA];
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    const int64_t n = s->context, dim = s->dim, ffn = s->ffn;
    const bool posted = at->post_attn_norm.n > 0 || at->post_ffn_norm.n > 0;
    const int64_t n_mix = at->n_mix > delta->n_mix ? at->n_mix : delta->n_mix;
    const int64_t norm = at->q_norm.n > dim ? at->q_norm.n : dim;
    const int64_t array = delta->filter.n > norm ? delta->filter.n : norm;
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
    w.dn = place(base, &used, n * (n_mix > dim ? n_mix : dim));
    w.added = place(base, &used, posted || has_residual_scale(s) ? n * dim : 0);
    w.dqkv = place(base, &used, n * (wide.qkv > delta->n_mixed ? wide.qkv : delta->n_mixed));
    w.mixed = place(base, &used, has_gates(s) ? n * at->n_mixed : 0);
    w.du = place(base, &used, n * delta_keys(&s->delta));
    w.ddecay = place(base, &used, n * 2 * s->delta.n_v_head);
    w.states = place(base, &used, delta_states(&s->delta, s->context));
    w.row = place(base, &used, s->delta.dim_v);
    w.dqk = place(base, &used, at->q_norm.n ? wide.q + wide.k : 0);
    w.dh = place(base, &used, n * ffn);
    w.low = place(base, &used, s->lora ? 2 * n * s->lora->rank : 0);
    w.unused = place(base, &used, s->lora ? array : 0);
    w.tile = place(base, &used, s->base ? tile_reals(s) : 0);
    w.layers = base ? base + used : NULL;
    for (int32_t kind = 0; kind < DPI_LAYER_KINDS; kind++)
        w.sizes[kind] = map_layer(s, &kinds[kind], NULL, &first);
    w.size = used + (size_t)dpi_graph_before(s->layers, s->n_layer, w.sizes);
    return w;
}

#endif
