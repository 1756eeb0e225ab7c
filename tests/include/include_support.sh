# What the tests that read the source tree share: they go on in $1.
# shellcheck shell=bash
set -uo pipefail
cd "$1" || exit 1
passed=0 failed=0
complain() {
    echo "$(basename "$0" .sh): $*"
    failed=$((failed + 1))
}
# finish LEAST: the exit, with counts; a test that found hardly anything to look at has failed.
finish() {
    [ "$passed" -ge "$1" ] || complain "only $passed were found"
    echo "$passed passed, $failed failed"
    exit $((failed > 0))
}
