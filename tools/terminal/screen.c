/* screen.c - see screen.h. */
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/terminal/terminal.h"

enum { MIN_WIDTH = 40, MAX_WIDTH = 100, INDENT = 4, LEAST_MARKED = 3 };

/* ---- Words ----------------------------------------------------------------------------------- */

/* ASCII letters in lower case, digits, and all of what is not ASCII; ' ' for what parts words. */
static char word_char(char c) {
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    bool inside = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
    return inside ? c : ' ';
}

bool words_add(words *w, const char *text, size_t n_bytes) {
    char *grown = realloc(w->text, w->n_bytes + n_bytes + 3);
    if (!grown)
        return false;
    w->text = grown;
    if (w->n_bytes == 0)
        grown[w->n_bytes++] = ' ';
    for (size_t i = 0; i <= n_bytes; i++) {
        char c = i < n_bytes ? word_char(text[i]) : ' ';
        if (c != ' ' || grown[w->n_bytes - 1] != ' ')
            grown[w->n_bytes++] = c;
    }
    grown[w->n_bytes] = '\0';
    return true;
}

bool words_have(const words *w, const char *phrase) {
    size_t n = strlen(phrase);
    for (const char *p = w->text; p && (p = strstr(p, phrase)) != NULL; p++)
        if (p[-1] == ' ' && p[n] == ' ')
            return true;
    return false;
}

/* ---- The screen ------------------------------------------------------------------------------ */

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8");
    }
    return false;
}

void screen_init(screen *s) {
    struct winsize size;
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO);
    *s = (screen){.terminal = terminal, .width = 80};
    s->colour = terminal && term && strcmp(term, "dumb") != 0 && !(no_colour && no_colour[0]);
    s->utf8 = terminal && is_utf8();
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        s->width = size.ws_col;
    s->width = s->width < MIN_WIDTH ? MIN_WIDTH : s->width > MAX_WIDTH ? MAX_WIDTH : s->width;
}

const char *screen_style(const screen *s, style wanted) {
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m",   [STYLE_DIM] = "\033[2m",
        [STYLE_RED] = "\033[31m",  [STYLE_GREEN] = "\033[32m", [STYLE_MARK] = "\033[30;43m"};
    return s->colour ? codes[wanted] : "";
}

/* Whether a byte of UTF-8 begins a character. */
static bool begins(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

/* Characters of UTF-8 text: one column each in the texts of the demo. */
static int columns(const char *text, size_t n_bytes) {
    int n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += begins(text[i]);
    return n;
}

static void end_line(screen *s) {
    if (s->column > 0)
        putchar('\n');
    s->column = 0;
}

/* The word without the punctuation around it is [*begin, *end) of s->word, and is to be marked. */
static bool is_marked(const screen *s, size_t *begin, size_t *end) {
    words each = {0};
    bool marked = false;
    for (*begin = 0; *begin < s->n_word && word_char(s->word[*begin]) == ' ';)
        ++*begin;
    for (*end = s->n_word; *end > *begin && word_char(s->word[*end - 1]) == ' ';)
        --*end;
    if (!s->in || *end - *begin < LEAST_MARKED)
        return false;
    if (words_add(&each, s->word + *begin, *end - *begin) && each.n_bytes > 2) {
        each.text[each.n_bytes - 1] = '\0';
        marked = words_have(s->in, each.text + 1) && !words_have(s->not_in, each.text + 1);
    }
    free(each.text);
    return marked;
}

static void put_word(screen *s) {
    size_t begin, end;
    bool marked = is_marked(s, &begin, &end);
    const char *sign = marked && !s->colour ? "*" : "";
    int n = columns(s->word, s->n_word) + 2 * (int)strlen(sign);
    if (n == 0)
        return;
    if (s->column > 0 && s->column + 1 + n > s->width)
        end_line(s);
    if (s->column == 0)
        s->column = printf("  %s|%s ", screen_style(s, STYLE_DIM), screen_style(s, STYLE_PLAIN)) > 0
                        ? INDENT : 0;
    else
        s->column += printf(" ");
    if (marked)
        printf("%.*s%s%s%.*s%s%s%.*s", (int)begin, s->word, sign, screen_style(s, STYLE_MARK),
               (int)(end - begin), s->word + begin, screen_style(s, STYLE_PLAIN), sign,
               (int)(s->n_word - end), s->word + end);
    else
        fwrite(s->word, 1, s->n_word, stdout);
    s->column += n;
    s->n_word = 0;
}

/* Whether a line has no room for more of the word, with a sign on both sides: a model that goes in
 * circles writes a word without an end. */
static bool is_full(const screen *s) {
    return INDENT + columns(s->word, s->n_word) + 2 >= s->width;
}

/* Wraps words as they come. */
static void wrap_text(screen *s, const char *text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        const bool space = text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r';
        if (space || (begins(text[i]) && is_full(s)) || s->n_word == sizeof s->word)
            put_word(s);
        if (text[i] == '\n')
            end_line(s);
        if (!space)
            s->word[s->n_word++] = text[i];
    }
    fflush(stdout);
}

void screen_text(screen *s, const char *text, size_t n_bytes) {
    size_t n;
    char *shown = s->terminal ? terminal_text(text, n_bytes, true, &n) : NULL;
    wrap_text(s, shown ? shown : text, shown ? n : n_bytes);
    free(shown);
}

void screen_end(screen *s) {
    put_word(s);
    end_line(s);
    putchar('\n');
    fflush(stdout);
}

void screen_bar(const screen *s, style wanted, double share, int width) {
    int n = (int)(share * width + 0.5);
    fputs(screen_style(s, wanted), stdout);
    for (int i = 0; i < n; i++)
        fputs(s->utf8 ? "\u2588" : "#", stdout);
    fputs(screen_style(s, STYLE_PLAIN), stdout);
    printf("%*s%4.0f %%\n", width - n, "", 100 * share);
}

void screen_progress(const screen *s, const char *text) {
    if (!s->terminal)
        return;
    printf("\r  %s%s%s", screen_style(s, STYLE_DIM), text, screen_style(s, STYLE_PLAIN));
    fflush(stdout);
}

void screen_clear(const screen *s) {
    if (s->terminal)
        printf("\r%*s\r", s->width - 1, "");
}
