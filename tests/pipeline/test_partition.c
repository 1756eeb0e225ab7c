/* Which records make up which batch. The oracle of an assignment is dpi_assign_hash and
 * dpi_assign_secret with the same random bits, which have tests of their own. */
#include "pipeline/partition.h"
#include "tests/support/support.h"

enum { N = 60, N_BATCHES = 7 };

static dpi_partition_options options_of(uint64_t *seed) {
    return (dpi_partition_options){.n_batches = N_BATCHES, .n_slots = 8,
                                   .random = dpi_random_insecure, .random_user = seed};
}

static dpi_batch_range all_of(const dpi_partition_options *o) {
    return (dpi_batch_range){.n = o->n_batches};
}

static dpi_partition *create(const dpi_partition_options *o, size_t n) {
    dpi_partition *p = NULL;
    dpi_error err;
    assert_ok(dpi_partition_create(o, n, &p, &err), &err);
    return p;
}

static void test_by_position(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 8, 9, 55, 56};
    uint64_t seed = 1;
    const dpi_partition_options o = options_of(&seed);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        dpi_partition *p = create(&o, counts[k]);
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

/* Batches of records with the texts "0", "1", .. of which `left_out` is not there (-1: all are). */
static void by_content(int left_out, int32_t batches[N]) {
    uint64_t seed = 5;
    dpi_partition_options o = options_of(&seed);
    o.by_content = true;
    dpi_partition *p = create(&o, N - (left_out >= 0));
    size_t at = 0, sum = 0, largest = 0;
    dpi_error err;
    for (int i = 0; i < N; i++) {
        char text[8];
        snprintf(text, sizeof text, "%d", i);
        batches[i] = -1;
        if (i != left_out)
            assert_ok(dpi_partition_assign(p, at++, all_of(&o), i % 9 == 8 ? NULL : text,
                                           strlen(text), &batches[i], &err),
                      &err);
    }
    assert_ok(dpi_partition_index(p, &err), &err);
    for (int32_t b = 0; b < N_BATCHES; b++) { /* lists hold what assign has said, in order */
        dpi_batch batch;
        dpi_partition_batch(p, b, &batch);
        for (size_t k = 0; k < batch.n_records; k++) {
            const int i =
                (int)batch.records[k] + (left_out >= 0 && (int)batch.records[k] >= left_out);
            assert_int_equal(batches[i], b);
            assert_true(k == 0 || batch.records[k] > batch.records[k - 1]);
        }
        sum += batch.n_records;
        largest = batch.n_records > largest ? batch.n_records : largest;
    }
    assert_int_equal(dpi_partition_largest(p), largest);
    for (int i = 0; i < N; i++)
        sum -= batches[i] >= 0;
    assert_int_equal(sum, 0);
    dpi_partition_free(p);
}

static void test_by_content(void **state) {
    (void)state;
    int32_t all[N], fewer[N];
    uint8_t key[16];
    uint64_t seed = 5;
    for (int i = 0; i < 16; i++) {
        int32_t byte;
        assert_ok(dpi_assign_secret(1, 256, dpi_random_insecure, &seed, &byte, NULL), NULL);
        key[i] = (uint8_t)byte;
    }
    by_content(-1, all);
    for (int i = 0; i < N; i++) {
        char text[8];
        int32_t wanted = -1;
        snprintf(text, sizeof text, "%d", i);
        if (i % 9 != 8) /* a null record is in none */
            assert_ok(dpi_assign_hash(key, text, strlen(text), N_BATCHES, &wanted, NULL), NULL);
        assert_int_equal(all[i], wanted);
    }
    for (int left_out = 0; left_out < N; left_out++) { /* of the others none moves */
        by_content(left_out, fewer);
        for (int i = 0; i < N; i++)
            assert_true(i == left_out || fewer[i] == all[i]);
    }
}

static void test_by_draw(void **state) {
    (void)state;
    uint64_t seed = 9, again = 9;
    dpi_partition_options o = options_of(&seed);
    dpi_error err;
    int32_t batch, wanted;
    o.by_content = true; /* a draw comes before content */
    o.subsample = .4;
    dpi_partition *p = create(&o, N);
    for (int i = 0; i < 16; i++)
        assert_ok(dpi_assign_secret(1, 256, dpi_random_insecure, &again, &batch, NULL), NULL);
    for (size_t i = 0; i < N; i++) { /* null or not: its draw is its own */
        assert_ok(dpi_partition_assign(p, i, all_of(&o), i % 2 ? "x" : NULL, 1, &batch, &err),
                  &err);
        assert_ok(dpi_assign_secret(.4, N_BATCHES, dpi_random_insecure, &again, &wanted, NULL),
                  NULL);
        assert_int_equal(batch, wanted);
    }
    dpi_partition_free(p);
}

/* No limit: all records have the same text. */
static void test_no_cap(void **state) {
    (void)state;
    enum { MANY = 10000 };
    uint64_t seed = 3;
    dpi_partition_options o = options_of(&seed);
    int32_t batch;
    o.by_content = true;
    dpi_partition *p = create(&o, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(dpi_partition_assign(p, i, all_of(&o), "same", 4, &batch, NULL), NULL);
    assert_ok(dpi_partition_index(p, NULL), NULL);
    assert_int_equal(dpi_partition_largest(p), MANY);
    dpi_partition_free(p);
}

static void test_no_bits(void **state) {
    (void)state;
    limited_source source = {1, 16};
    dpi_partition_options o = {.n_batches = 2, .n_slots = 1, .subsample = .5,
                               .random = limited_bits, .random_user = &source};
    dpi_error err;
    int32_t batch;
    dpi_partition *p = create(&o, 1);
    assert_error(dpi_partition_assign(p, 0, all_of(&o), NULL, 0, &batch, &err), DPI_STATUS_ENTROPY,
                 &err, "");
    dpi_partition_free(p);
    source.n = 15;
    assert_error(dpi_partition_create(&o, 1, &p, &err), DPI_STATUS_ENTROPY, &err, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_position), cmocka_unit_test(test_by_content),
        cmocka_unit_test(test_by_draw),     cmocka_unit_test(test_no_cap),
        cmocka_unit_test(test_no_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
