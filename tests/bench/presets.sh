#!/usr/bin/env bash
# presets.sh [SET...] [OPTION...]: what each preset costs and is worth; see presets.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... >&2
exec tests/python_test.sh tests/bench/presets.py "$@"
