/* test_votes.c - votes for candidates against brute force and a table by hand; noise that fails. */
#include "dp/exact/votes.h"

#include <math.h>

#include "dp/exact/noise.h"
#include "tests/support/support.h"

enum { N = 50, DIM = 7 };

/* Distances in long double, of coordinates that make ties rare and those planted exact. */
TEST(test_nearest) {
    static float candidates[N][DIM];
    uint8_t usable[N];
    double weights[DIM];
    uint64_t seed = 3;
    for (int round = 0; round < 400; round++) {
        float x[DIM];
        long double least = INFINITY;
        int32_t best = -1;
        for (int k = 0; k < DIM; k++)
            x[k] = (float)random_normal(&seed), weights[k] = fabs(random_normal(&seed));
        for (int i = 0; i < N * DIM; i++)
            candidates[i / DIM][i % DIM] = (float)random_normal(&seed);
        memcpy(candidates[N - 1], candidates[0], sizeof candidates[0]);
        if (round % 2) /* the same vector twice: the first counts */
            memcpy(candidates[N - 1], x, sizeof x), memcpy(candidates[7], x, sizeof x);
        for (int i = 0; i < N; i++) {
            long double distance = 0;
            for (int k = 0; k < DIM; k++)
                distance += powl(((long double)x[k] - candidates[i][k]) * weights[k], 2);
            usable[i] = i % 5 != round % 5;
            if (usable[i] && distance < least)
                best = i, least = distance;
        }
        assert_int_equal(dpi_votes_nearest(&candidates[0][0], usable, N, DIM, weights, x), best);
        x[round % DIM] = round % 3 ? NAN : INFINITY;
        assert_int_equal(dpi_votes_nearest(&candidates[0][0], usable, N, DIM, weights, x), -1);
    }
}

/* Candidates that are no numbers are never nearest, and none is where there is none. */
TEST(test_no_candidate) {
    const float candidates[3] = {NAN, 5, INFINITY}, x = 5;
    const double weight = 1;
    uint8_t usable[3] = {1, 1, 1};
    assert_int_equal(dpi_votes_nearest(candidates, usable, 3, 1, &weight, &x), 1);
    usable[1] = 0;
    assert_int_equal(dpi_votes_nearest(candidates, usable, 3, 1, &weight, &x), -1);
    assert_int_equal(dpi_votes_nearest(candidates, usable, 0, 1, &weight, &x), -1);
}

/* floor(16 c / |c|), computed by hand. */
TEST(test_add) {
    static const struct row {
        int32_t n, nearest[6];
        int64_t votes[5];
    } cases[] = {
        {1, {2}, {0, 0, 16, 0, 0}},
        {0, {0}, {0, 0, 0, 0, 0}},
        {1, {-1}, {0, 0, 0, 0, 0}},
        {2, {0, 1}, {11, 11, 0, 0, 0}}, /* 11.31 */
        {2, {4, -1}, {0, 0, 0, 0, 16}},
        {6, {3, 3, 3, 3, 3, 3}, {0, 0, 0, 16, 0}},
        {3, {0, 1, 0}, {14, 7, 0, 0, 0}},           /* 14.31, 7.16 */
        {5, {0, 1, 2, 3, 4}, {7, 7, 7, 7, 7}},      /* 7.16 */
        {6, {4, 0, 4, 0, 4, -1}, {8, 0, 0, 0, 13}}, /* 8.88, 13.31 */
    };
    for (const struct row *r = cases; r < END(cases); r++) {
        int64_t votes[5] = {0};
        dpi_votes_add(r->nearest, r->n, votes, 5);
        assert_memory_equal(votes, r->votes, sizeof votes);
    }
}

/* Any counts of as many records as there may be have norm 16 at most, and nearly that. */
TEST(test_norm) {
    uint64_t seed = 9;
    for (int round = 0; round < 3000; round++) {
        int32_t nearest[DPI_VOTE_RECORDS_MAX + 8];
        int64_t votes[20] = {0}, square = 0, most = 0;
        const int32_t n = 1 + random_below(&seed, DPI_VOTE_RECORDS_MAX + 8);
        const int32_t n_candidates = 1 + random_below(&seed, 20);
        for (int32_t j = 0; j < n; j++)
            nearest[j] = random_below(&seed, n_candidates);
        dpi_votes_add(nearest, n, votes, n_candidates);
        for (int i = 0; i < 20; i++) {
            square += votes[i] * votes[i];
            most = votes[i] > most ? votes[i] : most;
        }
        assert_true(square <= 256 && most >= 3); /* 16 / sqrt(20), rounded down */
    }
}

/* A source of bits that fails at any place leaves zeros. */
TEST(test_release) {
    int64_t votes[3] = {16, 32, 0};
    assert_error(dpi_votes_release(votes, 3, 1, NULL, NULL, ERR), ARG, "1 / 256");
    for (int32_t n = 0;; n++) {
        limited_source l = {.seed = 5, .n = n};
        int64_t left[3] = {16, 32, 0};
        const dpi_status status = dpi_votes_release(left, 3, 25600, limited_bits, &l, ERR);
        if (status == DPI_STATUS_OK)
            break;
        assert_error(status, ENTROPY, "random source");
        assert_true(left[0] == 0 && left[1] == 0 && left[2] == 0);
    }
}

/* 16^2 / (2 s): a variance of 256 (s = 1) costs 128. */
TEST(test_rho) {
    assert_true(dpi_rho_votes_bound(256) == 128);
    assert_true(dpi_rho_votes_bound(256 * 16384) == .0078125); /* sigma 128, eight votes */
    for (double rho = 4e-5; rho < 10; rho *= 1.37) {
        const int64_t v = dpi_votes_variance_for(rho);
        assert_true(v > 0 && dpi_rho_votes_bound(v) <= rho);
        assert_true(dpi_rho_votes_bound(v) > rho * .99);
    }
    assert_int_equal(dpi_votes_variance_for(1e-5), 0);
    assert_int_equal(dpi_votes_variance_for(NAN), 0);
}
