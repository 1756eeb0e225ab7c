#include "train/packing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "train/random.h"

enum { NONE = -1 };

/* Rows while they are filled: those with the same room left are a list. */
typedef struct packer {
    int32_t context;
    int64_t *order;  /* [n] examples as they are drawn */
    int64_t *row_of; /* [n] by example */
    int64_t *first;  /* [context + 1] by room: first row, or NONE */
    int64_t *next;   /* [n] by row */
    int64_t *rank;   /* [n] by row: its place after the second shuffle */
    int64_t n_rows;
} packer;

static dpi_status packer_create(packer *p, int64_t n, int32_t context, dpi_error *err) {
    *p = (packer){.context = context};
    p->order = dpi_calloc((size_t)n, sizeof *p->order);
    p->row_of = dpi_calloc((size_t)n, sizeof *p->row_of);
    p->next = dpi_calloc((size_t)n, sizeof *p->next);
    p->rank = dpi_calloc((size_t)n, sizeof *p->rank);
    p->first = dpi_calloc((size_t)context + 1, sizeof *p->first);
    if (!p->order || !p->row_of || !p->next || !p->rank || !p->first)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the order of examples");
    return DPI_STATUS_OK;
}

static void packer_free(packer *p) {
    free(p->order);
    free(p->row_of);
    free(p->next);
    free(p->rank);
    free(p->first);
}

static void place(packer *p, int64_t example, int32_t length) {
    int32_t room = length;
    while (room < p->context && p->first[room] == NONE)
        room++;
    int64_t row = p->first[room];
    if (row == NONE)
        row = p->n_rows++;
    else
        p->first[room] = p->next[row];
    p->row_of[example] = row;
    p->next[row] = p->first[room - length];
    p->first[room - length] = row;
}

/* Lists the examples by rank of their row, in the order in which they were placed. */
static void list_rows(const packer *p, int64_t n, dpi_packing *out) {
    for (int64_t i = 0; i < n; i++)
        out->begins[p->rank[p->row_of[i]] + 1]++;
    for (int64_t r = 0; r < p->n_rows; r++)
        out->begins[r + 1] += out->begins[r];
    int64_t *at = p->next; /* no longer needed: where the next example of a row goes */
    memcpy(at, out->begins, (size_t)p->n_rows * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        out->examples[at[p->rank[p->row_of[p->order[i]]]]++] = p->order[i];
}

static dpi_status pack(packer *p, const dpi_corpus *c, uint64_t state, dpi_packing *packing,
                       dpi_error *err) {
    for (int64_t i = 0; i < c->n; i++)
        p->order[i] = i;
    dpi_train_shuffle(p->order, c->n, &state);
    for (int32_t room = 0; room <= p->context; room++)
        p->first[room] = NONE;
    for (int64_t i = 0; i < c->n; i++)
        place(p, p->order[i], dpi_corpus_length(c, p->order[i]));
    for (int64_t r = 0; r < p->n_rows; r++)
        p->rank[r] = r;
    dpi_train_shuffle(p->rank, p->n_rows, &state);
    dpi_packing out = {.n_rows = p->n_rows};
    out.begins = dpi_calloc((size_t)p->n_rows + 1, sizeof *out.begins);
    out.examples = dpi_calloc((size_t)c->n, sizeof *out.examples);
    if (!out.begins || !out.examples) {
        dpi_packing_free(&out);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the order of examples");
    }
    list_rows(p, c->n, &out);
    *packing = out;
    return DPI_STATUS_OK;
}

dpi_status dpi_packing_create(const dpi_corpus *corpus, int32_t context, uint64_t seed,
                              int64_t epoch, dpi_packing *packing, dpi_error *err) {
    packer p;
    uint64_t state = seed ^ (uint64_t)epoch * 0xd1342543de82ef95u;
    dpi_train_random(&state); /* seeds and epochs that are close give states that are not */
    dpi_status status = packer_create(&p, corpus->n, context, err);
    if (status == DPI_STATUS_OK)
        status = pack(&p, corpus, state, packing, err);
    packer_free(&p);
    return status;
}

void dpi_packing_free(dpi_packing *packing) {
    free(packing->begins);
    free(packing->examples);
    *packing = (dpi_packing){0};
}

dpi_status dpi_row_buffer_create(int32_t context, dpi_row_buffer *b, dpi_error *err) {
    size_t n = (size_t)context;
    b->begins = dpi_calloc(n + 1, sizeof *b->begins);
    b->tokens = dpi_calloc(n, sizeof *b->tokens);
    b->targets = dpi_calloc(n, sizeof *b->targets);
    b->weights = dpi_calloc(n, sizeof *b->weights);
    if (!b->begins || !b->tokens || !b->targets || !b->weights)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a row of %d positions",
                        (int)context);
    return DPI_STATUS_OK;
}

void dpi_row_buffer_free(dpi_row_buffer *b) {
    free(b->begins);
    free(b->tokens);
    free(b->targets);
    free(b->weights);
    *b = (dpi_row_buffer){0};
}

dpi_row dpi_row_fill(const dpi_row_buffer *b, const dpi_corpus *c, const dpi_packing *packing,
                     int64_t index, float prompt_weight) {
    int32_t n = 0, n_segments = 0;
    for (int64_t i = packing->begins[index]; i < packing->begins[index + 1]; i++) {
        int64_t example = packing->examples[i];
        const int32_t *tokens = c->tokens + c->begins[example];
        int32_t length = dpi_corpus_length(c, example);
        b->begins[n_segments++] = n;
        for (int32_t t = 0; t < length; t++, n++) {
            b->tokens[n] = tokens[t];
            b->targets[n] = tokens[t + 1];
            b->weights[n] = t + 1 < c->n_prompt[example] ? prompt_weight : 1;
        }
    }
    b->begins[n_segments] = n;
    return (dpi_row){n, n_segments, b->begins, b->tokens, b->targets, b->weights};
}
