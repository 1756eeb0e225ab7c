/* label_options.c - see label_options.h. A file of labels has a label on each line; with
 * --num-per-label the number of its texts and white space stand before it, as 'uniq -c' prints. A
 * TAB and what the label means may stand behind it; with attributes TABs are between their values.
 */
#include "tools/options/label_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"

enum { FILE_BYTES_MAX = 1 << 20 };

/* The number at the begin of a line, which it leaves. -1: there is none, or no label after it. */
static int32_t read_number(char **line) {
    char *end;
    errno = 0;
    const long n = strtol(*line, &end, 10);
    const size_t n_space = strspn(end, " \t");
    if (end == *line || errno != 0 || n < 0 || n > DPI_LABEL_TEXTS_MAX || n_space == 0)
        return -1;
    *line = end + n_space;
    return (int32_t)n;
}

/* What stands behind the TAB of a line, which ends there. NULL: there is none. */
static char *cut_meaning(char *line) {
    char *tab = strchr(line, '\t');
    if (!tab)
        return NULL;
    *tab = '\0';
    return tab + 1;
}

static int split(const char *name, label_input *in, bool numbers, bool meanings) {
    char *next = in->content;
    int32_t at = 0;
    for (char *line; (line = strsep(&next, "\n")) != NULL;) {
        at++;
        if (!line[strspn(line, " \t")])
            continue;
        const int32_t n = numbers ? read_number(&line) : 0;
        if (n < 0 || !line[0])
            return cli_fail(CLI_USAGE, "%s: line %d is not a number of texts (0..%d) and a label",
                            name, at, DPI_LABEL_TEXTS_MAX);
        if (in->n == DPI_LABELS_MAX)
            return cli_fail(CLI_USAGE, "%s: found more than %d labels", name, DPI_LABELS_MAX);
        const char *meaning = meanings ? cut_meaning(line) : NULL;
        if (meaning && !meaning[strspn(meaning, " \t")])
            return cli_fail(CLI_USAGE, "%s: line %d has a TAB and no description behind it", name,
                            at);
        if (numbers)
            in->texts[in->n] = n;
        in->meanings[in->n] = meaning;
        in->names[in->n++] = line;
    }
    return in->n > 0 ? CLI_OK : cli_fail(CLI_USAGE, "%s holds no label", name);
}

static int load(const char *option, const char *path, bool numbers, bool meanings,
                label_input *in) {
    size_t n_bytes;
    const int code = cli_read_text(option, path, FILE_BYTES_MAX, &in->content, &n_bytes);
    if (code != CLI_OK)
        return code;
    in->names = calloc(DPI_LABELS_MAX, sizeof *in->names);
    in->meanings = calloc(DPI_LABELS_MAX, sizeof *in->meanings);
    in->texts = numbers ? calloc(DPI_LABELS_MAX, sizeof *in->texts) : NULL;
    if (!in->names || !in->meanings || (numbers && !in->texts))
        return cli_no_memory("the labels");
    return split(path, in, numbers, meanings);
}

int label_options_read(const args *a, bool attributes, label_input *in, dpi_release_options *o) {
    const option_value *names = &a->v[OPT_LABEL_NAMES], *numbers = &a->v[OPT_NUM_PER_LABEL];
    *in = (label_input){0};
    o->labels = a->v[OPT_LABELS].given ? (int32_t)a->v[OPT_LABELS].i + DPI_LABELS_PUBLIC : 0;
    o->histogram_rho = a->v[OPT_HISTOGRAM_RHO].given ? a->v[OPT_HISTOGRAM_RHO].d : 0;
    o->n_clusters = a->v[OPT_CLUSTER].given ? (int32_t)a->v[OPT_CLUSTER].i : 0;
    if (names->given && numbers->given)
        return cli_fail(CLI_USAGE, "--label-names and --num-per-label: allowed is one of them");
    if (!names->given && !numbers->given)
        return CLI_OK;
    const int code = load(numbers->given ? "num-per-label" : "label-names",
                          numbers->given ? numbers->s : names->s, numbers->given,
                          !attributes, in);
    o->n_labels = in->n;
    o->label_names = in->names;
    o->label_meanings = in->meanings;
    o->label_texts = in->texts;
    return code;
}

void label_options_free(label_input *in) {
    dpi_private_free(in->content);
    free(in->names);
    free(in->meanings);
    free(in->texts);
    *in = (label_input){0};
}
