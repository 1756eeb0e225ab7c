/* main.c - runs the tests that TEST() registered: test_x [PATTERN], by default all.
 * Exit code: how many failed; 77 if the processor lacks the instruction set of DPI_ISA. */
#include <fnmatch.h>
#include <locale.h>

#include "tests/support/support.h"

struct test_hooks test_hooks;

enum { MOST_TESTS = 128 };
static struct CMUnitTest tests[MOST_TESTS];
static size_t n_tests;

static int call(void (*hook)(void)) {
    if (hook)
        hook();
    return 0;
}

static int before(void **state __attribute__((unused))) { return call(test_hooks.all[0]); }
static int after(void **state __attribute__((unused))) { return call(test_hooks.all[1]); }
static int before_each(void **state __attribute__((unused))) { return call(test_hooks.each[0]); }
static int after_each(void **state __attribute__((unused))) { return call(test_hooks.each[1]); }

void add_test_of_file(const char *name, CMUnitTestFunction function) {
    if (n_tests == MOST_TESTS)
        abort();
    tests[n_tests++] = (struct CMUnitTest){name, function, before_each, after_each, NULL};
}

int main(int argc, char **argv) {
    if (argc > 2) {
        fprintf(stderr, "usage: %s [PATTERN]\n", argv[0]);
        return 2;
    }
    size_t n = 0;
    for (size_t i = 0; i < n_tests; i++)
        if (argc < 2 || fnmatch(argv[1], tests[i].name, 0) == 0)
            tests[n++] = tests[i];
    n_tests = n;
    if (n == 0) {
        fprintf(stderr, "%s: no test has the name %s\n", argv[0], argc < 2 ? "" : argv[1]);
        return 2;
    }
    setlocale(LC_ALL, ""); /* as programs do that use the library */
    forced_isa(); /* skips all */
    return _cmocka_run_group_tests(argv[0], tests, n_tests, before, after);
}
