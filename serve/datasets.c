/* datasets.c - see datasets.h. */
#include "serve/datasets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/number.h"
#include "serve/refusal.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dpi_status try_status = (call);                                                      \
        if (try_status != DPI_STATUS_OK)                                                           \
            return try_status;                                                                     \
    } while (0)

/* ---- One dataset ----------------------------------------------------------------------------- */

static bool is_name(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    const size_t n = strspn(text, allowed);
    return n > 0 && n <= DATASET_NAME_MAX && text[n] == '\0';
}

static dpi_status read_number(const dataset *d, const char *key, const char *text, double most,
                              bool is_open, double *number, dpi_error *err) {
    const char *end = number_read(text, number);
    if (end && *end == '\0' && *number > 0 && (is_open ? *number < most : *number <= most))
        return DPI_STATUS_OK;
    return fail_with(err, DPI_STATUS_ARG, "%s: %s: found '%.40s', allowed 0 < x %s %g",
                     d->source.where, key, text, is_open ? "<" : "<=", most);
}

static dpi_status read_text(const dataset *d, const char *key, const char *text, char **copy,
                            dpi_error *err) {
    if (*copy || text[0] == '\0')
        return fail_with(err, DPI_STATUS_ARG, "%s: %s: allowed is one text", d->source.where, key);
    *copy = strdup(text);
    return *copy ? DPI_STATUS_OK : fail_with(err, DPI_STATUS_MEMORY, "out of memory");
}

static dpi_status read_count(const dataset *d, const char *key, const char *text, int32_t most,
                             int32_t *count, dpi_error *err) {
    double number;
    TRY(read_number(d, key, text, most, false, &number, err));
    *count = (int32_t)number;
    return *count >= 1 && *count == number
               ? DPI_STATUS_OK
               : fail_with(err, DPI_STATUS_ARG, "%s: %s: found '%.40s', allowed 1..%d",
                           d->source.where, key, text, (int)most);
}

/* One of `names` [n]: its index. */
static dpi_status read_choice(const dataset *d, const char *key, const char *text,
                              const char *const *names, int32_t n, int32_t *choice,
                              dpi_error *err) {
    char allowed[80] = "";
    for (int32_t i = 0; i < n; i++) {
        *choice = i;
        if (strcmp(text, names[i]) == 0)
            return DPI_STATUS_OK;
        const size_t at = strlen(allowed);
        snprintf(allowed + at, sizeof allowed - at, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return fail_with(err, DPI_STATUS_ARG, "%s: %s: found '%.40s', allowed %s", d->source.where, key,
                     text, allowed);
}

enum { N_KEYS = 13 };
static const char *const paces[] = {"none", "top", "change", "share", "auto"};
enum { N_PACES = sizeof paces / sizeof *paces };
const char *dataset_pace(int32_t pace) { return paces[pace]; }

static dpi_status set_pace(dataset *d, const char *key, const char *value, dpi_error *err) {
    if (strcmp(key, "pace") == 0)
        return read_choice(d, key, value, paces, N_PACES, &d->pace, err);
    if (strcmp(key, "pace-theta") == 0)
        return read_number(d, key, value, 1, false, &d->pace_theta, err);
    if (strcmp(key, "pace-tokens") == 0)
        return read_count(d, key, value, REQUEST_TOKENS_MAX, &d->pace_tokens, err);
    if (strcmp(key, "pace-share") == 0)
        return read_number(d, key, value, REQUEST_TOKENS_MAX, false, &d->pace_share, err);
    return fail_with(err, DPI_STATUS_ARG, "%s: found '%.40s', allowed %sunit, label, text, "
                                          "fields, epsilon, delta, batch, max-per-unit, scope, "
                                          "pace, pace-theta, pace-tokens, pace-share",
                     d->source.where, key, d->source.keys);
}

static int32_t most_per_unit(void) {
    return (int32_t)dpi_method_parameter_find(DPI_METHOD_INVISIBLEINK, "max_per_unit")->max;
}

dpi_status dataset_set(dataset *d, const char *key, const char *value, dpi_error *err) {
    static const char *const fields[] = {"secret", "public"};
    static const char *const scopes[] = {"dataset", "unit"};
    if (strcmp(key, "unit") == 0)
        return read_text(d, key, value, &d->unit, err);
    if (strcmp(key, "label") == 0)
        return read_text(d, key, value, &d->label, err);
    if (strcmp(key, "text") == 0)
        return read_text(d, key, value, &d->text, err);
    if (strcmp(key, "fields") == 0)
        return read_choice(d, key, value, fields, 2, &d->form.public_fields, err);
    if (strcmp(key, "epsilon") == 0)
        return read_number(d, key, value, 1e6, false, &d->epsilon, err);
    if (strcmp(key, "delta") == 0)
        return read_number(d, key, value, 1, true, &d->delta, err);
    if (strcmp(key, "batch") == 0)
        return read_count(d, key, value, 4096, &d->batch, err);
    if (strcmp(key, "max-per-unit") == 0)
        return read_count(d, key, value, most_per_unit(), &d->max_per_unit, err);
    if (strcmp(key, "scope") == 0)
        return read_choice(d, key, value, scopes, 2, &d->scope, err);
    return set_pace(d, key, value, err);
}

bool dataset_key_is_text(const char *key) {
    static const char *const texts[] = {"unit",   "label", "text",
                                        "fields", "scope", "pace"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i]) == 0)
            return true;
    return false;
}

/* All numbers of a pace are the operator's, or they are found for each question. */
dpi_status dataset_check(const dataset *d, dpi_error *err) {
    const bool has_quota = d->pace == DPI_PACE_TOP || d->pace == DPI_PACE_CHANGE;
    const bool has_theta = has_quota || d->pace == DPI_PACE_SHARE;
    const bool needs_unit = d->scope == DPI_SCOPE_UNIT || d->max_per_unit > 0;
    const char *missing = !d->name[0]                                       ? "name"
                          : !d->path                                        ? "path"
                          : d->epsilon == 0                                 ? "epsilon"
                          : d->delta == 0                                   ? "delta"
                          : needs_unit && !d->unit                          ? "unit"
                          : has_theta && d->pace_theta == 0                  ? "pace-theta"
                          : has_quota && d->pace_tokens == 0                ? "pace-tokens"
                          : d->pace == DPI_PACE_SHARE && d->pace_share == 0 ? "pace-share"
                                                                            : NULL;
    if (missing)
        return fail_with(err, DPI_STATUS_ARG, "%s %s: %s is not there%s", d->source.where, d->name,
                         missing, !d->path ? ""
                                  : d->epsilon == 0 || d->delta == 0
                                      ? ": it is the budget of all answers"
                                  : needs_unit && !d->unit
                                      ? ": with scope=unit and with max-per-unit records have one"
                                      : ": 'dpinfer plan' finds the numbers of a pace");
    if ((has_quota || d->pace_tokens == 0) &&
        (d->pace == DPI_PACE_SHARE || d->pace_share == 0) &&
        (has_theta || d->pace_theta == 0))
        return DPI_STATUS_OK;
    return fail_with(err, DPI_STATUS_ARG, "%s %s: the pace '%s' has no such number as is given",
                     d->source.where, d->name, dataset_pace(d->pace));
}

/* A key is once among the parts; `seen` [*n] has those before it. */
static dpi_status set_once(const char *key, const char *value, const char *seen[N_KEYS], int *n,
                           dataset *d, dpi_error *err) {
    for (int i = 0; i < *n; i++)
        if (strcmp(key, seen[i]) == 0)
            return fail_with(err, DPI_STATUS_ARG, "--dataset: found '%s' twice, allowed is once",
                             key);
    TRY(dataset_set(d, key, value, err)); /* one of the N_KEYS */
    seen[(*n)++] = key;
    return DPI_STATUS_OK;
}

void dataset_init(dataset *d, const dataset_source *source) {
    *d = (dataset){.source = *source, .batch = DATASET_BATCH_DEFAULT, .pace = DPI_PACE_AUTO};
    dpi_records_options_init(&d->form);
}

dpi_status dataset_name(dataset *d, const char *name, dpi_error *err) {
    if (!is_name(name))
        return fail_with(err, DPI_STATUS_ARG, "%s: found the name '%.70s', allowed are 1..63 "
                                              "letters, digits, '.', '_' and '-'", d->source.where,
                         name);
    memcpy(d->name, name, strlen(name) + 1);
    return DPI_STATUS_OK;
}

dpi_status dataset_path(dataset *d, const char *path, dpi_error *err) {
    return read_text(d, "the path", path, &d->path, err);
}

static dpi_status parse(char *spec, dataset *d, dpi_error *err) {
    const char *seen[N_KEYS];
    int n_seen = 0;
    char *rest = NULL, *part = strtok_r(spec, ",", &rest);
    char *value = part ? strchr(part, '=') : NULL;
    if (!value)
        return fail_with(err, DPI_STATUS_ARG, "--dataset: allowed is NAME=PATH,epsilon=E,delta=D");
    *value++ = '\0';
    TRY(dataset_name(d, part, err));
    TRY(dataset_path(d, value, err));
    while ((part = strtok_r(NULL, ",", &rest)) != NULL) {
        value = strchr(part, '=');
        if (!value)
            return fail_with(err, DPI_STATUS_ARG,
                             "--dataset: found '%.40s', allowed KEY=VALUE; a path with a comma "
                             "has a place in the file of --config", part);
        *value++ = '\0';
        TRY(set_once(part, value, seen, &n_seen, d, err));
    }
    return dataset_check(d, err);
}

dpi_status dataset_parse(const char *spec, dataset *d, dpi_error *err) {
    static const dataset_source source = {"--dataset", ""};
    char *copy = strdup(spec);
    dataset_init(d, &source);
    if (!copy)
        return fail_with(err, DPI_STATUS_MEMORY, "out of memory");
    const dpi_status status = parse(copy, d, err);
    free(copy);
    return status;
}

void dataset_free(dataset *d) {
    dpi_records_close(d->records);
    free(d->path);
    free(d->text);
    free(d->unit);
    free(d->label);
    *d = (dataset){0};
}

static dpi_status open_records(dataset *d, dpi_error *err) {
    dpi_records_options o = d->form;
    if (d->text)
        o.text_field = d->text;
    o.unit_field = d->unit;
    o.label_field = d->label;
    TRY(dpi_records_open(d->path, &o, &d->records, err));
    d->n_units = (int64_t)dpi_records_unit_count(d->records);
    if (dpi_records_has_units(d->records) && d->max_per_unit == 0)
        d->max_per_unit = DPI_MAX_PER_UNIT_DEFAULT;
    return d->n_units > 0 ? DPI_STATUS_OK
                          : fail_with(err, DPI_STATUS_FORMAT, "%s: there is no record", d->path);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* NULL and OK: the ledger does not have it. */
static dpi_status find_in_ledger(const datasets *d, const char *name, bool *is_there,
                                 dpi_dataset_info *info, dpi_error *err) {
    *is_there = false;
    for (int32_t i = 0; !*is_there; i++) {
        dpi_dataset_info_init(info);
        TRY(dpi_ledger_info_at(d->ledger, i, info, err));
        if (info->name[0] == '\0')
            break;
        *is_there = strcmp(info->name, name) == 0;
    }
    return DPI_STATUS_OK;
}

static dpi_status check_budget(const dataset *one, const dpi_dataset_info *info, dpi_error *err) {
    if (info->epsilon != one->epsilon || info->delta != one->delta)
        return fail_with(err, DPI_STATUS_ARG,
                         "%s %s: found epsilon %g and delta %g, allowed those of the ledger: %g "
                         "and %g", one->source.where, one->name, one->epsilon, one->delta,
                         info->epsilon, info->delta);
    if (info->scope != one->scope)
        return fail_with(err, DPI_STATUS_ARG,
                         "%s %s: found the scope '%s', allowed that of the ledger: '%s'",
                         one->source.where, one->name, dpi_scope_name(one->scope),
                         dpi_scope_name(info->scope));
    return DPI_STATUS_OK;
}

static dpi_status add_to_ledger(const datasets *d, dataset *one, dpi_error *err) {
    dpi_dataset_info info;
    dpi_dataset_options o;
    bool is_there;
    dpi_dataset_options_init(&o);
    TRY(dpi_records_privacy_unit(one->records, DPI_ADJACENCY_REPLACE_BY_NULL, one->max_per_unit,
                                 &o.unit, err));
    TRY(find_in_ledger(d, one->name, &is_there, &info, err));
    if (!is_there) {
        o.name = one->name;
        o.epsilon = one->epsilon;
        o.delta = one->delta;
        o.scope = one->scope;
        TRY(dpi_ledger_add(d->ledger, &o, err));
    }
    TRY(datasets_info(d, one, &info, err));
    TRY(dpi_privacy_unit_join(&info.unit, &o.unit, one->name, err)); /* as each answer will */
    return check_budget(one, &info, err);
}

dpi_status datasets_info(const datasets *d, dataset *one, dpi_dataset_info *info, dpi_error *err) {
    dpi_dataset_info_init(info);
    TRY(dpi_ledger_info(d->ledger, one->name, info, err));
    one->budget = info->budget;
    one->left = info->left;
    return DPI_STATUS_OK;
}

/* ---- Answers of an earlier server ------------------------------------------------------------ */

/* The charge that an answer was given, by its note; 0: there is none. */
static dpi_status find_charge(const datasets *d, const stored *a, int64_t *id, dpi_error *err) {
    char note[STORE_ID_MAX + 16];
    dpi_charge charge;
    dpi_dataset_info info;
    bool is_there;
    *id = 0;
    const int n = snprintf(note, sizeof note, "answer %s ", a->id);
    TRY(find_in_ledger(d, a->dataset, &is_there, &info, err));
    if (!is_there) /* another ledger: it cannot be known */
        *id = -1;
    for (int64_t after = 0; is_there && *id == 0; after = charge.id) {
        dpi_charge_init(&charge);
        TRY(dpi_ledger_charge_next(d->ledger, a->dataset, after, &charge, err));
        if (charge.id == 0)
            break;
        if (charge.counted && strncmp(charge.note, note, (size_t)n) == 0)
            *id = charge.id;
    }
    return DPI_STATUS_OK;
}

dpi_status datasets_settle(const datasets *d, const stored *a, dpi_error *err) {
    int64_t charge;
    TRY(find_charge(d, a, &charge, err));
    return charge == 0 ? store_forget(d->store, a->id, err)
                       : store_lose(d->store, a->id, charge > 0 ? charge : 0, err);
}

static dpi_status settle_begun(const datasets *d, dpi_error *err) {
    stored a = {0};
    for (int64_t after = 0;; after = a.number) {
        TRY(store_next_begun(d->store, after, &a, err));
        if (a.state == STORED_NONE)
            return DPI_STATUS_OK;
        TRY(datasets_settle(d, &a, err));
    }
}

/* ---- All ------------------------------------------------------------------------------------- */

static dpi_status open_files(const char *path, datasets *d, dpi_error *err) {
    dpi_ledger_options o;
    dpi_ledger_options_init(&o);
    o.create = 1;
    TRY(dpi_ledger_open(path, &o, &d->ledger, err));
    char *answers = malloc(strlen(path) + 9);
    if (!answers)
        return fail_with(err, DPI_STATUS_MEMORY, "out of memory");
    sprintf(answers, "%s.answers", path);
    const dpi_status status = store_open(answers, &d->store, err);
    free(answers);
    return status;
}

dpi_status datasets_open(dataset *sets, int n, const char *ledger, datasets *d, dpi_error *err) {
    *d = (datasets){0};
    if (n == 0)
        return DPI_STATUS_OK;
    if (!ledger)
        return fail_with(err, DPI_STATUS_ARG, "a dataset needs a ledger, the file of its budget: "
                                              "--ledger, or 'ledger' in that of --config");
    d->v = calloc((size_t)n, sizeof *d->v);
    if (!d->v)
        return fail_with(err, DPI_STATUS_MEMORY, "out of memory");
    for (int i = 0; i < n; i++) {
        if (datasets_find(d, sets[i].name))
            return fail_with(err, DPI_STATUS_ARG, "%s: '%s' is there twice", sets[i].source.where,
                             sets[i].name);
        memcpy(&d->v[d->n++], &sets[i], sizeof sets[i]);
        memset(&sets[i], 0, sizeof sets[i]);
    }
    TRY(open_files(ledger, d, err));
    return settle_begun(d, err);
}

dpi_status datasets_read(datasets *d, dpi_error *err) {
    for (int i = 0; i < d->n; i++) {
        const dpi_status status = open_records(&d->v[i], err);
        d->refused = status != DPI_STATUS_OK;
        TRY(status);
    }
    for (int i = 0; i < d->n; i++)
        TRY(add_to_ledger(d, &d->v[i], err));
    return DPI_STATUS_OK;
}

void datasets_close(datasets *d) {
    for (int i = 0; i < d->n; i++)
        dataset_free(&d->v[i]);
    free(d->v);
    store_close(d->store);
    dpi_ledger_close(d->ledger);
    *d = (datasets){0};
}

dataset *datasets_find(const datasets *d, const char *name) {
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->v[i].name, name) == 0)
            return &d->v[i];
    return NULL;
}

int32_t datasets_rows(const datasets *d) {
    int32_t most = 1;
    for (int i = 0; i < d->n; i++) {
        const dataset *one = &d->v[i];
        const int32_t n = one->batch * (one->max_per_unit > 0 ? one->max_per_unit : 1) + 1;
        most = n > most ? n : most;
    }
    return most;
}

int32_t datasets_searching(const datasets *d) {
    dpi_pace_search search;
    bool finds = false;
    dpi_pace_search_init(&search);
    for (int i = 0; i < d->n; i++)
        finds |= d->v[i].pace == DPI_PACE_AUTO;
    return finds ? search.n_texts : 0;
}

int64_t datasets_records(const datasets *d) {
    int64_t n = 0;
    for (int i = 0; i < d->n; i++)
        n += d->v[i].n_units * (d->v[i].max_per_unit > 0 ? d->v[i].max_per_unit : 1);
    return n;
}
