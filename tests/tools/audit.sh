#!/usr/bin/env bash
# Tests of `dpinfer audit`: audit.sh path/to/dpinfer [sanitized]
# The audits themselves are tested by test_audit, in full; here each of them runs as a user runs it,
# with a tenth of the draws.
. "$(dirname "$0")/cli_support.sh"
small_model

refuse 2 "no MODEL given" audit
refuse 3 "none.gguf" audit none.gguf
refuse 2 "--seed: found '-1'" audit m.gguf --seed -1
refuse 2 "--effort: found '0', allowed 0.1..1" audit m.gguf --effort 0
refuse 1 "cannot write" audit m.gguf -o no/such/folder/report.json

if [ -n "${2:-}" ]; then # minutes with sanitizers; test_audit runs them all
    finish
fi
# Draws come from the system: a sound program fails a line with a chance of 1e-9.
mkdir tmp
export TMPDIR=$dir/tmp
run audit m.gguf -t 2 -o report.json --effort .1
expect_rc 0
expect_out "the model's logits in texts"
expect_out "one run, a canary in each batch"
expect_out "the path, records by position"
expect_out "the path of this model"
check "files of the audit are left" test -z "$(ls tmp)"
n=$(grep -c ' pass$' out)
expect_out "$n of $n passed"
check "report.json has every line" test "$(grep -c '"passed": true' report.json)" -eq $((n + 1))
kinds=$(grep -o '"audit": "[^"]*"' report.json | sort -u | cut -d'"' -f4 | tr '\n' ' ')
check "audits of each kind: $kinds" test "$kinds" = "canaries draws game loss releases "

finish
