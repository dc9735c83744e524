#!/usr/bin/env bash
# decode.sh [OPTION...]: JPEG files decoded, beside Pillow; see decode.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //tests/bench:decode_bench >&2
exec python3 tests/bench/decode.py "$@"
