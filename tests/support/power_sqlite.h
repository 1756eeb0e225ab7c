/* power_sqlite.h - a layer below SQLite that routes its calls through power.h. */
#ifndef DPI_TEST_POWER_SQLITE_H
#define DPI_TEST_POWER_SQLITE_H

/* All files that SQLite opens from now on. Once. */
void power_sqlite(void);

#endif
