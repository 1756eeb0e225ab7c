# What scripts/test and scripts/check share; to be sourced in the root of the sources.
# shellcheck shell=bash
set -uo pipefail
passed=0 failed=0 skipped=0
jobs=$(nproc)
export OMP_WAIT_POLICY=passive # tests run side by side: idle threads must not spin
export CTEST_OUTPUT_ON_FAILURE=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
said=() # what was left out, and why

# took SECONDS: as minutes and seconds.
took() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# build NAME DIRECTORY "TARGET..." [CMake options]
build() {
    local name=$1 directory=$2 targets begun=$SECONDS line
    read -ra targets <<<"$3"
    shift 3
    echo "== $name: building in $directory/"
    if ! { cmake -S . -B "$directory" -DCMAKE_BUILD_TYPE=Release -DDPI_TESTS=ON "$@" &&
        cmake --build "$directory" --target "${targets[@]}" -j "$jobs"; } >"$log" 2>&1; then
        grep -nE 'error|Error' "$log" | head -n 20
        tail -n 20 "$log"
        echo "== $name: the build failed"
        failed=$((failed + 1))
        return 1
    fi
    while read -r line; do said+=("$name: ${line#-- left out: }"); done \
        < <(grep '^-- left out: ' "$log")
    echo "== $name: built in $(took $((SECONDS - begun)))"
}

# check NAME DIRECTORY [ctest options]: adds up what ctest's closing line says, and shows where the
# time went. ctest counts a test that was skipped as passed: here it is neither.
check() {
    local name=$1 directory=$2 begun=$SECONDS line n
    shift 2
    # One more than there are processors: tests wait for files, servers and each other.
    (cd "$directory" && ctest -j $((jobs + 1)) --no-tests=error "$@") 2>&1 | tee "$log"
    line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log")
    if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
        n=$(grep -c 'Test.*\*\*\*Skipped' "$log")
        failed=$((failed + BASH_REMATCH[1]))
        passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1] - n))
        skipped=$((skipped + n))
    else
        failed=$((failed + 1))
    fi
    echo "== $name: tested in $(took $((SECONDS - begun))); the ten slowest tests:"
    sed -nE 's/.*Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*/\2 s  \1/p' "$log" | sort -rn |
        head -n 10
    # Why: of a whole test, or of a part of one.
    while read -r line; do said+=("$name: $line"); done < <(awk '
        / Testing: / { test = $NF }
        sub(/^skipped: /, "") && !seen[test $0]++ { print test ": " $0 }
        ' "$directory/Testing/Temporary/LastTest.log")
}

# count LINE: adds the counts of "N passed, N failed"; no such line is a failure.
count() {
    local counts='^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$'
    if [[ $1 =~ $counts ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
    else
        failed=$((failed + 1))
    fi
}

# summary: the last lines.
summary() {
    [ ${#said[@]} -eq 0 ] || { echo "== left out:"; printf '   %s\n' "${said[@]}"; }
    local counts="$passed passed, $failed failed"
    [ "$skipped" -eq 0 ] || counts+=", $skipped skipped"
    echo "$counts"
    [ "$failed" -eq 0 ]
}
