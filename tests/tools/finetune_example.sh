#!/usr/bin/env bash
# examples/finetune/run.sh with few steps, and what it leaves: finetune_example.sh path/to/dpinfer
# SOURCE BUILD
source=$2 build=$3
. "$(dirname "$0")/cli_support.sh"
for i in 1 2; do # the second one goes on where the first has ended
    STEPS=2 EXPECTED=4 TEXTS=1 "$source/examples/finetune/run.sh" "$build" made >out 2>err
    rc=$?
    last="examples/finetune/run.sh, $i"
    expect_rc 0; expect_line err "guarantee +\((2\.99|3,)"
    expect_out "verified: the guarantee follows from the parameters" \
        "new reviews are without a slip"
    expect_err "by post-processing: no further cost" "nats a token of the held-out public records"
done
expect_err "going on after step 2"
expect_count 1 '"private":true' made/reviews.jsonl
works ledger show made/year.ledger --json; expect_count 1 '"method"' out # one charge
finish
