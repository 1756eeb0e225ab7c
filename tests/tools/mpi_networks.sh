#!/usr/bin/env bash
# Ranks in two network namespaces, each with a host name of its own, that a pair of virtual cables
# connects: mpi_networks.sh path/to/dpinfer. Skipped (77) where it may not be done.
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
command -v ip >/dev/null || { echo "skipped: there is no ip (iproute2)"; exit 77; }
. "$(dirname "$0")/process_support.sh"
a=dpi-a-$$ b=dpi-b-$$
if ! ip netns add "$a" 2>err; then
    echo "skipped: no network namespaces can be made: $(cat err)"
    exit 77
fi
trap 'ip netns del "$a"; ip netns del "$b"; rm -rf "$dir"' EXIT
ip netns add "$b" && ip link add "va$$" netns "$a" type veth peer name "vb$$" netns "$b" 2>err ||
    { echo "skipped: no virtual cable can be made: $(cat err)"; exit 77; }
up() {
    ip -n "$1" addr add "$3/24" dev "$2" && ip -n "$1" link set "$2" up && ip -n "$1" link set lo up
}
up "$a" "va$$" 10.99.7.1 && up "$b" "vb$$" 10.99.7.2 || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
small_model
records 12 >r.jsonl
# What mpirun starts a daemon on the other machine with: HOST COMMAND...
cat >agent.sh <<EOF
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname dpi-b && \$*"
EOF
chmod +x agent.sh
# ranks ARGS: a rank in each namespace; nothing but the cable connects them.
ranks() {
    last="mpirun over two networks: dpinfer $*"
    timeout 600 ip netns exec "$a" unshare --uts sh -c 'hostname dpi-a && exec "$@"' sh \
        mpirun -n 2 --host 10.99.7.1:1,10.99.7.2:1 --map-by node \
        --mca plm rsh --mca plm_rsh_agent "$dir/agent.sh" \
        --mca btl tcp,self --mca btl_tcp_if_include 10.99.7.0/24 \
        --mca oob_tcp_if_include 10.99.7.0/24 --mca orte_keep_fqdn_hostnames 1 \
        sh -c 'echo "$OMPI_COMM_WORLD_RANK $(hostname)" >>hosts; exec "$@"' sh "$dpinfer" "$@" \
        >out 2>err </dev/null
    rc=$?
    expect_rc 0
}
bytes() { ip -n "$a" -s link show "va$$" | awk '/TX:/ { getline; print $1 }'; }
position=(m.gguf r.jsonl --rho .5 -B 3 -n 20 -t 1 --seed 7)
works run "${position[@]}" -o one.txt
ranks run "${position[@]}" -o texts.txt; expect_same one.txt texts.txt
check "a rank on each machine" test "$(sort hosts | tr '\n' ' ')" = "0 dpi-a 1 dpi-b "
before=$(bytes)
ranks run "${position[@]}" --spread -o spread.txt; expect_same one.txt spread.txt
check "sums and tokens went over the cable" test "$(bytes)" -gt $((before + 80 * 100))
finish
