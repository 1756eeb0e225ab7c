/* gzip.c - see gzip.h. Deflate and its checksums are zlib's. */
#define ZLIB_CONST /* input is const */
#include "pipeline/records/gzip.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/status.h"
#include "dpinfer/memory.h"

enum { WINDOW_BITS = 15 + 16 /* gzip alone */, PIECE_BYTES = 1 << 16, INPUT_MOST = 1 << 30 };

/* zlib's window holds text. */
static void *allocate(void *user, unsigned n, unsigned size) {
    (void)user;
    return dpi_private_malloc((size_t)n * size);
}

static void release(void *user, void *p) {
    (void)user;
    dpi_private_free(p);
}

/* Input that is left, and output: `out` [room], or only a count of it. */
typedef struct reader {
    const char *name;
    const unsigned char *in;
    size_t n_in, n_out, most;
    unsigned char *out, piece[PIECE_BYTES];
    z_stream z;
} reader;

static dpi_status refuse(const reader *r, const char *why, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s", r->name, why);
}

/* One call of zlib: a piece of input to a piece of output. */
static int step(reader *r) {
    const size_t room = r->out ? r->most - r->n_out + 1 : PIECE_BYTES; /* and the NUL's */
    const uInt n_in = r->n_in < INPUT_MOST ? (uInt)r->n_in : INPUT_MOST;
    const uInt n_room = room < PIECE_BYTES ? (uInt)room : PIECE_BYTES;
    r->z.next_in = r->in;
    r->z.avail_in = n_in;
    r->z.next_out = r->out ? r->out + r->n_out : r->piece;
    r->z.avail_out = n_room;
    const int result = inflate(&r->z, Z_NO_FLUSH);
    r->in += n_in - r->z.avail_in;
    r->n_in -= n_in - r->z.avail_in;
    r->n_out += n_room - r->z.avail_out;
    return result;
}

static dpi_status read_member(reader *r, dpi_error *err) {
    for (;;) {
        const int result = step(r);
        if (!r->out && r->n_out > r->most)
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: it holds more than %zu bytes, which is the most that is read from "
                            "a compressed file", r->name, r->most);
        if (result == Z_STREAM_END)
            return DPI_STATUS_OK;
        if (result == Z_MEM_ERROR)
            return dpi_no_memory(err, "the records");
        if (result == Z_BUF_ERROR)
            return refuse(r, "the compressed file is cut short", err);
        if (result != Z_OK)
            return refuse(r, "it is no gzip file, or a damaged one", err);
    }
}

static size_t count_zeros(const reader *r) {
    size_t n = 0;
    while (n < r->n_in && r->in[n] == 0)
        n++;
    return n;
}

/* All members. Zero bytes behind the last one are padding, as gzip has it. */
static dpi_status read_members(reader *r, dpi_error *err) {
    if (r->n_in == 0)
        return refuse(r, "the compressed file is cut short", err);
    while (r->n_in > 0) {
        DPI_TRY(read_member(r, err));
        if (r->n_in > 0 && count_zeros(r) == r->n_in)
            break;
        if (r->n_in > 0 && inflateReset(&r->z) != Z_OK)
            return refuse(r, "it is no gzip file, or a damaged one", err);
    }
    return DPI_STATUS_OK;
}

/* With `out` NULL: only *n_out. */
static dpi_status read_all(reader *r, const char *data, size_t n_bytes, unsigned char *out,
                           dpi_error *err) {
    r->in = (const unsigned char *)data;
    r->n_in = n_bytes;
    r->out = out;
    r->n_out = 0;
    r->z = (z_stream){.zalloc = allocate, .zfree = release};
    if (inflateInit2(&r->z, WINDOW_BITS) != Z_OK)
        return dpi_no_memory(err, "the records");
    const dpi_status status = read_members(r, err);
    inflateEnd(&r->z);
    return status;
}

dpi_status dpi_gzip_expand(const char *name, size_t most, char **data, size_t *n_bytes,
                           dpi_error *err) {
    reader *r = dpi_private_malloc(sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the records");
    r->name = name;
    r->most = most;
    unsigned char *out = NULL;
    dpi_status status = read_all(r, *data, *n_bytes, NULL, err);
    if (status == DPI_STATUS_OK) {
        r->most = r->n_out;
        out = dpi_private_malloc(r->n_out + 1);
        status = out ? read_all(r, *data, *n_bytes, out, err) : dpi_no_memory(err, "the records");
    }
    if (status == DPI_STATUS_OK) {
        out[r->n_out] = '\0';
        dpi_private_free(*data);
        *data = (char *)out;
        *n_bytes = r->n_out;
    } else {
        dpi_private_free(out);
    }
    dpi_private_free(r);
    return status;
}
