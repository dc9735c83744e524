#!/usr/bin/env bash
# Installs what the build needs: the distribution's packages listed in
# third_party/apt-packages.txt, each at least in the version named there, and the
# wheels pinned in third_party/requirements.txt and third_party/tree-requirements.txt.
# Run it again at any time: what is there already is left alone.
#
#   deploy/setup.sh [--skip-apt] [--check]
#     --skip-apt  only the wheels; for other systems, and without root
#     --check     install nothing; exit 1 if something is missing
#
# Environment:
#   DEPS_CACHE  where wheel environments are kept, one for each version of the
#               pinned list, shared by all clones (default ~/.cache/traind-deps)
#   DEPS_VENV   use this environment as it is and install no wheels of requirements.txt
#   DEPS_TREES  use this folder as it is and install no wheels of tree-requirements.txt
#   PYTHON      the interpreter for the environment (default /usr/bin/python3)
set -euo pipefail
: "${HOME:=$(echo ~)}"
export HOME
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly known_systems="Debian 12 (bookworm) on x86_64"
readonly wheels_need_gb=7

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 1
}

apt=1 check=0 changed=0
for arg in "$@"; do
  case $arg in
    --skip-apt) apt=0 ;;
    --check) check=1 ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $arg (known: --skip-apt, --check)" ;;
  esac
done

check_system() {
  # Assigned by the file, or by nobody.
  local ID="" VERSION_ID="" PRETTY_NAME=""
  # shellcheck source=/dev/null
  if [[ -r /etc/os-release ]]; then . /etc/os-release; fi
  [[ "$ID $VERSION_ID $(uname -m)" == "debian 12 x86_64" ]] && return
  local name=${PRETTY_NAME:-${ID:-an unknown system}}
  die "this is $name on $(uname -m); known: $known_systems." \
    "Elsewhere, install the equivalents of third_party/apt-packages.txt by hand," \
    "then run deploy/setup.sh --skip-apt."
}

# Sets missing (names) and outdated ("name version < minimum") from
# third_party/apt-packages.txt.
inspect_packages() {
  local -A installed=()
  local name version minimum state
  missing=() outdated=()
  # A package that dpkg does not know prints nothing.
  while read -r state name version; do
    if [[ $state == installed ]]; then installed[$name]=$version; fi
  done < <(dpkg-query -W -f='${db:Status-Status} ${Package} ${Version}\n' "${!wanted[@]}" 2>/dev/null)
  for name in "${!wanted[@]}"; do
    minimum=${wanted[$name]}
    version=${installed[$name]:-}
    if [[ -z $version ]]; then
      missing+=("$name")
    elif [[ -n $minimum ]] && ! dpkg --compare-versions "$version" ge "$minimum"; then
      outdated+=("$name $version < $minimum")
    fi
  done
}

install_packages() {
  local -A wanted=()
  local line name missing outdated listed
  while read -r line; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    [[ -n $line ]] || continue
    name=${line%%>=*}
    wanted[$name]=${line#"$name"}
    wanted[$name]=${wanted[$name]#>=}
  done < third_party/apt-packages.txt

  inspect_packages
  if ((${#missing[@]} == 0 && ${#outdated[@]} == 0)); then
    say "packages: all ${#wanted[@]} are installed"
    return
  fi
  listed=$(printf '%s\n' ${missing[@]+"${missing[@]}"} "${outdated[@]%% *}" | sort | xargs)
  ((check)) && die "packages missing or too old: $listed"
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages missing or too old: $listed." \
      "Run as root, or install sudo, or let an administrator install them."
    sudo=(sudo)
  fi
  say "packages: installing $listed"
  "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=600 update -qq ||
    die "apt-get update failed: is there a network, and does /etc/apt name a Debian mirror?"
  # shellcheck disable=SC2086  # names have no blanks
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
    install -y -qq --no-install-recommends $listed ||
    die "apt-get could not install: $listed (its own message is above; without a network it cannot)"
  inspect_packages
  ((${#missing[@]} == 0)) || die "still missing after apt-get: ${missing[*]}"
  ((${#outdated[@]} == 0)) || die "too old in this release: ${outdated[*]}"
  changed=1
}

install_wheels() {
  if [[ -n ${DEPS_VENV:-} ]]; then
    [[ -d $DEPS_VENV/lib ]] || die "DEPS_VENV=$DEPS_VENV is no environment"
    link venv "$(realpath "$DEPS_VENV")"
    say "wheels: using $DEPS_VENV as it is"
    return
  fi
  local python=${PYTHON:-/usr/bin/python3} key venv
  [[ -x $(command -v "$python") ]] || die "no $python (package python3)"
  key=$({
    cat third_party/requirements.txt
    readlink -f "$python"
  } | sha256sum | cut -c1-12)
  venv=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/venv-$key
  if [[ ! -e $venv/.complete ]]; then
    ((check)) && die "wheels missing: $venv"
    mkdir -p "$(dirname "$venv")" || die "cannot write $(dirname "$venv"); set DEPS_CACHE"
    exec 9>"$venv.lock"
    flock 9
  fi
  if [[ ! -e $venv/.complete ]]; then # still, now that no one else installs it
    local free
    free=$(df --output=avail -BG "$(dirname "$venv")" | tail -1 | tr -dc 0-9)
    ((free >= wheels_need_gb)) ||
      die "only $free GB free at $(dirname "$venv"); the wheels need $wheels_need_gb while they install"
    say "wheels: installing $(grep -c '^[^#]' third_party/requirements.txt) into $venv" \
      "(2.4 GB to download, 4.2 GB on disk)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || die "no environment at $venv (package python3-venv)"
    "$venv/bin/python" -m pip install --no-deps --only-binary :all: --no-compile \
      --no-cache-dir --disable-pip-version-check --quiet -r third_party/requirements.txt ||
      die "pip could not install the wheels (its own message is above): is there a network?"
    touch "$venv/.complete"
  fi
  link venv "$venv"
  say "wheels: $venv"
}

# The libraries of boosted trees have a folder of their own: a new version of one costs 10 MB, not LibTorch's 2.4 GB.
install_trees() {
  local list=third_party/tree-requirements.txt key trees
  if [[ -n ${DEPS_TREES:-} ]]; then
    [[ -d $DEPS_TREES/lightgbm/lib ]] || die "DEPS_TREES=$DEPS_TREES has no lightgbm/lib"
    link trees "$(realpath "$DEPS_TREES")"
    say "trees: using $DEPS_TREES as it is"
    return
  fi
  key=$(sha256sum <"$list" | cut -c1-12)
  trees=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/trees-$key
  if [[ ! -e $trees/.complete ]]; then
    ((check)) && die "wheels missing: $trees"
    mkdir -p "$(dirname "$trees")" || die "cannot write $(dirname "$trees"); set DEPS_CACHE"
    exec 9>"$trees.lock"
    flock 9
  fi
  if [[ ! -e $trees/.complete ]]; then # still, now that no one else installs it
    say "trees: installing $(grep -c '^[^#]' "$list") into $trees (10 MB to download, 40 MB on disk)"
    rm -rf "$trees"
    # The libraries in the wheels are the same for every version of Python.
    .deps/venv/bin/python -m pip install --target "$trees" --no-deps --only-binary :all: --no-compile \
      --no-cache-dir --disable-pip-version-check --quiet -r "$list" ||
      die "pip could not install the wheels (its own message is above): is there a network?"
    touch "$trees/.complete"
  fi
  link trees "$trees"
  say "trees: $trees"
}

# Points .deps/$1 at $2.
link() {
  [[ $(readlink ".deps/$1" || true) == "$2" ]] && return
  ((check)) && die ".deps/$1 does not point at $2"
  mkdir -p .deps
  ln -sfn "$2" ".deps/$1"
  changed=1
}

if ((apt)); then
  check_system
  install_packages
else
  say "packages: skipped"
fi
install_wheels
install_trees
command -v bazel >/dev/null || die "no bazel on PATH (package bazel-bootstrap)"
# A running server would go on with the old libraries.
if ((changed)); then bazel shutdown; fi
say "done"
