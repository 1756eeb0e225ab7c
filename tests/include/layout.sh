#!/usr/bin/env bash
# Sources have lines of at most 100 columns, and files of at most 600 lines. Not held to that are
# data, expected output and patches, which are none.
#   layout.sh SOURCE
. "$(dirname "$0")/include_support.sh"
export LC_ALL=C.UTF-8 # a column is a character, whatever its number of bytes
columns=100 lines=600
mapfile -t files < <({
    find . \( -name '.?*' -o -name 'build*' -o -path ./tests/fuzz/corpus \) -prune -o -type f \
        \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.cmake' -o -name '*.in' -o \
        -name CMakeLists.txt \) -print
    find ./scripts -type f
} | sort -u)
passed=${#files[@]}
while IFS=: read -r file line _; do
    complain "$file:$line has more than $columns columns"
done < <(grep -nHE "^.{$((columns + 1))}" "${files[@]}")
while read -r n file; do
    [ "$file" = total ] || [ "$n" -le $lines ] || complain "$file has $n lines, allowed are $lines"
done < <(wc -l "${files[@]}")
finish 300
