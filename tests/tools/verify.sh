#!/usr/bin/env bash
# Tests of reports and of `dpinfer verify`: verify.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6; do echo "{\"text\": \"Record $i of Anna.\"}"; done >refs.jsonl
sha_of() { sha256sum "$1" | cut -c 1-64; }

# report NAME ARGS: a run of m.gguf with these arguments, and its report in three forms.
report() {
    works run m.gguf -n 4 -t 1 --quiet "${@:2}" --report "$1.json" --report "$1.md" \
        --report "$1.html"
}
reports=
while read -r name options; do
    # shellcheck disable=SC2086
    report "$name" $options
    reports+=" $name"
done <<'END'
ink refs.jsonl --rho 0.5 -B 3
steps refs.jsonl --rho 0.5 -B 3 --pace none
change refs.jsonl --rho 0.5 -B 3 --pace change --pace-theta .1 --pace-tokens 2 --free-temp .5
share refs.jsonl --rho 0.5 -B 3 --pace share --accountant filter
br refs.jsonl --epsilon 2 --accountant br --delta 1e-5 --pace none
filter refs.jsonl --rho 1 --accountant filter --clip 1.5 --center
secret refs.jsonl --epsilon 3 --subsample .25 -B 3 --num 2
added refs.jsonl --epsilon 3 --adjacency add-remove -B 3 --num 2
zero refs.jsonl --rho 1 --adjacency zero-out
amin refs.jsonl --rho 9 --method amin
svt refs.jsonl --rho 9 --method amin --threshold .3 --sigma 2 --private-tokens 2 --public-temp 1.5
seeded refs.jsonl --rho 0.5 --seed 7
tang refs.jsonl --rho 9 --method tang --top-k 20
adapmixed refs.jsonl --epsilon 3 --method adapmixed --i-know-this-is-not-dp
plain_reference refs.jsonl --plain --reference 2
plain --plain
END

# ---- What is in them --------------------------------------------------------------------------
for name in $reports; do
    works verify "$name.json" --model m.gguf; expect_out "verified: " "the model is the one named"
    for form in json md html; do # no record, and no path
        expect_count 0 'Anna|refs|m\.gguf|'"$dir" "$name.$form"
    done
    label=$(sed -n 3,4p "$name.json" | tr -d '\n ') title=$(head -n 1 "$name.md")
    case $name in
    seeded | adapmixed | plain*)
        check "$name.json: $label" test "${label%%\"label*}" = '"private":false,'
        expect_line "$name.json" '^  "label": "NOT PRIVATE: ' '^    "epsilon": null' \
            '^    "rho": null'
        check "$name.md: $title" test "$title" = '# Privacy report: NOT PRIVATE'
        expect_line "$name.md" '^\*\*NOT PRIVATE: '; expect_out "NOT PRIVATE: " ;;
    *)
        check "$name.json: $label" test "$label" = '"private":true,"label":"PRIVATE",'
        check "$name.md: $title" test "$title" = '# Privacy report'
        expect_line "$name.md" '\(c\) Formal DP statement:\*\* All that is released of this' ;;
    esac
done
# The verdict first, and no more of what holds.
works verify ink.json; expect_out "the model was not looked at"; expect_lines 2 out
check "the verdict first" grep -q '^verified: [0-9]' <(head -n 1 out)
check "its label" test "$(sed 1d out)" = PRIVATE
works verify ink.json --verbose
expect_out "  ok     follows.mechanisms[0].K: recorded " "  given  claim.mechanisms[0].B: "
check "the verdict first" grep -q '^verified: [0-9]' <(head -n 1 out)
sed 's/"K": /"K": 1/' ink.json >mutant.json
wrong "follows.mechanisms[0].K" mutant.json
expect_err "1 field does not hold: follows.mechanisms[0].K"
check "what does not hold, alone" test "$(grep -c . out)" -eq 2
check "the verdict first" test "$(head -n 1 out)" = "NOT verified: 1 field does not hold"
expect_line ink.json "\"sha256\": \"$(sha_of m.gguf)\"" "\"sha256\": \"$(sha_of "$dpinfer")\""
expect_line ink.md "$(sha_of m.gguf)"
cp svt.json out
for key in T B K a svt_scale n_private; do
    check "$key" grep -qF "mechanisms.1.${key//_/\\_} | $(field "$key") |" svt.md
done
cp m.gguf other.gguf; printf x >>other.gguf
fails 1 verify ink.json --model other.gguf; expect_err "model.files[0].sha256"
refuse 3 "cannot read none.gguf" verify ink.json --model none.gguf
expect_line added.json '"n_units": null' # add/remove does not tell it
cp ink.json out; near epsilon 5.221535 1e-6; near rho 0.5 1e-4 # docs/spec.md 4.1
# The same options give the same report, whatever is in the records.
report again refs.jsonl --rho 0.5 -B 3
mv refs.jsonl kept.jsonl
printf '%s\n' '{"text": ""}' '' 'no JSON' '{}' '{"text": "One."}' \
    "{\"text\": \"$(seq -s ' ' 50)\"}" >refs.jsonl
report others refs.jsonl --rho 0.5 -B 3
mv kept.jsonl refs.jsonl
# But for the output, which is released, and its hash.
for name in ink again others; do
    sed '/^  "output": {/,/^  }/d' $name.json >$name.same.json
    sed '/SHA-256 of the output/d; /The texts:/d' $name.md >$name.same.md
    sed '/<h2>The texts/,/^<p>The checklist/d; /output, the texts/d' $name.html >$name.same.html
done
for form in json md html; do
    expect_same ink.same.$form again.same.$form; expect_same ink.same.$form others.same.$form
done
# The sparse vector: B = 6, a record exchanged counts twice; epsilon = 4 / (6 sigma), rho = epsilon
# tanh(epsilon / 2).
cp svt.json out; near svt_scale $((12 << 30)); near svt_threshold 1932735283
near svt_sensitivity $((2 << 30)); near private_tokens_most 2; near rho 9 1e-3
near svt_epsilon .333333333333; near rho_svt .05504680430821
cp br.json out; near epsilon 2 1e-5; expect_line br.json '"rho": null' # br claims no zCDP

# The parts of a split model, by the names that are made of the first.
cp m.gguf s-00001-of-00002.gguf; printf 'part two' >s-00002-of-00002.gguf
second="{\"n_bytes\": 8, \"sha256\": \"$(sha_of s-00002-of-00002.gguf)\"}"
sed "/^  \"model\": {/,/^  }/s/^      }$/      }, $second/" \
    ink.json >split.json
works verify split.json --model s-00001-of-00002.gguf --verbose; expect_out "model.files[1].sha256"
printf 'part 2!!' >s-00002-of-00002.gguf
fails 1 verify split.json --model s-00001-of-00002.gguf; expect_err "model.files[1].sha256"
refuse 3 "must end in -00001-of-00002.gguf" verify split.json --model m.gguf

# ---- Reports that were changed (all fields: tests/pipeline/claim/test_claim.c) ------------------
# What is said of a report after a change: exit code, report, change, message. Of exact composition
# 10240 tokens are verified, which the processor does in less than a second; more are refused.
while IFS='|' read -r code file change text; do
    sed "$change" "$file.json" >mutant.json
    fails "$code" verify mutant.json; expect_err "$text"
    expect_no_err $'\033' # nothing of it steers a terminal
done <<'END'
1|steps|s/"T": 4/"T": 3/|follows.mechanisms[0].K
1|ink|/"eta":/d|follows.mechanisms[0].eta
1|ink|s/"K": /"extra": 1, "K": /|follows.mechanisms[0].extra
5|ink|s/"runs": 2/"runs": 3/|runs is 3, must be at most 2
5|ink|s/"n_units": 6/"n_units": 2000000/|delta: found 1e-06
5|secret|s/replace-by-null",/zero-out",/|nothing is amplified
5|br|s/"T": 4/"T": 10241/|10241 tokens, must be 1..10240
5|ink|s/"tau": 1.0/"tau": -1/|tau is -1
0|ink|s/"tau": 1.0/"tau": 1/|
5|ink|s/"tau": 1.0/"tau": 1e999/|malformed
5|ink|s/"dpinfer_report": 6/"dpinfer_report": 4/|has dpinfer_report 4, this program knows 6
5|ink|s/"dpinfer_report": 6/"private": true, "dpinfer_report": 2/|malformed
5|ink|/^  "claim": {/,/^  }/d|claim is missing
5|ink|/"software"/,/^  }/d|'software' is missing
5|ink|/"sha256"/d|
5|ink|/"complete"/d|'complete' is missing
5|ink|/"T"/d|claim.mechanisms[0].T is missing, must be 1..1048576
5|ink|s/"T": 4/"T": "4"/|claim.mechanisms[0].T is "4", must be 1..1048576
5|ink|s/"T": 4/"T": 99999999999/|claim.mechanisms[0].T is 99999999999
5|ink|s/"B": 3/"B": -3/|claim.mechanisms[0].B is -3
5|ink|s/"accountant": "zcdp"/"accountant": "\\u001b[2J"/|must be one of: zcdp, br, filter
5|ink|s/"commit": "/"commit": "\\u001b[2J/|'software' is missing or malformed
END
expect_count 0 $'\033' out
sed '/"eta":/d' ink.json >mutant.json
run verify mutant.json; expect_out "follows.mechanisms[0].eta: recorded (none)"
works run m.gguf refs.jsonl --epsilon 5 --accountant br -n 10240 -c 11000 -t 1 -q --report long.json
(ulimit -t 60 && exec "$dpinfer" verify long.json >out 2>err) # or it never ends
rc=$?; last="verify of 10240 tokens"; expect_rc 0; expect_line out '^verified: '

# ---- In plain words ------------------------------------------------------------------------------
# (1 + TV) / 2 with the least of sqrt(rho / 2), sqrt(1 - e^-rho) and (e^eps - 1 + 2 delta) / (e^eps
# + 1).
guess() { # NAME DELTA, of a report with zCDP or without
    cp "$1.json" out
    last="$1.json"
    near guess_after "$(awk -v r="$(field rho)" -v e="$(field epsilon)" -v d="$2" 'BEGIN {
        r += 0; t = (exp(e) - 1 + 2 * d) / (exp(e) + 1)
        if (r > 0 && sqrt(r / 2) < t) t = sqrt(r / 2)
        if (r > 0 && sqrt(1 - exp(-r)) < t) t = sqrt(1 - exp(-r))
        printf "%.15g", (1 + t) / 2 }')" 1e-6
}
guess ink 1e-6; guess br 1e-5; guess svt 1e-6; guess secret 1e-6
expect_line seeded.json '"guess_after": null' "Everything: there is no guarantee"

# ---- The page ------------------------------------------------------------------------------------
works ledger init year.ledger --dataset 'a <b> & "c"' --epsilon 9 --delta 1e-5
works ledger charge year.ledger --pure-epsilon .3
echo '{"organisation": "A & B <script>alert(1)</script>", "purpose": "\u001b[2J tests"}' >meta.json
page() {
    works run m.gguf refs.jsonl -n 4 -t 1 --rho .05 -B 3 --ledger year.ledger --meta meta.json "$@"
}
page -o texts.jsonl --report page.html --report page.json --report page.md
for name in $reports page; do
    last="$name.html"
    check "a script, or a file from elsewhere" \
        test "$(grep -ciE '<script|src=|href=|url\(|@import' "$name.html")" -eq 0
    check "what is private" \
        grep -q "class=\"label\( no\)\{0,1\}\">$(sed -n 's/^  "label": "\(.*\)",/\1/p' \
        "$name.json" | sed 's/[.*]/./g')" "$name.html"
done
if command -v python3 >/dev/null; then
    # shellcheck disable=SC2086
    python_check "a page is not well-formed" $reports page <<'P'
import xml.dom.minidom
for name in sys.argv[1:]:
    xml.dom.minidom.parse(name + ".html")
P
fi
last="page.html"
expect_count 0 $'\033' page.html
expect_line page.html 'A &amp; B &lt;script&gt;alert\(1\)&lt;/script&gt;' 'The budget over time' \
    'a &lt;b&gt; &amp; &quot;c&quot;' "$(sha_of texts.jsonl)"
check "both charges" test 1 -eq \
    "$(grep -cE 'class="c0" points="([0-9.]+,[0-9.]+ ){6}"' page.html)" # a step for each
expect_count 0 'The budget' ink.html # which has no ledger
expect_line page.md "$(sha_of texts.jsonl)"
# Fields of a ledger of which more than half is gone, in percent of the budget.
sed -n '/^  "follows"/,$p' page.json >out
share=$(awk -v a="$(field after)" -v c="$(field charge)" \
    -v b="$(field budget)" 'BEGIN { printf "%.1f %.1f", 100 * (a - c) / b, 100 * a / b }')
expect_line page.html "before: ${share% *} %" "after: ${share#* } %"
works verify page.json --output texts.jsonl; expect_out "the output is the one"
# What no run with its parameters writes into the sections that are believed.
while IFS='|' read -r code change; do
    python_check "a forged report" <<P
o = load("page.json")
out, charges = o["output"], o["charges"]
$change
json.dump(o, open("forged.json", "w"))
P
    last="verify after $change"
    fails "${code%% *}" verify forged.json; expect_err "${code#* }"
done <<'END'
1 : output|out["lengths"][-1] += 99; out["texts"] += 99; out["tokens"] += 99 * out["tokens_most"]
1 : output|out["tokens"] += out["tokens_most"] * out["texts"]
1 : output|out["tokens"] = 0; out["lengths"][-1], out["lengths"][0] = sum(out["lengths"]), 0
1 : output|out["ended"] = out["texts"] + 1
1 : output|out["alike"] = out["texts"] + 1
1 : output|out["alike"] = 1
1 : output|out["at_max_words"] = out["ended"] + 1
1 : output|out["labels"] = {"a": 1}
1 : output|out["texts"] -= 1; out["lengths"][15] -= 1; out["tokens"] -= out["tokens_most"]
1 : output|out["n_bytes"] = 0
1 : charges|charges.pop()
1 : charges|charges[-1]["method"] = "tang"
5 charges|charges[0]["charge"] = -1
5 charges|charges[0]["after"] *= 2
5 charges|charges[-1]["after"] = charges[-1]["charge"]
5 charges|charges[0]["date"] = "2026-02-30T00:00:00Z"
5 charges|charges[0]["date"] += "x"
END
printf ' ' >>texts.jsonl
fails 1 verify page.json --output texts.jsonl; expect_err "output.sha256, output.n_bytes"
fails 1 verify page.json --output none.jsonl; expect_err "cannot read none.jsonl"
fails 1 verify ink.json --output texts.jsonl
# What goes to stdout has the same hash.
page --report out.json --quiet; expect_line out.json "$(sha_of out)"
page --jsonl --report lines.json; expect_line lines.json "$(sha_of out)"
# Fields that are no object of texts.
for text in '[]' '{"a": 1}' '{"a": {"b": "c"}}' '{"": "x"}' 'a' ''; do
    echo "$text" >bad.json
    refuse 2 "bad.json" run m.gguf refs.jsonl --rho 1 --report r.json --meta bad.json
done

# ---- The files are tried before anything is read ------------------------------------------------
refuse_each 2 run m.gguf refs.jsonl --rho 1 <<'END'
--meta meta.json                 | --meta needs --report
--report r.json --meta none.json | cannot read none.json
--report r.json --sign none      | cannot read none
--sign meta.json                 | --sign needs --report
--report r.json --report r.json  | --report and --report lead to the same file
--report r.json -o r.json        | -o and --report lead to the same file
--report refs.jsonl              | is an input and would be overwritten
$(printf -- '--report r%d ' 1 2 3 4 5 6 7 8 9) | given more than 8 times
END
refuse 1 "cannot write nowhere/r.json" run m.gguf no-such-refs --rho 1 --report nowhere/r.json
refuse 1 "cannot write nowhere/r.md" run m.gguf refs.jsonl --rho 1 --report r.json \
    --report nowhere/r.md
refuse 1 "cannot write : No such file" run m.gguf refs.jsonl --rho 1 --report ""
refuse 4 "no-such-refs" run m.gguf no-such-refs --rho 1 --report r.json

# ---- Signatures ----------------------------------------------------------------------------------
refuse 2 "--signature needs --key" verify ink.json --signature x
refuse 1 "cannot read the signature ink.json.sig" verify ink.json --key meta.json
if command -v ssh-keygen >/dev/null; then
    refuse 2 "ssh-keygen does not sign with meta.json" run m.gguf refs.jsonl --rho 1 \
        --report r.json --sign meta.json
    ssh-keygen -q -t ed25519 -N "" -f key; ssh-keygen -q -t ed25519 -N "" -f other
    page --report signed.json --report signed.html --sign key
    works verify signed.json --key key.pub; expect_out "signed with the key"
    works verify signed.json --key key.pub --signature signed.json.sig
    sed 's/"purpose": "/&x/' signed.json >changed.json
    refuse_each 1 verify <<'END'
signed.json --key other.pub                             | is no signature of signed.json
signed.json --key key.pub --signature signed.html.sig   | is no signature of signed.json
changed.json --key key.pub --signature signed.json.sig  | is no signature
END
    # OpenSSH alone, of the page too.
    echo "signer $(cat key.pub)" >allowed
    for form in json html; do
        ssh-keygen -Y verify -q -f allowed -I signer -n dpinfer-report -s signed.$form.sig \
            <signed.$form >out 2>err
        rc=$?; last="ssh-keygen of signed.$form"; expect_rc 0
    done
fi
check "a report of nothing" test -z "$(find . -name 'r.json*' -o -name 'r[0-9]*')"

# ---- What is no report --------------------------------------------------------------------------
refuse 2 "no REPORT given" verify
refuse 2 "unexpected argument" verify ink.json br.json
for n in 0 1 100 1000 2000 $(($(wc -c <ink.json) - 3)); do
    head -c "$n" ink.json >cut$n.json; refuse 5 "cut$n.json is not a JSON report" verify cut$n.json
done
head -c 2000000 /dev/zero | tr '\0' '[' >deep.json
head -c 100000 deep.json >deeper.json
tail -c 5000 m.gguf >binary.json
echo '{}' >object.json
refuse_each 5 verify <<'END'
none.json   | cannot read none.json
ink.md      | Markdown cannot be verified
ink.html    | HTML cannot be verified
cut1000.json | it ends too early
deep.json   | allowed 1048576
deeper.json | is not a JSON report
binary.json | is not a JSON report
m.gguf      | it is no adapter of
object.json | it has no 'dpinfer_report'
END
for text in '[]' '3' 'null' '{"dpinfer_report": "1"}' '{"dpinfer_report": 1.0}'; do
    echo "$text" >bad.json
    fails 5 verify bad.json; expect_empty_out
done
"$dpinfer" verify - <ink.json >out 2>err; rc=$?; last="verify -"; expect_rc 0

# What fuzzing of reports begins with is what this program verifies: after a change of the form
# these files are made again, by 'run --report', or nothing but the version would be looked at.
for report in "$here"/../fuzz/corpus/report/*.json; do works verify "$report"; done

# ---- Prompts: their hash, and in full where that is asked for -----------------------------------
echo "An example." >example.txt
report hashed refs.jsonl --rho 1 --public-prompt 'Say "so":'
works verify hashed.json
expect_line hashed.json '"prompts": null'
report told refs.jsonl --rho 1 --public-prompt 'Say "so":' --report-prompts --example example.txt
works verify told.json
expect_line told.json '"public_prompt": "Say \\"so\\":"'
sed 's/"An example."/"Another one."/' told.json >bad.json; wrong claim.prompts bad.json
sed 's/"prompts": "./"prompts": "x/' told.json >bad.json; run verify bad.json
check "a hash has hexadecimal digits" test "$rc" -eq 5
refuse 2 "--report-prompts needs --report" run m.gguf refs.jsonl --rho 1 --report-prompts

finish
