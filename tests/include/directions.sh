#!/usr/bin/env bash
# Each folder includes only itself and what is upstream of it, by paths from the root. The table is
# that of docs/design.md: a new folder is a line here.
#   directions.sh SOURCE
set -uo pipefail
cd "$1" || exit 1
failed=0 passed=0
engine="base kernels gguf tokenizer engine" dp="dp/exact dp/account dp/methods"

# A folder, or a part of one, and what it may include beside include/ and itself.
allowed() {
    case $1 in
    include) echo "" ;;
    base) echo "" ;;
    kernels) echo "base" ;;
    gguf) echo "base kernels" ;;
    tokenizer) echo "base gguf" ;;
    engine) echo "base kernels gguf tokenizer" ;;
    dp/exact) echo "base kernels" ;;
    dp/account) echo "base kernels dp/exact" ;;
    dp/local) echo "base kernels dp/exact" ;;
    dp/pld) echo "base dp/account" ;;
    dp/methods) echo "base kernels dp/exact dp/account" ;;
    dp/audit) echo "base kernels dp/exact dp/account dp/methods" ;;
    pipeline) echo "$engine $dp dp/audit" ;;
    train) echo "$engine $dp" ;;
    pipeline/ledger) echo "base dp/account" ;;
    pipeline/journal) echo "base" ;;
    pipeline/release) echo "$engine $dp dp/audit pipeline pipeline/ledger pipeline/journal" ;;
    pipeline/perturb) echo "$engine dp/exact dp/local dp/audit" ;;
    pipeline/shards)
        echo "base dp/account pipeline pipeline/ledger pipeline/journal pipeline/release"
        ;;
    pipeline/finetune)
        echo "$engine dp/exact dp/account pipeline pipeline/ledger pipeline/release train"
        ;;
    corpus | serve | examples) echo "" ;; # the public interface alone
    tools) echo "serve eval" ;;
    eval) echo "corpus" ;;
    bench) echo "$engine $dp pipeline pipeline/release corpus" ;;
    *) return 1 ;;
    esac
}
# The folder of a file, with the parts of dp/ apart.
folder_of() {
    case $1 in
    dp/*/* | pipeline/*/*) cut -d/ -f1,2 <<<"$1" ;;
    *) cut -d/ -f1 <<<"$1" ;;
    esac
}

while IFS=: read -r file included; do
    folder=$(folder_of "$file")
    if ! upstream=$(allowed "$folder"); then
        echo "directions: $file: the folder '$folder' is not in the table of $0"
        failed=$((failed + 1))
        continue
    fi
    case $included in
    dpinfer.h | dpinfer/*) target=include ;;
    commit.h) target=$folder ;; # made while building
    *) target=$(folder_of "$included") ;;
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
