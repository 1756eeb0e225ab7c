/* serve_config.h - the datasets of a server: those of --dataset and of the file of --config. */
#ifndef DPI_SERVE_CONFIG_H
#define DPI_SERVE_CONFIG_H

#include "serve/datasets.h"
#include "tools/options/options.h"

typedef struct serve_config {
    dataset sets[DATASETS_MAX]; /* [n] */
    int n;
    char *ledger; /* of the file; NULL: it names none */
} serve_config;

/* The file is an object of JSON: "ledger", a path, and "datasets", a list of objects with "name",
 * "path", "delimiter", "encoding" and the keys of dataset_set. Paths are those of the file's
 * folder. *c, which begins as zeros, is serve_config_free's in any case. CLI_OK, or a code with a
 * message that names the place in the file. */
int serve_config_read(const args *a, serve_config *c);
void serve_config_free(serve_config *c);

#endif
