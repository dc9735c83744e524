"""Makes the wheel and the source archive of the package (PEP 517, PEP 660) with the standard library alone.

A wheel is a zip archive with the files of the package, its metadata and a list of digests. Times in the archives are
fixed, so the same files give the same bytes.
"""
import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

_ROOT = os.path.dirname(os.path.abspath(__file__))
_EXTRAS = {"pandas": ["pandas"], "progress": ["tqdm"], "plot": ["matplotlib"], "sklearn": ["scikit-learn>=1.6"],
           "mlflow": ["mlflow-skinny"]}
_WHEEL = "Wheel-Version: 1.0\nGenerator: traind\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _read(*parts):
    with open(os.path.join(_ROOT, *parts), encoding="utf-8") as f:
        return f.read()


def _version():
    return re.search(r'^__version__ = "([^"]+)"', _read("traind", "__init__.py"), re.MULTILINE).group(1)


def _metadata():
    lines = ["Metadata-Version: 2.1", "Name: traind", f"Version: {_version()}",
             "Summary: Train models against a deadline: the client of the daemon traind",
             "Requires-Python: >=3.9", "Description-Content-Type: text/markdown"]
    extras = dict(_EXTRAS, all=sorted({package for packages in _EXTRAS.values() for package in packages}))
    for extra, packages in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    return "\n".join(lines) + "\n\n" + _read("README.md")


def _info():
    """The name of the folder with the metadata, and its files."""
    return f"traind-{_version()}.dist-info", {"METADATA": _metadata(), "WHEEL": _WHEEL}


def _package_files():
    """Paths below the root, in a fixed order: the package, and the module that programs under `trainctl run` import."""
    yield "traind_run.py"
    for folder, folders, files in os.walk(os.path.join(_ROOT, "traind")):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.relpath(os.path.join(folder, name), _ROOT)


def _write_wheel(path, files):
    """files: path in the wheel -> text."""
    info, metadata = _info()
    files = {**files, **{f"{info}/{name}": text for name, text in metadata.items()}}
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            content = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
            wheel.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join(record) + f"{info}/RECORD,,\n")


def _wheel_name():
    return f"traind-{_version()}-py3-none-any.whl"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _write_wheel(os.path.join(wheel_directory, _wheel_name()), {path: _read(path) for path in _package_files()})
    return _wheel_name()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _write_wheel(os.path.join(wheel_directory, _wheel_name()), {"__editable__.traind.pth": _ROOT + "\n"})
    return _wheel_name()


def build_sdist(sdist_directory, config_settings=None):
    base = f"traind-{_version()}"
    files = {path: _read(path) for path in [*_package_files(), "pyproject.toml", "build_backend.py", "README.md"]}
    files["PKG-INFO"] = _metadata()
    with tarfile.open(os.path.join(sdist_directory, f"{base}.tar.gz"), "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{base}/{name}")
            content = text.encode()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{base}.tar.gz"
