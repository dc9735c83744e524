#!/usr/bin/env bash
# Makes a release: one archive that runs on a bare Debian 12, where only LibTorch's wheels have to be fetched.
#
#   deploy/package.sh [--output FILE] [--bin DIR]
#     --output  the archive (default: traind-linux-x86_64.tar.gz in the current folder)
#     --bin     take the programs from this folder, laid out like bazel-bin, instead of building them
#
# The archive holds the stripped programs (bin/), the distribution's libraries that they need (lib/) with the
# licences of those (licenses/), a list of all that is in it (sbom.spdx.json), the libraries of boosted trees (trees/), the Python package (python/), the documents, the
# examples, the files of containers and Kubernetes (deploy/) and get-libtorch.sh. A program looks for libraries in
# lib/ and libtorch/ beside its folder before it looks elsewhere.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/distribution_libraries.sh
source deploy/distribution_libraries.sh

say() { printf 'package: %s\n' "$*"; }
die() {
  printf 'package: error: %s\n' "$*" >&2
  exit 1
}

readonly name=traind-linux-x86_64
output=$caller/$name.tar.gz bin=""
while (($#)); do
  case $1 in
    --output | --bin) (($# >= 2)) || die "$1 needs a value" ;;&
    --output) output=$(cd "$caller" && realpath -m "$2"); shift ;;
    --bin) bin=$(cd "$caller" && realpath -m "$2"); shift ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1 (known: --output, --bin)" ;;
  esac
  shift
done
for tool in patchelf strip ldd; do
  command -v "$tool" >/dev/null || die "no $tool on PATH (deploy/setup.sh installs it)"
done

readonly programs=(server/traind worker/trainworker worker/trainprep worker/traintree worker/trainprog worker/trainrank client/trainctl)
readonly cuda_part=worker/device/libtraind_cuda.so
if [[ -z $bin ]]; then
  say "building"
  targets=()
  for file in "${programs[@]}" "$cuda_part"; do targets+=("//${file%/*}:${file##*/}"); done
  bazel build --noshow_progress "${targets[@]}" || die "the build failed"
  bin=$(bazel info bazel-bin 2>/dev/null)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$root"/{bin,lib,licenses}

# The wheels have them in these places: each finds its own libraries from its place.
readonly trees=.deps/trees
mkdir "$root/trees"
for file in lightgbm/lib/lib_lightgbm.so lightgbm/VERSION.txt xgboost/lib/libxgboost.so xgboost_cpu.libs; do
  [[ -r $trees/$file ]] || die "$trees/$file is missing (deploy/setup.sh installs it)"
  mkdir -p "$root/trees/$(dirname "$file")"
  cp -rL "$trees/$file" "$root/trees/$file"
done
for wheel in lightgbm xgboost_cpu; do
  find -L "$trees"/$wheel-*.dist-info -name 'LICENSE*' -exec cp {} "$root/licenses/$wheel" \;
done

for file in "${programs[@]}" "$cuda_part"; do
  [[ -r $bin/$file ]] || die "$bin/$file is missing"
  install -m 755 "$bin/$file" "$root/bin/"
  distribution_libraries "$bin/$file"
  distribution_libraries "$trees/lightgbm/lib/lib_lightgbm.so"
done | sort -u >"$work/libraries"
# shellcheck disable=SC2016  # the loader expands $ORIGIN
for file in "$root"/bin/*; do
  strip --strip-unneeded "$file"
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib:$ORIGIN/../libtorch/torch/lib:$ORIGIN/../libtorch/nvidia/cu13/lib:$ORIGIN/../libtorch/nvidia/nccl/lib' "$file"
done
while read -r library; do
  copy=$root/lib/${library##*/}
  install -m 644 "$(realpath "$library")" "$copy"
  # shellcheck disable=SC2016
  patchelf --force-rpath --set-rpath '$ORIGIN' "$copy"
  # dpkg may know the file below /usr/lib or below /lib, which is a link to it.
  package=$(dpkg -S "$(realpath "$library")" "/usr${library#/usr}" "${library#/usr}" 2>/dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -r /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$root/licenses/$package"
  fi
  printf '%s\n' "$package" >>"$work/packages"
done <"$work/libraries"

cp -r docs examples README.md "$root/"
find "$root/docs" "$root/examples" -name BUILD.bazel -delete
install -m 755 deploy/get-libtorch.sh "$root/"
mkdir "$root"/{deploy,python}
cp -r deploy/container deploy/kubernetes deploy/provision "$root/deploy/"
find "$root/deploy" \( -name BUILD.bazel -o -name __pycache__ \) -prune -exec rm -r {} +
(cd clients/python && python3 -B -c 'import sys, build_backend; build_backend.build_wheel(sys.argv[1])' "$root/python")
# The pins stand in one list; what torch's CPU part loads is a part of it.
grep -E '^(torch|nvidia-cuda-cupti|nvidia-cuda-runtime)==' third_party/requirements.txt >"$root/libtorch-cpu.txt"
sed -n '/^torch==/p; /^# what libtorch_cuda/,/^$/{/^nvidia/p}' third_party/requirements.txt >"$root/libtorch-cuda.txt"
deploy/sbom.py "$root" <"$work/packages" >"$root/sbom.spdx.json"

mkdir -p "$(dirname "$output")"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$output.new" "$name"
mv "$output.new" "$output"
say "$output: $(du -h "$output" | cut -f1), $(wc -l <"$work/libraries") libraries"
