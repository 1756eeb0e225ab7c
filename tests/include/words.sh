#!/usr/bin/env bash
# One word for one thing (docs/glossary.md): names that were given up do not come back, and neither
# do sentences that readers could not understand.
#   words.sh SOURCE
. "$(dirname "$0")/include_support.sh"
# files NAME...: those with such names that are not made by a build.
files() {
    local name names=()
    for name in "$@"; do names+=(-o -name "$name"); done
    find . \( -name '.?*' -o -name 'build*' -o -path ./tests/fuzz/corpus \) -prune \
        -o -type f \( "${names[@]:1}" \) -print | sort
}
mapfile -t code < <(files '*.[ch]' '*.def')

# Names, in the code alone: comments and strings are taken out. Whole words of a name count.
near='near|far|fold|folds|folded|ask|asks|take|takes|turn|together|anyone|someone|half_scale'
# What has such a word for a reason: near-copies are a measure of the literature, a chat has turns,
# an option takes a value.
known='is_near_copy|eval_is_near_copy|n_near_copies|count_near_copies'
known+='|near_copy|test_near_copy|assert_near|takes_model|takes_value'
known+='|[a-z0-9]*_turn|user_turn_.*|turn_.*|n_turn.*'
while IFS=: read -r file name; do
    complain "$file: the name '$name' (docs/glossary.md has the words)"
done < <(perl -0777 -ne 's{/\*.*?\*/}{}gs; s{"(?:[^"\\]|\\.)*"}{}g;
    print "$ARGV:$_\n" for /\b[A-Za-z_]\w*/g' "${code[@]}" | grep -iE "(:|_)($near)(_|$)" |
    grep -viE ":($known)$" | sort -u)
# SIMD structs are blocks and panels; a record is what one slot of a batch holds.
while IFS=: read -r file line _; do
    complain "$file:$line: a record in arithmetic (docs/glossary.md: block, panel)"
done < <(printf '%s\0' "${code[@]}" | grep -zE '^\./(kernels|engine)/' |
    xargs -0 grep -nwE 'records?' |
    grep -vE 'private record|[Aa]nother record|of (a|the|one) record|records. logits')

# Riddles. The corpus has documents of its own.
mapfile -t texts < <(files '*.[ch]' '*.def' '*.sh' '*.md' '*.py' '*.cmake' CMakeLists.txt |
    grep -vE '^\./(corpus/|tests/include/words.sh)')
while IFS= read -r riddle; do
    [ -n "$riddle" ] || continue
    while IFS=: read -r file line _; do
        complain "$file:$line: '$riddle' is a riddle"
    done < <(grep -nHiF -- "$riddle" "${texts[@]}" |
        grep -v '^./docs/results.md:[0-9]*:    - `') # what models wrote
    passed=$((passed + 1))
done <<'END'
by anyone
in vain
patience
make good
makes good
if it is not asked
are not those of a step
is not late
costs near
costs what it costs
than the checkpoint has
neither here nor there
so to speak
as it were
END
passed=$((passed + ${#texts[@]}))
finish 300
