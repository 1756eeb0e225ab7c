/* labels.c - see labels.h. */
#include "pipeline/release/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/records/units.h"

void dpi_labels_free(dpi_label_list *l) {
    dpi_spans_free(&l->names, true);
    dpi_spans_free(&l->meanings, true);
    dpi_private_free(l->n_units);
    dpi_private_free(l->n_texts);
    *l = (dpi_label_list){0};
}

/* All names are looked at: which label a unit has may be private. */
int32_t dpi_labels_named(const dpi_label_list *l, const char *name, size_t n_bytes) {
    int32_t found = -1;
    for (int32_t i = 0; i < (int32_t)l->names.n && name; i++)
        if (l->names.at[i].n_bytes == n_bytes && memcmp(l->names.at[i].data, name, n_bytes) == 0)
            found = i;
    return found;
}

int32_t dpi_labels_find(const dpi_label_list *l, const dpi_records *records, size_t unit) {
    const char *name;
    size_t n_bytes;
    dpi_records_unit_label(records, unit, &name, &n_bytes);
    return dpi_labels_named(l, name, n_bytes);
}

dpi_bytes dpi_labels_meaning(const dpi_label_list *l, int32_t index) {
    return (dpi_bytes){l->meanings.at[index].data, l->meanings.at[index].n_bytes};
}

dpi_batch_range dpi_labels_range(const dpi_label_list *l, int32_t index) {
    dpi_batch_range range = {0};
    for (int32_t i = 0; i < index; i++)
        range.first += l->n_texts[i];
    range.n = index >= 0 ? l->n_texts[index] : 0;
    return range;
}

int32_t dpi_labels_of_text(const dpi_label_list *l, int32_t text) {
    int32_t i = 0;
    for (; i < l->n - 1 && text >= l->n_texts[i]; i++)
        text -= l->n_texts[i];
    return i;
}

int64_t dpi_labels_texts(const dpi_label_list *l) {
    int64_t n = 0;
    for (int32_t i = 0; i < l->n; i++)
        n += l->n_texts[i];
    return n;
}

/* ---- Names ----------------------------------------------------------------------------------- */

dpi_status dpi_labels_add(dpi_label_list *l, const char *name, size_t n_bytes, dpi_error *err) {
    if (l->names.n == DPI_LABELS_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "there are more than %d labels", DPI_LABELS_MAX);
    return dpi_spans_copy(&l->names, name, n_bytes) ? DPI_STATUS_OK
                                                    : dpi_no_memory(err, "the labels");
}

static dpi_status copy_names(const dpi_release_options *o, dpi_label_list *l, dpi_error *err) {
    if (o->n_labels == 0 && (o->label_texts || o->label_meanings))
        return dpi_fail(err, DPI_STATUS_ARG, "%s: allowed with label_names, as many as there are",
                        o->label_texts ? "label_texts" : "label_meanings");
    for (int32_t i = 0; i < o->n_labels; i++) {
        if (!o->label_names || !o->label_names[i])
            return dpi_fail(err, DPI_STATUS_ARG, "label_names: found NULL, allowed are %d names",
                            (int)o->n_labels);
        const size_t n_bytes = strlen(o->label_names[i]);
        const dpi_span name = {(char *)o->label_names[i], n_bytes};
        if (dpi_units_is_blank(&name) || dpi_labels_named(l, name.data, n_bytes) >= 0)
            return dpi_fail(err, DPI_STATUS_ARG, "label_names: label %d is blank, or there twice",
                            i + 1);
        DPI_TRY(dpi_labels_add(l, name.data, n_bytes, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status make_meanings(const dpi_release_options *o, dpi_label_list *l, dpi_error *err) {
    for (int32_t i = 0; i < l->n; i++) {
        const char *given = i < o->n_labels && o->label_meanings ? o->label_meanings[i] : NULL;
        char *text = dpi_label_in_prompt(l->names.at[i].data, given,
                                         o->prompts.description.data != NULL);
        const bool copied = text && dpi_spans_copy(&l->meanings, text, strlen(text));
        free(text);
        if (!copied)
            return dpi_no_memory(err, "the labels");
    }
    return DPI_STATUS_OK;
}

/* Of groups of similar records: "1", "2", .. */
static dpi_status number_names(int32_t n, dpi_label_list *l, dpi_error *err) {
    for (int32_t i = 1; i <= n; i++) {
        char name[16];
        const int n_bytes = snprintf(name, sizeof name, "%d", (int)i);
        DPI_TRY(dpi_labels_add(l, name, (size_t)n_bytes, err));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_labels_count(const dpi_records *records, bool named, dpi_label_list *l,
                            dpi_error *err) {
    const size_t n = dpi_records_unit_count(records);
    l->n_units = dpi_private_malloc(DPI_LABELS_MAX * sizeof *l->n_units);
    if (!l->n_units)
        return dpi_no_memory(err, "the labels");
    memset(l->n_units, 0, DPI_LABELS_MAX * sizeof *l->n_units);
    for (size_t u = 0; u < n; u++) {
        const char *name;
        size_t n_bytes;
        dpi_records_unit_label(records, u, &name, &n_bytes);
        int32_t index = dpi_labels_named(l, name, n_bytes);
        if (index < 0 && name && !named) {
            DPI_TRY(dpi_labels_add(l, name, n_bytes, err));
            index = (int32_t)l->names.n - 1;
        }
        if (index >= 0)
            l->n_units[index]++;
    }
    return DPI_STATUS_OK;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Whether a / (2 s + 1) < b / (2 t + 1); if they are the same, whether t is less. Counts are below
 * 2^31. */
static bool is_less(int64_t a, int32_t s, int64_t b, int32_t t) {
    const int64_t x = a * (2 * (int64_t)t + 1), y = b * (2 * (int64_t)s + 1);
    return x < y || (x == y && t < s);
}

bool dpi_labels_share(const int64_t *counts, const int64_t *most, int32_t n, int32_t n_texts,
                      int32_t *shares) {
    for (int32_t i = 0; i < n; i++)
        shares[i] = 0;
    for (int32_t k = 0; k < n_texts; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < n; i++)
            if ((!most || shares[i] < most[i]) &&
                (best < 0 || is_less(counts[best], shares[best], counts[i], shares[i])))
                best = i;
        if (best < 0)
            return false;
        shares[best]++;
    }
    return true;
}

/* The texts that the options give to each label. */
static dpi_status settle_given(const dpi_release_options *o, dpi_label_list *l, dpi_error *err) {
    int64_t sum = 0;
    for (int32_t i = 0; i < l->n; i++) {
        DPI_TRY(dpi_check_range("label_texts", o->label_texts[i], 0, INT32_MAX, err));
        sum += l->n_texts[i] = o->label_texts[i];
    }
    if (sum < 1 || sum > DPI_LABEL_TEXTS_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "label_texts: found %lld texts in all, allowed 1..%d",
                        (long long)sum, DPI_LABEL_TEXTS_MAX);
    if (o->n_texts > 0 && o->n_texts != sum)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_texts: found %d, but the labels have %lld texts: leave it out",
                        o->n_texts, (long long)sum);
    return DPI_STATUS_OK;
}

/* Of labels that are public one without units is a slip: another label would have its texts. */
static dpi_status check_names(const dpi_release_options *o, const dpi_label_list *l,
                              dpi_error *err) {
    for (int32_t i = 0; i < l->n; i++)
        if (o->n_labels > 0 && !o->label_texts && l->n_units[i] == 0)
            return dpi_fail(err, DPI_STATUS_ARG,
                            "label_names: no unit has the label '%.*s'; labels are compared as "
                            "they are written",
                            (int)l->names.at[i].n_bytes, l->names.at[i].data);
    return DPI_STATUS_OK;
}

/* All batches, or n_texts of them in proportion to the units. */
static dpi_status settle_public(const dpi_release_options *o, int32_t batch, dpi_label_list *l,
                                dpi_error *err) {
    int64_t most[DPI_LABELS_MAX], all = 0;
    DPI_TRY(check_names(o, l, err));
    for (int32_t i = 0; i < l->n; i++)
        all += most[i] = (l->n_units[i] + batch - 1) / batch;
    bool fits = all <= DPI_LABEL_TEXTS_MAX;
    int32_t short_of = -1;
    if (o->label_texts) {
        DPI_TRY(settle_given(o, l, err));
        for (int32_t i = 0; i < l->n; i++)
            short_of = l->n_texts[i] > most[i] ? i : short_of;
    } else {
        fits = fits && dpi_labels_share(l->n_units, most, l->n,
                                        o->n_texts > 0 ? o->n_texts : (int32_t)all, l->n_texts);
    }
    if (short_of >= 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "label_texts: the label '%.*s' has %lld units, which make %lld batches of "
                        "%d, found %d texts", (int)l->names.at[short_of].n_bytes,
                        l->names.at[short_of].data, (long long)l->n_units[short_of],
                        (long long)most[short_of], batch, l->n_texts[short_of]);
    if (!fits)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_texts: the units of the labels make %lld batches of %d, found %d texts, "
                        "allowed %lld, and %d in all", (long long)all, batch, o->n_texts,
                        (long long)all, DPI_LABEL_TEXTS_MAX);
    return DPI_STATUS_OK;
}

/* As many for each label; with a histogram it is not known yet. */
static dpi_status settle_private(const dpi_release_options *o, dpi_label_list *l, dpi_error *err) {
    int64_t one[DPI_LABELS_MAX];
    if (o->label_texts)
        return settle_given(o, l, err);
    DPI_TRY(dpi_check_range("n_texts", o->n_texts, 1, DPI_LABEL_TEXTS_MAX, err));
    for (int32_t i = 0; i < l->n; i++)
        one[i] = 1;
    dpi_labels_share(one, NULL, l->n, o->n_texts, l->n_texts);
    return DPI_STATUS_OK;
}

dpi_status dpi_labels_make(const dpi_release_options *o, int32_t reading, int32_t batch,
                           dpi_label_list *l, dpi_error *err) {
    const bool is_public = reading == DPI_LABELS_PUBLIC;
    *l = (dpi_label_list){0};
    DPI_TRY(copy_names(o, l, err));
    DPI_TRY(number_names(o->n_clusters, l, err));
    if (is_public)
        DPI_TRY(dpi_labels_count(o->records, o->n_labels > 0, l, err));
    l->n = (int32_t)l->names.n;
    if (l->n == 0)
        return dpi_fail(err, DPI_STATUS_ARG, is_public
                            ? "label_field: no unit has a label"
                            : "label_names: found none, needed where labels are private: which "
                              "labels there are must not follow from the records");
    DPI_TRY(make_meanings(o, l, err));
    l->n_texts = dpi_private_malloc((size_t)l->n * sizeof *l->n_texts);
    if (!l->n_texts)
        return dpi_no_memory(err, "the labels");
    return is_public ? settle_public(o, batch, l, err) : settle_private(o, l, err);
}
