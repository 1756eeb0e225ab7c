# What the tests of programs in examples/ share: $example is that of $1, $dpinfer that of $2.
# shellcheck shell=bash
example=$(readlink -f "$1")
tools=$(readlink -f "$(dirname "$0")/../tools")
set -- "$2"
. "$tools/cli_support.sh"
last=$example
documents=$tools/../../examples/refs/discharge model=$tools/../../models/dpinfer-4m-q8_0.gguf
