#!/usr/bin/env bash
# run.sh [--data DIR] [OPTION...]: runs the example from its data to its predictions (README.md). Other options are
# those of deploy/demo.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d /tmp/traind-reviews.XXXXXX)
if [[ ${1:-} == --data ]]; then
  [[ -n ${2:-} ]] || { echo "run.sh: --data needs a value" >&2; exit 2; }
  cp "$2/reviews_train.csv" "$2/reviews_test.csv" "$here/films.yaml" "$work"
  job=$work/films.yaml
  shift 2
else
  python3 "$here/make_data.py" --out "$work"
  cp "$here/job.yaml" "$work"
  job=$work/job.yaml
fi
exec "$here/../../deploy/demo.sh" --job "$job" --state "$work/state" "$@"
