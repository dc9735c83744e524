#!/usr/bin/env bash
# run.sh [--data DIR]: the example from nothing to its predictions; see README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d /tmp/traind-reviews.XXXXXX)
if [[ ${1:-} == --data && -n ${2:-} ]]; then
  cp "$2/reviews_train.csv" "$2/reviews_test.csv" "$here/films.yaml" "$work"
  job=$work/films.yaml
else
  [[ $# == 0 ]] || { echo "usage: run.sh [--data DIR]" >&2; exit 2; }
  python3 "$here/make_data.py" --out "$work"
  cp "$here/job.yaml" "$work"
  job=$work/job.yaml
fi
exec "$here/../../deploy/demo.sh" --job "$job" --state "$work/state"
