#!/bin/sh
# manpage.sh PROGRAM: dpinfer.1 on stdout, from what the program says of itself with -h.
set -eu
program=$1

# Help as it is printed, in the eyes of troff.
verbatim() {
    echo .nf
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
    echo .fi
}

version=$("$program" --version)
cat <<END
.TH DPINFER 1 "" "$version" "User Commands"
.SH NAME
dpinfer \\- write text about sensitive documents with differential privacy
.SH SYNOPSIS
.B dpinfer
.I COMMAND
[options] [arguments]
.SH DESCRIPTION
END
help=$("$program" -h) # fails here, not in a pipe, if the program does
printf '%s\n' "$help" | sed 1d | verbatim
for command in $(printf '%s\n' "$help" | sed -n '/^  dpinfer/d; s/^  \([a-z-]*\) .*/\1/p'); do
    help=$("$program" "$command" -h)
    echo ".SH $command"
    printf '%s\n' "$help" | verbatim
done
