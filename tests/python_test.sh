#!/usr/bin/env bash
# Runs a Python test (standard library only) under Bazel or by hand:
#   python_test.sh tests/structure/include_graph_test.py [ARGUMENT...]
set -euo pipefail
if [[ -n ${TEST_SRCDIR:-} ]]; then cd "$TEST_SRCDIR/${TEST_WORKSPACE:-traind}"; fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
script=$1
shift
# From the workspace root, so that a test imports tests.cases and its neighbours.
exec env PYTHONPATH="$PWD" python3 "$script" "$@"
