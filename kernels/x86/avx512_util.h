/* avx512_util.h - what the AVX-512 files share. Include it only where AVX-512 is compiled for. */
#ifndef DPI_AVX512_UTIL_H
#define DPI_AVX512_UTIL_H

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

#endif
