#!/usr/bin/env bash
# Sets everything up, builds everything and runs every test. Tells the seconds that each of the three took
# ('phase build: 512 s'). The last line is 'N passed, N failed', of test cases, with ', N skipped' behind it where
# cases could not run here; those are named in the lines before. Exit 0 if none failed.
#
#   deploy/test.sh [BAZEL ARGUMENT...]   instead of //..., such as //tests/common/...
#
# Nothing is answered from a cache of test results. With CI set, the Bazel server
# and its outputs are gone afterwards (the disk cache of compiled files stays).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
phases=() began=$SECONDS
# Notes how long the phase $1 took; the next one begins.
phase() {
  phases+=("phase $1: $((SECONDS - began)) s")
  began=$SECONDS
}

deploy/setup.sh
phase set-up
events=$(mktemp)
finish() {
  rm -f "$events"
  if [[ -n ${CI:-} ]]; then bazel clean --expunge >/dev/null 2>&1 || true; fi
}
trap finish EXIT
readonly quiet=(--keep_going --color=no --curses=no --noshow_progress)
status=0
# The tests' run counts a target that does not build as failed.
bazel build "${@:-//...}" "${quiet[@]}" || true
phase build
bazel test "${@:-//...}" "${quiet[@]}" --nocache_test_results --build_event_json_file="$events" || status=$?
phase tests
printf '%s\n' "${phases[@]}"
tools/test_summary.py "$events" || status=$((status ? status : 1))
exit "$status"
