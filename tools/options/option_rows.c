/* option_rows.c - what the rows of option_table.h say, with what the library says of methods. */
#include <stdio.h>
#include <string.h>

#include "dpinfer/mechanism.h"
#include "tools/options/option_table.h"

const char *option_name(option_id id) { return option_rows[id].name; }

option_file option_file_of(const struct command *cmd, option_id id) {
    static const option_id written[] = {OPT_OUTPUT, OPT_REPORT, OPT_AUDIT_REPORT, OPT_PAYERS,
                                        OPT_ADAPTER, OPT_MERGE};
    const char *arg = option_rows[id].arg ? option_rows[id].arg : "";
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (id == written[i])
            return option_rows[id].commands & cmd->bit ? FILE_WRITTEN : FILE_NONE;
    if (strcmp(arg, "DIR") == 0)
        return FILE_OWN;
    return strcmp(arg, "FILE") == 0 || strcmp(arg, "KEY") == 0 ? FILE_READ : FILE_NONE;
}

const char *option_parameter(option_id id) { return option_rows[id].parameter; }

/* ---- What the library says ------------------------------------------------------------------ */

static void add_name(char *list, size_t size, const char *between, const char *name) {
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n > 0 ? between : "", name);
}

/* Type and range of a parameter. */
static void describe(const dpi_parameter *p, option_spec *spec) {
    static const option_type types[] = {
        [DPI_PARAMETER_INT] = OPT_INT,
        [DPI_PARAMETER_REAL] = OPT_DOUBLE,
        [DPI_PARAMETER_FLAG] = OPT_FLAG,
        [DPI_PARAMETER_CHOICE] = OPT_ENUM,
        [DPI_PARAMETER_TEXT] = OPT_STRING,
    };
    spec->type = types[p->type];
    spec->min = p->min;
    spec->max = p->max;
    spec->open = p->min_open;
    spec->open_max = p->max_open;
    if (!spec->zero)
        spec->zero = p->zero;
}

static int32_t default_method(void) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    return o.method;
}

/* Methods in the order in which their options are told: the default one first. */
static int32_t method_at(int32_t i) {
    const int32_t first = default_method();
    return i == 0 ? first : i <= first ? i - 1 : i;
}

/* The parameter that a row names, of whichever method has it. */
static const dpi_parameter *find_parameter(const char *name) {
    const dpi_parameter *p = NULL;
    for (int32_t i = 0; i < dpi_method_count() && !p; i++)
        p = dpi_method_parameter_find(method_at(i), name);
    return p;
}

static bool has_row(const char *parameter) {
    for (int id = 0; id < N_OPTIONS; id++)
        if (option_rows[id].parameter && strcmp(option_rows[id].parameter, parameter) == 0)
            return true;
    return false;
}

/* The row of own options with this name in these commands, a new one if there is none; NULL: no
 * room. */
static option_spec *own_row(option_table *t, const char *name, int commands) {
    for (int i = N_OPTIONS; i < t->n; i++)
        if (t->v[i].commands == commands && strcmp(t->v[i].name, name) == 0)
            return &t->v[i];
    if (t->n == N_OPTIONS + MAX_METHOD_OPTIONS)
        return NULL;
    t->v[t->n] = (option_spec){.name = name, .type = OPT_STRING, .commands = commands,
                               .arg = "X", .group = GROUP_EXPERT, .is_hidden = true};
    return &t->v[t->n++];
}

static void fill_own(option_spec *row, const dpi_parameter *p) {
    if (!row || !row->is_hidden)
        return;
    describe(p, row);
    row->own = p;
    row->is_hidden = false;
    row->arg = p->type == DPI_PARAMETER_FLAG   ? NULL
               : p->type == DPI_PARAMETER_TEXT ? "TEXT"
               : p->type == DPI_PARAMETER_INT  ? "N"
                                               : "X";
    row->help = p->help;
}

/* What a method takes and no row has. Values are read when the method is known. */
static void add_own(option_table *t, const dpi_method_info *m, const dpi_parameter *p) {
    option_spec *row = own_row(t, p->option, CMD_RUN | CMD_PLAN);
    fill_own(row, p);
    if (row && !dpi_method_parameter_find(default_method(), p->name) && m->max_ref > 0)
        add_name(row->methods, sizeof row->methods, ", ", m->name);
    if (row && m->id == default_method())
        row->group = GROUP_OUTPUT;
    if (p->old_option)
        own_row(t, p->old_option, CMD_RUN | CMD_PLAN);
}

/* What the statistics take, with the names of those that have it. */
static void add_statistics(option_table *t) {
    const dpi_parameter *p;
    dpi_mechanism_info m;
    for (int32_t id = 0; id < dpi_mechanism_count(); id++) {
        dpi_mechanism_info_get(id, &m);
        for (int32_t k = 0; m.is_statistic && (p = dpi_mechanism_parameter_get(id, k)); k++) {
            option_spec *row = own_row(t, p->option, CMD_STATISTIC);
            fill_own(row, p);
            if (row)
                add_name(row->methods, sizeof row->methods, ", ", m.name);
        }
    }
}

void option_table_make(option_table *t) {
    *t = (option_table){.n = N_OPTIONS};
    memcpy(t->v, option_rows, sizeof option_rows);
    for (int id = 0; id < N_OPTIONS; id++) {
        const char *name = option_rows[id].parameter;
        const dpi_parameter *p = name ? find_parameter(name) : NULL;
        if (p)
            describe(p, &t->v[id]);
        t->v[id].own = p;
    }
    for (int32_t i = 0; i < dpi_method_count(); i++) {
        const dpi_method_info *m = dpi_method_get(method_at(i));
        const dpi_parameter *p;
        for (int32_t k = 0; (p = dpi_method_parameter_get(m->id, k)) != NULL; k++)
            if (!has_row(p->name) && strcmp(p->name, "n_vocab") != 0) /* the model's */
                add_own(t, m, p);
        m = dpi_method_get(i); /* choices in the order of their ids */
        if (m->max_ref > 0) {
            add_name(t->private_methods, sizeof t->private_methods, "|", m->name);
            add_name(t->method_help, sizeof t->method_help, "; ", m->name);
            add_name(t->method_help, sizeof t->method_help, ": ", m->help);
        }
        if (!m->needs_acknowledgement)
            add_name(t->bench_methods, sizeof t->bench_methods, "|", m->name);
    }
    add_statistics(t);
    t->v[OPT_METHOD].choices = t->private_methods;
    t->v[OPT_METHOD].help = t->method_help;
    t->v[OPT_LIST_METHOD].choices = t->bench_methods;
}

void option_range(const option_spec *o, char *text, size_t size) {
    int n;
    text[0] = '\0';
    if (o->own && !o->zero) {
        dpi_parameter_range(o->own, text, size);
        return;
    }
    if (o->choices)
        snprintf(text, size, "%s", o->choices);
    if (o->type != OPT_INT && o->type != OPT_DOUBLE)
        return;
    n = o->type == OPT_INT ? snprintf(text, size, "%.0f..%.0f", o->min, o->max)
        : o->open ? snprintf(text, size, "%g < x %s %g", o->min, o->open_max ? "<" : "<=", o->max)
                  : snprintf(text, size, "%g..%g", o->min, o->max);
    if (o->zero && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", or 0 (%s)", o->zero);
}
