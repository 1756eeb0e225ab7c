#!/usr/bin/env bash
# The Python package, as its users have it: the wheel is made of BUILD, installed into a fresh
# environment and tested there: python.sh PYTHON SOURCE BUILD
set -uo pipefail
python=$1 source=$2 build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Only what is imported gets bytecode: for all packages that takes a minute.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPYCACHEPREFIX=$work/bytecode OMP_WAIT_POLICY=passive
unset PYTHONPATH DPI_ISA
skip() {
    echo "skipped: $*"
    exit 77
}
command -v dpkg-query >/dev/null || skip "the licences of what a wheel has are those of Debian"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    skip "$("$python" --version) is older than 3.11, which the pinned packages need"
"$python" -m venv "$work/venv" >"$work/log" 2>&1 || skip "python3 has no venv (python3-venv)"
venv=$work/venv/bin/python
# What pip installs in 40 seconds of a processor, uv does in 6. Whether there is an index at all is
# seen here: what fails then is a failure.
wanted=$source/tests/python/requirements.txt
"$venv" -m pip install -q --no-compile --only-binary :all: "$(grep '^uv==' "$wanted")" \
    >"$work/log" 2>&1 || skip "pip has no index of packages: $(tail -n 1 "$work/log")"
# uv does not know where pip is told to look.
get() {
    "$venv" -m uv pip install -q --no-cache "$@" || "$venv" -m pip install -q --no-compile "$@"
}

. "$(dirname "$0")/../include/try_support.sh"
try "install what tests need" get --only-binary :all: -r "$wanted"
try "make the wheel" env PYTHON="$venv" DPI_WHEEL_LEVEL=1 bash "$source/python/wheel" "$build" \
    "$work/wheel"
try "install it" "$venv" -m pip install -q --no-deps --no-index "$work"/wheel/dpinfer-*.whl
cd "$work" || exit 1 # where there is no other dpinfer
try "ruff" "$venv" -m ruff check --no-cache --config "$source/python/pyproject.toml" \
    "$source/python" "$source/tests/python" "$source/bench/python.py" "$source/examples/python"
try "mypy" "$venv" -m mypy --cache-dir "$work/mypy" --config-file "$source/python/pyproject.toml" \
    -p dpinfer
try "pytest" env TMPDIR="$work" "$venv" -m pytest -q -p no:cacheprovider \
    --rootdir "$source/tests/python" "$source/tests/python"
tail -n 1 "$work/log"
sed -n 's/^SKIPPED[^:]*:[0-9]*: /skipped: /p' "$work/log"
echo "python: $passed passed, $failed failed"
exit $((failed > 0))
