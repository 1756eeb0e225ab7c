#!/usr/bin/env bash
# What bash and zsh complete, with the scripts that `dpinfer completion` writes; suggestions for
# mistyped commands; help and version in their spellings.
#   completion.sh PROGRAM
set -uo pipefail
program=$1
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# is WHAT FOUND EXPECTED
is() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        echo "completion: $1: found '$2', expected '$3'"
        failed=$((failed + 1))
    fi
}

# ---- bash
"$program" completion bash >dpinfer.bash
# shellcheck source=/dev/null
. ./dpinfer.bash
# complete_bash WORD...: what bash offers for the last word, in one line.
complete_bash() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _dpinfer
    echo "${COMPREPLY[*]}"
}
touch model.gguf records.csv
is "a command" "$(complete_bash dpinfer ru)" "run"
is "commands with p" "$(complete_bash dpinfer p)" "plan preview perturb pretrain"
is "help of a command" "$(complete_bash dpinfer help qua)" "quantize"
is "an option" "$(complete_bash dpinfer run --acco)" "--accountant"
is "choices" "$(complete_bash dpinfer run --accountant '')" "zcdp br filter"
is "a choice" "$(complete_bash dpinfer run --adjacency zero)" "zero-out"
is "choices by a short name" "$(complete_bash dpinfer bench -o j)" "json jsonl"
is "a name" "$(complete_bash dpinfer statistic wo)" "word_count"
is "an action" "$(complete_bash dpinfer ledger c)" "charge close"
is "a shell" "$(complete_bash dpinfer completion z)" "zsh"
is "an option of a statistic" "$(complete_bash dpinfer statistic word_count --wo)" "--word"
is "no name in the second place" "$(complete_bash dpinfer statistic word_count rec)" "records.csv"
is "an option of another command" "$(complete_bash dpinfer account --text-f)" ""
is "no file where a number belongs" "$(complete_bash dpinfer run --rho '')" ""
is "a file of an option" "$(complete_bash dpinfer run -m mod)" "model.gguf"
is "a file" "$(complete_bash dpinfer run model.gguf rec)" "records.csv"
is "shells" "$(complete -p dpinfer)" "complete -o filenames -F _dpinfer dpinfer"
# Every option of every command is offered: those that its help shows.
commands=$("$program" -h | sed -n '/^  dpinfer/d; s/^  \([a-z][a-z-]*\) .*/\1/p')
is "commands" "$(wc -w <<<"$commands")" "$(($(complete_bash dpinfer '' | wc -w) - 2))"
# options_of COMMAND: those that its help has.
options_of() {
    "$program" help "$1" | grep -oE '^(  -., |      )--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}
for command in $commands; do
    is "options of $command" "$(complete_bash dpinfer "$command" -- | tr ' ' '\n' | sort)" \
        "$(options_of "$command")"
done

# ---- zsh: what its completion functions are told
"$program" completion zsh >_dpinfer
is "first line" "$(head -n 1 _dpinfer)" "#compdef dpinfer"
if command -v zsh >/dev/null; then
    cat >stub.zsh <<'END_OF_STUB'
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "${(P)2[@]}" }
_files() { : }
dpinfer_words() { words=("$@"); CURRENT=$#; . ./_dpinfer }
dpinfer_words "$@"
END_OF_STUB
    is "zsh: commands" "$(zsh -f stub.zsh dpinfer r | grep -c '^[a-z-]*:.')" \
        "$(($(wc -w <<<"$commands") + 2))"
    is "zsh: choices" "$(zsh -f stub.zsh dpinfer run '' | grep -o ':NAME:(zcdp br filter)')" \
        ":NAME:(zcdp br filter)"
    is "zsh: a short name" "$(zsh -f stub.zsh dpinfer run '' | grep -c -- '^(-m --model)-')" 2
    for command in $commands; do
        is "zsh: options of $command" "$(zsh -f stub.zsh dpinfer "$command" '' |
            grep -oE -- '(^|\))--[a-z-]+' | tr -d ')' | sort)" \
            "$(options_of "$command")"
    done
else
    echo "skipped: no zsh"
fi

# ---- Words that are not commands
# suggests WHAT NAME WORD...: the program refuses the words with exit code 2, and means NAME.
suggests() {
    "$program" "${@:3}" 2>err
    is "$1" "$?: $(grep -o "did you mean '[a-z-]*'" err)" "2: ${2:+did you mean '$2'}"
}
suggests "two letters exchanged" run rnu
suggests "a beginning" quantize quant
suggests "British" quantize quantise
suggests "of help" tokenize help tokenise
suggests "help itself" help hepl
suggests "nothing like it" "" serendipity
suggests "one letter" "" x
is "help run" "$("$program" help run)" "$("$program" run -h)"
is "help" "$("$program" help)" "$("$program" -h)"
is "version" "$("$program" version)" "$("$program" --version)"
"$program" completion fish 2>err
is "another shell" "$?: $(cat err)" "2: dpinfer completion: SHELL: found 'fish', allowed bash|zsh"
echo "completion: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
