/* fuzz_records.c - libFuzzer target: any bytes as a .jsonl or a .csv file of records. The first
 * byte says which, and whether what follows is repeated up to a megabyte: reading takes time that
 * is linear in the bytes. Malformed records are null and the others stay in their places. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "dpinfer/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* SECONDS: for a megabyte, with a sanitizer on a busy machine; it takes a tenth of one. With
 * libFuzzer, which has many to try, it is a sixteenth of that. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { LARGE = 1 << 16, SECONDS = 4 };
#else
enum { LARGE = 1 << 20, SECONDS = 10 };
#endif

static char folder[] = "/tmp/fuzz-records-XXXXXX", path[64];

static void require(bool holds) {
    if (!holds)
        abort();
}

static void clean_up(void) {
    unlink(path);
    rmdir(folder);
}

static void write_records(const char *name, const uint8_t *data, size_t n_bytes, bool large) {
    if (!path[0]) {
        require(mkdtemp(folder) != NULL);
        atexit(clean_up);
    } else {
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    require(f != NULL);
    size_t written = 0;
    do
        written += fwrite(data, 1, n_bytes, f);
    while (large && n_bytes > 0 && written < LARGE);
    require(fclose(f) == 0);
}

static void read_all(const dpi_records *records) {
    dpi_error err = {0};
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text;
        size_t n;
        require(dpi_records_read(records, i, &text, &n, &err) == DPI_STATUS_OK);
        require(text ? n > 0 && text[n] == '\0' : n == 0);
        if (text) /* a null record has white space alone */
            require(strspn(text, " \t\n\v\f\r") < n);
        dpi_private_free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 1 || n_bytes > 2 * LARGE)
        return 0;
    dpi_records *records = NULL;
    dpi_error err = {0};
    const bool is_csv = data[0] & 1;
    write_records(is_csv ? "r.csv" : "r.jsonl", data + 1, n_bytes - 1, data[0] & 2);
    clock_t begin = clock();
    dpi_status status = dpi_records_open(path, NULL, &records, &err);
    if (status == DPI_STATUS_OK) {
        read_all(records);
        dpi_records_close(records);
    } else {
        require(status == DPI_STATUS_FORMAT && is_csv && !records && err.message[0]);
    }
    require(clock() - begin < (clock_t)SECONDS * CLOCKS_PER_SEC);
    return 0;
}
