#!/usr/bin/env python3
"""Writes what a release is made of, as SPDX 2.3 in JSON: deploy/package.sh calls it.

    sbom.py RELEASE < PACKAGES

RELEASE is the unpacked release. PACKAGES has a line per package of the distribution whose library is in it. Packages
that were linked into programs are among those of third_party/apt-packages.txt.
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(HERE)


def versions(names):
    """{package of the distribution: its version} of those that are installed."""
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *sorted(names)], capture_output=True,
                            text=True).stdout
    return dict(line.split(" ", 1) for line in listed.splitlines() if line.count(" ") == 1)


def built_with():
    with open(os.path.join(ROOT, "third_party/apt-packages.txt")) as f:
        names = [re.split(r"[>=\s]", line, maxsplit=1)[0] for line in f if line.strip() and not line.startswith("#")]
    return [name for name in names if name.endswith("-dev")]


def wheels(release):
    """(name, version, why) of what comes from the Python index: in the release, or fetched for it."""
    for folder in sorted(glob.glob(os.path.join(ROOT, ".deps/trees/*.dist-info"))):
        name, version = os.path.basename(folder)[:-len(".dist-info")].split("-", 1)
        if name in ("lightgbm", "xgboost_cpu"):
            yield name.replace("_", "-"), version, "CONTAINS"
    with open(os.path.join(release, "libtorch-cpu.txt")) as cpu, open(os.path.join(release, "libtorch-cuda.txt")) as gpu:
        for pin in sorted(set(cpu.read().split()) | set(gpu.read().split())):
            name, version = pin.split("==")
            yield name, version, "RUNTIME_DEPENDENCY_OF"


def document(release, in_release):
    with open(os.path.join(ROOT, "common/base/engine_version.h")) as f:
        version = re.search(r'kTraindVersion\[\] = "([^"]+)"', f.read()).group(1)
    parts = [(name, v, f"pkg:deb/debian/{name}@{v}", "CONTAINS") for name, v in sorted(versions(in_release).items())]
    parts += [(name, v, f"pkg:deb/debian/{name}@{v}", "BUILD_DEPENDENCY_OF")
              for name, v in sorted(versions(built_with()).items())]
    parts += [(name, v, f"pkg:pypi/{name}@{v}", why) for name, v, why in wheels(release)]
    packages = [{"SPDXID": "SPDXRef-traind", "name": "traind", "versionInfo": version, "downloadLocation": "NOASSERTION"}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-traind"}]
    for name, v, url, why in parts:
        id_ = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        packages.append({"SPDXID": id_, "name": name, "versionInfo": v, "downloadLocation": "NOASSERTION",
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                           "referenceLocator": url}]})
        ends = ("SPDXRef-traind", id_) if why == "CONTAINS" else (id_, "SPDXRef-traind")
        relations.append({"spdxElementId": ends[0], "relationshipType": why, "relatedSpdxElement": ends[1]})
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "traind " + version,
            "documentNamespace": "https://traind.invalid/spdx/" + version,
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "creators": ["Tool: deploy/sbom.py"]},
            "packages": packages, "relationships": relations}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(json.dumps(document(sys.argv[1], sys.stdin.read().split()), indent=1))


if __name__ == "__main__":
    main()
