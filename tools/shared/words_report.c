/* words_report.c - see words_report.h. */
#include "tools/shared/words_report.h"

#include "tools/shared/report_files.h"

int words_report_certify(const words_input *in, const dpi_perturber *perturber,
                         dpi_certificate *certificate) {
    dpi_error err;
    dpi_certificate_init(certificate);
    if (in->a->n_reports > 0 && dpi_perturb_certify(perturber, certificate, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return CLI_OK;
}

int words_report_write(const words_input *in, const dpi_certificate *certificate,
                       const dpi_words_released *released) {
    dpi_report *report = NULL;
    dpi_claim claim;
    dpi_error err;
    if (in->a->n_reports == 0)
        return CLI_OK;
    dpi_status status = dpi_perturb_claim(&in->options, in->vocabulary, certificate, released,
                                          &claim, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_report_of(&claim, NULL, NULL, &report, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const int code = report_files_all(in->a, report);
    dpi_report_free(report);
    return code;
}

int words_report_vocabulary(const args *a, int32_t n_words, dpi_model **model,
                            dpi_vocabulary **vocabulary) {
    dpi_error err;
    dpi_status status;
    if (a->v[OPT_VECTORS].given) {
        status = dpi_vocabulary_read(a->v[OPT_VECTORS].s, n_words, vocabulary, &err);
    } else {
        const dpi_model_options options = options_model(a);
        const int code = cli_open_model(a->model, &options, model, NULL);
        if (code != CLI_OK)
            return code;
        status = dpi_vocabulary_of_model(*model, n_words, vocabulary, &err);
    }
    if (status == DPI_STATUS_OK)
        status = dpi_vocabulary_measure(*vocabulary, NULL, 0, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}
