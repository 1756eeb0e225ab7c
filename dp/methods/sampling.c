/* sampling.c - see sampling.h. */
#include "dp/methods/sampling.h"

#include <inttypes.h>

#include "base/status.h"
#include "dp/methods/method.h"

const char *dpi_labels_name(int32_t labels) {
    return labels == DPI_LABELS_PUBLIC ? "public" : labels == DPI_LABELS_PRIVATE ? "private" : NULL;
}

dpi_status dpi_delta_check(double delta, int64_t n_units, int32_t max_per_unit, dpi_error *err) {
    const char *kind = max_per_unit > 0 ? "units" : "records";
    return delta * (double)n_units < 1
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG,
                          "delta: found %g with %" PRId64 " %s, allowed less than 1 / number of "
                          "%s = %g", delta, n_units, kind, kind, 1 / (double)n_units);
}

/* A secret number of units cannot be looked at; the one that is expected is public. */
static dpi_status check_delta(const dpi_sampler_options *o, const dpi_sampling *s, dpi_error *err) {
    const bool assigned = dpi_method_is_assigned(o);
    const double n =
        (double)o->denominator * (double)s->n_texts / (o->subsample > 0 ? o->subsample : 1);
    if (!(o->delta > 0 && o->delta < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed 0 < x < 1", o->delta);
    if (!assigned)
        return dpi_delta_check(o->delta, s->n_units, o->max_per_unit, err);
    if (o->delta * n < 1)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "delta: found %g with %" PRId64 " texts of %d records, allowed less than 1 / "
                    "number of records = %g", o->delta, s->n_texts, o->denominator, 1 / n);
}

/* What is proven of labels and of their histogram. */
static dpi_status check_labels(const dpi_sampler_options *o, const dpi_sampling *s,
                               dpi_error *err) {
    const int32_t wanted = dpi_method_is_assigned(o) ? DPI_LABELS_PRIVATE : DPI_LABELS_PUBLIC;
    if (s->labels && s->labels != wanted)
        return dpi_fail(err, DPI_STATUS_ARG, "labels: found %s, allowed %s with batches by %s",
                        dpi_labels_name(s->labels), dpi_labels_name(wanted),
                        wanted == DPI_LABELS_PUBLIC ? "position" : "hash or draw");
    const bool grouped = s->labels == DPI_LABELS_PRIVATE && o->subsample == 0;
    if (s->cluster_texts != 0) {
        const int64_t n = grouped ? s->n_labels : 0;
        DPI_TRY(dpi_check_range("cluster_texts", s->cluster_texts, DPI_GROUP_TEXTS_LEAST * n,
                                DPI_GROUP_TEXTS_MOST * n, err));
        DPI_TRY(dpi_check_range("n_labels", n, 2, s->n_texts, err));
    }
    const bool counts =
        o->accountant != DPI_ACCOUNTANT_BR && dpi_method_get(o->method)->has_guarantee;
    if (s->has_histogram && !(grouped && counts))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "histogram_rho: allowed with private labels, a method with a guarantee and "
                        "the accountants zcdp and filter, without subsample");
    return DPI_STATUS_OK;
}

/* Of labels each has some of the texts: the one that has fewest counts, and it has no more than the
 * mean. Batches of groups are told by a hash, of which a second record with the same text has the
 * same; how many texts of a histogram a label has is not known before. */
static dpi_status check_allocation(const dpi_sampler_options *o, const dpi_sampling *s,
                                   dpi_error *err) {
    const int64_t most = s->n_labels > 0 ? s->n_texts / s->n_labels : s->n_texts;
    if (o->allocation == 0)
        return DPI_STATUS_OK;
    if (s->has_histogram || s->cluster_texts > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "allocation: found %d, allowed without a histogram and without groups of "
                        "similar records",
                        (int)o->allocation);
    return dpi_check_range("allocation", o->allocation, 2, most, err);
}

/* By position the number of units is public, and so is how many batches they fill. Each label may
 * have one that is not full. */
static dpi_status check_texts(const dpi_sampler_options *o, const dpi_sampling *s,
                              dpi_error *err) {
    const int64_t n_slots = o->denominator, n_labels = s->n_labels > 0 ? s->n_labels : 1;
    /* A label of no unit has no batch. */
    const int64_t n_there = n_labels < s->n_units ? n_labels : s->n_units;
    const int64_t most = (s->n_units + n_there * (n_slots - 1)) / n_slots;
    if (dpi_method_is_assigned(o) || s->n_texts <= most)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "%s is %" PRId64 ", must be at most %" PRId64 ": %" PRId64
                    " records in batches of %d", s->texts_key, s->n_texts, most, s->n_units,
                    o->denominator);
}

dpi_status dpi_sampling_check(const dpi_sampler_options *o, const dpi_sampling *s, dpi_error *err) {
    DPI_TRY(dpi_check_range("B", o->denominator, 1, DPI_REF_MAX, err));
    DPI_TRY(check_delta(o, s, err));
    DPI_TRY(check_labels(o, s, err));
    DPI_TRY(check_allocation(o, s, err));
    return check_texts(o, s, err);
}
