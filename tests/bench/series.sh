#!/usr/bin/env bash
# series.sh [SET...] [OPTION...]: forecasts beside statsforecast; see series.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... >&2
exec tests/python_test.sh tests/bench/series.py "$@"
