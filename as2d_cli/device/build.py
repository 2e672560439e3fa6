"""Makes the runner for 64-bit ARM, with all that it needs beside models, and keeps it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.catalog.locks import model_lock
from as2d_cli.device.manifest import Built, BuiltFile
from as2d_cli.device.ort_package import LICENCES, OrtPackage, fetch_ort, ort_version
from as2d_cli.device.toolchain import GLIBC, Toolchain, find_toolchain
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Watch", "ensure_built", "native_sources"]

_PROGRAM = "as2d-runner"
_FOLDER = "runner"
"""Of the files, on the device."""

_LOADER = "ld-linux-aarch64.so.1"
_SOURCES = ("CMakeLists.txt", "cmake", "include", "runner", "src")
_OURS = "MIT"
_ORT = "MIT"
_SYSTEM_LICENCES = {
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
    # All others are of the C library.
    "": "LGPL-2.1-or-later",
}


Watch = Callable[[str], None]
"""Is told what comes next."""


def ensure_built(
    cache: Path, variables: Mapping[str, str], watch: Watch, *, force: bool = False
) -> Built:
    """What was built with these sources and tools; built, if need be. Blocks for minutes then.

    Args:
        cache: as2d's.
        variables: the environment's; ``ANDROID_NDK_HOME`` makes it Android's own kind.
        force: build it again.

    Raises:
        As2dError: something is missing to build it with, or it fails.
    """
    sources = native_sources()
    toolchain = find_toolchain(variables, sources)
    folder = cache / "device"
    final = folder / f"{toolchain.system}-{_digest(sources, toolchain)}"
    with model_lock(folder, "build", lambda: watch("waiting for another build")):
        built = None if force else Built.read(final)
        if built is not None:
            return built
        for left in folder.glob("tmp-*"):  # of a build that was killed
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix="tmp-", dir=folder))
        try:
            _Build(sources, toolchain, work, watch).all()
            shutil.rmtree(final, ignore_errors=True)
            (work / "out").replace(final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    made = Built.read(final)
    assert made is not None, "it has just been made"
    return made


def native_sources() -> Path:
    """The engine's sources: of the checkout, or those that came with the package.

    Raises:
        As2dError: there are none.
    """
    package = Path(__file__).parents[1]
    for folder in (package.parent / "native", package / "native"):
        if (folder / "runner" / "CMakeLists.txt").is_file():
            return folder
    raise As2dError(
        "this as2d came without the engine's sources",
        remedy="install it anew, or work in a checkout",
        status=ExitStatus.UNAVAILABLE,
    )


def _digest(sources: Path, toolchain: Toolchain) -> str:
    digest = hashlib.sha256()
    for path in sorted(_files(sources)):
        digest.update(f"{path.relative_to(sources)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    digest.update(f"{toolchain.identity}\0{ort_version(toolchain.system)}".encode())
    return digest.hexdigest()[:12]


def _files(sources: Path) -> Iterator[Path]:
    for name in _SOURCES:
        path = sources / name
        yield from (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


@dataclass(frozen=True)
class _Build:
    """In the folder `work`, whose folder `out` is the result."""

    sources: Path
    toolchain: Toolchain
    work: Path
    watch: Watch

    def all(self) -> None:
        out = self.work / "out"
        folder = out / _FOLDER
        folder.mkdir(parents=True)
        self.watch("fetching ONNX Runtime for the device")
        ort = fetch_ort(self.toolchain.system, folder)
        self.watch("compiling the runner")
        program = self._compile()
        shutil.copyfile(program, folder / _PROGRAM)
        files = [self._file(_PROGRAM, _OURS, f"as2d, compiled by {self._compiler()}")]
        files += self._of_ort(ort, folder)
        start: tuple[str, ...] = (f"{_FOLDER}/{_PROGRAM}",)
        if self.toolchain.system == GLIBC:
            files += self._of_system(folder)
            loader = f"{_FOLDER}/{_LOADER}"
            start = (loader, "--library-path", _FOLDER, *start)
        for file in files:
            (out / file.name).chmod(0o755)
        version = ort_version(self.toolchain.system)
        library = f"{_FOLDER}/{ort.library}"
        Built(out, self.toolchain.system, files, start, library, version).write()

    def _compile(self) -> Path:
        """In a checkout where its tests for 64-bit ARM are compiled, too: what is compiled already
        is not compiled again.
        """
        checkout = (self.sources / "CMakePresets.json").is_file()
        same = checkout and self.toolchain.system == GLIBC
        build = self.sources / "build" / "aarch64" if same else self.work / "build"
        log = self.work / "compile.log"
        configure = [self.toolchain.cmake, "-S", str(self.sources), "-B", str(build), "-G", "Ninja"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={self.toolchain.ninja}", *self.toolchain.definitions]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DAS2D_RUNNER=ON"]
        make = [self.toolchain.cmake, "--build", str(build), "--target", _PROGRAM]
        with log.open("wb") as output:
            for command in (configure, make):
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
                if done.returncode != 0:
                    raise _failure(log)
        return build / "runner" / _PROGRAM

    def _of_ort(self, ort: OrtPackage, folder: Path) -> list[BuiltFile]:
        names = [ort.library, *(name for name in LICENCES if (folder / name).is_file())]
        return [self._file(name, _ORT, ort.origin) for name in names]

    def _of_system(self, folder: Path) -> list[BuiltFile]:
        """The loader, and the libraries that it is asked for, and those that these ask for."""
        have = {path.name for path in folder.iterdir()}
        wanted = [_LOADER]
        asking = [folder / _PROGRAM, folder / "libonnxruntime.so"]
        files = []
        while asking or wanted:
            wanted += [n for path in asking for n in self.toolchain.needed(path) if n not in have]
            asking = []
            for name in dict.fromkeys(wanted):
                if name in have:
                    continue
                have.add(name)
                shutil.copyfile(self.toolchain.system_library(name), folder / name)
                licence = next(
                    licence for stem, licence in _SYSTEM_LICENCES.items() if name.startswith(stem)
                )
                files.append(self._file(name, licence, self._compiler()))
                asking.append(folder / name)
            wanted = []
        return files

    def _compiler(self) -> str:
        return self.toolchain.identity.splitlines()[0]

    def _file(self, name: str, licence: str, origin: str) -> BuiltFile:
        return BuiltFile.of(self.work / "out", f"{_FOLDER}/{name}", licence, origin)


def _failure(log: Path) -> As2dError:
    """Keeps the log where it survives the build."""
    handle, kept = tempfile.mkstemp(prefix="as2d-device-build-", suffix=".log")
    os.close(handle)
    shutil.copyfile(log, kept)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.strip() for line in lines if "error" in line.lower()]
    last = (errors or lines or ["the log is empty"])[0]
    return As2dError(f"the runner cannot be compiled: {last}", remedy=f"see {kept}")
