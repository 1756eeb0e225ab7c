/* release_texts.h - what the tests of releases share: the built-in model, the sample documents, and
 * the texts of a release as `dpinfer run` writes them. */
#ifndef DPI_TEST_RELEASE_TEXTS_H
#define DPI_TEST_RELEASE_TEXTS_H

#include "dpinfer/release.h"
#include "tests/support/support.h"

enum { N_TOKENS = 12, MAX_REF_TOKENS = 16, TEXT_BYTES = 1 << 14 };

extern dpi_model *model;
extern dpi_records *documents;

/* Two texts of 8 documents each, which are cut; a seed, or the system's bits with NULL. */
dpi_release_options options_of(const uint64_t *seed);
dpi_release *open_release(const dpi_release_options *o);
/* All texts as `dpinfer run` writes them, or as_lines with --jsonl; and the rules that events
 * follow. Frees the release. */
void draw_texts(dpi_release *release, bool as_lines, char *texts);

/* Of a cmocka group. */
void open_documents(void);
void close_documents(void);

#endif
