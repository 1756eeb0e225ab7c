/* parts.c - see parts.h. Messages hold no value of a header: where something else was given for
 * one, it may be private. */
#include "dp/exact/parts.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

enum { COUNT = 0, STEP = 1, CANDIDATES = 2, BITS = 3, WORDS = 8, WORD = 32 };

_Static_assert(BITS + WORDS == DPI_SUMS_HEADER && WORDS * WORD == DPI_PARTS_MAX, "header");

/* FNV-1a leaves the last word in the lower bits: mix once more, and keep the upper ones. */
static int64_t finish(uint64_t hash) {
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)(hash >> 16);
}

int64_t dpi_parts_digest(const void *data, size_t n_bytes) {
    return finish(dpi_hash(DPI_HASH_INIT, data, n_bytes));
}

int64_t dpi_parts_candidates(const int32_t *ids, const int64_t *fixed, size_t n) {
    uint64_t hash = dpi_hash(DPI_HASH_INIT, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t candidate[2] = {(uint64_t)ids[i], (uint64_t)fixed[ids[i]]};
        hash = dpi_hash(hash, candidate, sizeof candidate);
    }
    return finish(hash);
}

void dpi_parts_mark(int64_t *header, int32_t index, dpi_parts_step step) {
    memset(header, 0, DPI_SUMS_HEADER * sizeof *header);
    header[COUNT] = 1;
    header[STEP] = step.step;
    header[CANDIDATES] = step.candidates;
    header[BITS + index / WORD] = INT64_C(1) << index % WORD;
}

static bool is_count(int64_t n) { return n >= 0 && n <= DPI_PARTS_MAX; }

/* x of n parts and y of m parts are sums of one digest: x / n = y / m. */
static bool same_digest(int64_t x, int64_t n, int64_t y, int64_t m) {
    return (uint64_t)x * (uint64_t)m == (uint64_t)y * (uint64_t)n;
}

static dpi_status fail_step(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_ARG,
                    "sums of another token, text or setting: parts must be at the same one");
}

static dpi_status fail_candidates(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_ARG,
                    "sums over other candidates: the public logits of all parts must be the same, "
                    "bit for bit");
}

dpi_status dpi_parts_mergeable(const int64_t *a, const int64_t *b, dpi_error *err) {
    if (!is_count(a[COUNT]) || !is_count(b[COUNT]))
        return dpi_fail(err, DPI_STATUS_ARG, "the sums do not begin with the header of parts");
    for (int i = BITS; i < BITS + WORDS; i++)
        if (a[i] & b[i])
            return dpi_fail(err, DPI_STATUS_ARG, "sums of a part that are already in the others: "
                                                 "each part counts once");
    if (!same_digest(a[STEP], a[COUNT], b[STEP], b[COUNT]))
        return fail_step(err);
    if (!same_digest(a[CANDIDATES], a[COUNT], b[CANDIDATES], b[COUNT]))
        return fail_candidates(err);
    return DPI_STATUS_OK;
}

/* The bits of the parts below `count` in word i. */
static int64_t all_bits(int32_t count, int32_t i) {
    const int32_t n = count - i * WORD;
    return n <= 0 ? 0 : n >= WORD ? INT64_C(0xffffffff) : (INT64_C(1) << n) - 1;
}

dpi_status dpi_parts_check(const int64_t *header, int32_t count, dpi_parts_step step,
                           dpi_error *err) {
    bool each_once = header[COUNT] == count;
    for (int32_t i = 0; i < WORDS; i++)
        each_once &= header[BITS + i] == all_bits(count, i);
    if (!each_once)
        return dpi_fail(err, DPI_STATUS_ARG, "the sums are not those of all %d parts, each once",
                        (int)count);
    if (header[STEP] != count * step.step)
        return fail_step(err);
    if (header[CANDIDATES] != count * step.candidates)
        return fail_candidates(err);
    return DPI_STATUS_OK;
}
