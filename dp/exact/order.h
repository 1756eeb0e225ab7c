/* order.h - private floats compared as integers: no branch, and any bits are allowed. Internal. */
#ifndef DPI_ORDER_H
#define DPI_ORDER_H

#include <stddef.h>

#include "kernels/exact.h"

/* The bits of l, or of the lowest float if it is not finite, as an integer of the same order. */
static inline int64_t dpi_order_of(float l) {
    const uint32_t exponent = 0x7f800000, lowest = 0xff7fffff;
    uint32_t bits;
    memcpy(&bits, &l, sizeof bits);
    uint32_t finite = (uint32_t)dpi_mask_hide(0 - (uint64_t)((bits & exponent) != exponent));
    bits = (bits & finite) | (lowest & ~finite);
    uint32_t minus = 0 - (bits >> 31);
    return (int32_t)(bits ^ (minus >> 1));
}

static inline double dpi_order_value(int64_t key) {
    uint32_t bits = (uint32_t)key, minus = 0 - (bits >> 31);
    float l;
    bits ^= minus >> 1;
    memcpy(&l, &bits, sizeof l);
    return (double)l;
}

/* The largest of logits[n], n >= 1. */
static inline double dpi_order_peak(const float *logits, size_t n) {
    int64_t top = dpi_order_of(logits[0]);
    for (size_t i = 1; i < n; i++)
        top = dpi_i64_max(top, dpi_order_of(logits[i]));
    return dpi_order_value(top);
}

/* (top - l) * scale, at most `most`: in [0, most]. Doubles that are not negative compare as their
 * bits do; a comparison of doubles can become a branch. */
static inline double dpi_order_gap(float l, double top, double scale, double most) {
    double gap = (top - dpi_order_value(dpi_order_of(l))) * scale;
    int64_t bits, most_bits;
    memcpy(&bits, &gap, sizeof bits);
    memcpy(&most_bits, &most, sizeof most_bits);
    bits = dpi_i64_min(bits, most_bits);
    memcpy(&gap, &bits, sizeof gap);
    return gap;
}

#endif
