/* private_text.c - records in, private text out, in twenty lines:
 *     private_text MODEL RECORDS EPSILON */
#include <dpinfer/release.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    dpi_error err = {0};
    dpi_model *model = NULL;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    dpi_release_event event = {0};
    dpi_release_options o;
    char *statement = NULL;
    dpi_release_options_init(&o);
    o.method.epsilon = argc == 4 ? atof(argv[3]) : 0;
    dpi_status status = dpi_model_open(argc > 1 ? argv[1] : "", NULL, &model, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_records_open(argc > 2 ? argv[2] : "", NULL, &records, &err);
    o.model = model, o.records = records;
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&o, &release, &err);
    do {
        if (status == DPI_STATUS_OK)
            status = dpi_release_advance(release, &event, &err);
        if (status == DPI_STATUS_OK)
            fwrite(event.text, 1, event.n_bytes, stdout);
        if (status == DPI_STATUS_OK && event.type == DPI_EVENT_END)
            puts("\n");
    } while (status == DPI_STATUS_OK && event.type != DPI_EVENT_NONE);
    if (status == DPI_STATUS_OK)
        status = dpi_run_statement(dpi_release_run(release), 1, &statement, &err);
    fputs(status == DPI_STATUS_OK ? statement : err.message, stderr);
    free(statement);
    dpi_release_free(release);
    dpi_records_close(records);
    dpi_model_close(model);
    return status != DPI_STATUS_OK;
}
