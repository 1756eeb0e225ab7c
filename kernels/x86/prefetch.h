/* prefetch.h - prefetches of the line of `at` that stay in their place: they seem to change v, a
 * vector that something is computed from after them. Internal. */
#ifndef DPI_X86_PREFETCH_H
#define DPI_X86_PREFETCH_H

#define PREFETCH_L1(v, at) __asm__("prefetcht0 %1" : "+v"(v) : "m"(at))
#define PREFETCH_L2(v, at) __asm__("prefetcht1 %1" : "+v"(v) : "m"(at))
/* Into L1, of a line that is read this once. */
#define PREFETCH_ONCE(v, at) __asm__("prefetchnta %1" : "+v"(v) : "m"(at))

#endif
