/* What names a person. Texts and counts are made by hand; account numbers are the examples of ISO
 * 13616's registry. */
#include "eval/pii.h"
#include "tests/support/support.h"

static eval_texts make(const char *const *text, int32_t n) {
    eval_texts s;
    dpi_error err;
    assert_ok(eval_texts_make(text, NULL, n, &s, &err), &err);
    return s;
}

static void test_patterns(void **state) {
    (void)state;
    static const char *const text[] = {
        "Write to anna.b@example.org or b@x.co, not to @home or a@b.",
        "Pay to GB82 WEST 1234 5698 7654 32 or DE89370400440532013000.",
        "Not an account: GB82 WEST 1234 5698 7654 33.",
        "Born on 1975-03-12, seen 3 March 2024 and 12.3.24; not 1.2.",
        "Call +49 30 123456 or (030) 1234 5678.",
        "Case 1234567, room 12345.",
    };
    static const int64_t expected[EVAL_PII_KINDS] = {
        [EVAL_PII_EMAIL] = 2, [EVAL_PII_IBAN] = 2, [EVAL_PII_DATE] = 3, [EVAL_PII_DIGITS] = 1};
    eval_texts s = make(text, 6);
    eval_pii pii;
    dpi_error err;
    assert_ok(eval_find_pii(&s, NULL, NULL, &pii, NULL, &err), &err);
    for (int32_t k = 0; k < EVAL_PII_KINDS; k++)
        if (k != EVAL_PII_PHONE)
            assert_int_equal(pii.n_found[k], expected[k]);
    assert_int_equal(pii.n_found[EVAL_PII_PHONE], 3); /* and digits of what is no account */
    eval_texts_free(&s);
}

static void test_copied(void **state) {
    (void)state;
    static const char *const text[] = {"Ask A@x.org. Then ask Meier and Schulz, or call Huber.",
                                       "ask a@x.org again, and b@x.org"};
    static const char *const train[] = {"mail a@X.org now", "for Mr Meier and for Huber"};
    static const char *const real[] = {"this is Huber"};
    eval_texts a = make(text, 2), b = make(train, 2), c = make(real, 1);
    eval_pii pii;
    int32_t each[2 * EVAL_PII_KINDS];
    dpi_error err;
    assert_ok(eval_find_pii(&a, &b, &c, &pii, each, &err), &err);
    assert_true(each[2 * EVAL_PII_EMAIL] == 1 && each[2 * EVAL_PII_EMAIL + 1] == 2);
    assert_true(each[2 * EVAL_PII_NAME] == 1 && each[2 * EVAL_PII_NAME + 1] == 0);
    assert_int_equal(pii.n_found[EVAL_PII_EMAIL], 3);
    assert_int_equal(pii.n_copied[EVAL_PII_EMAIL], 1); /* the same one, twice */
    assert_int_equal(pii.n_found[EVAL_PII_NAME], 1);   /* Meier: Schulz is new, Huber is real */
    assert_int_equal(pii.n_copied[EVAL_PII_NAME], 1);
    eval_texts_free(&a);
    eval_texts_free(&b);
    eval_texts_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
