/* power.h - a disk whose power is cut. Writes since the last sync of a file arrive by chance, in
 * pieces of a sector, and so do names since the last sync of their folder. A test routes the calls
 * of what it tests through these, from any thread. */
#ifndef DPI_TEST_POWER_H
#define DPI_TEST_POWER_H

#include "tests/support/support.h"

/* The power is cut at the at-th call from now on that changes the disk; 0: never. */
void power_cut_at(int32_t at);
/* The same, but the process is killed there: what it has written stays. */
void power_kill_at(int32_t at);
/* Cuts it now, if it is not cut. Whether it was cut before. */
bool power_cut(void);
/* The files as the next start finds them; the power is on again, and stays on. */
void power_restore(void);
/* The same after a quiet time: the disk has all names. */
void power_settle(void);

/* The calls, each before it is made. False: the power is off, and the call must fail. A file is
 * what stands there when it is first named. */
bool power_open(const char *path, bool creates);
/* n 0: the file is cut to `at` bytes. Of that with which the power is cut a part may arrive. */
bool power_write(const char *path, size_t at, const void *data, size_t n);
bool power_sync(const char *path); /* of a folder: the names in it */
bool power_unlink(const char *path);
bool power_rename(const char *from, const char *to);

/* No call, but a part of one: the disk has the name as it is, and nothing of a file that is gone.
 */
void power_sync_name(const char *path);

/* All files that SQLite opens from now on go through these (power_sqlite.c). Once. */
void power_sqlite(void);

#endif
