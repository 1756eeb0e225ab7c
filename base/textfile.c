/* textfile.c - see dpinfer/textfile.h. */
#include "base/textfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/format.h"
#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"

size_t dpi_textfile_mark(const char *text, size_t n_bytes) {
    return n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

dpi_status dpi_textfile_refuse(const char *name, const char *text, size_t n_bytes,
                               dpi_error *err) {
    for (size_t i = 0, step; i < n_bytes; i += step) {
        step = dpi_utf8_bytes(text + i, n_bytes - i);
        if (step == 0 || text[i] == '\0')
            return dpi_fail_at(err, DPI_STATUS_FORMAT, i, "%s: found %s, allowed is text in UTF-8",
                               name, step == 0 ? "a byte that is not UTF-8" : "a NUL byte");
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_textfile_check(const char *name, char *text, size_t *n_bytes, dpi_error *err) {
    DPI_TRY(dpi_textfile_refuse(name, text, *n_bytes, err));
    size_t n = 0;
    for (size_t i = dpi_textfile_mark(text, *n_bytes); i < *n_bytes; i++)
        if (text[i] != '\r' || text[i + 1] != '\n') /* a NUL stands behind the last byte */
            text[n++] = text[i];
    text[n] = '\0';
    *n_bytes = n;
    return DPI_STATUS_OK;
}

dpi_status dpi_textfile_read(const char *path, size_t most, char **text, size_t *n_bytes,
                             dpi_error *err) {
    FILE *file;
    char *data = NULL;
    DPI_TRY(dpi_file_open(path, &file, err));
    const bool ok = dpi_private_read(fileno(file), most, &data, n_bytes);
    const int reason = errno;
    fclose(file);
    if (!ok && reason == EFBIG)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: allowed are %zu bytes", path, most);
    if (!ok)
        return dpi_fail(err, dpi_status_of_errno(reason), "cannot read %s: %s", path,
                        dpi_reason(reason));
    const dpi_status status = dpi_textfile_check(path, data, n_bytes, err);
    if (status == DPI_STATUS_OK)
        *text = data;
    else
        dpi_private_free(data);
    return status;
}
