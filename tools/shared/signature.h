/* signature.h - reports that are signed and checked with SSH keys, by ssh-keygen -Y (OpenSSH): its
 * keys, its files, its format. Such a signature can be checked without dpinfer:
 *
 *     ssh-keygen -Y verify -f allowed -I signer -n dpinfer-report -s r.json.sig <r.json
 *
 * where `allowed` has a line "signer " and the public key. */
#ifndef DPI_SIGNATURE_H
#define DPI_SIGNATURE_H

#include <stdbool.h>

/* CLI_OK if the key signs; else CLI_USAGE with a message. An encrypted key may ask for its
 * passphrase. */
int signature_try(const char *key);
/* The name of the signature of a report, REPORT.sig, to be freed; NULL, with a message: out of
 * memory. */
char *signature_name(const char *report);
/* Signs the file at `path` into path.sig; an existing one is a failure unless `replaces`. CLI_OK,
 * or CLI_FAILED with a message. */
int signature_write(const char *key, const char *path, bool replaces);
/* CLI_OK if `signature` is one of the file at `path` by the public key; else CLI_FAILED with a
 * message, CLI_USAGE if the key cannot be read. */
int signature_check(const char *public_key, const char *path, const char *signature);

#endif
