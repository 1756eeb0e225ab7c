/* steer_labels.c - which labels steering vectors are for, and how many units count for each. */
#include <string.h>

#include "base/status.h"
#include "pipeline/steer/steer.h"

static dpi_status add_names(const dpi_steer_options *o, dpi_label_list *l, dpi_error *err) {
    if (o->n_labels == 0 && o->label_meanings)
        return dpi_fail(err, DPI_STATUS_ARG, "label_meanings: allowed with labels, as many as "
                                             "there are");
    for (int32_t i = 0; i < o->n_labels; i++) {
        const char *name = o->labels ? o->labels[i] : NULL;
        if (!name)
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found NULL, allowed are %d names",
                            (int)o->n_labels);
        if (dpi_labels_named(l, name, strlen(name)) >= 0)
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found '%s' more than once", name);
        DPI_TRY(dpi_labels_add(l, name, strlen(name), err));
    }
    return DPI_STATUS_OK;
}

/* Which unit has which label is public: so are the labels that there are, and how many units have
 * each. */
static dpi_status count_units(const dpi_steer_options *o, dpi_label_list *l, dpi_error *err) {
    DPI_TRY(dpi_labels_count(o->records, o->n_labels > 0, l, err));
    for (size_t i = 0; i < l->names.n; i++)
        if (l->n_units[i] < 1)
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found no unit of '%s', allowed are those "
                                                 "that units have", l->names.at[i].data);
    return l->names.n > 0 ? DPI_STATUS_OK
                          : dpi_fail(err, DPI_STATUS_ARG, "labels: found no unit that has one");
}

dpi_status dpi_steer_labels_make(const dpi_steer_options *o, dpi_label_list *l, dpi_error *err) {
    *l = (dpi_label_list){0};
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
    if (o->adjacency == DPI_ADJACENCY_ADD_REMOVE && o->n_labels == 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "labels: found none, needed with add-remove: which labels there are must "
                        "not follow from the records");
    DPI_TRY(add_names(o, l, err));
    if (o->adjacency != DPI_ADJACENCY_ADD_REMOVE)
        DPI_TRY(count_units(o, l, err));
    l->n = (int32_t)l->names.n;
    return DPI_STATUS_OK;
}

double dpi_steer_units(const dpi_steer *s, int32_t label) {
    return s->labels.n_units ? (double)s->labels.n_units[label]
                             : (double)s->options.n_units / s->n_sets;
}
