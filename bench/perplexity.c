/* perplexity.c - how far the usual path of a model is from its exact one, on real text.
 *   dpinfer-bench-perplexity MODEL [FILE] < TEXT
 * Windows of tokens of the text are scored by both, and their beginnings are gone on with greedily.
 * FILE, for other engines: ids of each window in a line, then the same for what goes on with its
 * beginning by the usual path. */
#include <math.h>
#include <string.h>

#include "bench/bench.h"

enum { N_WINDOWS = 10, WINDOW = 256, N_BEGIN = 32, N_GREEDY = 64, TEXT_MAX = 1 << 20 };

typedef struct path {
    dpi_session *session;
    double loss; /* of all tokens but the first of each window */
    int32_t greedy[N_WINDOWS][N_GREEDY];
} path;

static int32_t tokens[N_WINDOWS][WINDOW];

static void read_windows(const dpi_model *model) {
    static char text[TEXT_MAX];
    static int32_t all[TEXT_MAX];
    dpi_error err;
    size_t n;
    const size_t n_bytes = fread(text, 1, sizeof text, stdin);
    bench_check(dpi_tokenize(model, text, n_bytes, DPI_TOKENIZE_BOS, all, TEXT_MAX, &n, &err),
                &err);
    int32_t has_bos = n > 0 && all[0] == dpi_token_bos(model);
    if (n < N_WINDOWS * WINDOW)
        bench_die("stdin", "the text is too short");
    for (int32_t i = 0; i < N_WINDOWS; i++) {
        tokens[i][0] = all[0];
        memcpy(&tokens[i][has_bos], &all[has_bos + i * (WINDOW - has_bos)],
               (size_t)(WINDOW - has_bos) * sizeof **tokens);
    }
}

static double loss_of(const float *logits, int32_t n_vocab, int32_t token) {
    double most = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n_vocab; i++)
        most = fmax(most, (double)logits[i]);
    for (int32_t i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum) - (double)logits[token];
}

static int32_t best_of(const float *logits, int32_t n_vocab) {
    int32_t best = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static void score(path *p, int32_t window, int32_t n_vocab, float *logits) {
    dpi_error err;
    const int32_t *of = tokens[window], seq = 0;
    int32_t *greedy = p->greedy[window];
    dpi_session_reset(p->session, 0);
    bench_check(dpi_session_prefill(p->session, 0, of, WINDOW, logits, &err), &err);
    for (int32_t t = 1; t < WINDOW; t++)
        p->loss += loss_of(logits + (size_t)(t - 1) * (size_t)n_vocab, n_vocab, of[t]);
    dpi_session_reset(p->session, 0);
    bench_check(dpi_session_prefill(p->session, 0, of, N_BEGIN, NULL, &err), &err);
    for (int32_t t = 0; t < N_GREEDY; t++) {
        greedy[t] = best_of(dpi_session_logits(p->session, 0), n_vocab);
        bench_check(dpi_session_step(p->session, 1, &seq, &greedy[t], &err), &err);
    }
}

static void write_ids(FILE *f, const int32_t *ids, int32_t n) {
    for (int32_t t = 0; t < n; t++)
        fprintf(f, "%d%c", (int)ids[t], t + 1 < n ? ' ' : '\n');
}

static void write_all(const char *name, const path *p) {
    FILE *f = fopen(name, "w");
    if (!f)
        bench_die(name, strerror(errno));
    for (int32_t i = 0; i < N_WINDOWS; i++)
        write_ids(f, tokens[i], WINDOW);
    for (int32_t i = 0; i < N_WINDOWS; i++)
        write_ids(f, p->greedy[i], N_GREEDY);
    if (fclose(f) != 0)
        bench_die(name, strerror(errno));
}

int main(int argc, char **argv) {
    static path paths[2]; /* the usual one, the exact one */
    dpi_session_options o;
    dpi_model_info info;
    dpi_model *model = NULL;
    dpi_error err;
    double perplexity[2];
    int same = 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: dpinfer-bench-perplexity MODEL [FILE] < TEXT\n");
        return 2;
    }
    dpi_model_info_init(&info);
    dpi_session_options_init(&o);
    o.n_ctx = WINDOW;
    bench_check(dpi_model_open(argv[1], NULL, &model, &err), &err);
    bench_check(dpi_model_info_get(model, &info, &err), &err);
    read_windows(model);
    float *logits = malloc((size_t)WINDOW * (size_t)info.n_vocab * sizeof *logits);
    if (!logits)
        bench_die("logits", "out of memory");
    for (o.exact = 0; o.exact < 2; o.exact++) {
        path *p = &paths[o.exact];
        bench_check(dpi_session_create(model, &o, &p->session, &err), &err);
        for (int32_t i = 0; i < N_WINDOWS; i++)
            score(p, i, info.n_vocab, logits);
        perplexity[o.exact] = exp(p->loss / (N_WINDOWS * (WINDOW - 1)));
        dpi_session_free(p->session);
    }
    for (int32_t i = 0; i < N_WINDOWS; i++)
        same += memcmp(paths[0].greedy[i], paths[1].greedy[i], sizeof paths[0].greedy[i]) == 0;
    printf("model,tokens,perplexity,exact,percent,same of %d continuations\n", N_WINDOWS);
    printf("%s,%d,%.6f,%.6f,%.4f,%d\n", info.name, N_WINDOWS * (WINDOW - 1), perplexity[0],
           perplexity[1], 100 * (perplexity[0] / perplexity[1] - 1), same);
    if (argc > 2)
        write_all(argv[2], &paths[0]);
    free(logits);
    dpi_model_close(model);
    return 0;
}
