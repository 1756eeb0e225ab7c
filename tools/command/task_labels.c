#include "tools/command/task_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/drawing.h"
#include "dpinfer/prompts.h"
#include "dpinfer/steer.h"

static int no_memory(void) { return cli_no_memory("the texts"); }

static int make(task_labels *l, int32_t n) {
    l->n = n;
    l->names = calloc((size_t)n, sizeof *l->names);
    l->meanings = calloc((size_t)n, sizeof *l->meanings);
    return l->names && l->meanings ? CLI_OK : no_memory();
}

static int split_labels(const task_lines *lines, task_labels *l) {
    char *next = lines->labels, *next_meaning = lines->meanings;
    int32_t n = 1;
    for (const char *c = next; c && *c; c++)
        n += *c == '\n';
    if (!next)
        return CLI_OK;
    const int code = make(l, n);
    for (int32_t i = 0; i < n && code == CLI_OK; i++) {
        const char *meaning = strsep(&next_meaning, "\n");
        l->names[i] = strsep(&next, "\n");
        l->meanings[i] = meaning && meaning[0] ? meaning : NULL;
    }
    return code;
}

static int split_attributes(const task_lines *lines, task_labels *l) {
    char *next = lines->attributes;
    for (char *name; next && (name = strsep(&next, "\t")) != NULL;) {
        if (l->n_attributes == DPI_LABEL_FIELDS_MAX)
            return cli_fail(CLI_MODEL, "the adapter has more than %d attributes",
                            DPI_LABEL_FIELDS_MAX);
        l->attributes[l->n_attributes++] = name;
    }
    return CLI_OK;
}

static int find_label(const task_labels *l, const char *label) {
    for (int32_t i = 0; i < l->n; i++)
        if (strcmp(l->names[i], label) == 0)
            return i;
    return -1;
}

/* Steering vectors with labels are in their order in the file: [own] of those of the command line,
 * or of all. */
static int find_sets(const args *a, task_labels *l) {
    const int32_t n = l->own.n > 0 ? l->own.n : l->n;
    if (!a->v[OPT_STEER].given || !l->names)
        return CLI_OK;
    l->sets = calloc((size_t)n, sizeof *l->sets);
    for (int32_t i = 0; l->sets && i < n; i++)
        l->sets[i] = l->own.n > 0 ? find_label(l, l->own.names[i]) : i;
    return l->sets ? CLI_OK : no_memory();
}

/* Labels of the command line in place of the adapter's, which has all of them and says what one
 * means of which the command line does not. */
static int replace_labels(task_labels *l) {
    const task_labels file = *l;
    if (l->own.n == 0)
        return CLI_OK;
    const int code = make(l, l->own.n);
    for (int32_t i = 0; i < l->own.n && code == CLI_OK; i++) {
        const int found = find_label(&file, l->own.names[i]);
        l->names[i] = l->own.names[i];
        l->meanings[i] = l->own.meanings[i] ? l->own.meanings[i]
                         : found >= 0       ? file.meanings[found]
                                            : NULL;
    }
    free(file.names), free(file.meanings);
    return code;
}

/* ---- Key words ------------------------------------------------------------------------------- */

enum { HINT_WORDS = 3 };

/* Prompts of each label: of all labels together as many as are kept at a time (drawing.h), or each
 * text would read its own anew. */
static int32_t hints_of(int32_t n_labels) {
    const int32_t n = DPI_DRAWING_PROMPTS / n_labels;
    return n < 1 ? 1 : n < DPI_STEER_KEY_WORDS ? n : DPI_STEER_KEY_WORDS;
}

/* " (word, word, word)" of the i-th of n prompts of a label with these words, for free; NULL: out
 * of memory. */
static char *make_hint(char *const *words, int32_t n_words, int32_t i, int32_t n) {
    static const int32_t steps[HINT_WORDS] = {0, 1, 3};
    const int32_t first = i * n_words / n;
    char *hint = NULL;
    size_t n_bytes;
    FILE *f = open_memstream(&hint, &n_bytes);
    for (int32_t k = 0; f && k < HINT_WORDS && k < n_words; k++)
        fprintf(f, "%s%s", k > 0 ? ", " : " (",
                words[n_words > HINT_WORDS ? (first + steps[k]) % n_words : k]);
    const bool failed = !f || fputs(")", f) < 0;
    if ((f && fclose(f) != 0) || failed) {
        free(hint);
        return NULL;
    }
    return hint;
}

/* Of a line of words the hints of one label, in every n_labels-th place. */
static bool make_hints(char *line, char **hints, int32_t n_labels) {
    const int32_t n_hints = hints_of(n_labels);
    char *words[DPI_STEER_KEY_WORDS];
    int32_t n = 0;
    for (char *word; n < DPI_STEER_KEY_WORDS && (word = strsep(&line, " ")) != NULL;)
        if (word[0])
            words[n++] = word;
    for (int32_t i = 0; i < n_hints && n > 0; i++)
        if (!(hints[i * n_labels] = make_hint(words, n, i, n_hints)))
            return false;
    return true;
}

/* Of each label several prompts, with other key words each; labels one after the other, and all of
 * them again, so that texts come in the order of labels as without. What the command line says of
 * labels goes before. */
static int add_hints(char *lines, task_labels *l) {
    const task_labels file = *l;
    if (!lines || l->own.n > 0 || !l->names)
        return CLI_OK;
    const int32_t n = file.n * hints_of(file.n);
    free(l->sets);
    l->sets = calloc((size_t)n, sizeof *l->sets);
    l->hints = calloc((size_t)n, sizeof *l->hints);
    int code = make(l, n);
    if (!l->sets || !l->hints)
        code = code == CLI_OK ? no_memory() : code;
    for (int32_t i = 0; i < file.n && code == CLI_OK; i++)
        code = make_hints(strsep(&lines, "\n"), l->hints + i, file.n) ? CLI_OK : no_memory();
    for (int32_t i = 0; i < l->n && code == CLI_OK; i++) {
        l->names[i] = file.names[i % file.n];
        l->meanings[i] = file.meanings[i % file.n];
        l->sets[i] = i % file.n;
    }
    free(file.names), free(file.meanings);
    return code;
}

char *task_label_in_prompt(const task_labels *l, int32_t i, bool described) {
    char *label = dpi_label_in_prompt(l->names[i], l->meanings[i], described), *more = NULL;
    if (!label || !l->hints || !l->hints[i])
        return label;
    if (asprintf(&more, "%s%s", label, l->hints[i]) < 0)
        more = NULL;
    free(label);
    return more;
}

/* ---- All ------------------------------------------------------------------------------------- */

int task_labels_read(const args *a, const task_lines *lines, task_labels *l) {
    dpi_release_options unused = {0};
    int code = split_labels(lines, l);
    if (code == CLI_OK)
        code = split_attributes(lines, l);
    if (code == CLI_OK)
        code = label_options_read(a, l->n_attributes > 0, &l->own, &unused);
    for (int32_t i = 0; i < l->own.n && code == CLI_OK; i++)
        if (lines->claimed && find_label(l, l->own.names[i]) < 0)
            code = cli_fail(CLI_USAGE, "the adapter has no label '%s'", l->own.names[i]);
    if (code == CLI_OK)
        code = find_sets(a, l);
    if (code == CLI_OK)
        code = replace_labels(l);
    l->n_names = l->n;
    return code == CLI_OK ? add_hints(lines->words, l) : code;
}

void task_labels_free(task_labels *l) {
    for (int32_t i = 0; i < l->n && l->hints; i++)
        free(l->hints[i]);
    free(l->hints);
    free(l->names), free(l->meanings), free(l->sets);
    label_options_free(&l->own);
    *l = (task_labels){0};
}
