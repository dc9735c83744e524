#!/usr/bin/env bash
# spec_reference_test.sh GENERATOR DESCRIPTORS REFERENCE
set -euo pipefail
if ! diff -u "$3" <("$1" "$2"); then
  echo "docs/SPEC.md is not up to date: bazel run //common/spec:spec_doc_main >docs/SPEC.md" >&2
  exit 1
fi
