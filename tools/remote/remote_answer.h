/* remote_answer.h - what a server that is not trusted has said. */
#ifndef DPI_REMOTE_ANSWER_H
#define DPI_REMOTE_ANSWER_H

#include <stddef.h>

enum { REMOTE_WORDS_BYTES = 320 };

/* Where `key` (NULL: none) stands in what a server says, as it is or with escapes of JSON, stars
 * take its place. */

/* The text of a whole answer [n_bytes]: *text, which the caller frees with dpi_private_free. It is
 * NULL where an answer has none, with a note on stderr. CLI_OK, or CLI_FAILED with a message. */
int remote_answer(const char *answer, size_t n_bytes, const char *key, char **text);

/* The words of an error, for a message: the message of a JSON object, or the beginning of what it
 * is, printable ASCII alone. */
void remote_words(const char *answer, size_t n_bytes, const char *key,
                  char words[REMOTE_WORDS_BYTES]);

#endif
