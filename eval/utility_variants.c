/* utility_variants.c - what a variant's name says; see utility.h. */
#include "eval/utility.h"

#include <stdio.h>
#include <string.h>

static bool is_word(const char *word, size_t n, const char *name) {
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* The place of a word in the choices of a parameter of InvisibleInk; -1: it is none of them. */
static int32_t find_choice(const char *parameter, const char *word, size_t n) {
    const dpi_parameter *p = dpi_method_parameter_find(DPI_METHOD_INVISIBLEINK, parameter);
    for (int32_t i = 0; p && p->choices[i]; i++)
        if (is_word(word, n, p->choices[i]))
            return i;
    return -1;
}

static bool set_method(const char *word, size_t n, dpi_sampler_options *o) {
    const int32_t accountant = find_choice("accountant", word, n);
    dpi_error err;
    dpi_sampler_options_init(o);
    if (accountant >= 0) {
        o->accountant = accountant;
        return true;
    }
    for (int32_t id = 0; id < dpi_method_count(); id++)
        if (is_word(word, n, dpi_method_get(id)->name))
            return dpi_method_get(id)->has_guarantee &&
                   dpi_method_defaults(id, o, &err) == DPI_STATUS_OK;
    return false;
}

static bool set_word(const char *word, size_t n, dpi_sampler_options *o) {
    if (is_word(word, n, "center"))
        o->center = 1;
    else if (is_word(word, n, "pace"))
        o->pace = DPI_PACE_AUTO;
    else
        return false;
    return true;
}

/* What all settings share has options of its own: a value here would be passed over. */
static bool is_shared(const char *option) {
    static const char *const names[] = {"epsilon", "rho", "delta"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option, names[i]) == 0)
            return true;
    return false;
}

/* OPTION=VALUE, an option of the command line. */
static bool set_value(const char *text, size_t n, variant *v) {
    dpi_sampler_options *o = &v->options;
    char value[64];
    dpi_error err;
    const size_t n_option = strcspn(text, "=");
    if (n_option >= n || n - n_option > sizeof value)
        return false;
    snprintf(value, sizeof value, "%.*s", (int)(n - n_option - 1), text + n_option + 1);
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_method_parameter_get(o->method, i)) != NULL; i++)
        if (is_word(text, n_option, p->option)) {
            v->has_tau = v->has_tau || strcmp(p->option, "temp") == 0;
            v->has_top_k = v->has_top_k || strcmp(p->option, "top-k") == 0;
            return !is_shared(p->option) && dpi_parameter_parse(p, o, value, &err) == DPI_STATUS_OK;
        }
    return false;
}

bool variant_parse(const char *name, variant *v) {
    dpi_sampler_options *o = &v->options;
    size_t n = strcspn(name, "-:");
    const size_t n_name = strlen(name);
    if (n_name >= sizeof v->name)
        return false;
    memcpy(v->name, name, n_name + 1);
    v->has_tau = v->has_top_k = false;
    bool good = set_method(name, n, o);
    for (const char *at = name + n; good && *at; at += n) {
        const bool is_value = *at++ == ':';
        n = strcspn(at, is_value ? ":" : "-:");
        good = is_value ? set_value(at, n, v) : set_word(at, n, o);
    }
    if (good)
        snprintf(v->title, sizeof v->title, "%.60s, %s", dpi_method_get(o->method)->title, v->name);
    return good;
}
