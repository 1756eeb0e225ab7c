/* probe_perturb.c - see probe_perturb.h: draws against the papers' formulas, 8 deviations apart at
 * most; what must not leave as it is. */
#include "tests/mutations/probe_perturb.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dp/local/local.h"

enum { N = 6, DIM = 2, N_DRAWS = 20000 };

static const char *const words[N] = {"the", "cat", "dog", "sat", "ran", "7"};
static const float vectors[N * DIM] = {0, 0, 1, 0, 1, .5f, 0, 2, .25f, 2, 3, 3};

static double distance(int x, int y) {
    return hypot((double)vectors[DIM * x] - (double)vectors[DIM * y],
                 (double)vectors[DIM * x + 1] - (double)vectors[DIM * y + 1]);
}

static dpi_perturber *open(int32_t mechanism, double epsilon, dpi_vocabulary **v) {
    dpi_perturb_options o;
    dpi_perturber *p;
    dpi_perturb_options_init(&o);
    o.mechanism = mechanism;
    o.epsilon = epsilon;
    o.rare = 4. / 6;
    o.group_size = 3;
    if (dpi_vocabulary_create(words, vectors, N, DIM, v, NULL) != DPI_STATUS_OK ||
        dpi_vocabulary_measure(*v, NULL, 1, NULL) != DPI_STATUS_OK ||
        dpi_perturber_create(*v, &o, &p, NULL) != DPI_STATUS_OK)
        abort();
    return p;
}

/* How often `word` becomes each word, of N_DRAWS times; what is none of them is lost. */
static void count(dpi_perturber *p, const char *word, double *counts) {
    const size_t n_bytes = strlen(word) + 1;
    char *text = malloc(n_bytes * N_DRAWS);
    const dpi_perturbed_word *w;
    size_t n;
    memset(counts, 0, N * sizeof *counts);
    for (size_t i = 0; text && i < N_DRAWS; i++) {
        memcpy(text + i * n_bytes, word, n_bytes);
        text[(i + 1) * n_bytes - 1] = ' ';
    }
    if (!text || dpi_perturb(p, text, n_bytes * N_DRAWS, &w, &n, NULL) != DPI_STATUS_OK)
        abort();
    for (size_t i = 0; i < n; i++)
        if (w[i].to >= 0)
            counts[w[i].to]++;
    free(text);
}

static bool agrees(double counted, double p) {
    const double deviation = sqrt(N_DRAWS * p * (1 - p));
    return fabs(counted - N_DRAWS * p) <= 8 * deviation + 1e-9;
}

/* The exponential mechanism and SANTEXT+ by their formulas; the words 0 and 1 are frequent. */
static double formula(int32_t mechanism, double epsilon, int x, int y) {
    const bool santext = mechanism == DPI_MECHANISM_SANTEXT;
    const double divisor = santext ? 1 : distance(0, 5);
    const int first = santext ? 2 : 0;
    double sum = 0, p = 0;
    for (int i = first; i < N; i++)
        sum += exp(-epsilon * distance(x, i) / (2 * divisor));
    if (y >= first)
        p = exp(-epsilon * distance(x, y) / (2 * divisor)) / sum;
    return santext && x < 2 ? .3 * p + .7 * (x == y) : p;
}

static const char *check_laws(void) {
    for (int32_t mechanism = DPI_MECHANISM_SANTEXT; mechanism <= DPI_MECHANISM_EXPONENTIAL;
         mechanism += DPI_MECHANISM_EXPONENTIAL - DPI_MECHANISM_SANTEXT) {
        dpi_vocabulary *v;
        dpi_perturber *p = open(mechanism, 3, &v);
        const char *fault = NULL;
        double counts[N];
        for (int x = 0; x < N && !fault; x++) {
            count(p, words[x], counts);
            for (int y = 0; y < N; y++)
                if (!agrees(counts[y], formula(mechanism, 3, x, y)))
                    fault =
                        mechanism == DPI_MECHANISM_SANTEXT
                            ? "santext+ draws by another law than its paper's"
                            : "the exponential mechanism draws by another law than its theorem's";
        }
        count(p, "elephant", counts);
        for (int y = 0; y < N && !fault; y++)
            if (!agrees(counts[y], 1. / N))
                fault = "a word that is not in the vocabulary is not drawn from all alike";
        dpi_perturber_free(p);
        dpi_vocabulary_free(v);
        if (fault)
            return fault;
    }
    return NULL;
}

/* The certificate is of the scores that are drawn by. */
static const char *check_certificate(void) {
    dpi_vocabulary *v;
    dpi_certificate c;
    dpi_perturber *p = open(DPI_MECHANISM_EXPONENTIAL, 3, &v);
    dpi_certificate_init(&c);
    const bool ok = dpi_perturb_certify(p, &c, NULL) == DPI_STATUS_OK && c.epsilon <= 3;
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    if (!ok)
        return "the exponential mechanism has more than its epsilon";
    p = open(DPI_MECHANISM_RANTEXT, 3, &v); /* "7" becomes a number, which no other word does */
    const bool bounded = dpi_perturb_certify(p, &c, NULL) != DPI_STATUS_OK || !isinf(c.epsilon);
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    return bounded ? "a number has a bound that it has not" : NULL;
}

/* The exponent that a vocabulary allows, by the definition: no word's loss is above epsilon. */
static const char *check_calibrated(void) {
    dpi_vocabulary *v;
    dpi_certificate c;
    dpi_perturber *p = open(DPI_MECHANISM_CALIBRATED, 3, &v);
    dpi_certificate_init(&c);
    const bool ok = dpi_perturb_certify(p, &c, NULL) == DPI_STATUS_OK && c.epsilon <= 3;
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    return ok ? NULL : "the calibrated mechanism has more than its epsilon";
}

/* Cells that a power of e^(-1/s) cuts: their first bits cannot say what |z| is. And of noise with
 * scale 1, (e - 1) / (e + 1) are zero. */
static const char *check_magnitudes(void) {
    static const int64_t one = 1;
    dpi_magnitude_tables t;
    uint64_t m;
    double zeros = 0;
    dpi_magnitude_tables_fill(&t);
    for (int k = 1; k <= 2000; k++)
        if (dpi_magnitude_of(&t, 20000, (uint32_t)floorl(expl(-k / 20000.0L) * 0x1p32L), &m))
            return "noise is told by bits that do not say it";
    for (int i = 0; i < N_DRAWS; i++) {
        dpi_u128 sum;
        if (dpi_magnitude_squares(&t, &one, 1, NULL, NULL, &sum, NULL) != DPI_STATUS_OK)
            abort();
        zeros += sum == 0;
    }
    return agrees(zeros, tanh(.5)) ? NULL : "noise of another law than discrete Laplace's";
}

/* The mean of t^2 is 2 sum of scale^2; t^2 of 2 dimensions has some 2 of relative deviation. */
static const char *check_threshold(void) {
    static const double range[DIM] = {3, 3};
    static const uint32_t none[4] = {0};
    dpi_perturb_options o;
    dpi_local *local;
    double sum = 0;
    dpi_perturb_options_init(&o);
    if (dpi_local_create(&o, none, 2, range, DIM, &local, NULL) != DPI_STATUS_OK)
        abort();
    for (int i = 0; i < N_DRAWS; i++) {
        uint64_t t;
        if (dpi_local_threshold(local, NULL, NULL, &t, NULL) != DPI_STATUS_OK)
            abort();
        sum += (double)t * (double)t;
    }
    const double scale = (double)local->noise_scale[0], mean = sum / N_DRAWS / (4 * scale * scale);
    dpi_local_free(local);
    return fabs(mean - 1) < 8 * 2 / sqrt(N_DRAWS) ? NULL : "another threshold than rantext's";
}

static const char *check_what_leaves(void) {
    dpi_vocabulary *v;
    dpi_perturber *p = open(DPI_MECHANISM_RANTEXT, 6, &v);
    const dpi_perturbed_word *w;
    const char *fault = NULL;
    size_t n;
    if (dpi_perturb(p, "secretword 123456", 17, &w, &n, NULL) != DPI_STATUS_OK)
        abort();
    const char *text = dpi_perturbed_text(p);
    if (strstr(text, "secretword"))
        fault = "rantext lets a word out that is not in the vocabulary";
    else if (strtol(text, NULL, 10) < 1 || strtol(text, NULL, 10) > 1000)
        fault = "rantext lets a number out";
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    return fault;
}

/* Two threads have bits of their own: of 200 words that are the same, the first 100 do not become
 * what the others do. By chance some 80 of 100 differ. */
static const char *check_threads(void) {
    enum { N_SAME = 200 };
    static const float apart[N] = {0, 1, 2, 3, 4, 5};
    char text[4 * N_SAME + 1] = "";
    dpi_perturb_options o;
    dpi_vocabulary *v;
    dpi_perturber *p;
    const dpi_perturbed_word *w;
    size_t n;
    int n_other = 0;
    for (int i = 0; i < N_SAME; i++)
        memcpy(text + 4 * i, "cat ", 5);
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    o.epsilon = 1;
    o.n_threads = 2;
    if (dpi_vocabulary_create(words, apart, N, 1, &v, NULL) != DPI_STATUS_OK ||
        dpi_vocabulary_measure(v, NULL, 1, NULL) != DPI_STATUS_OK ||
        dpi_perturber_create(v, &o, &p, NULL) != DPI_STATUS_OK ||
        dpi_perturb(p, text, 4 * N_SAME, &w, &n, NULL) != DPI_STATUS_OK || n != N_SAME)
        abort();
    for (int shift = 99; shift <= 101; shift++) { /* where the second one begins is its matter */
        int differ = 0;
        for (int i = 0; i + shift < N_SAME; i++)
            differ += w[i].to != w[i + shift].to;
        n_other += differ >= 20;
    }
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    return n_other == 3 ? NULL : "two threads draw by the same bits";
}

const char *probe_perturb(const dpi_model *model, const char *folder) {
    (void)model, (void)folder;
    const char *fault = check_laws();
    if (!fault)
        fault = check_certificate();
    if (!fault)
        fault = check_calibrated();
    if (!fault)
        fault = check_magnitudes();
    if (!fault)
        fault = check_threshold();
    if (!fault)
        fault = check_threads();
    return fault ? fault : check_what_leaves();
}
