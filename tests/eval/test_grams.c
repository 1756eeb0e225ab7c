/* n-grams of words. Expected numbers are counted by hand, or by a search through all pairs. */
#include "eval/grams.h"
#include "tests/eval/eval_support.h"

TEST(test_words) {
    OWN_TEXTS s = TEXTS(" a  b\n\ta\r\n", "", "a");
    assert_int_equal(s.at[0].n_words, 3);
    assert_int_equal(s.at[1].n_words, 0);
    assert_int_equal(s.n_words, 4);
    assert_true(s.at[0].word[0] == s.at[0].word[2] && s.at[0].word[0] == s.at[2].word[0]);
    assert_true(s.at[0].word[0] != s.at[0].word[1]);
}

/* "a b a b": ab ba ab, 2 of 3; "a b": 1 of 1; all: ab ba of 4. */
TEST(test_distinct) {
    OWN_TEXTS s = TEXTS("a b a b", "a b", "c");
    double of_all, of_text, each[3];
    assert_ok(eval_distinct(&s, 2, &of_all, &of_text, each, ERR));
    assert_near(each[0], 2.0 / 3);
    assert_true(each[1] == 1 && isnan(each[2]));
    assert_near(of_all, .5);
    assert_near(of_text, (2.0 / 3 + 1) / 2);
    assert_ok(eval_distinct(&s, 5, &of_all, &of_text, NULL, ERR));
    assert_true(of_all == 0 && of_text == 0);
}

/* The first text: words 4 of 5 (the others have "the" once), pairs 3 of 4 (the cat, cat sat, sat
 * on), triples 2 of 3, fours 1 of 2; the closest length is 6. "mat" is too short for a score. */
TEST(test_self_bleu) {
    OWN_TEXTS s = TEXTS("the cat sat on the", "the cat sat on a mat", "mat");
    OWN_TEXTS t = TEXTS("a b c d e", "a b c d e");
    double bleu, each[3];
    const double first = pow(4.0 / 5 * 3 / 4 * 2 / 3 * 1 / 2, .25) * exp(1 - 6.0 / 5);
    const double second = pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, .25);
    assert_ok(eval_self_bleu(&s, &bleu, each, ERR));
    assert_near(each[0], first), assert_near(each[1], second);
    assert_true(isnan(each[2]));
    assert_near(bleu, (first + second) / 2);
    assert_ok(eval_self_bleu(&t, &bleu, NULL, ERR));
    assert_near(bleu, 1);
}

TEST(test_copies) {
    OWN_TEXTS a =
        TEXTS("one two three four five six seven eight", /* a copy; runs 2, 3, 4 are rare */
              "all of us know these things",             /* a run of two texts; 3 of 4 */
              "x two three four five six y",             /* rare; 3 of the 5 trigrams */
              "nothing at all", "words here");
    OWN_TEXTS b =
        TEXTS("one two three four five six seven eight", "all of us know these five words here",
              "again all of us know these five words");
    OWN_TEXTS c = TEXTS("nine ten one two three four five");
    eval_copies copies;
    static const double expected[] = {8, 5, 5, 1, 2};
    double longest[5];
    assert_ok(eval_compare(&a, &b, &c, &copies, ERR));
    assert_int_equal(copies.n_exact, 1);
    assert_int_equal(copies.n_near_copies, 3);
    assert_ok(eval_longest_runs(&a, &b, longest, ERR));
    for (int i = 0; i < 5; i++)
        assert_true(longest[i] == expected[i]);
    assert_int_equal(copies.n_rare, 2);
    assert_int_equal(copies.n_rare_runs, 3); /* "one .. five" is real, too */
    assert_ok(eval_compare(&a, &b, NULL, &copies, ERR));
    assert_int_equal(copies.n_rare_runs, 4);
}

/* Random texts of few words against a search through all pairs of texts and places. */
TEST(test_against_search) {
    enum { N = 40, WORDS = 30 };
    static char text[2][N][4 * WORDS];
    const char *list[2][N];
    uint64_t seed = 7;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N; i++) {
            const int n = (int)(random_u64(&seed) % WORDS);
            text[k][i][0] = '\0';
            for (int w = 0; w < n; w++) {
                const char word[] = {(char)('a' + random_u64(&seed) % 3), ' ', '\0'};
                strcat(text[k][i], word);
            }
            list[k][i] = text[k][i];
        }
    OWN_TEXTS a = make_texts(list[0], NULL, N);
    OWN_TEXTS b = make_texts(list[1], NULL, N);
    eval_copies copies;
    int32_t n_near_copies = 0, n_exact = 0;
    double found[N];
    assert_ok(eval_longest_runs(&a, &b, found, ERR));
    for (int i = 0; i < N; i++) {
        bool any = false, exact = false, is_near_copy;
        int32_t longest = 0;
        for (int k = 0; k < N; k++) {
            const eval_text *x = &a.at[i], *y = &b.at[k];
            assert_ok(eval_is_near_copy(x, y, &is_near_copy, ERR));
            any |= is_near_copy;
            exact |= x->n_words > 0 && strcmp(x->text, y->text) == 0;
            for (int32_t p = 0; p < x->n_words; p++)
                for (int32_t q = 0; q < y->n_words; q++) {
                    int32_t n = 0;
                    while (p + n < x->n_words && q + n < y->n_words &&
                           x->word[p + n] == y->word[q + n])
                        n++;
                    longest = n > longest ? n : longest;
                }
        }
        n_near_copies += any;
        n_exact += exact;
        assert_true(found[i] == longest);
    }
    assert_ok(eval_compare(&a, &b, NULL, &copies, ERR));
    assert_int_equal(copies.n_near_copies, n_near_copies);
    int32_t n_alike = 0, n_found;
    for (int i = 0; i < N; i++) { /* each beside all others, but not beside itself */
        bool any = false, is_near_copy;
        for (int k = 0; k < N; k++)
            if (assert_ok(eval_is_near_copy(&a.at[i], &a.at[k], &is_near_copy, ERR)), k != i)
                any |= is_near_copy;
        n_alike += any;
    }
    assert_ok(eval_count_alike(&a, &n_found, ERR));
    assert_int_equal(n_found, n_alike);
    assert_in_range(n_alike, 1, N - 1);
    assert_int_equal(copies.n_exact, n_exact);
}
