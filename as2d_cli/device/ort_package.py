"""ONNX Runtime's library for a device, out of published packages."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from as2d_cli.catalog.progress import Silent
from as2d_cli.catalog.sources import SourceError
from as2d_cli.catalog.sources.packages import pip_download
from as2d_cli.device.toolchain import BIONIC
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["LICENCES", "OrtPackage", "fetch_ort", "ort_version"]

LICENCES = ("LICENSE", "ThirdPartyNotices.txt")
"""Texts that go with the library, where the package has them."""

_LIBRARY = "libonnxruntime.so"
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")

# Android's library is published by Maven; this package of npm carries it unchanged.
_NPM_PACKAGE = "com.github.asus4.onnxruntime"
_NPM_VERSION = "0.4.9"
_NPM_SHA256 = "e59788788818fdde1b2e522e766a21ba0f7d8391de55737abf81e32cc801785d"
_NPM_ARCHIVE = "package/Plugins/Android/onnxruntime.aar"
_NPM_LICENCE = "package/LICENSE"
_AAR_LIBRARY = "jni/arm64-v8a/libonnxruntime.so"


@dataclass(frozen=True)
class OrtPackage:
    """What was fetched: `library` lies in the folder that was named, and texts beside it."""

    library: str
    origin: str


def ort_version(system: str) -> str:
    """Version of the package that would be fetched."""
    return f"{_NPM_PACKAGE}@{_NPM_VERSION}" if system == BIONIC else metadata.version("onnxruntime")


def fetch_ort(system: str, folder: Path) -> OrtPackage:
    """Puts the library into `folder`, with its licence. Nothing that is fetched is run.

    Raises:
        As2dError: status UNAVAILABLE; it cannot be had.
    """
    scratch = folder / ".fetch"
    scratch.mkdir(parents=True)
    try:
        return _from_npm(folder, scratch) if system == BIONIC else _from_pypi(folder, scratch)
    except (SourceError, OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise As2dError(
            f"no ONNX Runtime for the device: {error}", status=ExitStatus.UNAVAILABLE
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _from_pypi(folder: Path, scratch: Path) -> OrtPackage:
    package = f"onnxruntime=={ort_version('')}"
    options = ["--python-version", f"{sys.version_info.major}.{sys.version_info.minor}"]
    for platform in _PLATFORMS:
        options += ["--platform", platform]
    pip_download(package, scratch, scratch, Silent(), options)
    wheel = next(scratch.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            path = PurePosixPath(member)
            if path.parent == PurePosixPath("onnxruntime/capi") and path.name.startswith(
                f"{_LIBRARY}."
            ):
                _extract(archive, member, folder / _LIBRARY)
            elif path.parent == PurePosixPath("onnxruntime") and path.name in LICENCES:
                _extract(archive, member, folder / path.name)
    if not (folder / _LIBRARY).is_file():
        raise SourceError(f"{wheel.name} has no {_LIBRARY}")
    return OrtPackage(_LIBRARY, f"PyPI {wheel.name}")


def _from_npm(folder: Path, scratch: Path) -> OrtPackage:
    name = f"{_NPM_PACKAGE}@{_NPM_VERSION}"
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError(f"{name} is fetched with npm, which is not there (apt-get install npm)")
    done = subprocess.run(
        [npm, "pack", "--silent", name],
        cwd=scratch,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    packed = next(scratch.glob("*.tgz"), None)
    if done.returncode != 0 or packed is None:
        last = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        raise SourceError(f"npm cannot get {name}: {last[0]}")
    if hashlib.sha256(packed.read_bytes()).hexdigest() != _NPM_SHA256:
        raise SourceError(f"{name} is not what it was when as2d was made")
    with tarfile.open(packed) as archive:
        for member, file in ((_NPM_ARCHIVE, scratch / "aar"), (_NPM_LICENCE, folder / "LICENSE")):
            stream = archive.extractfile(member)
            if stream is None:
                raise SourceError(f"{name} has no {member}")
            with stream, file.open("wb") as out:
                shutil.copyfileobj(stream, out)
    with zipfile.ZipFile(scratch / "aar") as aar:
        _extract(aar, _AAR_LIBRARY, folder / _LIBRARY)
    return OrtPackage(_LIBRARY, f"npm {name}")


def _extract(archive: zipfile.ZipFile, member: str, file: Path) -> None:
    with archive.open(member) as stream, file.open("wb") as out:
        shutil.copyfileobj(stream, out)
