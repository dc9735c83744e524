#!/usr/bin/env bash
# engine.sh [WORKLOAD...] [OPTION...]: the engine beside PyTorch; see engine.py. The peer
# needs numpy and the PyTorch wheel that set-up installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deploy/setup.sh >&2
bazel build --noshow_progress --ui_event_filters=-info //worker/... >&2
exec .deps/venv/bin/python tests/bench/engine.py --bin "$(bazel info bazel-bin 2>/dev/null)" "$@"
