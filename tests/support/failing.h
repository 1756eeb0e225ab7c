/* failing.h - every allocation of a call fails once, in tests built with FAIL_ALLOC:
 *
 *     int64_t n = 1;
 *     for (; fails(n, thing_create(&thing, ERR), "no memory"); n++)
 *         assert_null(thing);
 *     assert_true(n > 5); // the call made n - 1 allocations, or nothing was tried
 */
#ifndef DPI_TEST_FAILING_H
#define DPI_TEST_FAILING_H

#include "tests/support/support.h"

/* Makes the call with its n-th allocation failing: true if there was one, and then the status must
 * be MEMORY with `part` in the message; else it must be OK. */
#define fails(n, call, part)                                                                       \
    (fail_allocation(n), failing_status = (call),                                                  \
     assert_fails(failing_status, fail_allocation(0) >= (n), part))

static dpi_status failing_status;

static inline bool assert_fails(dpi_status status, bool has_failed, const char *part) {
    if (has_failed)
        assert_error(status, MEMORY, part);
    else
        assert_ok(status);
    return has_failed;
}

#endif
