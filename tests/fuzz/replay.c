/* replay.c - main of a fuzz target without libFuzzer: runs every file of the folders and files in
 * argv once, each under a clock, so that a hang is a failure with the file's name. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { SECONDS = 300 }; /* for one file; a few milliseconds are usual */

static int n_files;

static void run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        exit(1);
    }
    /* An exact copy, so that a sanitizer sees a read past the end. */
    size_t n_bytes = (size_t)st.st_size;
    uint8_t *data = malloc(n_bytes ? n_bytes : 1);
    if (!data || fread(data, 1, n_bytes, f) != n_bytes) {
        perror(path);
        exit(1);
    }
    fclose(f);
    fprintf(stderr, "%s\n", path); /* what a crash or the clock was about */
    alarm(SECONDS);
    LLVMFuzzerTestOneInput(data, n_bytes);
    alarm(0);
    free(data);
    n_files++;
}

static void run_folder(const char *path) {
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        perror(path);
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
            run_file(file);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            run_folder(argv[i]);
        else
            run_file(argv[i]);
    }
    printf("%d files\n", n_files);
    return n_files == 0;
}
