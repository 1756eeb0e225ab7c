/* facts.h - an ordered list of named values that is shown to people as lines of text and to
 * programs as one JSON object, so that the two cannot differ. jansson must allocate with
 * dpi_private_malloc and dpi_private_free (main sees to it). */
#ifndef DPI_FACTS_H
#define DPI_FACTS_H

#include <jansson.h>
#include <stdio.h>

#include "tools/terminal/cli.h"

typedef struct facts {
    json_t *json; /* object */
    char *text;   /* lines "  label  value" */
    size_t n_text;
    FILE *stream; /* writes to text */
    bool failed;  /* out of memory */
} facts;

void facts_init(facts *f);
void facts_free(facts *f);

/* Each takes the JSON key and the label of the text line; either may be NULL to leave the value
 * out of that form. */
void facts_int(facts *f, const char *key, const char *label, int64_t value);
void facts_real(facts *f, const char *key, const char *label, double value);
/* An upper bound: the text is rounded up, never to nearest. */
void facts_bound(facts *f, const char *key, const char *label, double value);
void facts_bool(facts *f, const char *key, const char *label, bool value);
void facts_text(facts *f, const char *key, const char *label, const char *value);
/* Only a line of text. */
void facts_line(facts *f, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An empty line in the text. */
void facts_gap(facts *f);
/* A JSON string of `value`, whose bytes need not be UTF-8. NULL if out of memory. */
json_t *facts_string(const char *value);
/* JSON only; takes the reference. */
void facts_json(facts *f, const char *key, json_t *value);

/* As its type says; a fact without a label is for programs alone. */
void facts_add(facts *f, const dpi_fact *fact);

/* Writes the text, or the object and a newline. CLI_OK, or CLI_FAILED with a message. Whether
 * the stream took it is for its owner to check. */
int facts_print(facts *f, bool as_json, FILE *stream);
/* The object as a string that the caller frees with dpi_private_free, NULL if out of memory. */
char *facts_dump(facts *f);

#endif
