#!/usr/bin/env bash
# Builds a web site of the documents (mkdocs.yml) with mkdocs-material. Links and headings that do not exist are errors.
# Where mkdocs-material is not installed it says so and builds nothing.
#
#   deploy/docs_site.sh [DIR]     the folder of the site, by default ./site
#
# Environment:
#   PYTHON      the interpreter that has mkdocs-material (pip install mkdocs-material), by default python3
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  -*) echo "docs_site: error: unknown option $1" >&2; exit 2 ;;
esac
site=$(realpath -m "${1:-site}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly python=${PYTHON:-python3}
if ! "$python" -c 'import material, mkdocs' 2>/dev/null; then
  echo "docs_site: skipped: $python has no mkdocs-material (pip install mkdocs-material, or set PYTHON)"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The documents and the files that they link to, at their paths, so that links stay as they are.
mkdir "$work/documents"
python3 tests/structure/documents.py --files | xargs -d '\n' cp -L --parents -t "$work/documents"
cp mkdocs.yml "$work"
"$python" -m mkdocs build --quiet --strict --config-file "$work/mkdocs.yml" --site-dir "$site"
echo "docs_site: the site is in $site; python3 -m http.server --directory $site shows it"
