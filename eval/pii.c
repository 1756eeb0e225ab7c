/* pii.c - see pii.h. */
#include "eval/pii.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

/* Something that was found, as a hash of its letters and digits. */
typedef struct finding {
    uint64_t hash;
    int32_t kind, text;
} finding;

/* PCRE2's: regcomp(3) of the GNU C library frees twice where it gets no memory. */
typedef struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
} pattern;

typedef struct findings {
    finding *at; /* private memory */
    size_t n, room;
    int32_t text; /* that is read now */
    bool failed;
} findings;

enum { N_PATTERNS = EVAL_PII_KINDS };

#define DAY "(0?[1-9]|[12][0-9]|3[01])"
#define MONTH "(0?[1-9]|1[0-2])"
#define MONTH_NAME                                                                            \
    "(January|February|March|April|May|June|July|August|September|October|November|December|" \
    "(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\\.?)"
#define DAY_TH DAY "(st|nd|rd|th|\\.)?"
#define CLOCK "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?Z?)?"

/* In the order in which a part of a text is one of them: each takes its part away from the next. */
static const struct {
    int32_t kind;
    const char *pattern;
} patterns[N_PATTERNS] = {
    {EVAL_PII_EMAIL, "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+"},
    {EVAL_PII_IBAN, "[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,3})?"},
    /* 2024-03-12, 12.3.24, 03/12/24: day first or month first, no part of a longer number; 12th of
     * March 2024; March 12, 2024. */
    {EVAL_PII_DATE,
     "(?<![0-9][./-])((19|20)[0-9]{2}(?<y>[/-])" MONTH "\\k<y>" DAY CLOCK
     "|(" DAY "(?<d>[./-])" MONTH "\\k<d>|" MONTH "(?<m>[./-])" DAY "\\k<m>)"
     "((19|20)[0-9]{2}|[0-9]{2}))(?![0-9]|[./-][0-9])"
     "|" DAY_TH "( of)? " MONTH_NAME "(,? (19|20)[0-9]{2})?"
     "|" MONTH_NAME " " DAY_TH "(,? (19|20)[0-9]{2})?(?![0-9])"},
    /* +44 20 7946 0958, (555) 123-4567, 555.123.4567, 030/1234567; not 2019-2020. */
    {EVAL_PII_PHONE, "(?!(19|20)[0-9]{2}-(19|20)[0-9]{2}\\b)"
                     "(\\+[0-9]{1,3}[ -]?)?(\\([0-9]{1,5}\\)[ -]?)?"
                     "[0-9]{2,5}([ /-][0-9]{2,8}){1,4}|\\+[0-9]{7,14}|"
                     "[0-9]{3}\\.[0-9]{3}\\.[0-9]{4}(?!\\.?[0-9])"},
    {EVAL_PII_DIGITS, "[0-9]{6,}"},
    /* A word, the group: one with a capital. */
    {EVAL_PII_NAME, "(\\p{Lu}[\\p{L}\\p{M}']+)|\\p{L}[\\p{L}\\p{M}']*"},
};

/* The same whatever stands between its letters and digits, and whatever their case. */
static uint64_t hash_of(const char *text, size_t n_bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n_bytes; i++)
        if (isalnum((unsigned char)text[i]) || (text[i] & 0x80))
            hash = (hash ^ (uint64_t)tolower((unsigned char)text[i])) * 0x100000001b3u;
    return hash;
}

static void put(findings *f, int32_t kind, const char *text, size_t n_bytes) {
    f->failed |= !dpi_private_grow(&f->at, &f->room, f->n + 1, sizeof *f->at);
    if (f->failed)
        return;
    f->at[f->n++] = (finding){hash_of(text, n_bytes), kind, f->text};
}

/* ISO 13616: the first four characters to the end, letters as numbers from 10, mod 97 is 1. */
static bool is_iban(const char *text, size_t n_bytes) {
    char sign[40];
    size_t n = 0;
    for (size_t i = 0; i < n_bytes && n < sizeof sign; i++)
        if (text[i] != ' ')
            sign[n++] = text[i];
    int32_t rest = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = sign[(i + 4) % n];
        rest = isdigit((unsigned char)c) ? (rest * 10 + c - '0') % 97
                                         : (rest * 100 + c - 'A' + 10) % 97;
    }
    return n >= 15 && rest == 1;
}

/* As long as a telephone number with its area is (E.164: at most 15). */
static bool is_phone(const char *text, size_t n_bytes) {
    int32_t n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += isdigit((unsigned char)text[i]) != 0;
    return n >= 7 && n <= 15;
}

static bool is_inside_word(const char *text, size_t at) {
    return at > 0 && (isalnum((unsigned char)text[at - 1]) || (text[at - 1] & 0x80));
}

/* text is a copy: what is found becomes spaces. */
static void find_pattern(findings *f, const pattern *p, int32_t kind, char *text, size_t n_bytes) {
    const size_t *m = pcre2_get_ovector_pointer(p->match);
    int found = 0;
    for (size_t at = 0; at < n_bytes;) {
        found = pcre2_match(p->code, (PCRE2_SPTR)text, n_bytes, at, 0, p->match, NULL);
        if (found < 0)
            break;
        const size_t begin = m[0], end = m[1];
        const bool is_whole = !is_inside_word(text, begin) && !isalnum((unsigned char)text[end]);
        const bool counts = is_whole &&
                            (kind != EVAL_PII_IBAN || is_iban(text + begin, end - begin)) &&
                            (kind != EVAL_PII_PHONE || is_phone(text + begin, end - begin));
        if (counts) {
            put(f, kind, text + begin, end - begin);
            memset(text + begin, ' ', end - begin);
        }
        /* Of a number that is too long for a telephone no part is one. */
        at = counts || (is_whole && kind == EVAL_PII_PHONE) ? end : begin + 1;
    }
    f->failed |= found < 0 && found != PCRE2_ERROR_NOMATCH;
}

/* Words with a capital behind a word without a stop. */
static void find_names(findings *f, const pattern *p, const char *text, size_t n_bytes) {
    const size_t *m = pcre2_get_ovector_pointer(p->match);
    bool inside = false;
    int found = 0;
    for (size_t at = 0; at < n_bytes;) {
        found = pcre2_match(p->code, (PCRE2_SPTR)text, n_bytes, at, 0, p->match, NULL);
        if (found < 0)
            break;
        for (size_t i = at; i < m[0]; i++)
            inside &= strchr(".!?:\n\"", text[i]) == NULL;
        if (inside && found > 1) /* the group is there */
            put(f, EVAL_PII_NAME, text + m[0], m[1] - m[0]);
        inside = true;
        at = m[1];
    }
    f->failed |= found < 0 && found != PCRE2_ERROR_NOMATCH;
}

static int compare(const void *a, const void *b) {
    const finding *x = a, *y = b;
    return x->kind != y->kind ? x->kind - y->kind
                              : (x->hash > y->hash) - (x->hash < y->hash);
}

static dpi_status find_all(const eval_texts *texts, const pattern *made, findings *f,
                           dpi_error *err) {
    for (int32_t t = 0; t < texts->n && !f->failed; t++) {
        const eval_text *x = &texts->at[t];
        char *copy = dpi_private_malloc(x->n_bytes + 1);
        if (!copy) {
            f->failed = true;
            break;
        }
        memcpy(copy, x->text, x->n_bytes + 1);
        f->text = t;
        const size_t n_bytes = strlen(copy); /* up to a NUL */
        for (int32_t i = 0; i < EVAL_PII_NAME; i++)
            find_pattern(f, &made[i], patterns[i].kind, copy, n_bytes);
        find_names(f, &made[EVAL_PII_NAME], copy, n_bytes);
        dpi_private_free(copy);
    }
    if (f->n > 0)
        qsort(f->at, f->n, sizeof *f->at, compare);
    return f->failed ? eval_no_memory(err, "what names a person") : DPI_STATUS_OK;
}

static bool has(const findings *f, const finding *x) {
    return f->n > 0 && bsearch(x, f->at, f->n, sizeof *x, compare) != NULL;
}

static void count(const findings *own, const findings *train, const findings *other,
                  eval_pii *pii, int32_t *each, int32_t n_texts) {
    for (size_t i = 0; i < own->n; i++) {
        const finding *x = &own->at[i];
        const bool is_name = x->kind == EVAL_PII_NAME, copied = has(train, x);
        const bool is_new = i == 0 || compare(x, x - 1) != 0;
        if (is_name && (!copied || has(other, x)))
            continue;
        pii->n_found[x->kind]++;
        if (each)
            each[(int64_t)x->kind * n_texts + x->text]++;
        pii->n_copied[x->kind] += is_new && copied;
    }
}

static void free_patterns(pattern *made) {
    for (int32_t i = 0; i < N_PATTERNS; i++) {
        pcre2_match_data_free(made[i].match);
        pcre2_code_free(made[i].code);
    }
}

static dpi_status make_patterns(pattern *made, dpi_error *err) {
    for (int32_t i = 0; i < N_PATTERNS; i++) {
        int code;
        size_t offset;
        /* Bytes, but for names: letters of all scripts, between bytes that are no UTF-8. */
        const uint32_t options =
            i == EVAL_PII_NAME ? PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF : 0;
        made[i].code = pcre2_compile((PCRE2_SPTR)patterns[i].pattern, PCRE2_ZERO_TERMINATED,
                                     options, &code, &offset, NULL);
        made[i].match = pcre2_match_data_create(2, NULL);
        if (!made[i].code || !made[i].match)
            return eval_no_memory(err, "patterns");
    }
    return DPI_STATUS_OK;
}

dpi_status eval_find_pii(const eval_texts *texts, const eval_texts *train, const eval_texts *other,
                         eval_pii *pii, int32_t *each, dpi_error *err) {
    const eval_texts *const sets[] = {texts, train, other};
    findings found[3] = {0};
    pattern made[N_PATTERNS] = {{0}};
    *pii = (eval_pii){0};
    if (each)
        memset(each, 0, EVAL_PII_KINDS * (size_t)texts->n * sizeof *each);
    dpi_status status = make_patterns(made, err);
    for (int32_t i = 0; i < 3 && status == DPI_STATUS_OK; i++)
        if (sets[i])
            status = find_all(sets[i], made, &found[i], err);
    if (status == DPI_STATUS_OK)
        count(&found[0], &found[1], &found[2], pii, each, texts->n);
    for (int32_t i = 0; i < 3; i++)
        dpi_private_free(found[i].at);
    free_patterns(made);
    return status;
}
