/* prompts.h - what prompts are made of, for whoever checks them before they are made. Internal. */
#ifndef DPI_PROMPTS_H
#define DPI_PROMPTS_H

#include "dpinfer/prompts.h"

/* How often {reference} stands in a text; data NULL: 0. */
int dpi_count_references(dpi_bytes text);

#endif
