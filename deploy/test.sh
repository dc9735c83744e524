#!/usr/bin/env bash
# Sets everything up, builds everything and runs every test. The last line is
# 'N passed, N failed', of test cases; exit 0 if none failed.
#
#   deploy/test.sh [BAZEL ARGUMENT...]   instead of //..., such as //tests/common/...
#
# Nothing is answered from a cache of test results. With CI set, the Bazel server
# and its outputs are gone afterwards (the disk cache of compiled files stays).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deploy/setup.sh
events=$(mktemp)
finish() {
  rm -f "$events"
  if [[ -n ${CI:-} ]]; then bazel clean --expunge >/dev/null 2>&1 || true; fi
}
trap finish EXIT
status=0
bazel test "${@:-//...}" --keep_going --nocache_test_results --color=no --curses=no \
  --noshow_progress --build_event_json_file="$events" || status=$?
tools/test_summary.py "$events" || status=$((status ? status : 1))
exit "$status"
