#!/usr/bin/env bash
# Each file that a document or a comment names is there.
#   links.sh SOURCE
# In *.md: link targets, and words in backticks that look like a path or a source file. In sources:
# words that begin with a folder of the repository and end like a source file, and documents (*.md).
# A name without a folder is that of a file beside the document, or of one anywhere in the tree.
set -uo pipefail
cd "$1" || exit 1
passed=0 failed=0
mapfile -t files < <(find . \( -name '.git' -o -name 'build*' \) -prune -o -type f -print |
    sed 's|^\./||')
declare -A names
for file in "${files[@]##*/}"; do names[$file]=1; done
folders=$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name 'build*' -printf '%f|')

# judge FILE WORD: WORD, found in FILE, has to exist.
judge() {
    local file=$1 word=${2%%#*} place
    place=${file%"${file##*/}"}.
    if [ -z "$word" ] || [ -e "$word" ] || [ -e "$place/$word" ] || [ -e "include/$word" ] ||
        [ -n "${names[$word]:-}" ]; then
        passed=$((passed + 1))
    else
        echo "links: $file names '$2', which is not in the repository"
        failed=$((failed + 1))
    fi
}
# What stands for other names (NAME, UNIT), and files that a build or a command of the document
# makes.
placeholder() {
    [[ $1 =~ NAME|UNIT|METHOD|TYPE|COMMAND|OUT|PREFIX|[\*\<\{] || $1 =~ ^build(-[a-z]+)?/ ]] ||
        grep -qE -- "^    .*(-o|--report) ${1//./\\.}( |\$)" "$2"
}

ends='(c|h|md|sh|def|py|cmake|awk|svg|patch|conf)'
before='(^|[^A-Za-z0-9_./$}-])' path='[A-Za-z0-9_./-]*'
for file in "${files[@]}"; do
    case $file in
    *.md)
        while read -r word; do
            judge "$file" "$word"
        done < <(grep -oE '\]\([^) ]+\)' "$file" | sed -E 's/^\]\(|\)$//g' |
            grep -vE '^[a-z]+:' | sort -u)
        while read -r word; do
            placeholder "$word" "$file" || judge "$file" "$word"
        done < <(grep -oE '`[^` ]+`' "$file" | tr -d '\`' |
            grep -E "^(${folders%|})/|^[A-Za-z0-9_./-]+\.$ends\$" | grep -vE "^\.$ends\$" | sort -u)
        ;;
    tests/tools/*) ;; # they name the files that they make
    *.[ch] | *.def | *.sh | *.cmake | *.py | *CMakeLists.txt | scripts/* | tests/mutations/*)
        while read -r word; do
            placeholder "$word" "$file" || judge "$file" "$word"
        done < <(grep -ohE "$before(${folders%|})/$path\.$ends\b(\.in)?|$before[A-Za-z_-]+\.md\b" \
            "$file" | sed -E 's/^[^A-Za-z0-9_.]//' | sort -u)
        ;;
    esac
done
[ "$passed" -gt 200 ] || { echo "links: only $passed names were found"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
