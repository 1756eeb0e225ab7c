/* measure_structure.c - see measure_structure.h. */
#include "eval/measure_structure.h"

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/intervals.h"

/* Fields of two sets of objects. */
typedef struct fields {
    const eval_structure *s;
    int32_t first, n;
    double *count; /* eval_field_variation's work */
} fields;

/* The mean over the fields. */
static double variation(const void *user, const int32_t *const which[2]) {
    const fields *f = user;
    double sum = 0;
    for (int32_t i = 0; i < f->n; i++)
        sum += eval_field_variation(f->s, f->first + i, which, f->count);
    return sum / f->n;
}

/* The intervals of all fields, and the mean with its own. */
static dpi_status add_variations(evaluation *e, double *count, dpi_error *err) {
    eval_structure *s = &e->structure;
    fields f = {.s = s, .n = s->n_fields, .count = count};
    const eval_number number = {
        .of = variation, .user = &f, .n = {s->n_objects[0], s->n_objects[1]}, .is_distance = true};
    EVAL_TRY(eval_add_number(e, "structure", "field_tv_mean", "total variation of a field, mean",
                             &number, err));
    f.n = 1;
    for (; f.first < s->n_fields; f.first++) {
        eval_field *x = &s->field[f.first];
        EVAL_TRY(eval_find_number(&number, e->stream, NULL, &x->tv, &x->tv_low, &x->tv_high,
                                  err));
    }
    return DPI_STATUS_OK;
}

static dpi_status add_fields(evaluation *e, dpi_error *err) {
    const eval_structure *s = &e->structure;
    int32_t most = 0;
    if (s->n_fields == 0)
        return DPI_STATUS_OK;
    eval_add(e, "structure", "n_fields", "fields of their objects", s->n_fields);
    if (s->n_objects[0] == 0 || s->n_objects[1] == 0) { /* there is nothing to resample */
        eval_add(e, "structure", "field_tv_mean", "total variation of a field, mean", s->tv_mean);
        return DPI_STATUS_OK;
    }
    for (int32_t i = 0; i < s->n_fields; i++)
        most = s->field[i].n_cells > most ? s->field[i].n_cells : most;
    double *count = dpi_private_malloc(2 * ((size_t)most + 1) * sizeof *count);
    if (!count)
        return eval_no_memory(err, "the fields of texts");
    const dpi_status status = add_variations(e, count, err);
    dpi_private_free(count);
    return status;
}

dpi_status eval_measure_structure(evaluation *e, const eval_sources *s, dpi_error *err) {
    eval_structure *x = &e->structure;
    /* A text that is empty is of no form. */
    const int32_t n[2] = {s->synthetic->n + s->synthetic->n_null, s->real->n + s->real->n_null};
    EVAL_TRY(eval_find_structure(s->synthetic, s->real, s->grammar, x, err));
    e->has_structure = s->grammar || x->n_objects[0] > 0 || x->n_objects[1] > 0 || x->n_arrays > 0;
    if (!e->has_structure)
        return DPI_STATUS_OK;
    if (s->grammar) {
        EVAL_TRY(eval_add_share(e, "structure", "accepted", "texts that the grammar accepts",
                                x->n_accepted[0], n[0], err));
        EVAL_TRY(eval_add_share(e, "structure", "accepted_real", "the same of real texts",
                                x->n_accepted[1], n[1], err));
    }
    EVAL_TRY(eval_add_share(e, "structure", "json_valid", "texts that are JSON", x->n_json[0], n[0],
                            err));
    EVAL_TRY(eval_add_share(e, "structure", "json_valid_real", "the same of real texts",
                            x->n_json[1], n[1], err));
    return add_fields(e, err);
}
