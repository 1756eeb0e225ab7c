/* report_files.c - the files of --report, see report.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/output.h"
#include "tools/report.h"

struct report_files {
    int n;
    output file[MAX_REPORTS];
};

int report_files_probe(const args *a) {
    for (int i = 0; i < a->n_reports; i++)
        if (output_probe(a->reports[i]) != CLI_OK)
            return CLI_FAILED;
    return CLI_OK;
}

int report_files_open(const args *a, report_files **files) {
    *files = NULL;
    if (a->n_reports == 0)
        return CLI_OK;
    report_files *f = calloc(1, sizeof *f);
    if (!f)
        return cli_fail(CLI_FAILED, "out of memory for the report");
    while (f->n < a->n_reports) {
        output *file = &f->file[f->n];
        if (output_open(file, a->reports[f->n++], true) != CLI_OK) {
            report_files_close(f, false);
            return CLI_FAILED;
        }
    }
    *files = f;
    return CLI_OK;
}

static bool is_markdown(const char *name) {
    size_t n = strlen(name);
    return n >= 3 && strcmp(name + n - 3, ".md") == 0;
}

static int write_one(output *file, const json_t *report) {
    const bool markdown = is_markdown(file->name);
    char *text = markdown ? report_markdown(report)
                          : json_dumps(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!text)
        return cli_fail(CLI_FAILED, "out of memory for the report");
    int code = output_write(file, text, strlen(text));
    if (code == CLI_OK && !markdown)
        code = output_write(file, "\n", 1);
    if (markdown)
        free(text);
    else
        private_free(text); /* jansson's memory */
    return code;
}

int report_files_write(report_files *files, const json_t *report) {
    int code = CLI_OK;
    for (int i = 0; i < files->n; i++)
        if (write_one(&files->file[i], report) != CLI_OK)
            code = CLI_FAILED;
    return code;
}

int report_files_close(report_files *files, bool keep) {
    int code = CLI_OK;
    for (int i = 0; files && i < files->n; i++)
        if (output_close(&files->file[i], keep) != CLI_OK)
            code = CLI_FAILED;
    free(files);
    return code;
}
