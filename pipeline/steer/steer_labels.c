/* steer_labels.c - which labels steering vectors are for, and how many units count for each. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "pipeline/steer/steer.h"

static int32_t find(const dpi_steer_labels *l, const char *name, size_t n_bytes) {
    for (int32_t i = 0; i < l->n && name; i++)
        if (strlen(l->names[i]) == n_bytes && memcmp(l->names[i], name, n_bytes) == 0)
            return i;
    return -1;
}

static dpi_status add(dpi_steer_labels *l, const char *name, size_t n_bytes, dpi_error *err) {
    if (l->n == DPI_STEER_LABELS_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "labels: found more than %d", DPI_STEER_LABELS_MAX);
    l->names[l->n] = strndup(name, n_bytes);
    return l->names[l->n++] ? DPI_STATUS_OK : dpi_no_memory(err, "the labels");
}

/* Which unit has which label is public: so are the labels that there are, and how many units have
 * each. */
static dpi_status count_units(const dpi_records *records, bool named, dpi_steer_labels *l,
                              dpi_error *err) {
    const size_t n_units = dpi_records_unit_count(records);
    for (size_t unit = 0; unit < n_units; unit++) {
        const char *name;
        size_t n_bytes;
        dpi_records_unit_label(records, unit, &name, &n_bytes);
        int32_t label = find(l, name, n_bytes);
        if (label < 0 && name && !named) {
            DPI_TRY(add(l, name, n_bytes, err));
            label = l->n - 1;
        }
        if (label >= 0)
            l->n_units[label] += 1;
    }
    for (int32_t i = 0; i < l->n; i++)
        if (l->n_units[i] < 1)
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found no unit of '%s', allowed are those "
                                                 "that units have", l->names[i]);
    return l->n > 0 ? DPI_STATUS_OK
                    : dpi_fail(err, DPI_STATUS_ARG, "labels: found no unit that has one");
}

/* It is a secret: each label counts for as many of the public number. */
static dpi_status share_units(const dpi_steer_options *o, dpi_steer_labels *l, dpi_error *err) {
    if (l->n == 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "labels: found none, needed with add-remove: which labels there are must "
                        "not follow from the records");
    for (int32_t i = 0; i < l->n; i++)
        l->n_units[i] = (double)o->n_units / l->n;
    return DPI_STATUS_OK;
}

static dpi_status make(const dpi_steer_options *o, dpi_steer_labels *l, dpi_error *err) {
    for (int32_t i = 0; i < o->n_labels; i++) {
        if (!o->labels || !o->labels[i])
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found NULL, allowed are %d names",
                            (int)o->n_labels);
        if (find(l, o->labels[i], strlen(o->labels[i])) >= 0)
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found '%s' more than once", o->labels[i]);
        DPI_TRY(add(l, o->labels[i], strlen(o->labels[i]), err));
    }
    return o->adjacency == DPI_ADJACENCY_ADD_REMOVE ? share_units(o, l, err)
                                                    : count_units(o->records, l->n > 0, l, err);
}

dpi_status dpi_steer_labels_make(const dpi_steer_options *o, dpi_steer_labels *l, dpi_error *err) {
    *l = (dpi_steer_labels){0};
    DPI_TRY(dpi_check_range("labels", o->n_labels, 0, DPI_STEER_LABELS_MAX, err));
    const bool has = dpi_records_has_labels(o->records);
    if ((o->n_labels > 0 && !has) ||
        (o->public_texts && dpi_records_has_labels(o->public_texts) != has))
        return dpi_fail(err, DPI_STATUS_ARG, "labels: found %s, allowed are labels of all or of "
                                             "none",
                        has ? "records with them and public texts without"
                        : o->n_labels > 0 ? "some, and records without them"
                                          : "public texts with them and records without");
    if (!has)
        return DPI_STATUS_OK;
    l->names = dpi_calloc(DPI_STEER_LABELS_MAX, sizeof *l->names);
    l->n_units = dpi_calloc(DPI_STEER_LABELS_MAX, sizeof *l->n_units);
    return l->names && l->n_units ? make(o, l, err) : dpi_no_memory(err, "the labels");
}

void dpi_steer_labels_free(dpi_steer_labels *l) {
    for (int32_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
    free(l->n_units);
    *l = (dpi_steer_labels){0};
}
