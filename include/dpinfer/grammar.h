/* grammar.h - texts of a given form: a grammar, and which tokens it allows next.
 *
 *     dpi_grammar_parse (schema.h: of a JSON schema)  ->  dpi_mask_create  ->  generation.h
 *
 * What is allowed is a function of the grammar, the vocabulary and the tokens that were released:
 * it is public, it costs nothing, and every guarantee holds on the allowed tokens alone
 * (dp/PRIVACY.md section 24). docs/grammar.md has the notation. */
#ifndef DPINFER_GRAMMAR_H
#define DPINFER_GRAMMAR_H

#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Never changes once it is made; all threads may share it. */
typedef struct dpi_grammar dpi_grammar;

/* Reads a grammar in GBNF, the notation of llama.cpp: rules `name ::= ...` of literals, classes of
 * characters, `.`, names, groups, `|`, and the repetitions ? * + {m} {m,} {m,n}. The texts are
 * those of the rule `root`, in UTF-8. `text` [n_bytes] is not kept. *grammar is the caller's.
 * Errors: FORMAT (with the line; a rule that is not defined, that never ends, or that begins with
 * itself), LIMIT (1 MB, 4096 rules, 64 nested groups, repetitions up to 10000, 65536 states once
 * they are written out), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_grammar_parse(const char *text, size_t n_bytes,
                                                    dpi_grammar **grammar, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_grammar_free(dpi_grammar *grammar);
/* Tells grammars apart, by their text. Not cryptographic: a collision can be made. */
DPI_API uint64_t dpi_grammar_digest(const dpi_grammar *grammar);

/* *accepts = 1: text [n_bytes] is one of the grammar's. 0: it is not, or it cannot be told, as more
 * than 1024 lists of open rules, or 256 rules in each other, would have to be followed from one
 * place, or as it is so long that a bound of its schema matters which is too large to be written
 * out. Time is linear in n_bytes.
 * Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_grammar_accepts(const dpi_grammar *grammar, const char *text,
                                                      size_t n_bytes, int32_t *accepts,
                                                      dpi_error *err);

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* A grammar over the vocabulary of a model, and what it has found so far: at most some 200 MB. It
 * belongs to one thread at a time, with all its texts. */
typedef struct dpi_mask dpi_mask;

/* The grammar and the model stay the caller's and must outlive the mask. Some 50 ms with 128,000
 * tokens. Errors: UNSUPPORTED (no token ends a text, or a byte that the grammar needs has no token
 * of its own), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_create(const dpi_grammar *grammar,
                                                  const dpi_model *model, dpi_mask **mask,
                                                  dpi_error *err);
/* After its texts. NULL is allowed. */
DPI_API void dpi_mask_free(dpi_mask *mask);

/* Whether a text of the grammar fits into n_tokens tokens, that which ends it not counted: else
 * every text would be cut. It is a lower bound, exact where few places have to be looked at, as
 * before the first free string. And whether all bounds of a JSON schema hold for such texts, those
 * too that are too large to be written out. Errors: ARG (none fits, with the least number; a bound,
 * with the largest one), LIMIT (the grammar is too ambiguous to find a text), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_check_length(dpi_mask *mask, int32_t n_tokens,
                                                        dpi_error *err);

/* The place of one text in the grammar. */
typedef struct dpi_mask_text dpi_mask_text;

/* A text that is empty. It is the caller's; the mask must outlive it. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_text_create(dpi_mask *mask, dpi_mask_text **text,
                                                       dpi_error *err);
/* One that begins with tokens [n]. Errors: also ARG (no text of the grammar begins so). */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_text_create_begun(dpi_mask *mask, const int32_t *tokens,
                                                             size_t n, dpi_mask_text **text,
                                                             dpi_error *err);
/* Wipes. NULL is allowed. */
DPI_API void dpi_mask_text_free(dpi_mask_text *text);

/* The tokens that may come next: token i where bit i % 64 of (*bits)[i / 64] is 1; *n_allowed >= 1
 * of them. An end-of-generation token is allowed only where the text may end, a token without text
 * never. *bits is the mask's, valid until the next call on it or one of its texts.
 * Errors: LIMIT (no token goes on here: the grammar is too ambiguous to follow), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_text_allowed(dpi_mask_text *text, const uint64_t **bits,
                                                        int32_t *n_allowed, dpi_error *err);
/* The token that came. Errors: ARG (it is not allowed; nothing is changed), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_mask_text_push(dpi_mask_text *text, int32_t token,
                                                     dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
