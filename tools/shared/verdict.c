/* verdict.c - see verdict.h. */
#include "tools/shared/verdict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int verdict_open(verdict *v, const args *a) {
    *v = (verdict){.is_verbose = a->v[OPT_VERBOSE].i};
    v->lines = open_memstream(&v->text, &v->n_bytes);
    return v->lines ? CLI_OK : cli_no_memory("fields of a report");
}

void verdict_close(verdict *v) {
    if (v->lines)
        fclose(v->lines);
    free(v->text);
    *v = (verdict){0};
}

static void add_wrong(verdict *v, const char *name) {
    const size_t n = strlen(v->wrong);
    if (n + strlen(name) + 3 < sizeof v->wrong)
        snprintf(v->wrong + n, sizeof v->wrong - n, "%s%s", n > 0 ? ", " : "", name);
    v->n_wrong++;
}

void verdict_add(verdict *v, verdict_mark mark, const char *name, const char *format, ...) {
    static const char *const marks[] = {"ok   ", "given", "WRONG"};
    va_list list;
    v->n_ok += mark == VERDICT_OK;
    if (mark == VERDICT_WRONG)
        add_wrong(v, name);
    else if (!v->is_verbose)
        return;
    va_start(list, format);
    fprintf(v->lines, "  %s  %s: ", marks[mark], name);
    vfprintf(v->lines, format, list);
    fputc('\n', v->lines);
    va_end(list);
}

static const char *ending(const verdict *v) { return v->n_wrong == 1 ? " does" : "s do"; }

int verdict_tell(verdict *v, const char *label, const char *format, ...) {
    int code =
        fflush(v->lines) == 0 && !ferror(v->lines) ? CLI_OK : cli_no_memory("fields of a report");
    va_list list;
    va_start(list, format);
    if (code == CLI_OK && v->n_wrong > 0) {
        printf("NOT verified: %zu field%s not hold\n", v->n_wrong, ending(v));
    } else if (code == CLI_OK) {
        fputs("verified: ", stdout);
        vprintf(format, list);
        printf("\n%s%s", label ? label : "", label ? "\n" : "");
    }
    va_end(list);
    if (code == CLI_OK && v->n_bytes > 0)
        printf("\n%s", v->text);
    if (code == CLI_OK && v->n_wrong > 0)
        code = cli_fail(CLI_FAILED, "%zu field%s not hold: %s", v->n_wrong, ending(v), v->wrong);
    verdict_close(v);
    return code;
}
