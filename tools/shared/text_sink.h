/* text_sink.h - texts as a command writes them, whole or token by token: lines of text with a blank
 * one between two texts, a JSON object on each line, or rows of CSV (RFC 4180: a header row, quoted
 * texts, lines that end with a carriage return and a line feed). All bytes of a text may be private
 * until they are written. */
#ifndef DPI_TEXT_SINK_H
#define DPI_TEXT_SINK_H

#include "dpinfer/run.h"
#include "tools/terminal/output.h"

typedef enum text_form { TEXT_LINES, TEXT_JSONL, TEXT_CSV } text_form;

/* What a name says, where it is not JSONL: CSV or lines. NULL: lines. */
text_form text_form_of(bool jsonl, const char *path);

enum { TEXT_LABEL_BYTES = 160 };

typedef struct text_sink {
    output *out;
    text_form form;
    bool screen;     /* out is a terminal: what would steer it is shown, and not sent */
    bool goes_on;    /* lines of text: nothing ends one that a signal has cut, as it goes on */
    bool counts;     /* each object or row has the number of tokens, and whether the text ended */
    bool is_private; /* what rows and objects say */
    char label[TEXT_LABEL_BYTES]; /* why they are not private; "": not said */
    void (*written)(void *user, const char *bytes, size_t n_bytes); /* NULL: nobody asks */
    void *user;
    int64_t n_bytes; /* written, but for what stands between two texts */
    int32_t n_texts; /* begun */
    bool open;       /* a text is */
    bool line_open;  /* the last byte of a text was not a line feed */
    char tail[OUTPUT_TAIL_BYTES]; /* what ends the text as it is now */
    bool is_whole;   /* it is gathered before it is written */
    char *whole;     /* [n_whole], with room for more; NULL: nothing */
    size_t n_whole, room;
} text_sink;

/* What stands in an object or a row before its text. {.index = i}: its number alone. */
typedef struct text_head {
    int32_t index;
    const char *label; /* [n_label]; NULL: the text has none. Either all texts have one or none */
    size_t n_label;
    const char *attributes; /* JSON, of an object; NULL: none */
} text_head;

/* A sink into `out`, which is open and outlives it; claim: whose label is told, NULL: none's. The
 * caller then sets what differs from zero. */
void text_sink_open(text_sink *s, output *out, text_form form, const dpi_run *claim);

/* CLI_OK, or CLI_FAILED with a message. begin; add, any number of times, with the tokens drawn so
 * far; end. Whenever a signal ends the program, the text ends as it is then. */
int text_sink_begin(text_sink *s, const text_head *head);
int text_sink_add(text_sink *s, const char *text, size_t n_bytes, int32_t n_drawn, bool ended);
int text_sink_end(text_sink *s);
/* All three, in one part: where it cannot be written, nothing of the text is there. */
int text_sink_put(text_sink *s, const text_head *head, const char *text, size_t n_bytes,
                  int32_t n_drawn, bool ended);

#endif
