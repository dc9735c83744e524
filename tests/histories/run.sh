#!/usr/bin/env bash
# Records histories of real processes under faults and judges them. docs/RELIABILITY.md tells what each tier takes.
#
#   tests/histories/run.sh smoke|change|night      a tier: the commands below, one after the other
#   tests/histories/run.sh histories [OPTION...]   --runs N --seconds N --seed N --keep FOLDER
#   tests/histories/run.sh kills [N]               N kills of traind while clients submit
#   tests/histories/run.sh check HISTORY...        judges histories that were kept
#
# Each command prints JSON lines, the last of which sums up. Exits 1 if something was violated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
readonly tests=tests/histories

run() {
  echo "# $*"
  "$@" || failed=1
}
# Starts a command beside the next ones: those that mostly wait. `together` waits for all and shows what they printed.
beside() {
  commands+=("$*")
  "$@" >"$logs/${#commands[@]}" 2>&1 &
  pids+=($!)
}
together() {
  local i
  for i in "${!pids[@]}"; do
    wait "${pids[i]}" || failed=1
    echo "# ${commands[i]}"
    cat "$logs/$((i + 1))"
  done
}
# The first of seeds that nobody has tried.
fresh() { echo $((1000000000 + $(od -An -N4 -tu4 /dev/urandom))); }
commands=() pids=() failed=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
mode=${1:?smoke, change, night, histories, kills or check}
shift
if [[ $mode != check ]]; then
  bazel build --noshow_progress --ui_event_filters=-info //server:traind //client:trainctl //worker/... \
    //tests/storage/... //tests/simulation:simulate >&2
fi
case $mode in
  smoke)
    run python3 $tests/checker_test.py
    run python3 $tests/histories.py --runs 4 --seconds 15
    run python3 $tests/histories.py --kills 100
    run python3 tests/storage/storage_faults.py --sample 1 --cuts 4
    ;;
  change)
    run python3 $tests/checker_test.py
    run python3 $tests/histories.py --runs 12 --seconds 20
    run python3 $tests/histories.py --kills 500
    run python3 tests/storage/storage_faults.py --every 24 --cuts 20
    ;;
  night)
    run python3 $tests/checker_test.py
    beside python3 $tests/histories.py --runs 200 --seconds 20 --seed "$(date +%j)000"
    beside python3 $tests/histories.py --kills 5000
    together
    run python3 tests/storage/storage_faults.py --every 1 --parallel 4 --cuts 200
    for machines in any spanned fleet asked; do
      run bazel-bin/tests/simulation/simulate --machines $machines --seeds 10000 --first "$(fresh)"
    done
    run tests/fuzz/run.sh --seconds 60
    ;;
  histories) run python3 $tests/histories.py "$@" ;;
  kills) run python3 $tests/histories.py --kills "${1:-500}" ;;
  check) run python3 $tests/checker.py "$@" ;;
  *) echo "unknown: $mode" >&2; exit 2 ;;
esac
exit $failed
