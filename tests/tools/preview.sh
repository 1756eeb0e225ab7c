#!/usr/bin/env bash
# Prompts tried without spending: preview.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
model=$here/../../models/dpinfer-4m-q8_0.gguf
printf '%s\n' 'text,kind' '"The printer on the second floor jams on each page.",printer' \
    '"The laptop of Mr Gray gets hot.",laptop' >tickets.csv

# ---- What is refused -------------------------------------------------------------------------
refuse_each 2 preview <<'END'
                                              | MODEL
$model --num 65                               | --num: found '65', allowed 1..64
$model --describe x --query y                 | --describe and --query
$model --stop ""                              | --stop
$model --public-prompt {reference}            | --public-prompt: found {reference}
END
fails 4 preview "$model" --example-records nothing.csv
fails 3 preview nothing.gguf

# ---- What it shows ---------------------------------------------------------------------------
works preview "$model" --public-prompt "Write a support ticket." -n 12 --num 4 --seed 1
expect_out "<|im_start|>user" "Write a support ticket." "The private prompt with example 1" \
    "8 of 8 texts end at -n 12" "--max-words"
expect_err "made-up support tickets stand in their place"
works preview "$model" --public-prompt "Write a support ticket." -n 12 --num 4 --seed 1 --json
python_check "the JSON object" <<'P'
p = json.load(open("out"))
assert [len(p["public"]), len(p["examples"]), p["tokens"]] == [4, 4, 12]
assert p["advice"][0]["fault"] == "cut" and all(t["cut"] for t in p["public"])
P
cp out first
works preview "$model" --public-prompt "Write a support ticket." -n 12 --num 4 --seed 1 \
    -o again.json -t 1
expect_same first again.json
printf "laser_printer\ndesk_lamp\n" >kinds
works preview "$model" --describe "{label} ticket" --label-names kinds -n 4 --num 2 -o words.html
expect_line words.html "laser printer ticket"
printf "laser_printer\tprinter with a drum\ndesk_lamp\n" >kinds
works preview "$model" --describe "{label} ticket" --label-names kinds -n 4 --num 2 -o meant.html
expect_line meant.html "printer with a drum ticket"
# Where texts may have more than 256 tokens they are documents below headings.
for n in 256 257; do
    works preview "$model" --describe tickets -n $n --num 1 --seed 1 -o long.$n.html
done
expect_line long.256.html "Write a list of made-up tickets."
expect_line long.257.html "Write made-up tickets." "# No. 1" "# No. 2"
printf "printer\nlaptop\n" >kinds
works preview "$model" --describe "{label} ticket" --label-field kind --label-names kinds \
    --example-records tickets.csv -n 12 --max-words 3 --seed 1 -o page.html
expect_line page.html "<h1>Preview of prompts</h1>" "printer ticket" "The laptop of Mr Gray" \
    "ends|wrong"
python_check "at most three words" <<'P'
import html
page = open("page.html").read()
part = page[page.index("Texts of the public"):page.index("The public prompt, with")]
cells = [html.unescape(c) for c in re.findall(r'<td class="wide">(.*?)</td>', part, re.S)]
assert all(len(c.split()) <= 3 for c in cells[:8]), cells
# A word of its own column is not broken into letters; texts, which may be one long word, are.
assert '<td class="mark">cut</td>' in open("words.html").read()
assert "td.mark{white-space:nowrap}" in page
P
finish
