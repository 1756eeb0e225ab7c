/* kept.c - see kept.h. */
#include "serve/kept.h"

#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "serve/refusal.h"

enum { PROMPTS_MOST = 1 << 16 };

typedef struct entry {
    record_name record; /* of none: the sequence is empty */
    int32_t *tokens;    /* [n_tokens] private memory */
    size_t n_tokens;
    int64_t n_bytes; /* of its caches */
    int64_t used;    /* the answer that used it last */
    int32_t n_users; /* that read from it now */
} entry;

struct kept {
    dpi_session *session;
    const dpi_model *model;
    dpi_session_options one; /* of a session with one sequence, for sizes */
    int32_t first_seq, n;
    entry *entries; /* [n] of the sequences from first_seq on */
    int64_t n_answers, n_bytes, most;
};

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Caches of n_tokens tokens. */
static dpi_status cache_bytes(const dpi_model *model, const dpi_session_options *session,
                              size_t n_tokens, int64_t *n_bytes, dpi_error *err) {
    dpi_session_options one = *session;
    uint64_t with, without;
    one.n_seq = 1;
    one.n_kept = 0;
    dpi_status status = dpi_session_memory(model, &one, (int32_t)n_tokens, 0, &with, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_memory(model, &one, 0, 0, &without, err);
    if (status == DPI_STATUS_OK)
        *n_bytes = (int64_t)(with - without);
    return status;
}

dpi_status kept_count(const dpi_model *model, const dpi_session_options *session, int64_t n_bytes,
                      int64_t n_records, int32_t *n_kept, dpi_error *err) {
    int64_t least = 0;
    dpi_model_info info;
    dpi_model_info_init(&info);
    dpi_status status = dpi_model_info_get(model, &info, err);
    if (status == DPI_STATUS_OK)
        status = cache_bytes(model, session, 1, &least, err);
    *n_kept = 0;
    if (status != DPI_STATUS_OK || least <= 0 || info.n_recurrent > 0)
        return status;
    int64_t n = n_bytes / least;
    n = n < n_records ? n : n_records;
    *n_kept = n < PROMPTS_MOST ? (int32_t)n : PROMPTS_MOST;
    return DPI_STATUS_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

dpi_status kept_create(dpi_session *session, const dpi_model *model,
                       const dpi_session_options *options, int64_t n_bytes, kept **made,
                       dpi_error *err) {
    kept *k = *made = calloc(1, sizeof *k);
    entry *entries = calloc((size_t)options->n_kept + 1, sizeof *entries);
    if (!k || !entries) {
        free(entries);
        return fail_with(err, DPI_STATUS_MEMORY, "no memory for caches of records");
    }
    *k = (kept){.session = session, .model = model, .one = *options, .entries = entries,
                .first_seq = options->n_seq, .n = options->n_kept, .most = n_bytes};
    for (int32_t i = 0; i < k->n; i++)
        entries[i].record.dataset = -1;
    return DPI_STATUS_OK;
}

static void empty(kept *k, int32_t i) {
    entry *e = &k->entries[i];
    dpi_session_reset(k->session, k->first_seq + i);
    dpi_private_free(e->tokens);
    k->n_bytes -= e->n_bytes;
    *e = (entry){.record.dataset = -1};
}

void kept_free(kept *k) {
    if (!k)
        return;
    for (int32_t i = 0; i < k->n; i++)
        empty(k, i);
    free(k->entries);
    free(k);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* The entry of a record; -1: there is none. */
static int32_t find(const kept *k, record_name record) {
    for (int32_t i = 0; i < k->n; i++)
        if (k->entries[i].record.dataset == record.dataset &&
            k->entries[i].record.index == record.index)
            return i;
    return -1;
}

static size_t in_common(const entry *e, const int32_t *tokens, size_t n_tokens) {
    size_t n = 0;
    while (n < n_tokens && n < e->n_tokens && e->tokens[n] == tokens[n])
        n++;
    return n;
}

int32_t kept_find(kept *k, record_name record, const int32_t *tokens, size_t n_tokens,
                  int32_t *n_held) {
    const int32_t i = tokens && record.dataset >= 0 ? find(k, record) : -1;
    *n_held = i < 0 ? 0 : (int32_t)in_common(&k->entries[i], tokens, n_tokens);
    if (*n_held == 0)
        return -1;
    k->entries[i].used = k->n_answers;
    k->entries[i].n_users++;
    return k->first_seq + i;
}

void kept_leave(kept *k, int32_t seq) { k->entries[seq - k->first_seq].n_users--; }

void kept_count_answer(kept *k) { k->n_answers++; }

/* ---- Keeping --------------------------------------------------------------------------------- */

/* The entry that was not used for longest, and may go; -1: there is none. An empty one is first. */
static int32_t find_old(const kept *k) {
    int32_t oldest = -1;
    for (int32_t i = 0; i < k->n; i++) {
        const entry *e = &k->entries[i];
        if (e->record.dataset < 0)
            continue;
        if (e->n_users == 0 && e->used + KEPT_ANSWERS < k->n_answers &&
            (oldest < 0 || e->used < k->entries[oldest].used))
            oldest = i;
    }
    return oldest;
}

/* An empty entry with room for n_bytes; -1: there is none. */
static int32_t make_room(kept *k, int64_t n_bytes) {
    int32_t i = find(k, (record_name){.dataset = -1});
    while (i < 0 || n_bytes > k->most - k->n_bytes) {
        const int32_t old = find_old(k);
        if (old < 0)
            return -1;
        empty(k, old);
        i = i < 0 ? old : i;
    }
    return i;
}

void kept_add(kept *k, record_name record, const int32_t *tokens, size_t n_tokens, int32_t seq) {
    int64_t n_bytes;
    dpi_error err;
    int32_t i = find(k, record);
    if (i >= 0) {
        /* Whatever stands behind the record is the question. Where less is the same, the prompt has
         * another form, and the newer one is kept. */
        entry *e = &k->entries[i];
        e->used = k->n_answers;
        if (e->n_users > 0 || in_common(e, tokens, n_tokens) >= e->n_tokens / 2)
            return;
        empty(k, i);
    }
    if (cache_bytes(k->model, &k->one, n_tokens, &n_bytes, &err) != DPI_STATUS_OK ||
        (i = make_room(k, n_bytes)) < 0)
        return;
    int32_t *copy = dpi_private_malloc(n_tokens * sizeof *copy);
    if (!copy || dpi_session_fork(k->session, seq, k->first_seq + i, (int32_t)n_tokens, &err) !=
                     DPI_STATUS_OK) {
        dpi_private_free(copy); /* nothing is kept: it is only slower */
        return;
    }
    memcpy(copy, tokens, n_tokens * sizeof *copy);
    k->entries[i] = (entry){.record = record, .tokens = copy, .n_tokens = n_tokens,
                            .n_bytes = n_bytes, .used = k->n_answers};
    k->n_bytes += n_bytes;
}
