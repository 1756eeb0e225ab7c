/* claim_file.h - a claim in the metadata of a GGUF file, of which the claim has the hash of the
 * tensors: an adapter, or a model that was trained. Internal.
 *
 * dpinfer.claim is the claim as JSON, dpinfer.follows what follows from it: strings. */
#ifndef DPI_CLAIM_CLAIM_FILE_H
#define DPI_CLAIM_CLAIM_FILE_H

#include <nettle/sha2.h>
#include <stdbool.h>

#include "dpinfer/claim.h"
#include "dpinfer/report.h"
#include "gguf/gguf_write.h"
#include "gguf/gguf.h"

/* Words of steering vectors as a file has them: lines of key words, the words that were asked for
 * with a space between, what each tells [words], and what units of each label say of them [labels,
 * words]. All empty: there are none. */
enum { DPI_KEY_WORDS, DPI_WORDS, DPI_WORD_WEIGHTS, DPI_WORD_MEANS, DPI_WORDS_KEYS };
extern const char *const dpi_words_keys[DPI_WORDS_KEYS + 1]; /* NULL is last */
/* The bytes of each, of the file's; texts come first, then arrays of floats. Errors: FORMAT (other
 * types, numbers of another shape). */
DPI_MUST_CHECK dpi_status dpi_words_find(const dpi_gguf *file, dpi_bytes parts[DPI_WORDS_KEYS],
                                         dpi_error *err);
/* All of that in the hash, behind the tensors, and how many words were asked for. Where none were
 * asked for the hash stays as it is. */
void dpi_words_hash(struct sha256_ctx *hash, const dpi_bytes parts[DPI_WORDS_KEYS],
                    int32_t n_asked);
/* A tensor in the hash: its name, type and shape [4]; its bytes follow. */
void dpi_tensors_hash_head(struct sha256_ctx *hash, const char *name, uint32_t type,
                           const int64_t shape[4]);

/* Both keys of a claim that is settled. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status dpi_claim_file_put(dpi_gguf_builder *builder, const dpi_claim *claim,
                                             dpi_error *err);
/* Lines of a text of the task; 0: there is none. */
int32_t dpi_task_line_count(const dpi_gguf *file, const char *key);
/* Whether a text of the task has a line for each label, or is not there. Errors: FORMAT, without
 * the file's name. */
DPI_MUST_CHECK dpi_status dpi_task_check_lines(const dpi_gguf *file, const char *key,
                                               dpi_error *err);
/* Whether a file has a claim, whatever it is. */
bool dpi_claim_file_has(const dpi_gguf *file);
/* Adds what holds of the claim of a file: what follows from it, and what its tensors say; each path
 * behind `prefix`. Errors: FORMAT (there is none), ARG (it is malformed, or no training has it),
 * MEMORY. */
DPI_MUST_CHECK dpi_status dpi_claim_file_compare(const dpi_gguf *file, const char *prefix,
                                                 dpi_claim *claim, dpi_verification *result,
                                                 dpi_error *err);

#endif
