#!/usr/bin/env bash
# The command lines that documents print run as they are printed, on the built-in model.
#   readme.sh SOURCE BUILD
# A command is an indented line of README.md, docs/*.md, models/README.md or examples/README.md with
# build/dpinfer in it; a line that ends in \ goes on in the next. They run in their order, each
# document in a folder that looks like a source tree with a build in it, with MODEL as the built-in
# model, of which texts are short here (short_model.py). Other lines, and commands of `elsewhere`,
# are not run; a document cannot name a program that is in neither.
set -uo pipefail
source=$1 build=$2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$build/readme-test
passed=0 failed=0 skipped=0
complain() {
    echo "readme: $*"
    failed=$((failed + 1))
}

# Why a command is not run here; 1 if it is.
elsewhere() {
    case $1 in
    mpirun*) echo "needs -DDPI_MPI=ON: tests/tools/mpi.sh runs such" ;;
    *"dpinfer demo"*) echo "tests/tools/demo.sh runs it" ;;
    *"dpinfer audit"*) echo "tests/tools/audit.sh runs it" ;;
    *"dpinfer pretrain"*) echo "an hour" ;;
    *"dpinfer finetune"* | *letters.gguf*) echo "tests/tools/finetune.sh runs such" ;;
    *"dpinfer steer"* | *steer.gguf*) echo "tests/tools/steer.sh runs such" ;;
    *"dpinfer augpe"* | *evolved.json*) echo "tests/tools/augpe.sh runs such" ;;
    *dpinfer-bench-kernels* | *dpinfer-utility* | *dpinfer-clipping*) echo "minutes, and timings" ;;
    *dpinfer-corpus*) echo "it writes examples/: tests/corpus/corpus.sh runs the program" ;;
    *model-f16.gguf* | *adapter.gguf* | *calm.gguf*) echo "a file of the reader" ;;
    *"build/other/"* | *"build/usr"*) echo "tests/include/install.sh does that" ;;
    *) return 1 ;;
    esac
}

# Commands of a document, one a line.
commands_of() {
    awk '/^    / { line = line substr($0, 5)
                   if (line ~ /\\$/) { sub(/ *\\$/, " ", line); gsub(/  +/, " ", line); next }
                   if (line ~ /build\/dpinfer/) print line }
         { line = "" }' "$1"
}

# A folder for the commands of one document: what another one wrote is not in the way.
enter() {
    mkdir -p "$work/$1/build" && cd "$work/$1" || exit 1
    ln -s "$source/examples" "$work/models" .
    for program in "$build"/dpinfer*; do
        [ -f "$program" ] && [ -x "$program" ] && ln -s "$program" build/
    done
}

rm -rf "$work"
mkdir -p "$work/models" || exit 1
ln -s "$source"/models/* "$work/models"
rm "$work/models/dpinfer-4m-q8_0.gguf"
python3 "$source/tests/tools/short_model.py" "$source/models/dpinfer-4m-q8_0.gguf" \
    "$work/models/dpinfer-4m-q8_0.gguf" || exit 1
export MODEL=models/dpinfer-4m-q8_0.gguf
for document in "$source"/README.md "$source"/docs/*.md "$source"/{models,examples}/README.md; do
    name=${document#"$source/"}
    enter "${name//\//-}"
    while IFS= read -r line; do
        program=$(grep -oE 'build/dpinfer[a-z-]*' <<<"$line" | head -n 1)
        if reason=$(elsewhere "$line"); then
            echo "not run: $line ($reason)"
            skipped=$((skipped + 1))
        elif [ ! -x "$program" ]; then
            complain "${document#"$source/"}: $program is not there: $line"
        elif bash -uo pipefail -c "$line" >out 2>err </dev/null; then
            passed=$((passed + 1))
        else
            complain "${document#"$source/"}: exit code $?: $line"
            cat err
        fi
    done < <(commands_of "$document")
done

# What README's first recipe promises.
cd "$work/README.md" || exit 1
[ "$(grep -c . tickets.txt)" -ge 2 ] || complain "tickets.txt does not hold two texts"
guarantee=$(grep -o '1\.782696-zCDP, and so ([0-9.]*, 1e-05)-DP' "$source/README.md")
[ -n "$guarantee" ] && grep -qF "$guarantee" tickets.md ||
    complain "tickets.md does not have the guarantee that README prints"
# And its table of clip bounds.
n=0
while IFS='|' read -r _ epsilon b t c _; do
    bound=$(build/dpinfer account --epsilon "${epsilon// /}" --delta 1e-5 -B "${b// /}" \
        -n "${t// /}" --temp 1 | awk '$1 == "C," && $2 == "clip" { printf "%.2f", $4 }')
    [ "$bound" = "${c// /}" ] || complain "README has C =$c for epsilon$epsilon, B$b, T$t: $bound"
    n=$((n + 1))
done < <(grep -E '^\| [0-9]+ \| [0-9]+ \| [0-9]+ \| [0-9.]+ \|' "$source/README.md")
[ "$n" -ge 8 ] || complain "only $n rows in README's table of clip bounds"
# docs/limits.md: how often a guess is right (docs/report.md has the bounds), what groups and
# several runs come to, and how many of these a ledger lets pass.
limits=$source/docs/limits.md
value() { awk -v key="$1" '$1 == key { print $2 }'; } # of what `account` prints
times() { awk "BEGIN { printf \"%.10g\", $1 * $2 }"; }
n=0
while IFS='|' read -r _ epsilon percent _; do
    rho=$(build/dpinfer account --epsilon "$epsilon" --delta 1e-5 | value rho)
    guess=$(awk -v r="$rho" -v e="$epsilon" 'BEGIN {
        r += 0; t = (exp(e) - 1 + 2e-5) / (exp(e) + 1)
        if (sqrt(r / 2) < t) t = sqrt(r / 2)
        if (sqrt(1 - exp(-r)) < t) t = sqrt(1 - exp(-r))
        x = 500 * (1 + t); printf "%.1f", (x > int(x) ? int(x) + 1 : x) / 10 }')
    [ "$guess" = "${percent//[ %]/}" ] || complain "limits: a guess at $epsilon: $guess %"
    n=$((n + 1))
done < <(tr -d ' ' <"$limits" | grep -E '^\|[0-9]+\|[0-9.]+%\|')
while IFS='|' read -r _ epsilon k one own _; do
    rho=$(build/dpinfer account --epsilon "$epsilon" --delta 1e-5 | value rho)
    for factor in $((k * k)) "$k"; do
        group=$(build/dpinfer account --delta 1e-5 --rho "$(times "$rho" "$factor")" |
            value epsilon)
        [ "$(printf %.2f "$group")" = "$one" ] ||
            complain "limits: epsilon $epsilon, $k records: $group"
        one=$own
    done
    n=$((n + 1))
done < <(tr -d ' ' <"$limits" | grep -E '^\|[0-9]+\|[0-9]+\|[0-9.]+\|[0-9.]+\|')
[ "$n" -eq 13 ] || complain "$n rows with numbers in docs/limits.md, 13 were known"
rho=$(build/dpinfer account --epsilon 3 --delta 1e-5 | value rho)
runs=$(build/dpinfer account --delta 1e-5 --rho "$(times 7 "$rho")" | value epsilon)
grep -q "Seven runs at epsilon 3 come to epsilon $(printf %.2f "$runs")" "$limits" ||
    complain "limits: seven runs come to $runs"
build/dpinfer ledger init ten.db --dataset a --epsilon 10 --delta 1e-5 >out 2>&1
for n in 1 2 3 4 5 6 7 8; do
    build/dpinfer ledger charge ten.db --dataset a --rho "$rho" >out 2>&1
    code=$?
    [ "$code" -eq $((n == 8 ? 6 : 0)) ] || complain "limits: run $n of epsilon 3 has code $code"
done
[ "$passed" -ge 30 ] || complain "only $passed commands were found"
echo "readme: $passed passed, $failed failed, $skipped not run here"
[ "$failed" -eq 0 ]
