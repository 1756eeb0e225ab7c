/* remote_none.c - remote.h in a program that was built without libcurl: nothing is sent. */
#include <jansson.h>

#include "tools/remote/remote.h"
#include "tools/terminal/facts.h"

int remote_check_url(const char *url) {
    (void)url;
    return cli_fail(CLI_USAGE, "--remote: this program was built without libcurl (-DDPI_CURL=ON); "
                               "allowed is --dry-run");
}

int remote_open(const remote_options *options, remote **r) {
    (void)r;
    return remote_check_url(options->url);
}

void remote_close(remote *r) { (void)r; }

int remote_send(remote *r, const char *prompt, int *place) {
    (void)r, (void)prompt, (void)place;
    return remote_check_url(NULL);
}

int remote_advance(remote *r) {
    (void)r;
    return CLI_OK;
}

int remote_answer_of(remote *r, int place, char **text) {
    (void)r, (void)place, (void)text;
    return remote_check_url(NULL);
}
