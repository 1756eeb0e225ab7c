/* records.h - the private documents: a folder of .txt files, a .jsonl or a .csv file, the bytes of
 * one in memory, or texts in memory. Part of libdpinfer_full.
 *
 * A record is addressed by its position, which depends on nothing in any record:
 *   folder  regular files whose name ends in .txt, hidden ones left out, sorted by the bytes of
 *           their names; one file is one record
 *   .jsonl  one line is one record: the string field `text_field` of its object
 *   .csv    RFC 4180 with a header row, which has a wanted column once; one row is one record: its
 *           column `text_field`
 * Each may be compressed (gzip, RFC 1952): .txt.gz in a folder, .jsonl.gz, .csv.gz.
 * The text is as it stands there, as UTF-8, less a byte order mark at the start and one line end at
 * the end of a .txt file. Of a line the wanted fields alone are looked at (json.h); of several with
 * one name the last.
 *
 * A record that is empty (no byte but white space), has another form (no JSON object, no such
 * field, not a string, a quote out of place in its row or never closed), has bytes that are not of
 * the encoding, or that its file does not let be read (a dangling link, no permission; a .txt.gz
 * that is damaged or holds more than 64 MiB) is null. It keeps its place: nothing moves up. What is
 * not in the record, but a failure of the machine, is an error.
 *
 * A unit is whom the guarantee protects: with unit_field all records with the same ID, byte for
 * byte (a string, or an integer). An ID that is an integer is its digits, whatever its form, also
 * as text: 1, 1.0 and 1e0 are "1" (dpi_json_digits). Units are counted in the order of their first
 * records. A record without an ID, or with a blank one, is null and a unit of its own. IDs are read
 * when the file is opened.
 *
 * A label (label_field: a string, or an integer as its digits) says which texts a unit is for. The
 * label of a unit is that of its first record; its records with another label are not used. A label
 * that is not there, or blank, is none. Labels are read when the file is opened. With several
 * label_fields a label is their values with a tab between each two; it is none where one is.
 *
 * All of it is private memory. */
#ifndef DPINFER_RECORDS_H
#define DPINFER_RECORDS_H

#include <stddef.h>

#include "dpinfer/run.h"
#include "dpinfer/ledger.h"
#include "dpinfer/prompts.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_records dpi_records;

/* How the bytes of the files are characters. UTF-8 and UTF-16 with a byte order mark or without
 * one; UTF16 is told by its mark which of the two it is, and a .jsonl or a .csv without one is
 * refused. */
typedef enum dpi_encoding {
    DPI_ENCODING_UTF8,
    DPI_ENCODING_LATIN1, /* ISO 8859-1: each byte is the character of its number */
    DPI_ENCODING_WINDOWS_1252, /* what Windows programs call ANSI in western Europe */
    DPI_ENCODING_UTF16,
    DPI_ENCODING_UTF16LE,
    DPI_ENCODING_UTF16BE
} dpi_encoding;

/* Why a record is null. */
typedef enum dpi_record_fault {
    DPI_FAULT_NONE,
    DPI_FAULT_EMPTY,      /* no byte but white space */
    DPI_FAULT_UNREADABLE, /* its file; or that is no gzip file, or holds too much */
    DPI_FAULT_MALFORMED,  /* no JSON object; a quote that is out of place or never closed */
    DPI_FAULT_NO_FIELD,   /* the line has no such field, the row no such column */
    DPI_FAULT_NOT_TEXT,   /* the field is no string, or one with an escape that is no character */
    DPI_FAULT_ENCODING,   /* bytes that are not of the encoding */
    DPI_FAULT_NO_ID       /* the record has a text, but no ID of its unit */
} dpi_record_fault;

enum { DPI_LABEL_FIELDS_MAX = 8 };

typedef struct dpi_records_options {
    size_t struct_size;
    const char *text_field; /* of a .jsonl, column of a .csv; default "text" */
    const char *unit_field; /* the same for the ID of the unit; NULL (default): each record is a
                               unit of its own */
    const char *label_field; /* the same for labels; NULL (default): there are none */
    const char *const *label_fields; /* [n_label_fields] in place of label_field, 1..8 of them */
    int32_t n_label_fields;          /* default 0 */
    char delimiter;  /* between the columns of a .csv, an ASCII character; default ',' */
    int32_t encoding; /* of the files, a dpi_encoding; default DPI_ENCODING_UTF8 */
    int32_t public_fields; /* 1: which of the wanted fields the lines of a .jsonl have is public,
                              as the header row of a .csv is: one that no line has is refused;
                              default 0: such records are null, and nobody is told
                              (dp/PRIVACY.md, section 10) */
    int64_t max_expanded; /* bytes that a .jsonl.gz or .csv.gz may hold, 1..2^40; default 2^32. They
                             are counted before memory is taken for them */
} dpi_records_options;

DPI_API void dpi_records_options_init_size(dpi_records_options *options, size_t size);
#define dpi_records_options_init(o) dpi_records_options_init_size((o), sizeof *(o))

/* Finds the records of `path`; a folder's files are not opened yet. `options` may be NULL for the
 * defaults. There may be none. *records is the caller's.
 * Errors: IO, FORMAT (what the path is, the header row, public fields, UTF-16 without its mark, a
 * compressed file that is damaged or holds too much), MEMORY, ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_open(const char *path,
                                                   const dpi_records_options *options,
                                                   dpi_records **records, dpi_error *err);
/* The same from memory: data [n_bytes], which is copied, is what a .jsonl (kind DPI_RECORD_LINE) or
 * a .csv (DPI_RECORD_ROW) holds. It is not compressed. Errors: those of dpi_records_open but IO;
 * ARG (kind). */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_open_buffer(const void *data, size_t n_bytes,
                                                          int32_t kind,
                                                          const dpi_records_options *options,
                                                          dpi_records **records, dpi_error *err);
/* Units: with unit_field as many as there are IDs, and records without one; else as records. */
DPI_API size_t dpi_records_unit_count(const dpi_records *records);
/* 1: there is a unit_field. */
DPI_API int32_t dpi_records_has_units(const dpi_records *records);
/* unit_field, the records'; NULL: there is none. */
DPI_API const char *dpi_records_unit_field(const dpi_records *records);
/* 1: there is a label_field, or label_fields. */
DPI_API int32_t dpi_records_has_labels(const dpi_records *records);
/* The label of a unit, *label [*n_bytes], the records'; NULL: it has none. PRIVATE where labels
 * are. */
DPI_API void dpi_records_unit_label(const dpi_records *records, size_t unit, const char **label,
                                    size_t *n_bytes);
/* The k-th record of a unit, k from 0, in their order: a position; SIZE_MAX: it has no more. With
 * labels only records with the unit's label count. */
DPI_API size_t dpi_records_of_unit(const dpi_records *records, size_t unit, size_t k);
/* How many records a unit has, and how many of them have its label, which are all without labels.
 * PRIVATE. */
DPI_API void dpi_records_unit_size(const dpi_records *records, size_t unit, size_t *n_all,
                                   size_t *n_used);
/* The ID of a unit, *id [*n_bytes], the records'; NULL: it has none. PRIVATE. */
DPI_API void dpi_records_unit_id(const dpi_records *records, size_t unit, const char **id,
                                 size_t *n_bytes);

/* Whom a guarantee about these records protects: units where there is a unit_field, max_per_unit
 * records of each, else each record. Errors: ARG (the name of the field is too long for a ledger).
 */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_privacy_unit(const dpi_records *records,
                                                           int32_t adjacency, int32_t max_per_unit,
                                                           dpi_privacy_unit *unit, dpi_error *err);

/* Copies of n_records texts; a text that is NULL is a null record. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_create(const char *const *texts,
                                                     const size_t *n_bytes, size_t n_records,
                                                     dpi_records **records, dpi_error *err);
/* Wipes what it holds. NULL is allowed. */
DPI_API void dpi_records_close(dpi_records *records);

DPI_API size_t dpi_records_count(const dpi_records *records);
/* A dpi_record_kind. */
DPI_API int32_t dpi_records_kind(const dpi_records *records);
/* The name of the file that record i of a folder is, the records'; NULL: it is none. PRIVATE. */
DPI_API const char *dpi_records_name(const dpi_records *records, size_t i);

/* The text of record i: *text [*n_bytes] with a NUL behind it, which the caller frees with
 * dpi_private_free; NULL: a null record. Errors: IO, MEMORY, ARG (i); none names the record. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_read(const dpi_records *records, size_t i,
                                                   char **text, size_t *n_bytes, dpi_error *err);
/* The same, and why it is null: *fault, a dpi_record_fault, which is PRIVATE. For whoever owns the
 * records: a release tells nobody. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_look(const dpi_records *records, size_t i,
                                                   char **text, size_t *n_bytes, int32_t *fault,
                                                   dpi_error *err);
/* Its private prompt, by dpi_prompts_encode: *tokens [*n_tokens], which the caller frees with
 * dpi_private_free; NULL: a null record, and each i that is no record's. Errors: IO, MEMORY,
 * UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_prompt(const dpi_records *records, size_t i,
                                                     const dpi_prompts *prompts, int32_t **tokens,
                                                     size_t *n_tokens, dpi_error *err);

/* The encoding with which most records of a file or a folder can be read: that of the options
 * unless another one is better. It reads all of them; *encoding is PRIVATE, as in dpi_records_look.
 * Errors: those of dpi_records_open, but for bytes that an encoding cannot have. */
DPI_API DPI_MUST_CHECK dpi_status dpi_records_guess_encoding(const char *path,
                                                             const dpi_records_options *options,
                                                             int32_t *encoding, dpi_error *err);
/* The delimiter with which a .csv has the columns of the options, where it has not with theirs; 0:
 * none. */
DPI_API char dpi_records_guess_delimiter(const char *path, const dpi_records_options *options);

#ifdef __cplusplus
}
#endif
#endif
