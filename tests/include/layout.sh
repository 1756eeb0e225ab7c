#!/usr/bin/env bash
# Sources have lines of at most 100 columns, and files of at most 600 lines. Not held to that are
# data, expected output and patches, which are none.
#   layout.sh SOURCE
set -uo pipefail
export LC_ALL=C.UTF-8 # a column is a character, whatever its number of bytes
cd "$1" || exit 1
columns=100 lines=600
passed=0 failed=0
complain() {
    echo "layout: $*"
    failed=$((failed + 1))
}
while read -r file; do
    passed=$((passed + 1))
    while IFS=: read -r line _; do
        complain "$file:$line has more than $columns columns"
    done < <(grep -nE "^.{$((columns + 1))}" "$file")
    n=$(wc -l <"$file")
    [ "$n" -le $lines ] || complain "$file has $n lines, allowed are $lines"
done < <({
    find . \( -name '.*' -o -name 'build*' -o -name corpus -path '*/fuzz/*' \) ! -name . -prune -o \
        -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.cmake' -o \
        -name '*.in' -o -name '*.py' -o -name CMakeLists.txt \) -print
    find scripts -type f
} | sed 's|^\./||' | sort -u)
[ "$passed" -gt 300 ] || complain "only $passed files were found"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
