/* paths.h - what a command reads and what it writes: no file is written over an input, over another
 * output, or over what is there without being told so. */
#ifndef DPI_PATHS_H
#define DPI_PATHS_H

#include "tools/options/options.h"

enum { PATHS_MAX = MAX_WORDS + 64, PATH_BESIDE = 4096 };

/* {0}: none so far. Paths must outlive it. */
typedef struct paths {
    int n_inputs, n_folders, n_outputs, n_beside;
    bool too_many;
    const char *input[PATHS_MAX], *folder[PATHS_MAX];
    struct {
        char option[32];
        const char *path;
    } output[PATHS_MAX];
    char beside[MAX_REPORTS + 1][PATH_BESIDE]; /* of the key and of each report */
} paths;

/* A file, a folder, or the first part of a split model that is read. NULL and "-" are none. */
void paths_read(paths *p, const char *path);
/* A folder, made or to be made, whose files are the program's own. NULL is none. */
void paths_own(paths *p, const char *path);
/* A file that is written; option: "-o", for messages. NULL is none; "-" is standard output. */
void paths_write(paths *p, const char *option, const char *path);

/* Whether a regular file is at `path`; "-" is none. */
bool paths_is_file(const char *path);

/* All of this for the options of a command line that name files, and for its model: the arguments
 * that follow are the command's. */
void paths_options(paths *p, const args *a);

/* CLI_OK, or CLI_USAGE with a message: an output is an input, or a file in a folder that is one, or
 * anywhere in a folder of the program's own, or a part
 * of a split model, or another output, by whatever names (device and inode; what is not there yet,
 * by folder and name); or it is a regular file that is there, and may not be replaced. */
int paths_check(const paths *p, bool may_replace);

/* paths_check of the options and of all arguments, which are inputs. --overwrite says whether a
 * file may be replaced. */
int paths_check_command(const args *a);

/* CLI_OK, or CLI_USAGE with a message: standard output or standard error is a file that the command
 * line names as an input. For every command, those without outputs of their own too. */
int paths_check_streams(const args *a);

#endif
