#!/usr/bin/env bash
# Installs the plug-in with which traind reads Parquet tables: Apache Arrow, in an
# environment of its own, and a small program that makes CSV of a table. Nothing else of
# traind needs it.
#
#   deploy/parquet.sh [--prefix DIR]
#     --prefix  where to (default ~/.local/share/traind/parquet, where traind looks; elsewhere
#               set TRAIND_PARQUET=DIR/traind-parquet for traind)
set -euo pipefail
: "${HOME:=$(echo ~)}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$HOME/.local/share/traind/parquet
while (($#)); do
  case $1 in
    --prefix) (($# >= 2)) || { echo "parquet: error: --prefix needs a folder" >&2; exit 1; }
      prefix=$2; shift ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "parquet: error: unknown option $1 (known: --prefix)" >&2; exit 1 ;;
  esac
  shift
done

mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
"${PYTHON:-/usr/bin/python3}" -m venv "$prefix/venv"
"$prefix/venv/bin/pip" install --quiet --disable-pip-version-check 'pyarrow==26.0.1'
cp "$here/parquet_csv.py" "$prefix/parquet_csv.py"
# Last: where it is, all is.
cat >"$prefix/traind-parquet.new" <<END
#!/bin/sh
exec "$prefix/venv/bin/python" -I "$prefix/parquet_csv.py" "\$1"
END
chmod +x "$prefix/traind-parquet.new"
mv "$prefix/traind-parquet.new" "$prefix/traind-parquet"
echo "parquet: installed $prefix/traind-parquet"
