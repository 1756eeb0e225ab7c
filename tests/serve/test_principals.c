/* test_principals.c - the file of tokens, and who is found by one. Hashes: FIPS 180-4's "abc", and
 * that of the empty string. */
#include "serve/principals.h"

#include "tests/support/support.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static principals *parse(const char *text) {
    principals *p = NULL;
    assert_ok(principals_parse("tokens", text, strlen(text), &p, ERR));
    return p;
}

TEST(finds_by_token) {
    principals *p = parse("# people\n\nalice " ABC "\r\nward-7.b\t" EMPTY "  \n");
    assert_string_equal(principals_find(p, "Bearer abc"), "alice");
    assert_string_equal(principals_find(p, "bearer abc"), "alice");
    assert_string_equal(principals_find(p, "Bearer "), "ward-7.b");
    static const char *const others[] = {"Bearer abd", "Bearer abc ",  "Bearer", "Basic abc", "abc",
                                         "",           ("Bearer " ABC)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(principals_find(p, others[i]));
    assert_null(principals_find(p, NULL));
    principals_free(p);
    p = parse("A BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD");
    assert_string_equal(principals_find(p, "Bearer abc"), "A");
    principals_free(p);
    principals_free(NULL);
}

TEST(has_shares) {
    principals *p = parse("alice " ABC "  letters=0.25\tnotes=0\nbob " EMPTY " letters=1\n");
    assert_true(principals_share(p, "alice", "letters") == .25);
    assert_true(principals_share(p, "alice", "notes") == 0);
    assert_true(principals_share(p, "bob", "letters") == 1);
    assert_true(principals_share(p, "bob", "notes") == -1);
    assert_true(principals_share(p, "carol", "letters") == -1);
    assert_true(principals_share(NULL, "bob", "letters") == -1);
    const char *name, *dataset;
    assert_true(principals_share_at(p, 2, &name, &dataset));
    assert_string_equal(name, "bob");
    assert_string_equal(dataset, "letters");
    assert_false(principals_share_at(p, 3, &name, &dataset));
    principals_free(p);
}

TEST(refuses_files) {
    static const struct {
        const char *text, *message;
    } files[] = {
        {"", "no principal"},
        {"# alice\n", "no principal"},
        {"alice", "tokens line 1: allowed are a name"},
        {"alice abc", "line 1: allowed"},
        {" alice " ABC, "line 1: allowed"},
        {"al/ice " ABC, "line 1: allowed"},
        {"alice " ABC "0", "line 1: allowed"},
        {"alice " ABC " x", "line 1: allowed is a share"},
        {"alice " ABC " x=", "line 1: allowed is a share"},
        {"alice " ABC " x=1.01", "line 1: allowed is a share"},
        {"alice " ABC " x=-1", "line 1: allowed is a share"},
        {"alice " ABC " x=nan", "line 1: allowed is a share"},
        {"alice " ABC " x/y=1", "line 1: allowed is a share"},
        {"alice " ABC " x=.1 y=.2 x=.3", "line 1: the share is there already"},
        {"a " ABC "\nb g" EMPTY, "line 2: allowed"},
        {"a " ABC "\na " EMPTY, "line 2: the name is there already"},
        {"a " ABC "\n\nb " ABC, "line 3: the hash is there already"},
        {"a2345678901234567890123456789012345678901234567890123456789012345 " ABC, "line 1"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        principals *p = (principals *)1;
        assert_error(principals_parse("tokens", files[i].text, strlen(files[i].text), &p, ERR),
                     FORMAT, files[i].message);
        assert_null(p);
        assert_null(strstr(ERR->message, "ba7816"));
    }
}
