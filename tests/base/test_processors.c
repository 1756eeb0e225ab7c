/* Processors that control groups allow: made-up folders of both versions, with the numbers that the
 * kernel's documentation gives files like these. */
#include <sys/stat.h>

#include "dpinfer/process.h"
#include "base/processors.h"
#include "tests/support/support.h"

typedef struct group_file {
    const char *path, *text; /* below the folder of groups; NULL: no more */
} group_file;

/* Folders on the way to a file, and the file. */
static void put(const char *folder, const group_file *f) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, f->path);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    write_file(path, f->text, strlen(f->text));
}

static const struct {
    const char *list; /* /proc/self/cgroup */
    group_file files[4];
    int32_t n; /* 0: no quota */
} cases[] = {
    /* Version 2: a container, in a namespace of its own. */
    {"0::/\n", {{"cpu.max", "200000 100000\n"}}, 2},
    {"0::/\n", {{"cpu.max", "max 100000\n"}}, 0},
    {"0::/\n", {{"cpu.max", "150000 100000\n"}}, 2}, /* a part of one is one */
    {"0::/\n", {{"cpu.max", "5000 100000\n"}}, 1},
    {"0::/\n", {{"cpu.max", "200000\n"}}, 0}, /* no such file */
    {"0::/\n", {{"cpu.max", ""}}, 0},
    {"0::/\n", {{"cpu.max", "x y\n"}}, 0},
    {"0::/\n", {{"cpu.max", "999999999999999999999 1\n"}}, 0},
    /* A group, and those above it. */
    {"0::/a/b\n", {{"a/cpu.max", "300000 100000\n"}, {"a/b/cpu.max", "max 100000\n"}}, 3},
    {"0::/a/b\n", {{"a/cpu.max", "max 100000\n"}, {"a/b/cpu.max", "400000 50000\n"}}, 8},
    {"0::/a/b\n", {{"a/cpu.max", "800000 100000\n"}, {"a/b/cpu.max", "100000 100000\n"}}, 1},
    {"0::/a\n", {{"a/b/cpu.max", "100000 100000\n"}, {"c/cpu.max", "100000 100000\n"}}, 0},
    /* Version 1. */
    {"5:cpu,cpuacct:/\n",
     {{"cpu,cpuacct/cpu.cfs_quota_us", "200000\n"}, {"cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
     2},
    {"9:memory:/m\n4:cpuacct,cpu:/docker/0123\n", /* a path of the host */
     {{"cpu/cpu.cfs_quota_us", "250000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}}, 3},
    {"2:cpu:/a\n",
     {{"cpu/a/cpu.cfs_quota_us", "-1\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}}, 0},
    {"2:cpuset:/\n",
     {{"cpu/cpu.cfs_quota_us", "100000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}}, 0},
    /* Both at once. */
    {"1:cpu:/\n0::/x\n",
     {{"cpu/cpu.cfs_quota_us", "400000\n"},
      {"cpu/cpu.cfs_period_us", "100000\n"},
      {"unified/x/cpu.max", "300000 100000\n"}},
     3},
    {"", {{"cpu.max", "200000 100000\n"}}, 0},
    {"nonsense\n0:\n0::\n", {{"cpu.max", "200000 100000\n"}}, 0},
};

TEST(test_quotas) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dir[256];
        make_dir(dir, sizeof dir);
        const char *list = path_in(dir, "list"), *folder = path_in(dir, "groups");
        mkdir(folder, 0700);
        write_file(list, cases[i].list, strlen(cases[i].list));
        for (int k = 0; k < 4 && cases[i].files[k].path; k++)
            put(folder, &cases[i].files[k]);
        const int32_t found = dpi_quota_processors(list, folder);
        if (found != (cases[i].n ? cases[i].n : INT32_MAX))
            fail_msg("case %zu: found %d, wanted %d", i, (int)found, (int)cases[i].n);
        remove_dir(dir);
    }
    assert_int_equal(dpi_quota_processors("/nothing", "/nothing"), INT32_MAX);
    assert_in_range(dpi_processors(), 1, 1024);
}
