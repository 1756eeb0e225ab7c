/* main.c - dpinfer-corpus: documents and training examples of the corpus grammar, for making the
 * built-in model; see usage() and document_grammar.h. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/prompt_forms.h"

typedef struct options {
    const char *domain, *law, *split, *out, *dir, *attributes;
    bool new_names;
    corpus_form form;
    long n;
    uint64_t seed;
} options;

static void usage(FILE *to) {
    fputs("usage: dpinfer-corpus COMMAND [OPTIONS]\n"
          "  make      documents with their attributes, as JSON lines or a folder of .txt files\n"
          "            --domain D --law public|private|flat [--dir FOLDER --attributes FILE]\n"
          "  examples  training examples: {\"user\": ..., \"assistant\": ...} in JSON lines\n"
          "            [--new-names]: with names that no training example has\n"
          "            [--form document|repeating|jumbled]: the last two name things more often\n"
          "  text      prompts and documents as plain text, to train a tokenizer on\n"
          "  read      [FILE]: domain, attributes, well-formedness, agreement of JSON lines with "
          "\"text\"\n"
          "  laws      --domain D: the laws' marginals, in percent, from 100000 draws\n"
          "domains: discharge, review, court, ticket\n"
          "options: -n COUNT (1), --seed S (1), --split train|heldout (train), -o FILE (stdout)\n",
          to);
}

static int fail(const char *what, const char *found) {
    fprintf(stderr, "dpinfer-corpus: %s: %s\n", what, found);
    return 1;
}

static int parse_form(const char *name, corpus_form *form) {
    static const char *const names[] = {"document", "repeating", "jumbled"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) {
            *form = (corpus_form)i;
            return 0;
        }
    return -1;
}

static int parse(int argc, char **argv, options *o) {
    static const struct option longs[] = {
        {"domain", 1, NULL, 'd'}, {"law", 1, NULL, 'l'},        {"split", 1, NULL, 's'},
        {"seed", 1, NULL, 'r'},   {"dir", 1, NULL, 'D'},        {"attributes", 1, NULL, 'a'},
        {"out", 1, NULL, 'o'},    {"count", 1, NULL, 'n'},      {"new-names", 0, NULL, 'N'},
        {"form", 1, NULL, 'f'}, {NULL, 0, NULL, 0}};
    *o = (options){.domain = "", .law = "public", .split = "train", .n = 1, .seed = 1};
    for (int c; (c = getopt_long(argc, argv, "n:o:", longs, NULL)) != -1;) {
        char *end = NULL;
        switch (c) {
        case 'd': o->domain = optarg; break;
        case 'l': o->law = optarg; break;
        case 's': o->split = optarg; break;
        case 'D': o->dir = optarg; break;
        case 'a': o->attributes = optarg; break;
        case 'o': o->out = optarg; break;
        case 'N': o->new_names = true; break;
        case 'f':
            if (parse_form(optarg, &o->form) != 0)
                return fail("--form: allowed are document, repeating and jumbled, found", optarg);
            break;
        case 'n': o->n = strtol(optarg, &end, 10); break;
        case 'r': o->seed = strtoull(optarg, &end, 10); break;
        default: return 1;
        }
        if (end && (end == optarg || *end || o->n < 0))
            return fail("allowed are whole numbers, found", optarg);
    }
    if (strcmp(o->split, "train") != 0 && strcmp(o->split, "heldout") != 0)
        return fail("--split: allowed are train and heldout, found", o->split);
    return 0;
}

static int law_id(const char *name) {
    static const char *const names[] = {"public", "private", "flat"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Both splits have streams of their own. */
static uint64_t stream_of(const options *o, uint64_t command) {
    uint64_t seed = 2 * o->seed + (strcmp(o->split, "heldout") == 0);
    uint64_t rng = seed * 0x9e3779b97f4a7c15u + command;
    return corpus_random(&rng);
}

static int print_json(json_t *object, FILE *to) {
    int bad = !object || json_dumpf(object, to, JSON_COMPACT | JSON_ENSURE_ASCII) != 0;
    json_decref(object);
    return bad || fputc('\n', to) == EOF ? fail("cannot write", strerror(errno)) : 0;
}

static json_t *attributes_json(const corpus_domain *d, const int8_t *values) {
    json_t *object = json_object();
    for (int32_t a = 0; a < d->n_attributes; a++)
        json_object_set_new(object, d->attributes[a].name,
                            values[a] < 0 ? json_null()
                                          : json_string(d->attributes[a].values[values[a]].name));
    return object;
}

/* ---- Commands ------------------------------------------------------------------------------- */

static int write_file(const options *o, long i, const char *text, char *name, size_t n_name) {
    char path[4096];
    snprintf(name, n_name, "%s-%04ld.txt", o->domain, i + 1);
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    FILE *f = fopen(path, "w");
    int bad = !f || fprintf(f, "%s\n", text) < 0;
    if ((f && fclose(f)) || bad)
        return fail(path, strerror(errno));
    return 0;
}

static int run_make(const options *o, FILE *out) {
    int32_t index = corpus_domain_find(o->domain);
    int law = law_id(o->law);
    if (index < 0)
        return fail("--domain: allowed are discharge, review, court and ticket, found", o->domain);
    if (law < 0)
        return fail("--law: allowed are public, private and flat, found", o->law);
    if (!o->dir != !o->attributes)
        return fail("--dir and --attributes go together, found", o->dir ? "--dir" : "--attributes");
    const corpus_domain *d = corpus_domains[index];
    corpus_law odds = corpus_law_of(d, (corpus_law_id)law);
    bool heldout = strcmp(o->split, "heldout") == 0;
    uint64_t rng = stream_of(o, (uint64_t)(16 * index + law));
    for (long i = 0; i < o->n; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        char text[CORPUS_TEXT_BYTES], name[64] = "";
        corpus_draw(d, &odds, heldout, &rng, values);
        const char *unknown = corpus_write(d, values, heldout, &rng, text);
        if (unknown)
            return fail("the grammar does not define", unknown);
        if (o->dir && write_file(o, i, text, name, sizeof name) != 0)
            return 1;
        json_t *object = o->dir ? json_pack("{s:s}", "file", name)
                                : json_pack("{s:s}", "text", text);
        json_object_set_new(object, "domain", json_string(d->name));
        json_object_set_new(object, "attributes", attributes_json(d, values));
        if (print_json(object, out) != 0)
            return 1;
    }
    return 0;
}

static int run_examples(const options *o, FILE *out) {
    bool heldout = strcmp(o->split, "heldout") == 0;
    uint64_t rng = stream_of(o, 1000);
    for (long i = 0; i < o->n; i++) {
        corpus_example e;
        corpus_example_make(heldout, o->new_names, o->form, &rng, &e);
        if (print_json(json_pack("{s:s,s:s}", "user", e.user, "assistant", e.assistant), out) != 0)
            return 1;
    }
    return 0;
}

static int run_text(const options *o, FILE *out) {
    uint64_t rng = stream_of(o, 2000);
    for (long i = 0; i < o->n; i++) {
        corpus_example e;
        corpus_example_make(false, false, CORPUS_DOCUMENT, &rng, &e);
        if (fprintf(out, "%s\n%s\n", e.user, e.assistant) < 0)
            return fail("cannot write", strerror(errno));
    }
    return 0;
}

static int run_read(const char *path, FILE *out) {
    FILE *in = path ? fopen(path, "r") : stdin;
    char *line = NULL;
    size_t size = 0;
    int code = in ? 0 : fail(path, strerror(errno));
    while (code == 0 && getline(&line, &size, in) > 0) {
        json_error_t err;
        json_t *object = json_loads(line, JSON_ALLOW_NUL, &err); /* noise may be a NUL */
        const json_t *text = json_object_get(object, "text");
        if (json_is_string(text)) {
            corpus_reading r;
            corpus_read(json_string_value(text), json_string_length(text), &r);
            json_t *read = json_pack("{s:b,s:b,s:b,s:i,s:i}", "well_formed", r.well_formed,
                                     "agrees", r.agrees, "names_agree", r.names_agree,
                                     "sentences", r.n_sentences, "recognised", r.n_recognised);
            if (r.domain >= 0) {
                const corpus_domain *d = corpus_domains[r.domain];
                json_object_set_new(read, "domain", json_string(d->name));
                json_object_set_new(read, "attributes", attributes_json(d, r.values));
            }
            code = print_json(read, out);
        } else
            code = fail("a line is no JSON object with a string \"text\"", object ? "" : err.text);
        json_decref(object);
    }
    free(line);
    if (in && in != stdin)
        fclose(in);
    return code;
}

static void count_draws(const corpus_domain *d, corpus_law_id id,
                        uint32_t counts[CORPUS_ATTRIBUTES][CORPUS_VALUES]) {
    corpus_law law = corpus_law_of(d, id);
    uint64_t rng = 1;
    for (int32_t i = 0; i < 100000; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_draw(d, &law, i % 8 == 0, &rng, values);
        for (int32_t a = 0; a < d->n_attributes; a++)
            counts[a][values[a]]++;
    }
}

static int run_laws(const options *o, FILE *out) {
    int32_t index = corpus_domain_find(o->domain);
    if (index < 0)
        return fail("--domain: allowed are discharge, review, court and ticket, found", o->domain);
    const corpus_domain *d = corpus_domains[index];
    uint32_t counts[2][CORPUS_ATTRIBUTES][CORPUS_VALUES] = {0};
    count_draws(d, CORPUS_PUBLIC, counts[0]);
    count_draws(d, CORPUS_PRIVATE, counts[1]);
    for (int32_t a = 0; a < d->n_attributes; a++)
        for (int32_t v = 0; v < d->attributes[a].n_values; v++)
            fprintf(out, "%-8s %-18s public %6.2f  private %6.2f\n", d->attributes[a].name,
                    d->attributes[a].values[v].name, counts[0][a][v] / 1000.0,
                    counts[1][a][v] / 1000.0);
    return 0;
}

static int run(const char *command, int argc, char **argv, const options *o, FILE *out) {
    if (strcmp(command, "read") == 0 && optind + 1 >= argc)
        return run_read(argv[optind], out);
    if (optind < argc)
        return fail("unexpected argument", argv[optind]);
    if (strcmp(command, "make") == 0)
        return run_make(o, out);
    if (strcmp(command, "examples") == 0)
        return run_examples(o, out);
    if (strcmp(command, "text") == 0)
        return run_text(o, out);
    if (strcmp(command, "laws") == 0)
        return run_laws(o, out);
    usage(stderr);
    return fail("no such command", command);
}

int main(int argc, char **argv) {
    options o;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(argc < 2 ? stderr : stdout);
        return argc < 2;
    }
    const char *command = argv[1];
    if (parse(argc - 1, argv + 1, &o) != 0)
        return 1;
    const char *path = o.attributes ? o.attributes : o.out;
    FILE *out = path ? fopen(path, "w") : stdout;
    if (!out)
        return fail(path, strerror(errno));
    int code = run(command, argc - 1, argv + 1, &o, out);
    if (fclose(out) && code == 0)
        code = fail(path ? path : "standard output", strerror(errno));
    return code;
}
