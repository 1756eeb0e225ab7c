/* encoding.c - see encoding.h. Windows-1252 is the table of Unicode.org, in which five bytes are
 * not assigned; UTF-16 is RFC 2781. */
#include "pipeline/records/encoding.h"

#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"
#include "dpinfer/records.h"

static const uint32_t NONE = UINT32_MAX;

/* Characters of the bytes 0x80..0x9f; 0: none. */
static const uint16_t windows_1252[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

static uint32_t unit_at(int32_t encoding, const unsigned char *p) {
    return encoding == DPI_ENCODING_UTF16LE ? (uint32_t)(p[0] | p[1] << 8)
                                            : (uint32_t)(p[0] << 8 | p[1]);
}

/* The character at p [n_bytes > 0], NONE if that is none, and its bytes. */
static size_t read_utf16(int32_t encoding, const unsigned char *p, size_t n_bytes,
                         uint32_t *code) {
    *code = n_bytes < 2 ? NONE : unit_at(encoding, p);
    if (n_bytes < 2 || *code < 0xd800 || *code > 0xdfff)
        return n_bytes < 2 ? n_bytes : 2;
    const uint32_t low = *code < 0xdc00 && n_bytes >= 4 ? unit_at(encoding, p + 2) : 0;
    const bool is_pair = low >= 0xdc00 && low <= 0xdfff;
    *code = is_pair ? 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00) : NONE;
    return is_pair ? 4 : 2;
}

static size_t read_code(int32_t encoding, const unsigned char *p, size_t n_bytes, uint32_t *code) {
    if (encoding >= DPI_ENCODING_UTF16)
        return read_utf16(encoding, p, n_bytes, code);
    const bool other = encoding == DPI_ENCODING_WINDOWS_1252 && *p >= 0x80 && *p < 0xa0;
    *code = !other ? *p : windows_1252[*p - 0x80] ? windows_1252[*p - 0x80] : NONE;
    return 1;
}

/* The bytes of it as UTF-8, which go to `out` if that is not NULL. */
static size_t convert(int32_t encoding, const unsigned char *p, size_t n_bytes, char *out) {
    size_t n = 0;
    uint32_t code;
    char utf8[4];
    for (size_t at = 0; at < n_bytes;) {
        at += read_code(encoding, p + at, n_bytes - at, &code);
        utf8[0] = '\xff';
        const size_t step = code == NONE ? 1 : dpi_utf8_put(code, utf8);
        if (out)
            memcpy(out + n, utf8, step);
        n += step;
    }
    return n;
}

dpi_status dpi_encoding_convert(int32_t encoding, const char *name, char **text, size_t *n_bytes,
                                dpi_error *err) {
    const unsigned char *p = (const unsigned char *)*text;
    if (encoding == DPI_ENCODING_UTF8)
        return DPI_STATUS_OK;
    if (encoding == DPI_ENCODING_UTF16) {
        const uint32_t mark = *n_bytes < 2 ? 0 : unit_at(DPI_ENCODING_UTF16LE, p);
        if (mark != 0xfeff && mark != 0xfffe && *n_bytes > 0)
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s has no byte order mark of UTF-16: the encodings utf16le and "
                            "utf16be need none", name);
        encoding = mark == 0xfeff ? DPI_ENCODING_UTF16LE : DPI_ENCODING_UTF16BE;
    }
    const size_t n = convert(encoding, p, *n_bytes, NULL);
    char *utf8 = dpi_private_malloc(n + 1);
    if (!utf8)
        return dpi_no_memory(err, "the records");
    convert(encoding, p, *n_bytes, utf8);
    utf8[n] = '\0';
    dpi_private_free(*text);
    *text = utf8;
    *n_bytes = n;
    return DPI_STATUS_OK;
}
