"""deploy/docs_site.sh without mkdocs-material, and with a stand-in for it that looks at what it is given."""
import os
import subprocess
import tempfile

from tests.cases import case, main
from tests.structure import documents

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def build(interpreter, *arguments):
    """Runs the script with a shell script in place of the interpreter that has mkdocs-material."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "python")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + interpreter)
        os.chmod(path, 0o755)
        return subprocess.run([os.path.join(ROOT, "deploy/docs_site.sh"), *arguments], capture_output=True, text=True,
                              env={**os.environ, "PYTHON": path}, timeout=30)


@case("Without mkdocs-material the script says so in one line and builds nothing")
def _():
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site")
        result = build("exit 1\n", site)
        assert result.returncode == 0 and result.stdout.startswith("docs_site: skipped: "), result
        assert result.stdout.count("\n") == 1 and not result.stderr and not os.path.exists(site), result


@case("mkdocs gets the configuration, the documents and the files that they link to, and is strict")
def _():
    with tempfile.TemporaryDirectory() as site:
        # python -m mkdocs build --quiet --strict --config-file FILE --site-dir DIR
        result = build('[ "$1" = -c ] && exit 0\necho "$@" >"$9/arguments"\n'
                       'cd "$(dirname "$7")" && cmp mkdocs.yml "$OLDPWD/mkdocs.yml" && cd documents &&\n'
                       'find . -type f | cut -c3- | sort >"$9/files"\n', site)
        assert result.returncode == 0 and site in result.stdout, result
        with open(os.path.join(site, "arguments")) as f:
            assert f.read().startswith("-m mkdocs build --quiet --strict --config-file ")
        with open(os.path.join(site, "files")) as f:
            assert sorted(f.read().split()) == documents.files(ROOT)


@case("An error of mkdocs is the script's, and an unknown option is refused")
def _():
    with tempfile.TemporaryDirectory() as site:
        result = build('[ "$1" = -c ] && exit 0\nexit 3\n', site)
        assert result.returncode != 0 and "the site is in" not in result.stdout, result
    result = build("exit 0\n", "--fast")
    assert result.returncode == 2 and "unknown option --fast" in result.stderr, result


main()
