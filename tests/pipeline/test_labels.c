/* test_labels.c - shares of texts in proportion to counts, ranges of batches. What a release does
 * with labels: tests/tools/labels.sh, and audits of releases. */
#include "pipeline/records/records.h"
#include "pipeline/release/labels.h"
#include "tests/support/support.h"

/* Sainte-Laguë by sorting all quotients count / (2 k + 1), in double: an oracle for counts whose
 * quotients differ. */
static void share_by_sorting(const int64_t *counts, int32_t n, int32_t n_texts, int32_t *shares) {
    memset(shares, 0, (size_t)n * sizeof *shares);
    for (int32_t k = 0; k < n_texts; k++) {
        double most = -1;
        int32_t best = 0;
        for (int32_t i = 0; i < n; i++) {
            const double quotient = (double)counts[i] / (2 * shares[i] + 1);
            if (quotient > most || (quotient == most && shares[i] < shares[best])) {
                most = quotient;
                best = i;
            }
        }
        shares[best]++;
    }
}

TEST(test_shares) {
    enum { N = 12 };
    uint64_t seed = 7;
    int32_t shares[N], wanted[N];
    for (int round = 0; round < 200; round++) {
        int64_t counts[N], sum = 0;
        const int32_t n_texts = 1 + (int32_t)random_below(&seed, 500);
        for (int i = 0; i < N; i++)
            sum += counts[i] = random_below(&seed, 700);
        assert_true(dpi_labels_share(counts, NULL, N, n_texts, shares));
        share_by_sorting(counts, N, n_texts, wanted);
        int32_t all = 0;
        for (int i = 0; i < N; i++) {
            all += shares[i];
            assert_int_equal(shares[i], wanted[i]);
            /* within one text of the exact share, or nearly */
            const double exact = (double)n_texts * (double)counts[i] / (double)(sum ? sum : 1);
            assert_true(sum == 0 || (shares[i] > exact - 2 && shares[i] < exact + 2));
        }
        assert_int_equal(all, n_texts);
    }
}

/* The published example: 53, 24, 23 for 7 seats give 3, 2, 2. */
TEST(test_known_shares) {
    static const int64_t counts[] = {53, 24, 23}, none[] = {0, 0, 0}, most[] = {1, 9, 2};
    int32_t shares[3];
    assert_true(dpi_labels_share(counts, NULL, 3, 7, shares));
    assert_true(shares[0] == 3 && shares[1] == 2 && shares[2] == 2);
    assert_true(dpi_labels_share(none, NULL, 3, 7, shares)); /* as many of each */
    assert_true(shares[0] == 3 && shares[1] == 2 && shares[2] == 2);
    assert_true(dpi_labels_share(counts, most, 3, 12, shares));
    assert_true(shares[0] == 1 && shares[1] == 9 && shares[2] == 2);
    assert_false(dpi_labels_share(counts, most, 3, 13, shares));
}

/* A meaning stands in prompts; the name, which outputs show, stays. Without one it is the name, in
 * prompts of a description in words. */
TEST(test_meanings) {
    static const char *const names[] = {"a_1", "b_2_c"}, *const meanings[] = {"the_first", NULL};
    static const char *const said[][2] = {{"the_first", "b_2_c"}, {"the_first", "b 2 c"}};
    dpi_release_options o;
    dpi_label_list l;
    dpi_release_options_init(&o);
    o.n_texts = o.n_labels = 2, o.label_names = names, o.label_meanings = meanings;
    for (int described = 0; described < 2; described++) {
        if (described)
            o.prompts.description = (dpi_bytes){"texts about {label}", 19};
        assert_ok(dpi_labels_make(&o, DPI_LABELS_PRIVATE, 1, &l, ERR));
        for (int i = 0; i < 2; i++) {
            const dpi_bytes meaning = dpi_labels_meaning(&l, i);
            assert_string_equal(l.names.at[i].data, names[i]);
            assert_string_equal(meaning.data, said[described][i]);
            assert_int_equal(meaning.n_bytes, strlen(meaning.data));
        }
        dpi_labels_free(&l);
    }
}

/* Lists of labels are as long as n_labels says. */
TEST(test_lists) {
    static const char *const names[] = {"a", NULL};
    static const int32_t n_texts[] = {1, 1};
    dpi_release_options o;
    dpi_label_list l;
    dpi_release_options_init(&o);
    o.n_texts = 2, o.label_texts = n_texts;
    assert_error(dpi_labels_make(&o, DPI_LABELS_PRIVATE, 1, &l, ERR), ARG, "label_texts: allowed");
    o.label_texts = NULL, o.label_meanings = names;
    assert_error(dpi_labels_make(&o, DPI_LABELS_PUBLIC, 1, &l, ERR), ARG, "label_meanings: allow");
    o.n_labels = 2;
    assert_error(dpi_labels_make(&o, DPI_LABELS_PRIVATE, 1, &l, ERR), ARG, "label_names: found N");
    o.label_names = names;
    assert_error(dpi_labels_make(&o, DPI_LABELS_PRIVATE, 1, &l, ERR), ARG, "label_names: found N");
    dpi_labels_free(&l);
}

TEST(test_ranges) {
    int32_t n_texts[] = {2, 0, 3};
    const dpi_label_list l = {.n = 3, .n_texts = n_texts};
    static const int32_t labels[] = {0, 0, 2, 2, 2};
    assert_int_equal(dpi_labels_texts(&l), 5);
    for (int32_t i = 0; i < 5; i++)
        assert_int_equal(dpi_labels_of_text(&l, i), labels[i]);
    assert_true(dpi_labels_range(&l, 2).first == 2 && dpi_labels_range(&l, 2).n == 3);
    assert_true(dpi_labels_range(&l, 1).n == 0 && dpi_labels_range(&l, -1).n == 0);
}

static void assert_record(const dpi_records *records, size_t unit, size_t k, size_t wanted) {
    assert_int_equal(dpi_records_of_unit(records, unit, k), wanted);
}

/* A unit has the label of its first record, and of its records those with that label; one without
 * an ID is a unit of its own; numbers are their digits, in the last row, too. */
TEST(test_of_units) {
    static const char rows[] = "who,kind,text\na,x,one\na,y,other\nb,,none\na,x,two\nb,x,late\n"
                               " ,x,nobody\n ,x,and nobody\n7,z,digits\na,x,three\n7.0,z,more";
    enum { A, B, NOBODY, OTHER, SEVEN, N };
    static const char *const wanted[N] = {"x", NULL, "x", "x", "z"};
    static const size_t of_a[] = {0, 3, 8, SIZE_MAX};
    dpi_records_options o;
    dpi_records *records;
    size_t n, n_all, n_used;
    dpi_records_options_init(&o);
    o.unit_field = "who", o.label_field = "kind";
    assert_ok(dpi_records_open_buffer(rows, sizeof rows - 1, DPI_RECORD_ROW, &o, &records, ERR));
    assert_int_equal(dpi_records_unit_count(records), N);
    for (size_t u = 0; u < N; u++) {
        const char *text;
        dpi_records_unit_label(records, u, &text, &n);
        assert_true(text ? wanted[u] && n == 1 && text[0] == wanted[u][0] : !wanted[u]);
        dpi_records_unit_id(records, u, &text, &n);
        assert_int_equal(text == NULL, u == NOBODY || u == OTHER);
    }
    for (size_t k = 0; k < 4; k++)
        assert_record(records, A, k, of_a[k]);
    assert_record(records, B, 0, 2);
    assert_record(records, B, 1, SIZE_MAX);
    assert_record(records, SEVEN, 1, 9);
    dpi_records_unit_size(records, A, &n_all, &n_used);
    assert_true(n_all == 4 && n_used == 3);
    dpi_records_close(records);
}
