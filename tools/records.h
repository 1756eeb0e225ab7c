/* records.h - the private documents: a folder of .txt files, a .jsonl or a .csv file.
 *
 * A record is addressed by its position, which depends on nothing in any record:
 *   folder  regular files whose name ends in .txt, hidden ones ignored, sorted by the bytes of
 *           their names; one file is one record
 *   .jsonl  one line is one record: the string field --text-field of its object
 *   .csv    RFC 4180 with a header row; one row is one record: its column --text-field
 * The text is taken as it is, less a UTF-8 byte order mark at the start and one line end at the
 * end of a .txt file.
 *
 * A record that is empty (no byte but white space) or unreadable (an I/O error, not a JSON
 * object, no such field, not a string) reads as null. It keeps its place: nothing moves up. */
#ifndef DPI_RECORDS_H
#define DPI_RECORDS_H

#include "tools/cli.h"

typedef struct records records;

/* Finds the records of `path`; a folder's files are not opened yet. CLI_OK, or CLI_RECORDS or
 * CLI_FAILED with a message. */
int records_open(const char *path, const char *text_field, records **out);
/* Wipes what it holds. NULL is allowed. */
void records_close(records *r);

size_t records_count(const records *r);
/* "one .txt file", "one line of a .jsonl file", "one row of a .csv file" */
const char *records_unit(const records *r);
/* These, and "one record" for records that are not there; ended by NULL. */
extern const char *const records_units[];

/* The text of record i: true, and *text [*n_bytes] belongs to the caller, who frees it with
 * private_free. False: null, and the outputs are not changed. */
bool records_read(const records *r, size_t i, char **text, size_t *n_bytes);

#endif
