/* A classifier of texts. The oracle: what separates is known, and liblinear's own programs read the
 * same rows (liblinear-train, where it is installed). */
#include "eval/classify.h"
#include "tests/support/support.h"

#include <math.h>
#include <unistd.h>

enum { N = 60 };

/* Texts of eight words, of which `clear` in ten say the label. */
static void make(eval_texts *s, uint64_t *seed, int clear, char text[N][80]) {
    static const char *const names[] = {"fever", "heart", "skin"};
    const char *list[N], *label[N];
    dpi_error err;
    for (int i = 0; i < N; i++) {
        const int own = i % 3;
        text[i][0] = '\0';
        for (int w = 0; w < 8; w++) {
            const bool says = random_u64(seed) % 10 < (uint64_t)clear;
            const char word[] = {(char)(says ? 'a' + own : 'd'), (char)('a' + w), ' ', '\0'};
            strcat(text[i], word);
        }
        list[i] = text[i];
        label[i] = names[own];
    }
    assert_ok(eval_texts_make(list, label, N, s, &err), &err);
}

static void test_known(void **state) {
    (void)state;
    static char text[2][N][80];
    uint64_t seed = 5;
    eval_texts train, test;
    eval_accuracy a;
    dpi_error err;
    make(&train, &seed, 9, text[0]);
    make(&test, &seed, 9, text[1]);
    assert_ok(eval_classify(&train, &test, &a, NULL, &err), &err);
    assert_true(a.accuracy == 1 && fabs(a.macro_f1 - 1) < 1e-12);
    assert_true(fabs(a.majority - 1.0 / 3) < 1e-12);
    assert_int_equal(a.n_labels, 3);
    assert_int_equal(a.n_test, N);
    eval_texts_free(&train);
    eval_texts_free(&test);
}

/* The share that liblinear-predict prints. */
static double accuracy_of_program(const char *folder) {
    char command[1024], line[256];
    double accuracy = NAN;
    snprintf(command, sizeof command,
             "cd '%s' && liblinear-train -q -s 2 -c 1 -e .01 train.svm model >/dev/null && "
             "liblinear-predict test.svm model out", folder);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Accuracy = %lf", &accuracy);
    if (f)
        pclose(f);
    return accuracy / 100;
}

static void test_program(void **state) {
    (void)state;
    static char text[2][N][80];
    char folder[] = "/tmp/dpinfer-classify-XXXXXX", path[2][64], command[64];
    uint64_t seed = 6;
    eval_texts train, test;
    eval_accuracy a;
    dpi_error err;
    if (system("command -v liblinear-train >/dev/null") != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    make(&train, &seed, 1, text[0]);
    make(&test, &seed, 1, text[1]);
    snprintf(path[0], sizeof path[0], "%s/train.svm", folder);
    snprintf(path[1], sizeof path[1], "%s/test.svm", folder);
    assert_ok(eval_write_rows(&train, &train, path[0], &err), &err);
    assert_ok(eval_write_rows(&train, &test, path[1], &err), &err);
    assert_ok(eval_classify(&train, &test, &a, NULL, &err), &err);
    assert_true(a.accuracy > .4 && a.accuracy < 1);
    assert_true(fabs(a.accuracy - accuracy_of_program(folder)) < 1e-4);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    eval_texts_free(&train);
    eval_texts_free(&test);
}

/* "x x y" of the texts "x x y" and "x": weights 2 (ln(3/3) + 1) and ln(3/2) + 1, over their
 * length. */
static void test_rows(void **state) {
    (void)state;
    static const char *const text[] = {"x x y", "x"}, *const label[] = {"a", "b"};
    char path[] = "/tmp/dpinfer-rows-XXXXXX", line[256];
    double first, second;
    int index[2];
    eval_texts s;
    dpi_error err;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(eval_texts_make(text, label, 2, &s, &err), &err);
    assert_ok(eval_write_rows(&s, &s, path, &err), &err);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_equal(sscanf(line, "1 %d:%lf %d:%lf", &index[0], &first, &index[1], &second), 4);
    assert_true(index[0] == 1 && index[1] == 2);
    const double x = 2, y = log(1.5) + 1, length = sqrt(x * x + y * y);
    assert_true(fabs(fmax(first, second) - x / length) < 1e-12);
    assert_true(fabs(fmin(first, second) - y / length) < 1e-12);
    fclose(f);
    unlink(path);
    eval_texts_free(&s);
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const text[] = {"a", "b"}, *const one[] = {"x", "x"};
    eval_texts same, none;
    eval_accuracy a;
    dpi_error err;
    assert_ok(eval_texts_make(text, one, 2, &same, &err), &err);
    assert_ok(eval_texts_make(text, NULL, 2, &none, &err), &err);
    assert_error(eval_classify(&same, &same, &a, NULL, &err), DPI_STATUS_ARG, &err, "found 1");
    assert_error(eval_classify(&none, &same, &a, NULL, &err), DPI_STATUS_ARG, &err, "found 0");
    eval_texts_free(&same);
    eval_texts_free(&none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
