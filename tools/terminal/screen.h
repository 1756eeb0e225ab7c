/* screen.h - text for people on stdout: colours on a terminal, wrapped paragraphs, marked words,
 * bars. */
#ifndef DPI_TOOLS_SCREEN_H
#define DPI_TOOLS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* ---- Words ----------------------------------------------------------------------------------- */

/* Words in lower case with a space before and after each: " take two tablets ". What is no letter
 * or digit parts words. Free `text` with free. */
typedef struct words {
    char *text; /* NULL: none */
    size_t n_bytes;
} words;

/* Adds the words of a text. false: out of memory. */
bool words_add(words *w, const char *text, size_t n_bytes);
/* `phrase` is some words with single spaces between them. */
bool words_have(const words *w, const char *phrase);

/* ---- The screen ------------------------------------------------------------------------------ */

enum { SCREEN_WORD = 256 };

typedef struct screen {
    bool terminal, colour, utf8;
    int width;
    const words *in, *not_in; /* words that both are in the first and not in the second are marked;
                                 NULL: none are */
    /* The paragraph that is being written word by word. */
    int column; /* 0: no line is open */
    char word[SCREEN_WORD];
    size_t n_word;
} screen;

/* Looks at stdout and at the environment: TERM, NO_COLOR, COLUMNS by the terminal, the locale. */
void screen_init(screen *s);

typedef enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_GREEN, STYLE_MARK } style;
/* "" without colours. */
const char *screen_style(const screen *s, style wanted);

/* Part of a paragraph: words are wrapped as they come, marked ones in colour or *so*. */
void screen_text(screen *s, const char *text, size_t n_bytes);
/* Ends the paragraph with an empty line. */
void screen_end(screen *s);

/* A share in [0, 1] as a bar of `width` columns, and in percent. */
void screen_bar(const screen *s, style wanted, double share, int width);

/* A line that the next one overwrites, on a terminal alone; screen_clear ends it. */
void screen_progress(const screen *s, const char *text);
void screen_clear(const screen *s);

#endif
