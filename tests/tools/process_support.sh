# What tests share that stop processes, or give them little; sourced in place of cli_support.sh.
# shellcheck shell=bash
. "$(dirname "$0")/cli_support.sh"

# ended CODE TEXT...: how the last run has ended, and what stands on its stderr.
ended() {
    expect_rc "$1"
    local text
    for text in "${@:2}"; do expect_err "$text"; done
}
# records N [FIELD]: lines of a .jsonl file, whose FIELD has seven values.
records() {
    local i
    for ((i = 1; i <= $1; i++)); do
        echo "{${2:+\"$2\": \"p$((i % 7))\", }\"text\": \"Record $i of Anna.\"}"
    done
}
# fails_with CODE TEXT ARGS: as refuse, where stdout may have something.
fails_with() { run "${@:3}"; ended "$1" "$2"; }
# refusals CODE ARGS: each line "TEXT | WORDS" of stdin: ARGS and WORDS are refused with that text.
refusals() {
    local text words
    while IFS='|' read -r text words; do
        read -ra words <<<"$words"
        refuse "$1" "${text% }" "${@:2}" "${words[@]}"
    done
}
# code_of SIGNAL: the exit code of a program that the signal has ended.
code_of() { echo $((128 + $(kill -l "$1"))); }
# small_training CHECKPOINT OUTPUT: say.conf, with the files that it names.
small_training() {
    printf '%s\t0\n' '<unk>' '<s>' '</s>' '<|im_start|>' '<|im_end|>' \
        '<0x'{{0..9},{A..F}}{{0..9},{A..F}}'>' >vocab
    echo '{"user": "say one", "assistant": "one one"}' >say.jsonl
    printf '%s\n' 'data = say.jsonl' 'vocab = vocab' "checkpoint = $1" "output = $2" 'n_layer = 1' \
        'dim = 32' 'n_head = 2' 'n_kv_head = 1' 'ffn = 32' 'context = 256' 'batch_tokens = 256' \
        'steps = 2' 'warmup = 1' >say.conf
}
# parts: how many temporary files are there.
parts() { find . -name '*.part*' | wc -l; }
# budget LEDGER FIELD [DATASET]: a value of `ledger budget`.
budget() {
    "$dpinfer" ledger budget "$1" --json ${3:+--dataset "$3"} 2>/dev/null </dev/null |
        sed -n "s/^ *\"$2\": \(.*[^,]\),*\$/\1/p"
}

# ---- Processes in the background: $pid -----------------------------------------------------------
# await COMMAND...: until the command succeeds, or $pid has ended; ten minutes at most.
await() {
    local end=$((SECONDS + 600))
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || return
        [ $SECONDS -lt $end ] || { bad "$last: waited ten minutes for '$*'"; return; }
        sleep .01
    done
}
# state_is LETTERS [PID]: the state of a process is one of these; Z: it has ended.
state_is() {
    local stat=") Z"
    { read -r stat <"/proc/${2:-$pid}/stat"; } 2>/dev/null
    [[ ${stat##*) } == [$1]* ]]
}
# it_ends: the exit code of $pid; the shell says nothing of signals.
it_ends() { { wait "$pid"; rc=$?; } 2>/dev/null; }
# at SIGNAL CALL N ARGS: a run that gets the signal just before its N-th call of that name
# (kill_at.c, $library). After STOP it is there, stopped.
at() {
    local signal=$1 call=$2 n=$3
    shift 3
    last="dpinfer $*, SIG$signal at $call $n"
    : >err # here: a process may be killed before it opens its own
    DPI_KILL_SIGNAL=$(kill -l "$signal") DPI_KILL_CALL=$call DPI_KILL_AT=$n LD_PRELOAD=$library \
        "$dpinfer" "$@" >out 2>err </dev/null &
    pid=$!
    if [ "$signal" = STOP ]; then await state_is TZ; else it_ends; fi
}
# let_go: kills what `at STOP` has stopped.
let_go() { kill -KILL "$pid"; it_ends; }

# ---- Terminals: script(1) gives them -------------------------------------------------------------
# on_terminal COMMAND: what it shows, in `text`, has no control character; line ends and TABs aside.
on_terminal() {
    last="$1 on a terminal"
    script -qec "$1 2>/dev/null" screen >out 2>err </dev/null
    sed '1d;$d' screen | tr -d '\r\n\t' >text
    check "no text" test -s text
    check "a control character" test "$(tr -d -c '\000-\037\177' <text | wc -c)" -eq 0
    check "C1 or directions" test "$(grep -c -e $'\xc2\x9b' -e $'\xe2\x80\xae' text)" -eq 0
}
