#!/usr/bin/env bash
# kfold.sh [OPTION...]: a k-fold MLP beside a PyTorch script; see kfold.py. The peer needs numpy and the PyTorch wheel that
# set-up installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deploy/setup.sh >&2
bazel build --noshow_progress --ui_event_filters=-info //server:traind //worker/... //client:trainctl >&2
PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 exec .deps/venv/bin/python tests/bench/kfold.py "$@"
