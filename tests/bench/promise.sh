#!/usr/bin/env bash
# promise.sh [JOBS] [OPTION...]: real Jobs under real faults; see promise.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... //tests/bench/... >&2
exec tests/python_test.sh tests/bench/promise.py "$@"
