#!/usr/bin/env bash
# Runs a program in a German locale, where numbers have a comma. The locale is made by the tests, so
# that no system needs to have it.
#   german.sh FOLDER                       makes it in FOLDER
#   german.sh FOLDER PROGRAM ARGUMENTS...  runs a program with it
locale=$1/de_DE.UTF-8
shift
if [ $# -eq 0 ]; then
    rm -rf "$locale"
    mkdir -p "${locale%/*}"
    localedef -i de_DE -f UTF-8 "$locale"
fi
if [ ! -d "$locale" ]; then
    echo "skipped: localedef cannot make a German locale"
    exit 77
fi
[ $# -eq 0 ] || env LOCPATH="${locale%/*}" LC_ALL=de_DE.UTF-8 "$@"
