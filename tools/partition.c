/* partition.c - see partition.h. */
#include "tools/partition.h"

enum { MAX_SLOTS = 4096 }; /* sequences of a session, less the public one */

/* 16 random bytes from the library's source: a draw among 256 batches is one. */
static int draw_key(const job *j, uint8_t key[16]) {
    for (int i = 0; i < 16; i++) {
        int32_t byte;
        dpi_error err;
        if (dpi_assign_secret(1, 256, j->sampler.random, j->sampler.random_user, &byte, &err) !=
            DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        key[i] = (uint8_t)byte;
    }
    return CLI_OK;
}

/* The ID of a record is its content, so that its batch depends on no other record, whatever form
 * the records come in. A null record adds nothing wherever it is: it is in none. */
static int hash_record(const job *j, const uint8_t key[16], size_t i, int32_t *batch) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    *batch = -1;
    if (!records_read(j->docs, i, &text, &n_bytes))
        return CLI_OK;
    dpi_status status = dpi_assign_hash(key, text, n_bytes, j->n_texts, batch, &err);
    private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

static int draw_record(const job *j, int32_t *batch) {
    dpi_error err;
    if (dpi_assign_secret(j->sampler.subsample, j->n_texts, j->sampler.random,
                          j->sampler.random_user, batch, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return CLI_OK;
}

static int assign(const job *j, partition *p) {
    uint8_t key[16];
    int code = draw_key(j, key);
    for (size_t i = 0; i < p->n_records && code == CLI_OK; i++)
        code = j->sampler.subsample > 0 ? draw_record(j, &p->batch[i])
                                        : hash_record(j, key, i, &p->batch[i]);
    return code;
}

/* Slots of the largest batch. */
static int count_slots(const job *j, partition *p) {
    int32_t *count = private_malloc((size_t)j->n_texts * sizeof *count);
    if (!count)
        return cli_fail(CLI_FAILED, "out of memory for %d batches", j->n_texts);
    for (int32_t b = 0; b < j->n_texts; b++)
        count[b] = 0;
    for (size_t i = 0; i < p->n_records; i++) {
        int32_t b = p->batch[i];
        if (b >= 0 && ++count[b] > p->n_slots)
            p->n_slots = count[b];
    }
    private_free(count);
    if (p->n_slots > MAX_SLOTS) /* how many is private */
        return cli_fail(CLI_RECORDS, "a batch has more than %d records: raise --num", MAX_SLOTS);
    return CLI_OK;
}

int partition_make(const job *j, partition *p) {
    *p = (partition){.n_records = (size_t)j->n_records, .n_slots = j->sampler.n_ref};
    if (!j->assigned)
        return CLI_OK;
    p->n_slots = 0;
    p->batch = private_malloc(p->n_records * sizeof *p->batch);
    if (!p->batch)
        return cli_fail(CLI_FAILED, "out of memory for %zu records", p->n_records);
    int code = assign(j, p);
    return code == CLI_OK ? count_slots(j, p) : code;
}

void partition_free(partition *p) {
    private_free(p->batch);
    *p = (partition){0};
}
