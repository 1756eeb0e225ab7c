/* release.h - a release: the four objects that make it, each with one owner, and in one direction;
 * see dpinfer/release.h and docs/design.md. Internal. */
#ifndef DPI_RELEASE_RELEASE_H
#define DPI_RELEASE_RELEASE_H

#include <stdatomic.h>

#include "pipeline/release/texts.h"

struct dpi_release {
    dpi_plan plan;     /* what will be done: public */
    dpi_source source; /* records as batches: private */
    dpi_texts texts;   /* what is drawn */
    dpi_books books;   /* what the disk has, and what is charged */

    int32_t (*cancel)(void *user); /* that of the options; the plan has one that knows both */
    void *cancel_user;
    atomic_int cancelled; /* by dpi_release_cancel */
};

#endif
