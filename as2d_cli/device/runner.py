"""The runner on a device: what it needs there, how it is started, and what it says."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.device.adb import words
from as2d_cli.device.manifest import Built
from as2d_cli.device.place import Parcel, Place
from as2d_cli.device.results import FORMAT, Begun, DeviceMachine, End, Result, read_result
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Kit", "Runner", "kit_of"]

_START = 60.0
"""Seconds until it has told of the machine."""

_LATE = 30.0
"""Seconds after its deadline, when it must be long gone."""

_LIBRARY = re.compile(
    r"loading shared libraries: ([^:\s]+): cannot open|library \"([^\"]+)\" not found"
)


@dataclass(frozen=True)
class Kit:
    """Everything that the runner needs on a device beside models.

    Attributes:
        parcels: its files, named in the place.
        start: words that start it, in the place's folder.
        library: ONNX Runtime's, named in the place.
    """

    parcels: Sequence[Parcel]
    start: Sequence[str]
    library: str


def kit_of(built: Built) -> Kit:
    """What was built here."""
    files = built.files
    folder = built.folder
    parcels = [Parcel(f.name, folder / f.name, f.size, f.sha256, f.licence) for f in files]
    return Kit(parcels, built.start, built.library)


class Runner:
    """A runner that has been sent to its place. All calls block."""

    def __init__(self, place: Place, kit: Kit) -> None:
        self.place = place
        self._kit = kit

    @property
    def parcels(self) -> Sequence[Parcel]:
        """Its own files."""
        return self._kit.parcels

    @property
    def library(self) -> str:
        """ONNX Runtime's, as a job names it."""
        return self._kit.library

    def facts(self) -> DeviceMachine:
        """What it says of the machine.

        Raises:
            As2dError: it cannot run there; the message says why.
        """
        machine = None
        try:
            for result in self._results(["facts", self._kit.library], _START):
                if isinstance(result, DeviceMachine):
                    machine = result
        except As2dError:
            # It also fails when its library does; what it has told says so.
            if machine is None:
                raise
        if machine is None:
            raise As2dError(f"the runner on {self.place.device.serial} tells nothing of itself")
        return machine

    def run(self, job: str, seconds: float) -> Generator[Result, None, None]:
        """Does a job, and tells what it says as it comes. Closing the iterator ends the runner.

        Args:
            seconds: the job's deadline.

        Raises:
            As2dError: it could not do it; what was told until then holds.
        """
        digest = hashlib.sha256(job.encode()).hexdigest()
        name = f"job-{digest[:16]}.txt"
        with tempfile.TemporaryDirectory(prefix="as2d-") as folder:
            local = Path(folder) / name
            local.write_text(job, encoding="utf-8")
            self.place.device.push(local, self.place.path(name))
        # The shell's redirection lives on when the name is gone, so that nothing is left behind.
        yield from self._results(["run", "-"], seconds + _LATE, name)

    def _results(
        self, arguments: Sequence[str], seconds: float, job: str | None = None
    ) -> Generator[Result, None, None]:
        command = words(*self._kit.start, *arguments)
        if job is not None:
            command = f"exec <{words(job)} && rm {words(job)} && exec {command}"
        else:
            command = f"exec {command}"
        stray: list[str] = []
        ended: End | None = None
        with self.place.device.run(self.place.inside(command), group=True) as remote:
            for line in remote.lines(seconds):
                try:
                    result = read_result(line)
                except ValueError:
                    stray.append(line)
                    continue
                if isinstance(result, Begun) and result.format != FORMAT:
                    raise As2dError(
                        f"the runner on {self.place.device.serial} is another version",
                        remedy="run as2d device build",
                    )
                if isinstance(result, End):
                    ended = result
                yield result
            said = [line for line in (*stray, *remote.errors) if line.strip()]
            status = remote.status
        if ended is not None and ended.status in ("done", "differs"):
            return
        raise self._failure(status, ended, said)

    def _failure(self, status: int | None, ended: End | None, said: Sequence[str]) -> As2dError:
        serial, folder = self.place.device.serial, self.place.folder
        last = said[-1].strip() if said else f"it ended with status {status}"
        if ended is not None and ended.status == "deadline":
            return As2dError(
                f"the time for the runner on {serial} is over", remedy="raise --device-seconds"
            )
        if ended is not None:
            return As2dError(f"the runner on {serial}: {ended.message or ended.status}")
        for line in said:
            if library := _LIBRARY.search(line):
                name = library[1] or library[2]
                return As2dError(
                    f"the runner cannot start on {serial}: its library {name} is missing there",
                    remedy="run as2d device build --force and as2d device push",
                    status=ExitStatus.UNAVAILABLE,
                )
        if status in (126, 127) and "ermission denied" in last:
            return As2dError(
                f"{folder} on {serial} is no place for programs: {last}",
                remedy="choose a folder that is not mounted noexec with --device-dir",
                status=ExitStatus.UNAVAILABLE,
            )
        if status in (126, 127):
            return As2dError(
                f"the runner cannot start on {serial}: {last}",
                remedy="it is for 64-bit ARM; see as2d device shell-check",
                status=ExitStatus.UNAVAILABLE,
            )
        if status == 137:
            return As2dError(
                f"the runner on {serial} was killed: most likely there is too little memory",
                remedy="close other apps, or take smaller models",
            )
        return As2dError(f"the runner on {serial} broke off: {last}")
