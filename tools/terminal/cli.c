/* cli.c - what every command shares. */
#include "tools/terminal/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/terminal/terminal.h"

static const char *cli_name = "dpinfer";

void cli_set_name(const char *name) { cli_name = name; }

const char *cli_own_name(void) { return cli_name; }

/* One line: what a message quotes cannot steer a terminal. */
static void print_line(const char *format, va_list args) {
    char *line = NULL, *shown = NULL;
    size_t n;
    const int n_line = vasprintf(&line, format, args);
    if (n_line >= 0)
        shown = terminal_text(line, (size_t)n_line, false, &n);
    fprintf(stderr, "%s: %s\n", cli_name, shown ? shown : "out of memory");
    free(shown);
    if (n_line >= 0)
        free(line);
}

int cli_fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
    return code;
}

void cli_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

/* What failed is neither the command line nor a file. */
static bool is_of_machine(int32_t status) {
    return status == DPI_STATUS_MEMORY || status == DPI_STATUS_SYSTEM ||
           status == DPI_STATUS_ENTROPY;
}

int cli_fail_library(int code, const dpi_error *err) {
    if (is_of_machine(err->code))
        code = CLI_FAILED;
    if (err->offset != UINT64_MAX)
        return cli_fail(code, "%s (at byte %" PRIu64 ")", err->message, err->offset);
    return cli_fail(code, "%s", err->message);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* What is no regular file is told by an errno that reading does not give otherwise; the first where
 * standard input would do. */
enum { NOT_REGULAR = ENOTSUP, NOT_A_FILE = EMEDIUMTYPE };

int cli_open_path(const char *path) {
    struct stat st;
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    const bool known = fstat(fd, &st) == 0;
    if (known && S_ISREG(st.st_mode))
        return fd;
    const int reason = !known ? errno : S_ISDIR(st.st_mode) ? EISDIR : NOT_A_FILE;
    close(fd);
    errno = reason;
    return -1;
}

bool cli_read_path(const char *path, size_t most, char **data, size_t *n_bytes) {
    if (strcmp(path, "-") == 0)
        return dpi_private_read(STDIN_FILENO, most, data, n_bytes);
    const int fd = cli_open_path(path);
    if (fd < 0) {
        errno = errno == NOT_A_FILE ? NOT_REGULAR : errno;
        return false;
    }
    const bool ok = dpi_private_read(fd, most, data, n_bytes);
    const int reason = errno;
    close(fd);
    errno = reason;
    return ok;
}

int cli_read_code(int code) {
    const bool of_file = errno == EFBIG || errno == NOT_REGULAR || errno == NOT_A_FILE;
    return !of_file && is_of_machine(dpi_status_of_errno(errno)) ? CLI_FAILED : code;
}

const char *cli_read_reason(void) {
    return errno == NOT_REGULAR  ? "it is not a regular file ('-' is standard input)"
           : errno == NOT_A_FILE ? "it is not a regular file"
                                 : strerror(errno);
}

int cli_read_text(const char *option, const char *path, size_t most, char **text,
                  size_t *n_bytes) {
    char *data = NULL, name[300];
    dpi_error err;
    if (!cli_read_path(path, most, &data, n_bytes))
        return cli_fail(cli_read_code(CLI_USAGE), "--%s: cannot read %s: %s", option, path,
                        cli_read_reason());
    snprintf(name, sizeof name, "--%s: %s", option, path);
    if (dpi_textfile_check(name, data, n_bytes, &err) != DPI_STATUS_OK) {
        dpi_private_free(data);
        return cli_fail_library(CLI_USAGE, &err);
    }
    *text = data;
    return CLI_OK;
}

bool cli_ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

double cli_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t cli_trim_line_end(const char *text, size_t n_bytes) {
    if (n_bytes > 0 && text[n_bytes - 1] == '\n') {
        n_bytes--;
        if (n_bytes > 0 && text[n_bytes - 1] == '\r')
            n_bytes--;
    }
    return n_bytes;
}

int cli_open_model(const char *path, const dpi_model_options *options, dpi_model **model,
                   dpi_model_info *info) {
    dpi_error err;
    if (dpi_model_open(path, options, model, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_MODEL, &err);
    if (!info)
        return CLI_OK;
    dpi_model_info_init(info);
    if (dpi_model_info_get(*model, info, &err) != DPI_STATUS_OK) {
        dpi_model_close(*model);
        *model = NULL;
        return cli_fail_library(CLI_MODEL, &err);
    }
    return CLI_OK;
}
