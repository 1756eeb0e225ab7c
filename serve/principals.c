/* principals.c - see principals.h. */
#include "serve/principals.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct principal {
    char name[PRINCIPAL_NAME_MAX + 1];
    uint8_t hash[SHA256_DIGEST_SIZE];
} principal;

struct principals {
    int n;
    principal v[PRINCIPALS_MAX];
};

static dpi_status fail_line(dpi_error *err, const char *name, int line, const char *what) {
    *err = (dpi_error){.code = DPI_STATUS_FORMAT, .offset = UINT64_MAX};
    snprintf(err->message, sizeof err->message, "%.200s line %d: %s", name, line, what);
    return DPI_STATUS_FORMAT;
}

static dpi_status fail(dpi_error *err, dpi_status code, const char *name, const char *what) {
    *err = (dpi_error){.code = (int32_t)code, .offset = UINT64_MAX};
    snprintf(err->message, sizeof err->message, "%.200s: %s", name, what);
    return code;
}

/* ---- The file -------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t n) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    for (size_t i = 0; i < n; i++)
        if (!memchr(allowed, text[i], sizeof allowed - 1))
            return false;
    return n > 0 && n <= PRINCIPAL_NAME_MAX;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hash(const char *text, size_t n, uint8_t hash[SHA256_DIGEST_SIZE]) {
    if (n != 2 * SHA256_DIGEST_SIZE)
        return false;
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        hash[i] = (uint8_t)(16 * high + low);
    }
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* A line [n], without its end. What is wrong with it; NULL: nothing. */
static const char *add_line(principals *p, const char *line, size_t n) {
    size_t n_name = 0;
    while (n > 0 && is_blank(line[n - 1]))
        n--;
    if (n == 0 || line[0] == '#')
        return NULL;
    if (p->n == PRINCIPALS_MAX)
        return "there are more than 1024 principals";
    while (n_name < n && !is_blank(line[n_name]))
        n_name++;
    size_t at = n_name;
    while (at < n && is_blank(line[at]))
        at++;
    principal *new = &p->v[p->n];
    if (!is_name(line, n_name) || !read_hash(line + at, n - at, new->hash))
        return "allowed are a name of 1..63 letters, digits, '.', '_' and '-', and a SHA-256 in 64 "
               "hexadecimal digits";
    memcpy(new->name, line, n_name);
    new->name[n_name] = '\0';
    for (int i = 0; i < p->n; i++) {
        if (strcmp(p->v[i].name, new->name) == 0)
            return "the name is there already";
        if (memeql_sec(p->v[i].hash, new->hash, SHA256_DIGEST_SIZE))
            return "the hash is there already";
    }
    p->n++;
    return NULL;
}

dpi_status principals_parse(const char *name, const char *text, size_t n_bytes, principals **made,
                            dpi_error *err) {
    principals *p = calloc(1, sizeof *p);
    *made = NULL;
    if (!p)
        return fail(err, DPI_STATUS_MEMORY, name, "out of memory");
    int line = 1;
    for (size_t at = 0; at < n_bytes; line++) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        const size_t n = end ? (size_t)(end - (text + at)) : n_bytes - at;
        const char *wrong = add_line(p, text + at, n);
        if (wrong) {
            principals_free(p);
            return fail_line(err, name, line, wrong);
        }
        at += n + 1;
    }
    if (p->n == 0) {
        principals_free(p);
        return fail(err, DPI_STATUS_FORMAT, name, "there is no principal in it");
    }
    *made = p;
    return DPI_STATUS_OK;
}

void principals_free(principals *p) { free(p); }

/* ---- Requests -------------------------------------------------------------------------------- */

const char *principals_find(const principals *p, const char *authorization) {
    struct sha256_ctx sha;
    uint8_t hash[SHA256_DIGEST_SIZE];
    int found = -1;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return NULL;
    sha256_init(&sha);
    sha256_update(&sha, strlen(authorization + 7), (const uint8_t *)authorization + 7);
    sha256_digest(&sha, sizeof hash, hash);
    for (int i = 0; i < p->n; i++) { /* all of them: time does not tell which */
        const int same = -memeql_sec(p->v[i].hash, hash, sizeof hash);
        found = (found & ~same) | (i & same);
    }
    return found < 0 ? NULL : p->v[found].name;
}
