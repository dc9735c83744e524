#!/usr/bin/env bash
# Changes one line of the product after the other, each a bug of its own, and has the
# tests that should notice it run: what they do not notice survives.
#
#   tests/mutation/run.sh [--check] [--tree FOLDER] [--mutants FILE] [--table FILE] [NAME...]
#     --check    only looks whether each mutant's old text is there, once
#     --tree     works in this folder and leaves it there: the next run is quicker
#     --mutants  instead of tests/mutation/mutants.ini
#     --table    writes the table of results into FILE, in place of the one in it
#     NAME       only these mutants
#
# It works in a copy of the tree; yours is only read. It prints one JSON line for each mutant,
# {"mutant": ..., "caught_by": ...}, and at last {"mutants": N, "survived": N}. Exits 1 if one
# survived, 2 if one could not be tried.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec env PYTHONDONTWRITEBYTECODE=1 python3 tests/mutation/mutation.py "$@"
