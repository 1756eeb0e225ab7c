/* prefetch.h - prefetches of the line of `at` that stay in their place: they seem to change v, a
 * vector that something is computed from after them. Internal. */
#ifndef DPI_ARM_PREFETCH_H
#define DPI_ARM_PREFETCH_H

#define PREFETCH_L1(v, at) __asm__("prfm pldl1keep, %1" : "+w"(v) : "Q"(at))
#define PREFETCH_L2(v, at) __asm__("prfm pldl2keep, %1" : "+w"(v) : "Q"(at))
/* Into L1, of a line that is read this once. */
#define PREFETCH_ONCE(v, at) __asm__("prfm pldl1strm, %1" : "+w"(v) : "Q"(at))

#endif
