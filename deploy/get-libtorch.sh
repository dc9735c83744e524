#!/usr/bin/env bash
# Gives the programs of this release the LibTorch that they were built with, in the folder libtorch/ beside them.
#
#   ./get-libtorch.sh [--cuda] [--libtorch DIR]
#     --cuda      also what LibTorch loads for NVIDIA GPUs (2.4 GB to download instead of 0.6)
#     --libtorch  link to a folder that has it instead of downloading: one into which pip installed the wheels of
#                 libtorch-cpu.txt, so that DIR/torch/lib/libtorch_cpu.so exists
#
# Downloading takes Python 3 with pip (Debian: python3-pip) and pip's settings, such as a mirror's address.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=$here/libtorch

die() {
  printf 'get-libtorch: error: %s\n' "$*" >&2
  exit 1
}

list=$here/libtorch-cpu.txt folder=""
while (($#)); do
  case $1 in
    --cuda) list=$here/libtorch-cuda.txt ;;
    --libtorch) (($# >= 2)) || die "--libtorch needs a folder"; folder=$2; shift ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1 (known: --cuda, --libtorch)" ;;
  esac
  shift
done

if [[ -n $folder ]]; then
  [[ -r $folder/torch/lib/libtorch_cpu.so ]] || die "$folder has no torch/lib/libtorch_cpu.so"
  wanted=$(sed -n 's/^torch==//p' "$list")
  [[ -d $folder/torch-$wanted.dist-info ]] || die "$folder does not hold torch $wanted, with which this release was built"
  rm -rf "$target"
  ln -s "$(cd "$folder" && pwd)" "$target"
else
  python3 -m pip --version >/dev/null 2>&1 ||
    die "no python3 with pip to download with: install python3-pip, or pass --libtorch DIR"
  rm -rf "$target" "$target.new"
  # The C++ libraries in the wheels are the same for every version of Python.
  python3 -m pip install --target "$target.new" --no-deps --only-binary :all: --no-compile --no-cache-dir \
    --disable-pip-version-check --quiet -r "$list" || die "pip could not install the wheels (its own message is above)"
  mv "$target.new" "$target" # last: where the folder is, everything is in it
fi
missing=$(ldd "$here"/bin/trainrank | grep 'not found' || true)
[[ -z $missing ]] || die "trainrank still lacks libraries: $missing"
echo "get-libtorch: $target is ready"
