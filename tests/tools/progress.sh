#!/usr/bin/env bash
# How far a run is, on terminals and in logs: progress.sh path/to/dpinfer SOURCE
source=$2
. "$(dirname "$0")/process_support.sh"
model=$source/models/dpinfer-4m-q8_0.gguf
for i in 1 2 3 4 5 6; do echo "{\"text\": \"Letter $i to Anna about a badge.\"}"; done >refs.jsonl
job=("$model" refs.jsonl -B 2 --rho 9 -n 40 --seed 4 -t 1 --parallel 1)
works run "${job[@]}" -o texts.txt
check "progress where no terminal is" test "$(grep -c 'text 1/3' err)" -eq 0

# ---- Lines for a log -----------------------------------------------------------------------------
works run "${job[@]}" --progress plain --quiet; expect_same out texts.txt
grep '^dpinfer run: text' err >lines
check "the first line" grep -q '^dpinfer run: text 1/3: reading the prompts, 1 of 3' lines
told='^dpinfer run: text 3/3: [0-9]+ tokens, [0-9.e+]+ tokens a second'
check "the last line" test "$(tail -n 1 lines | grep -cE "$told")" -eq 1
check "a control character" test "$(grep -c $'[\r\033]' err)" -eq 0
for form in none auto; do
    works run "${job[@]}" --progress $form
    check "$form shows progress" test "$(grep -c 'text 1/3' err)" -eq 0
done
works run "${job[@]}" --progress line; expect_same out texts.txt
check "one line that is written anew" grep -q $'\r\033\\[Ktext 1/3: reading the prompts, 1 of 3' err
check "it is taken away" grep -q $'\r\033\\[K$' \
    <(tr '\n' '@' <err | sed 's/dpinfer run: note: [0-9].*//; s/@*Privacy.*//')
refuse 2 "--progress" run "${job[@]}" --progress loud

# ---- On a terminal -------------------------------------------------------------------------------
# terminal COMMAND: what it sends to a terminal of 80 columns.
terminal() { TERM=$term script -qec "stty cols 80 rows 24; $1" /dev/null >sent </dev/null; }
if command -v script >/dev/null && command -v perl >/dev/null; then
    words=$(printf "'%s' " "${job[@]}")
    term=xterm terminal "'$dpinfer' run $words -o again.txt --overwrite"
    rc=$?; cp sent err; last="texts to a file"; expect_rc 0; expect_same again.txt texts.txt
    check "no line" grep -q $'\r\033\\[Ktext 1/3' sent
    # The text goes to the same terminal: without the lines below it, it is whole.
    term=xterm terminal "'$dpinfer' run $words"
    rc=$?; cp sent err; last="texts to the terminal"; expect_rc 0
    check "no line below the text" \
        grep -q $'\033D\033\\[A\0337\033\\[B\r\033\\[Ktext 1/3: reading' sent
    check "no line while it is written" grep -qE $'\033\\[Ktext [123]/3: [0-9]+ tokens?' sent
    perl -0pe 's/\eD\e\[A\e7\e\[B\r\e\[K[^\e]*\e8//g; s/\e7\e\[B\r\e\[K\e8//g;
        s/\r\n/\n/g' sent >text
    sed -i -E '/^dpinfer run: (NOT PRIVATE|warning:)/d; /^$/,$ { /^Privacy statement/,$d }' text
    head -c "$(wc -c <texts.txt)" text >cut
    expect_same cut texts.txt
    check "a control character" test "$(grep -c $'\033' text)" -eq 0
    # No line where a row is full: a terminal would lose the next character.
    perl -0ne 'while (/\eD\e\[A/g) {
            $row = substr($_, 0, $-[0]); $row =~ s/\eD\e\[A\e7\e\[B\r\e\[K[^\e]*\e8//g;
            $row =~ s/\e7\e\[B\r\e\[K\e8//g; $row =~ s/.*\n//s; $n = length($row);
            exit 1 if $n > 0 && $n % 80 == 0 }' sent
    rc=$?; last="rows that are full"; expect_rc 0
    # A terminal that cannot move its cursor.
    term=dumb terminal "'$dpinfer' run $words"
    last="a dumb terminal"
    check "a sequence" test "$(grep -c $'\033' sent)" -eq 0
fi
finish
