#!/usr/bin/env bash
# Runs a program in a German locale, where numbers have a comma. The locale is made here, so that no
# system needs to have it.
#   german.sh PROGRAM ARGUMENTS...
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! localedef -i de_DE -f UTF-8 "$dir/de_DE.UTF-8" >"$dir/log" 2>&1; then
    echo "skipped: localedef cannot make a German locale: $(head -n 1 "$dir/log")"
    exit 77
fi
env LOCPATH="$dir" LC_ALL=de_DE.UTF-8 "$@"
