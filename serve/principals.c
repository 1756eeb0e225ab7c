/* principals.c - see principals.h. */
#include "serve/principals.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/number.h"
#include "serve/refusal.h"

typedef struct principal {
    char name[PRINCIPAL_NAME_MAX + 1];
    uint8_t hash[SHA256_DIGEST_SIZE];
} principal;

typedef struct share {
    int principal;
    char dataset[PRINCIPAL_NAME_MAX + 1];
    double part;
} share;

struct principals {
    int n, n_shares;
    principal v[PRINCIPALS_MAX];
    share shares[SHARES_MAX];
};

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

/* DATASET=PART, [n] bytes, of the next principal. What is wrong with it; NULL: nothing. */
static const char *add_share(principals *p, const char *text, size_t n) {
    const char *equals = memchr(text, '=', n);
    const size_t n_name = equals ? (size_t)(equals - text) : 0, n_part = n - n_name - 1;
    char part[24];
    if (!is_name(text, n_name) || n_part == 0 || n_part >= sizeof part)
        return "allowed is a share DATASET=PART with 0 <= PART <= 1";
    if (p->n_shares == SHARES_MAX)
        return "there are more than 8192 shares";
    memcpy(part, equals + 1, n_part);
    part[n_part] = '\0';
    share *new = &p->shares[p->n_shares];
    *new = (share){.principal = p->n};
    const char *end = number_read(part, &new->part);
    if (!end || *end != '\0' || !(new->part >= 0 && new->part <= 1))
        return "allowed is a share DATASET=PART with 0 <= PART <= 1";
    memcpy(new->dataset, text, n_name);
    for (int i = 0; i < p->n_shares; i++)
        if (p->shares[i].principal == p->n && strcmp(p->shares[i].dataset, new->dataset) == 0)
            return "the share is there already";
    p->n_shares++;
    return NULL;
}

/* The next word of a line [n] from *at on; n_word 0: there is none. */
static const char *next_word(const char *line, size_t n, size_t *at, size_t *n_word) {
    while (*at < n && is_blank(line[*at]))
        (*at)++;
    const size_t first = *at;
    while (*at < n && !is_blank(line[*at]))
        (*at)++;
    *n_word = *at - first;
    return line + first;
}

/* A line [n], without its end. What is wrong with it; NULL: nothing. */
static const char *add_line(principals *p, const char *line, size_t n) {
    size_t n_name = 0;
    while (n > 0 && is_blank(line[n - 1]))
        n--;
    if (n == 0 || line[0] == '#')
        return NULL;
    if (p->n == PRINCIPALS_MAX)
        return "there are more than 1024 principals";
    size_t at = 0, n_hash, n_share;
    const char *name = next_word(line, n, &at, &n_name);
    const char *hash = next_word(line, n, &at, &n_hash);
    principal *new = &p->v[p->n];
    if (is_blank(line[0]) || !is_name(name, n_name) || !read_hash(hash, n_hash, new->hash))
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
    const char *wrong = NULL, *word = next_word(line, n, &at, &n_share);
    for (; n_share > 0 && !wrong; word = next_word(line, n, &at, &n_share))
        wrong = add_share(p, word, n_share);
    p->n++;
    return wrong;
}

dpi_status principals_parse(const char *name, const char *text, size_t n_bytes, principals **made,
                            dpi_error *err) {
    principals *p = calloc(1, sizeof *p);
    *made = NULL;
    if (!p)
        return fail_with(err, DPI_STATUS_MEMORY, "%.200s: out of memory", name);
    int line = 1;
    for (size_t at = 0; at < n_bytes; line++) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        const size_t n = end ? (size_t)(end - (text + at)) : n_bytes - at;
        const char *wrong = add_line(p, text + at, n);
        if (wrong) {
            principals_free(p);
            return fail_with(err, DPI_STATUS_FORMAT, "%.200s line %d: %s", name, line, wrong);
        }
        at += n + 1;
    }
    if (p->n == 0) {
        principals_free(p);
        return fail_with(err, DPI_STATUS_FORMAT, "%.200s: there is no principal in it", name);
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

/* ---- Shares ---------------------------------------------------------------------------------- */

double principals_share(const principals *p, const char *name, const char *dataset) {
    for (int i = 0; p && i < p->n_shares; i++)
        if (strcmp(p->v[p->shares[i].principal].name, name) == 0 &&
            strcmp(p->shares[i].dataset, dataset) == 0)
            return p->shares[i].part;
    return -1;
}

bool principals_share_at(const principals *p, int index, const char **name, const char **dataset) {
    if (!p || index >= p->n_shares)
        return false;
    *name = p->v[p->shares[index].principal].name;
    *dataset = p->shares[index].dataset;
    return true;
}
