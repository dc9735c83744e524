#!/usr/bin/env bash
# Installs what the build needs: the distribution's packages listed in
# third_party/apt-packages.txt and the wheels pinned in
# third_party/requirements.txt. Run it again at any time: what is there already
# is left alone.
#
#   ./setup.sh [--skip-apt] [--check]
#     --skip-apt  only the wheels (no root needed)
#     --check     install nothing; exit 1 if something is missing
#
# Environment:
#   DEPS_CACHE  where wheel environments are kept, one for each version of the
#               pinned list, shared by all clones (default ~/.cache/traind-deps)
#   DEPS_VENV   use this environment as it is and install no wheels
#   PYTHON      the interpreter for the environment (default /usr/bin/python3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

apt=1 check=0 changed=0
for arg in "$@"; do
  case $arg in
    --skip-apt) apt=0 ;;
    --check) check=1 ;;
    *) die "unknown option $arg (known: --skip-apt, --check)" ;;
  esac
done

install_packages() {
  local id="unknown" like="" missing=() wanted=()
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release; echo "${ID:-unknown}")
    like=$(. /etc/os-release; echo "${ID_LIKE:-}")
  fi
  case " $id $like " in
    *" debian "*|*" ubuntu "*) ;;
    *) die "this is '$id'; only Debian and Ubuntu are known here. Install the equivalents of third_party/apt-packages.txt by hand, then run ./setup.sh --skip-apt." ;;
  esac
  [[ $(uname -m) == x86_64 ]] || die "the wheels are pinned for x86_64, this is $(uname -m)"

  mapfile -t wanted < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' third_party/apt-packages.txt)
  # A package that dpkg does not know prints nothing.
  mapfile -t missing < <(comm -23 \
    <(printf '%s\n' "${wanted[@]}" | sort -u) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null \
        | sed -n 's/^installed //p' | sort -u))
  if ((${#missing[@]} == 0)); then
    say "packages: all ${#wanted[@]} are installed"
    return
  fi
  ((check)) && die "packages missing: ${missing[*]}"
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages missing: ${missing[*]}. Run as root, or install sudo."
    sudo=(sudo)
  fi
  say "packages: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
  changed=1
}

install_wheels() {
  if [[ -n ${DEPS_VENV:-} ]]; then
    [[ -d $DEPS_VENV/lib ]] || die "DEPS_VENV=$DEPS_VENV is no environment"
    link_venv "$(realpath "$DEPS_VENV")"
    say "wheels: using $DEPS_VENV as it is"
    return
  fi
  local python=${PYTHON:-/usr/bin/python3} key venv
  [[ -x $(command -v "$python") ]] || die "no $python (package python3)"
  key=$( { cat third_party/requirements.txt
           readlink -f "$python"; } | sha256sum | cut -c1-12)
  venv=${DEPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind-deps}/venv-$key
  if [[ ! -e $venv/.complete ]]; then
    ((check)) && die "wheels missing: $venv"
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock"
    flock 9
  fi
  if [[ ! -e $venv/.complete ]]; then  # still, now that no one else installs it
    local free
    free=$(df --output=avail -BG "$(dirname "$venv")" | tail -1 | tr -dc 0-9)
    ((free >= 7)) || die "only $free GB free at $(dirname "$venv"); the wheels need 5"
    say "wheels: installing into $venv (2.4 GB to download, 4.2 GB on disk)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --no-deps --only-binary :all: --no-compile \
      --no-cache-dir --disable-pip-version-check --quiet -r third_party/requirements.txt
    touch "$venv/.complete"
  fi
  link_venv "$venv"
  say "wheels: $venv"
}

link_venv() {
  mkdir -p .deps
  [[ $(readlink .deps/venv || true) == "$1" ]] && return
  ln -sfn "$1" .deps/venv
  changed=1
}

if ((apt)); then install_packages; else say "packages: skipped"; fi
install_wheels
command -v bazel >/dev/null || die "no bazel on PATH (package bazel-bootstrap)"
# A running server would go on with the old libraries.
((changed)) && bazel shutdown
say "done; next: bazel test //..."
