/* remote_options.c - see remote_options.h. */
#include "tools/remote/remote_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dpinfer/memory.h"

static int check_key(const char *key, const char *source) {
    const size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return cli_fail(CLI_USAGE, "%s: the key has a character that no header may have",
                            source);
    return n > 0 && n <= REMOTE_KEY_BYTES
               ? CLI_OK
               : cli_fail(CLI_USAGE, "%s: a key of %zu bytes, allowed are 1..%d", source, n,
                          REMOTE_KEY_BYTES);
}

/* Into private memory. It never stands on a command line, where other processes could read it. */
static int read_key(const args *a, char **key) {
    const option_value *name = &a->v[OPT_KEY_ENV], *file = &a->v[OPT_KEY_FILE];
    size_t n_bytes;
    if (name->given && file->given)
        return cli_fail(CLI_USAGE, "--api-key-env and --api-key-file: allowed is one of them");
    if (name->given) {
        const char *value = getenv(name->s);
        if (!value)
            return cli_fail(CLI_USAGE, "--api-key-env: there is no variable '%s'", name->s);
        if (!(*key = dpi_private_malloc(strlen(value) + 1)))
            return cli_no_memory("a key");
        strcpy(*key, value);
        return check_key(*key, "--api-key-env");
    }
    if (!file->given)
        return CLI_OK;
    if (!cli_read_path(file->s, REMOTE_KEY_BYTES + 5, key, &n_bytes))
        return cli_fail(cli_read_code(CLI_USAGE), "cannot read the file of --api-key-file: %s",
                        cli_read_reason());
    dpi_error err;
    if (dpi_textfile_check("--api-key-file", *key, &n_bytes, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    (*key)[cli_trim_line_end(*key, n_bytes)] = '\0';
    return check_key(*key, "--api-key-file");
}

int remote_options_read(const args *a, remote_needs needs, remote_options *o) {
    *o = (remote_options){
        .url = a->v[OPT_REMOTE].s,
        .model = a->v[OPT_REMOTE_MODEL].s,
        .ca_file = a->v[OPT_CA_FILE].s,
        .temperature = a->v[OPT_REMOTE_TEMP].given ? a->v[OPT_REMOTE_TEMP].d : NAN,
        .limit = a->v[OPT_REMOTE_LIMIT].s,
        .n_in_flight = (int)a->v[OPT_IN_FLIGHT].i,
        .n_retries = (int)a->v[OPT_RETRIES].i,
        .timeout = a->v[OPT_TIMEOUT].d,
        .retry_wait = a->v[OPT_RETRY_WAIT].d,
    };
    struct stat st; /* libcurl would wait for a pipe's writer, whatever the time limit */
    if (o->ca_file && (stat(o->ca_file, &st) != 0 || !S_ISREG(st.st_mode)))
        return cli_fail(CLI_USAGE, "--ca-file: %s is not a regular file", o->ca_file);
    if (!o->model)
        return cli_fail(CLI_USAGE, "no --remote-model NAME given; see 'dpinfer %s -h'",
                        a->command->name);
    if (needs == REMOTE_MODEL_ALONE)
        return CLI_OK;
    if (!o->url)
        return cli_fail(CLI_USAGE, "no --remote URL%s given; see 'dpinfer %s -h'",
                        a->command->bit & CMD_INFER ? " and no --dry-run" : "", a->command->name);
    const int code = remote_check_url(o->url);
    return code == CLI_OK ? read_key(a, &o->key) : code;
}
