/* bench_grammar.c - what a grammar costs a step: which tokens are allowed, and the draw's list
 * of them.   dpinfer-bench-grammar MODEL [GBNF FILE]
 * MODEL may be a vocabulary alone. Texts are random tokens among the allowed ones, so that most
 * places are new ones: the worst case. Times are of the processor. */
#include <string.h>

#include "bench/bench.h"

enum { N_TEXTS = 50, N_TOKENS = 200 };

static const char usual[] =
    "root ::= \"{\\\"name\\\": \\\"\" [^\"\\\\]{1,200} \"\\\", \\\"age\\\": \" [0-9]{1,3} \"}\"";

static double seconds(void) { return bench_seconds(CLOCK_PROCESS_CPUTIME_ID); }

static char *read_file(const char *path) {
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (!f || n == 0)
        bench_die(path, strerror(errno));
    fclose(f);
    text[n] = '\0';
    return text;
}

typedef struct cost {
    double sum, worst;
    int64_t n;
} cost;

static void add(cost *c, double x) {
    c->sum += x;
    c->worst = x > c->worst ? x : c->worst;
    c->n++;
}

static void print(const char *what, const cost *c) {
    printf("%-28s mean %8.4f ms, most %8.4f ms, %lld steps\n", what, 1e3 * c->sum / (double)c->n,
           1e3 * c->worst, (long long)c->n);
}

/* The allowed token number `which`. */
static int32_t pick(const uint64_t *bits, int32_t which) {
    int32_t token = 0;
    for (;; token++)
        if ((bits[token / 64] >> (token % 64) & 1) && which-- == 0)
            return token;
}

static void write_text(const dpi_model *model, dpi_mask *mask, dpi_sampler *sampler,
                       uint64_t *state, cost *find, cost *list) {
    dpi_mask_text *text = NULL;
    dpi_error err;
    bench_check(dpi_mask_text_create(mask, &text, &err), &err);
    bench_check(dpi_sampler_begin(sampler, &err), &err);
    for (int i = 0; i < N_TOKENS; i++) {
        const uint64_t *bits;
        uint64_t random;
        int32_t n;
        const double began = seconds();
        bench_check(dpi_mask_text_allowed(text, &bits, &n, &err), &err);
        const double found = seconds();
        bench_check(dpi_sampler_allow(sampler, bits, &err), &err);
        add(find, found - began);
        add(list, seconds() - found);
        (void)dpi_random_insecure(state, &random, sizeof random);
        const int32_t token = pick(bits, (int32_t)((random >> 32) % (uint64_t)n));
        bench_check(dpi_mask_text_push(text, token, &err), &err);
        if (dpi_token_is_eog(model, token))
            break;
    }
    dpi_mask_text_free(text);
}

int main(int argc, char **argv) {
    dpi_model_options open;
    dpi_model_info info;
    dpi_sampler_options o;
    dpi_model *model = NULL;
    dpi_grammar *grammar = NULL;
    dpi_mask *mask = NULL;
    dpi_sampler *sampler = NULL;
    dpi_error err;
    uint64_t state = 1;
    cost find = {0}, list = {0};
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: dpinfer-bench-grammar MODEL [GBNF FILE]\n");
        return 2;
    }
    const char *text = argc > 2 ? read_file(argv[2]) : usual;
    dpi_model_options_init(&open);
    dpi_model_info_init(&info);
    dpi_sampler_options_init(&o);
    open.vocab_only = 1;
    bench_check(dpi_model_open(argv[1], &open, &model, &err), &err);
    bench_check(dpi_model_info_get(model, &info, &err), &err);
    o.method = DPI_METHOD_PLAIN;
    o.n_vocab = info.n_vocab;
    o.n_tokens = N_TOKENS;
    bench_check(dpi_grammar_parse(text, strlen(text), &grammar, &err), &err);
    const double began = seconds();
    bench_check(dpi_mask_create(grammar, model, &mask, &err), &err);
    printf("%d tokens, %.1f ms to begin\n", (int)info.n_vocab, 1e3 * (seconds() - began));
    bench_check(dpi_sampler_create(&o, &sampler, &err), &err);
    for (int i = 0; i < N_TEXTS; i++)
        write_text(model, mask, sampler, &state, &find, &list);
    print("which tokens are allowed", &find);
    print("the sampler's list of them", &list);
    dpi_sampler_free(sampler);
    dpi_mask_free(mask);
    dpi_grammar_free(grammar);
    dpi_model_close(model);
    return 0;
}
