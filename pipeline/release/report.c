/* report.c - a report as an object, see dpinfer/report.h. */
#include "pipeline/release/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/system.h"
#include "commit.h" /* made by commit.cmake */
#include "pipeline/release/hash.h"

/* ---- What is believed ------------------------------------------------------------------------ */

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

/* The program that the library is part of. Its hash is null where the system does not show it (no
 * /proc); where reading it fails, so does the report. */
static dpi_status describe_software(json_t **section, dpi_error *err) {
    const char *path = dpi_system_program();
    char hex[DPI_DIGEST_HEX + 1];
    int64_t n_bytes;
    const bool hashed = dpi_hash_file(path, hex, &n_bytes);
    const int reason = errno;
    if (!hashed && dpi_status_of_errno(reason) != DPI_STATUS_IO)
        return dpi_fail(err, dpi_status_of_errno(reason), "cannot read %s, the program: %s", path,
                        dpi_reason(reason));
    *section = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "program", "dpinfer", "version",
                         dpi_version(), "commit", DPI_COMMIT, "compiler", compiler(), "build",
                         DPI_BUILD_TYPE, "sha256", hashed ? hex : NULL);
    return *section ? DPI_STATUS_OK : dpi_no_memory(err, "the report");
}

/* null without a model. */
static dpi_status describe_model(const dpi_claim *claim, const dpi_model *model, const char *path,
                                 json_t **section, dpi_error *err) {
    json_t *files, *adapter = NULL, *control = NULL;
    dpi_model_info info;
    dpi_model_info_init(&info);
    if (!path) {
        *section = json_null();
        return DPI_STATUS_OK;
    }
    if (model)
        DPI_TRY(dpi_model_info_get(model, &info, err));
    if (model && dpi_model_adapter(model))
        DPI_TRY(dpi_hash_one(dpi_model_adapter(model), &adapter, err));
    dpi_status status = DPI_STATUS_OK;
    if (model && dpi_model_control_vector(model))
        status = dpi_hash_one(dpi_model_control_vector(model), &control, err);
    if (status == DPI_STATUS_OK)
        status = dpi_hash_model(path, model ? dpi_hash_count_files(model) : 1, &files, err);
    if (status != DPI_STATUS_OK) {
        json_decref(adapter);
        json_decref(control);
        return status;
    }
    *section = json_pack("{s:s, s:b, s:o, s:o*, s:o*}", "name", claim->model_name, "random_weights",
                         info.random_weights, "files", files, "adapter", adapter,
                         "control_vector", control);
    return *section ? DPI_STATUS_OK : dpi_no_memory(err, "the report");
}

/* ---- The object ------------------------------------------------------------------------------ */

dpi_status dpi_report_of(const dpi_claim *claim, const dpi_model *model, const char *model_path,
                         dpi_report **report, dpi_error *err) {
    dpi_report *r = calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the report");
    r->claim = *claim;
    dpi_status status = dpi_claim_settle(&r->claim, err);
    if (status == DPI_STATUS_OK)
        status = dpi_report_added_init(&r->added)
                     ? describe_model(claim, model, model_path, &r->model, err)
                     : dpi_no_memory(err, "the report");
    if (status == DPI_STATUS_OK)
        status = describe_software(&r->software, err);
    if (status == DPI_STATUS_OK)
        *report = r;
    else
        dpi_report_free(r);
    return status;
}

/* Checked, and settled. */
static dpi_status claim_of(const dpi_run *run, dpi_claim *claim, dpi_error *err) {
    DPI_TRY(dpi_run_check(run, err));
    dpi_claim_of_run(run, claim);
    return dpi_claim_settle(claim, err);
}

dpi_status dpi_report_create(const dpi_run *run, const dpi_model *model, const char *model_path,
                             dpi_report **report, dpi_error *err) {
    dpi_claim claim;
    DPI_TRY(claim_of(run, &claim, err));
    DPI_TRY(dpi_report_of(&claim, model, model_path, report, err));
    (*report)->run = *run;
    return DPI_STATUS_OK;
}

dpi_status dpi_report_again(const dpi_report *report, const dpi_run *run, dpi_report **again,
                            dpi_error *err) {
    if (report->recorded)
        return dpi_fail(err, DPI_STATUS_ARG, "a report that was parsed is not changed");
    dpi_report *r = calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the report");
    const dpi_status status = claim_of(run, &r->claim, err);
    r->run = *run;
    r->model = json_deep_copy(report->model); /* counts of references belong to one thread */
    r->software = json_deep_copy(report->software);
    if (status == DPI_STATUS_OK && dpi_report_added_init(&r->added) && r->model && r->software) {
        *again = r;
        return DPI_STATUS_OK;
    }
    dpi_report_free(r);
    return status != DPI_STATUS_OK ? status : dpi_no_memory(err, "the report");
}

dpi_status dpi_report_update(dpi_report *r, const dpi_run *run, dpi_error *err) {
    dpi_claim claim;
    if (r->recorded)
        return dpi_fail(err, DPI_STATUS_ARG, "a report that was parsed is not changed");
    DPI_TRY(claim_of(run, &claim, err));
    r->claim = claim;
    r->run = *run;
    return DPI_STATUS_OK;
}

void dpi_report_free(dpi_report *r) {
    if (!r)
        return;
    json_decref(r->software);
    json_decref(r->model);
    json_decref(r->recorded);
    dpi_report_added_free(&r->added);
    free(r);
}

const dpi_claim *dpi_report_claimed(const dpi_report *r) { return &r->claim; }
const dpi_run *dpi_report_run(const dpi_report *r) { return &r->run; }

/* JSON ends with a line feed, as Markdown does. */
static char *write_json(const json_t *report, size_t *n_bytes) {
    char *text = dpi_json_text(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17), n_bytes);
    char *longer = text ? realloc(text, *n_bytes + 2) : NULL;
    if (!longer) {
        free(text);
        return NULL;
    }
    memcpy(longer + (*n_bytes)++, "\n", 2);
    return longer;
}

dpi_status dpi_report_text(const dpi_report *r, int32_t complete, int32_t format, char **text,
                           size_t *n_bytes, dpi_error *err) {
    if (format != DPI_REPORT_JSON && format != DPI_REPORT_MARKDOWN && format != DPI_REPORT_HTML)
        return dpi_fail(err, DPI_STATUS_ARG, "the format of a report is %d, allowed 0..2", format);
    if (r->recorded)
        return dpi_fail(err, DPI_STATUS_ARG, "a report that was parsed is not written again");
    char hex[DPI_DIGEST_HEX + 1];
    DPI_TRY(dpi_json_digest(r->added.wording, hex, err));
    if (strcmp(hex, r->claim.wording) != 0)
        return dpi_fail(err, DPI_STATUS_STATE, "the claim has a wording that the report was not "
                                               "told, or another one");
    json_t *all = dpi_report_json(&r->claim, complete != 0, json_incref(r->software),
                                  json_incref(r->model),
                                  dpi_report_output_json(&r->added, &r->claim), &r->added);
    if (!all)
        return dpi_no_memory(err, "the report");
    char *made = format == DPI_REPORT_JSON   ? write_json(all, n_bytes)
                 : format == DPI_REPORT_HTML ? dpi_report_html(all)
                                             : dpi_report_markdown(all);
    json_decref(all);
    if (!made)
        return dpi_no_memory(err, "the report");
    if (format != DPI_REPORT_JSON)
        *n_bytes = strlen(made);
    *text = made;
    return DPI_STATUS_OK;
}
