/* job.h - what a program does with the library, compiled with today's headers and with older ones.
 */
#include <stdio.h>

/* Writes what it saw, lines of text, the same for all. `folder` is empty. 0, or the line of job.c
 * where something is not as it has to be. */
int present_job(const char *folder, FILE *out);
int older_job(const char *folder, FILE *out);
