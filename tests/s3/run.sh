#!/bin/bash
# What traind does with a bucket, against a real S3-compatible server that checks signatures and rights: moto's, which
# this script installs and starts. Minutes; needs a package index.
#   tests/s3/run.sh
# Prints "N passed, N failed", or one line that says why it was skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
bazel build --noshow_progress --ui_event_filters=-info //server:traind //client:trainctl //worker/... \
  //tests/server/objects:object_store_test //tests/server/archive:file_mirror_test || exit 1
venv=${MOTO_VENV:-$HOME/.cache/traind-moto}
if ! "$venv/bin/python" -c 'import moto, flask, flask_cors' 2>/dev/null; then
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q moto==5.2.5 flask flask-cors; } >/dev/null 2>&1; then
    echo "skipped: moto cannot be installed"
    exit 0
  fi
fi
PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 exec python3 tests/s3/real_store.py "$venv/bin/python"
