#!/usr/bin/env bash
# examples/private_text.c writes a text for each batch and the statement:
#   example.sh path/to/release path/to/dpinfer
. "$(dirname "$0")/example_support.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 "$tools/short_model.py" "$model" m.gguf || exit 1
"$example" m.gguf "$documents" 8 >out 2>err; rc=$?
expect_rc 0
expect_err "Privacy statement"
expect_err "one record = one .txt file"
expect_err "texts              8"
check "hardly any text" test "$(wc -w <out)" -gt 60
"$example" none none 8 >out 2>err; rc=$?
check "no model, and it went well" test $rc -ne 0
expect_err "none"
finish
