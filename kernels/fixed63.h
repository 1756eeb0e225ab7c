/* fixed63.h - 63-bit fractions in 64-bit lanes: what ref_sampler.c does one at a time, written once
 * for every ISA. The ISA file defines, then includes this:
 *   vec            a vector of integers, as intrinsics have it
 *   u64s           the same as lanes of uint64_t
 *   mul_32(a, b)   products of the low halves of two u64s
 * Not a header to include elsewhere. */

/* a * b >> 63, from four products of their halves. */
INLINE vec multiply_63(vec x, vec y) {
    const u64s a = (u64s)x, b = (u64s)y, a1 = a >> 32, b1 = b >> 32;
    const u64s p00 = mul_32(a, b), p01 = mul_32(a, b1), p10 = mul_32(a1, b), p11 = mul_32(a1, b1);
    const u64s middle = (p00 >> 32) + (p01 & 0xffffffff) + (p10 & 0xffffffff); /* from bit 32 on */
    const u64s high = p11 + (p01 >> 32) + (p10 >> 32);                         /* from bit 64 on */
    return (vec)(high + high + (middle >> 31));
}

/* The factor for the low 24 bits of the exponent: 1 - x + x^2 / 2 (exp2_fraction of ref_sampler.c),
 * x = r ln2 / 2^48, below 2^39. */
INLINE vec last_factor(vec exponent) {
    const u64s r = (u64s)exponent & 0xffffff, ln2 = (u64s){0} + DPI_LN2_63;
    const u64s x = (mul_32(r, ln2 >> 32) + (mul_32(r, ln2) >> 32)) >> 16, x1 = x >> 32;
    const u64s low = 2 * mul_32(x1, x) + (mul_32(x, x) >> 32);
    return (vec)((UINT64_C(1) << 63) - x + mul_32(x1, x1) + (low >> 32));
}
