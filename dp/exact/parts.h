/* parts.h - what stands in front of the sums of one part of a batch, so that sums of a wrong set of
 * parts are refused. Internal; PRIVACY.md, section 2, "Sums of parts".
 *
 * sums[DPI_SUMS_HEADER + n], int64:
 *     [0]      1: a part
 *     [1]      digest of the step: the text, the token's number, K and the options that parts share
 *     [2]      digest of the candidates: their ids and public logits
 *     [3..10]  one bit for the part, 32 in each entry: 2^(index mod 32) in entry 3 + index / 32
 *     [11..]   the sums over the candidates (aggregate.h); PRIVATE, all before is public
 *
 * The header is added like the sums: any integer all-reduce does it. P sums that were added are
 * those of P parts, each once, if [0] is P and the bits are those of all parts: to add up to
 * 2^m - 1, one needs m powers of two at least, and with m they are different ones. Digests have 48
 * bits, so that no sum of DPI_PARTS_MAX of them overflows; P equal ones add up to P times one of
 * them, and others do with a chance of 2^-48. They find mistakes, not intent: parts are trusted.
 * Threads: pure functions over the caller's arrays. */
#ifndef DPI_PARTS_H
#define DPI_PARTS_H

#include <stddef.h>

#include "dpinfer/method.h"

/* The public facts of one step, which all parts share. */
typedef struct dpi_parts_step {
    int64_t step, candidates; /* digests, [0, 2^48) */
} dpi_parts_step;

/* 48 bits of n bytes; not of data that differs between equal steps: padding, pointers. */
int64_t dpi_parts_digest(const void *data, size_t n_bytes);
/* The digest of n candidates: ids[n], and fixed[ids[i]], their public logits. */
int64_t dpi_parts_candidates(const int32_t *ids, const int64_t *fixed, size_t n);

/* header[DPI_SUMS_HEADER] of the part `index`, [0, DPI_PARTS_MAX). */
void dpi_parts_mark(int64_t *header, int32_t index, dpi_parts_step step);

/* ARG unless the headers are of different parts and of the same step: the two may be added. Either
 * may be all zeros: of no part. */
dpi_status dpi_parts_mergeable(const int64_t *header, const int64_t *other, dpi_error *err);

/* ARG unless the header is that of the parts 0..count-1, each once, in this step. */
dpi_status dpi_parts_check(const int64_t *header, int32_t count, dpi_parts_step step,
                           dpi_error *err);

#endif
