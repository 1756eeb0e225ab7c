/* report_files.c - see report_files.h. */
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/shared/report_files.h"
#include "tools/shared/signature.h"
#include "tools/terminal/output.h"

static dpi_status tell_prompts(const dpi_release *release, dpi_report *report, dpi_error *err) {
    char *json;
    dpi_status status = dpi_release_prompts(release, &json, err);
    if (status != DPI_STATUS_OK)
        return status;
    status = dpi_report_prompts(report, json, err);
    dpi_private_free(json);
    return status;
}

int report_of_release(const args *a, const dpi_release *release, const dpi_run *claim,
                      const dpi_model *model, dpi_report **report) {
    dpi_error err;
    *report = NULL;
    dpi_status status = dpi_report_create(claim, model, a->model, report, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_report_wording(*report, dpi_release_wording(release), &err);
    if (status == DPI_STATUS_OK && a->v[OPT_REPORT_PROMPTS].i)
        status = tell_prompts(release, *report, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_MODEL, &err);
}

int report_files_meta(const args *a, dpi_report *report) {
    enum { META_BYTES_MAX = 1 << 20 };
    char *text;
    size_t n_bytes;
    dpi_error err;
    const char *path = a->v[OPT_META].s;
    if (!a->v[OPT_META].given)
        return CLI_OK;
    if (!report)
        return cli_fail(CLI_USAGE, "--meta needs --report");
    const int code = cli_read_text("meta", path, META_BYTES_MAX, &text, &n_bytes);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_report_meta(report, path, text, n_bytes, &err);
    dpi_private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, &err);
}

int report_files_try_key(const args *a) {
    if (!a->v[OPT_SIGN].given)
        return CLI_OK;
    return a->n_reports > 0 ? signature_try(a->v[OPT_SIGN].s)
                            : cli_fail(CLI_USAGE, "--sign needs --report");
}

struct report_files {
    int n;
    output file[MAX_REPORTS];
    char *text[MAX_REPORTS]; /* what was written last; NULL: nothing */
};

/* Before the charge: what is signed is read again, and its signature is a file too. */
static int probe_signature(const char *report) {
    char *name = signature_name(report);
    if (!name)
        return CLI_FAILED;
    const int code = output_is_file(name)
                         ? output_probe(name)
                         : cli_fail(CLI_USAGE, "--sign: %s is not a file", name);
    free(name);
    return code;
}

int report_files_probe(const args *a) {
    for (int i = 0; i < a->n_reports; i++) {
        if (a->v[OPT_SIGN].given && !output_is_file(a->reports[i]))
            return cli_fail(CLI_USAGE, "--sign: the report %s is not a file", a->reports[i]);
        if (output_probe(a->reports[i]) != CLI_OK)
            return CLI_FAILED;
        const int code = a->v[OPT_SIGN].given ? probe_signature(a->reports[i]) : CLI_OK;
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

int report_files_open(const args *a, report_files **files) {
    *files = NULL;
    if (a->n_reports == 0)
        return CLI_OK;
    report_files *f = calloc(1, sizeof *f);
    if (!f)
        return cli_no_memory("the report");
    while (f->n < a->n_reports) {
        output *file = &f->file[f->n];
        if (output_open(file, a->reports[f->n++], a->v[OPT_OVERWRITE].i) != CLI_OK) {
            report_files_close(f, OUTPUT_DROPPED, NULL);
            return CLI_FAILED;
        }
    }
    *files = f;
    return CLI_OK;
}

static int32_t format_of(const output *file) {
    const bool is_page = cli_ends_in(file->name, ".html") || cli_ends_in(file->name, ".htm");
    return cli_ends_in(file->name, ".md") ? DPI_REPORT_MARKDOWN
           : is_page                  ? DPI_REPORT_HTML
                                      : DPI_REPORT_JSON;
}

static int write_one(output *file, char **last, const dpi_report *report, bool complete) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_report_text(report, complete, format_of(file), &text, &n_bytes, &err) !=
        DPI_STATUS_OK) {
        file->failed = true; /* an empty file would be no report */
        return cli_fail_library(CLI_FAILED, &err);
    }
    const int code = output_write_anew(file, text, n_bytes, *last, *last ? strlen(*last) : 0);
    free(*last);
    *last = text;
    return code;
}

int report_files_all(const args *a, const dpi_report *report) {
    report_files *files;
    int code = report_files_open(a, &files);
    if (code == CLI_OK && files)
        code = report_files_write(files, report, true);
    const int closed =
        report_files_close(files, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, NULL);
    return code == CLI_OK ? closed : code;
}

int report_files_write(report_files *files, const dpi_report *report, bool complete) {
    int code = CLI_OK;
    for (int i = 0; i < files->n; i++)
        if (write_one(&files->file[i], &files->text[i], report, complete) != CLI_OK)
            code = CLI_FAILED;
    return code;
}

void report_files_keep(report_files *files) {
    for (int i = 0; files && i < files->n; i++)
        files->file[i].appears = true;
}

int report_files_close(report_files *files, output_end end, const char *key) {
    int code = CLI_OK;
    for (int i = 0; files && i < files->n; i++) {
        const char *name = files->file[i].name;
        const bool replaces = files->file[i].replaces;
        if (output_close(&files->file[i], end) != CLI_OK)
            code = CLI_FAILED;
        else if (key && end == OUTPUT_APPEARS && signature_write(key, name, replaces) != CLI_OK)
            code = CLI_FAILED;
        free(files->text[i]);
    }
    free(files);
    return code;
}
