/* schema.h - a JSON schema as a grammar. Part of libdpinfer_full. */
#ifndef DPINFER_SCHEMA_H
#define DPINFER_SCHEMA_H

#include "dpinfer/grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are JSON that the schema `json` [n_bytes] accepts, on one line, properties in the order of
 * the schema. docs/grammar.md lists what a schema may use; anything else is refused by name. A
 * maxLength or maxItems that is too large to be written out holds for the texts that
 * dpi_mask_check_length allows, as they cannot reach it.
 * *grammar is the caller's; dpi_grammar_free. Errors: FORMAT (no JSON, or no schema), UNSUPPORTED
 * (a keyword), and those of dpi_grammar_parse. */
DPI_API DPI_MUST_CHECK dpi_status dpi_grammar_from_schema(const char *json, size_t n_bytes,
                                                          dpi_grammar **grammar, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
