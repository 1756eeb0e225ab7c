#!/usr/bin/env bash
# After a source file has been moved: its patches are made to name the new path.
#   tests/mutations/rename.sh OLD NEW     paths from the root, as git mv has them
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 OLD NEW" >&2; exit 2; }
cd "$(dirname "$0")"
[ -f "../../$2" ] || { echo "$0: there is no $2" >&2; exit 1; }
old=$(sed 's/[.[\*^$]/\\&/g' <<<"$1")
grep -lE "^(---|\+\+\+|diff --git) .*[ab]/$old( |$)" ./*.patch | while read -r patch; do
    sed -i -E "/^(---|\+\+\+|diff --git) /s#([ab])/$old( |\$)#\1/$2\2#g" "$patch"
    echo "$patch"
done
