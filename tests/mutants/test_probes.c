/* test_probes.c - the probes without a fault; scripts/mutants runs them with one. */
#include "tests/mutants/probes.h"

dpi_model *model;
static void *image;

SETUP {
    tiny_spec spec = tiny_default();
    spec.n_vocab = 8000;
    model = tiny_open(&spec, 1, &image);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

SETUP_EACH { folder_make(); }
TEARDOWN_EACH { job_remove(); }
