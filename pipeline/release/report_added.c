/* report_added.c - see report_added.h. */
#include "pipeline/release/report_added.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/generation.h"
#include "pipeline/journal/digest.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/release/hash.h"
#include "pipeline/release/prompts_json.h"
#include "pipeline/claim/wording_json.h"
#include "pipeline/release/report.h"

enum { META_BYTES_MAX = 1 << 16, META_FIELDS_MAX = 32, META_TEXT_MAX = 2000 };

bool dpi_report_added_init(dpi_report_added *a) {
    *a =
        (dpi_report_added){.meta = json_object(), .charges = json_array(), .labels = json_object()};
    a->wording = json_null();
    a->prompts = json_null();
    a->n_text_bytes = a->n_at_max_words = a->n_alike = -1;
    sha256_init(&a->digest);
    return a->meta && a->charges && a->labels;
}

void dpi_report_added_free(dpi_report_added *a) {
    json_decref(a->meta);
    json_decref(a->charges);
    json_decref(a->wording);
    json_decref(a->prompts);
    json_decref(a->labels);
    json_decref(a->recorded);
}

/* ---- Fields of the operator ------------------------------------------------------------------ */

static bool is_meta(const json_t *meta) {
    const char *key;
    json_t *value;
    if (!json_is_object(meta) || json_object_size(meta) > META_FIELDS_MAX)
        return false;
    json_object_foreach((json_t *)meta, key, value) if (!json_is_string(value) ||
                                                        json_string_length(value) > META_TEXT_MAX ||
                                                        strlen(key) == 0 ||
                                                        strlen(key) > 60) return false;
    return true;
}

dpi_status dpi_report_meta(dpi_report *report, const char *name, const char *text, size_t n_bytes,
                           dpi_error *err) {
    json_error_t error;
    if (n_bytes > META_BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "%s has %zu bytes, allowed %d", name, n_bytes,
                        META_BYTES_MAX);
    json_t *meta = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!meta && json_error_code(&error) == json_error_out_of_memory)
        return dpi_no_memory(err, "the report");
    if (!meta)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is not JSON: line %d, column %d", name,
                        error.line, error.column);
    if (!is_meta(meta)) {
        json_decref(meta);
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: allowed is an object of at most %d texts, such as {\"organisation\": "
                        "\"...\", \"purpose\": \"...\"}, names of 1..60 bytes, texts of at most %d",
                        name, META_FIELDS_MAX, META_TEXT_MAX);
    }
    json_decref(report->added.meta);
    report->added.meta = meta;
    return DPI_STATUS_OK;
}

/* ---- How texts are worded, and prompts ------------------------------------------------------- */

static void set_section(json_t **section, json_t *value) {
    json_decref(*section);
    *section = value;
}

/* A section that the claim has the digest of; NULL: out of memory. `value` is taken. */
static dpi_status tell_section(json_t **section, json_t *value, const char *name,
                               const char *claimed, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    dpi_status status = dpi_json_digest(value, hex, err);
    if (status == DPI_STATUS_OK && strcmp(hex, claimed) != 0)
        status = dpi_fail(err, DPI_STATUS_ARG, "%s: found %.16s, the claim has %.16s", name,
                          hex[0] ? hex : "none", claimed[0] ? claimed : "none");
    if (status == DPI_STATUS_OK)
        set_section(section, value);
    else
        json_decref(value);
    return status;
}

dpi_status dpi_report_wording(dpi_report *report, const dpi_wording *wording, dpi_error *err) {
    DPI_TRY(dpi_wording_check(wording, err));
    return tell_section(&report->added.wording, dpi_wording_json(wording), "wording",
                        report->claim.wording, err);
}

dpi_status dpi_report_added_wording(dpi_report_added *a, const json_t *report, dpi_error *err) {
    dpi_wording *wording;
    DPI_TRY(dpi_wording_of_json(json_object_get(report, "wording"), &wording, err));
    json_t *section = wording ? dpi_wording_json(wording) : json_null();
    dpi_wording_free(wording);
    if (!section)
        return dpi_no_memory(err, "the report");
    set_section(&a->wording, section);
    return DPI_STATUS_OK;
}

dpi_status dpi_report_prompts(dpi_report *report, const char *json, dpi_error *err) {
    json_error_t why;
    json_t *prompts = json_loads(json, 0, &why);
    if (!json_is_object(prompts)) {
        json_decref(prompts);
        return dpi_fail(err, DPI_STATUS_FORMAT, "prompts: found no JSON object");
    }
    return tell_section(&report->added.prompts, prompts, "prompts", report->claim.prompts, err);
}

dpi_status dpi_report_added_prompts(dpi_report_added *a, const json_t *report, dpi_error *err) {
    json_t *prompts = json_object_get(report, "prompts");
    if (!json_is_null(prompts) && !dpi_prompts_json_is(prompts))
        return dpi_fail(err, DPI_STATUS_FORMAT, "prompts is missing, or malformed and not null");
    set_section(&a->prompts, json_incref(prompts));
    return DPI_STATUS_OK;
}

bool dpi_report_wording_fits(const dpi_report_added *a, const dpi_claim *c) {
    const bool keeps = json_is_true(json_object_get(a->wording, "keep_answer"));
    const size_t n_labels = json_array_size(json_object_get(a->prompts, "labels"));
    const json_t *bias;
    dpi_sampler_options o;
    size_t i;
    bool fits = n_labels == 0 || n_labels == (size_t)c->n_labels;
    if (keeps) /* else it would be in texts that prompts show, or that records vote for */
        fits = fits && c->released == 0 && !dpi_claim_find(c, "votes");
    if (dpi_claim_sampler(c, &o))
        json_array_foreach(json_object_get(a->wording, "biases"), i, bias)
            fits = fits && json_integer_value(json_object_get(bias, "token")) < o.n_vocab;
    return fits;
}

/* ---- The output ------------------------------------------------------------------------------ */

void dpi_report_output_add(dpi_report *report, const void *bytes, size_t n_bytes) {
    sha256_update(&report->added.digest, n_bytes, bytes);
    report->added.n_bytes += (int64_t)n_bytes;
}

dpi_status dpi_report_output_file(dpi_report *report, const char *path, int32_t jsonl,
                                  int64_t n_text_bytes, dpi_error *err) {
    uint8_t bytes[1 << 14];
    FILE *file = fopen(path, "re");
    for (size_t n; file && (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
        dpi_report_output_add(report, bytes, n);
    const bool failed = !file || ferror(file);
    const int reason = errno;
    if (file)
        fclose(file);
    report->added.is_file = !failed;
    report->added.jsonl = jsonl != 0;
    report->added.n_text_bytes = n_text_bytes;
    return failed ? dpi_fail(err, DPI_STATUS_IO, "cannot read %s: %s", path, dpi_reason(reason))
                  : DPI_STATUS_OK;
}

static bool count_label(dpi_report_added *a, const char *label) {
    const json_t *known = json_object_get(a->labels, label);
    if (!known && json_object_size(a->labels) == DPI_REPORT_LABELS_MAX)
        return true; /* more than a plot has room for */
    return json_object_set_new(a->labels, label, json_integer(json_integer_value(known) + 1)) == 0;
}

dpi_status dpi_report_text_add(dpi_report *report, const char *label, int32_t n_tokens, int32_t end,
                               dpi_error *err) {
    dpi_report_added *a = &report->added;
    const int64_t most = dpi_claim_n_tokens(&report->claim);
    a->n_texts++;
    if (n_tokens < 0) {
        a->n_unknown++;
        return DPI_STATUS_OK;
    }
    const int64_t bin = n_tokens > 0 ? ((int64_t)n_tokens - 1) * DPI_REPORT_BINS / most : 0;
    a->n_tokens += n_tokens;
    a->n_ended += dpi_end_is_own(end);
    a->lengths[bin < DPI_REPORT_BINS ? bin : DPI_REPORT_BINS - 1]++;
    return !label || count_label(a, label) ? DPI_STATUS_OK : dpi_no_memory(err, "the report");
}

void dpi_report_texts_told(dpi_report *report, int32_t n_at_max_words, int32_t n_alike) {
    report->added.n_at_max_words = n_at_max_words;
    report->added.n_alike = n_alike;
}

/* The recorded section, with what follows from the rest of it. */
static json_t *complete_recorded(const dpi_report_added *a, const dpi_claim *claim) {
    json_t *output = json_deep_copy(a->recorded), *count;
    const json_t *lengths = json_object_get(output, "lengths");
    json_int_t n_texts = 0;
    size_t i;
    if (!json_is_object(output))
        return output;
    json_array_foreach(lengths, i, count) n_texts +=
        json_integer_value(count) < INT32_MAX ? json_integer_value(count) : INT32_MAX;
    if (!json_is_array(lengths))
        n_texts = json_integer_value(json_object_get(output, "texts"));
    if (json_object_set_new(output, "texts", json_integer(n_texts)) == 0 &&
        json_object_set_new(output, "tokens_most", json_integer(dpi_claim_n_tokens(claim))) == 0)
        return output;
    json_decref(output);
    return NULL;
}

static void hash_text(const dpi_report_added *a, char hex[DPI_DIGEST_HEX + 1]) {
    struct sha256_ctx context = a->digest; /* more may follow */
    dpi_digest_end(&context, hex);
}

/* null: nobody counted. */
static json_t *count_json(int64_t n) { return n >= 0 ? json_integer(n) : json_null(); }

/* Texts by their tokens; null where somebody counted none. */
static json_t *lengths_json(const dpi_report_added *a) {
    json_t *lengths = a->n_unknown > 0 ? json_null() : json_array();
    for (int i = 0; i < DPI_REPORT_BINS && json_is_array(lengths); i++)
        if (json_array_append_new(lengths, json_integer(a->lengths[i])) != 0) {
            json_decref(lengths);
            return NULL;
        }
    return lengths;
}

json_t *dpi_report_output_json(const dpi_report_added *a, const dpi_claim *claim) {
    char hex[DPI_DIGEST_HEX + 1];
    const bool known = a->n_unknown == 0, formed = a->n_text_bytes >= 0;
    if (a->recorded)
        return complete_recorded(a, claim);
    if (a->n_texts == 0 && !a->is_file)
        return json_null();
    hash_text(a, hex);
    const bool hashed = a->n_bytes > 0 || a->is_file;
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:O}", "sha256",
                     hashed ? json_string(hex) : json_null(), "n_bytes",
                     hashed ? json_integer(a->n_bytes) : json_null(), "form",
                     formed ? json_string(a->jsonl ? "jsonl" : "text") : json_null(), "text_bytes",
                     count_json(a->n_text_bytes), "texts",
                     (json_int_t)a->n_texts, "tokens",
                     known ? json_integer(a->n_tokens) : json_null(), "ended",
                     known ? json_integer(a->n_ended) : json_null(), "at_max_words",
                     count_json(a->n_at_max_words), "alike", count_json(a->n_alike), "tokens_most",
                     (json_int_t)dpi_claim_n_tokens(claim), "lengths", lengths_json(a), "labels",
                     a->labels);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static json_t *describe_charge(const dpi_charge *c, int64_t sum) {
    return json_pack("{s:s, s:s, s:f, s:f}", "date", c->date, "method", c->method, "charge",
                     (double)c->amount / DPI_LEDGER_ONE, "after", (double)sum / DPI_LEDGER_ONE);
}

dpi_status dpi_report_charges(dpi_report *report, dpi_ledger *ledger, const char *dataset,
                              dpi_error *err) {
    json_t *list = report->added.charges;
    dpi_charge charge;
    int64_t sum = 0;
    dpi_charge_init(&charge);
    if (json_array_clear(list) != 0)
        return dpi_no_memory(err, "the report");
    for (;;) {
        DPI_TRY(dpi_ledger_charge_next(ledger, dataset, charge.id, &charge, err));
        if (charge.id == 0)
            return DPI_STATUS_OK;
        if (!charge.counted)
            continue;
        sum += charge.amount;
        if (json_array_size(list) == DPI_REPORT_CHARGES_MAX && json_array_remove(list, 0) != 0)
            return dpi_no_memory(err, "the report");
        if (json_array_append_new(list, describe_charge(&charge, sum)) != 0)
            return dpi_no_memory(err, "the report");
    }
}

/* ---- Parsed ---------------------------------------------------------------------------------- */

static bool is_count(const json_t *value) {
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool is_count_or_null(const json_t *value, bool null) {
    return null ? json_is_null(value) : is_count(value);
}

static bool may_be_count(const json_t *value) { return json_is_null(value) || is_count(value); }

static bool is_hash(const json_t *value) {
    return dpi_is_hex(json_string_value(value), DPI_DIGEST_HEX);
}

static bool is_output(const json_t *output) {
    const json_t *lengths = json_object_get(output, "lengths");
    const json_t *labels = json_object_get(output, "labels");
    const json_t *form = json_object_get(output, "form"), *hash = json_object_get(output, "sha256");
    const char *key, *name = json_string_value(form);
    json_t *value;
    size_t i;
    const bool unknown = json_is_null(lengths);
    bool ok = (json_is_null(hash) || is_hash(hash)) && json_is_object(labels) &&
              json_object_size(labels) <= DPI_REPORT_LABELS_MAX &&
              (unknown || json_array_size(lengths) == DPI_REPORT_BINS) &&
              json_object_size(output) == 12 &&
              (json_is_null(form) ||
               (name && (strcmp(name, "jsonl") == 0 || strcmp(name, "text") == 0))) &&
              is_count_or_null(json_object_get(output, "text_bytes"), json_is_null(form)) &&
              is_count_or_null(json_object_get(output, "n_bytes"), json_is_null(hash)) &&
              is_count_or_null(json_object_get(output, "tokens"), unknown) &&
              is_count_or_null(json_object_get(output, "ended"), unknown) &&
              may_be_count(json_object_get(output, "at_max_words")) &&
              may_be_count(json_object_get(output, "alike")) &&
              is_count(json_object_get(output, "texts")) &&
              is_count(json_object_get(output, "tokens_most"));
    json_array_foreach(lengths, i, value) ok = ok && is_count(value);
    json_object_foreach((json_t *)labels, key, value) ok = ok && is_count(value);
    return ok;
}

int64_t dpi_report_texts_between(int64_t n_bytes, int64_t n_text_bytes) {
    return n_bytes > 0 ? n_bytes - n_text_bytes + 1 : 0;
}

/* As many texts as the claim has, or at most, and so many tokens that each text can be in its bin.
 * A text that came to no end of its own has T, but for those that were broken off. */
static bool fit_lengths(const json_t *output, const dpi_claim *c, bool complete,
                        json_int_t *n_texts) {
    const json_int_t n_tokens = json_integer_value(json_object_get(output, "tokens"));
    const json_int_t most = dpi_claim_n_tokens(c), n_most = dpi_claim_n_texts(c);
    json_int_t least = 0, all = 0, longest = 0;
    const json_t *count;
    size_t i;
    *n_texts = json_integer_value(json_object_get(output, "texts"));
    if (json_is_null(json_object_get(output, "lengths")))
        return complete ? *n_texts == n_most : *n_texts <= n_most;
    *n_texts = 0;
    json_array_foreach(json_object_get(output, "lengths"), i, count) {
        const json_int_t n = json_integer_value(count), bin = (json_int_t)i;
        const json_int_t from = bin > 0 ? (bin * most - 1) / DPI_REPORT_BINS + 2 : 0;
        const json_int_t to = ((bin + 1) * most - 1) / DPI_REPORT_BINS + 1;
        if (n > n_most - *n_texts || (n > 0 && from > to)) /* more bins than tokens */
            return false;
        *n_texts += n;
        least += n * from;
        all += n * to;
        longest = to == most && from <= to ? n : longest;
    }
    const json_int_t n_cut = *n_texts - json_integer_value(json_object_get(output, "ended"));
    return n_tokens >= least && n_tokens <= all && n_cut >= 0 &&
           (!complete || (*n_texts == n_most && n_cut <= longest && n_tokens >= n_cut * most));
}

/* The hash and the numbers of bytes. */
static bool fit_bytes(const json_t *output, json_int_t n_texts) {
    const json_int_t n_bytes = json_integer_value(json_object_get(output, "n_bytes"));
    const json_int_t of_texts = json_integer_value(json_object_get(output, "text_bytes"));
    const char *hash = json_string_value(json_object_get(output, "sha256"));
    const char *form = json_string_value(json_object_get(output, "form"));
    char of_none[DPI_DIGEST_HEX + 1];
    dpi_digest("", 0, of_none);
    return hash ? (n_bytes == 0) == (strcmp(hash, of_none) == 0) && of_texts <= n_bytes &&
                      (!form || strcmp(form, "text") != 0 ||
                       dpi_report_texts_between(n_bytes, of_texts) == n_texts)
                : !form;
}

/* A group of similar records has its number as its label. */
static bool is_label(const char *label, const dpi_claim *c) {
    char number[16];
    const int32_t i = (int32_t)strtol(label, NULL, 10);
    snprintf(number, sizeof number, "%d", (int)i);
    return c->cluster_texts > 0 ? i >= 1 && i <= c->n_labels && strcmp(number, label) == 0
                                : label[strspn(label, " \t\r\n\v\f")] != '\0';
}

/* Each text of a run has a label; a report counts those of the first labels. Where batches are by
 * position, all batches of a label but the last are full. Where they are secret, a label has at
 * least as many texts as there are batches that a unit may be in. */
static bool fit_labels(const json_t *labels, const dpi_claim *c, bool complete,
                       json_int_t n_texts) {
    const bool each = c->n_labels > 0 && json_object_size(labels) < DPI_REPORT_LABELS_MAX;
    int64_t n_units = 0;
    dpi_sampler_options o;
    const char *key;
    json_t *count;
    if (!dpi_claim_sampler(c, &o))
        return json_object_size(labels) == 0;
    const json_int_t least = complete && o.allocation > 0 ? o.allocation : 1;
    bool ok = json_object_size(labels) <= (size_t)c->n_labels;
    json_object_foreach((json_t *)labels, key, count) {
        const json_int_t n = json_integer_value(count);
        ok = ok && is_label(key, c) && n >= least && n <= n_texts;
        n_texts -= ok ? n : 0;
        n_units += ok ? (n - 1) * o.denominator + 1 : 0;
    }
    return ok && (!each || n_texts == 0) &&
           (c->labels != DPI_LABELS_PUBLIC || n_units <= c->n_units);
}

bool dpi_report_output_fits(const dpi_report_added *a, const dpi_claim *c, bool complete) {
    const json_t *o = a->recorded;
    const json_int_t n_alike = json_integer_value(json_object_get(o, "alike"));
    const json_int_t n_at_words = json_integer_value(json_object_get(o, "at_max_words"));
    const json_int_t max_words = json_integer_value(json_object_get(a->wording, "max_words"));
    json_int_t n_texts;
    return !json_is_object(o) ||
           (fit_lengths(o, c, complete, &n_texts) && fit_bytes(o, n_texts) &&
            fit_labels(json_object_get(o, "labels"), c, complete, n_texts) &&
            n_at_words <= json_integer_value(json_object_get(o, "ended")) &&
            (n_at_words == 0 || max_words > 0) && n_alike <= n_texts &&
            n_alike != 1); /* a text is like another one */
}

static int two_digits(const char *at) { return 10 * (at[0] - '0') + at[1] - '0'; }

/* "2026-01-31T23:59:59Z", a day that there is; empty where there was no clock. */
static bool is_date(const char *date) {
    static const char form[] = "0000-00-00T00:00:00Z";
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    size_t i = 0;
    for (; date && date[i] && i < sizeof form - 1; i++)
        if (form[i] == '0' ? date[i] < '0' || date[i] > '9' : date[i] != form[i])
            return false;
    if (!date || i < sizeof form - 1 || date[i])
        return date && !*date;
    const int year = 100 * two_digits(date) + two_digits(date + 2);
    const int month = two_digits(date + 5), day = two_digits(date + 8);
    const bool leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (leaps && month == 2) && two_digits(date + 11) < 24 &&
           two_digits(date + 14) < 60 && two_digits(date + 17) <= 60; /* a leap second */
}

static bool is_method(const char *method) {
    return method && *method &&
           dpi_ledger_check_text("", method, DPI_CHARGE_METHOD_MAX, NULL) == DPI_STATUS_OK;
}

/* Each is more than nothing, and the sum after it is the one before and this one. */
static bool are_charges(const json_t *charges) {
    size_t i;
    json_t *c;
    /* What was before the first of the last ones is not known. */
    double sum = json_array_size(charges) < DPI_REPORT_CHARGES_MAX ? 0 : -1;
    bool ok = json_is_array(charges) && json_array_size(charges) <= DPI_REPORT_CHARGES_MAX;
    json_array_foreach(charges, i, c) {
        const double charge = json_number_value(json_object_get(c, "charge"));
        const double after = json_number_value(json_object_get(c, "after"));
        const double before = sum < 0 ? fmax(after - charge, 0) : sum;
        ok = ok && json_object_size(c) == 4 &&
             is_method(json_string_value(json_object_get(c, "method"))) &&
             is_date(json_string_value(json_object_get(c, "date"))) && charge > 0 &&
             fabs(after - before - charge) <= 2e-9 * after;
        sum = after;
    }
    return ok;
}

bool dpi_report_charges_fit(const dpi_report_added *a, const dpi_claim *claim) {
    const dpi_claim_ledger *l = &claim->ledger;
    const char *method = dpi_mechanism_name(claim->parts[0].mechanism);
    const size_t n = json_array_size(a->charges);
    const bool one_sum = l->scope == DPI_SCOPE_DATASET;
    /* What was given back since is no longer in the sums. */
    const double most = one_sum ? (double)l->budget : INFINITY;
    const double own_most = one_sum ? (double)(l->before + l->charge) : INFINITY;
    bool is_there = n == 0 || n == DPI_REPORT_CHARGES_MAX, fits = n == 0 || l->dataset[0];
    size_t i;
    json_t *c;
    json_array_foreach(a->charges, i, c) {
        const double charge = json_number_value(json_object_get(c, "charge")) * DPI_LEDGER_ONE;
        const double after = json_number_value(json_object_get(c, "after")) * DPI_LEDGER_ONE;
        fits = fits && (after <= most || dpi_ledger_amount_is(after, most));
        is_there = is_there || (dpi_ledger_amount_is(charge, (double)l->charge) &&
                                (after <= own_most || dpi_ledger_amount_is(after, own_most)) &&
                                strcmp(json_string_value(json_object_get(c, "method")),
                                       method) == 0);
    }
    return fits && is_there;
}

bool dpi_report_added_read(dpi_report_added *a, const json_t *report) {
    json_t *meta = json_object_get(report, "meta"), *charges = json_object_get(report, "charges");
    json_t *output = json_object_get(report, "output");
    if (!is_meta(meta) || !are_charges(charges) || !(json_is_null(output) || is_output(output)))
        return false;
    json_decref(a->meta);
    json_decref(a->charges);
    a->meta = json_incref(meta);
    a->charges = json_incref(charges);
    a->recorded = json_incref(output);
    return true;
}
