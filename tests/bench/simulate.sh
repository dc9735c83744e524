#!/usr/bin/env bash
# simulate.sh [SEEDS] [FIRST]: runs the core under chance and faults in simulated
# time. Violations first, one a line; the last line is a JSON summary:
# seeds, violations, productive_ratio (see tests/simulation/checker.h).
# Exits 1 if the promise was broken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bazel build --noshow_progress --ui_event_filters=-info //tests/simulation:simulate >&2
exec "$(bazel info bazel-bin 2>/dev/null)/tests/simulation/simulate" \
  --seeds "${1:-10000}" --first "${2:-1}"
