/* golden.h - models, tokens and logits of the shared data. */
#ifndef DPI_TEST_GOLDEN_H
#define DPI_TEST_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>

#include "dpinfer/model.h"
#include "tests/support/support.h"

/* The model of a shared file. */
static inline dpi_model *open_shared(const char *relative) {
    dpi_model *model = NULL;
    assert_ok(dpi_model_open(data_path(relative), NULL, &model, ERR));
    return model;
}

/* Ids of a shared file, at most `most`; how many there are. */
static inline int32_t read_tokens(const char *path, int32_t *tokens, int32_t most) {
    size_t n_bytes;
    char *text = read_file(data_path(path), &n_bytes), *p = text, *end;
    int32_t n = 0;
    for (long v = strtol(p, &end, 10); end != p && n < most; v = strtol(p = end, &end, 10))
        tokens[n++] = (int32_t)v;
    free(text);
    return n;
}

/* The floats [n] of a file PATH.KIND.f32; the caller frees them. */
static inline float *read_floats(const char *path, const char *kind, size_t n) {
    char name[160];
    size_t n_bytes;
    snprintf(name, sizeof name, "%s.%s.f32", path, kind);
    float *x = (float *)(void *)read_file(data_path(name), &n_bytes);
    assert_int_equal(n_bytes, n * sizeof *x);
    return x;
}

#endif
