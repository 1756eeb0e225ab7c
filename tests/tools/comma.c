/* comma.c - to be loaded before a program: it is in the user's locale when main begins, as programs
 * are that call setlocale, or load a library that does. */
#include <locale.h>
#include <stdio.h>

__attribute__((constructor)) static void begin(void) {
    char number[16];
    setlocale(LC_ALL, "");
    snprintf(number, sizeof number, "%.1f", 4.5);
    if (number[1] != ',')
        fprintf(stderr, "comma: the locale has no comma\n");
}
