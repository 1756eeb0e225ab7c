/* Which records make up which batch. The oracle of an assignment is dpi_assign_hash and
 * dpi_assign_secret with the same random bits, which have tests of their own. */
#include "pipeline/partition.h"
#include "tests/support/support.h"

enum { N = 60, N_BATCHES = 7 };
static const dpi_batch_range all_batches = {.n = N_BATCHES};

static dpi_partition *create(size_t n, bool by_content, double subsample, uint64_t *seed) {
    const dpi_partition_options o = {.n_batches = N_BATCHES,
                                     .n_slots = 8,
                                     .by_content = by_content,
                                     .subsample = subsample,
                                     .random = dpi_random_insecure,
                                     .random_user = seed};
    dpi_partition *p = NULL;
    assert_ok(dpi_partition_create(&o, n, &p, ERR));
    return p;
}

/* The batch of record i with this text, NULL a null record. */
static int32_t assign(dpi_partition *p, size_t i, const char *text) {
    int32_t batch;
    assert_ok(dpi_partition_assign(p, i, all_batches, text, text ? strlen(text) : 1, &batch, ERR));
    return batch;
}

static int32_t draw(double q, int32_t n, uint64_t *seed) {
    int32_t drawn;
    assert_ok(dpi_assign_secret(q, n, dpi_random_insecure, seed, &drawn, ERR));
    return drawn;
}

TEST(test_by_position) {
    static const size_t counts[] = {0, 1, 8, 9, 55, 56};
    uint64_t seed = 1;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        dpi_partition *p = create(counts[k], false, 0, &seed);
        assert_false(dpi_partition_is_assigned(p));
        assert_int_equal(dpi_partition_largest(p), 8);
        size_t next = 0;
        for (int32_t b = 0; b < N_BATCHES; b++) {
            dpi_batch batch;
            dpi_partition_batch(p, b, &batch);
            assert_null(batch.records);
            assert_true(batch.n_records <= 8);
            assert_true(batch.n_records == 0 || batch.first == (size_t)b * 8);
            next += batch.n_records;
        }
        assert_int_equal(next, counts[k]);
        dpi_partition_free(p);
    }
    assert_int_equal(seed, 1); /* no random bits */
}

/* Record i; every ninth is null. */
static const char *text_of(int i) {
    static char text[8];
    snprintf(text, sizeof text, "%d", i);
    return i % 9 == 8 ? NULL : text;
}

/* Batches of all records of which `left_out` is not there (-1: all are). */
static void by_content(int left_out, int32_t batches[N]) {
    uint64_t seed = 5;
    dpi_partition *p = create(N - (left_out >= 0), true, 0, &seed);
    size_t at = 0, sum = 0, largest = 0, n_assigned = 0;
    for (int i = 0; i < N; i++) {
        batches[i] = i == left_out ? -1 : assign(p, at++, text_of(i));
        n_assigned += batches[i] >= 0;
    }
    assert_ok(dpi_partition_index(p, ERR));
    for (int32_t b = 0; b < N_BATCHES; b++) { /* lists hold what assign has said, in order */
        dpi_batch batch;
        dpi_partition_batch(p, b, &batch);
        for (size_t k = 0; k < batch.n_records; k++) {
            const int record = (int)batch.records[k];
            assert_int_equal(batches[record + (left_out >= 0 && record >= left_out)], b);
            assert_true(k == 0 || batch.records[k] > batch.records[k - 1]);
        }
        sum += batch.n_records;
        largest = batch.n_records > largest ? batch.n_records : largest;
    }
    assert_int_equal(dpi_partition_largest(p), largest);
    assert_int_equal(sum, n_assigned);
    dpi_partition_free(p);
}

TEST(test_by_content) {
    int32_t all[N], fewer[N];
    uint8_t key[16];
    uint64_t seed = 5;
    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)draw(1, 256, &seed);
    by_content(-1, all);
    for (int i = 0; i < N; i++) {
        const char *text = text_of(i);
        int32_t wanted = -1; /* a null record is in none */
        if (text)
            assert_ok(dpi_assign_hash(key, text, strlen(text), N_BATCHES, &wanted, ERR));
        assert_int_equal(all[i], wanted);
    }
    for (int left_out = 0; left_out < N; left_out++) { /* of the others none moves */
        by_content(left_out, fewer);
        for (int i = 0; i < N; i++)
            assert_true(i == left_out || fewer[i] == all[i]);
    }
}

TEST(test_by_draw) {
    uint64_t seed = 9, again = 9;
    dpi_partition *p = create(N, true, .4, &seed); /* a draw comes before content */
    for (int i = 0; i < 16; i++)
        draw(1, 256, &again);
    for (size_t i = 0; i < N; i++) /* null or not: its draw is its own */
        assert_int_equal(assign(p, i, i % 2 ? "x" : NULL), draw(.4, N_BATCHES, &again));
    dpi_partition_free(p);
}

/* No limit: all records have the same text. */
TEST(test_no_cap) {
    enum { MANY = 10000 };
    uint64_t seed = 3;
    dpi_partition *p = create(MANY, true, 0, &seed);
    for (size_t i = 0; i < MANY; i++)
        assign(p, i, "same");
    assert_ok(dpi_partition_index(p, ERR));
    assert_int_equal(dpi_partition_largest(p), MANY);
    dpi_partition_free(p);
}

TEST(test_no_bits) {
    limited_source source = {1, 16};
    const dpi_partition_options o = {.n_batches = 2,
                                     .n_slots = 1,
                                     .subsample = .5,
                                     .random = limited_bits,
                                     .random_user = &source};
    const dpi_batch_range both = {.n = 2};
    int32_t batch;
    dpi_partition *p = NULL;
    assert_ok(dpi_partition_create(&o, 1, &p, ERR));
    assert_error(dpi_partition_assign(p, 0, both, NULL, 0, &batch, ERR), ENTROPY, "");
    dpi_partition_free(p);
    source.n = 15;
    assert_error(dpi_partition_create(&o, 1, &p, ERR), ENTROPY, "");
}

/* A hash falls into the batches of a group in their order, from the least one to the largest. */
TEST(test_narrow) {
    static const int32_t most = DPI_BATCHES_MOST - 1;
    static const dpi_batch_range range = {.first = 2, .n = 4};
    const struct {
        int32_t hash, batch;
    } all[] = {{0, 2}, {most / 4, 2}, {most / 4 + 1, 3}, {most / 2, 3}, {most / 2 + 1, 4},
               {most, 5}, {-1, -1}};
    enum { ALL = sizeof all / sizeof *all };
    uint64_t seed = 1;
    dpi_partition *p = create(ALL, true, 0, &seed);
    for (size_t i = 0; i < ALL; i++) {
        dpi_partition_put(p, i, all[i].hash);
        dpi_partition_narrow(p, i, range);
    }
    assert_ok(dpi_partition_index(p, ERR));
    for (int32_t b = 0; b < N_BATCHES; b++) {
        dpi_batch batch;
        size_t n = 0;
        dpi_partition_batch(p, b, &batch);
        for (size_t i = 0; i < ALL; i++)
            if (all[i].batch == b)
                assert_true(n < batch.n_records && batch.records[n++] == i);
        assert_int_equal(batch.n_records, n);
    }
    dpi_partition_free(p);
}
