#!/usr/bin/env bash
# worth.sh [SET...] [OPTION...]: what a budget buys, beside AutoGluon; see worth.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... >&2
exec tests/python_test.sh tests/bench/worth.py "$@"
