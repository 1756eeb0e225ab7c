/* neon_util.h - what the files for AArch64 share. Internal. */
#ifndef DPI_NEON_UTIL_H
#define DPI_NEON_UTIL_H

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Lanes as C has them: operators take a constant number of bits without a register. */
typedef uint8_t u8s __attribute__((vector_size(16)));
typedef uint16_t u16s __attribute__((vector_size(16)));
typedef uint32_t u32s __attribute__((vector_size(16)));
typedef int32_t i32s __attribute__((vector_size(16)));

/* The first n lanes, none if n <= 0. */
INLINE void store_lanes(float *p, float32x4_t v, int64_t n) {
    float some[4];
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    vst1q_f32(some, v);
    for (int64_t i = 0; i < n; i++)
        p[i] = some[i];
}

INLINE float32x4_t widen_f16s(const void *p) {
    uint16x4_t half;
    memcpy(&half, p, sizeof half);
    return vcvt_f32_f16(vreinterpret_f16_u16(half));
}

#endif
