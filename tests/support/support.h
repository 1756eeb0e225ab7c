/* support.h - what the tests share: cmocka's preamble, the golden data, errors, allocation
 * failures. */
#ifndef DPI_TEST_SUPPORT_H
#define DPI_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dpinfer.h"

/* Path of a file in a folder, in a static buffer that the sixteenth call after this one overwrites.
 */
const char *path_in(const char *folder, const char *name);
/* That of a file in the shared data directory, which is ../shared/data, or $DPI_DATA. */
const char *data_path(const char *relative);

/* Skips the running test with a message if the shared file is not there. */
void require_data(const char *relative);

/* The whole of a file, NUL-terminated after *n_bytes bytes; the caller frees it. Fails the test
 * if it cannot be read. */
char *read_file(const char *path, size_t *n_bytes);

/* Path of a fresh directory for this test's files, removed by remove_dir. */
char *make_dir(char *buffer, size_t size);
void remove_dir(const char *path);
void write_file(const char *path, const void *data, size_t n_bytes);

/* Tests: TEST(name) { ... }. Those of a program run in the order of its file; `main` is that of
 * support (main.c), which takes a pattern of names (* and ?) of those to run. SETUP { ... } and
 * TEARDOWN { ... } run once, before all tests and after them, SETUP_EACH and TEARDOWN_EACH around
 * each. */
#define TEST(name)                                                                                 \
    static void name(void **);                                                                     \
    __attribute__((constructor)) static void register_##name(void) {                               \
        add_test_of_file(#name, name);                                                             \
    }                                                                                              \
    static void name(void **of_cmocka __attribute__((unused)))
#define SETUP TEST_HOOK(all, 0)
#define TEARDOWN TEST_HOOK(all, 1)
#define SETUP_EACH TEST_HOOK(each, 0)
#define TEARDOWN_EACH TEST_HOOK(each, 1)
#define TEST_HOOK(of, after)                                                                       \
    static void hook_##of##after(void);                                                            \
    __attribute__((constructor)) static void register_##of##after(void) {                          \
        test_hooks.of[after] = hook_##of##after;                                                   \
    }                                                                                              \
    static void hook_##of##after(void)
void add_test_of_file(const char *name, CMUnitTestFunction function);
extern struct test_hooks { void (*all[2])(void), (*each[2])(void); } test_hooks;

/* Whether the test is built with AddressSanitizer or ThreadSanitizer, by GCC or by clang. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* A long sweep tries each SWEEP_STEP-th of its cases: all of them take minutes with sanitizers, and
 * run the same code. */
enum { SWEEP_STEP = SANITIZED ? 5 : 1 };

/* The error of the calling thread: the last argument of what is tested. */
#define ERR (&thread_error)
extern _Thread_local dpi_error thread_error;

/* Fails the test with ERR's message unless status is OK. */
#define assert_ok(status) assert_ok_at((status), #status, __FILE__, __LINE__)
void assert_ok_at(dpi_status status, const char *what, const char *file, int line);
/* Fails unless status is DPI_STATUS_`wanted` and ERR's message contains `part`. */
#define assert_error(status, wanted, part) assert_status(status, DPI_STATUS_##wanted, part)
#define assert_status(status, wanted, part)                                                        \
    assert_status_at((status), (wanted), (part), __FILE__, __LINE__)
void assert_status_at(dpi_status status, dpi_status wanted, const char *part, const char *file,
                      int line);

/* Deterministic test data. */
uint64_t random_u64(uint64_t *state);
double random_uniform(uint64_t *state); /* [0, 1) */
double random_normal(uint64_t *state);
int32_t random_below(uint64_t *state, int32_t n);

/* The instruction set that DPI_ISA forces on this run (dpi_isa), AUTO if unset. Ends the program
 * with status 77, which ctest counts as skipped, if the processor lacks it. */
int32_t forced_isa(void);

/* A dpi_random_fn whose user is a limited_source: insecure bits for n calls, then it fails. */
typedef struct limited_source {
    uint64_t seed;
    int32_t n;
} limited_source;
int32_t limited_bits(void *source, void *buffer, size_t n_bytes);

/* A session of n_seq sequences and n_ctx positions (0: the model's); its other options are those of
 * base, or the defaults if that is NULL. */
dpi_session *open_session(const dpi_model *model, const dpi_session_options *base, int32_t n_seq,
                          int32_t n_ctx);
/* A sampler, and the options of InvisibleInk over the whole vocabulary. */
dpi_sampler *open_sampler(const dpi_sampler_options *options);
dpi_sampler_options ink_options(int32_t n_vocab, int32_t n_ref, int32_t n_tokens, double tau,
                                double rho);
/* Fails unless these options give neither a plan nor a sampler, with that status and message. */
void assert_refused(const dpi_sampler_options *options, dpi_status status, const char *part);

/* Allocation failures: in tests built by dpi_add_test(... FAIL_ALLOC), the n-th allocation
 * from now on (1 = the next) fails, once; 0 = none. Returns allocations seen since the last
 * call. Covers malloc, calloc, realloc, aligned_alloc and mmap. */
int64_t fail_allocation(int64_t n);

/* The place after the last element: for (const struct row *r = rows; r < END(rows); r++). */
#define END(array) ((array) + sizeof(array) / sizeof *(array))

#endif
