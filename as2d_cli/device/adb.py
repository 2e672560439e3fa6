"""A thin typed driver over the ``adb`` program; it knows nothing of what is run.

Statuses of what ran on a device come in band, as the last line of its output: adb ends with 1 for
failures of its own, and older devices tell it no status at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Adb", "Attached", "Device", "Finished", "Remote", "remedy", "words"]

READY = "device"
"""State of a device that can be used, as adb calls it."""

_ANSWER = 30.0
"""Seconds within which a device answers something small; a sleeping one may take some."""

_SLOWEST = 0.5e6
"""Bytes a second of a bad cable, with a margin: whoever is slower hangs."""

_GRACE = 2.0
"""Seconds that a program gets to end after it was asked to."""

_STATUS = "as2d-status "
_GROUP = "as2d-group "
_ENDED = re.compile(rf"(.*){_STATUS}(\d+)")

_CONNECT = "connect one with a cable and switch on USB debugging, or use 'adb connect'"
_REMEDIES = {
    "unauthorized": "unlock it and allow this computer in the dialog on its screen",
    "authorizing": "unlock it and allow this computer in the dialog on its screen",
    "offline": "unplug it and plug it in again, or run 'adb reconnect offline'",
    "no permissions": "install the udev rules of Android, or add yourself to the group plugdev",
    "recovery": "let it start Android",
    "sideload": "let it start Android",
    "bootloader": "let it start Android",
}


@dataclass(frozen=True)
class Attached:
    """A device that adb knows of.

    Attributes:
        serial: its name; an address for one on the network.
        state: "device" when it can be used, else why not, in adb's word.
        model: what adb tells of it, or "".
    """

    serial: str
    state: str
    model: str = ""

    @property
    def ready(self) -> bool:
        """It can be used."""
        return self.state == READY


@dataclass(frozen=True)
class Finished:
    """What came of a script on a device: its exit status, and its output without line ends."""

    status: int
    out: Sequence[str]
    err: Sequence[str]

    @property
    def why(self) -> str:
        """The last thing it said, for an error."""
        said = [line for line in (*self.out, *self.err) if line.strip()]
        return said[-1].strip() if said else f"status {self.status}"


def remedy(state: str) -> str:
    """What to do about a device in this state; "" for one that is not there."""
    if not state:
        return _CONNECT
    known = (text for word, text in _REMEDIES.items() if state.startswith(word))
    return next(known, "see 'adb devices'")


def words(*parts: str) -> str:
    """A command for the device's shell of exactly these words."""
    return shlex.join(parts)


class Adb:
    """The program on this machine. All calls block."""

    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        self._program = program
        self._variables = variables
        self._served = False

    @classmethod
    def find(cls, variables: Mapping[str, str]) -> Adb:
        """Looks in PATH and in the folder of Android's SDK.

        Raises:
            As2dError: it is not there.
        """
        folders = [variables.get("PATH", os.defpath)]
        for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
            if variables.get(name):
                folders.append(str(Path(variables[name]) / "platform-tools"))
        program = shutil.which("adb", path=os.pathsep.join(folders))
        if program is None:
            raise As2dError(
                "there is no adb here",
                remedy="install it (Debian: apt-get install adb), or set ANDROID_HOME",
                status=ExitStatus.UNAVAILABLE,
            )
        return cls(program, variables)

    def devices(self) -> list[Attached]:
        """All that adb knows of, usable or not.

        Raises:
            As2dError: adb fails.
        """
        ran = self.call("devices", "-l")
        if ran.status != 0:
            raise As2dError(f"adb: {_complaint(ran)}", status=ExitStatus.UNAVAILABLE)
        lines = iter(ran.out)
        for line in lines:
            if line.startswith("List of devices"):
                break
        return [_attached(line) for line in lines if line.strip()]

    def device(self, serial: str | None) -> Device:
        """The one of this serial, else of $ANDROID_SERIAL, else the only one.

        Raises:
            As2dError: status UNAVAILABLE; it is not there or not usable, or which one is meant
                cannot be told.
        """
        serial = serial or self._variables.get("ANDROID_SERIAL") or None
        found = self.devices()
        if serial is not None:
            chosen = next((one for one in found if one.serial == serial), None)
            if chosen is None:
                raise _unusable(f"no device {serial}", _others(found))
        elif len(usable := [one for one in found if one.ready]) == 1:
            # Others that cannot be used are no choice.
            chosen = usable[0]
        elif len(found) == 1:
            chosen = found[0]
        elif not found:
            raise _unusable("no device", _others(found))
        else:
            raise _unusable(
                f"{len(found)} devices: {_listed(found)}",
                "choose one with --device SERIAL or ANDROID_SERIAL",
            )
        if not chosen.ready:
            raise _unusable(f"device {chosen.serial} is {chosen.state}", remedy(chosen.state))
        return Device(self, chosen.serial)

    def call(self, *arguments: str, seconds: float = _ANSWER) -> Finished:
        """Runs the program.

        Raises:
            As2dError: it does not end within `seconds`.
        """
        with self.start(*arguments) as remote:
            return remote.finish(seconds, "adb")

    def start(self, *arguments: str) -> _Process:
        """Begins to run the program."""
        self._serve()
        return _Process([self._program, *arguments], self._variables)

    def _serve(self) -> None:
        """Starts adb's server before anything else does: it would keep our pipes open for ever."""
        if self._served:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [self._program, "start-server"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(self._variables),
                timeout=_ANSWER,
                start_new_session=True,
                check=False,
            )
        self._served = True


class Device:
    """One device that was usable when it was asked for. All calls block."""

    def __init__(self, adb: Adb, serial: str) -> None:
        self._adb = adb
        self.serial = serial

    def shell(self, script: str, *, seconds: float = _ANSWER) -> Finished:
        """Runs a script of the device's shell to its end, whatever its status.

        Raises:
            As2dError: the device went away, or does not answer within `seconds`.
        """
        with self.run(script) as remote:
            out = list(remote.lines(seconds))
            assert remote.status is not None, "lines() says so, or raises"
            return Finished(remote.status, out, remote.errors)

    def run(self, script: str, *, group: bool = False) -> Remote:
        """Begins to run a script of the device's shell.

        Args:
            group: in a process group of its own, that `Remote.kill` ends. The script then ends in
                a command: ``exec`` of the program that is meant.
        """
        if group:
            # Not the last command, which the outer shell might replace itself with.
            script = words("setsid", "sh", "-c", f'echo "{_GROUP}$$"; {script}')
        whole = f'(\n{script}\n)\necho "{_STATUS}$?"'
        process = self._adb.start("-s", self.serial, "shell", "-T", whole)
        return Remote(self, process, grouped=group)

    def push(self, local: Path, remote: str) -> None:
        """Copies a file, with its permissions.

        Raises:
            As2dError: storage is full, the folder is not there, the device went away or hangs.
        """
        seconds = _ANSWER + local.stat().st_size / _SLOWEST
        ran = self._adb.call("-s", self.serial, "push", str(local), remote, seconds=seconds)
        if ran.status != 0:
            self.check_there(f"while {local.name} was copied")
            raise As2dError(f"cannot copy {local.name} to {remote}: {_complaint(ran)}")

    def check_there(self, when: str) -> None:
        """After a failure: raises As2dError if the device is no longer usable."""
        state = next((d.state for d in self._adb.devices() if d.serial == self.serial), None)
        if state is None:
            raise _unusable(f"device {self.serial} went away {when}", "look at the cable")
        if state != READY:
            raise _unusable(f"device {self.serial} became {state} {when}", remedy(state))


class Remote:
    """A script that runs on a device. Leaving the context ends it.

    Attributes:
        status: its exit status, when it has ended.
        errors: what it wrote to standard error so far.
    """

    def __init__(self, device: Device, process: _Process, *, grouped: bool) -> None:
        self._device = device
        self._process = process
        self._grouped = grouped
        self._group = 0
        self.status: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self.status is None:
                self.kill()
        finally:
            self._process.end()

    @property
    def errors(self) -> Sequence[str]:
        return self._process.err

    def lines(self, seconds: float) -> Iterator[str]:
        """Its output, line by line as it comes, until it has ended.

        Raises:
            As2dError: it did not end within `seconds`, or the device went away.
        """
        for line in self._process.lines(seconds):
            if line is None:
                what = f"device {self._device.serial} did not finish within {seconds:g} s"
                raise As2dError(what, remedy="see whether it is awake")
            if self._is_group(line):
                continue
            if ended := _ENDED.fullmatch(line):
                self.status = int(ended[2])
                if ended[1]:  # the last of the output had no line end
                    yield ended[1]
            else:
                yield line
        if self.status is None:
            self._device.check_there("in the middle of a command")
            raise As2dError(
                f"device {self._device.serial} ended the connection: "
                + _complaint(Finished(self._process.status, (), self.errors)),
                remedy="try again",
            )

    def kill(self) -> None:
        """Ends its process group, gently at first. Never fails: the device may be gone."""
        if self._grouped and not self._group:
            # Interrupted before it could say which group it is.
            for line in self._process.lines(_GRACE):
                if line is None or self._is_group(line):
                    break
        if self._group:
            with contextlib.suppress(As2dError):
                self._device.shell(_kill(self._group), seconds=_ANSWER)

    def _is_group(self, line: str) -> bool:
        if not (self._grouped and line.startswith(_GROUP)):
            return False
        self._group = int(line.removeprefix(_GROUP))
        return True


@dataclass
class _Process:
    """A process of adb on this machine, whose output is read as it comes.

    Attributes:
        err: lines of standard error so far.
        status: when it has ended.
    """

    command: Sequence[str]
    variables: Mapping[str, str]
    err: list[str] = field(default_factory=list)
    status: int = -1

    def __post_init__(self) -> None:
        self._popen = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(self.variables),
            # Ctrl-C is for us: we still need adb to end what runs on the device.
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        self._rest: dict[IO[bytes], bytes] = {}
        for stream in (self._popen.stdout, self._popen.stderr):
            assert stream is not None
            self._selector.register(stream, selectors.EVENT_READ)
            self._rest[stream] = b""
        self._lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kills it, if it still runs."""
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        self._selector.close()
        for stream in self._rest:
            stream.close()

    def finish(self, seconds: float, name: str) -> Finished:
        """Waits for its end. Raises As2dError: it does not come within `seconds`."""
        out: list[str] = []
        for line in self.lines(seconds):
            if line is None:
                raise As2dError(
                    f"{name} does not answer within {seconds:g} s",
                    remedy="see whether the device is awake, or run 'adb kill-server'",
                    status=ExitStatus.UNAVAILABLE,
                )
            out.append(line)
        return Finished(self.status, out, self.err)

    def lines(self, seconds: float) -> Iterator[str | None]:
        """Lines of standard output until its end; None, as the last, when time is over."""
        end = time.monotonic() + seconds
        late: float | None = None
        while True:
            while self._lines:
                yield self._lines.pop(0)
            if not self._selector.get_map():
                break
            left = end - time.monotonic()
            # Who was stopped meanwhile finds what has come, though it is late.
            ready = self._selector.select(max(0.0, left))
            late = late or (time.monotonic() + _GRACE if left <= 0 else None)
            if not ready or (late is not None and time.monotonic() > late):
                yield None
                return
            for key, _ in ready:
                self._read(key.fileobj)  # type: ignore[arg-type]
        try:
            self.status = self._popen.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            yield None

    def _read(self, stream: IO[bytes]) -> None:
        data = os.read(stream.fileno(), 1 << 16)
        *whole, self._rest[stream] = (self._rest[stream] + data).split(b"\n")
        if not data:
            self._selector.unregister(stream)
            if self._rest[stream]:
                whole.append(self._rest[stream])
                self._rest[stream] = b""
        into = self._lines if stream is self._popen.stdout else self.err
        # A terminal on the way makes CRLF of every line end.
        into += [line.decode("utf-8", "replace").rstrip("\r") for line in whole]


def _kill(group: int) -> str:
    return (
        f"kill -TERM -{group} || exit 0; n=0; while kill -0 -{group} 2>/dev/null; do "
        f"[ $n -lt {_GRACE / 0.1:.0f} ] || {{ kill -KILL -{group}; break; }}; "
        "n=$((n+1)); sleep 0.1; done"
    )


def _attached(line: str) -> Attached:
    """Of ``SERIAL  STATE key:value key:value``; a state may have blanks in it."""
    serial, rest = line.strip().split(maxsplit=1)
    state = re.split(r"\s+(?=\w+:\S)", rest)[0]
    model = re.search(r"\bmodel:(\S+)", rest)
    return Attached(serial, state, model[1] if model else "")


def _listed(found: Sequence[Attached]) -> str:
    return ", ".join(
        one.serial + (f" ({one.model or one.state})" if one.ready else f" ({one.state})")
        for one in found
    )


def _others(found: Sequence[Attached]) -> str:
    if found:
        return f"there is {_listed(found)}"
    return _CONNECT


def _unusable(message: str, what_to_do: str) -> As2dError:
    return As2dError(message, remedy=what_to_do, status=ExitStatus.UNAVAILABLE)


def _complaint(ran: Finished) -> str:
    """What adb says went wrong, without its own name."""
    said = [line.strip() for line in (*ran.err, *ran.out) if line.strip()]
    errors = [line for line in said if "error" in line.lower()] or said[-1:]
    if not errors:
        return f"adb ended with status {ran.status}"
    return re.sub(r"^(adb: )?error: ", "", errors[0])
