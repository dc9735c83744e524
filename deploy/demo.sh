#!/usr/bin/env bash
# From a bare machine to a prediction: sets everything up, builds, starts the
# daemon on its embedded default, submits a Job, follows it, shows the answer and stops what it started.
#
#   deploy/demo.sh [--job FILE] [--budget 60s] [--keep] [--state DIR]
#     --job     the Job, whose data lie beside it (default: examples/digits/job.yaml)
#     --budget  the Job's wall-clock allowance (default: what job.yaml says)
#     --keep    leave the daemon running and say how to talk to it
#     --state   the state folder (default: a new one under /tmp); it stays, for the
#               predictions are in it
# Exit code: trainctl's (0: there is a prediction), or 1 when the set-up, the
# build or the start failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'demo: %s\n' "$*"; }
die() {
  printf 'demo: error: %s\n' "$*" >&2
  exit 1
}

keep=0 state="" job=examples/digits/job.yaml submit=()
while (($#)); do
  case $1 in
    --job | --budget | --state) (($# >= 2)) || die "$1 needs a value" ;;&
    --job) job=$2; shift ;;
    --budget) submit+=(--budget "$2"); shift ;;
    --state) state=$2; shift ;;
    --keep) keep=1 ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1 (known: --job, --budget, --keep, --state)" ;;
  esac
  shift
done

deploy/setup.sh
say "building"
targets=(//server:traind //worker:trainworker //worker:trainrank //worker:traintree //worker:trainprog //worker:trainprep //client:trainctl)
# A Rank opens it where the driver is.
if [[ -e /proc/driver/nvidia ]]; then targets+=(//worker/device:libtraind_cuda.so); fi
bazel build --noshow_progress "${targets[@]}" || die "the build failed"
bin=$(bazel info bazel-bin 2>/dev/null)

[[ -n $state ]] || state=$(mktemp -d /tmp/traind-demo.XXXXXX)
daemon=""
stop() {
  local status=$?
  trap - EXIT
  if ((keep && status != 130)) && [[ -n $daemon ]] && kill -0 "$daemon" 2>/dev/null; then
    say "traind goes on: $bin/client/trainctl --server $server list; kill $daemon ends it"
    exit "$status"
  fi
  if [[ -n $daemon ]] && kill -TERM "$daemon" 2>/dev/null; then
    # It publishes, ends the worker and its ranks, then itself.
    for _ in {1..150}; do
      kill -0 "$daemon" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
    say "stopped traind; the state folder with the results stays at $state"
  fi
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$state"
: >"$state/demo.out" # an earlier run's line is not this one's
# A session of its own: Ctrl-C reaches trainctl, then this script, which stops traind in order.
setsid "$bin/server/traind" --standalone --state "$state" --listen 127.0.0.1:0 \
  --data-root "$(realpath "$(dirname "$job")")" >"$state/demo.out" 2>"$state/demo.log" &
daemon=$!
server=""
for _ in {1..300}; do
  server=$(sed -n 's/^traind ready grpc=\([^ ]*\).*/\1/p' "$state/demo.out")
  [[ -n $server ]] && break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.1
done
if [[ -z $server ]]; then
  tail -n 20 "$state/demo.log" >&2
  die "traind did not start"
fi
say "traind on $server, state in $state"
"$bin/client/trainctl" --server "$server" submit -f "$job" \
  ${submit[@]+"${submit[@]}"} --follow
