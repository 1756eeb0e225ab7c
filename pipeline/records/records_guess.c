/* records_guess.c - which encoding and which delimiter a file of records probably has. */
#include <stdbool.h>

#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "dpinfer/records.h"

/* Control characters U+0080..U+009F, which no text has, and what is beyond ASCII at all. */
static void look_at(const char *text, size_t n_bytes, bool *has_controls, bool *is_wide) {
    *has_controls = false;
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        *is_wide |= c >= 0x80;
        *has_controls |= c == 0xc2 && (unsigned char)text[i + 1] < 0xa0; /* a NUL is behind it */
    }
}

/* What an encoding makes of the records. */
typedef struct reading {
    size_t n_odd; /* cannot be read, or have control characters; SIZE_MAX: the file cannot */
    bool is_wide; /* some have characters beyond ASCII */
} reading;

static dpi_status count_odd(const dpi_records *records, reading *r, dpi_error *err) {
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text;
        size_t n_bytes;
        int32_t fault;
        bool has_controls;
        const dpi_status status = dpi_records_look(records, i, &text, &n_bytes, &fault, err);
        if (status != DPI_STATUS_OK)
            return status;
        look_at(text ? text : "", n_bytes, &has_controls, &r->is_wide);
        r->n_odd += has_controls || fault == DPI_FAULT_ENCODING || fault == DPI_FAULT_MALFORMED;
        dpi_private_free(text);
    }
    return DPI_STATUS_OK;
}

static dpi_status read_with(const char *path, dpi_records_options options, int32_t encoding,
                            reading *r, dpi_error *err) {
    dpi_records *records = NULL;
    *r = (reading){0};
    options.encoding = encoding;
    dpi_status status = dpi_records_open(path, &options, &records, err);
    if (status == DPI_STATUS_OK)
        status = count_odd(records, r, err);
    dpi_records_close(records);
    if (status == DPI_STATUS_FORMAT)
        r->n_odd = SIZE_MAX;
    return status == DPI_STATUS_FORMAT ? DPI_STATUS_OK : status;
}

dpi_status dpi_records_guess_encoding(const char *path, const dpi_records_options *options,
                                      int32_t *encoding, dpi_error *err) {
    static const int32_t others[] = {DPI_ENCODING_UTF8, DPI_ENCODING_WINDOWS_1252,
                                     DPI_ENCODING_LATIN1, DPI_ENCODING_UTF16};
    reading best, other;
    DPI_COPY_STRUCT(dpi_records_options, o, options, err);
    int32_t found = o.encoding;
    DPI_TRY(read_with(path, o, found, &best, err));
    const bool fits = best.n_odd == 0 && (found == DPI_ENCODING_UTF8 || !best.is_wide);
    for (size_t i = 0; i < sizeof others / sizeof *others && !fits; i++) {
        DPI_TRY(read_with(path, o, others[i], &other, err));
        /* Text of one byte a character is UTF-8 by chance only where it is short. */
        if (other.n_odd < best.n_odd || (other.n_odd == 0 && others[i] == DPI_ENCODING_UTF8)) {
            found = others[i];
            best = other;
        }
    }
    *encoding = found;
    return DPI_STATUS_OK;
}

char dpi_records_guess_delimiter(const char *path, const dpi_records_options *options) {
    static const char others[] = ",;\t|";
    dpi_records_options o;
    dpi_records *records;
    dpi_records_options_init(&o);
    if (dpi_struct_copy(&o, options, sizeof o, "dpi_records_options", NULL) != DPI_STATUS_OK)
        return 0;
    for (size_t i = 0; others[i]; i++) {
        o.delimiter = others[i];
        if (dpi_records_open(path, &o, &records, NULL) != DPI_STATUS_OK)
            continue;
        const bool is_csv = dpi_records_kind(records) == DPI_RECORD_ROW;
        dpi_records_close(records);
        return is_csv && others[i] != options->delimiter ? others[i] : 0;
    }
    return 0;
}
