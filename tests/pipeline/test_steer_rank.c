/* Steering vectors of fewer numbers: the directions are those in which public texts differ, what is
 * released of a unit is its part in them, and when fewer are released follows from public numbers.
 */
#include <math.h>

#include "dp/exact/gradient.h"
#include "tests/pipeline/steering.h"

#define MORE_TEXTS "text\nabc\nsome more\nand others\na letter\nand then\ntickets\nwe\nof one\n"
enum { N_MORE = 8 };

static dpi_steer_options about_records(const dpi_records *texts, int32_t rank) {
    dpi_steer_options o = say_options(by_record);
    o.public_texts = texts, o.sigma = 0, o.epsilon = INFINITY, o.rank = rank;
    return o;
}

static double product(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < N_EMBD; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- Directions ------------------------------------------------------------------------------ */

/* Of a sum without noise in units of 2^-20 C the vector in all numbers. */
static void restore(const dpi_steer *s, double to[N_EMBD]) {
    memset(to, 0, N_EMBD * sizeof *to);
    for (int k = 0; k < s->width; k++)
        for (int c = 0; c < N_EMBD; c++)
            to[c] += (double)s->sum[k] * s->at.basis[k * N_EMBD + c];
}

/* Rows are orthonormal, of lines that are known: texts that lie on two axes, one further apart. */
TEST(test_directions) {
    double texts[5][N_EMBD] = {{0}}, mean[N_EMBD] = {0}, basis[3 * N_EMBD];
    texts[0][3] = 4, texts[1][3] = -4; /* a line along 3, a small one along 7, turned a little */
    texts[2][7] = 1, texts[3][7] = -1;
    texts[2][9] = .1, texts[3][9] = -.1;
    assert_ok(dpi_steer_basis_find(texts[0], 5, N_EMBD, mean, N_EMBD, 3, basis, ERR));
    assert_true(fabs(fabs(basis[3]) - 1) < 1e-12);
    assert_true(fabs(fabs(basis[N_EMBD + 7]) - 1 / sqrt(1.01)) < 1e-12);
    for (int i = 0; i < N_EMBD; i++) /* texts do not differ in three directions */
        assert_true(basis[2 * N_EMBD + i] == 0);
    /* The mean is taken off: texts that are alike differ in none. */
    for (int t = 0; t < 5; t++)
        memcpy(texts[t], texts[0], sizeof texts[t]);
    memcpy(mean, texts[0], sizeof mean);
    assert_ok(dpi_steer_basis_find(texts[0], 5, N_EMBD, mean, N_EMBD, 3, basis, ERR));
    for (int i = 0; i < 3 * N_EMBD; i++)
        assert_true(basis[i] == 0);
}

/* With as many directions as there are differences of public texts these are all in them, and the
 * first ones are those in which the texts differ most: of any fewer none has more. */
TEST(test_basis) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    dpi_steer_options o = about_records(texts, N_MORE - 1);
    OWN(dpi_steer) all = prepared(&o);
    o.rank = 2;
    OWN(dpi_steer) two = prepared(&o);
    for (int i = 0; i < N_MORE - 1; i++)
        for (int k = 0; k <= i; k++)
            assert_true(fabs(product(all->at.basis + i * N_EMBD, all->at.basis + k * N_EMBD) -
                             (i == k)) < 1e-9);
    for (int k = 0; k < 2; k++) /* the same plane */
        for (int i = 2; i < N_MORE - 1; i++)
            assert_true(fabs(product(two->at.basis + k * N_EMBD, all->at.basis + i * N_EMBD)) <
                        1e-2);
}

/* ---- What is released ------------------------------------------------------------------------ */

/* Without a clip that binds the sum is the part of the whole one in the directions; with one each
 * unit is clipped after that, so that what was outside of them does not count. */
TEST(test_part) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    dpi_steer_options o = about_records(texts, N_MORE - 1);
    double found[N_EMBD], part[N_EMBD] = {0}, error = 0, square = 0;
    o.clip = 100;
    OWN(dpi_steer) s = released(&o);
    o.rank = N_EMBD;
    OWN(dpi_steer) whole = released(&o);
    assert_null(whole->at.basis);
    double of_whole[N_EMBD];
    for (int i = 0; i < N_EMBD; i++)
        of_whole[i] = (double)whole->sum[i];
    for (int k = 0; k < N_MORE - 1; k++) {
        const double *row = s->at.basis + k * N_EMBD, by = product(row, of_whole);
        for (int i = 0; i < N_EMBD; i++)
            part[i] += by * row[i];
    }
    restore(s, found);
    for (int i = 0; i < N_EMBD; i++)
        error += pow(found[i] - part[i], 2), square += pow(part[i], 2);
    assert_true(error < 1e-8 * square && square > 0);
    assert_true(square < .999 * product(of_whole, of_whole)); /* and something is lost */
    for (int i = 0; i < N_EMBD; i++) { /* the file has it in all numbers */
        const double of = found[i] / 0x1p20 * 100 / 7 * s->at.spread[0] * s->at.size[0];
        assert_true(fabs((double)s->vectors[i] - of) <= 1e-5 * fabs(of) + 1e-9);
    }
}

/* Of several layers each has directions of its own, and what is released of it is its part in
 * these. */
TEST(test_part_of_each_layer) {
    static const int32_t layers[] = {1, 2};
    enum { RANK = 3 };
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    OWN_ARRAY(void) bytes = NULL;
    tiny_spec spec = tiny_default();
    spec.n_layer = 3;
    OWN(dpi_model) deeper = tiny_open(&spec, 6, &bytes);
    dpi_steer_options o = about_records(texts, RANK);
    o.model = deeper, o.layers = layers, o.n_layers = 2, o.clip = 100;
    OWN(dpi_steer) s = released(&o);
    o.rank = N_EMBD;
    OWN(dpi_steer) whole = released(&o);
    for (int l = 0; l < 2; l++)
        for (int k = 0; k < RANK; k++) {
            double of_whole[N_EMBD];
            for (int i = 0; i < N_EMBD; i++)
                of_whole[i] = (double)whole->sum[l * N_EMBD + i];
            const double *row = s->at.basis + (l * RANK + k) * N_EMBD;
            const double found = (double)s->sum[l * RANK + k], wanted = product(row, of_whole);
            assert_true(fabs(found - wanted) <= 100 + 1e-4 * fabs(wanted)); /* it is rounded */
        }
}

/* A unit moves the sum by at most D of the numbers that are released, and by all of it where every
 * unit is clipped. */
TEST(test_moves) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    OWN(dpi_records) some = lines("some.csv", "id,text\na,one of a\nb,one of b\n", NULL);
    OWN(dpi_records) fewer = lines("fewer.csv", "id,text\na,one of a\nb,\n", NULL);
    const double bound = (double)dpi_gradient_bound(4);
    dpi_steer_options o = about_records(texts, 4);
    double square = 0;
    o.clip = 1e-3, o.records = some, o.delta = .01;
    OWN(dpi_steer) with = released(&o);
    o.records = fewer;
    OWN(dpi_steer) without = released(&o);
    for (int i = 0; i < 4; i++)
        square += pow((double)(with->sum[i] - without->sum[i]), 2);
    assert_true(sqrt(square) <= bound && sqrt(square) > .99 * bound);
    assert_int_equal(with->n, 4);
}

/* Noise is on the numbers that are released: of null records, in units of D of so many. */
TEST(test_noise) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    OWN(dpi_records) null = lines("null.csv", "text\n\n\n\"\"\n", NULL);
    dpi_steer_options o = about_records(texts, 4);
    double square = 0;
    o.records = null, o.epsilon = 0, o.sigma = 3;
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = 10;
    for (o.seed = 0; o.seed < 60; o.seed++) {
        OWN(dpi_steer) s = released(&o);
        for (int i = 0; i < 4; i++)
            square += pow((double)s->sum[i] / 3 / (double)dpi_gradient_bound(4), 2) / 240;
    }
    assert_true(fabs(square - 1) < .5); /* five deviations, of a seed */
}

/* ---- When ------------------------------------------------------------------------------------ */

static int32_t rank_of(const dpi_records *texts, double sigma, int64_t n_units) {
    dpi_steer_options o = about_records(texts, 0);
    o.epsilon = 0, o.sigma = sigma;
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = n_units, o.delta = 1e-9;
    OWN(dpi_steer) s = open_steer(&o);
    assert_int_equal(dpi_claim_value(&dpi_steer_claim(s)->parts[0], "rank"),
                     s->width < N_EMBD ? s->width : 0);
    assert_int_equal(dpi_claim_value(&dpi_steer_claim(s)->parts[0], "numbers"), N_EMBD);
    return s->width;
}

/* sigma sqrt(64) / units of .4 and less: all; else (.25 units / sigma)^2, of 1 to 7. */
TEST(test_chosen) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    assert_int_equal(rank_of(texts, 1, 20), N_EMBD);
    assert_int_equal(rank_of(texts, 1, 19), 7);
    assert_int_equal(rank_of(texts, 1, 10), 6);
    assert_int_equal(rank_of(texts, 1, 5), 1);
    assert_int_equal(rank_of(texts, 10, 10), 1);
    assert_int_equal(rank_of(texts, 10, 200), N_EMBD);
}

TEST(test_refused) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    dpi_steer *s = NULL;
    dpi_steer_options o = about_records(texts, N_MORE);
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "rank: found 8, allowed 1..7, fewer");
    o.rank = -1;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "rank: found -1");
    o.rank = N_EMBD + 1;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "or 64, all");
    o.public_texts = NULL, o.n_public = 3, o.rank = 3;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "allowed 1..2");
}

TEST(test_file) {
    OWN(dpi_records) texts = lines("more.csv", MORE_TEXTS, NULL);
    dpi_steer_options o = about_records(texts, 2);
    char path[300];
    o.epsilon = 0, o.sigma = .5, o.seeded = 0;
    OWN(dpi_steer) s = released(&o);
    snprintf(path, sizeof path, "%s", path_in(dir, "rank.gguf"));
    const dpi_claim claim = written(s, path);
    assert_int_equal(dpi_claim_value(&claim.parts[0], "rank"), 2);
}
