/* utility.c - dpinfer-utility: how well texts match the attributes of the private records, for
 * which budget and batch size; see usage() and utility.h. */
#include "eval/utility.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 16, MAX_RESULTS = 512 };

typedef struct list {
    double of[MAX_LIST];
    int32_t n;
} list;

typedef struct options {
    maker_options make;
    list batches, epsilons;
    variant variants[MAX_LIST];
    int32_t n_variants;
    const char *prefix;
    int32_t n_texts;
    bool baselines, center;
} options;

static void usage(FILE *to) {
    fputs("usage: dpinfer-utility MODEL REFS ATTRIBUTES [OPTIONS]\n"
          "REFS: a folder of records of the corpus grammar; ATTRIBUTES: their attributes, as\n"
          "dpinfer-corpus make writes both. Writes OUT.md, .csv, .svg and the texts in OUT.jsonl.\n"
          "  -n COUNT           texts per setting (64)\n"
          "  -B LIST            references per text (7,15,31)\n"
          "  -e LIST            epsilon (1,3,5,10)\n"
          "  --variants LIST    an accountant of InvisibleInk (zcdp, br, filter) or a method:\n"
          "                    ", to);
    for (int32_t id = 0; id < dpi_method_count(); id++)
        if (dpi_method_get(id)->has_guarantee)
            fprintf(to, " %s", dpi_method_get(id)->name);
    fputs(". Then -pace and -center,\n"
          "                     and :OPTION=VALUE, options of dpinfer run:\n"
          "                     zcdp,filter-pace,zcdp-pace-center:free-top-k=5 (zcdp)\n"
          "  --center           every variant centred\n"
          "  --no-baselines     without documents, public and plain texts\n"
          "  --judge MODEL      whose perplexity is reported (MODEL's own)\n"
          "  --delta D (1e-5)   -T TOKENS (264)   -k TOP_K (100)   --tau TAU (1)\n"
          "  --seed S (1)       -t THREADS (all)  -o OUT (utility)\n", to);
}

static int fail(const char *what, const char *found) {
    fprintf(stderr, "dpinfer-utility: %s: %s\n", what, found);
    return 1;
}

/* ---- Command line --------------------------------------------------------------------------- */

static bool parse_number(const char *text, double low, double high, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static bool parse_list(char *text, double low, double high, list *l) {
    l->n = 0;
    for (char *one = strtok(text, ","); one; one = strtok(NULL, ","))
        if (l->n == MAX_LIST || !parse_number(one, low, high, &l->of[l->n++]))
            return false;
    return l->n > 0;
}

static bool parse_variants(char *text, options *o) {
    o->n_variants = 0;
    for (char *one = strtok(text, ","); one; one = strtok(NULL, ","))
        if (o->n_variants == MAX_LIST || !variant_parse(one, &o->variants[o->n_variants++]))
            return false;
    return o->n_variants > 0;
}

static bool parse_option(int c, options *o) {
    double x = 0;
    bool good = true;
    maker_options *m = &o->make;
    switch (c) {
    case 'n': good = parse_number(optarg, 2, 1e6, &x); o->n_texts = (int32_t)x; break;
    case 'B': good = parse_list(optarg, 1, 4096, &o->batches); break;
    case 'e': good = parse_list(optarg, 1e-6, 1e6, &o->epsilons); break;
    case 'V': good = parse_variants(optarg, o); break;
    case 'N': o->baselines = false; break;
    case 'J': m->judge = optarg; break;
    case 'D': good = parse_number(optarg, 1e-300, 0.5, &m->delta); break;
    case 'T': good = parse_number(optarg, 1, 16384, &x); m->n_tokens = (int32_t)x; break;
    case 'k': good = parse_number(optarg, 1, 262144, &x); m->top_k = (int32_t)x; break;
    case 'u': good = parse_number(optarg, 0.01, 100, &m->tau); break;
    case 'S': good = parse_number(optarg, 0, 1e15, &x); m->seed = (uint64_t)x; break;
    case 't': good = parse_number(optarg, 0, 4096, &x); m->n_threads = (int32_t)x; break;
    case 'C': o->center = true; break;
    case 'o': o->prefix = optarg; break;
    default: return false;
    }
    if (!good)
        fail("not allowed (see --help)", optarg);
    return good;
}

static int parse(int argc, char **argv, options *o) {
    static const struct option longs[] = {
        {"variants", 1, NULL, 'V'}, {"no-baselines", 0, NULL, 'N'}, {"judge", 1, NULL, 'J'},
        {"delta", 1, NULL, 'D'},    {"tau", 1, NULL, 'u'},          {"seed", 1, NULL, 'S'},
        {"center", 0, NULL, 'C'},   {NULL, 0, NULL, 0}};
    *o = (options){.make = {.n_tokens = 264, .top_k = 100, .tau = 1, .delta = 1e-5, .seed = 1},
                   .batches = {{7, 15, 31}, 3}, .epsilons = {{1, 3, 5, 10}, 4},
                   .prefix = "utility", .n_texts = 64, .baselines = true};
    o->n_variants = variant_parse("zcdp", o->variants);
    for (int c; (c = getopt_long(argc, argv, "n:B:e:T:k:t:o:", longs, NULL)) != -1;)
        if (!parse_option(c, o))
            return 1;
    if (argc - optind != 3)
        return fail("allowed are MODEL, REFS and ATTRIBUTES", "another number of arguments");
    o->make.model = argv[optind];
    o->make.refs = argv[optind + 1];
    o->make.attributes = argv[optind + 2];
    if (TEXT_PRIVATE + o->n_variants * o->epsilons.n * o->batches.n > MAX_RESULTS)
        return fail("more settings than one report holds", "leave out variants, epsilons or B");
    for (int32_t i = 0; i < o->n_variants && o->center; i++)
        o->variants[i].options.center = 1;
    for (int32_t i = 0; i < o->batches.n; i++)
        if (o->batches.of[i] > o->make.max_ref)
            o->make.max_ref = (int32_t)o->batches.of[i];
    return 0;
}

/* ---- Settings ------------------------------------------------------------------------------- */

static int32_t list_settings(const options *o, setting *settings) {
    int32_t n = 0;
    for (int32_t kind = DOCUMENTS_PRIVATE; o->baselines && kind < TEXT_PRIVATE; kind++)
        settings[n++] = (setting){.kind = (setting_kind)kind};
    for (int32_t v = 0; v < o->n_variants; v++)
        for (int32_t e = 0; e < o->epsilons.n; e++)
            for (int32_t b = 0; b < o->batches.n; b++)
                settings[n++] = (setting){TEXT_PRIVATE, &o->variants[v], (int32_t)o->batches.of[b],
                                          o->epsilons.of[e]};
    return n;
}

static int write_texts(FILE *f, const char *name, const sample *samples, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        json_t *object = json_pack("{s:s, s:s%, s:b, s:b}", "setting", name, "text",
                                   samples[i].text, strlen(samples[i].text), "well_formed",
                                   samples[i].reading.well_formed, "ended", samples[i].ended);
        int bad = !object || json_dumpf(object, f, JSON_COMPACT) != 0 || fputc('\n', f) == EOF;
        json_decref(object);
        if (bad)
            return fail("cannot write the texts", strerror(errno));
    }
    return fflush(f) ? fail("cannot write the texts", strerror(errno)) : 0;
}

static int run_setting(const options *o, maker *m, const target *t, const setting *s, FILE *texts,
                       result *r) {
    sample *samples = calloc((size_t)o->n_texts, sizeof *samples);
    char name[NAME_BYTES];
    if (!samples)
        return fail("out of memory", "samples");
    setting_name(s, name, sizeof name);
    int code = maker_make(m, s, samples, o->n_texts) == 0 ? 0 : 1;
    if (code == 0)
        code = write_texts(texts, name, samples, o->n_texts);
    if (code == 0) {
        measure(s, samples, o->n_texts, t, r);
        fprintf(stderr, "%-42s TV %.3f +- %.3f\n", name, r->of[0].value, r->of[0].half);
    }
    samples_free(samples, o->n_texts);
    free(samples);
    return code;
}

static int run(const options *o, maker *m, FILE *texts) {
    static setting settings[MAX_RESULTS];
    static result results[MAX_RESULTS];
    static target t;
    int32_t n_refs, n = list_settings(o, settings);
    t.d = maker_domain(m);
    t.domain = corpus_domain_find(t.d->name);
    t.refs = maker_references(m, &n_refs);
    law_of_private(t.d, t.law);
    law_of_references(t.d, t.refs, n_refs, t.reference_law);
    for (int32_t i = 0; i < n; i++)
        if (run_setting(o, m, &t, &settings[i], texts, &results[i]) != 0 ||
            report_write(o->prefix, &o->make, &t, results, i + 1) != 0)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    options o;
    char path[4096];
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(argc < 2 ? stderr : stdout);
        return argc < 2;
    }
    if (parse(argc, argv, &o) != 0)
        return 1;
    maker *m = maker_open(&o.make);
    if (!m)
        return 1;
    snprintf(path, sizeof path, "%s.jsonl", o.prefix);
    FILE *texts = fopen(path, "w");
    int code = texts ? run(&o, m, texts) : fail(path, strerror(errno));
    if (texts && fclose(texts) && code == 0)
        code = fail(path, strerror(errno));
    maker_close(m);
    return code;
}
