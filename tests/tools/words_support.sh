# What the tests of attack, infer, inferdpt and perturb share, beside cli_support.sh: servers that
# these commands ask, and what Python says of their output.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
unset {http,https,all,no}_proxy {HTTP,HTTPS,ALL,NO}_PROXY
# expect CODE [TEXT...]: the last run's exit code, and each text on stderr.
expect() {
    local text
    expect_rc "$1"
    for text in "${@:2}"; do expect_err "$text"; done
}
# holds WHAT PYTHON: its assertions, of `out` and of `lines`, which are objects of JSON.
holds() {
    check "$1" python3 -c "
import json
out = open('out', encoding='utf-8', errors='replace').read()
def objects(path): return [json.loads(x) for x in open(path)]
def lines(): return objects('out')
$2"
}
# expect_none WHAT GREP-ARGS...: no line of these files matches.
expect_none() { check "$1" test -z "$(grep -a "${@:2}")"; }
# expect_requests N: so many have come to the server `plain`.
expect_requests() { check "$1 requests" test "$(wc -l <plain/bodies)" = "$1"; }
# wait_for COMMAND...: until it succeeds; ctest ends what never does.
wait_for() { until "$@"; do sleep .02; done; }
# begin_remote FOLDER [CERTIFICATE KEY]: remote_server, whose $port is known; end_remote ends it.
begin_remote() {
    remote_server "$@"
    servers[$1]=$server
    exec {end}>"$1/end"
    ends[$1]=$end
    read -r port <"$1/port"
}
end_remote() { # FOLDER
    local end=${ends[$1]}
    exec {end}>&-
    wait "${servers[$1]}"
}
declare -A servers ends
