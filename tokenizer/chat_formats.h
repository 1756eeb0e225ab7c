/* chat_formats.h - how each chat format writes a turn, and by which texts a template is known to be
 * of that format. Internal to this folder. */
#ifndef DPI_CHAT_FORMATS_H
#define DPI_CHAT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the markup below: the vocabulary's EOS. */
#define DPI_CHAT_EOS "\x01"

enum {
    DPI_FORMAT_BOS = 1,         /* begins with BOS, whatever the file says of it */
    DPI_FORMAT_SPELLED = 2,     /* markers that are no tokens of the vocabulary are plain text */
    DPI_FORMAT_TRIM_SYSTEM = 4, /* white space off both ends */
    DPI_FORMAT_TRIM_USER = 8,
    DPI_FORMAT_TRIM_SYSTEM_END = 16, /* a system text of nothing else is none */
    DPI_FORMAT_TRIM_JOINED = 32, /* of system and user together */
    DPI_FORMAT_DROPS_SYSTEM = 64,    /* the template ignores a system text */
    DPI_FORMAT_REFUSES_SYSTEM = 128, /* it refuses one */
    DPI_FORMAT_SWITCHES = 256, /* /think and the like in a system text are orders to it */
    DPI_FORMAT_SYSTEM_LAST = 512, /* the system text stands in the last turn of the user */
    /* Of an earlier answer: */
    DPI_FORMAT_TRIM_SAID = 1024,       /* white space off both ends, as TRIM_USER does too */
    DPI_FORMAT_DROPS_THOUGHT = 2048,   /* what stands before the last </think>, and that, off */
    DPI_FORMAT_LINES_OFF_REST = 4096,  /* and then the line ends before what is left */
    DPI_FORMAT_LINES_OFF_SAID = 8192,  /* line ends off its front, thought or not */
};

/* What stands before and after each text. Markers in it are tokens if the vocabulary has them. */
typedef struct dpi_chat_format {
    int32_t flags;
    const char *system[2];
    const char *own_system; /* the system text where none is given; NULL: then no system turn */
    const char *user[2];
    const char *joined; /* in place of user[0] behind a system text; NULL: the same */
    const char *said[2]; /* an earlier answer, before the user's next text */
    const char *answer;
} dpi_chat_format;

/* NULL: no format has that number (AUTO, UNKNOWN). */
const dpi_chat_format *dpi_chat_format_of(int32_t chat);

/* The dpi_chat of a template, UNKNOWN if it is none of the known ones; *nearest is then the one
 * that it looks most like, NONE if it looks like none, else the same. */
int32_t dpi_chat_recognise(const char *template_text, size_t n_bytes, int32_t *nearest);

#endif
