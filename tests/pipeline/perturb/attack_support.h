/* attack_support.h - what tests of attacks share. */
#ifndef DPI_ATTACK_SUPPORT_H
#define DPI_ATTACK_SUPPORT_H

#include "dpinfer/perturb.h"

/* SANTEXT+ that replaces no frequent word, over all words but the last one: nothing changes. */
static inline dpi_perturb_options no_change(int32_t n) {
    dpi_perturb_options o;
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_SANTEXT;
    o.replaced = 0;
    o.rare = 1. / n;
    return o;
}

#endif
