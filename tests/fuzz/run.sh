#!/usr/bin/env bash
# Looks for inputs that break a parser: builds the fuzz targets with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs each for a while, from its corpus on.
#
#   tests/fuzz/run.sh [--seconds 60] [TARGET...]     such as words_fuzz; none: all of them
#
# Prints a line for each target, {"target": ..., "runs": ..., "seconds": ..., "findings": ...} or
# {"target": ..., "built": false}, and at last
# {"targets": N, "findings": N}. Inputs that break one are kept in the folder that FUZZ_FINDINGS names
# (fuzz-findings if unset). Exit 1 if there are findings or a target does not build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=60
wanted=()
while (($#)); do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    -*) echo "usage: tests/fuzz/run.sh [--seconds 60] [TARGET...]" >&2; exit 2 ;;
    *) wanted+=("$1"); shift ;;
  esac
done

runtime=$(clang-14 -print-file-name=libclang_rt.fuzzer-x86_64.a 2>/dev/null || true)
if [[ ! -e $runtime ]] || ! command -v ld.lld-14 >/dev/null; then
  echo "skipped: libFuzzer is missing; install the packages clang-14, libclang-rt-14-dev and lld-14"
  exit 0
fi

# An output folder of its own: another compiler would make Bazel analyse everything anew in both builds.
readonly bazel=(nice bazel "--output_base=${FUZZ_OUTPUT_BASE:-$HOME/.cache/traind-fuzz}")
readonly quiet=(--color=no --curses=no --noshow_progress)
# Without links in the tree: bazel-bin stays that of the ordinary build.
trap '"${bazel[@]}" shutdown >/dev/null 2>&1 || true' EXIT
readonly all='attr(tags, "\bfuzz\b", //tests/...) except attr(tags, replay_only, //tests/...)'
mapfile -t targets < <("${bazel[@]}" query "$all" "${quiet[@]}" 2>/dev/null |
  sort | { if ((${#wanted[@]})); then grep -E ":($(IFS='|'; echo "${wanted[*]}"))\$"; else cat; fi; })
if ((${#targets[@]} == 0)); then
  echo "there is no such target" >&2
  exit 2
fi
built=yes
"${bazel[@]}" build --config=fuzz --symlink_prefix=/ --keep_going "${quiet[@]}" "${targets[@]}" >&2 || built=no
binaries=$("${bazel[@]}" info --config=fuzz bazel-bin "${quiet[@]}" 2>/dev/null)

findings_dir=$(realpath -m "${FUZZ_FINDINGS:-fuzz-findings}")
mkdir -p "$findings_dir"
total=0 copied=0
for target in "${targets[@]}"; do
  path=${target#//}
  name=${target##*:}
  if [[ ! -x $binaries/${path/:/\/} ]]; then
    printf '{"target": "%s", "built": false}\n' "$name"
    continue
  fi
  work=$(mktemp -d)
  while read -r file; do
    file=${file#//}
    cp "${file/:/\/}" "$work/$(basename "$file").$((++copied))"
  done < <("${bazel[@]}" query "labels(data, $target)" "${quiet[@]}" 2>/dev/null)
  before=$(find "$findings_dir" -name "$name-*" | wc -l)
  began=$SECONDS
  nice "$binaries/${path/:/\/}" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2560 \
    -print_final_stats=1 -artifact_prefix="$findings_dir/$name-" "$work" >"$findings_dir/$name.log" 2>&1 || true
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$findings_dir/$name.log")
  # A target that has ended early printed only how far it was.
  runs=${runs:-$(grep -oE '^#[0-9]+' "$findings_dir/$name.log" | tail -1 | tr -d '#')}
  found=$(($(find "$findings_dir" -name "$name-*" | wc -l) - before))
  total=$((total + found))
  printf '{"target": "%s", "runs": %d, "seconds": %d, "findings": %d}\n' \
    "$name" "${runs:-0}" $((SECONDS - began)) "$found"
  rm -rf "$work"
done
printf '{"targets": %d, "findings": %d}\n' "${#targets[@]}" "$total"
[[ $built == yes && $total == 0 ]]
