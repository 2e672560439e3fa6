"""What compiles for 64-bit ARM here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["BIONIC", "GLIBC", "Toolchain", "find_toolchain", "run_tool"]

GLIBC = "glibc"
"""Debian's cross compiler; its loader and libraries travel along."""

BIONIC = "bionic"
"""Android's NDK."""

_CROSS = "aarch64-linux-gnu-g++"
_READELF = "aarch64-linux-gnu-readelf"
_NDK = "ANDROID_NDK_HOME"
_NDK_FILE = Path("build/cmake/android.toolchain.cmake")
_LEAST_ANDROID = 28
"""Android 9: the first whose C library has all that the engine calls."""

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


@dataclass(frozen=True)
class Toolchain:
    """How things are compiled.

    Attributes:
        system: `GLIBC` or `BIONIC`.
        cmake, ninja: programs.
        definitions: of CMake, that choose the compiler.
        identity: its version, for telling builds apart.
    """

    system: str
    cmake: str
    ninja: str
    definitions: Sequence[str]
    identity: str

    def needed(self, library: Path) -> list[str]:
        """Names of the libraries that a program or library asks its loader for; of glibc only."""
        return _NEEDED.findall(run_tool([_READELF, "--dynamic", "--wide", str(library)]))

    def system_library(self, name: str) -> Path:
        """Where the compiler has a library of the system; of glibc only.

        Raises:
            As2dError: it has none.
        """
        found = Path(run_tool([_CROSS, f"-print-file-name={name}"]).strip())
        if not found.is_absolute():
            raise As2dError(
                f"{_CROSS} has no library {name}",
                remedy="apt-get install libc6-arm64-cross libstdc++6-arm64-cross",
                status=ExitStatus.UNAVAILABLE,
            )
        return found.resolve()


def find_toolchain(variables: Mapping[str, str], sources: Path) -> Toolchain:
    """The NDK where ``ANDROID_NDK_HOME`` names one, else Debian's cross compiler.

    Args:
        sources: of the engine.

    Raises:
        As2dError: status UNAVAILABLE; says what is missing.
    """
    ndk = variables.get(_NDK)
    needed = {"cmake": "cmake", "ninja": "ninja-build"}
    if not ndk:
        needed[_CROSS] = "g++-aarch64-linux-gnu"
    path = variables.get("PATH")
    programs = {name: _program(name, path) for name in needed}
    missing = [name for name, found in programs.items() if found is None]
    if missing:
        raise As2dError(
            f"as2d device build lacks {', '.join(missing)}",
            remedy="apt-get install "
            + " ".join(needed[name] for name in missing)
            + ("" if ndk else f", or set {_NDK} to an Android NDK"),
            status=ExitStatus.UNAVAILABLE,
        )
    cmake, ninja = str(programs["cmake"]), str(programs["ninja"])
    if ndk:
        return _of_ndk(Path(ndk), cmake, ninja)
    file = sources / "cmake" / "aarch64-linux-gnu.cmake"
    version = run_tool([_CROSS, "--version"]).splitlines()[0]
    return Toolchain(GLIBC, cmake, ninja, [f"-DCMAKE_TOOLCHAIN_FILE={file}"], version)


def _of_ndk(ndk: Path, cmake: str, ninja: str) -> Toolchain:
    file = ndk / _NDK_FILE
    if not file.is_file():
        raise As2dError(
            f"{_NDK}={ndk} is no Android NDK: it has no {_NDK_FILE}",
            remedy="set it to the folder of one, or unset it",
            status=ExitStatus.UNAVAILABLE,
        )
    properties = ndk / "source.properties"
    identity = properties.read_text(encoding="utf-8") if properties.is_file() else str(ndk)
    definitions = [
        f"-DCMAKE_TOOLCHAIN_FILE={file}",
        "-DANDROID_ABI=arm64-v8a",
        f"-DANDROID_PLATFORM=android-{_LEAST_ANDROID}",
        # Into the program: there is none on a device.
        "-DANDROID_STL=c++_static",
    ]
    return Toolchain(BIONIC, cmake, ninja, definitions, identity)


def _program(name: str, path: str | None) -> str | None:
    """On the path, or beside this Python, where pip puts them."""
    return shutil.which(name, path=path) or shutil.which(
        name, path=str(Path(sys.executable).parent)
    )


def run_tool(command: Sequence[str]) -> str:
    """What a program writes.

    Raises:
        As2dError: it fails.
    """
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise As2dError(f"{command[0]}: {error.strerror}", status=ExitStatus.UNAVAILABLE) from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it says nothing"]
        raise As2dError(f"{Path(command[0]).name} fails: {last[0]}", status=ExitStatus.UNAVAILABLE)
    return done.stdout
