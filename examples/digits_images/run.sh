#!/usr/bin/env bash
# Makes the images, starts the daemon, trains on them and shows the predictions. Options are those of deploy/demo.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 make_images.py
exec ../../deploy/demo.sh --job examples/digits_images/job.yaml "$@"
