/* Rows of a training step: each example once, as a whole, and rows that are nearly full. */
#include "base/mem.h"
#include "tests/support/support.h"
#include "train/corpus.h"
#include "train/packing.h"

static dpi_corpus made_up_corpus(int64_t n, int32_t context) {
    uint64_t state = 4;
    dpi_corpus c = {.n = n};
    c.begins = dpi_calloc((size_t)n + 1, sizeof *c.begins);
    c.n_prompt = dpi_calloc((size_t)n, sizeof *c.n_prompt);
    for (int64_t i = 0; i < n; i++) {
        int32_t length = 2 + random_below(&state, i % 50 ? context / 2 : context - 1);
        c.begins[i + 1] = c.begins[i] + length + 1;
        c.n_prompt[i] = 1 + random_below(&state, length);
    }
    c.tokens = dpi_calloc((size_t)c.begins[n], sizeof *c.tokens);
    for (int64_t i = 0; i < c.begins[n]; i++)
        c.tokens[i] = (int32_t)i;
    return c;
}

/* Every example once, whole; next tokens as targets; weights by what the target is. */
static void check_row(const dpi_corpus *c, const dpi_row *row, int32_t context, int *seen) {
    assert_in_range(row->n, 1, context);
    assert_int_equal(row->begins[0], 0);
    for (int32_t s = 0; s < row->n_segments; s++) {
        int64_t example = 0;
        while (c->begins[example] != row->tokens[row->begins[s]])
            example++;
        seen[example]++;
        int32_t n = row->begins[s + 1] - row->begins[s];
        assert_int_equal(n + 1, c->begins[example + 1] - c->begins[example]);
        for (int32_t t = 0; t < n; t++) {
            int32_t at = row->begins[s] + t;
            assert_int_equal(row->tokens[at], c->begins[example] + t);
            assert_int_equal(row->targets[at], c->begins[example] + t + 1);
            assert_true(row->weights[at] == (t + 1 < c->n_prompt[example] ? 0.25f : 1.0f));
        }
    }
}

TEST(test_packing) {
    enum { N = 400, CONTEXT = 100 };
    dpi_corpus c = made_up_corpus(N, CONTEXT);
    dpi_row_buffer buffer;
    dpi_packing packings[3];
    assert_ok(dpi_row_buffer_create(CONTEXT, &buffer, ERR));
    for (int p = 0; p < 3; p++) {
        int seen[N] = {0};
        assert_ok(dpi_packing_create(&c, CONTEXT, 9, p == 2, &packings[p], ERR));
        for (int64_t r = 0; r < packings[p].n_rows; r++) {
            dpi_row row = dpi_row_fill(&buffer, &c, &packings[p], r, 0.25f);
            check_row(&c, &row, CONTEXT, seen);
        }
        for (int i = 0; i < N; i++)
            assert_int_equal(seen[i], 1);
        double used = (double)(c.begins[N] - N) / ((double)packings[p].n_rows * CONTEXT);
        assert_true(used > 0.9);
    }
    assert_memory_equal(packings[0].examples, packings[1].examples, N * sizeof(int64_t));
    assert_memory_not_equal(packings[0].examples, packings[2].examples, N * sizeof(int64_t));
    for (int p = 0; p < 3; p++)
        dpi_packing_free(&packings[p]);
    dpi_row_buffer_free(&buffer);
    dpi_corpus_free(&c);
}
