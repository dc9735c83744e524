#!/usr/bin/env bash
# Makes the volumes, starts the daemon, trains on them and predicts the masks. Options are those
# of deploy/demo.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 make_volumes.py
exec ../../deploy/demo.sh --job examples/ct_volumes/job.yaml "$@"
