#!/usr/bin/env bash
# Runs all GPU tests and benchmarks on a machine that has only an archive of this project and
# a folder with LibTorch.
#
#   tests/gpu/run.sh pack FILE            here: builds and packs everything into FILE (.tar.gz)
#   tests/gpu/run.sh [LIBTORCH_LIB...]    there, in the unpacked archive: runs it
#
# LIBTORCH_LIB: folders with LibTorch 2.11 and the NVIDIA libraries that came with it
# (libtorch_cuda.so, libcudart.so.13, libnccl.so.2); without them LD_LIBRARY_PATH must name the
# folders. In the archive everything else is linked statically, except for the C library and the
# C++ run time: LibTorch shares the latter, because exceptions pass between the two.
# Without a GPU the script says so and exits with 0.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
programs=(cuda_test nccl_test gpu_bench trainrank libtraind_cuda.so)

pack() {
  local file static target bin
  file="$(realpath -m "$1")"
  cd "$here/../.."
  static="$(mktemp -d)"
  # This folder has only static libraries, so the linker cannot choose shared ones.
  local from; from="$(dirname "$(gcc -print-file-name=libabsl_base.a)")"
  ln -s "$from"/libabsl_*.a "$from"/libcrypto.a "$from"/libgtest*.a "$from"/libgmock*.a "$static"
  local targets=(//tests/worker/device:cuda_test //tests/gpu:nccl_test //tests/gpu:gpu_bench //worker:trainrank
                 //worker/device:libtraind_cuda.so)
  bazel build --noshow_progress --linkopt="-L$static" "${targets[@]}" >&2
  bin="$(bazel info bazel-bin 2>/dev/null)"
  local folder="$static/traind-gpu"
  mkdir "$folder"
  for target in "${targets[@]}"; do
    target="${target#//}"
    install -m 755 "$bin/${target/://}" "$folder/"
  done
  strip --strip-unneeded "$folder"/*
  install -m 755 "$here/run.sh" "$folder/"
  tar -C "$static" -czf "$file" traind-gpu
  rm -r "$static"
  ls -l "$file"
}

run() {
  local folder
  for folder in "$@"; do LD_LIBRARY_PATH="$(realpath "$folder")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; done
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
  cd "$here"
  local program
  for program in "${programs[@]}"; do
    [ -e "$program" ] || { echo "$here has no $program: unpack an archive of 'run.sh pack'" >&2; exit 2; }
  done
  if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    echo "SKIPPED: no GPU here"
    exit 0
  fi
  local missing; missing="$(ldd ./cuda_test ./libtraind_cuda.so | grep 'not found' || true)"
  [ -z "$missing" ] || { echo "these come with LibTorch, name their folders: $missing" >&2; exit 2; }
  local says; says="$(./gpu_bench 1 1)"
  case "$says" in skipped:*) echo "SKIPPED: no GPU here: ${says#skipped: }"; exit 0 ;; esac
  # One test looks for the library in its place in a build.
  mkdir -p worker/device && ln -sf ../../libtraind_cuda.so worker/device/libtraind_cuda.so
  local failed=0
  CUDA_VISIBLE_DEVICES=0 ./trainrank </dev/null >/dev/null || failed=1  # checks that trainrank starts on this machine
  ./cuda_test || failed=1
  ./nccl_test || failed=1
  ./gpu_bench || failed=1
  return "$failed"
}

case "${1:-}" in
  pack) [ $# -eq 2 ] || { echo "usage: run.sh pack FILE" >&2; exit 2; }; pack "$2" ;;
  *) run "$@" ;;
esac
