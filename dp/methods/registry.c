/* registry.c - see dpinfer/registry.h. The one place that lists the methods. */
#include "dpinfer/registry.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "dp/methods/method.h"

extern const dpi_method_ops dpi_method_plain;
extern const dpi_method_ops dpi_method_invisibleink;
extern const dpi_method_ops dpi_method_amin;
extern const dpi_method_ops dpi_method_adapmixed;
extern const dpi_method_ops dpi_method_tang;

/* A method's place is its dpi_method. */
static const dpi_method_ops *const methods[] = {
    &dpi_method_plain,
    &dpi_method_invisibleink,
    &dpi_method_amin,
    &dpi_method_adapmixed,
    &dpi_method_tang,
};

enum { N_METHODS = sizeof methods / sizeof *methods };

const dpi_method_ops *dpi_method_ops_get(int32_t id) {
    return id >= 0 && id < N_METHODS ? methods[id] : NULL;
}

int32_t *dpi_method_quota(dpi_sampler_options *options) {
    const dpi_method_ops *ops = dpi_method_ops_get(options->method);
    return ops->quota ? ops->quota(options) : &options->pace_tokens;
}

/* ---- Methods -------------------------------------------------------------------------------- */

int32_t dpi_method_count(void) { return N_METHODS; }

const dpi_method_info *dpi_method_get(int32_t id) {
    const dpi_method_ops *m = dpi_method_ops_get(id);
    return m ? &m->info : NULL;
}

const dpi_method_info *dpi_method_find(const char *name) {
    for (int32_t id = 0; id < N_METHODS; id++)
        if (strcmp(methods[id]->info.name, name) == 0)
            return &methods[id]->info;
    return NULL;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

int32_t dpi_method_parameter_count(int32_t id) {
    const dpi_method_ops *m = dpi_method_ops_get(id);
    int32_t n = 0;
    while (m && m->parameters[n])
        n++;
    return n;
}

const dpi_parameter *dpi_method_parameter_get(int32_t id, int32_t index) {
    const bool found = index >= 0 && index < dpi_method_parameter_count(id);
    return found ? methods[id]->parameters[index] : NULL;
}

const dpi_parameter *dpi_method_parameter_find(int32_t id, const char *name) {
    const dpi_method_ops *m = dpi_method_ops_get(id);
    for (int32_t i = 0; m && m->parameters[i]; i++)
        if (strcmp(m->parameters[i]->name, name) == 0)
            return m->parameters[i];
    return NULL;
}

const dpi_parameter *dpi_method_parameter_of(int32_t id, const char *key) {
    const dpi_method_ops *m = dpi_method_ops_get(id);
    for (int32_t i = 0; m && m->parameters[i]; i++)
        if (strcmp(m->parameters[i]->key, key) == 0)
            return m->parameters[i];
    return NULL;
}

bool dpi_method_is_assigned(const dpi_sampler_options *options) {
    const dpi_method_info *m = dpi_method_get(options->method);
    return m && m->max_ref > 0 && dpi_sampler_n_ref_private(options);
}

double dpi_method_joining(const dpi_sampler_options *o) {
    return o->subsample > 0 ? o->subsample : o->allocation > 0 ? 1 : 0;
}

dpi_status dpi_method_defaults(int32_t id, dpi_sampler_options *options, dpi_error *err) {
    DPI_TRY(dpi_check_range("method", id, 0, N_METHODS - 1, err));
    options->method = id;
    for (int32_t i = 0; methods[id]->parameters[i]; i++)
        dpi_parameter_default(methods[id]->parameters[i], options);
    return DPI_STATUS_OK;
}

int32_t dpi_tokens_default(int32_t n_ctx) {
    return n_ctx / 2 < DPI_TOKENS_DEFAULT ? n_ctx / 2 : DPI_TOKENS_DEFAULT;
}

/* ---- What options come to ------------------------------------------------------------------- */

int32_t dpi_method_facts(const dpi_sampler_options *options, const dpi_sampler_plan *plan,
                         dpi_fact *facts) {
    const dpi_method_ops *m = dpi_method_ops_get(options->method);
    return m && m->facts ? m->facts(options, plan, facts) : 0;
}

const char *dpi_method_neighbours(const dpi_sampler_options *options) {
    static const char *const all[] = {
        [DPI_ADJACENCY_REPLACE_BY_NULL] = "the record's slot stays, and adds nothing",
        [DPI_ADJACENCY_ADD_REMOVE] = "one record more or less; sums are divided by B",
        [DPI_ADJACENCY_ZERO_OUT] = "the record's logits become 0; its slot stays",
    };
    const dpi_method_ops *m = dpi_method_ops_get(options->method);
    const char *own = m && m->neighbours ? m->neighbours(options) : NULL;
    const bool known = options->adjacency >= 0 && options->adjacency <= DPI_ADJACENCY_ZERO_OUT;
    if (!m || !m->info.has_guarantee || !known)
        return NULL;
    return own ? own : all[options->adjacency];
}

static const char *const accountings[] = {
    [DPI_ACCOUNTANT_ZCDP] = "zCDP",
    [DPI_ACCOUNTANT_BR] = "exact composition of bounded ranges",
    [DPI_ACCOUNTANT_FILTER] = "individual zCDP filter: each record has a budget of its own",
};

const char *dpi_accountant_text(int32_t accountant) { return accountings[accountant]; }

const char *dpi_rho_label(const dpi_sampler_options *o) {
    return o->allocation > 0                        ? "rho, of a text"
           : o->subsample > 0                       ? "rho, before q"
           : o->accountant == DPI_ACCOUNTANT_BR     ? "rho, as zCDP"
           : o->accountant == DPI_ACCOUNTANT_FILTER ? "rho, at most"
                                                    : "rho, spent";
}

void dpi_method_settings(const dpi_sampler_options *options, char *text, size_t size) {
    const dpi_method_ops *m = dpi_method_ops_get(options->method);
    int n = snprintf(text, size, "%s: ", m ? m->info.title : "?");
    if (m && n >= 0 && (size_t)n < size)
        m->settings(options, text + n, size - (size_t)n);
}
