#include "base/processors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/process.h"
#include "base/system.h"

enum { PATH_BYTES = 4096 };

/* The words of a small file that begins with one or two; "" where there is none. */
static void read_words(const char *folder, const char *name, char first[24], char second[24]) {
    char path[PATH_BYTES + 32];
    first[0] = second[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%23s %23s", first, second) < 1)
        first[0] = '\0';
    if (f)
        fclose(f);
}

/* Microseconds of processor time in each period, as processors; "max" and -1 are no quota. */
static int32_t processors_of(const char *quota, const char *period) {
    const long long time = strtoll(quota, NULL, 10), of = strtoll(period, NULL, 10);
    if (time <= 0 || of <= 0)
        return INT32_MAX;
    const long long n = time / of + (time % of > 0);
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static int32_t of_group(const char *folder) {
    char quota[24], period[24], unused[24];
    read_words(folder, "cpu.max", quota, period);
    const int32_t of_v2 = processors_of(quota, period);
    read_words(folder, "cpu.cfs_quota_us", quota, unused);
    read_words(folder, "cpu.cfs_period_us", period, unused);
    return least(of_v2, processors_of(quota, period));
}

/* Of the group at `path` below `folder`, and of those above it. In a container the path may be that
 * of the host, of which only the folder itself is there. */
static int32_t of_path(const char *folder, const char *path) {
    char at[PATH_BYTES];
    const int n = snprintf(at, sizeof at, "%s%s/", folder, path);
    int32_t most = INT32_MAX;
    if (n < 0 || n >= PATH_BYTES)
        return most;
    for (char *slash = at + strlen(folder); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        most = least(most, of_group(at));
        *slash = '/';
    }
    return most;
}

/* A line "0::/a" of version 2, or "4:cpu,cpuacct:/a" of version 1. */
static int32_t of_line(char *line, const char *folder) {
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    char below[PATH_BYTES];
    int32_t most = INT32_MAX;
    if (!path || path[1] != '/')
        return most;
    *path++ = '\0', controllers++;
    path[strcspn(path, "\n")] = '\0';
    const char *const v2[] = {"", "/unified"}, *const v1[] = {"/cpu", "/cpu,cpuacct"};
    const bool is_v2 = controllers[0] == '\0';
    const bool is_cpu = strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0 ||
                        strstr(controllers, ",cpu,") || strcmp(controllers, "cpuacct,cpu") == 0;
    for (int i = 0; i < 2 && (is_v2 || is_cpu); i++) {
        snprintf(below, sizeof below, "%s%s", folder, is_v2 ? v2[i] : v1[i]);
        most = least(most, of_path(below, path));
    }
    return most;
}

int32_t dpi_quota_processors(const char *list, const char *folder) {
    char line[PATH_BYTES];
    int32_t most = INT32_MAX;
    FILE *f = fopen(list, "r");
    while (f && fgets(line, sizeof line, f))
        most = least(most, of_line(line, folder));
    if (f)
        fclose(f);
    return most;
}

int32_t dpi_processors(void) {
    const int32_t quota = dpi_quota_processors("/proc/self/cgroup", "/sys/fs/cgroup");
    const int32_t n = least(least(dpi_system_processors(), quota), 1024);
    return n < 1 ? 1 : n;
}
