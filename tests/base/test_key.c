/* dpi_key_alloc and dpi_map: what the system says of their pages. */
#include <inttypes.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "tests/support/support.h"

/* Sanitizers take mlock away from a program: they would lock all that they use. */
#define LOCKS (!SANITIZED)

/* Whether the mapping that holds `p` has a flag in /proc/self/smaps. */
static bool has_flag(const void *p, const char *flag) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    uintptr_t begin, end;
    bool inside = false, has = false;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin <= (uintptr_t)p && (uintptr_t)p < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            has = strstr(line, flag) != NULL;
    }
    fclose(f);
    return has;
}

TEST(test_key) {
    unsigned char *key = dpi_key_alloc(16);
    assert_non_null(key);
    assert_memory_equal(key, (char[16]){0}, 16);
    memset(key, 7, 16);
    assert_true(has_flag(key, " dd")); /* not in a core dump */
    struct rlimit most;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &most), 0);
    if (LOCKS && most.rlim_cur >= 1 << 16)
        assert_true(has_flag(key, " lo")); /* locked */
    dpi_key_free(key, 16);
    assert_false(has_flag(key, " lo"));
    dpi_key_free(NULL, 16);
}

/* Where nothing may be locked there is a key all the same. */
TEST(test_no_lock) {
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
    const struct rlimit none = {0, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    unsigned char *key = dpi_key_alloc(16);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
    assert_non_null(key);
    assert_true(has_flag(key, " dd"));
    dpi_key_free(key, 16);
}

TEST(test_map) {
    void *caches = dpi_map(1 << 20);
    assert_non_null(caches);
    assert_true(has_flag(caches, " dd"));
    dpi_unmap(caches, 1 << 20);
}
