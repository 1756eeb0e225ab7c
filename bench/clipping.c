/* clipping.c - how much of what references say is clipped away, with centring and without.
 *
 *     dpinfer-clipping MODEL TASK FILE...
 *
 * The files are references, one text each. One text is drawn by InvisibleInk from all of them; at
 * each of its steps the differences l_i - p, and l_i - p - m_i, over the candidates V_k+ are held
 * against the clip bounds C of several budgets (docs/spec.md section 1). Evaluation of records that
 * are not private: nothing of this may be shown of real ones. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "dp/exact/center.h"

enum { TOP_K = 100, N_TOKENS = 200, N_BUDGETS = 4 };
static const double budgets[N_BUDGETS] = {1, 3, 5, 10}; /* epsilon at delta = 1e-6 */

typedef struct tally {
    double n, beyond, size, lost; /* differences; of those |d| > C; sums of |d|, and of |d| - C */
} tally;

typedef struct bench {
    dpi_model *model;
    dpi_session *session;
    dpi_sampler *sampler; /* of the largest budget: draws the text */
    dpi_model_info info;
    int32_t n_ref;
    double clip[N_BUDGETS];
    tally tallies[N_BUDGETS][2]; /* without centring, with */
} bench;

static char *read_text(const char *path, size_t *n_bytes) {
    char *text = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !dpi_private_read(fd, SIZE_MAX, &text, n_bytes))
        bench_die(path, strerror(errno));
    close(fd);
    return text;
}

/* The prompts as a release has them: sequence 0 is public, the others are the references'. */
static void read_prompts(const bench *b, const char *task, const char *const *paths) {
    dpi_prompt_options o;
    dpi_prompts *prompts;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    dpi_error err;
    dpi_prompt_options_init(&o);
    o.public_prompt = (dpi_bytes){task, strlen(task)};
    bench_check(dpi_prompts_create(b->model, &o, dpi_session_n_ctx(b->session) - N_TOKENS, &prompts,
                             &err),
          &err);
    bench_check(dpi_prompts_info_get(prompts, &info, &err), &err);
    bench_check(dpi_session_prefill(b->session, 0, dpi_prompts_public(prompts),
                                    (size_t)info.n_public, NULL, &err), &err);
    for (int32_t r = 1; r <= b->n_ref; r++) {
        int32_t *tokens;
        size_t n_tokens, n_bytes;
        char *text = read_text(paths[r - 1], &n_bytes);
        bench_check(dpi_prompts_encode(prompts, text, n_bytes, &tokens, &n_tokens, &err), &err);
        if (!tokens)
            bench_die(paths[r - 1], "has no text");
        bench_check(dpi_session_prefill(b->session, r, tokens, n_tokens, NULL, &err), &err);
        dpi_private_free(tokens);
        dpi_private_free(text);
    }
    dpi_prompts_free(prompts);
}

/* ---- Counting -------------------------------------------------------------------------------- */

static int down(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static void count(tally *t, double difference, double clip) {
    double size = fabs(difference);
    t->n++;
    t->size += size;
    t->beyond += size > clip;
    t->lost += size > clip ? size - clip : 0;
}

static void count_step(bench *b, const float *p, const float *sorted, int32_t *support) {
    for (int i = 0; i < N_BUDGETS; i++) {
        size_t n = 0;
        for (int32_t y = 0; y < b->info.n_vocab; y++)
            if (p[y] >= sorted[TOP_K - 1] - 2 * b->clip[i] / b->n_ref)
                support[n++] = y;
        double public_mass = dpi_log_mass(p, support, n);
        for (int32_t r = 1; r <= b->n_ref; r++) {
            const float *l = dpi_session_logits(b->session, r);
            double centre = dpi_log_mass(l, support, n) - public_mass;
            for (size_t k = 0; k < n; k++) {
                double d = (double)l[support[k]] - (double)p[support[k]];
                count(&b->tallies[i][0], d, b->clip[i]);
                count(&b->tallies[i][1], d - centre, b->clip[i]);
            }
        }
    }
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static void write_text(bench *b) {
    const size_t n = (size_t)b->info.n_vocab, rows = (size_t)b->n_ref + 1;
    float *sorted = malloc(n * sizeof *sorted);
    int32_t *support = malloc(n * sizeof *support);
    int32_t *seqs = malloc(rows * sizeof *seqs), *tokens = malloc(rows * sizeof *tokens);
    const float **logits = malloc(rows * sizeof *logits);
    dpi_error err;
    if (!sorted || !support || !seqs || !tokens || !logits)
        bench_die("memory", strerror(errno));
    bench_check(dpi_sampler_begin(b->sampler, &err), &err);
    for (int32_t t = 0, token = -1; t < N_TOKENS; t++) {
        for (size_t r = 0; r < rows; r++)
            logits[r] = dpi_session_logits(b->session, (int32_t)r);
        memcpy(sorted, logits[0], n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, down);
        count_step(b, logits[0], sorted, support);
        bench_check(dpi_sampler_step(b->sampler, logits[0], logits + 1, &token, &err), &err);
        if (dpi_token_is_eog(b->model, token))
            break;
        for (size_t r = 0; r < rows; r++) {
            seqs[r] = (int32_t)r;
            tokens[r] = token;
        }
        bench_check(dpi_session_step(b->session, (int32_t)rows, seqs, tokens, &err), &err);
    }
    free(sorted), free(support), free(seqs), free(tokens), free(logits);
}

static void calibrate(bench *b) {
    dpi_sampler_options o;
    dpi_error err;
    dpi_sampler_options_init(&o);
    o.n_vocab = b->info.n_vocab;
    o.n_ref = b->n_ref;
    o.n_tokens = N_TOKENS;
    o.top_k = TOP_K;
    o.delta = 1e-6;
    for (int i = 0; i < N_BUDGETS; i++) {
        dpi_sampler_plan plan;
        dpi_sampler_plan_init(&plan);
        o.epsilon = budgets[i];
        bench_check(dpi_sampler_plan_make(&o, &plan, &err), &err);
        b->clip[i] = plan.clip;
    }
    bench_check(dpi_sampler_create(&o, &b->sampler, &err), &err);
}

static void print(const bench *b) {
    printf("| epsilon | C | clipped | clipped, centred | lost | lost, centred |\n"
           "|---:|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < N_BUDGETS; i++) {
        const tally *t = b->tallies[i];
        printf("| %g | %.3f | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", budgets[i], b->clip[i],
               100 * t[0].beyond / t[0].n, 100 * t[1].beyond / t[1].n, 100 * t[0].lost / t[0].size,
               100 * t[1].lost / t[1].size);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fputs("usage: dpinfer-clipping MODEL TASK FILE...\n"
              "  share of the differences between references and public model that are clipped,\n"
              "  and of their size that is lost, with centring and without, at several budgets\n",
              stderr);
        return 2;
    }
    bench b = {.n_ref = argc - 3, .info = {.struct_size = sizeof b.info}};
    dpi_session_options options;
    dpi_error err;
    bench_check(dpi_model_open(argv[1], NULL, &b.model, &err), &err);
    bench_check(dpi_model_info_get(b.model, &b.info, &err), &err);
    dpi_session_options_init(&options);
    options.n_seq = b.n_ref + 1;
    bench_check(dpi_session_create(b.model, &options, &b.session, &err), &err);
    calibrate(&b);
    read_prompts(&b, argv[2], (const char *const *)argv + 3);
    write_text(&b);
    print(&b);
    dpi_sampler_free(b.sampler);
    dpi_session_free(b.session);
    dpi_model_close(b.model);
    return 0;
}
