#!/bin/bash
# How fast `--upload` sends a file of 1 GB over a link: traind with TLS and the client are in network namespaces of their
# own, on a cable of a given rate. Beside it stands what one plain connection carries on the same cable.
#   tests/bench/upload.sh [FOLDER OF THE PROGRAMS] [RATE...]
# RATE is that of tc, such as 1gbit (the default is: 1gbit, and `none` for a cable without a limit).
# Prints an object per line, or one line that says why it was skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
if [ "${1:-}" != --inside ]; then
  if ! unshare --user --map-root-user --net --mount --pid --fork true 2>/dev/null; then
    echo "skipped: network namespaces are not permitted here"
    exit 0
  fi
  if [ ! -d "${1:-}" ]; then
    bazel build --noshow_progress --ui_event_filters=-info //server:traind //client:trainctl || exit 1
    set -- "" "$@"
  fi
  exec unshare --user --map-root-user --net --mount --pid --fork --mount-proc --kill-child "$0" --inside "$@"
fi
shift
traind=$root/bazel-bin/server/traind trainctl=$root/bazel-bin/client/trainctl
[ -z "$1" ] || traind=$1/traind trainctl=$1/trainctl
shift
[ $# -gt 0 ] || set -- 1gbit none

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
mount -t tmpfs none /run && mkdir -p /run/netns
ip netns add lead && ip netns add client || exit 1
ip -n lead link add name eth0 type veth peer name eth0 netns client
number=1
for host in lead client; do
  ip -n $host addr add 10.77.0.$number/24 dev eth0
  ip -n $host link set eth0 up
  ip -n $host link set lo up
  number=$((number + 1))
done
on() { ip netns exec "$@"; }

mkdir "$work/state" "$work/data" "$work/desk"
python3 - "$work/desk" <<'PY'
import random, sys
random.seed(7)
rows = [f"{random.random():.6f},{random.random():.6f},{random.choice('xy')}\n" for _ in range(50000)]
block = "".join(rows).encode()
with open(f"{sys.argv[1]}/train.csv", "wb") as f:
    f.write(b"a,b,kind\n")
    while f.tell() < 1_000_000_000:
        f.write(block)
with open(f"{sys.argv[1]}/test.csv", "w") as f:
    f.write("a,b\n0.1,0.2\n")
PY
cat >"$work/desk/job.yaml" <<YAML
api: v1
name: sent
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: test.csv, target: kind, folds: 3}
model: {mlp: {hidden: [16]}}
budget: {time: 1h}
output: predictions.csv
YAML
tls=$work/tls
"$traind" init-tls "$tls" --host 10.77.0.1 >/dev/null || exit 1
"$traind" token add ann --role user --expires 1d --state "$work/state" --out "$work/ann.token" >/dev/null || exit 1
on lead "$traind" --state "$work/state" --listen 10.77.0.1:7070 --tls "$tls" --data-root "$work/data" \
  >"$work/traind.log" 2>&1 &
until grep -q "traind ready" "$work/traind.log"; do
  kill -0 $! 2>/dev/null || { cat "$work/traind.log"; exit 1; }
  sleep 0.1
done
seconds() { python3 -c 'import time; print(time.monotonic())'; }
took() { python3 -c 'import sys; print(f"{float(sys.argv[2]) - float(sys.argv[1]):.2f}")' "$1" "$2"; }
# What one connection carries: 500 MB, in seconds.
plain() {
  on lead python3 -c 'import socket
server = socket.create_server(("10.77.0.1", 7071))
print("up", flush=True)
connection, _ = server.accept()
got, block = 0, bytearray(1 << 20)
while got < 500_000_000: got += connection.recv_into(block)
connection.sendall(b"x")' >"$work/plain" &
  until grep -q up "$work/plain"; do sleep 0.05; done
  on client python3 -c 'import socket, time
connection = socket.create_connection(("10.77.0.1", 7071))
begin, sent, block = time.monotonic(), 0, bytes(1 << 20)
while sent < 500_000_000:
    size = min(len(block), 500_000_000 - sent)
    connection.sendall(memoryview(block)[:size])
    sent += size
connection.recv(1)
print(f"{time.monotonic() - begin:.3f}")'
  wait $!
}

for rate in "$@"; do
  for host in lead client; do
    on $host tc qdisc del dev eth0 root 2>/dev/null
    [ "$rate" = none ] || on $host tc qdisc add dev eth0 root tbf rate "$rate" burst 1mb latency 50ms || exit 1
  done
  of_plain=$(plain)
  rm -rf "$work/state/uploads"/*
  openssl dgst -sha256 "$work/desk/train.csv" >/dev/null
  begin=$(seconds)
  openssl dgst -sha256 "$work/desk/train.csv" >/dev/null
  digest=$(took "$begin" "$(seconds)")
  begin=$(seconds)
  (cd "$work/desk" && on client "$trainctl" --server 10.77.0.1:7070 --tls "$tls" --token "$work/ann.token" plan \
    -f job.yaml --upload >"$work/plan") || { cat "$work/plan"; exit 1; }
  python3 -c 'import json, os, sys
rate, plain, took, digest, path = sys.argv[1], *map(float, sys.argv[2:5]), sys.argv[5]
size = os.path.getsize(path)
mbits = size * 8e-6 / took
print(json.dumps({"rate": rate, "plain_mbit_per_s": round(500e6 * 8e-6 / plain), "upload_s": took, "digest_s": digest,
                  "mbit_per_s": round(mbits), "share_of_plain": round(mbits / (500e6 * 8e-6 / plain), 3),
                  "load": os.getloadavg()[0]}), flush=True)' \
    "$rate" "$of_plain" "$(took "$begin" "$(seconds)")" "$digest" "$work/desk/train.csv"
done
