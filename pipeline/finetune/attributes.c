#include "pipeline/finetune/attributes.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "dpinfer/finetune.h"
#include "pipeline/release/labels.h"

/* ---- Values of a label ----------------------------------------------------------------------- */

/* The first value, and *rest: what comes after it; NULL: no more. */
static size_t first_value(const char *label, const char **rest) {
    const size_t n = strcspn(label, "\t");
    *rest = label[n] ? label + n + 1 : NULL;
    return n;
}

int32_t dpi_attributes_differing(const char *a, const char *b) {
    int32_t n = 0;
    while (a && b) {
        const char *next_a, *next_b;
        const size_t n_a = first_value(a, &next_a), n_b = first_value(b, &next_b);
        n += n_a != n_b || memcmp(a, b, n_a) != 0;
        a = next_a, b = next_b;
    }
    return n;
}

static bool is_blank(const char *value, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", value[i]))
            return false;
    return true;
}

/* The values of a label, none of them blank; -1: one is. */
static int32_t value_count(const char *label) {
    int32_t n = 0;
    for (const char *rest; label; label = rest, n++)
        if (is_blank(label, first_value(label, &rest)))
            return -1;
    return n;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Whether text[at..] begins with {name}. */
static bool is_place(dpi_bytes text, size_t at, const char *name) {
    const size_t n = strlen(name);
    return text.n_bytes - at >= n + 2 && text.data[at] == '{' &&
           memcmp(text.data + at + 1, name, n) == 0 && text.data[at + 1 + n] == '}';
}

static bool has_place(dpi_bytes text, const char *name) {
    for (size_t at = 0; at < text.n_bytes; at++)
        if (is_place(text, at, name))
            return true;
    return false;
}

static dpi_status fail_label(const char *label, int32_t n_names, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_ARG,
                    "labels: found '%s', needed are %d values with tabs between them, one of each "
                    "attribute", label, n_names);
}

dpi_status dpi_attributes_check(const dpi_instruction_options *o, dpi_error *err) {
    if (o->n_attributes > 0 && o->n_labels == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "attributes: found without labels, which are their "
                                             "values");
    for (int32_t i = 0; i < o->n_attributes; i++) {
        const char *name = o->attributes[i];
        if (!name || is_blank(name, strlen(name)) || strpbrk(name, "{}\t\n"))
            return dpi_fail(err, DPI_STATUS_ARG, "attributes: found a name that is blank, or has a "
                                                 "brace, a tab or a line end");
        for (int32_t k = 0; k < i; k++)
            if (strcmp(name, o->attributes[k]) == 0)
                return dpi_fail(err, DPI_STATUS_ARG, "attributes: found '%s' more than once", name);
        if (!has_place(o->text, name))
            return dpi_fail(err, DPI_STATUS_ARG,
                            "instruction: found no {%s}, which is an attribute", name);
    }
    for (int32_t i = 0; o->n_attributes > 0 && i < o->n_labels; i++)
        if (!o->labels[i] || value_count(o->labels[i]) != o->n_attributes)
            return fail_label(o->labels[i] ? o->labels[i] : "", o->n_attributes, err);
    return DPI_STATUS_OK;
}

/* The value of the attribute whose place begins at text[at], put there; 0: there is none. */
static size_t put_value(dpi_bytes text, size_t at, const char *const *names, int32_t n_names,
                        const char *label, dpi_text *made) {
    for (int32_t i = 0; i < n_names && label; i++) {
        const char *rest;
        const size_t n = first_value(label, &rest);
        if (is_place(text, at, names[i])) {
            dpi_text_put(made, label, n);
            return strlen(names[i]) + 2;
        }
        label = rest;
    }
    return 0;
}

dpi_status dpi_attributes_fill(dpi_bytes text, const char *const *names, int32_t n_names,
                               const char *label, char **filled, dpi_error *err) {
    dpi_text made = {0};
    if (value_count(label) != n_names)
        return fail_label(label, n_names, err);
    for (size_t at = 0; at < text.n_bytes;) {
        const size_t n = put_value(text, at, names, n_names, label, &made);
        if (n == 0)
            dpi_text_put(&made, text.data + at, 1);
        at += n > 0 ? n : 1;
    }
    dpi_text_put(&made, "", 0);
    if (made.failed || !made.data) {
        free(made.data);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the instruction");
    }
    *filled = made.data;
    return DPI_STATUS_OK;
}

dpi_status dpi_finetune_instruction(const char *instruction, const char *const *attributes,
                                    int32_t n_attributes, const char *label, char **text,
                                    dpi_error *err) {
    const dpi_instruction_options o = {.text = {instruction, strlen(instruction)},
                                       .labels = &label, .n_labels = 1,
                                       .attributes = attributes, .n_attributes = n_attributes};
    DPI_TRY(dpi_attributes_check(&o, err));
    return dpi_attributes_fill(o.text, attributes, n_attributes, label, text, err);
}

/* ---- Shares of texts ------------------------------------------------------------------------- */

void dpi_finetune_share(const int64_t *counts, int32_t n, int32_t n_texts, int32_t *shares) {
    dpi_labels_share(counts, NULL, n, n_texts, shares);
}
