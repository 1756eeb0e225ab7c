#!/usr/bin/env bash
# Each folder includes only itself and what is upstream of it, by paths from the root. The table is
# that of docs/design.md: a new folder is a line here.
#   directions.sh SOURCE
. "$(dirname "$0")/include_support.sh"
engine="base kernels gguf tokenizer engine" dp="dp/exact dp/account dp/methods"
books="pipeline/ledger pipeline/journal pipeline/claim"
release="pipeline $books pipeline/records pipeline/release draw"
audited="pipeline/release pipeline/records pipeline/claim pipeline/finetune pipeline/augpe"
audited+=" pipeline/perturb pipeline/steer"
rooms="tools/terminal tools/options"
# upstream: what a folder, or a part of one, may include beside include/ and itself.
declare -A upstream=(
    [include]="" [base]="" [draw]="" [grammar]="base"
    [kernels]="base" [gguf]="base kernels" [tokenizer]="base gguf"
    [engine]="base kernels gguf tokenizer"
    [dp/exact]="base kernels" [dp/account]="base kernels dp/exact" [dp/pld]="base dp/account"
    [dp/local]="base kernels dp/exact" [dp/methods]="base kernels dp/exact dp/account"
    [dp/mechanism]="base $dp"
    [pipeline]="$engine grammar $dp" [train]="$engine $dp"
    [pipeline/ledger]="base dp/account" [pipeline/journal]="base"
    [pipeline/records]="base"
    [pipeline/claim]="base kernels gguf $dp dp/mechanism pipeline pipeline/ledger pipeline/journal"
    [pipeline/release]="$engine grammar $dp dp/mechanism pipeline $books pipeline/records draw"
    [pipeline/perturb]="$engine dp/exact dp/local dp/mechanism"
    [pipeline/shards]="base dp/account $release"
    [pipeline/finetune]="$engine $dp dp/mechanism $release train"
    [pipeline/steer]="$engine $dp dp/mechanism $release pipeline/finetune pipeline/perturb"
    [pipeline/augpe]="$engine dp/exact dp/account dp/mechanism $release"
    # Audits look inside: at samplers, and at what drives them.
    [audit]="base kernels dp/exact dp/methods dp/mechanism dp/local $audited"
    [corpus]="" [serve]="" [examples]="" # the public interface alone
    [tools]="$rooms tools/command" [eval]="corpus draw"
    [tools/terminal]="" [tools/options]="serve tools/terminal"
    [tools/ranks]="$rooms" [tools/shared]="$rooms tools/ranks"
    [tools/remote]="audit $rooms tools/shared"
    [tools/serve]="serve $rooms tools/shared"
    [tools/command]="serve draw eval audit $rooms tools/ranks tools/shared tools/remote tools/serve"
    [bench]="$engine $dp pipeline pipeline/release draw train corpus"
)
# folder_of FILE: $folder, with the parts of dp/, pipeline/ and tools/ apart.
folder_of() {
    local below=${1#*/}
    case $1 in
    dp/*/* | pipeline/*/* | tools/*/*) folder=${1%%/*}/${below%%/*} ;;
    *) folder=${1%%/*} ;;
    esac
}

while IFS=: read -r file included; do
    folder_of "$included"
    target=$folder
    folder_of "$file"
    case $included in
    dpinfer.h | dpinfer/*) target=include ;;
    commit.h | page.inc | mechanisms.inc) target=$folder ;; # made while building
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
