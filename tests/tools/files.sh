#!/usr/bin/env bash
# Files, machines and terminals: nothing given is destroyed, nothing paid for is lost.
#   files.sh path/to/dpinfer
. "$(dirname "$0")/process_support.sh"
small_model
records 6 >refs.jsonl
mkdir refs; for i in 1 2 3 4; do echo "Record $i of Anna." >refs/$i.txt; done
do_small() { run_small "$@"; expect_rc 0; }
run_small() { run run m.gguf "$@" --rho 1 -n 4 -t 1 -q; }
refuse_small() { refuse 2 "$1" run m.gguf "${@:2}" --rho 1 -n 4 -t 1 -q; }
# limited BLOCKS ARGS: a run with a limit on the size of its files, and not of out and err.
limited() {
    last="dpinfer ${*:2}, with a limit on the size of files"
    # shellcheck disable=SC2016
    mkfifo out.pipe err.pipe; cat out.pipe >out & cat err.pipe >err &
    bash -c 'ulimit -f "$1"; exec "${@:2}"' - "$1" "$dpinfer" "${@:2}" >out.pipe 2>err.pipe \
        </dev/null
    rc=$?; wait; rm out.pipe err.pipe
}
is_input="is an input and would be overwritten" is_same="lead to the same file"
is_own="whose files are the program's own"

# ---- No output over an input, or over another output, under any spelling ------------------------
echo "Write." >prompt.txt; echo "1 2 3" >tokens
cp m.gguf s-00001-of-00002.gguf; cp m.gguf s-00002-of-00002.gguf
ln -s refs.jsonl link.jsonl; ln refs.jsonl hard.jsonl; ln -s ../refs.jsonl refs/up; ln -s . here
ln refs/2.txt two.txt
sha256sum m.gguf refs.jsonl refs/*.txt prompt.txt s-*.gguf tokens >sums
for path in ./refs.jsonl here/refs.jsonl "$PWD/refs.jsonl" link.jsonl hard.jsonl refs/up \
    refs/../refs.jsonl; do
    refuse_small "$is_input" refs.jsonl -o "$path" --overwrite
    refuse_small "$is_input" refs.jsonl --report "$path" --overwrite
done
for path in refs/1.txt here/refs/1.txt two.txt; do
    refuse_small "$is_input" refs -o "$path" --overwrite
done
refuse_small "$is_input" refs.jsonl -o here/prompt.txt --public-prompt-file prompt.txt --overwrite
refuse_small "$is_input" refs.jsonl --report ./m.gguf --overwrite
for part in 1 2; do
    refuse 2 "$is_input" run s-00001-of-00002.gguf refs.jsonl --rho 1 \
        -o here/s-0000$part-of-00002.gguf --overwrite
    refuse 2 "$is_input" quantize s-00001-of-00002.gguf ./s-0000$part-of-00002.gguf Q8_0
done
while read -r words; do refuse 2 "$is_input" $words; done <<'END'
quantize m.gguf here/m.gguf Q8_0
logits m.gguf --tokens tokens -o here/m.gguf
logits m.gguf --tokens tokens -o ./tokens
make-model --vocab m.gguf -o here/m.gguf --overwrite
audit m.gguf -o here/m.gguf --overwrite
END
refuse_small "$is_same" refs.jsonl -o xx.txt --report ./xx.txt
refuse_small "$is_same" refs.jsonl -o xx.txt --report here/xx.txt
refuse_small "$is_same" refs.jsonl --report r.json --report "$PWD/r.json"
last="all of these"; check "an input was written to" sha256sum --quiet --status -c sums
check "a file of a run that was refused" test ! -e xx.txt

# Every option that names a file, of every command that writes one, as its help lists them: what it
# is given is not written over by an output of the command, nor is anything written among the files
# of a folder that it is given. A new command that writes has --overwrite, and its line here.
"$dpinfer" help | awk '/^  [a-z]/ && $1 != "dpinfer" { print $1 }' | while read -r command; do
    "$dpinfer" help "$command" | grep -q -- '--overwrite ' && echo "$command"
done >commands
check "no command writes" test "$(wc -l <commands)" -ge 8
echo 'some text' >given; mkdir folder; echo 'some text' >folder/inside
cp given given.kept
printf '%s\n' 'data = refs.jsonl' 'vocab = given' 'checkpoint = made.checkpoint' 'steps = 1' \
    >over.conf
while read -r command; do
    outputs=(-o)
    case $command in
    plan) continue ;; # it takes the options of run, and writes none of these files
    run) begin="m.gguf refs.jsonl --rho 1 -n 4 -q" outputs=(-o --report) ;;
    merge) begin="folder" outputs=(--report OUT) ;;
    resume) # its inputs are those of the run; here the folder of the job
        for output in -o --report; do
            refuse 2 "$is_own" resume folder "$output" ./folder/inside \
                --overwrite
            check "a file was written to" cmp -s folder/inside given.kept
        done
        continue ;;
    logits) begin="m.gguf --tokens tokens" ;;
    perturb) begin=m.gguf outputs=(-o --report) ;;
    infer) begin="m.gguf --remote-model x --remote http://127.0.0.1:1" outputs=(-o --report) ;;
    eval) begin=refs.jsonl ;;
    finetune) begin="m.gguf refs.jsonl --units 9 --sigma 1" outputs=(-o --merge) ;;
    steer) begin="m.gguf refs.jsonl --epsilon 1 --delta 1e-3" ;;
    generate) begin=m.gguf ;;
    augpe) begin="m.gguf refs.jsonl --rho 1 --num 2" outputs=(-o --report) ;;
    preview) begin=m.gguf ;;
    statistic) begin="word_count refs.jsonl --word a" outputs=(-o --report) ;;
    audit) begin=m.gguf ;;
    quantize) begin="m.gguf" outputs=(OUT) ;;
    make-model) begin="--layers 1 --embd 32 --ff 32 --heads 2" ;;
    pretrain) # its files are in its configuration
        for key in output checkpoint; do
            { grep -v "^$key " over.conf; echo "$key = ./given"; } >one.conf
            refuse 2 "$is_input" pretrain one.conf --overwrite
        done
        continue ;;
    *) bad "dpinfer $command writes files: it has no line in files.sh"; continue ;;
    esac
    "$dpinfer" help "$command" >help
    sed -nE 's/^ +(-[a-z], )?--([a-z-]+) (FILE|KEY|DIR)( .*)?$/\2 \3/p' help >options
    for output in "${outputs[@]}"; do
        last="dpinfer help $command"
        [ "$output" = OUT ] || check "no option $output" grep -qE "^ +($output,|$output FILE)" help
        while read -r option kind; do
            [ "--$option" != "$output" ] || continue
            [ "$option" != output ] || [ "$output" != -o ] || continue
            path=./given expected=$is_input
            case $option in output | report | merge) expected=$is_same ;; esac
            value=given
            if [ "$kind" = DIR ]; then
                value=folder path=folder/inside expected=$is_own
            fi
            arguments=("--$option" "$value" --overwrite)
            case $command,$output in
            merge,OUT) arguments=("$path" $begin "${arguments[@]}") ;;
            merge,*) arguments=(out.txt $begin "$output" "$path" "${arguments[@]}") ;;
            quantize,*) # -m stands for IN
                case $option in model) arguments=("${arguments[@]}" "$path" Q8_0) ;;
                *) arguments=($begin "$path" Q8_0 "${arguments[@]}") ;; esac ;;
            *,*)
                words=$begin
                [ "$option" != model ] || words=${words#m.gguf}
                [ "$option" != tokens ] || words=m.gguf
                # shellcheck disable=SC2206
                arguments=($words "$output" "$path" "${arguments[@]}") ;;
            esac
            refuse 2 "$expected" "$command" "${arguments[@]}"
            check "a file was written to" cmp -s given given.kept
            check "a file was written to" cmp -s folder/inside given.kept
        done <options
    done
done <commands
# What a command writes or keeps beside the files that it is told of.
: >key; for suffix in journal wal shm; do
    refuse_small "$is_input" refs.jsonl --ledger year -o "here/year-$suffix"
done
refuse_small "$is_same" refs.jsonl --report r.json --sign key -o here/r.json.sig
refuse_small "$is_input" refs.jsonl --report r.json --sign key -o here/key.pub
echo old >r.json.sig
refuse_small "r.json.sig is there already" refs.jsonl --report r.json --sign key
rm r.json.sig key
for path in job job/x job/x/../y here/job/x; do
    refuse_small "$is_own" refs.jsonl --job job --shard 0/1 --report "$path"
    refuse 2 "$is_own" merge "$path" other job
    [ -d job ] || mkdir -p job/x
done
echo 'step,tokens' >made.checkpoint.csv
refuse 2 "made.checkpoint.csv is there already" pretrain over.conf

# ---- Whole or not at all ------------------------------------------------------------------------
do_small refs.jsonl -o text.out --report r.json; expect_no_err ".part-"
cp text.out text.kept; cp r.json r.kept
refuse_small "text.out is there already" refs.jsonl -o text.out
refuse_small "r.json is there already" refs.jsonl -o other.out --report r.json
expect_same text.out text.kept; expect_same r.json r.kept
check "other.out" test ! -e other.out
echo old >text.out
do_small refs.jsonl -o text.out --report r.json --overwrite
check "text.out is not replaced" test "$(head -c 3 text.out)" != old
do_small refs.jsonl -o /dev/null
refuse 4 "nobody.jsonl" run m.gguf nobody.jsonl --rho 1 -o new.out --report new.json
check "a file of a run that did not begin" test -z "$(find . -name 'new.*')"
# The same for every command that writes a file.
echo old >there
for arguments in "logits m.gguf --tokens tokens -o there" "audit m.gguf -o there" \
    "quantize m.gguf there Q8_0" "make-model --layers 1 --embd 32 --ff 32 --heads 2 -o there"; do
    refuse 2 "there is there already" $arguments
    case $arguments in audit*) continue ;; esac # it takes a second or more
    check "what is there" test "$(cat there)" = old
    limited 1 $arguments --overwrite; ended 1 "cannot"
    check "what is there" test "$(cat there)" = old
    check "a temporary file" test "$(parts)" -eq 0
done
works quantize m.gguf there Q8_0 -q --overwrite
works inspect there --check
# No room for more than 1 KiB: the run fails, what is there stays, and the text is told of.
cp text.out text.kept
yes '{"text": "One day it rained."}' | head -n 10000 >many.jsonl
long=(run m.gguf many.jsonl --rho 1 -B 1 -n 40 -t 1 -q)
limited 1 "${long[@]}" -o text.out --overwrite; ended 1 "cannot write" "Privacy statement" \
    "text.out is as it was; what was written is in"
expect_same text.out text.kept
check "what was written" test "$(cat text.out.part-* | wc -c)" -ge 1000
run_small refs.jsonl -o text.out --overwrite; expect_err "text.out.part-"
rm -f text.out.part-*
# Lines are whole then too, and nothing that was there for a report is lost.
for name in full.jsonl full.csv; do
    limited 1 "${long[@]}" -o $name; ended 1 "cannot write $name"
    check "what was written" test "$(wc -c <$name)" -ge 700
    if [ $name = full.jsonl ]; then check "a line is cut" json_lines $name
    else check "a row is cut" csv_rows $name; fi
done
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016
    unshare -m sh -c 'mkdir disk && mount -t tmpfs -o size=48k none disk && "$@"; code=$?
        cp disk/* . && exit $code' - "$dpinfer" "${long[@]}" \
        -o disk/disk.jsonl --report disk/disk.json --report disk/disk.html >out 2>err </dev/null
    rc=$?; last="run on a disk that becomes full"; ended 1 "cannot write disk/"
    check "no text" test -s disk.jsonl; check "a line is cut" json_lines disk.jsonl
    check "a report is cut" test "$(grep -c '^</html>' disk.html)" -eq 1
    works verify disk.json
fi

# Signals: what is released appears under its name, and nothing else stays.
# start MODEL OPTIONS: a long run in the background, until it has released text.
start() {
    [ $# -gt 1 ] || rm -f text.out r.json
    : >err
    "$dpinfer" run "${1:-m.gguf}" many.jsonl --rho 1 -B 1 -n 40 -t 1 -q -o text.out \
        --report r.json "${@:2}" >out 2>err </dev/null &
    pid=$! last="a run"
    await has_text
}
has_text() { [ "$(cat text.out.part-* 2>/dev/null | wc -c)" -gt 100 ]; }
# sends SIGNAL WHAT: and the run's exit code.
sends() {
    kill "-$1" "$pid"
    it_ends
    last="$2, SIG$1"
    if [ "$1" = BUS ]; then expect_rc 1; else expect_rc "$(code_of "$1")"; fi
}
# is_kept: a run that was stopped has a text and a report, and no temporary file.
is_kept() {
    check "no text" test -s text.out
    check "no report" grep -q '"complete": false' r.json
    check "a temporary file" test "$(parts)" -eq 0
}
ulimit -c 0
# has_open FILE: its last text was not finished. Between two texts none is open, while prompts are
# read, for less than a third of the time: of 20 tries one finds it (3^-20 = 3e-10).
has_open() { tail -n 1 "$1" | grep -qF '"ended":false'; }
for signal in INT TERM HUP USR1 QUIT ILL TRAP ABRT BUS FPE SEGV USR2 ALRM XCPU VTALRM PROF IO SYS \
    RTMAX; do
    start; sends $signal "run"; is_kept
    case $signal in INT | TERM | HUP | USR1)
        ended $rc "Privacy statement" "stopped early"; works verify r.json ;;
    esac
done
# With --overwrite what is there is intact until the new one is whole: a signal that ends the
# program at once leaves both, and says so.
for signal in SEGV RTMIN USR2; do
    for ((try = 1; try <= 20; try++)); do
        echo old >text.out; echo old >r.json
        start m.gguf --overwrite --jsonl; sends $signal "run --overwrite"
        check "text.out is not what it was" test "$(cat text.out)" = old
        check "r.json is not what it was" test "$(cat r.json)" = old
        expect_err "what was written is in $(readlink -f .)/text.out.part-"
        expect_err "what was written is in $(readlink -f .)/r.json.part-"
        mv text.out.part-* last.jsonl
        check "not whole lines of JSON" json_lines last.jsonl
        check "no report" grep -q '"complete": false' r.json.part-*
        rm -f ./*.part-*
        ! has_open last.jsonl || break
    done
    check "the text that was open is lost" has_open last.jsonl
done
start; sends KILL run; check "the text of a run that was killed" test ! -e text.out
do_small refs.jsonl -o text.out; expect_err "text.out.part-"
rm -f ./*.part-*

# ---- Checkpoints --------------------------------------------------------------------------------
# What is beside them stays, whatever its name; nothing is written through a link.
small_training say.ckpt say.gguf
tune="finetune m.gguf refs.jsonl --delta 1e-3 --rank 2 --positions 32 --units 6 -t 1 -q"
tuned() { works $tune --steps 2 --sigma 2 -o a.gguf --checkpoint state "$@"; }
beside=(say.ckpt.new say.ckpt.csv.new say.ckpt.vocab say.gguf.f32 state.new)
for file in "${beside[@]}"; do ln -s refs.jsonl "$file"; done
works pretrain say.conf -q
tuned
check "records were written to through a link" sha256sum --quiet --status -c sums
for file in "${beside[@]}"; do check "$file is gone" test -L "$file"; rm -f "$file"; done
rm -f a.gguf state say.gguf say.ckpt say.ckpt.csv
for file in "${beside[@]}"; do echo precious >"$file"; done
works pretrain say.conf -q
tuned
for file in "${beside[@]}"; do
    check "$file was written to" test "$(cat "$file")" = precious; rm -f "$file"
done
check "a temporary file" test "$(parts)" -eq 0
# The lock is a file of the program's own.
refuse 2 "$is_input" $tune --steps 2 --sigma 2 -o c.lock --checkpoint c
refuse 2 "$is_input" $tune --steps 2 --sigma 2 -o c.gguf --merge ./c.lock --checkpoint c
check "the lock of a run that was refused" test ! -e c.lock
# What has no end, or no writer, is no checkpoint, nor a curve.
briefly() { # TEXT ARGS: the command ends, by itself, with this text.
    last="dpinfer ${*:2}"
    timeout -s KILL 600 "$dpinfer" "${@:2}" >out 2>err
    rc=$?; ended 1 "$1: it is not a regular file"
}
mkfifo endless
for path in endless /dev/zero; do
    briefly "cannot read $path" $tune --steps 2 --sigma 2 -o b.gguf --checkpoint $path
    check "a lock is there" test ! -e "$path.lock"
    sed "s,^checkpoint.*,checkpoint = $path," say.conf >odd.conf
    [ $path = /dev/zero ] || # its curve would be beside the device
        briefly "cannot read $path" pretrain odd.conf -q --overwrite
done
rm endless; mkfifo odd.csv; sed "s,^checkpoint.*,checkpoint = odd," say.conf >odd.conf
briefly "cannot write odd.csv" pretrain odd.conf -q --overwrite
check "the FIFO" test -p odd.csv; rm -f odd odd.csv
# What a program that was killed has left is told of.
echo 1 >say.ckpt.part-99.0; echo 1 >state.part-99.0
works pretrain say.conf -q --overwrite; expect_err "say.ckpt.part-99.0 holds"
tuned --overwrite; expect_err "state.part-99.0 holds"
rm -f ./*.part-99.0
# A training that is stopped keeps its steps, and one that is ended leaves no temporary file.
sed -i 's/^steps.*/steps = 1000000/' say.conf; echo 'checkpoint_steps = 1' >>say.conf
for signal in HUP TERM USR1 USR2 SEGV; do
    rm -f say.ckpt say.ckpt.csv say.gguf
    "$dpinfer" pretrain say.conf -q >out 2>err </dev/null &
    pid=$! last=pretrain
    await test -e say.ckpt
    sends $signal pretrain
    check "a temporary file" test "$(parts)" -eq 0
    case $signal in USR2 | SEGV) ;; *) expect_err "stopped after step" ;; esac
done

# ---- Failures of the machine --------------------------------------------------------------------
# A statement or a report that cannot be written.
# mute ARGS: nobody can read what it says.
mute() {
    local log
    : >err
    for log in full closed; do
        last="dpinfer $*, stderr is $log"
        if [ $log = full ]; then "$dpinfer" "$@" >out 2>/dev/full </dev/null
        else "$dpinfer" "$@" >out 2>&- </dev/null; fi
        rc=$?; expect_rc 1
    done
}
for option in -t1 -q; do
    mute run m.gguf refs.jsonl --rho 1 -n 4 $option; check "no text" test -s out
done
run_small refs.jsonl --report /dev/full; expect_rc 1
# The model file becomes shorter while it is mapped.
"$dpinfer" make-model --layers 4 --embd 256 --ff 512 --heads 4 --kv-heads 4 --vocab-size 2000 \
    --type F32 -o big.gguf 2>err
cp big.gguf bigger.gguf
# is_cut ARGS: the model of a run is cut on its way.
is_cut() {
    start big.gguf "$@"; : >big.gguf; it_ends
    last="run $*, the model is cut"; expect_rc 1; is_kept
}
is_cut; ended 1 "has become shorter" "Privacy statement" "stopped early"
for ((try = 1; try <= 20; try++)); do
    rm -f text.out r.json
    cp bigger.gguf big.gguf
    is_cut --jsonl; check "not whole lines of JSON" json_lines text.out
    ! has_open text.out || break
done
check "the text that was open is lost" has_open text.out

# The same for what only reads a model: it has it mapped, and waits for its tokens.
"$dpinfer" make-model --layers 1 --embd 256 --ff 512 --heads 4 --vocab-size 2000 --type F32 \
    -o cut.gguf -q 2>err
mkfifo given.tokens; exec 9<>given.tokens
"$dpinfer" logits cut.gguf --tokens - -o made.logits >out 2>err <given.tokens 9<&- &
pid=$!
last="logits, the model is cut"
await grep -q cut.gguf "/proc/$pid/maps"
: >cut.gguf; echo 1 2 3 >&9; exec 9>&-
it_ends; ended 1 "has become shorter"
check "a file is there" test -z "$(find . -name 'made.logits*')"

# What was paid for is told and kept in every command that pays.
cp bigger.gguf paid.gguf
evolve="augpe m.gguf refs.jsonl --rho 1 --delta 1e-3 --num 4 --rounds 1 -n 40 -t 1 -q --overwrite"
for words in "$tune --steps 2 --sigma 2 --overwrite -o a.gguf" \
    "generate m.gguf --lora a.gguf --num 2 -n 4 -t 1" "$evolve -o texts"; do
    mute $words
done
# The model becomes shorter after the charge.
cut_model() { # TEXT-ON-STDERR ARGS
    local said=$1; shift
    cp paid.gguf cut.gguf; : >err
    "$dpinfer" "$@" >out 2>err </dev/null &
    pid=$!
    last="dpinfer $*, the model is cut"
    await grep -qF "$said" err
    : >cut.gguf
    it_ends; ended 1 "has become shorter" "Privacy statement" "stopped early"
    check "a temporary file" test "$(parts)" -eq 0
}
cut_model "nats a token" finetune cut.gguf refs.jsonl --delta 1e-3 --units 6 -t 1 --positions 64 \
    --steps 1000 --expected 6 --sigma 2 -o cut.lora --held-out refs.jsonl
cut_model "round 1 of" augpe cut.gguf refs.jsonl --rho 1 --delta 1e-3 --num 4 --rounds 100 -n 20 \
    -t 1 -o cut.texts
# No room for the texts: a part is kept, and all go to stdout.
limited 1 ${evolve/--num 4/--num 40} -o new.jsonl
ended 1 "cannot write new.jsonl" "go to standard output" "Privacy statement"
expect_no_err "no text is there"
check "all texts" test "$(grep -c '^{"index":' out)" -eq 40
check "the part" test "$(wc -l <new.jsonl)" -ge 1
check "a line is cut" test -z "$(grep -v '^{.*}$' new.jsonl)"
# No room for an adapter: nothing is charged.
"$dpinfer" ledger init paid.year --dataset all --epsilon 90 --delta 1e-2 >out 2>err
"$dpinfer" ledger budget paid.year --json >before
for size in 1 20; do
    limited $size ${tune/m.gguf/paid.gguf} --steps 1 --sigma 2 -o no.gguf --ledger ./paid.year
    ended 1 "cannot write no.gguf"
    check "a file is there" test -z "$(find . -name 'no.gguf*')"
    "$dpinfer" ledger budget paid.year --json >after; expect_same after before
done

# A program that cannot be read: the report says so, and verifies.
blind=(run m.gguf refs.jsonl --rho 1 -n 4 -t 1 -q --overwrite --report blind.json)
is_blind() { # WHAT COMMAND...
    "${@:2}" "${blind[@]}" >out 2>err </dev/null; rc=$?
    last="run $1"; expect_rc 0
    check "a hash of what was not read" grep -q '"sha256": null' blind.json
    works verify blind.json
}
if cp "$dpinfer" unreadable && chmod 111 unreadable && [ "$(id -u)" -ne 0 ]; then
    is_blind "of a program that cannot be read" ./unreadable
fi
# AddressSanitizer itself cannot do without /proc.
if ! grep -q __asan_init "$dpinfer" && unshare -m true 2>/dev/null; then
    is_blind "without /proc" unshare -m sh -c 'umount -l /proc && exec "$@"' - "$dpinfer"
fi

# What has no end is not hashed.
mkfifo pipe
for path in /dev/zero pipe; do
    for option in --output --model; do
        run verify r.kept "$option" "$path"
        check "exit code" test "$rc" -ne 0; expect_err "cannot read $path"
    done
done

# ssh-keygen is given nothing that may have no end.
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N "" -f key; ssh-keygen -q -t ed25519 -N "" -f half
    rm half.pub; mkfifo half.pub
    for bad in pipe /dev/zero half.pub; do
        refuse_small "cannot read $bad: it is not a regular file" refs.jsonl --report s.json \
            --sign "$bad"
    done
    refuse_small "half.pub, beside the key, is not a regular file" refs.jsonl --report s.json \
        --sign half
    for bad in pipe /dev/null; do
        refuse_small "the report $bad is not a file" refs.jsonl --report "$bad" --sign key
    done
    do_small refs.jsonl --report s.json --sign key
    works verify s.json --key key.pub
    for bad in pipe /dev/zero; do
        refuse 2 "cannot read $bad: it is not a regular file" verify s.json --key "$bad"
        refuse 1 "cannot read the signature $bad" verify s.json --key key.pub --signature "$bad"
        refuse 1 "cannot read $bad" verify "$bad" --key key.pub --signature s.json.sig
    done
fi

# ---- Terminals ----------------------------------------------------------------------------------
esc=$'\033' c1=$'\xc2\x9b' bidi=$'\xe2\x80\xae'
shown() {
    check "a control character in an error" \
        test "$(grep -cF -e "$esc" -e "$c1" -e "$bidi" -e $'\xff' err)" -eq 0
}
for bad in "a${esc}[2Jb" "a${c1}2Jb" "a${bidi}b" $'a\xffb'; do
    run run m.gguf "$bad.jsonl" --rho 1; expect_rc 4; shown
    run run m.gguf refs.jsonl --rho 1 --temp "$bad"; expect_rc 2; shown
    run run "$bad.gguf" refs.jsonl --rho 1; expect_rc 3; shown
    run verify "$bad"; expect_rc 5; shown
done
run run m.gguf "a${esc}[2J.jsonl" --rho 1; expect_err 'a\x1b[2J.jsonl'
run run m.gguf "a${bidi}.jsonl" --rho 1; expect_err 'a\u202e.jsonl'
# Text on a terminal: the model writes bytes of all kinds. script(1) gives it a terminal. One text
# may end before its first control character (1 in 100 does), twenty do not.
if command -v script >/dev/null; then
    on_terminal "'$dpinfer' run m.gguf --plain --num 20 -n 40 -c 300 --temp 2 --top-k 0 -t 1 -q"
    check "nothing is escaped" grep -qF '\x' text
    # Words of others, and texts that shards have drawn.
    printf 'a%s[2J 0 0\nb%s2J 1 0\nc%s 0 1\n' "$esc" "$c1" "$bidi" >vectors
    yes '{"text": "c c c c"}' | head -n 50 >words.jsonl
    job=(m.gguf many.jsonl --rho 1 -B 1 --num 20 -n 40 --temp 2 -t 1 -q --job shards)
    works plan "${job[@]}"; works run "${job[@]}" --shard 0/1
    for words in "perturb --vectors vectors words.jsonl --epsilon .01 --mechanism exponential" \
        "perturb --vectors vectors --epsilon .01 --mechanism exponential" "merge - shards"; do
        on_terminal "yes 'c c c c' | head -n 50 | '$dpinfer' $words"
        check "nothing is escaped" grep -qF '\' text
    done
    # The names of a model and of a dataset, in tables and in JSON.
    name="r${esc}[2J${c1}2J${bidi}" # 12 bytes
    sed "s/random weights, 1 layers of 32/${name//[/\\[}random weights of /" m.gguf >named.gguf
    works ledger init year --dataset "a${bidi}b" --epsilon 1 --delta 1e-6
    for words in "ledger show year --json" "ledger show year" \
        "bench named.gguf -B 1 -p 8 -n 4 -r 1 -t 1 -o "{md,csv,json,jsonl}; do
        on_terminal "'$dpinfer' $words"
        check "nothing is escaped" grep -qiE '\\(x1b|u001b|u202e)' text
    done
fi
finish
