/* bench_perturb.c - what words that are replaced cost: a text of 100 words, with distances at hand.
 *   dpinfer-bench-perturb [WORDS [DIMENSIONS [THREADS]]]
 * The vocabulary (11,000 words of 1,536 numbers, as Tong et al. 2025 measure) is made up: groups
 * of words around a common middle, so that distances differ and lists have many lengths. A time is
 * the median of N_RUNS texts; the list is what a word is drawn from. The first line is what
 * their random bits alone cost. */
#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "bench/bench.h"
#include "dpinfer/perturb.h"

enum { N_WORDS = 100, N_RUNS = 301, N_GROUPS = 400 };

static uint64_t state = 1;

static uint32_t below(uint32_t n) {
    uint32_t bits;
    dpi_random_insecure(&state, &bits, sizeof bits);
    return (uint32_t)((uint64_t)bits * n >> 32);
}

/* Mean 0, variance 1. */
static float normal(void) {
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)below(1 << 24) / (1 << 24);
    return sum - 6;
}

/* Vectors of length 1, of which the middle is a half, and some words are nearer to their group
 * than others. */
static void fill_word(const float *groups, int32_t dim, float *x) {
    const float *group = groups + (size_t)(1 + below(N_GROUPS)) * (size_t)dim;
    const float own = .2f + .8f * (float)below(1000) / 1000;
    double length = 0;
    for (int32_t k = 0; k < dim; k++) {
        x[k] = 1.4f * groups[k] + group[k] + own * normal();
        length += (double)x[k] * x[k];
    }
    for (int32_t k = 0; k < dim; k++)
        x[k] /= (float)sqrt(length);
}

static dpi_vocabulary *make_vocabulary(int32_t n, int32_t dim) {
    float *groups = calloc((size_t)(N_GROUPS + 1) * (size_t)dim, sizeof *groups);
    float *vectors = calloc((size_t)n * (size_t)dim, sizeof *vectors);
    char(*names)[16] = calloc((size_t)n, sizeof *names);
    const char **words = calloc((size_t)n, sizeof *words);
    dpi_vocabulary *v = NULL;
    dpi_error err;
    if (!groups || !vectors || !names || !words)
        bench_die("vocabulary", "no memory");
    for (size_t i = 0; i < (size_t)(N_GROUPS + 1) * (size_t)dim; i++)
        groups[i] = normal();
    for (int32_t i = 0; i < n; i++) {
        fill_word(groups, dim, vectors + (size_t)i * (size_t)dim);
        snprintf(names[i], sizeof names[i], "w%d", i);
        words[i] = names[i];
    }
    bench_check(dpi_vocabulary_create(words, vectors, n, dim, &v, &err), &err);
    bench_check(dpi_vocabulary_measure(v, NULL, 0, &err), &err);
    free(groups);
    free(vectors);
    free(names);
    free(words);
    return v;
}

static size_t make_text(int32_t n, char *text, size_t room) {
    size_t at = 0;
    for (int i = 0; i < N_WORDS; i++)
        at += (size_t)snprintf(text + at, room - at, "w%u ", below((uint32_t)n));
    return at;
}

/* 32 bits for each dimension of each word, by one thread. */
static void measure_random(int32_t dim) {
    static unsigned char bits[1 << 14];
    double ms[N_RUNS];
    for (int i = 0; i < N_RUNS; i++) {
        const double begin = bench_seconds(CLOCK_MONOTONIC);
        for (int64_t left = (int64_t)N_WORDS * dim * 4; left > 0; left -= (int64_t)sizeof bits)
            if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
                bench_die("getrandom", strerror(errno));
        ms[i] = 1e3 * (bench_seconds(CLOCK_MONOTONIC) - begin);
    }
    printf("random bits of rantext     %7.2f ms\n", bench_median(ms, N_RUNS));
}

static void measure(const dpi_vocabulary *v, int32_t mechanism, double epsilon,
                    int32_t n_threads) {
    double ms[N_RUNS], list = 0;
    char text[N_WORDS * 16];
    dpi_perturb_options o;
    dpi_perturber *p = NULL;
    dpi_error err;
    dpi_perturb_options_init(&o);
    o.mechanism = mechanism;
    o.epsilon = epsilon;
    o.n_threads = n_threads;
    bench_check(dpi_perturber_create(v, &o, &p, &err), &err);
    for (int i = 0; i < N_RUNS; i++) {
        const dpi_perturbed_word *words;
        size_t n = 0, n_bytes = make_text(dpi_vocabulary_count(v), text, sizeof text);
        const double begin = bench_seconds(CLOCK_MONOTONIC);
        bench_check(dpi_perturb(p, text, n_bytes, &words, &n, &err), &err);
        ms[i] = 1e3 * (bench_seconds(CLOCK_MONOTONIC) - begin);
        for (size_t j = 0; j < n; j++)
            list += (double)words[j].n_list / (double)n / N_RUNS;
    }
    printf("%-12s epsilon %4g   %7.2f ms   list %8.1f\n",
           dpi_words_mechanism_name(mechanism), epsilon,
           bench_median(ms, N_RUNS), list);
    dpi_perturber_free(p);
}

int main(int argc, char **argv) {
    const int32_t n = argc > 1 ? atoi(argv[1]) : 11000, dim = argc > 2 ? atoi(argv[2]) : 1536;
    const int32_t n_threads = argc > 3 ? atoi(argv[3]) : 0;
    if (n < 2 || dim < 1 || n_threads < 0)
        bench_die("arguments", "WORDS must be 2 or more, DIMENSIONS 1 or more, THREADS 0 or more");
    dpi_vocabulary *v = make_vocabulary(n, dim);
    printf("%d words, %d dimensions, a text of %d words:\n", n, dim, N_WORDS);
    measure_random(dim);
    for (int32_t mechanism = 0; mechanism < DPI_WORDS_CALIBRATED; mechanism++)
        for (double epsilon = 2; epsilon < 15; epsilon += 6)
            measure(v, mechanism, epsilon, n_threads);
    dpi_vocabulary_free(v);
    return 0;
}
