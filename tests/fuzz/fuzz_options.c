/* fuzz_options.c - libFuzzer target: any words as the command line of any command. The first byte
 * says which command; words are set apart by NULs. What is accepted is in the ranges of the
 * table. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "tools/command/commands.h"

enum { MAX_BYTES = 1 << 16, MAX_WORDS_GIVEN = 256 };

/* Help and messages go nowhere. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    require(freopen("/dev/null", "w", stdout) != NULL);
    setvbuf(stderr, NULL, _IONBF, 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 1 || n_bytes > MAX_BYTES)
        return 0;
    int n_commands = 0, n_words = 1;
    while (command_at(n_commands))
        n_commands++;
    const command *cmd = command_at(data[0] % n_commands);
    char *text = copy_text(data + 1, n_bytes - 1), *words[MAX_WORDS_GIVEN + 1];
    char name[] = "dpinfer";
    words[0] = name;
    for (size_t at = 0; at < n_bytes && n_words < MAX_WORDS_GIVEN; at += strlen(text + at) + 1)
        words[n_words++] = text + at;
    words[n_words] = NULL;
    args a;
    bool done = false;
    int code = options_parse(cmd, n_words, words, &a, &done);
    require(code == CLI_OK || code == CLI_USAGE);
    if (code == CLI_OK && !done) {
        require(a.n_reports >= 0 && a.n_reports <= MAX_REPORTS);
        require(a.n_positional >= 0 && a.n_positional <= cmd->max_positional);
        require(!cmd->takes_model || a.model);
        for (int i = 0; i < N_OPTIONS; i++)
            require(!isnan(a.v[i].d));
    }
    free(text);
    return 0;
}
