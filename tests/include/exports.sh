#!/usr/bin/env bash
# Only dpi_ symbols of the public headers are visible in a library (.a or .so), and all of those.
# And the library does not print, exit, abort, read the environment, change the locale or (.a)
# define writable globals.
#   exports.sh LIBRARY "HEADER..." [sanitized]
set -uo pipefail
lib=$1 sanitized=${3:-}
read -ra headers <<<"$2"
header=$(cat "${headers[@]}")
failed=0
complain() {
    echo "exports: $*"
    failed=1
}
dynamic=() # a shared library has symbols of the start-up files too, which are hidden
[[ "$lib" != *.so* ]] || dynamic=(-D)
exported=$(nm "${dynamic[@]}" -g --defined-only "$lib" | awk 'NF == 3 { print $3 }' | sort)
declared=$(grep -oE '\bdpi_[a-z0-9_]+\(' <<<"$header" | tr -d '(' | sort -u)
[ -n "$exported" ] || complain "no symbols in $lib"
for symbol in $exported; do
    grep -qx "$symbol" <<<"$declared" || complain "$symbol is exported but not in ${headers[*]##*/}"
done
for symbol in $declared; do
    grep -qE "DPI_API[^;]*\b$symbol\(" <(tr '\n' ' ' <<<"$header" | sed 's/;/;\n/g') || continue
    grep -qx "$symbol" <<<"$exported" || complain "$symbol is declared but not exported"
done
undefined=$(nm "${dynamic[@]}" -u "$lib" | awk '{ sub(/@.*/, "", $2); print $2 }')
for symbol in exit _exit abort printf fprintf puts fputs putchar perror vfprintf getenv setenv \
    setlocale signal sigaction __assert_fail __printf_chk __fprintf_chk; do
    ! grep -qx "$symbol" <<<"$undefined" || complain "the library calls $symbol"
done
if [ -z "$sanitized${dynamic[*]}" ]; then # sanitizers add data of their own
    # .data.rel.ro is constant: read-only once its pointers are relocated.
    writable=$(objdump -t "$lib" |
        awk '/ O / && /[ \t]\.(data|bss|tdata|tbss|data\.[^r][^ ]*|bss\.[^ ]*)\t/ { print $NF }')
    [ -z "$writable" ] || complain "writable globals: $writable"
fi
[ $failed -eq 0 ] && echo "1 passed, 0 failed"
exit $failed
