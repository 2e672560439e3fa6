"""The folder of as2d on a device: what is in it, and what has to be copied there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from as2d_cli.device.adb import Device, words
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Parcel", "Place", "Sent"]

_AT_ONCE = 50
"""Names in one command; adb's oldest protocol has room for 4 KB."""

_MARGIN = 32 << 20
"""Bytes that are left free: a device without any is no good to its owner."""

_DIGEST = 90.0
"""Seconds in which the digests of some files are computed on a slow device."""

_PART = ".part"

_DAMAGED = 99
"""Status of a script that found another digest."""

_OURS = ("bundles", "clips", "runner")
"""Folders of what is sent; whoever cleans a folder that others use, too, deletes no more."""


@dataclass(frozen=True)
class Parcel:
    """A file that has to be there.

    Attributes:
        name: path in the folder.
        sha256: of what it has in it.
        licence: for people; "" where nobody said.
    """

    name: str
    local: Path
    size: int
    sha256: str
    licence: str = ""


@dataclass(frozen=True)
class Sent:
    """What a delivery came to. Bytes are those that were copied."""

    copied: int
    bytes: int
    there: int


class Watch(Protocol):
    """Who is told how far it is."""

    def copying(self, parcel: Parcel, left: int) -> None:
        """This one comes next; `left` bytes are to be copied, its own among them."""


class Place:
    """One folder on one device. All calls block, and raise As2dError when the device goes away."""

    def __init__(self, device: Device, folder: str) -> None:
        if not folder.startswith("/") or not posixpath.normpath(folder).strip("/"):
            raise As2dError(
                f"--device-dir {folder} is no path of a folder on a device",
                remedy="give one such as /data/local/tmp/as2d",
                status=ExitStatus.USAGE,
            )
        self.device = device
        self.folder = posixpath.normpath(folder)

    def path(self, name: str) -> str:
        """On the device."""
        return posixpath.join(self.folder, name)

    def inside(self, script: str) -> str:
        """A script of the device's shell that begins in the folder."""
        return f"cd {words(self.folder)} && {script}"

    def make(self) -> None:
        """Makes the folder if it is not there.

        Raises:
            As2dError: nothing can be written there.
        """
        probe = words(self.path(f".probe{_PART}"))
        ran = self.device.shell(f"mkdir -p {words(self.folder)} && : > {probe} && rm -f {probe}")
        if ran.status != 0:
            raise As2dError(
                f"cannot write to {self.folder} on {self.device.serial}: {ran.why}",
                remedy="choose another folder with --device-dir",
            )

    def free(self) -> int | None:
        """Bytes; None where the device does not tell."""
        ran = self.device.shell(self.inside("df -Pk ."))
        cells = ran.out[-1].split() if ran.status == 0 and ran.out else []
        return int(cells[3]) * 1024 if len(cells) > 3 and cells[3].isdigit() else None

    def missing(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Those that are not there, or are other ones."""
        wanted = {parcel.name: parcel for parcel in parcels}
        there = self._digests(list(wanted))
        return [p for p in wanted.values() if there.get(p.name) != p.sha256]

    def send(self, parcels: Sequence[Parcel], watch: Watch) -> Sent:
        """Sees to it that all of them are there; each appears whole or not at all.

        Raises:
            As2dError: there is too little room, or a copy is damaged.
        """
        missing = self.missing(parcels)
        left = size = sum(parcel.size for parcel in missing)
        free = self.free() if missing else None
        if free is not None and size + _MARGIN > free:
            raise As2dError(
                f"{self.folder} on {self.device.serial} has {_mega(free)} MB free, "
                f"and {_mega(size)} MB are to be copied",
                remedy="make room there, or run as2d device clean",
            )
        folders = {posixpath.dirname(parcel.name) for parcel in missing} - {""}
        if folders:
            self._must(words("mkdir", "-p", *sorted(folders)), "cannot make folders")
        for parcel in missing:
            watch.copying(parcel, left)
            self._copy(parcel)
            left -= parcel.size
        return Sent(len(missing), size, len({p.name for p in parcels}) - len(missing))

    def clean(self) -> None:
        """Deletes all that was ever sent; the folder, too, if nothing else is in it."""
        script = f"rm -rf {words(*_OURS)} job-*.txt *{_PART}; cd / && rmdir {words(self.folder)}"
        whole = f"[ ! -d {words(self.folder)} ] || {{ {self.inside(script)}; }}"
        ran = self.device.shell(whole, seconds=_DIGEST)
        there = self.device.shell(self.inside(f"ls -d {words(*_OURS)} 2>/dev/null"))
        if there.out:
            raise As2dError(f"cannot delete {self.folder} on {self.device.serial}: {ran.why}")

    def _copy(self, parcel: Parcel) -> None:
        part = words(parcel.name + _PART)
        self.device.push(parcel.local, self.path(parcel.name + _PART))
        named = (
            f"case $(sha256sum {part}) in {parcel.sha256}*) mv -f {part} {words(parcel.name)};; "
            f"*) rm -f {part}; exit {_DAMAGED};; esac"
        )
        ran = self.device.shell(self.inside(named), seconds=_DIGEST)
        if ran.status == _DAMAGED:
            raise As2dError(
                f"{parcel.name} came damaged to {self.device.serial}",
                remedy="look at the cable, and try again",
            )
        if ran.status != 0:
            raise As2dError(f"cannot rename {part} on {self.device.serial}: {ran.why}")

    def _digests(self, names: Sequence[str]) -> dict[str, str]:
        """SHA-256 of those files that are there."""
        found: dict[str, str] = {}
        for some in _split(names, _AT_ONCE):
            # Its complaints are of files that are not there.
            script = self.inside(words("sha256sum", *some)) + " 2>/dev/null"
            for line in self.device.shell(script, seconds=_DIGEST).out:
                digest, _, name = line.partition(" ")
                found[name.lstrip(" *")] = digest
        return found

    def _must(self, command: str, problem: str) -> None:
        ran = self.device.shell(self.inside(command))
        if ran.status != 0:
            raise As2dError(f"{problem} in {self.folder} on {self.device.serial}: {ran.why}")


def _split(names: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), count):
        yield names[first : first + count]


def _mega(size: int) -> str:
    return f"{size / 1e6:.0f}"
