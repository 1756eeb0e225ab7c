/* cli.c - what every command shares. */
#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *cli_name = "dpinfer";

void cli_set_name(const char *name) { cli_name = name; }

static void print_line(const char *format, va_list args) {
    fprintf(stderr, "%s: ", cli_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
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

int cli_fail_library(int code, const dpi_error *err) {
    if (err->code == DPI_STATUS_MEMORY)
        code = CLI_FAILED;
    if (err->offset != UINT64_MAX)
        return cli_fail(code, "%s (at byte %" PRIu64 ")", err->message, err->offset);
    return cli_fail(code, "%s", err->message);
}

/* The size is kept before the block, so that private_free knows what to wipe. */
enum { PRIVATE_HEADER = 16 };

void *private_malloc(size_t n_bytes) {
    if (n_bytes > SIZE_MAX - PRIVATE_HEADER)
        return NULL;
    char *block = malloc(PRIVATE_HEADER + n_bytes);
    if (!block)
        return NULL;
    memcpy(block, &n_bytes, sizeof n_bytes);
    return block + PRIVATE_HEADER;
}

static size_t private_size(const void *p) {
    size_t n_bytes;
    memcpy(&n_bytes, (const char *)p - PRIVATE_HEADER, sizeof n_bytes);
    return n_bytes;
}

void *private_realloc(void *p, size_t n_bytes) {
    void *fresh = private_malloc(n_bytes);
    if (!fresh || !p)
        return fresh;
    size_t old_bytes = private_size(p);
    memcpy(fresh, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    private_free(p);
    return fresh;
}

void private_free(void *p) {
    if (!p)
        return;
    explicit_bzero(p, private_size(p));
    free((char *)p - PRIVATE_HEADER);
}

bool cli_read_fd(int fd, char **data, size_t *n_bytes) {
    size_t capacity = 1 << 16, n = 0;
    char *text = private_malloc(capacity);
    while (text) {
        if (n + 1 == capacity) {
            char *grown = private_realloc(text, 2 * capacity);
            if (!grown)
                break;
            text = grown;
            capacity *= 2;
        }
        ssize_t got = read(fd, text + n, capacity - n - 1);
        if (got == 0) {
            text[n] = '\0';
            *data = text;
            *n_bytes = n;
            return true;
        }
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    }
    int reason = errno;
    private_free(text);
    errno = reason;
    return false;
}

bool cli_read_path(const char *path, char **data, size_t *n_bytes) {
    if (strcmp(path, "-") == 0)
        return cli_read_fd(STDIN_FILENO, data, n_bytes);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = cli_read_fd(fd, data, n_bytes);
    int reason = errno;
    close(fd);
    errno = reason;
    return ok;
}

size_t cli_trim_line_end(const char *text, size_t n_bytes) {
    if (n_bytes > 0 && text[n_bytes - 1] == '\n') {
        n_bytes--;
        if (n_bytes > 0 && text[n_bytes - 1] == '\r')
            n_bytes--;
    }
    return n_bytes;
}

uint64_t cli_memory(const char *field) {
    FILE *f = fopen("/proc/self/status", "r");
    size_t n = strlen(field);
    char line[256];
    uint64_t kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            kib = strtoull(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
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
