/* fuzz_records.c - libFuzzer target: any bytes as a .jsonl or a .csv file of records. The first
 * byte says which, whether it is compressed, whether units have IDs, which delimiter and encoding,
 * and whether what follows is repeated up to a megabyte: reading takes time that is linear in the
 * bytes. Malformed records are null and the others stay in their places. */
#define _GNU_SOURCE
#include <time.h>

#include "dpinfer/memory.h"
#include "dpinfer/records.h"
#include "tests/fuzz/fuzz.h"

/* SECONDS: for a megabyte, with a sanitizer on a busy machine; it takes a tenth of one. With
 * libFuzzer, which has many to try, there are fewer bytes. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { LARGE = 1 << 11, SECONDS = 2 };
#else
enum { LARGE = 1 << 20, SECONDS = 10 };
#endif

static char folder[] = "/tmp/fuzz-records-XXXXXX", path[64];

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
        int32_t fault;
        require_ok(dpi_records_look(records, i, &text, &n, &fault, &err));
        require(!text == (fault != DPI_FAULT_NONE));
        require(text ? n > 0 && text[n] == '\0' : n == 0);
        if (text) /* a null record has white space alone */
            require(strspn(text, " \t\n\v\f\r") < n);
        dpi_private_free(text);
    }
}

/* The records of a unit are in their order, and each is of one unit at most. */
static size_t read_unit(const dpi_records *records, size_t unit) {
    size_t n = 0, at, last = 0, n_id = 0;
    const char *id = NULL;
    while ((at = dpi_records_of_unit(records, unit, n)) != SIZE_MAX) {
        require(at < dpi_records_count(records) && (n == 0 || at > last));
        last = at;
        n++;
    }
    dpi_records_unit_id(records, unit, &id, &n_id);
    free(copy_text(id ? id : "", id ? n_id : 0)); /* a sanitizer sees a length that is too large */
    return n;
}

static void read_units(const dpi_records *records) {
    size_t n = 0;
    for (size_t unit = 0; unit < dpi_records_unit_count(records); unit++)
        n += read_unit(records, unit);
    require(n <= dpi_records_count(records));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 1 || n_bytes > 1 << 20)
        return 0;
    dpi_records *records = NULL;
    dpi_error err = {0};
    const bool is_csv = data[0] & 1, is_packed = data[0] & 32;
    const char *const names[] = {"r.jsonl", "r.csv", "r.jsonl.gz", "r.csv.gz"};
    write_records(names[is_csv + 2 * is_packed], data + 1, n_bytes - 1, data[0] & 2);
    DEFAULTS(dpi_records_options, options);
    options.unit_field = data[0] & 4 ? "who" : NULL;
    options.encoding = data[0] >> 3 & 1 ? DPI_ENCODING_LATIN1 + (data[0] >> 6) : 0;
    options.delimiter = data[0] & 16 ? ';' : ',';
    options.max_expanded = 4 * LARGE;
    clock_t begin = clock();
    dpi_status status = dpi_records_open(path, &options, &records, &err);
    if (status == DPI_STATUS_OK) {
        read_all(records);
        read_units(records);
        dpi_records_close(records);
    } else {
        const bool may_fail = is_csv || is_packed || options.encoding == DPI_ENCODING_UTF16;
        require(status == DPI_STATUS_FORMAT && may_fail && !records && err.message[0]);
    }
    require(clock() - begin < (clock_t)SECONDS * CLOCKS_PER_SEC);
    return 0;
}
