/* options.c - the parser of command lines, on one table of options. */
#include "tools/options/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/number.h"
#include "tools/options/nearest.h"
#include "tools/options/option_table.h"

/* ---- Values --------------------------------------------------------------------------------- */

static bool in_range(const option_spec *o, double x) {
    if (o->zero && x == 0)
        return true;
    return (o->open ? x > o->min : x >= o->min) && (o->open_max ? x < o->max : x <= o->max);
}

static bool parse_number(const option_spec *o, const char *text, option_value *value) {
    if (isinf(o->max) && strcmp(text, "inf") == 0) {
        value->d = o->max;
        return true;
    }
    const char *rest = number_read(text, &value->d);
    if (!rest || *rest != '\0')
        return false;
    if (o->type == OPT_INT) {
        char *end;
        errno = 0;
        value->i = strtoll(text, &end, 10);
        if (*end != '\0' || errno != 0)
            return false;
        value->d = (double)value->i;
    }
    return in_range(o, value->d);
}

static bool parse_choice(const option_spec *o, const char *text, option_value *value) {
    size_t n = strlen(text);
    for (int32_t i = 0; o->own && o->own->choices[i]; i++)
        if (strcmp(o->own->choices[i], text) == 0) {
            value->i = i;
            value->s = text;
            return true;
        }
    if (o->own)
        return false;
    int64_t index = 0;
    for (const char *c = o->choices; n > 0; c++, index++) {
        size_t n_choice = strcspn(c, "|");
        if (n_choice == n && memcmp(c, text, n) == 0) {
            value->i = index;
            value->s = text;
            return true;
        }
        c += n_choice;
        if (*c == '\0')
            break;
    }
    return false;
}

static int parse_value(const option_spec *o, const char *text, const char *source,
                       option_value *value) {
    char allowed[OPTION_RANGE_BYTES];
    bool ok = true;
    if (o->type == OPT_FLAG) {
        value->i = 1;
    } else if (o->type == OPT_STRING) {
        value->s = text;
    } else {
        ok = o->type == OPT_ENUM ? parse_choice(o, text, value) : parse_number(o, text, value);
    }
    if (ok)
        return CLI_OK;
    option_range(o, allowed, sizeof allowed);
    return cli_fail(CLI_USAGE, "%s: found '%s', allowed %s", source, text, allowed);
}

int option_parse(option_id id, const char *source, const char *text, option_value *value) {
    return parse_value(&option_rows[id], text, source, value);
}

static int set_default(const option_spec *o, option_value *value) {
    *value = (option_value){0};
    return o->def ? parse_value(o, o->def, o->name, value) : CLI_OK;
}

/* ---- Options of methods --------------------------------------------------------------------- */

/* The parameter of a method that an option means, by its name or an older one; NULL: none. */
static const dpi_parameter *find_own(int32_t method, const char *option) {
    const dpi_parameter *p, *old = NULL;
    for (int32_t i = 0; (p = dpi_method_parameter_get(method, i)) != NULL; i++) {
        if (strcmp(p->option, option) == 0)
            return p;
        if (p->old_option && strcmp(p->old_option, option) == 0)
            old = p;
    }
    return old;
}

static int refuse_method(const char *option) {
    char methods[96] = "";
    for (int32_t id = 0; id < dpi_method_count(); id++)
        if (find_own(id, option)) {
            size_t n = strlen(methods);
            snprintf(methods + n, sizeof methods - n, "%s%s", n > 0 ? " or " : "",
                     dpi_method_get(id)->name);
        }
    return cli_fail(CLI_USAGE, "--%s is allowed only with --method %s", option, methods);
}

/* How often a parameter is given, by all of its names. */
static int count_given(const args *a, int32_t method, const char *name) {
    int n = 0;
    for (int i = 0; i < a->n_own; i++) {
        const dpi_parameter *p = find_own(method, a->own[i].option);
        n += p && strcmp(p->name, name) == 0;
    }
    return n;
}

/* Of two values, nobody could say which was meant. */
static int refuse_twice(const char *option) {
    return cli_fail(CLI_USAGE, "--%s is given more than once", option);
}

/* 0 is how a program says that an optional number is not given. A person who gives it means 0. */
static bool is_zero_for_none(const dpi_parameter *p, const char *text) {
    const bool is_number = p->type == DPI_PARAMETER_INT || p->type == DPI_PARAMETER_REAL;
    return is_number && p->is_optional && !p->zero && strtod(text, NULL) == 0;
}

static int set_own(const args *a, const own_option *given, dpi_sampler_options *options) {
    const dpi_parameter *p = find_own(options->method, given->option);
    char range[OPTION_RANGE_BYTES];
    if (!p)
        return refuse_method(given->option);
    if (dpi_parameter_parse(p, options, given->text, NULL) != DPI_STATUS_OK ||
        is_zero_for_none(p, given->text)) {
        dpi_parameter_range(p, range, sizeof range);
        return cli_fail(CLI_USAGE, "--%s: found '%s', allowed %s", given->option, given->text,
                        range);
    }
    if (p->type != DPI_PARAMETER_FLAG && count_given(a, options->method, p->name) > 1)
        return refuse_twice(p->option);
    if (p->needs && count_given(a, options->method, p->needs) == 0)
        return cli_fail(CLI_USAGE, "--%s needs --%s", p->option,
                        dpi_method_parameter_find(options->method, p->needs)->option);
    return CLI_OK;
}

dpi_model_options options_model(const args *a) {
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.use_mmap = !a->v[OPT_NO_MMAP].i;
    o.adapter = a->v[OPT_LORA].s;
    if (o.adapter)
        o.adapter_scale = (float)a->v[OPT_LORA_SCALE].d;
    o.control_vector = a->v[OPT_STEER].given ? a->v[OPT_STEER].s : a->v[OPT_CONTROL_VECTOR].s;
    if (o.control_vector && a->v[OPT_CONTROL_VECTOR_SCALE].given)
        o.control_vector_scale = (float)a->v[OPT_CONTROL_VECTOR_SCALE].d;
    return o;
}

int options_parameters(const args *a, dpi_sampler_options *options) {
    for (int id = 0; id < N_OPTIONS; id++) {
        const char *name = option_parameter((option_id)id);
        const dpi_parameter *p =
            name ? dpi_method_parameter_find(options->method, name) : NULL;
        const option_value *v = &a->v[id];
        dpi_error err;
        if (!p || (!v->given && !v->is_default))
            continue;
        const bool is_number = p->type == DPI_PARAMETER_INT || p->type == DPI_PARAMETER_REAL;
        if (dpi_parameter_set(p, options, is_number ? v->d : (double)v->i, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_USAGE, &err);
    }
    int code = CLI_OK;
    for (int i = 0; i < a->n_own && code == CLI_OK; i++)
        code = set_own(a, &a->own[i], options);
    return code;
}

/* ---- The parser ----------------------------------------------------------------------------- */

typedef struct parser {
    option_table table;
    const command *cmd;
    char **argv;
    int argc, at; /* the next word */
    args *a;
    bool help; /* -h was there: nothing else counts */
} parser;

static bool is_here(const parser *p, const option_spec *o) { return o->commands & p->cmd->bit; }

/* Names that may have been meant. */
static const char *name_at(const void *user, int i) {
    const parser *p = user;
    const option_spec *o = &p->table.v[i];
    return i == p->table.n ? NULL : option_is_shown(o, p->cmd) ? o->name : "";
}

/* What is wrong with a word that is no option, with what was probably meant. */
static int refuse_option(const parser *p, const char *word) {
    static const struct {
        const char *word, *hint; /* of llama.cpp */
    } others[] = {
        {"-p", "the prompt without a record is --public-prompt TEXT"},
        {"--prompt", "the prompt without a record is --public-prompt TEXT"},
        {"-f", "a file with the prompt without a record is --public-prompt-file FILE"},
        {"--file", "a file with the prompt without a record is --public-prompt-file FILE"},
        {"-s", "reproducible text, which is NOT PRIVATE, is --seed N"},
    };
    char hint[160] = "";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((p->cmd->bit & CMD_GROUPED) && strcmp(word, others[i].word) == 0)
            snprintf(hint, sizeof hint, ": %s", others[i].hint);
    const char *name = strncmp(word, "--", 2) == 0 ? nearest_name(word + 2, name_at, p) : NULL;
    if (name && !hint[0])
        snprintf(hint, sizeof hint, ": did you mean --%s?", name);
    return cli_fail(CLI_USAGE, "'%s' is not an option here%s; see 'dpinfer %s -h'", word, hint,
                    p->cmd->name);
}

/* An option was found; `text` is its value, NULL if it takes none. */
static int accept(parser *p, int id, const char *text) {
    const option_spec *o = &p->table.v[id];
    args *a = p->a;
    if (id == OPT_HELP)
        p->help = true;
    if (id >= N_OPTIONS) {
        if (a->n_own == MAX_OWN)
            return cli_fail(CLI_USAGE, "more than %d options of methods", MAX_OWN);
        a->own[a->n_own++] = (own_option){o->name, text ? text : "1"};
        return CLI_OK;
    }
    if (text && a->v[id].given && !o->is_list)
        return refuse_twice(o->name);
    char source[40];
    snprintf(source, sizeof source, "--%s", o->name);
    int code = parse_value(o, text, source, &a->v[id]);
    if (code != CLI_OK)
        return code;
    a->v[id].given = true;
    if (id == OPT_REPORT && a->n_reports == MAX_REPORTS)
        return cli_fail(CLI_USAGE, "--report: given more than %d times", MAX_REPORTS);
    if (id == OPT_REPORT)
        a->reports[a->n_reports++] = text;
    if (id == OPT_SERVED && a->n_served == MAX_SERVED)
        return cli_fail(CLI_USAGE, "--dataset: given more than %d times", MAX_SERVED);
    if (id == OPT_SERVED)
        a->served[a->n_served++] = text;
    if (o->is_list && a->n_listed == MAX_LISTED)
        return cli_fail(CLI_USAGE, "more than %d options that are lists", MAX_LISTED);
    if (o->is_list)
        a->listed[a->n_listed++] = (listed_option){(option_id)id, text};
    return CLI_OK;
}

/* The value of option `id`: what stands behind its name, or the next word. */
static int accept_with_value(parser *p, int id, const char *word, const char *attached) {
    const bool takes_value = p->table.v[id].arg != NULL;
    if (attached && !takes_value)
        return cli_fail(CLI_USAGE, "'%s' takes no value; see 'dpinfer %s -h'", word, p->cmd->name);
    if (!takes_value)
        return accept(p, id, NULL);
    if (!attached && p->at == p->argc)
        return cli_fail(CLI_USAGE, "'%s' needs a value; see 'dpinfer %s -h'", word, p->cmd->name);
    return accept(p, id, attached ? attached : p->argv[p->at++]);
}

/* --name, --name=value: in full, so that a word means the same when there are more options. */
static int parse_long(parser *p, const char *word) {
    const char *name = word + 2;
    const size_t n = strcspn(name, "=");
    for (int i = 0; i < p->table.n; i++) {
        const option_spec *o = &p->table.v[i];
        if (is_here(p, o) && strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return accept_with_value(p, i, word, name[n] ? name + n + 1 : NULL);
    }
    return refuse_option(p, word);
}

/* -q, -qn5, -n 5. */
static int parse_short(parser *p, const char *word) {
    int code = CLI_OK;
    for (const char *c = word + 1; *c && code == CLI_OK; c++) {
        const char one[] = {'-', *c, '\0'};
        int id = 0;
        while (id < p->table.n && !(p->table.v[id].short_name == *c && is_here(p, &p->table.v[id])))
            id++;
        if (id == p->table.n)
            return refuse_option(p, one);
        const bool takes_value = p->table.v[id].arg != NULL;
        code = accept_with_value(p, id, one, takes_value && c[1] ? c + 1 : NULL);
        if (takes_value)
            break;
    }
    return code;
}

static int parse_positional(parser *p, const char *word) {
    args *a = p->a;
    if (a->n_words == MAX_WORDS)
        return cli_fail(CLI_USAGE, "unexpected argument '%s'; see 'dpinfer %s -h'", word,
                        p->cmd->name);
    a->words[a->n_words++] = word;
    return CLI_OK;
}

static int parse_words(parser *p) {
    bool options_end = false;
    int code = CLI_OK;
    while (p->at < p->argc && code == CLI_OK && !p->help) {
        const char *word = p->argv[p->at++];
        if (options_end || word[0] != '-' || word[1] == '\0')
            code = parse_positional(p, word);
        else if (strcmp(word, "--") == 0)
            options_end = true;
        else
            code = word[1] == '-' ? parse_long(p, word) : parse_short(p, word);
    }
    return code;
}

/* MODEL and what follows it. */
static int place_words(const command *cmd, args *a) {
    int at = 0;
    a->model = a->v[OPT_MODEL].s;
    if (cmd->takes_model && !a->model && at < a->n_words)
        a->model = a->words[at++];
    if (cmd->takes_model && !a->model && !a->v[OPT_SUGGEST].i)
        return cli_fail(CLI_USAGE, "no MODEL given; see 'dpinfer %s -h'", cmd->name);
    a->positional = &a->words[at];
    while (at < a->n_words && a->n_positional < cmd->max_positional)
        at++, a->n_positional++;
    if (at < a->n_words)
        return cli_fail(CLI_USAGE, "unexpected argument '%s'; see 'dpinfer %s -h'", a->words[at],
                        cmd->name);
    return CLI_OK;
}

int options_parse(const command *cmd, int argc, char **argv, args *a, bool *done) {
    parser p = {.cmd = cmd, .argc = argc, .argv = argv, .at = 1, .a = a};
    option_table_make(&p.table);
    *done = false;
    *a = (args){.command = cmd, .argc = argc, .argv = argv};
    int code = CLI_OK;
    for (int id = 0; id < N_OPTIONS && code == CLI_OK; id++) {
        code = set_default(&p.table.v[id], &a->v[id]);
        a->v[id].is_default = p.table.v[id].def != NULL;
    }
    if (code == CLI_OK)
        code = parse_words(&p);
    if (code == CLI_OK && p.help) {
        option_help(&p.table, cmd);
        *done = true;
        return CLI_OK;
    }
    /* One place for the one option whose default the environment may change. */
    const char *isa = getenv("DPI_ISA");
    const option_spec *o = &p.table.v[OPT_ISA];
    if (code == CLI_OK && (o->commands & cmd->bit) && !a->v[OPT_ISA].given && isa && isa[0])
        code = parse_value(o, isa, "DPI_ISA", &a->v[OPT_ISA]);
    if (a->v[OPT_OUTPUT].s && cli_ends_in(a->v[OPT_OUTPUT].s, ".jsonl")) /* the name says it */
        a->v[OPT_JSONL].i = 1;
    return code == CLI_OK ? place_words(cmd, a) : code;
}
