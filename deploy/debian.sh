#!/usr/bin/env bash
# Makes a Debian package of a release: /usr/lib/traind has its files, /usr/bin has links to the programs, and systemd has
# the units of deploy/systemd.
#
#   deploy/debian.sh [--release DIR] [--output FILE] [--level N]
#     --release  a release that is unpacked already (default: deploy/package.sh makes one)
#     --output   the package (default: traind_VERSION_amd64.deb in the current folder)
#     --level    how much it is compressed, from 0 to 9 (default: 6)
#
# Tools: dpkg-deb, and those of deploy/package.sh where it runs.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'debian: %s\n' "$*"; }
die() {
  printf 'debian: error: %s\n' "$*" >&2
  exit 1
}

version=$(sed -n 's/.*kClientVersion\[\] = "\(.*\)";/\1/p' client/version.h)
level=6 release="" output=$caller/traind_${version}_amd64.deb
while (($#)); do
  case $1 in
    --release | --output | --level) (($# >= 2)) || die "$1 needs a value" ;;&
    --release) release=$(cd "$caller" && realpath -m "$2"); shift ;;
    --output) output=$(cd "$caller" && realpath -m "$2"); shift ;;
    --level) level=$2; shift ;;
    -h | --help) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1 (known: --release, --output, --level)" ;;
  esac
  shift
done
command -v dpkg-deb >/dev/null || die "no dpkg-deb on PATH (package dpkg)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $release ]]; then
  deploy/package.sh --output "$work/release.tar.gz"
  tar -C "$work" -xzf "$work/release.tar.gz"
  release=$work/traind-linux-x86_64
fi
[[ -x $release/bin/traind ]] || die "$release has no bin/traind"

umask 022
root=$work/root lib=$work/root/usr/lib/traind
mkdir -p "$lib" "$root"/usr/{bin,lib/systemd/system,lib/sysusers.d,share/doc/traind} "$root"/etc/default "$root"/DEBIAN
cp -r "$release"/{bin,lib,trees,get-libtorch.sh,libtorch-cpu.txt,libtorch-cuda.txt} "$lib/"
for program in traind trainctl trainworker; do ln -s "../lib/traind/bin/$program" "$root/usr/bin/$program"; done

cp deploy/systemd/{traind,trainworker}.service "$root/usr/lib/systemd/system/"
cp deploy/systemd/traind.sysusers "$root/usr/lib/sysusers.d/traind.conf"
for name in traind trainworker; do cp "deploy/systemd/$name.default" "$root/etc/default/$name"; done

doc=$root/usr/share/doc/traind
cp -r "$release"/{docs/.,examples,licenses,README.md} "$doc/"
cat deploy/debian/copyright >"$doc/copyright"
# The time of the commit makes the package the same, whenever it is built.
date=$(git log -1 --format=%cD 2>/dev/null || date -R)
{
  printf 'traind (%s) stable; urgency=medium\n\n  * The documents tell what this version does.\n\n' "$version"
  printf ' -- The authors of traind <traind@localhost>  %s\n' "$date"
} | gzip -9n >"$doc/changelog.gz"

for script in postinst prerm postrm; do install -m 755 "deploy/debian/$script" "$root/DEBIAN/"; done
printf '/etc/default/%s\n' traind trainworker >"$root/DEBIAN/conffiles"
sed -e "s/@VERSION@/$version/" -e "s/@KIB@/$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)/" \
  deploy/debian/control >"$root/DEBIAN/control"
install -Dm 644 deploy/debian/lintian-overrides "$root/usr/share/lintian/overrides/traind"
find "$doc" -name .gitignore -delete
chmod -R u=rwX,go=rX "$root"
find "$lib/trees" -name '*.so*' -exec chmod 644 {} +
(cd "$root" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

mkdir -p "$(dirname "$output")"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s) dpkg-deb --root-owner-group -Zgzip "-z$level" --build "$root" "$output.new" >/dev/null
mv "$output.new" "$output"
say "$output: $(du -h "$output" | cut -f1)"
