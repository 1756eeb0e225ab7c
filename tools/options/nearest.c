/* nearest.c - edit distances of short words. */
#include "tools/options/nearest.h"

#include <string.h>

enum { MAX_WORD = 40 };

static int least(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment distance; both at most MAX_WORD long. */
static int edits(const char *a, const char *b) {
    int d[3][MAX_WORD + 1]; /* rows i - 2, i - 1 and i, at index modulo 3 */
    int na = (int)strlen(a), nb = (int)strlen(b);
    for (int j = 0; j <= nb; j++)
        d[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *row = d[i % 3], *above = d[(i + 2) % 3], *before = d[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return d[na % 3][nb];
}

const char *nearest_name(const char *word, nearest_name_fn name_at, const void *user) {
    size_t n = strlen(word);
    if (n < 2 || n > MAX_WORD)
        return NULL;
    int best = n < 6 ? 2 : (int)n / 3 + 1; /* a name must have fewer edits than this */
    const char *found = NULL, *name;
    for (int i = 0; (name = name_at(user, i)) != NULL; i++) {
        size_t n_name = strlen(name);
        if (n_name == 0 || n_name > MAX_WORD)
            continue;
        int distance = strncmp(name, word, n) == 0 ? 1 : edits(word, name);
        if (distance < best) {
            best = distance;
            found = name;
        }
    }
    return found;
}
