#!/usr/bin/env bash
# Makes the images, starts the daemon, learns them and shows the answer; options are those of deploy/demo.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 make_images.py
exec ../../deploy/demo.sh --job examples/digits_images/job.yaml "$@"
