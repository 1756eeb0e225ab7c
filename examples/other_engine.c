/* other_engine.c - another engine's logits, drawn with dpinfer's privacy. The program has a
 * language model of its own; libdpinfer has the sampler and the accounting.
 *
 *     other_engine [--seed N] PUBLIC.txt RECORD.txt...       one file is one record
 *
 * It continues two openings in the style of the records, as a server would answer two questions
 * from one set of documents. Each answer has a budget of its own; as both are about the same
 * records, the costs add up. The text goes to stdout, the statement of what it tells to stderr.
 *
 * The model predicts a letter from how often it followed the last few letters in what it has read.
 * That is small, but its logits depend on the records as those of a large model depend on its
 * prompts. To use your engine, replace engine_logits and the alphabet. */
#include <dpinfer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The engine ------------------------------------------------------------------------------ */

/* Token y is the character 32 + y of ASCII; the last one ends a text. */
enum { END = 95, N_VOCAB = 96, ORDER = 5, PRIOR = 1, MAX_TOKENS = 200 };

typedef struct tokens {
    uint8_t *ids;
    size_t n;
} tokens;

static void append(tokens *t, const char *text, size_t n_bytes) {
    t->ids = realloc(t->ids, t->n + n_bytes + 1);
    if (!t->ids)
        exit(1);
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        t->ids[t->n++] = (uint8_t)(c == '\n' ? END : c >= 32 && c < 127 ? c - 32 : 0);
    }
}

/* Logits [N_VOCAB] of what follows the last ORDER tokens of `context` in `prompt`: the frequencies
 * after 0, 1, ... ORDER equal tokens, each the prior (of weight PRIOR) of the next. */
static void engine_logits(const tokens *prompt, const tokens *context, float logits[N_VOCAB]) {
    double p[N_VOCAB];
    for (int y = 0; y < N_VOCAB; y++)
        p[y] = 1.0 / N_VOCAB;
    for (size_t order = 0; order <= ORDER && order <= context->n; order++) {
        const uint8_t *last = context->ids + context->n - order;
        int count[N_VOCAB] = {0}, total = 0;
        for (size_t i = order; i < prompt->n; i++)
            if (memcmp(prompt->ids + i - order, last, order) == 0) {
                count[prompt->ids[i]]++;
                total++;
            }
        for (int y = 0; y < N_VOCAB; y++)
            p[y] = (count[y] + PRIOR * p[y]) / (total + PRIOR);
    }
    for (int y = 0; y < N_VOCAB; y++)
        logits[y] = (float)log(p[y]);
}

/* ---- Prompts --------------------------------------------------------------------------------- */

/* What is in both files, one after the other; without ids if one of them cannot be read. Nothing is
 * said about that here: what is in a record, and whether anything is, is private. */
static tokens read_prompt(const char *public_path, const char *record_path) {
    const char *paths[] = {public_path, record_path};
    tokens prompt = {0};
    for (int i = 0; i < 2 && paths[i]; i++) {
        FILE *file = fopen(paths[i], "rb");
        if (!file) {
            free(prompt.ids);
            return (tokens){0};
        }
        char buffer[4096];
        for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
            append(&prompt, buffer, n);
        fclose(file);
    }
    return prompt;
}

/* ---- One answer: create(budget) -> begin -> step, step, ... ---------------------------------- */

typedef struct server {
    int32_t n_ref;
    tokens public_prompt, *prompts; /* [n_ref] */
    float (*logits)[N_VOCAB];       /* [n_ref] */
    const float **reference;        /* [n_ref] NULL: an empty slot */
    uint64_t *seed;                 /* NULL: randomness of the operating system */
} server;

static void check(dpi_status status, const dpi_error *err) {
    if (status == DPI_STATUS_OK)
        return;
    fprintf(stderr, "other_engine: %s\n", err->message);
    exit(1);
}

/* Prints the opening and up to MAX_TOKENS private tokens. Returns rho, what they cost. */
static double answer(const server *s, const char *opening, double rho) {
    dpi_error err;
    dpi_sampler *sampler;
    dpi_sampler_options options;
    dpi_sampler_options_init(&options);
    options.n_vocab = N_VOCAB;
    options.n_ref = s->n_ref;
    options.n_tokens = MAX_TOKENS;
    options.top_k = 10;
    options.tau = .8;
    options.rho = rho;
    if (s->seed) {
        options.random = dpi_random_insecure;
        options.random_user = s->seed;
    }
    check(dpi_sampler_create(&options, &sampler, &err), &err);
    check(dpi_sampler_begin(sampler, &err), &err);

    tokens context = {0};
    append(&context, opening, strlen(opening));
    fputs(opening, stdout);
    while (dpi_sampler_tokens_left(sampler) > 0) {
        float public_logits[N_VOCAB];
        engine_logits(&s->public_prompt, &context, public_logits);
        for (int32_t i = 0; i < s->n_ref; i++) /* record i, and no other, moves logits i */
            if (s->reference[i])
                engine_logits(&s->prompts[i], &context, s->logits[i]);
        int32_t token;
        check(dpi_sampler_step(sampler, public_logits, s->reference, &token, &err), &err);
        if (token == END) /* the token is released: whatever follows from it is free */
            break;
        char c = (char)(32 + token);
        fputc(c, stdout);
        append(&context, &c, 1);
    }
    fputs("\n\n", stdout);

    const dpi_sampler_plan *plan = dpi_sampler_plan_get(sampler);
    double spent = plan->rho_total; /* of the whole text: stopping early earns nothing back */
    fprintf(stderr, "\"%s...\": %.6g-zCDP: %d tokens of range %.4g, logits clipped to %.4g\n",
            opening, spent, MAX_TOKENS, plan->eta, plan->clip);
    dpi_sampler_free(sampler);
    free(context.ids);
    return spent;
}

/* ---- Two questions, one statement ------------------------------------------------------------ */

static void open_server(server *s, const char *public_path, char **paths, int n_paths) {
    s->n_ref = n_paths;
    s->public_prompt = read_prompt(public_path, NULL);
    if (!s->public_prompt.ids) {
        fprintf(stderr, "other_engine: %s: no public text\n", public_path);
        exit(1);
    }
    s->prompts = calloc((size_t)n_paths, sizeof *s->prompts);
    s->logits = calloc((size_t)n_paths, sizeof *s->logits);
    s->reference = calloc((size_t)n_paths, sizeof *s->reference);
    if (!s->prompts || !s->logits || !s->reference)
        exit(1);
    for (int i = 0; i < n_paths; i++) {
        s->prompts[i] = read_prompt(public_path, paths[i]);
        s->reference[i] = s->prompts[i].ids ? s->logits[i] : NULL;
    }
}

static void close_server(server *s) {
    for (int32_t i = 0; i < s->n_ref; i++)
        free(s->prompts[i].ids);
    free(s->public_prompt.ids);
    free(s->prompts);
    free(s->logits);
    free(s->reference);
}

int main(int argc, char **argv) {
    uint64_t seed = 0;
    server s = {0};
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        s.seed = &seed;
        first = 3;
    }
    if (first + 1 >= argc) {
        fputs("usage: other_engine [--seed N] PUBLIC.txt RECORD.txt...\n", stderr);
        return 2;
    }
    open_server(&s, argv[first], argv + first + 1, argc - first - 1);
    double rho = answer(&s, "Once upon a time", 1), epsilon;
    rho += answer(&s, "The old man", 4);
    close_server(&s);

    const double delta = 1e-6;
    dpi_error err;
    check(dpi_zcdp_epsilon(rho, delta, &epsilon, &err), &err);
    fprintf(stderr,
            "%s\n"
            "  guarantee   %.6g-zCDP, and so (%.6g, %g)-DP, for both texts together\n"
            "  adjacency   replace-by-null: the record's slot stays, and adds nothing\n"
            "  unit        one record = one file, %d slots\n",
            s.seed ? "NOT PRIVATE: --seed makes the draws known. Without it:" : "Privacy statement",
            rho, epsilon, delta, s.n_ref);
    return 0;
}
