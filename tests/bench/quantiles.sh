#!/usr/bin/env bash
# quantiles.sh [SET...] [OPTION...]: how well quantiles cover the test rows; see quantiles.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... >&2
exec tests/python_test.sh tests/bench/quantiles.py "$@"
