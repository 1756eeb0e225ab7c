/* fuzz_report.c - libFuzzer target: any bytes as a report, which is parsed and verified. Nothing in
 * it is trusted: it is refused, or every field gets a verdict that a terminal can show. */
#include "dpinfer/report.h"
#include "tests/fuzz/fuzz.h"

/* Printable ASCII that ends. */
static void check_text(const char *text, size_t size) {
    require(memchr(text, '\0', size) != NULL);
    for (; *text; text++)
        require(*text >= 0x20 && *text < 0x7f);
}

/* Every field has a verdict, and the counts are those of the verdicts. */
static void check(dpi_verification *v) {
    size_t n_ok = 0, n_wrong = 0;
    for (size_t i = 0; i < v->n_fields; i++) {
        const dpi_verified_field *f = &v->fields[i];
        check_text(f->path, sizeof f->path);
        check_text(f->recorded, sizeof f->recorded);
        check_text(f->computed, sizeof f->computed);
        n_ok += f->verdict == DPI_VERDICT_OK;
        n_wrong += f->verdict == DPI_VERDICT_WRONG;
    }
    require(v->n_ok == n_ok && v->n_wrong == n_wrong && n_ok + n_wrong > 0);
    dpi_verification_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    const char *text = (const char *)data;
    dpi_report *report = NULL;
    dpi_verification v = {.struct_size = sizeof v};
    dpi_error err = {0};
    if (is_ok(dpi_report_parse("a report", text, n_bytes, &report, &err), &err)) {
        if (is_ok(dpi_report_verify(report, NULL, NULL, &v, &err), &err))
            check(&v);
        dpi_report_free(report);
    } else {
        require(!report);
    }
    return 0;
}
