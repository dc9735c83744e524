#!/usr/bin/env bash
# models.sh [MODEL...] [OPTION...]: every kind of model on real data, killed once; see models.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //server/... //worker/... //client/... >&2
exec tests/python_test.sh tests/bench/models.py "$@"
