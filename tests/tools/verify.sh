#!/usr/bin/env bash
# Tests of reports and of `dpinfer verify`: verify.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6; do echo "{\"text\": \"Record $i of Anna.\"}"; done >refs.jsonl

# report NAME ARGS: a run that writes NAME.json and NAME.md.
report() {
    local name=$1
    shift
    run run m.gguf refs.jsonl -n 4 -t 1 --quiet "$@" --report "$name.json" --report "$name.md" \
        --report "$name.html"
    expect_rc 0
}
report ink --rho 0.5 -B 3
report steps --rho 0.5 -B 3 --pace none
report change --rho 0.5 -B 3 --pace change --pace-theta .1 --pace-tokens 2 --free-temp .5
report share --rho 0.5 -B 3 --pace share --accountant filter
report br --epsilon 2 --accountant br --delta 1e-5 --pace none
report filter --rho 1 --accountant filter --clip 1.5 --center
report secret --epsilon 3 --subsample .25 -B 3 --num 2
report added --epsilon 3 --adjacency add-remove -B 3 --num 2
report zero --rho 1 --adjacency zero-out
report amin --rho 9 --method amin
report svt --rho 9 --method amin --threshold .3 --sigma 2 --private-tokens 2 --public-temp 1.5
report seeded --rho 0.5 --seed 7
report tang --rho 9 --method tang --top-k 20
report adapmixed --epsilon 3 --method adapmixed --i-know-this-is-not-dp
report plain_reference --plain --reference 2
run run m.gguf -n 4 -t 1 --quiet --plain --report plain.json --report plain.md \
    --report plain.html; expect_rc 0
reports="ink br filter secret added zero amin svt tang seeded adapmixed plain_reference plain"

# ---- What is in them --------------------------------------------------------------------------
for name in $reports; do
    run verify "$name.json" --model m.gguf; expect_rc 0; expect_out "verified: "
    expect_out "the model is the one named"
    for form in json md html; do
        check "$name.$form tells a record or a path" \
            test "$(grep -cE 'Anna|refs|m\.gguf|'"$dir" "$name.$form")" -eq 0
    done
    case $name in
    seeded | adapmixed | plain*)
        check "$name.json" grep -q '^  "label": "NOT PRIVATE: ' "$name.json"
        check "$name.json" test "$(sed -n 3p "$name.json")" = '  "private": false,'
        check "$name.md" test "$(sed -n 1p "$name.md")" = '# Privacy report: NOT PRIVATE'
        check "$name.md" grep -q '^\*\*NOT PRIVATE: ' "$name.md"
        check "$name.json claims an epsilon" grep -q '^    "epsilon": null' "$name.json"
        check "$name.json claims a rho" grep -q '^    "rho": null' "$name.json"
        expect_out "NOT PRIVATE: " ;;
    *)
        check "$name.json" test "$(sed -n 3,4p "$name.json" | tr -d '\n ')" = \
            '"private":true,"label":"PRIVATE",'
        check "$name.md" test "$(sed -n 1p "$name.md")" = '# Privacy report'
        check "$name.md" grep -q '(c) Formal DP statement:\*\* The texts of the run together' \
            "$name.md" ;;
    esac
done
run verify ink.json; expect_rc 0; expect_out "the model was not looked at"
last="the files of the model"
check "SHA-256" grep -q "\"sha256\": \"$(sha256sum m.gguf | cut -c 1-64)\"" ink.json
check "SHA-256" grep -q "\"sha256\": \"$(sha256sum "$dpinfer" | cut -c 1-64)\"" ink.json
check "SHA-256" grep -q "$(sha256sum m.gguf | cut -c 1-64)" ink.md
last="numbers in Markdown"
cp svt.json out
for key in T B K a svt_scale n_private; do
    check "$key" grep -qF "| ${key//_/\\_} | $(field "$key") |" svt.md
done
cp m.gguf other.gguf; printf x >>other.gguf
run verify ink.json --model other.gguf; expect_rc 1; expect_err "model.files[0].sha256"
refuse 3 "cannot read none.gguf" verify ink.json --model none.gguf
last="the number of records under add/remove"
check "is told" grep -q '"n_records": null' added.json
cp ink.json out; near epsilon 5.221535 1e-6; near rho 0.5 1e-4 # docs/spec.md 4.1
# The same options give the same report, whatever is in the records.
report again --rho 0.5 -B 3
mv refs.jsonl kept.jsonl
printf '%s\n' '{"text": ""}' '' 'no JSON' '{}' '{"text": "One."}' \
    "{\"text\": \"$(seq -s ' ' 50)\"}" >refs.jsonl
report others --rho 0.5 -B 3
mv kept.jsonl refs.jsonl
# But for the output, which is released, and its hash.
for name in ink again others; do
    sed '/^  "output": {/,/^  }/d' $name.json >$name.same.json
    sed '/SHA-256 of the output/d' $name.md >$name.same.md
    sed '/<h2>The texts/,/^<p>The checklist/d; /output, the texts/d' $name.html >$name.same.html
done
for form in json md html; do
    expect_same ink.same.$form again.same.$form; expect_same ink.same.$form others.same.$form
done
# The sparse vector: B = 6, a record exchanged counts twice; epsilon = 4 / (6 sigma), rho = epsilon
# tanh(epsilon / 2).
cp svt.json out; near svt_scale $((12 << 30)); near svt_threshold 1932735283
near svt_sensitivity $((2 << 30))
near svt_epsilon .333333333333; near rho_svt .05504680430821; near private_tokens_most 2
near rho 9 1e-3
cp br.json out; near epsilon 2 1e-5; check "br claims zCDP" grep -q '"rho": null' br.json

# The parts of a split model, by the names that are made of the first.
cp m.gguf s-00001-of-00002.gguf; printf 'part two' >s-00002-of-00002.gguf
hash=$(printf 'part two' | sha256sum | cut -c 1-64)
sed "s/^      }$/      }, {\"n_bytes\": 8, \"sha256\": \"$hash\"}/" ink.json >split.json
run verify split.json --model s-00001-of-00002.gguf; expect_rc 0; expect_out "model.files[1].sha256"
printf 'part 2!!' >s-00002-of-00002.gguf
run verify split.json --model s-00001-of-00002.gguf; expect_rc 1; expect_err "model.files[1].sha256"
refuse 3 "must end in -00001-of-00002.gguf" verify split.json --model m.gguf

# ---- Every field that is changed is found -------------------------------------------------------
# mutate N FILE: line N with another value, nothing if there is none on it.
mutate() {
    awk -v n="$1" 'NR != n { print; next }
        !match($0, /(-?[0-9][0-9.e+-]*|true|false|null|"([^"\\]|\\.)*"),?$/) { exit 1 }
        { head = substr($0, 1, RSTART - 1); value = substr($0, RSTART); comma = sub(/,$/, "", value)
          if (value == "true") value = "false"
          else if (value == "false") value = "true"
          else if (value == "null") value = "0.75"
          else if (value ~ /^"/) value = "\"x" substr(value, 2)
          else if (value ~ /[.e]/) value = sprintf("%.17g", value * 1.0001)
          else value = value + 1
          print head value (comma ? "," : "") }' "$2"
}
# What only the operator can vouch for.
free='"(complete|program|version|commit|compiler|build|sha256|name|random_weights|n_bytes|tokens'
free+='|ended)"'
for name in svt secret seeded filter plain; do
    first=1
    # The texts before the statement once.
    [ "$name" = svt ] || first=$(grep -n '"statement": {' "$name.json" | cut -d : -f 1)
    for i in $(seq "$first" "$(wc -l <"$name.json")"); do
        mutate "$i" "$name.json" >mutant.json || continue
        line=$(sed -n "${i}p" "$name.json")
        if echo "$line" | grep -qE "^ *$free"; then continue; fi
        run verify mutant.json
        key=$(echo "$line" | sed -n 's/^ *"\([a-zA-Z_]*\)": .*/\1/p')
        last="$name.json with another $line"
        if [ "$rc" -eq 1 ] || [ "$rc" -eq 5 ]; then ok; else bad "$last: not found"; fi
        # A parameter shows in what follows from it; all others are named themselves.
        if ! sed -n '/"parameters"/,/^  }/p' "$name.json" | grep -qF -- "$line"; then
            expect_err "$key"
        fi
    done
done
sed 's/"T": 4/"T": 3/' steps.json >mutant.json; run verify mutant.json; expect_rc 1
expect_err "realised.K"
sed '/"eta":/d' ink.json >mutant.json; run verify mutant.json; expect_rc 1
expect_err "realised.eta"
expect_out "realised.eta: recorded (none)"
sed 's/"K": /"extra": 1, "K": /' ink.json >mutant.json; run verify mutant.json; expect_rc 1
expect_err "realised.extra"
sed 's/"n_texts": 2/"n_texts": 3/' ink.json >mutant.json
refuse 1 "parameters.n_texts is 3" verify mutant.json
sed 's/"n_records": 6/"n_records": 2000000/' ink.json >mutant.json
refuse 1 "parameters.budget_delta" verify mutant.json
sed 's/replace-by-null",/zero-out",/' secret.json >mutant.json
refuse 1 "nothing is amplified" verify mutant.json
# The same number.
sed 's/"tau": 1.0/"tau": 1/' ink.json >mutant.json; run verify mutant.json; expect_rc 0

# ---- In plain words ------------------------------------------------------------------------------
# (1 + TV) / 2 with the least of sqrt(rho / 2), sqrt(1 - e^-rho) and (e^eps - 1 + 2 delta) / (e^eps
# + 1).
guess() {
    cp "$1.json" out
    last="$1.json"
    near guess_after "$(awk -v r="$2" -v e="$3" -v d="$4" 'BEGIN {
        t = (exp(e) - 1 + 2 * d) / (exp(e) + 1)
        if (r > 0 && sqrt(r / 2) < t) t = sqrt(r / 2)
        if (r > 0 && sqrt(1 - exp(-r)) < t) t = sqrt(1 - exp(-r))
        printf "%.15g", (1 + t) / 2 }')" 1e-6
}
cp ink.json out; guess ink "$(field rho)" "$(field epsilon)" 1e-6
cp br.json out; guess br 0 "$(field epsilon)" 1e-5
cp svt.json out; guess svt "$(field rho)" "$(field epsilon)" 1e-6
cp secret.json out; guess secret 0 "$(field epsilon)" 1e-6
cp seeded.json out; check "a guess without a guarantee" grep -q '"guess_after": null' seeded.json
check "$(field learnt)" grep -q "Everything: this run has no guarantee" seeded.json

# ---- The page ------------------------------------------------------------------------------------
run ledger init year.ledger --dataset 'a <b> & "c"' --epsilon 9 --delta 1e-5; expect_rc 0
run ledger charge year.ledger --pure-epsilon .3; expect_rc 0
echo '{"organisation": "A & B <script>alert(1)</script>", "purpose": "\u001b[2J tests"}' >meta.json
page() {
    run run m.gguf refs.jsonl -n 4 -t 1 --rho .05 -B 3 --ledger year.ledger --meta meta.json "$@"
}
page -o texts.jsonl --report page.html --report page.json --report page.md; expect_rc 0
for name in $reports page; do
    last="$name.html"
    check "a script, or a file from elsewhere" \
        test "$(grep -ciE '<script|src=|href=|url\(|@import' \
        "$name.html")" -eq 0
    check "what is private" \
        grep -q "class=\"label\( no\)\{0,1\}\">$(sed -n 's/^  "label": "\(.*\)",/\1/p' \
        "$name.json" | sed 's/[.*]/./g')" "$name.html"
    if command -v python3 >/dev/null; then
        check "not well-formed" \
            python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' \
            "$name.html"
    fi
done
last="page.html"
check "a control character" test "$(grep -c $'\033' page.html)" -eq 0
check "the name" grep -q 'A &amp; B &lt;script&gt;alert(1)&lt;/script&gt;' page.html
check "the dataset" grep -q 'a &lt;b&gt; &amp; &quot;c&quot;' page.html
check "the budget over time" grep -q 'The budget over time' page.html
check "both charges" test 1 -eq \
    "$(grep -o 'M [0-9.]* [0-9.]*\( H [0-9.]* V [0-9.]*\)\{2\} H' page.html | wc -l)"
check "no plot of a ledger that is not there" test "$(grep -c 'The budget' ink.html)" -eq 0
check "the hash of the texts" grep -q "$(sha256sum texts.jsonl | cut -c 1-64)" page.html
check "the same in Markdown" grep -q "$(sha256sum texts.jsonl | cut -c 1-64)" page.md
# Fields of a ledger of which more than half is gone, in percent of the budget.
cp page.json out
share=$(awk -v a="$(field ledger_after)" -v c="$(field ledger_charge)" \
    -v b="$(field ledger_budget)" \
    'BEGIN { printf "%.1f %.1f", 100 * (a - c) / b, 100 * a / b }')
check "before" grep -q "before: ${share% *} %" page.html
check "after" grep -q "after: ${share#* } %" page.html
run verify page.json --output texts.jsonl; expect_rc 0; expect_out "the output is the one"
printf ' ' >>texts.jsonl
run verify page.json --output texts.jsonl; expect_rc 1; expect_err "output.sha256, output.n_bytes"
run verify page.json --output none.jsonl; expect_rc 1; expect_err "cannot read none.jsonl"
run verify ink.json --output texts.jsonl; expect_rc 1
# What goes to stdout has the same hash.
page --report out.json --quiet; expect_rc 0
check "of stdout" grep -q "$(sha256sum out | cut -c 1-64)" out.json
run verify out.json --output out; cp out shown; page --jsonl --report lines.json; expect_rc 0
check "of lines" grep -q "$(sha256sum out | cut -c 1-64)" lines.json
# Fields that are no object of texts.
for text in '[]' '{"a": 1}' '{"a": {"b": "c"}}' '{"": "x"}' 'a' ''; do
    echo "$text" >bad.json
    refuse 2 "bad.json" run m.gguf refs.jsonl --rho 1 --report r.json --meta bad.json
done
refuse 2 "--meta needs --report" run m.gguf refs.jsonl --rho 1 --meta meta.json
refuse 2 "cannot read none.json" run m.gguf refs.jsonl --rho 1 --report r.json --meta none.json
check "a report of nothing" test ! -e r.json

# ---- Signatures ----------------------------------------------------------------------------------
refuse 2 "cannot read none" run m.gguf refs.jsonl --rho 1 --report r.json --sign none
refuse 2 "--sign needs --report" run m.gguf refs.jsonl --rho 1 --sign meta.json
refuse 2 "--signature needs --key" verify ink.json --signature x
refuse 1 "cannot read the signature ink.json.sig" verify ink.json --key meta.json
if command -v ssh-keygen >/dev/null; then
    refuse 2 "ssh-keygen does not sign with meta.json" run m.gguf refs.jsonl --rho 1 \
        --report r.json \
        --sign meta.json
    check "a report of nothing" test ! -e r.json
    ssh-keygen -q -t ed25519 -N "" -f key; ssh-keygen -q -t ed25519 -N "" -f other
    page --report signed.json --report signed.html --sign key; expect_rc 0
    run verify signed.json --key key.pub; expect_rc 0; expect_out "signed with the key"
    run verify signed.json --key key.pub --signature signed.json.sig; expect_rc 0
    refuse 1 "is no signature of signed.json" verify signed.json --key other.pub
    refuse 1 "is no signature of signed.json" verify signed.json --key key.pub \
        --signature signed.html.sig
    sed 's/"purpose": "/&x/' signed.json >changed.json
    refuse 1 "is no signature" verify changed.json --key key.pub --signature signed.json.sig
    # OpenSSH alone, of the page too.
    echo "signer $(cat key.pub)" >allowed
    for form in json html; do
        ssh-keygen -Y verify -q -f allowed -I signer -n dpinfer-report -s signed.$form.sig \
            <signed.$form >out 2>err
        rc=$?; last="ssh-keygen of signed.$form"; expect_rc 0
    done
fi

# ---- What is no report --------------------------------------------------------------------------
refuse 2 "no REPORT given" verify
refuse 2 "unexpected argument" verify ink.json br.json
refuse 5 "cannot read none.json" verify none.json
refuse 5 "Markdown cannot be verified" verify ink.md
bytes=$(wc -c <ink.json)
for n in 0 1 100 2000 $((bytes - 3)); do
    head -c "$n" ink.json >cut.json; refuse 5 "cut.json is not a JSON report" verify cut.json
done
head -c 1000 ink.json >cut.json; refuse 5 "it ends too early" verify cut.json
head -c 2000000 /dev/zero | tr '\0' '[' >deep.json; refuse 5 "allowed 1048576" verify deep.json
head -c 100000 deep.json >deeper.json; refuse 5 "is not a JSON report" verify deeper.json
tail -c 5000 m.gguf >binary.json; refuse 5 "is not a JSON report" verify binary.json
refuse 5 "it is no adapter of" verify m.gguf
for text in '[]' '3' 'null' '{}' '{"dpinfer_report": "1"}' '{"dpinfer_report": 1.0}'; do
    echo "$text" >bad.json
    run verify bad.json; expect_rc 5; expect_empty_out
done
refuse 5 "it has no 'dpinfer_report'" verify bad.json
sed 's/"dpinfer_report": 4/"dpinfer_report": 1/' ink.json >bad.json
refuse 5 "has dpinfer_report 1, this program knows 4" verify bad.json
sed 's/"dpinfer_report": 4/"private": true, "dpinfer_report": 2/' ink.json >bad.json
refuse 5 "malformed" verify bad.json
sed '/"parameters"/,/^  }/d' ink.json >bad.json; refuse 5 "no section 'parameters'" verify bad.json
sed '/"software"/,/^  }/d' ink.json >bad.json; refuse 5 "'software' is missing" verify bad.json
sed '/"sha256"/d' ink.json >bad.json; run verify bad.json; expect_rc 5
sed '/"complete"/d' ink.json >bad.json; refuse 5 "'complete' is missing" verify bad.json
sed '/"T"/d' ink.json >bad.json
refuse 5 "parameters.T is missing, must be an integer" verify bad.json
sed 's/"T": 4/"T": "4"/' ink.json >bad.json
refuse 5 'parameters.T is "4", must be an integer' verify bad.json
sed 's/"T": 4/"T": 99999999999/' ink.json >bad.json
refuse 5 "parameters.T is 99999999999" verify bad.json
sed 's/"B": 3/"B": -3/' ink.json >bad.json; refuse 5 "parameters.B is -3" verify bad.json
# Exact composition is computed again in less than a second, or refused.
run run m.gguf refs.jsonl --epsilon 5 --accountant br -n 10240 -c 11000 -t 1 -q --report long.json
expect_rc 0
TIMEFORMAT=%U
seconds=$({ time "$dpinfer" verify long.json >out 2>err; } 2>&1)
last="verify of 10240 tokens"; check "it is not verified" grep -q '^verified: ' out
if ! grep -q __asan_init "$dpinfer"; then
    check "it takes $seconds s of the processor" awk "BEGIN { exit !($seconds < 1) }"
fi
sed 's/"T": 4/"T": 10241/' br.json >bad.json
refuse 1 "10241 tokens, must be 1..10240" verify bad.json
sed 's/"tau": 1.0/"tau": 1e999/' ink.json >bad.json; refuse 5 "malformed" verify bad.json
sed 's/"tau": 1.0/"tau": -1/' ink.json >bad.json; refuse 1 "tau is -1" verify bad.json
sed 's/"accountant": "zcdp"/"accountant": "\\u001b[2J"/' ink.json >bad.json
refuse 5 "must be one of: zcdp, br, filter" verify bad.json
check "a control character reaches the terminal" test "$(grep -c $'\033' err)" -eq 0
sed 's/"version": "/"version": "\\u001b[2J/' ink.json >bad.json; run verify bad.json; expect_rc 0
check "a control character reaches the terminal" test "$(grep -c $'\033' out)" -eq 0
"$dpinfer" verify - <ink.json >out 2>err; rc=$?; last="verify -"; expect_rc 0

# ---- The files are tried before anything is read ------------------------------------------------
refuse 1 "cannot write nowhere/r.json" run m.gguf no-such-refs --rho 1 --report nowhere/r.json
refuse 1 "cannot write nowhere/r.md" run m.gguf refs.jsonl --rho 1 --report r.json \
    --report nowhere/r.md
refuse 1 "cannot write : No such file" run m.gguf refs.jsonl --rho 1 --report ""
refuse 2 "--report and --report lead to the same file" run m.gguf refs.jsonl --rho 1 \
    --report r.json --report r.json
refuse 2 "-o and --report lead to the same file" run m.gguf refs.jsonl --rho 1 \
    --report r.json -o r.json
refuse 2 "is an input and would be overwritten" run m.gguf refs.jsonl --rho 1 --report refs.jsonl
refuse 2 "given more than 8 times" run m.gguf refs.jsonl --rho 1 \
    $(printf -- '--report r%d ' 1 2 3 4 5 6 7 8 9)
refuse 4 "no-such-refs" run m.gguf no-such-refs --rho 1 --report r.json
check "a report of nothing" test -z "$(find . -name 'r.json*' -o -name 'r[0-9]*')"

# What fuzzing of reports begins with is what this program verifies: after a change of the form
# these files are made again, by 'run --report', or nothing but the version would be looked at.
for report in "$here"/../fuzz/corpus/report/*.json; do
    run verify "$report"; expect_rc 0
done

finish
