#!/usr/bin/env bash
# Tests the Python package beside the libraries that it uses where they are installed: pandas, scikit-learn's
# check_estimator, tqdm, matplotlib, TensorBoard, MLflow; the callbacks of traind_run in LightGBM and XGBoost; and the
# programs of the documents. It takes some minutes. Callbacks for larger libraries are tested where those are installed:
#   PYTHONPATH=. python3 clients/python/tests/run_libraries_test.py
# The last line is 'N passed, N failed'.
#
#   clients/python/tests/run.sh [CASE...]
#
# The programs of traind are those of $TRAIND_HOME, else bazel-bin. The libraries come from PyPI into an environment below
# ~/.cache/traind-deps, which $DEPS_CACHE moves. PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
readonly packages="pandas scikit-learn>=1.6 tqdm matplotlib tensorboard mlflow-skinny polars pyarrow lightgbm xgboost-cpu"
python=${PYTHON:-python3}
venv=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/python-client-$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")')
if [[ $(cat "$venv/.complete" 2>/dev/null) != "$packages" ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
  # shellcheck disable=SC2086  # a list
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
  echo "$packages" >"$venv/.complete"
fi
export TRAIND_HOME=${TRAIND_HOME:-$PWD/bazel-bin} PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
[[ -x $TRAIND_HOME/bin/traind || -x $TRAIND_HOME/server/traind ]] || {
  echo "run: error: no traind below $TRAIND_HOME; build it, or set TRAIND_HOME to a release" >&2
  exit 1
}
unset TRAIND_URL
passed=0 failed=0
for test in libraries docs estimators run_libraries; do
  out=$("$venv/bin/python" "clients/python/tests/${test}_test.py" "$@" | tee >(cat >&2) | tail -1) || true
  # A test that breaks off before its last line counts as one failure.
  if [[ $out =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2])) || true
  else
    ((failed += 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
