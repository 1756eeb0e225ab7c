/* cli.h - what every command shares: exit codes, error lines, files, models. */
#ifndef DPI_CLI_H
#define DPI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer.h"

/* Exit codes of the program; 128 + signal number after SIGHUP (129), SIGINT (130),
 * SIGUSR1 (138) and SIGTERM (143). */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,  /* while running: memory, randomness, input, output */
    CLI_USAGE = 2,   /* the command line */
    CLI_MODEL = 3,   /* the model file was refused */
    CLI_RECORDS = 4, /* the records were refused */
    CLI_REPORT = 5,  /* the report was refused */
    CLI_BUDGET = 6,  /* the budget of a ledger does not allow it: nothing was read */
    CLI_STOPPED = 7, /* --max-hours are over: the job can go on */
};

/* The name that begins every line on stderr, such as "dpinfer run". Set by main, and by
 * ranks. */
void cli_set_name(const char *name);
const char *cli_own_name(void);

/* Prints "dpinfer run: MESSAGE" to stderr and returns `code`, so that every error path carries
 * a message: return cli_fail(CLI_USAGE, "..."). */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for memory that there is not: return cli_no_memory("%zu tokens", n). */
#define cli_no_memory(...) cli_fail(CLI_FAILED, "no memory for " __VA_ARGS__)
/* The same for an error of the library, with its offset if it has one. What is the machine's
 * failure (memory, open files, randomness) is CLI_FAILED whatever `code` says. */
int cli_fail_library(int code, const dpi_error *err);
/* The same line for something that is not an error. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with options in the place of the fields and parameters of the library that the message
 * names. */
int cli_fail_option(int code, const dpi_error *err);
/* Of which command they are from now on: its bit. Without it: of any. */
void cli_set_command(int bit);
/* The same for what a job of the library has ended with: a wrong option is CLI_USAGE, a budget that
 * does not allow it CLI_BUDGET, a signal its own code, without a message; else CLI_FAILED. */
int cli_fail_status(dpi_status status, const dpi_error *err);

/* Opens the regular file at `path` for reading; -1 on failure, with errno. A FIFO, which could wait
 * for ever, and a device, which need not end, are refused. */
int cli_open_path(const char *path);
/* dpi_private_read of the regular file at `path`, or "-", standard input; of at most `most` bytes.
 * False on failure, with errno. */
bool cli_read_path(const char *path, size_t most, char **data, size_t *n_bytes);
/* After these: why, and `code`, or CLI_FAILED where it is the machine that failed. */
const char *cli_read_reason(void);
int cli_read_code(int code);

/* The text of a file beside the records (dpinfer/textfile.h) at `path`, or "-": *text [*n_bytes],
 * which the caller frees with dpi_private_free. `option` names it in messages. CLI_OK, or an exit
 * code with a message. */
int cli_read_text(const char *option, const char *path, size_t most, char **text, size_t *n_bytes);

/* Whether the text ends so. */
bool cli_ends_in(const char *text, const char *end);

/* Seconds of a clock that only goes forward. */
double cli_now(void);

/* Length of the text without one line end (LF or CRLF) at its end: editors put it there. */
size_t cli_trim_line_end(const char *text, size_t n_bytes);

/* Opens the model and fills in *info (may be NULL); the caller closes it. CLI_OK or an exit
 * code, with a message printed. */
int cli_open_model(const char *path, const dpi_model_options *options, dpi_model **model,
                   dpi_model_info *info);

#endif
