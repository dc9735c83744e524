#!/usr/bin/env bash
# Runs all GPU tests and benchmarks on a machine that has only an archive of this project and
# a folder with LibTorch.
#
#   tests/gpu/run.sh pack FILE            here: builds and packs everything into FILE (.tar.gz)
#   tests/gpu/run.sh [--devices GLOB] [LIBTORCH_LIB...]
#                                         there, in the unpacked archive: runs it
#
# LIBTORCH_LIB: folders with LibTorch 2.11 and the NVIDIA libraries that came with it
# (libtorch_cuda.so, libcudart.so.13, libnccl.so.2); without them LD_LIBRARY_PATH must name the
# folders. In the archive everything else is linked statically or, what trainrank alone needs, lies in
# lib/; except for the C library and the C++ run time: LibTorch shares the latter, because exceptions
# pass between the two.
# GLOB: the device files of GPUs, /dev/nvidia[0-9]* by default.
#
# Prints the programs' output, then a line PASS, FAIL or SKIP with a reason for each test, and writes
# the benchmarks' figures to figures.jsonl, a JSON object per line.
# Exits with 0 if nothing failed, with 1 if something failed, with 2 if it could not run. Without a
# GPU everything is skipped. With one, a test that never ran is a failure.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
programs=(cuda_test cuda_networks_test nccl_test gpu_bench trainrank libtraind_cuda.so)

# carried_libraries FILE: those that the archive has to hold.
carried_libraries() { distribution_libraries "$1" | grep -Ev '/lib(stdc\+\+|gcc_s)\.so' || true; }

pack() {
  local file static target bin
  file="$(realpath -m "$1")"
  cd "$here/../.."
  source deploy/distribution_libraries.sh
  static="$(mktemp -d)"
  # This folder has only static libraries, so the linker cannot choose shared ones.
  local from; from="$(dirname "$(gcc -print-file-name=libabsl_base.a)")"
  ln -s "$from"/libabsl_*.a "$from"/libcrypto.a "$from"/libgtest*.a "$from"/libgmock*.a "$static"
  local targets=(//tests/worker/device:cuda_test //tests/worker/device:cuda_networks_test //tests/gpu:nccl_test
                 //tests/gpu:gpu_bench //worker:trainrank
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
  mkdir "$folder/lib"
  carried_libraries "$folder/trainrank" | while read -r library; do
    install -m 644 "$(realpath "$library")" "$folder/lib/${library##*/}"
    patchelf --force-rpath --set-rpath '$ORIGIN' "$folder/lib/${library##*/}"
  done
  patchelf --force-rpath --add-rpath '$ORIGIN/lib' "$folder/trainrank"
  local lacking
  for target in "$folder"/*; do
    [ -f "$target" ] || continue
    lacking="$(carried_libraries "$target")"
    [ -z "$lacking" ] || { echo "${target##*/} needs what the archive lacks: $lacking" >&2; exit 1; }
  done
  install -m 755 "$here/run.sh" "$folder/"
  tar -C "$static" -czf "$file" traind-gpu
  rm -r "$static"
  ls -l "$file"
}

# row VERDICT PROGRAM TEST REASON: adds a line to the table.
row() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$rows"; }

# run_tests PROGRAM: a GoogleTest program. A test that began and did not end crashed.
run_tests() {
  local code=0
  "./$1" --gtest_color=no 2>&1 | tee "$log" || code="${PIPESTATUS[0]}"
  awk -v program="$1" -v code="$code" -v OFS='\t' '
    /^\[ RUN      \] / { test = $4; reason = ""; tests++; next }
    /^\[       OK \] / && test != "" { print "PASS", program, test, ""; test = ""; next }
    /^\[  SKIPPED \] / && test != "" { print "SKIP", program, test, reason; test = ""; next }
    /^\[  FAILED  \] / && test != "" { print "FAIL", program, test, reason; failed++; test = ""; next }
    test != "" && NF > 0 && !/: (Skipped|Failure)$/ && (reason == "" || /^unknown file/) { reason = $0 }
    END {
      if (test != "") { print "FAIL", program, test, "ended with code " code; failed++ }
      else if (tests == 0) { print "FAIL", program, "-", "ran no test"; failed++ }
      if (code != 0 && failed == 0) print "FAIL", program, "-", "ended with code " code
    }' "$log" >>"$rows"
}

# Checks that trainrank starts on this machine and can use the GPU.
run_check() {
  local code=0
  CUDA_VISIBLE_DEVICES=0 ./trainrank check-device </dev/null >"$log" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then row PASS trainrank check-device ""; return; fi
  row FAIL trainrank check-device "$(tail -n 1 "$log") (code $code)"
}

run_bench() {
  local code=0
  ./gpu_bench 2>&1 | tee "$log" || code="${PIPESTATUS[0]}"
  grep '^{' "$log" >figures.jsonl || true
  if [ "$code" -ne 0 ] || [ ! -s figures.jsonl ]; then
    row FAIL gpu_bench figures "$(grep -v '^{' "$log" | tail -n 1) (code $code)"
    return
  fi
  row PASS gpu_bench figures "$(wc -l <figures.jsonl) lines in figures.jsonl"
}

# Prints the table. Returns 1 if something failed or, with a GPU, nothing passed.
print_table() {
  local verdict program test reason
  echo
  while IFS=$'\t' read -r verdict program test reason; do
    printf '%-4s  %-18s  %-66s  %s\n' "$verdict" "$program" "$test" "$reason"
  done <"$rows"
  local verdicts=" $(cut -f 1 "$rows" | sort -u | tr '\n' ' ')"
  case "$verdicts" in *' FAIL '*) return 1 ;; esac
  case "$1$verdicts" in gpu*' PASS '* | none*) return 0 ;; esac
  return 1
}

run() {
  local devices='/dev/nvidia[0-9]*' folder
  if [ "${1:-}" = --devices ]; then devices="$2"; shift 2; fi
  for folder in "$@"; do LD_LIBRARY_PATH="$(realpath "$folder")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; done
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
  cd "$here"
  local program
  for program in "${programs[@]}"; do
    [ -e "$program" ] || { echo "$here has no $program: unpack an archive of 'run.sh pack'" >&2; exit 2; }
  done
  local scratch; scratch="$(mktemp -d)"
  trap "rm -r '$scratch'" EXIT
  rows="$scratch/rows" log="$scratch/log"
  if ! compgen -G "$devices" >/dev/null; then
    for program in trainrank cuda_test cuda_networks_test nccl_test gpu_bench; do row SKIP "$program" - "no GPU here"; done
    print_table none
    return
  fi
  local missing; missing="$(ldd ./cuda_test ./libtraind_cuda.so 2>/dev/null | grep 'not found' || true)"
  [ -z "$missing" ] || { echo "these come with LibTorch, name their folders: $missing" >&2; exit 2; }
  # One test looks for the library in its place in a build.
  mkdir -p worker/device && ln -sf ../../libtraind_cuda.so worker/device/libtraind_cuda.so
  run_check
  run_tests cuda_test
  run_tests cuda_networks_test
  run_tests nccl_test
  run_bench
  print_table gpu
}

case "${1:-}" in
  pack) [ $# -eq 2 ] || { echo "usage: run.sh pack FILE" >&2; exit 2; }; pack "$2" ;;
  *) run "$@" ;;
esac
