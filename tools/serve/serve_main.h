/* serve_main.h - what `dpinfer serve` does: serve.c, or serve_none.c in a program that was built
 * without libmicrohttpd. */
#ifndef DPI_SERVE_MAIN_H
#define DPI_SERVE_MAIN_H

#include "tools/options/options.h"

int serve_main(const args *a);

#endif
