#!/usr/bin/env bash
# One mutant: a copy of the sources, a fault from a patch, and the audits, which must catch it.
#   run.sh CONFIG NAME   NAME.patch beside this script; NAME none: no fault, the audits must pass
#   run.sh CONFIG        the table of all mutants that have run; fails unless each was caught
# The patch must apply exactly, the mutant must compile, and it must end with an audit that fails:
# not with a crash. Only what the patch touches is compiled again, the rest comes from an archive of
# the library's objects.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$1" # SOURCE WORK CC CFLAGS OBJECTS LIBS
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
case $name in
avx512-*)
    if ! grep -qw avx512_vnni /proc/cpuinfo; then
        mkdir -p "$work" && echo "skipped: this processor has no AVX-512" >"$work/result"
        exit 77
    fi
    ;;
esac
rm -rf "$work"
mkdir -p "$work" || exit 1
for folder in include base kernels gguf tokenizer engine dp pipeline; do
    cp -r "$SOURCE/$folder" "$work" || exit 1
done
cd "$work" || exit 1
die() {
    echo "mutation $name: $*"
    exit 1
}

objects=()
if [ "$name" != none ]; then
    patch -p1 --fuzz=0 --batch --forward <"$here/$name.patch" >patch.log 2>&1 ||
        { cat patch.log; die "the patch no longer applies: bring it up to date with the sources"; }
    sources=$(sed -n 's|^+++ b/\([^ \t]*\).*|\1|p' "$here/$name.patch" | sort -u)
    case $sources in *.h*) sources="$sources $(ls dp/exact/*.c dp/account/*.c dp/methods/*.c)" ;; esac
    for source in $sources; do
        isa=
        case $source in
        *.h) continue ;;
        kernels/x86/avx2*) isa="-mavx2 -mfma -mf16c" ;;
        kernels/x86/avx512*)
            isa="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c"
            ;;
        esac
        object=$(basename "$source" .c).o
        $CC $CFLAGS $isa -I"$work" -I"$work/include" -c "$source" -o "$object" ||
            die "$source does not compile"
        objects+=("$object")
    done
fi
# The mutant's objects come first, so that nobody asks the archive for theirs.
$CC -o mutant "${objects[@]}" $OBJECTS $LIBS || die "does not link"

./mutant >out 2>err
rc=$?
cat out err
rm -f mutant ./*.o
if [ "$name" = none ]; then
    [ $rc -eq 0 ] || die "the audits fail without a fault (exit code $rc)"
    exit 0
fi
[ $rc -eq 1 ] && grep -q '^AUDIT FAILED' out || die "NOT CAUGHT (exit code $rc)"
head -n 1 out >result
