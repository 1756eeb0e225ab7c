/* serve_none.c - `dpinfer serve` in a program without libmicrohttpd. */
#include "tools/serve/serve_main.h"

int serve_main(const args *a) {
    (void)a;
    return cli_fail(CLI_USAGE, "this program was built without the server: install "
                               "libmicrohttpd-dev and build it with -DDPI_SERVE=ON");
}
