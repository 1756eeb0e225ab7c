/* textfile.h - files of text beside the records: prompts, names of labels, IDs of units, grammars,
 * schemas, tokens, settings. All of them are read alike, whatever editor has written them: UTF-8
 * with or without a byte order mark, lines that end with LF or CR LF, a last line without an end.
 */
#ifndef DPINFER_TEXTFILE_H
#define DPINFER_TEXTFILE_H

#include <stddef.h>

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes such a text of the bytes of a file, text [*n_bytes] with a NUL behind it, in its place:
 * without the mark, and with LF at the end of each line that has an end. No NUL is in it, so that
 * it is a string. `name` is the file's, for messages.
 * Errors: FORMAT (a NUL; not UTF-8), with the offset; the text is then unspecified. */
DPI_API DPI_MUST_CHECK dpi_status dpi_textfile_check(const char *name, char *text, size_t *n_bytes,
                                                     dpi_error *err);

/* The text of the regular file at `path`, of at most `most` bytes: *text [*n_bytes], which the
 * caller frees with dpi_private_free. Errors: IO, FORMAT (see above; too large), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_textfile_read(const char *path, size_t most, char **text,
                                                    size_t *n_bytes, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
