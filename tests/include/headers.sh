#!/usr/bin/env bash
# Each public header compiles alone, as C17, C++17 and C++98, without a warning. Each public struct
# with a struct_size has its _init.
#   headers.sh CC INCLUDE
cc=$1 include=$2
set -- "$include"
. "$(dirname "$0")/include_support.sh"
modes=("c -std=c17")
if echo | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
    modes+=("c++ -std=c++17" "c++ -std=c++98 -Wno-long-long")
else
    echo "headers: no C++ compiler: as C alone"
fi
for header in "$include"/dpinfer.h "$include"/dpinfer/*.h; do
    for mode in "${modes[@]}"; do
        # shellcheck disable=SC2086
        if printf "#include \"%s\"\nint unused;\n" "${header#"$include"/}" |
            "$cc" -x $mode -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$include" -; then
            passed=$((passed + 1))
        else
            complain "${header#"$include"/} does not compile alone as $mode"
        fi
    done
done
n_structs=0
for header in "$include"/dpinfer/*.h; do
    for struct in $(awk '/^typedef struct [a-z_]+ \{/ { name = $3 }
                         /^    size_t struct_size;/ { print name }' "$header"); do
        n_structs=$((n_structs + 1))
        if grep -qE "^DPI_API void ${struct}_init_size\($struct \*[a-z]+, size_t size" "$header" &&
            grep -qE "^#define ${struct}_init\(" "$header"; then
            passed=$((passed + 1))
        else
            complain "${header#"$include"/}: $struct has no ${struct}_init"
        fi
    done
done
[ "$n_structs" -ge 14 ] || complain "only $n_structs structs were found"
finish 1
