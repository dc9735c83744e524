#!/usr/bin/env bash
# Makes the archive of the C++ client library: headers, a static library, files for CMake and pkg-config, the .proto
# files, an example. docs/CPP.md tells how to use it.
#
#   deploy/client.sh [FILE]     the archive, by default traind-client-linux-x86_64.tar.gz in the current folder
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  -*) echo "client: error: unknown option $1" >&2; exit 2 ;;
esac
readonly name=traind-client-linux-x86_64.tar.gz
output=$(realpath -m "${1:-$name}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bazel build --noshow_progress //deploy/client
install -D -m 644 "$(bazel info bazel-bin 2>/dev/null)/deploy/client/$name" "$output"
echo "client: $output: $(du -h "$output" | cut -f1)"
