#!/usr/bin/env bash
# An installed dpinfer serves projects outside: examples/other_engine.c is built against it with
# CMake's find_package and with pkg-config, statically too; its twin runs in Python, and all write
# the same text. The full library links in the same ways.
#   install.sh CMAKE CC SOURCE BUILD [FLAG...]    FLAG: how the library is sanitized
set -uo pipefail
cmake=$1 cc=$2 source=$3 build=$4
shift 4
work=$build/install-test
. "$(dirname "$0")/try_support.sh"
rm -rf "$work" && mkdir -p "$work" || exit 1

# What is not built yet is built to be installed: in a small project, and each file of ours.
mkdir "$work/later"
cat >"$work/later/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(later LANGUAGES NONE)
include($source/cmake/build_to_install.cmake)
add_custom_target(made COMMAND \${CMAKE_COMMAND} -E touch made.a)
dpi_build_to_install(dev made \${CMAKE_BINARY_DIR}/made.a)
install(FILES \${CMAKE_BINARY_DIR}/made.a DESTINATION lib COMPONENT dev)
END
try "configure" "$cmake" -S "$work/later" -B "$work/later/build"
try "install before a build" "$cmake" --install "$work/later/build" --prefix "$work/later"
try "what was built for it" test -f "$work/later/lib/made.a"
for file in "$build"/lib*.a "$build"/lib*.so "$build"/dpinfer.1; do
    try "$file is built" grep -qF "if(NOT EXISTS \"$file\")" "$build/cmake_install.cmake"
done

# dev alone has no shared library, so that -ldpinfer is the static one.
try "install" "$cmake" --install "$build" --prefix "$work/all"
try "install dev" "$cmake" --install "$build" --prefix "$work/dev" --component dev
mv "$work/all" "$work/usr" && mv "$work/dev" "$work/static" # an installed tree may be moved
pc=$(find "$work/static" -name dpinfer.pc)
libs=$(dirname "$(dirname "${pc#"$work/static/"}")")
try "header" test -f "$work/usr/include/dpinfer.h"
try "header of training" test -f "$work/usr/include/dpinfer/train.h"
try "licence" cmp "$source/LICENSE" "$work/usr/share/doc/dpinfer/LICENSE"
try "program" "$work/usr/bin/dpinfer" --version
page=$work/usr/share/man/man1/dpinfer.1
try "a section of the manual page for each command" test "$(grep -c '^Usage: dpinfer ' "$page")" \
    -eq "$("$work/usr/bin/dpinfer" -h | grep -v '^  dpinfer' | grep -c '^  [a-z]')"
for section in NAME SYNOPSIS DESCRIPTION COMMANDS EXAMPLES 'EXIT STATUS' ENVIRONMENT 'SEE ALSO'; do
    try "section $section of the manual page" grep -qx "\.SH $section" "$page"
done
if command -v man >/dev/null; then
    LC_ALL=C.UTF-8 man --warnings -l "$page" >"$work/page.txt" 2>"$work/warnings"
    try "a manual page without warnings" test ! -s "$work/warnings"
    try "a manual page with text" grep -q 'EXAMPLES' "$work/page.txt"
fi
completions=$work/usr/share/bash-completion/completions/dpinfer
try "completion of bash" bash -c ". '$completions' && complete -p dpinfer"
try "completion of zsh" grep -q '^#compdef dpinfer' "$work/usr/share/zsh/site-functions/_dpinfer"

# pkg_config PREFIX OPTION...: what pkg-config says of the library $package there.
package=dpinfer
pkg_config() {
    PKG_CONFIG_PATH=$work/$1/$libs/pkgconfig pkg-config "${@:2}" "$package"
}
full=$(basename "$(find "$work/static" -name 'dpinfer_*.pc')" .pc)
some=("$source"/examples/refs/stories/0[1-6]-*.txt "$work/no-such-record.txt")
# text NAME COMMAND...: the command's text for these records and a seed, into NAME.txt.
text() {
    local name=$1
    shift
    try "run $name" "$@" --seed 3 "$source/examples/public.txt" "${records[@]}"
    [ "$failed" -eq 0 ] || exit 1 # what follows compares these texts
    grep -v -e zCDP -e '^NOT PRIVATE' -e '^  ' "$work/log" >"$work/$name.txt"
}
# same NAME COMMAND...: that text is the first program's.
same() {
    text "$@"
    try "text of $1" cmp "$work/static.txt" "$work/$1.txt"
}

flags=(-Wall -Wextra -Wpedantic -Werror "$@")
read -ra static <<<"$(pkg_config static --static --cflags --libs)"
try "pkg-config --static" "$cc" -std=c17 "${flags[@]}" "$source/examples/other_engine.c" \
    "${static[@]}" -o "$work/static/engine"
records=("${some[@]}")
text static "$work/static/engine"
try "two answers" test "$(grep -c . "$work/static.txt")" -eq 2
records=("$work"/no-such-record-{1..7}.txt)
text null "$work/static/engine"
try "records move the text" bash -c "! cmp -s '$work/null.txt' '$work/static.txt'"
records=("${some[@]}")
try "public text needed" grep -q 'no public text' <("$work/static/engine" none none 2>&1)

# Without a shared library in the end either, where the archives of all of them are installed.
if [ $# -eq 0 ] && echo 'int main(void) { return 0; }' | "$cc" -x c - -x none -static \
    "${static[@]}" -o "$work/empty" 2>/dev/null; then
    read -ra all <<<"$(pkg_config usr --static --cflags --libs)"
    try "cc -static" "$cc" -std=c17 "${flags[@]}" -static "$source/examples/other_engine.c" \
        "${all[@]}" -o "$work/alone"
    try "no shared library" bash -c "! readelf -d '$work/alone' | grep -q NEEDED"
    same alone "$work/alone"
    # OpenBLAS is loaded, and a static program cannot load: an error, and no crash.
    cat >"$work/ref.c" <<'END'
#include <dpinfer.h>
#include <stdio.h>
int main(int argc, char **argv) {
    dpi_model *model;
    dpi_session *session;
    dpi_session_options o;
    dpi_error err;
    dpi_session_options_init(&o);
    o.isa = DPI_ISA_REF;
    if (argc != 2 || dpi_model_open(argv[1], NULL, &model, &err) != DPI_STATUS_OK)
        return 2;
    const dpi_status status = dpi_session_create(model, &o, &session, &err);
    puts(err.message);
    return status != DPI_STATUS_UNSUPPORTED;
}
END
    try "a static program" "$cc" -std=c17 "${flags[@]}" -static "$work/ref.c" "${all[@]}" \
        -o "$work/ref"
    try "OpenBLAS in a static program" "$work/ref" "$source/models/dpinfer-4m-q8_0.gguf"
else
    echo "skipped: no static link (sanitizers, or archives that are not installed)"
fi

cat >"$work/full.c" <<'END'
#include <dpinfer.h>
#include <dpinfer/train.h>
int main(void) {
    dpi_train_config config;
    dpi_train_config_init(&config);
    double rho = 0;
    return dpi_zcdp_rho(1, 1e-6, &rho, NULL) != DPI_STATUS_OK || config.threads != 0 || rho <= 0;
}
END
package=$full
read -ra everything <<<"$(pkg_config static --static --cflags --libs)"
package=dpinfer
try "$full" "$cc" -std=c17 "${flags[@]}" "$work/full.c" "${everything[@]}" -o "$work/full"
try "run $full" "$work/full"
if [ -x "$work/alone" ]; then # the archives are there
    package=$full
    read -ra everything <<<"$(pkg_config usr --static --cflags --libs)"
    package=dpinfer
    try "cc -static $full" "$cc" -std=c17 "${flags[@]}" -static "$work/full.c" "${everything[@]}" \
        -o "$work/full_alone"
    try "run a static $full" "$work/full_alone"
    try "no shared library" bash -c "! readelf -d '$work/full_alone' | grep -q NEEDED"
fi

cat >"$work/two.cc" <<'END'
#include <dpinfer.h>
int main() {
    double rho = 0;
    return dpi_zcdp_rho(1, 1e-6, &rho, nullptr) != DPI_STATUS_OK || rho < 0.02435 || rho > 0.02436;
}
END
if echo | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
    try "C++" "$cc" -x c++ -std=c++17 "${flags[@]}" "$work/two.cc" -x none "${static[@]}" \
        -o "$work/two"
    try "run C++" "$work/two"
fi

try "cmake" "$cmake" -S "$source/examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/usr" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*"
try "cmake --build" "$cmake" --build "$work/cmake"
same cmake "$work/cmake/other_engine"
try "private_text" "$work/cmake/private_text" "$source/models/dpinfer-4m-q8_0.gguf" \
    "$source/examples/refs/stories" 10
mv "$work/log" "$work/release.txt"
try "its statement" grep -q '9\.99[0-9]*, 1e-06)-DP, for all that is released' "$work/release.txt"
mkdir "$work/project"
cp "$work/full.c" "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(full LANGUAGES C)
find_package(dpinfer REQUIRED)
add_executable(full full.c)
target_link_libraries(full PRIVATE dpinfer::full)
if(TARGET dpinfer::full_shared)
  add_executable(full_shared full.c)
  target_link_libraries(full_shared PRIVATE dpinfer::full_shared)
endif()
END
try "cmake full" "$cmake" -S "$work/project" -B "$work/project/build" \
    -DCMAKE_PREFIX_PATH="$work/usr" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*"
try "cmake --build full" "$cmake" --build "$work/project/build"
try "run cmake's full" "$work/project/build/full"

# A sanitizer's runtime has to be loaded before a library that needs it: not from here.
if [ -e "$work/usr/$libs/libdpinfer.so" ] && [ $# -eq 0 ]; then
    read -ra shared <<<"$(pkg_config usr --cflags --libs)"
    try "pkg-config" "$cc" -std=c17 "${flags[@]}" "$source/examples/other_engine.c" "${shared[@]}" \
        -lm -o "$work/shared"
    try "not the shared library" grep -q 'libdpinfer\.so\.2' <(readelf -d "$work/shared")
    same shared env LD_LIBRARY_PATH="$work/usr/$libs" "$work/shared"
fi
echo "install: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
