/* unicode.c - classes of characters, white space at the ends of a text, normal form C (Unicode
 * Standard Annex 15). */
#include "tokenizer/unicode.h"

#include <stdlib.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"

#include "tokenizer/unicode_classes.def"
#include "tokenizer/unicode_nfc.def"

#define LENGTH(table) (sizeof(table) / sizeof(table)[0])

/* The last row (of `stride` numbers, the first of which rise) that begins with at most `key`; the
 * first if there is none. */
static const uint32_t *last_row(const uint32_t *table, size_t n_rows, size_t stride, uint32_t key) {
    size_t low = 0;
    for (size_t high = n_rows; high - low > 1;) {
        const size_t mid = low + (high - low) / 2;
        if (table[mid * stride] <= key)
            low = mid;
        else
            high = mid;
    }
    return table + low * stride;
}

dpi_char_class dpi_char_class_of(uint32_t code) {
    return (dpi_char_class)(*last_row(classes, LENGTH(classes), 1, code << 4 | 0xf) & 0xf);
}

uint32_t dpi_char_next(const char *text, size_t *n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    *n_bytes = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (*n_bytes == 1)
        return s[0];
    uint32_t code = s[0] & (0x7fu >> *n_bytes);
    for (size_t i = 1; i < *n_bytes; i++)
        code = code << 6 | (s[i] & 0x3f);
    return code;
}

/* ---- White space at the ends ----------------------------------------------------------------- */

size_t dpi_space_bytes(const char *text, size_t n_bytes) {
    size_t n = n_bytes > 0 ? dpi_utf8_bytes(text, n_bytes) : 0;
    if (n <= 1)
        return n == 1 && (dpi_is_space(*text) || (*text >= 0x1c && *text <= 0x1f));
    return dpi_char_class_of(dpi_char_next(text, &n)) == DPI_CHAR_SPACE ? n : 0;
}

void dpi_trim_end(const char *text, size_t *n_bytes) {
    for (;;) {
        size_t n = 1;
        while (n < 4 && n < *n_bytes && ((unsigned char)text[*n_bytes - n] & 0xc0) == 0x80)
            n++;
        if (n > *n_bytes || dpi_space_bytes(text + *n_bytes - n, n) != n)
            return;
        *n_bytes -= n;
    }
}

void dpi_trim(const char **text, size_t *n_bytes) {
    dpi_trim_end(*text, n_bytes);
    for (size_t n; (n = dpi_space_bytes(*text, *n_bytes)) > 0; *text += n)
        *n_bytes -= n;
}

/* ---- Normal form C --------------------------------------------------------------------------- */

/* Hangul syllables are arithmetic. */
enum {
    FIRST_SYLLABLE = 0xac00, N_SYLLABLES = 11172,
    FIRST_L = 0x1100, N_L = 19, FIRST_V = 0x1161, N_V = 21, BEFORE_T = 0x11a7, N_T = 28,
    FIRST_COMBINING = 0xcc, /* the first byte of U+0300: what comes before is composed */
    CODE_BITS = 21, CLASS_SHIFT = 56,
};

/* Each code point with its combining class above it, and in between its place, so that sorting
 * keeps the order of equals. */
typedef struct letters {
    uint64_t *items;
    size_t n;
} letters;

static uint32_t code_of(uint64_t item) { return (uint32_t)(item & ((1u << CODE_BITS) - 1)); }
static uint32_t combining_of(uint64_t item) { return (uint32_t)(item >> CLASS_SHIFT); }

static void put(letters *l, uint32_t code) {
    const uint64_t class = *last_row(combining, LENGTH(combining), 1, code << 8 | 0xff) & 0xff;
    l->items[l->n] = class << CLASS_SHIFT | (uint64_t)l->n << CODE_BITS | code;
    l->n++;
}

/* At most four code points. */
static void put_decomposed(letters *l, uint32_t code) {
    const uint32_t syllable = code - FIRST_SYLLABLE;
    if (syllable < N_SYLLABLES) {
        put(l, FIRST_L + syllable / (N_V * N_T));
        put(l, FIRST_V + syllable / N_T % N_V);
        if (syllable % N_T > 0)
            put(l, BEFORE_T + syllable % N_T);
        return;
    }
    const uint32_t *row = last_row(singletons[0], LENGTH(singletons), 2, code);
    if (row[0] == code) {
        put_decomposed(l, row[1]);
        return;
    }
    row = last_row(decompositions[0], LENGTH(decompositions), 3, code);
    if (row[0] == code) {
        put_decomposed(l, row[1]);
        put_decomposed(l, row[2]);
        return;
    }
    put(l, code);
}

/* The code point that two make, 0 if none. */
static uint32_t composed(uint32_t a, uint32_t b) {
    if (a - FIRST_L < N_L && b - FIRST_V < N_V)
        return FIRST_SYLLABLE + ((a - FIRST_L) * N_V + (b - FIRST_V)) * N_T;
    if (a - FIRST_SYLLABLE < N_SYLLABLES && (a - FIRST_SYLLABLE) % N_T == 0 &&
        b - BEFORE_T - 1 < N_T - 1)
        return a + (b - BEFORE_T);
    for (size_t low = 0, high = LENGTH(compositions); low < high;) {
        const size_t mid = low + (high - low) / 2;
        const uint32_t *row = decompositions[compositions[mid]];
        if (row[1] == a && row[2] == b)
            return row[0];
        if (row[1] < a || (row[1] == a && row[2] < b))
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

static int compare_items(const void *x, const void *y) {
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Marks between two letters in the order of their classes. */
static void sort_marks(letters *l) {
    for (size_t i = 0, end; i < l->n; i = end) {
        for (end = i; end < l->n && combining_of(l->items[end]) > 0;)
            end++;
        if (end > i + 1)
            qsort(l->items + i, end - i, sizeof *l->items, compare_items);
        end += end == i;
    }
}

static void compose(letters *l) {
    size_t n = 0, first = 0;
    bool begun = false;
    for (size_t i = 0; i < l->n; i++) {
        const uint64_t item = l->items[i];
        const uint32_t class = combining_of(item);
        /* A mark is out of reach behind one of its own class or a higher one. */
        if (begun && (n == first + 1 || combining_of(l->items[n - 1]) < class)) {
            const uint32_t both = composed(code_of(l->items[first]), code_of(item));
            if (both > 0) {
                l->items[first] = both;
                continue;
            }
        }
        if (class == 0) {
            begun = true;
            first = n;
        }
        l->items[n++] = item;
    }
    l->n = n;
}

static bool is_composed(const char *text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++)
        if ((unsigned char)text[i] >= FIRST_COMBINING)
            return false;
    return true;
}

dpi_status dpi_nfc(const char *text, size_t n_bytes, char **out, size_t *n_out, dpi_error *err) {
    *out = NULL;
    if (is_composed(text, n_bytes))
        return DPI_STATUS_OK;
    const size_t capacity = 2 * n_bytes; /* no character has more than 3 parts for its 2 bytes */
    letters l = {dpi_calloc(capacity, sizeof *l.items), 0};
    char *composed_text = dpi_calloc(3 * n_bytes, 1);
    dpi_status status = DPI_STATUS_OK;
    if (!l.items || !composed_text) {
        dpi_wipe_free(composed_text, 3 * n_bytes);
        status = dpi_no_memory(err, "the words of a text");
    } else {
        for (size_t i = 0, n; i < n_bytes; i += n)
            put_decomposed(&l, dpi_char_next(text + i, &n));
        sort_marks(&l);
        compose(&l);
        size_t used = 0;
        for (size_t i = 0; i < l.n; i++) {
            char bytes[4];
            const size_t n = dpi_utf8_put(code_of(l.items[i]), bytes);
            memcpy(composed_text + used, bytes, n);
            used += n;
        }
        *out = composed_text;
        *n_out = used;
    }
    dpi_wipe_free(l.items, capacity * sizeof *l.items);
    return status;
}
