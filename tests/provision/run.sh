#!/bin/bash
# traind-provision over a real Slurm of this machine's own (packages slurm-wlm; as root). Minutes.
#   tests/provision/run.sh
# Prints "N passed, N failed", or one line that says why it was skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
bazel build --noshow_progress --ui_event_filters=-info //server:traind //client:trainctl //worker:trainworker \
  //worker:trainprep //worker:trainrank //worker:trainprog || exit 1
PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 exec python3 tests/provision/slurm_drill.py "$@"
