#!/usr/bin/env bash
# Each folder includes only itself and what is upstream of it, by paths from the root. The table is
# that of docs/design.md: a new folder is a line here.
#   directions.sh SOURCE
set -uo pipefail
cd "$1" || exit 1
failed=0 passed=0
engine="base kernels gguf tokenizer engine" dp="dp/exact dp/account dp/methods"

# upstream: what a folder, or a part of one, may include beside include/ and itself.
allowed() {
    case $1 in
    include) upstream="" ;;
    base) upstream="" ;;
    kernels) upstream="base" ;;
    gguf) upstream="base kernels" ;;
    tokenizer) upstream="base gguf" ;;
    engine) upstream="base kernels gguf tokenizer" ;;
    grammar) upstream="base" ;;
    dp/exact) upstream="base kernels" ;;
    dp/account) upstream="base kernels dp/exact" ;;
    dp/local) upstream="base kernels dp/exact" ;;
    dp/pld) upstream="base dp/account" ;;
    dp/methods) upstream="base kernels dp/exact dp/account" ;;
    dp/audit) upstream="base kernels dp/exact dp/account dp/methods" ;;
    pipeline) upstream="$engine grammar $dp dp/audit" ;;
    train) upstream="$engine $dp" ;;
    pipeline/ledger) upstream="base dp/account" ;;
    pipeline/journal) upstream="base" ;;
    pipeline/release)
        upstream="$engine grammar $dp dp/audit pipeline pipeline/ledger pipeline/journal"
        ;;
    pipeline/perturb) upstream="$engine dp/exact dp/local dp/audit" ;;
    pipeline/shards)
        upstream="base dp/account pipeline pipeline/ledger pipeline/journal pipeline/release"
        ;;
    pipeline/finetune)
        upstream="$engine dp/exact dp/account dp/audit dp/methods pipeline pipeline/ledger"
        upstream+=" pipeline/journal pipeline/release train"
        ;;
    pipeline/augpe)
        upstream="$engine dp/exact dp/account dp/audit pipeline pipeline/ledger pipeline/journal"
        upstream+=" pipeline/release"
        ;;
    corpus | serve | examples) upstream="" ;; # the public interface alone
    tools) upstream="serve eval" ;;
    eval) upstream="corpus" ;;
    bench) upstream="$engine $dp pipeline pipeline/release train corpus" ;;
    *) return 1 ;;
    esac
}
# folder: that of a file, with the parts of dp/ apart.
folder_of() {
    local below=${1#*/}
    case $1 in
    dp/*/* | pipeline/*/*) folder=${1%%/*}/${below%%/*} ;;
    *) folder=${1%%/*} ;;
    esac
}

while IFS=: read -r file included; do
    folder_of "$included"
    target=$folder
    folder_of "$file"
    if ! allowed "$folder"; then
        echo "directions: $file: the folder '$folder' is not in the table of $0"
        failed=$((failed + 1))
        continue
    fi
    case $included in
    dpinfer.h | dpinfer/*) target=include ;;
    commit.h | page.inc) target=$folder ;; # made while building
    esac
    if [[ " include $folder $upstream " == *" $target "* ]]; then
        passed=$((passed + 1))
    else
        echo "directions: $file includes \"$included\": $folder may include: include $upstream"
        failed=$((failed + 1))
    fi
done < <(find . -name 'build*' -prune -o -path ./tests -prune -o -name '*.[ch]' -print |
    sed 's|^\./||' | xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' |
    sed -E 's/^([^:]*):[^"]*"([^"]*)".*/\1:\2/')
[ "$passed" -gt 300 ] || {
    echo "directions: only $passed includes were found"
    failed=$((failed + 1))
}
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
