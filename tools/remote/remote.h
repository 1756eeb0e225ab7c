/* remote.h - requests to a model elsewhere: POST /v1/chat/completions of OpenAI's interface, by
 * libcurl. Several are in flight.
 *
 * What is sent is the prompt that the caller gives, the model's name, a limit and, where the user
 * has chosen one, a temperature; and the key as a header. A retry sends the same bytes and so tells
 * no more. Certificates are verified. Redirects are not followed: the key goes to one host. Without
 * TLS only this machine is talked to. What a server says is not trusted: answers are limited in
 * size and have stars in the place of the key, and its words are shown without control characters.
 * libcurl is loaded by this alone: no other command has code for networks in its process. */
#ifndef DPI_REMOTE_H
#define DPI_REMOTE_H

#include <stddef.h>

#include "tools/terminal/cli.h"

enum { REMOTE_MOST_IN_FLIGHT = 64, REMOTE_KEY_BYTES = 4096 };

typedef struct remote_options {
    const char *url;     /* "https://host[:port][/path]"; without a path that of OpenAI, /v1 */
    const char *model;   /* its name there */
    const char *ca_file; /* certificates that are trusted; NULL: the system's */
    char *key;           /* NULL: none. Private memory, the caller's */
    double temperature;  /* NAN: none is sent, as newer models refuse any but their own */
    const char *limit;   /* how n_tokens is called: "max_completion_tokens" or "max_tokens" */
    int n_tokens;        /* most of an answer */
    int n_in_flight;     /* 1..REMOTE_MOST_IN_FLIGHT */
    int n_retries;       /* after 429, 5xx and failures of the network */
    double timeout;      /* seconds, of one request */
    double retry_wait;   /* seconds before the first retry, twice as many before the next one, and
                            never fewer than the server's Retry-After */
} remote_options;

typedef struct remote remote;

/* CLI_OK, or CLI_USAGE with a message: an address that is none, or one that is not this machine's
 * without TLS. */
int remote_check_url(const char *url);
/* The body of a request, which the caller frees with dpi_private_free; NULL: no memory. */
char *remote_body(const remote_options *options, const char *prompt);

/* Copies nothing: options must outlive it. CLI_OK, or CLI_FAILED with a message. */
int remote_open(const remote_options *options, remote **r);
void remote_close(remote *r); /* wipes; NULL is allowed */

/* Begins a request. There must be fewer than n_in_flight. *place is its own until its answer. */
int remote_send(remote *r, const char *prompt, int *place);
/* Goes on with all requests without waiting. CLI_OK, or CLI_FAILED with a message. */
int remote_advance(remote *r);
/* Waits for the answer of `place`: *text, which the caller frees with dpi_private_free; NULL, with
 * a note on stderr, where the answer has no content. CLI_OK, or a code with a message: what the
 * server said, or why there is no answer. On a signal its code. */
int remote_answer_of(remote *r, int place, char **text);

#endif
