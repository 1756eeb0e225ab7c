/* power.h - a disk whose power is cut. Writes since the last sync of a file arrive by chance, in
 * pieces of a sector, and so do names since the last sync of their folder. A test routes the calls
 * of what it tests through these; where that has several threads, under the lock. */
#ifndef DPI_TEST_POWER_H
#define DPI_TEST_POWER_H

#include "tests/support/support.h"

typedef struct power_file power_file;

void power_lock(void);
void power_unlock(void);

/* The power is cut at the at-th call from now on that changes the disk; 0: never. */
void power_cut_at(int32_t at);
/* Cuts it now, if it is not cut. Whether it was cut before. */
bool power_cut(void);
/* Counts a call. False: the power is off. *last (may be NULL): it is cut with this one, of which a
 * part may arrive. */
bool power_call(bool *last);

/* What is known of a file. The first time the disk has what is there now. */
power_file *power_find(const char *path);
/* n 0: the file is cut to `at` bytes. */
void power_write(power_file *file, size_t at, const void *data, size_t n);
void power_sync(power_file *file);
/* Its name: there or not, in the folder as it is now. */
void power_name(power_file *file, bool is_there);
/* The disk has the name as it is, and for a file that is gone nothing of it. */
void power_sync_name(power_file *file);
/* The same for all names of a folder; NULL: of all. */
void power_sync_names(const char *folder);
/* `to` is what `from` was, which is gone. */
void power_rename(power_file *from, power_file *to);

/* The files as the next start finds them; the power is on again. */
void power_restore(void);

#endif
