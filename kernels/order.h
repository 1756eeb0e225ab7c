/* order.h - what keeps the compiler from moving things in a kernel, or makes it read from memory.
 * No instruction comes of these. Internal. */
#ifndef DPI_ORDER_H
#define DPI_ORDER_H

/* A pointer that is computed here, and not again where it is used. */
#define HELD(pointer) __asm__("" : "+r"(pointer))
#define HELD_BOTH(a, b) __asm__("" : "+r"(a), "+r"(b))
/* A variable or an array that stands in memory from here on. */
#define IN_MEMORY(array) __asm__("" : "+m"(array))
#ifdef __aarch64__
#define VECTOR "w"
#else
#define VECTOR "v"
#endif
/* A vector that is computed here, in this order: compilers gather sums of integers into trees. */
#define COMPUTED(vector) __asm__("" : "+" VECTOR(vector))
/* A vector that is computed with after what is at `at` was loaded. */
#define AFTER_LOAD(vector, at) __asm__("" : "+" VECTOR(vector) : "m"(at))

#endif
