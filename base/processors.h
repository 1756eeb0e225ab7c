/* processors.h - what a control group allows. Internal. */
#ifndef DPI_BASE_PROCESSORS_H
#define DPI_BASE_PROCESSORS_H

#include <stdint.h>

/* Whole processors that the CPU quota of this process's control groups allows, rounded up, at
 * least 1; INT32_MAX: there is none. `list`: the file that says which groups these are,
 * /proc/self/cgroup. `folder`: where groups are, /sys/fs/cgroup. Both versions; a group is also
 * bound by those above it. What cannot be read is no bound. Source: cgroups(7); Linux,
 * admin-guide/cgroup-v2, cpu.max; scheduler/sched-bwc, cpu.cfs_quota_us. */
int32_t dpi_quota_processors(const char *list, const char *folder);

#endif
