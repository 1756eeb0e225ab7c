#!/usr/bin/env bash
# Each folder includes only itself and what is upstream of it, by paths from the root. The table is
# that of docs/design.md: a new folder is a line here.
#   directions.sh SOURCE
. "$(dirname "$0")/include_support.sh"
engine="base kernels gguf tokenizer engine" dp="dp/exact dp/account dp/methods"
books="pipeline/ledger pipeline/journal" release="pipeline $books pipeline/release draw"
# upstream: what a folder, or a part of one, may include beside include/ and itself.
declare -A upstream=(
    [include]="" [base]="" [draw]="" [grammar]="base"
    [kernels]="base" [gguf]="base kernels" [tokenizer]="base gguf"
    [engine]="base kernels gguf tokenizer"
    [dp/exact]="base kernels" [dp/account]="base kernels dp/exact" [dp/pld]="base dp/account"
    [dp/local]="base kernels dp/exact" [dp/methods]="base kernels dp/exact dp/account"
    [dp/audit]="base kernels $dp"
    [pipeline]="$engine grammar $dp dp/audit" [train]="$engine $dp"
    [pipeline/ledger]="base dp/account" [pipeline/journal]="base"
    [pipeline/release]="$engine grammar $dp dp/audit pipeline $books draw"
    [pipeline/perturb]="$engine dp/exact dp/local dp/audit"
    [pipeline/shards]="base dp/account $release"
    [pipeline/finetune]="$engine $dp dp/audit $release train"
    [pipeline/augpe]="$engine dp/exact dp/account dp/audit $release"
    [corpus]="" [serve]="" [examples]="" # the public interface alone
    [tools]="serve eval draw" [eval]="corpus draw"
    [bench]="$engine $dp pipeline pipeline/release draw train corpus"
)
# folder_of FILE: $folder, with the parts of dp/ and pipeline/ apart.
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
    case $included in
    dpinfer.h | dpinfer/*) target=include ;;
    commit.h | page.inc) target=$folder ;; # made while building
    esac
    if [ -z "${upstream[$folder]+there}" ]; then
        complain "$file: the folder '$folder' is not in the table of $0"
    elif [[ " include $folder ${upstream[$folder]} " == *" $target "* ]]; then
        passed=$((passed + 1))
    else
        complain "$file includes \"$included\": $folder may include: include ${upstream[$folder]}"
    fi
done < <(find . -name 'build*' -prune -o -path ./tests -prune -o -name '*.[ch]' -print |
    sed 's|^\./||' | xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' |
    sed -E 's/^([^:]*):[^"]*"([^"]*)".*/\1:\2/')
finish 300
