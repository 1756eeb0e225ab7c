/* records_look.c - see records_look.h. */
#include "tools/command/records_look.h"

#include <stdlib.h>
#include <string.h>

/* ---- All texts ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b, void *user) {
    const records_look *l = user;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const size_t n = l->n_bytes[i] < l->n_bytes[k] ? l->n_bytes[i] : l->n_bytes[k];
    const int order = memcmp(l->text[i], l->text[k], n);
    if (order != 0)
        return order;
    if (l->n_bytes[i] != l->n_bytes[k])
        return l->n_bytes[i] < l->n_bytes[k] ? -1 : 1;
    return (i > k) - (i < k);
}

bool look_is_copy(const records_look *l, size_t k) {
    const size_t i = l->sorted[k - 1], j = l->sorted[k];
    return l->n_bytes[i] == l->n_bytes[j] && memcmp(l->text[i], l->text[j], l->n_bytes[i]) == 0;
}

static int count_tokens(const dpi_model *model, const char *text, size_t n_bytes, int64_t *n) {
    size_t n_tokens = 0;
    dpi_error err;
    const dpi_status status = dpi_tokenize(model, text, n_bytes, 0, NULL, 0, &n_tokens, &err);
    *n = (int64_t)n_tokens;
    return status == DPI_STATUS_OK || status == DPI_STATUS_LIMIT
               ? CLI_OK
               : cli_fail_library(CLI_FAILED, &err);
}

static int read_record(const dpi_model *model, records_look *l, size_t i) {
    int32_t fault = DPI_FAULT_NONE;
    dpi_error err;
    if (dpi_records_look(l->records, i, &l->text[i], &l->n_bytes[i], &fault, &err) !=
        DPI_STATUS_OK)
        return cli_fail_library(CLI_RECORDS, &err);
    l->fault[i] = (uint8_t)fault;
    l->n_faults[fault]++;
    if (!l->text[i])
        return CLI_OK;
    l->sorted[l->n_read++] = i;
    return model ? count_tokens(model, l->text[i], l->n_bytes[i], &l->n_tokens[i]) : CLI_OK;
}

static void *zeros(size_t n, size_t size) {
    void *p = dpi_private_malloc((n + 1) * size);
    if (p)
        memset(p, 0, (n + 1) * size);
    return p;
}

int look_read(const dpi_records *records, const dpi_model *model, records_look *l) {
    const size_t n = dpi_records_count(records);
    *l = (records_look){.records = records, .n = n};
    l->fault = zeros(n, sizeof *l->fault);
    l->text = zeros(n, sizeof *l->text);
    l->n_bytes = zeros(n, sizeof *l->n_bytes);
    l->sorted = zeros(n, sizeof *l->sorted);
    l->n_tokens = model ? zeros(n, sizeof *l->n_tokens) : NULL;
    if (!l->fault || !l->text || !l->n_bytes || !l->sorted || (model && !l->n_tokens))
        return cli_no_memory("the records");
    int code = CLI_OK;
    for (size_t i = 0; i < n && code == CLI_OK; i++)
        code = read_record(model, l, i);
    if (code == CLI_OK)
        qsort_r(l->sorted, l->n_read, sizeof *l->sorted, compare, l);
    return code;
}

void look_free(records_look *l) {
    for (size_t i = 0; l->text && i < l->n; i++)
        dpi_private_free(l->text[i]);
    dpi_private_free(l->fault);
    dpi_private_free(l->text);
    dpi_private_free(l->n_bytes);
    dpi_private_free(l->n_tokens);
    dpi_private_free(l->sorted);
}
