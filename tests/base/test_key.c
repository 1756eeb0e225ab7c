/* dpi_key_alloc and dpi_map: what the system says of their pages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "tests/support/support.h"

/* Sanitizers take mlock away from a program: they would lock all that they use. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKS 0
#elif defined(__has_feature)
#define LOCKS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define LOCKS 1
#endif

/* The flags of the mapping that holds `p`, of /proc/self/smaps; "" if it is not mapped. */
static void find_flags(const void *p, char *flags, size_t size) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    uintptr_t begin, end;
    bool inside = false;
    flags[0] = '\0';
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin <= (uintptr_t)p && (uintptr_t)p < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, size, "%.200s", line + 8);
    }
    fclose(f);
}

static void test_key(void **state) {
    (void)state;
    char flags[256];
    unsigned char *key = dpi_key_alloc(16);
    assert_non_null(key);
    for (int i = 0; i < 16; i++)
        assert_int_equal(key[i], 0);
    memset(key, 7, 16);
    find_flags(key, flags, sizeof flags);
    assert_non_null(strstr(flags, " dd")); /* not in a core dump */
    struct rlimit most;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &most), 0);
    if (LOCKS && most.rlim_cur >= 1 << 16)
        assert_non_null(strstr(flags, " lo")); /* locked */
    dpi_key_free(key, 16);
    find_flags(key, flags, sizeof flags);
    assert_null(strstr(flags, " lo"));
    dpi_key_free(NULL, 16);
}

/* Where nothing may be locked there is a key all the same. */
static void test_no_lock(void **state) {
    (void)state;
    char flags[256];
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    unsigned char *key = dpi_key_alloc(16);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
    assert_non_null(key);
    find_flags(key, flags, sizeof flags);
    assert_non_null(strstr(flags, " dd"));
    dpi_key_free(key, 16);
}

static void test_map(void **state) {
    (void)state;
    char flags[256];
    void *caches = dpi_map(1 << 20);
    assert_non_null(caches);
    find_flags(caches, flags, sizeof flags);
    assert_non_null(strstr(flags, " dd"));
    dpi_unmap(caches, 1 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_key), cmocka_unit_test(test_no_lock),
                                       cmocka_unit_test(test_map)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
