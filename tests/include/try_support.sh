# What tests share that try commands one after the other: $work is a folder for what a command says.
# shellcheck shell=bash
passed=0 failed=0
# try WHAT COMMAND...: counts, and shows what the command said if it fails.
try() {
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$(basename "$0" .sh): $what"
        tail -n 100 "$work/log"
    fi
}
