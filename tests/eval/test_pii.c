/* What names a person. Texts and counts are made by hand; account numbers are the examples of ISO
 * 13616's registry. */
#include "eval/pii.h"
#include "tests/eval/eval_support.h"

TEST(test_patterns) {
    static const int64_t expected[EVAL_PII_KINDS] = {[EVAL_PII_EMAIL] = 2,
                                                     [EVAL_PII_IBAN] = 2,
                                                     [EVAL_PII_DATE] = 3,
                                                     [EVAL_PII_DIGITS] = 1,
                                                     [EVAL_PII_PHONE] =
                                                         3 /* and digits of what is no account */};
    OWN_TEXTS s = TEXTS("Write to anna.b@example.org or b@x.co, not to @home or a@b.",
                        "Pay to GB82 WEST 1234 5698 7654 32 or DE89370400440532013000.",
                        "Not an account: GB82 WEST 1234 5698 7654 33.",
                        "Born on 1975-03-12, seen 3 March 2024 and 12.3.24; not 1.2.",
                        "Call +49 30 123456 or (030) 1234 5678.", "Case 1234567, room 12345.");
    eval_pii pii;
    assert_ok(eval_find_pii(&s, NULL, NULL, &pii, NULL, ERR));
    for (int32_t k = 0; k < EVAL_PII_KINDS; k++)
        assert_int_equal(pii.n_found[k], expected[k]);
}

/* How many of a kind are in one text. */
static int64_t count(const char *text, int32_t kind) {
    OWN_TEXTS s = TEXTS(text);
    eval_pii pii;
    assert_ok(eval_find_pii(&s, NULL, NULL, &pii, NULL, ERR));
    eval_texts_free(&s);
    return pii.n_found[kind];
}

TEST(test_forms) {
    static const struct {
        int32_t kind;
        const char *one[16], *none[12]; /* texts with one of the kind, and without */
    } cases[] = {
        {EVAL_PII_DATE,
         {"on 2024-03-12.", "at 2024-03-12T10:15:00Z", "on 2024/3/12", "on 12 March 2024",
          "on 12 Mar 2024", "the 3rd of March", "12. March 2024", "on March 12, 2024",
          "on March 12th", "by Sept. 5, 2023", "on 03/12/24", "on 31/12/2024", "on 12/31/2024",
          "on 12-03-2024", "on 12.3.24"},
         {"2024-13-12", "on 31/13/2024", "at 10.10.10.10", "version 1.12.3.24", "1.2.",
          "March 2024", "12.3-24", "32 March", "3/4 of 12", "March 122", "may 12 people"}},
        {EVAL_PII_PHONE,
         {"+44 20 7946 0958", "(555) 123-4567", "+1 (555) 123-4567", "555-123-4567", "555.123.4567",
          "+442079460958", "+44 (0)20 7946 0958", "020 7946 0958", "555-1234", "030/1234567"},
         {"2019-2020", "rooms 10 12 14", "10 20 30", "3.14159265", "12.3456789", "555.123.45",
          "192.168.100.1000.5", "1234 5678 1234 5678", "12-34"}},
        {EVAL_PII_DIGITS, {"no. 123456", "id 20240312"}, {"12345", "on 12/31/2024"}},
        {EVAL_PII_EMAIL, {"to a.b+c@mail.example.org, now"}, {"a@b", "@home.org"}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int wanted = 0; wanted < 2; wanted++)
            for (const char *const *t = wanted ? cases[k].one : cases[k].none; *t; t++)
                if (count(*t, cases[k].kind) != wanted)
                    fail_msg("'%s': kind %d: found %d, expected %d", *t, (int)cases[k].kind,
                             (int)count(*t, cases[k].kind), wanted);
}

/* Names with letters of other alphabets; what is small, or no letter, is none. */
TEST(test_names) {
    OWN_TEXTS s = TEXTS("Then came \xc3\x89lodie and \xc3\x98yvind, \xc5\x81ukasz and "
                        "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd.",
                        "See \xc3\xa9tage and \xe2\x80\x9cNu\xc3\xb1"
                        "ez\xe2\x80\x9d, O'Neil; not \xff"
                        "a, \xc3\x97 or I.");
    eval_pii pii;
    int32_t each[2 * EVAL_PII_KINDS], *names = &each[2 * EVAL_PII_NAME];
    assert_ok(eval_find_pii(&s, &s, NULL, &pii, each, ERR));
    assert_true(names[0] == 4 && names[1] == 2);
}

TEST(test_copied) {
    OWN_TEXTS a = TEXTS("Ask A@x.org. Then ask Meier and Schulz, or call Huber.",
                        "ask a@x.org again, and b@x.org");
    OWN_TEXTS b = TEXTS("mail a@X.org now", "for Mr Meier and for Huber");
    OWN_TEXTS c = TEXTS("this is Huber");
    eval_pii pii;
    int32_t each[2 * EVAL_PII_KINDS];
    const int32_t *mails = &each[2 * EVAL_PII_EMAIL], *names = &each[2 * EVAL_PII_NAME];
    assert_ok(eval_find_pii(&a, &b, &c, &pii, each, ERR));
    assert_true(mails[0] == 1 && mails[1] == 2 && names[0] == 1 && names[1] == 0);
    assert_int_equal(pii.n_found[EVAL_PII_EMAIL], 3);
    assert_int_equal(pii.n_copied[EVAL_PII_EMAIL], 1); /* the same one, twice */
    assert_int_equal(pii.n_found[EVAL_PII_NAME], 1);   /* Meier: Schulz is new, Huber is real */
    assert_int_equal(pii.n_copied[EVAL_PII_NAME], 1);
}
