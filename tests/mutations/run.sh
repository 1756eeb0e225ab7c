#!/usr/bin/env bash
# One mutant: a copy of the sources, a fault from a patch, and the audits, which must catch it.
#   run.sh CONFIG NAME   NAME.patch beside this script; NAME none: no fault, the audits must pass
#   run.sh CONFIG        the table of all mutants that have run; fails unless each was caught
# The patch must apply exactly, the mutant must compile, and it must end with an audit that fails:
# not with a crash. A fault in tools/ is looked for from outside, by tests/tools/path.sh, or by
# infer.sh if its name begins with infer-; one in serve/ by tests/serve/test_private.c. Only what
# the patch touches is compiled again, the rest comes from archives of objects.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$1" # SOURCE WORK CC CFLAGS FULL_FLAGS OBJECTS PROGRAM SERVER CURL LIBS
name=${2:-}

if [ -z "$name" ]; then
    failed=0
    for patch in "$here"/*.patch; do
        name=$(basename "$patch" .patch)
        result=$(cat "$WORK/$name/result" 2>/dev/null) || result="NOT CAUGHT, or did not run"
        [[ $result == "AUDIT FAILED"* || $result == skipped* ]] || failed=1
        printf '%-28s %s\n' "$name" "${result#AUDIT FAILED: }"
    done
    exit $failed
fi

work=$WORK/$name
skip() {
    mkdir -p "$work" && echo "skipped: $1" >"$work/result"
    exit 77
}
case $name in
serve-*) [ -n "$SERVER" ] || skip "built without the server" ;;
infer-*)
    [ "$CURL" = 1 ] || skip "built without libcurl"
    command -v python3 >/dev/null || skip "no python3"
    command -v openssl >/dev/null || skip "no openssl"
    ;;
avx512-*) grep -qw avx512_vnni /proc/cpuinfo || skip "this processor has no AVX-512" ;;
esac
rm -rf "$work"
mkdir -p "$work" || exit 1
folders="include base kernels gguf tokenizer engine grammar dp pipeline train serve tools"
for folder in $folders; do
    cp -r "$SOURCE/$folder" "$work" || exit 1
done
cd "$work" || exit 1
die() {
    echo "mutation $name: $*"
    exit 1
}

# The flags of a source file, beside those of all.
flags_of() {
    case $1 in
    kernels/x86/avx2*) echo "-mavx2 -mfma -mf16c" ;;
    kernels/x86/avx512*)
        echo "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c"
        ;;
    pipeline/*/* | train/* | serve/* | tools/*) echo "$FULL_FLAGS" ;;
    esac
}
# The probe that is run first: a fault is noticed sooner by the audits of its own folder.
first_of() {
    case $1 in
    dp/exact/gradient.* | dp/exact/poisson.* | train/*) echo tuner ;;
    dp/exact/normal.* | dp/pld/*) echo training ;;
    dp/local/* | pipeline/perturb/*) echo perturb ;;
    pipeline/finetune/*) echo finetune ;;
    pipeline/augpe/*) echo evolution ;;
    pipeline/journal/*) echo journal ;;
    pipeline/*) echo ledger ;;
    *) echo methods ;;
    esac
}
# The sources that include one of the headers, at any depth.
including() {
    find . -name '*.c' -printf '%P\n' | while read -r source; do
        # shellcheck disable=SC2046,SC2086
        $CC $CFLAGS $(flags_of "$source") -I"$work" -I"$work/include" -MM -MT x "$source" |
            grep -qF "$(printf '%s\n' "$@")" && echo "$source"
    done
}

objects=()
sources=
first=()
if [ "$name" != none ]; then
    patch -p1 --fuzz=0 --batch --forward <"$here/$name.patch" >patch.log 2>&1 ||
        { cat patch.log; die "the patch no longer applies: bring it up to date with the sources"; }
    sources=$(sed -n 's|^+++ b/\([^ \t]*\).*|\1|p' "$here/$name.patch" | sort -u)
    first=("$(first_of "$(head -n 1 <<<"$sources")")")
    headers=$(grep '\.h$' <<<"$sources")
    # shellcheck disable=SC2086
    [ -z "$headers" ] || sources=$(printf '%s\n' "$sources" "$(including $headers)" | sort -u)
    for source in $sources; do
        case $source in *.c) ;; *) continue ;; esac
        object=$(tr / _ <<<"${source%.c}").o
        # shellcheck disable=SC2046
        $CC $CFLAGS $(flags_of "$source") -I"$work" -I"$work/include" -c "$source" -o "$object" ||
            die "$source does not compile"
        objects+=("$object")
    done
fi
# The mutant's objects come first, so that nobody asks the archives for theirs.
# shellcheck disable=SC2086
if [[ " $sources" == *[[:space:]]tools/* ]]; then
    $CC -o dpinfer "${objects[@]}" $PROGRAM $LIBS || die "does not link"
    judge=path
    case $name in infer-*) judge=infer ;; esac
    bash "$SOURCE/tests/tools/$judge.sh" "$work/dpinfer" "$SOURCE" >log 2>&1
    rc=$?
    sed -n 's/^FAILED: /AUDIT FAILED: outside | /p' log >out
    cat log >err
elif [[ " $sources" == *[[:space:]]serve/* ]]; then
    $CC -o mutant "${objects[@]}" $SERVER $LIBS || die "does not link"
    ./mutant >err 2>&1
    rc=$(($? > 0 && $? < 100))
    sed -n 's/^\[  FAILED  \] /AUDIT FAILED: server | /p' err >out
else
    $CC -o mutant "${objects[@]}" $OBJECTS $LIBS || die "does not link"
    ./mutant "${first[@]}" >out 2>err
    rc=$?
fi
cat out err
rm -f mutant dpinfer ./*.o
if [ "$name" = none ]; then
    [ $rc -eq 0 ] || die "the audits fail without a fault (exit code $rc)"
    exit 0
fi
[ $rc -eq 1 ] && grep -q '^AUDIT FAILED' out || die "NOT CAUGHT (exit code $rc)"
head -n 1 out >result
# shellcheck disable=SC2086
rm -rf $folders # the copies of all mutants would fill a disk
