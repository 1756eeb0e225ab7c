#!/usr/bin/env bash
# Tests of `dpinfer demo` on the documents of the source tree: demo.sh path/to/dpinfer
# Its texts are of one sentence each (short_model.py); scripts/demo has the whole story.
. "$(dirname "$0")/cli_support.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
root=$(cd "$here/../.." && pwd)
builtin=$root/models/dpinfer-4m-q8_0.gguf
# The demo looks beside the program.
mkdir -p bin share/dpinfer/{models,examples}
cp "$dpinfer" bin
dpinfer=$dir/bin/dpinfer
cp "$root/examples/discharge.jsonl" share/dpinfer/examples
python3 "$here/short_model.py" "$builtin" share/dpinfer/models/dpinfer-4m-q8_0.gguf || exit 1

# paragraph HEADLINE: the text below it, one word a line in small letters.
paragraph() {
    awk -v head="$1" 'index($0, head) { on = 1; next } on && /^  \| / { print; seen = 1; next }
        on && seen { exit }' out | sed 's/^  | //' | tr '[:upper:]' '[:lower:]' |
        tr -cs 'a-z0-9*' '\n'
}

run demo; expect_rc 0; check "stderr is not empty" test ! -s err
for line in 'Public: ' 'Private, epsilon 1: ' 'Private, epsilon 10: ' 'Not private: ' \
    'the document:' 'How many say it: of all 288 documents, and of 12 texts' \
    'Public                 nothing private is read' 'Private, epsilon 1     (1, 1e-06)-DP' \
    'Private, epsilon 10    (10, 1e-06)-DP' 'Not private            NONE'; do
    expect_out "$line"
done
# A text of each kind, and the document, which has twelve lines.
check "hardly any text" test "$(grep -c '^  | ' out)" -ge 16
check "colours or progress in a file" test "$(grep -c $'[\033\r]' out)" -eq 0
longest() { LC_ALL=C.UTF-8 wc -L; } # columns: a text may have letters of several bytes
# Lines with a path may be of any length.
check "a line too long" test "$(sed '/^  .*dpinfer run /,$d' out | longest)" -le 80

# Marked are words of the document, and of them only what the public text does not have.
marked_words() {
    paragraph 'the document:' | sort -u >document
    paragraph 'the text; ' | grep '^\*.*\*$' | tr -d '*' | sort -u >marked
    paragraph 'Public: ' | sort -u >public
    check "a marked word is not the document's" test -z "$(comm -23 marked document)"
    check "a marked word is in the public text" test -z "$(comm -12 marked public)"
}
marked_words
# The text is drawn, and may have no such word: 33 of 72 had none, and so not more than 3 of 4 have
# none. That 80 in a row have none has a chance below 1e-9.
for _ in {2..80}; do
    [ -s marked ] || { run demo; expect_rc 0; marked_words; }
done
check "no word is marked in 80 demos" test -s marked

# The share of the documents is that of their attributes; each bar is as long as its share.
of_documents() {
    awk -v n="$(grep -cE "$1" "$root/examples/discharge.jsonl")" \
        'BEGIN { printf "%.0f %%\n", n / 2.88 }'
}
for attribute in 'dx": ?"(burn|sepsis|allergy|kidney_infection)' 'diet": ?"(protein|nut_free)' \
    'delay": ?"(two|five|ten)_days' 'helper": ?"(neighbour|nurse|carer|roommate)'; do
    of_documents "\"$attribute\""
done >shares
grep '^    the documents ' out | grep -oE '[0-9]+ %' >shown
check "the shares of the documents" cmp -s shares shown
check "not 4 bars of 5" test "$(grep -cE '^    .* %$' out)" -eq 20
check "a bar is not as long as its share" test -z "$(grep -E '^    .* %$' out | awk '
    { length_of = 48 * $(NF - 1) / 100; n = gsub(/#/, "")
      if (n > length_of + 1 || n < length_of - 1) print }')"
check "shares of 12 texts" test -z "$(grep -E '^    (Public|Private|Not private).* %$' out |
    awk '{ twelfths = $(NF - 1) * 12 / 100; off = twelfths - int(twelfths + .5)
           if (off > .1 || off < -.1) print }')"

# The closing command is complete: a shell runs it as it is, but for one text.
sed -n '/^  .*dpinfer run /,$p' out >command
check "no closing command" test -s command
printf '%s --num 1 -q >text 2>err\n' "$(cat command)" | sh
rc=$?
check "the closing command" test $rc -eq 0 -a -s text

# A word that is longer than a line, as a model that goes in circles may write, goes on in the next.
long=$(printf 'caf\303\251%.0s' {1..60})
sed "s/\"text\": *\"/&$long /" "$root/examples/discharge.jsonl" >long.jsonl
cp long.jsonl share/dpinfer/examples/discharge.jsonl
run demo; expect_rc 0
check "a line too long" test "$(sed '/^  .*dpinfer run /,$d' out | longest)" -le 80
check "the long word" grep -q "$long" <(sed 's/^  | //' out | tr -d '\n')
cp "$root/examples/discharge.jsonl" share/dpinfer/examples

# On a terminal: colours, unless NO_COLOR is set, and lines of its width. The first texts are
# enough.
on_terminal() {
    : >seen # the shell that is about to become `script` must not be killed: it would clean up
    script -qfec "stty cols 60; exec env $1 '$dpinfer' demo" /dev/null >seen 2>&1 </dev/null &
    while ! grep -q 'epsilon 1' seen && kill -0 $! 2>/dev/null; do sleep .05; done
    kill $! 2>/dev/null
    wait $! 2>/dev/null
    last="demo on a terminal, $1"
    check "no headline" grep -q 'Private, epsilon 1' seen
}
on_terminal "TERM=xterm NO_COLOR="
check "no colours" grep -q $'\033\\[1mPublic\033\\[0m' seen
check "no progress" grep -q 'of 12 texts' seen
on_terminal "TERM=xterm NO_COLOR=1"
check "colours" test "$(grep -c $'\033' seen)" -eq 0
check "a line too wide" test "$(grep '^  | ' seen | tr -d '\r' | longest)" -le 60

# Plain text is drawn as the file of the model recommends, and as the command line says; private
# text as the method does.
drawn() {
    run run "$builtin" "${@:3}" -n 1; expect_rc 0
    facts="^ *(tau, temperature|k of Top-k\\+?) +($1|$2)\$"
    check "not temperature $1, k $2" test "$(grep -cE "$facts" err)" -eq 2
}
drawn 0.6 20 --plain
drawn 0.9 20 --plain --temp 0.9
drawn 0.6 5 --plain --top-k 5
drawn 1 100 "$root/examples/discharge.jsonl" --rho 1 --num 1

# Nothing is read from where the program is run, and a copy without its files says what is missing.
rm -r share
run demo; expect_rc 3; expect_err 'no models/dpinfer-4m-q8_0.gguf in '

finish
