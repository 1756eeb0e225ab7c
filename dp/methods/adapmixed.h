/* adapmixed.h - what tests of adapmixed.c look at. Internal. */
#ifndef DPI_ADAPMIXED_H
#define DPI_ADAPMIXED_H

#include "dp/methods/method.h"

/* Of the current text. A FUNCTION OF PRIVATE DATA, all of it: not to be shown. */
typedef struct dpi_adapmixed_spent {
    double renyi;   /* E, at the order alpha */
    double epsilon; /* what the method says that E is at delta */
    bool stopped;   /* the next token would have gone beyond the budget: public from then on */
} dpi_adapmixed_spent;

dpi_adapmixed_spent dpi_adapmixed_spent_get(const dpi_sampler *sampler);

#endif
