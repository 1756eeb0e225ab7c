/* cmd_serve.h - what `dpinfer serve` does: serve.c, or serve_none.c in a program that was built
 * without libmicrohttpd. */
#ifndef DPI_CMD_SERVE_H
#define DPI_CMD_SERVE_H

#include "tools/options.h"

int serve_main(const args *a);

#endif
