/* path_places.c - one release, and whether each record, label and text of it is where the
 * public numbers put it. See path.h. */
#include "base/status.h"
#include "audit/path.h"

/* Which of its unit's records a record is: only those with the unit's label count. */
static int32_t place_in_unit(const path_world *w, int32_t record) {
    int32_t k = 0;
    for (int32_t i = dpi_path_unit(w, record); i < record && w->n_units > 0; i += w->n_units)
        k += dpi_path_has_label(w, i);
    return k;
}

static bool is_used(const path_world *w, const path_setup *s, int32_t record) {
    return w->n_units == 0 ||
           (dpi_path_has_label(w, record) && place_in_unit(w, record) < s->per_unit);
}

/* By position: the text and slot of a record, by arithmetic of its own. Of units the k-th record
 * has the k-th slot of its unit; labels come one after the other. */
static int32_t place_of(const path_world *w, const path_setup *s, int32_t record, int32_t *slot) {
    const int32_t unit = dpi_path_unit(w, record), B = s->batch;
    const int32_t M = w->n_units > 0 ? s->per_unit : 1;
    const int32_t at = w->labels ? unit / 2 : unit;
    const int32_t n_first = (w->n_units + 1) / 2; /* units of the first label */
    *slot = at % B * M + place_in_unit(w, record);
    return (dpi_path_label(w, unit) ? (n_first + B - 1) / B : 0) + at / B;
}

/* The label of a text: texts of the first label come first. */
static int32_t label_of(const path_world *w, const path_setup *s, int32_t text) {
    const int32_t n_first = dpi_path_is_assigned(s) ? (s->n_texts + 1) / 2
                                           : ((w->n_units + 1) / 2 + s->batch - 1) / s->batch;
    return w->labels && text >= n_first;
}

static void check_labels(const path_world *w, const path_setup *s, const path_trace *trace,
                         const path_layout *layout) {
    for (int32_t b = 0; b < trace->n_texts && b < DPI_PATH_TEXTS && s->histogram == 0; b++)
        dpi_audit_hold(w->audit, trace->text[b].label == label_of(w, s, b),
                       "a text has the label of another");
    for (int32_t i = 0; i < w->n_records; i++)
        dpi_audit_hold(w->audit,
                       layout->n_places[i] == 0 ||
                           trace->text[layout->text[i]].label ==
                               dpi_path_label(w, dpi_path_unit(w, i)),
                       "a unit is in a text of another label");
}

/* Where the records have to be. By position: in their places, and null ones in none. By content:
 * each in one text, however many there are. By a draw: at most in one, which dpi_path_layout has
 * seen. */
static void check_places(const path_world *w, const path_setup *s, const path_trace *trace,
                         const path_layout *layout) {
    for (int32_t i = 0; i < w->n_records; i++) {
        const bool present = w->state[i] == PATH_PRESENT;
        if (dpi_path_is_assigned(s)) {
            dpi_audit_hold(w->audit,
                           s->subsample > 0 || s->histogram > 0 ||
                               layout->n_places[i] == (present && is_used(w, s, i)),
                           "a record is in no text, or one too many is");
            continue;
        }
        int32_t slot;
        const int32_t text = place_of(w, s, i, &slot);
        const bool wanted = present && is_used(w, s, i) && text < trace->n_texts;
        dpi_audit_hold(
            w->audit,
            layout->n_places[i] == wanted &&
                (!wanted || (layout->text[i] == text && layout->slot[i] == slot)),
            "a record is not in its place");
    }
    const int32_t n = w->n_units > 0 ? w->n_units : w->n_records, B = s->batch;
    const int32_t n_batches =
        w->labels ? ((n + 1) / 2 + B - 1) / B + (n / 2 + B - 1) / B : (n + B - 1) / B;
    const int32_t n_texts =
        s->n_texts > 0 && (dpi_path_is_assigned(s) || s->n_texts < n_batches) ? s->n_texts
                                                                              : n_batches;
    dpi_audit_hold(w->audit, trace->n_texts == n_texts,
                   "the number of texts is not the public one");
}

dpi_status dpi_path_check(path_world *w, const path_setup *s, path_trace *trace,
                          path_layout *layout) {
    DPI_TRY(dpi_path_observe(w, s, trace));
    if (!dpi_path_has_layout(s))
        return DPI_STATUS_OK;
    DPI_TRY(dpi_path_layout(w, trace, layout));
    check_places(w, s, trace, layout);
    check_labels(w, s, trace, layout);
    return DPI_STATUS_OK;
}
