/* token_file.c - the file `tokens` of a job: header, records, and what a killed process has
 * left. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/system.h"
#include "pipeline/journal/journal.h"

static const char magic[8] = {'D', 'P', 'I', 'T', 'O', 'K', 'E', 'N'};

/* ---- Bytes: little-endian -------------------------------------------------------------------- */

static void put(uint8_t *at, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static uint64_t digest(const uint8_t *id, const uint8_t *bytes, size_t n) {
    return dpi_hash(dpi_hash(DPI_HASH_INIT, id, DPI_JOURNAL_ID), bytes, n);
}

bool dpi_journal_is_zero(const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* ---- A record -------------------------------------------------------------------------------- */

enum { SEQUENCE = 0, LAG = 8, TEXT = 12, PLACE = 16, TOKEN = 20, CHECK = 24 };

void dpi_journal_encode(const uint8_t id[DPI_JOURNAL_ID], const dpi_journal_record *r,
                        uint8_t bytes[DPI_JOURNAL_RECORD]) {
    const int64_t lag = r->sequence - r->n_durable;
    put(bytes + SEQUENCE, (uint64_t)r->sequence, 8);
    put(bytes + LAG, lag < UINT32_MAX ? (uint64_t)lag : UINT32_MAX, 4);
    put(bytes + TEXT, (uint32_t)r->text, 4);
    put(bytes + PLACE, (uint32_t)r->place, 4);
    put(bytes + TOKEN, (uint32_t)r->token, 4);
    put(bytes + CHECK, digest(id, bytes, CHECK), 8);
}

bool dpi_journal_decode(const uint8_t id[DPI_JOURNAL_ID], const uint8_t bytes[DPI_JOURNAL_RECORD],
                        dpi_journal_record *r) {
    if (get(bytes + CHECK, 8) != digest(id, bytes, CHECK))
        return false;
    const uint64_t sequence = get(bytes + SEQUENCE, 8), lag = get(bytes + LAG, 4);
    const uint64_t text = get(bytes + TEXT, 4), place = get(bytes + PLACE, 4);
    const uint64_t token = get(bytes + TOKEN, 4);
    if (sequence > INT64_MAX || lag > sequence || text >= DPI_JOURNAL_TEXTS_MAX ||
        place >= DPI_JOURNAL_TOKENS_MAX || token > INT32_MAX)
        return false;
    *r = (dpi_journal_record){.sequence = (int64_t)sequence,
                              .n_durable = (int64_t)(sequence - lag),
                              .text = (int32_t)text,
                              .place = (int32_t)place,
                              .token = (int32_t)token};
    return true;
}

/* ---- The header ------------------------------------------------------------------------------ */

enum { VERSION_AT = 8, RECORD_AT = 12, ID_AT = 16, HEADER_CHECK = 32 };

void dpi_journal_header(const uint8_t id[DPI_JOURNAL_ID], uint8_t bytes[DPI_JOURNAL_HEADER]) {
    memset(bytes, 0, DPI_JOURNAL_HEADER);
    memcpy(bytes, magic, sizeof magic);
    put(bytes + VERSION_AT, DPI_JOURNAL_VERSION, 4);
    put(bytes + RECORD_AT, DPI_JOURNAL_RECORD, 4);
    memcpy(bytes + ID_AT, id, DPI_JOURNAL_ID);
    put(bytes + HEADER_CHECK, digest(id, bytes, HEADER_CHECK), 8);
}

bool dpi_journal_is_header(const uint8_t *bytes) { return memcmp(bytes, magic, sizeof magic) == 0; }

dpi_status dpi_journal_check_header(const dpi_journal *j, const uint8_t bytes[DPI_JOURNAL_HEADER],
                                    dpi_error *err) {
    uint8_t expected[DPI_JOURNAL_HEADER];
    dpi_journal_header(j->id, expected);
    if (!dpi_journal_is_header(bytes))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s/tokens is no file of tokens", j->folder);
    if (get(bytes + VERSION_AT, 4) > DPI_JOURNAL_VERSION)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s/tokens: version %" PRIu64 " of the format, this program knows %d",
                        j->folder, get(bytes + VERSION_AT, 4), DPI_JOURNAL_VERSION);
    if (memcmp(bytes, expected, sizeof expected) != 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s/tokens: its header is damaged, or is that of another job", j->folder);
    return DPI_STATUS_OK;
}

/* ---- All records ----------------------------------------------------------------------------- */

typedef struct scan {
    dpi_journal *journal;
    int64_t n;       /* records so far; from the first zero one on */
    int64_t n_zero;  /* index of the first zero record; -1: none yet */
    int64_t n_after; /* the last one after it that is not zero; -1: none */
} scan;

static dpi_status damaged(const scan *s, const char *what, dpi_error *err) {
    const uint64_t at = DPI_JOURNAL_HEADER + (uint64_t)s->n * DPI_JOURNAL_RECORD;
    return dpi_fail_at(err, DPI_STATUS_FORMAT, at,
                       "%s/tokens is damaged: %s. The job cannot go on: "
                       "a token that was shown may be lost",
                       s->journal->folder, what);
}

/* Behind the first zero record is what the disk may have of tokens that were never shown. One that
 * was written when the disk had the zero record's token says that this token was lost later. */
static dpi_status read_record(scan *s, const uint8_t bytes[DPI_JOURNAL_RECORD], dpi_error *err) {
    dpi_journal *j = s->journal;
    dpi_journal_record r;
    if (dpi_journal_is_zero(bytes, DPI_JOURNAL_RECORD)) {
        s->n_zero = s->n_zero < 0 ? s->n : s->n_zero;
        return DPI_STATUS_OK;
    }
    if (!dpi_journal_decode(j->id, bytes, &r) || r.sequence != s->n)
        return damaged(s, "a record has changed", err);
    if (s->n_zero >= 0) {
        s->n_after = s->n;
        return r.n_durable > s->n_zero ? damaged(s, "a record in front of this one is missing", err)
                                       : DPI_STATUS_OK;
    }
    dpi_status status = dpi_journal_add(j, r.text, r.place, r.token, err);
    return status == DPI_STATUS_ARG ? damaged(s, "the tokens of a text are out of order", err)
                                    : status;
}

/* What was not shown becomes zero, from the last one on: a stop in between leaves a state that is
 * read in the same way. */
static dpi_status clear_after(const scan *s, dpi_error *err) {
    static const uint8_t zeros[DPI_JOURNAL_RECORD];
    const dpi_journal *j = s->journal;
    for (int64_t i = s->n_after; i > s->n_zero; i--)
        if (!dpi_journal_write(j->fd, zeros, sizeof zeros,
                               DPI_JOURNAL_HEADER + i * DPI_JOURNAL_RECORD))
            return dpi_journal_fail(j, "write", "tokens", err);
    return dpi_system_sync(j->fd) ? DPI_STATUS_OK : dpi_journal_fail(j, "write", "tokens", err);
}

static dpi_status read_all(scan *s, uint8_t *block, dpi_error *err) {
    const dpi_journal *j = s->journal;
    int64_t at = DPI_JOURNAL_HEADER;
    for (;;) {
        size_t n = 0;
        ssize_t got = 1;
        while (n < DPI_JOURNAL_GROW && got > 0) {
            got = pread(j->fd, block + n, DPI_JOURNAL_GROW - n, at + (int64_t)n);
            if (got < 0 && errno != EINTR)
                return dpi_journal_fail(j, "read", "tokens", err);
            n += got > 0 ? (size_t)got : 0;
            got = got < 0 ? 1 : got;
        }
        for (size_t k = 0; k + DPI_JOURNAL_RECORD <= n; k += DPI_JOURNAL_RECORD, s->n++)
            DPI_TRY(read_record(s, block + k, err));
        const size_t rest = n % DPI_JOURNAL_RECORD;
        if (!dpi_journal_is_zero(block + n - rest, rest))
            return damaged(s, "its end is missing", err);
        if (n < DPI_JOURNAL_GROW)
            return DPI_STATUS_OK;
        at += DPI_JOURNAL_GROW;
    }
}

dpi_status dpi_journal_recover(dpi_journal *j, dpi_error *err) {
    scan s = {.journal = j, .n_zero = -1, .n_after = -1};
    uint8_t *block = malloc(DPI_JOURNAL_GROW);
    if (!block)
        return dpi_no_memory(err, "a job");
    dpi_status status = read_all(&s, block, err);
    free(block);
    if (status == DPI_STATUS_OK && s.n_zero < 0)
        status = damaged(&s, "its end is missing", err);
    if (status != DPI_STATUS_OK)
        return status;
    j->n_records = s.n_zero;
    j->n_room = s.n;
    return j->read_only ? DPI_STATUS_OK : clear_after(&s, err);
}
