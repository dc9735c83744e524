#!/usr/bin/env bash
# Tests the page: its pure functions by node alone, and the page itself in headless Chromium against the real traind
# with real Jobs. The last line is 'N passed, N failed'; where something is missing, a line before it says what was
# skipped and how to get it. It takes five minutes on a busy machine with two cores.
#
#   tests/page/run.sh            all
#   tests/page/run.sh --unit     only what needs neither Chromium nor traind
#
# Environment:
#   TRAIND_BIN     the folder that holds server/traind and the other programs (default bazel-bin)
#   CHROMIUM       the browser (default /usr/bin/chromium)
#   PAGE_FILES     a folder whose files are shown instead of those in the program, such as page
#   DEPS_CACHE     where npm's packages are kept (default ~/.cache/traind-deps)
#   PAGE_PICTURES  a folder to which pictures of the pages are written
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skip() {
  printf 'page: skipped: %s\n' "$*"
  skipped=1
}
skipped=0
files=()
readonly chromium=${CHROMIUM:-/usr/bin/chromium} bin=${TRAIND_BIN:-bazel-bin}

# The page's files are modules named .js without a package of their own.
runs_modules() { node --experimental-default-type=module -e '' 2>/dev/null; }

# Outside the tree, as deploy/setup.sh keeps wheels: once for each version of the list, for all clones.
install_modules() {
  PAGE_MODULES=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/page-$(sha256sum <tests/page/package-lock.json | cut -c1-12)
  export PAGE_MODULES
  [[ -e $PAGE_MODULES/.complete ]] && return
  mkdir -p "$PAGE_MODULES" && cp tests/page/package.json tests/page/package-lock.json "$PAGE_MODULES" &&
    npm ci --prefix "$PAGE_MODULES" --no-audit --no-fund --loglevel=error >&2 && touch "$PAGE_MODULES/.complete"
}

if ! command -v node >/dev/null; then
  skip "node is not installed (apt-get install nodejs npm)"
elif ! runs_modules; then
  skip "node $(node --version) is too old: the tests of the page need 18.19 or later"
else
  files+=(tests/page/unit/*_test.mjs)
  if [[ ${1:-} == --unit ]]; then
    :
  elif [[ ! -x $chromium ]]; then
    skip "there is no browser at $chromium (apt-get install chromium, or set CHROMIUM)"
  elif ! node -e 'process.exit(parseInt(process.versions.node, 10) < 20 ? 1 : 0)'; then
    skip "node $(node --version) is too old: playwright-core needs 20 or later"
  elif [[ ! -x $bin/server/traind ]]; then
    skip "there is no $bin/server/traind (bazel build //server:traind //worker/... //client:trainctl)"
  elif ! install_modules; then
    skip "npm could not install playwright-core and axe-core; is there a network?"
  else
    files+=(tests/page/page_test.mjs)
  fi
fi

if ((${#files[@]} == 0)); then
  echo "0 passed, 0 failed"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
node --experimental-default-type=module --test --test-concurrency=1 --test-reporter=tap "${files[@]}" >"$log" 2>&1 || status=$?
grep -E '^ *not ok|^ *error:|^# (measured|Warning)' "$log" || true
count() { grep -E "^# $1 [0-9]+" "$log" | tail -1 | tr -dc 0-9; }
if [[ -z $(count pass) ]]; then
  cat "$log"
  exit 1
fi
if ((status)); then cat "$log"; fi
echo "$(count pass) passed, $(count fail) failed"
exit "$status"
