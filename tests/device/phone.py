"""An emulated phone: a daemon that speaks the protocol of adb's devices on the loopback interface.

Its shell is this machine's, in a scratch folder that stands for the phone's root; programs for
AArch64 are run by an emulator. Protocol: packages/modules/adb of Android, protocol.txt, SYNC.TXT
and shell_protocol.h.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import signal
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = ["TEMPORARY", "Phone"]

TEMPORARY = "/data/local/tmp"
"""The folder of a phone that its shell may write to and run programs from."""

_FEATURES = "shell_v2,cmd,stat_v2,ls_v2,fixed_push_mkdir"
_VERSION = 0x01000001  # no checksums
_MOST = 256 << 10
_CHUNK = 64 << 10

_CNXN, _OPEN, _OKAY, _CLSE, _WRTE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)


@dataclass
class Phone:
    """One phone. Leaving the context switches it off.

    Attributes:
        root: scratch folder that stands for the phone's root.
        properties: what ``getprop`` tells.
        services: by name, what ``dumpsys`` tells.
        emulator: words that run a program for AArch64, which follows; none where none is run.
        room: bytes that can be copied to it, or None for as many as there are.
        cable: called before each packet of data that the computer sends; may call `unplug`.
        commands: what its shell was given.
        received: files that were copied to it, by their names, in their order.
        serial: its address; also what adb calls it.
    """

    root: Path
    properties: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    emulator: Sequence[str] = ()
    room: int | None = None
    cable: Callable[[Phone], None] = lambda phone: None
    commands: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tools = self.root / "system/bin"
        self._tools.mkdir(parents=True, exist_ok=True)
        self._shim = _exec_shim(self.root) if self.emulator else None
        self._connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.serial = f"{host}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Phone:
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    @property
    def folder(self) -> Path:
        """`TEMPORARY`, as this machine sees it."""
        return self.root / TEMPORARY[1:]

    def unplug(self) -> None:
        """The cable is pulled, for good."""
        # Without this the thread that waits for a connection would get one more.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def path(self, name: str) -> Path:
        """A path of the phone, as this machine sees it."""
        return self.root / name.lstrip("/")

    def shell(self, command: str) -> subprocess.Popen[bytes]:
        """A command in the phone's shell."""
        self.commands.append(command)
        for tool, answers in (("getprop", self.properties), ("dumpsys", self.services)):
            cases = "".join(f"{_quoted(k)}) echo {_quoted(v)};;\n" for k, v in answers.items())
            script = self._tools / tool
            script.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n')
            script.chmod(0o755)
        variables = {
            "PATH": f"{self._tools}:/usr/bin:/bin",
            "HOME": "/",
            "TMPDIR": str(self.folder),
        }
        if self._shim is not None:
            variables |= {"LD_PRELOAD": str(self._shim), "EMULATOR": "\n".join(self.emulator)}
        return subprocess.Popen(
            ["/bin/sh", "-c", command.replace(TEMPORARY, str(self.folder))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.root,
            env=variables,
            start_new_session=True,
        )

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = _Connection(self, self._listener.accept()[0])
                self._connections.append(connection)
                threading.Thread(target=connection.serve, daemon=True).start()


class _Connection:
    """One computer."""

    def __init__(self, phone: Phone, wire: socket.socket) -> None:
        self.phone = phone
        self._wire = wire
        self._sending = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._numbers = itertools.count(1)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._wire.close()
        for stream in list(self._streams.values()):
            stream.ended()

    def serve(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                command, first, second, length, _, _ = struct.unpack("<6I", self._take(24))
                self._handle(command, first, second, self._take(length))
        self.close()

    def send(self, command: int, first: int, second: int, data: bytes = b"") -> None:
        head = struct.pack("<6I", command, first, second, len(data), 0, command ^ 0xFFFFFFFF)
        with self._sending:
            self._wire.sendall(head + data)

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)

    def _handle(self, command: int, first: int, second: int, data: bytes) -> None:
        stream = self._streams.get(second)
        if command == _CNXN:
            name = "ro.product.name=emulated;ro.product.model=Emulated;ro.product.device=emulated;"
            banner = f"device::{name}features={_FEATURES}"
            self.send(_CNXN, _VERSION, _MOST, banner.encode())
        elif command == _OPEN:
            stream = _Stream(self, next(self._numbers), first)
            self._streams[stream.number] = stream
            stream.open(data.rstrip(b"\0").decode())
        elif stream is None:
            if command != _CLSE:
                self.send(_CLSE, 0, first)
        elif command == _WRTE:
            self.phone.cable(self.phone)
            stream.given.put(data)
            self.send(_OKAY, second, first)
        elif command == _OKAY:
            stream.taken.release()
        elif command == _CLSE:
            self.forget(second)
            stream.ended()

    def _take(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._wire.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)


class _Stream:
    """One service on a connection.

    Attributes:
        given: data from the computer; None after the last.
        taken: released when the computer has taken what was sent.
    """

    def __init__(self, connection: _Connection, number: int, other: int) -> None:
        self.number = number
        self.given: queue.Queue[bytes | None] = queue.Queue()
        self.taken = threading.Semaphore(1)
        self._connection = connection
        self._other = other
        self._rest = b""
        self._over = False
        self._sending = threading.Lock()

    def open(self, service: str) -> None:
        kind, _, argument = service.partition(":")
        if kind == "sync":
            work: Callable[[], None] = _Sync(self, self._connection.phone).serve
        elif kind.split(",")[:2] == ["shell", "v2"]:
            work = _Shell(self, self._connection.phone, argument).serve
        else:
            self._connection.send(_CLSE, 0, self._other)
            return
        self._connection.send(_OKAY, self.number, self._other)
        threading.Thread(target=self._work, args=(work,), daemon=True).start()

    def send(self, data: bytes) -> None:
        """Blocks until it may be sent; EOFError when nobody is there any more."""
        with self._sending:
            for at in range(0, len(data), _MOST):
                self.taken.acquire()
                if self._over:
                    raise EOFError
                self._connection.send(_WRTE, self.number, self._other, data[at : at + _MOST])

    def take(self, count: int) -> bytes:
        """So many bytes from the computer; EOFError when there are no more."""
        while len(self._rest) < count:
            data = self.given.get()
            if data is None:
                raise EOFError
            self._rest += data
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def ended(self) -> None:
        """The computer closed it, or is gone."""
        self._over = True
        self.given.put(None)
        self.taken.release()

    def _work(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, EOFError):
            work()
            with self._sending:
                self.taken.acquire()
            self._connection.send(_CLSE, self.number, self._other)
        self._connection.forget(self.number)


class _Shell:
    """The service ``shell,v2``: standard streams and the exit status as packets."""

    def __init__(self, stream: _Stream, phone: Phone, command: str) -> None:
        self._stream = stream
        self._process = phone.shell(command)

    def serve(self) -> None:
        process = self._process
        assert process.stdout is not None and process.stderr is not None
        threads = [
            threading.Thread(target=self._forward, args=(process.stdout, _STDOUT), daemon=True),
            threading.Thread(target=self._forward, args=(process.stderr, _STDERR), daemon=True),
        ]
        threading.Thread(target=self._feed, daemon=True).start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        status = process.wait()
        self._packet(_EXIT, bytes([status if status >= 0 else 128 - status]))

    def _packet(self, kind: int, data: bytes) -> None:
        self._stream.send(struct.pack("<BI", kind, len(data)) + data)

    def _forward(self, pipe: IO[bytes], kind: int) -> None:
        with pipe, contextlib.suppress(OSError, EOFError):
            while data := os.read(pipe.fileno(), _CHUNK):
                self._packet(kind, data)

    def _feed(self) -> None:
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(EOFError):
            while True:
                kind, length = struct.unpack("<BI", self._stream.take(5))
                data = self._stream.take(length)
                with contextlib.suppress(OSError):
                    if kind == _STDIN:
                        process.stdin.write(data)
                        process.stdin.flush()
                    elif kind == _CLOSE_STDIN:
                        process.stdin.close()
        # As Android does when whoever asked for the command is gone.
        if process.poll() is None:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.killpg(process.pid, signal.SIGHUP)


class _Sync:
    """The service ``sync``: files and what is known of them."""

    def __init__(self, stream: _Stream, phone: Phone) -> None:
        self._stream = stream
        self._phone = phone

    def serve(self) -> None:
        serving = {
            b"STAT": self._stat,
            b"STA2": self._stat2,
            b"LST2": self._lstat2,
            b"LIST": self._list,
            b"SEND": self._receive,
            b"RECV": self._give,
        }
        while True:
            kind, length = struct.unpack("<4sI", self._stream.take(8))
            if kind == b"QUIT":
                return
            serving[kind](self._stream.take(length).decode())

    def _stat(self, name: str) -> None:
        mode, size, changed = _known(self._phone.path(name))
        self._stream.send(struct.pack("<4s3I", b"STAT", mode, size, changed))

    def _stat2(self, name: str) -> None:
        self._answer2(b"STA2", name, follow=True)

    def _lstat2(self, name: str) -> None:
        self._answer2(b"LST2", name, follow=False)

    def _answer2(self, kind: bytes, name: str, *, follow: bool) -> None:
        try:
            found = self._phone.path(name).stat(follow_symlinks=follow)
        except OSError as error:
            self._stream.send(struct.pack("<4sI64x", kind, error.errno or 0))
            return
        times = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
        fields = (found.st_dev, found.st_ino, found.st_mode, found.st_nlink, 0, 0, found.st_size)
        self._stream.send(struct.pack("<4sIQQIIIIQqqq", kind, 0, *fields, *times))

    def _list(self, name: str) -> None:
        with contextlib.suppress(OSError):
            for entry in sorted(self._phone.path(name).iterdir()):
                called = entry.name.encode()
                head = struct.pack("<4s4I", b"DENT", *_known(entry), len(called))
                self._stream.send(head + called)
        self._stream.send(struct.pack("<4s4I", b"DONE", 0, 0, 0, 0))

    def _receive(self, argument: str) -> None:
        name, _, mode = argument.rpartition(",")
        path, problem = self._phone.path(name), ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            file: IO[bytes] | None = path.open("wb")
        except OSError as error:
            file, problem = None, f"couldn't create file: {error.strerror}"
        for data in self._data():
            if self._phone.room is not None and not problem:
                self._phone.room -= len(data)
                if self._phone.room < 0:
                    problem = "write failed: No space left on device"
            if file is not None and not problem:
                file.write(data)
        if file is not None:
            file.close()
            path.chmod(stat.S_IMODE(int(mode)))
        if problem:
            path.unlink(missing_ok=True)
            text = problem.encode()
            self._stream.send(struct.pack("<4sI", b"FAIL", len(text)) + text)
        else:
            self._phone.received.append(name)
            self._stream.send(struct.pack("<4sI", b"OKAY", 0))

    def _data(self) -> Iterator[bytes]:
        while True:
            kind, length = struct.unpack("<4sI", self._stream.take(8))
            if kind == b"DONE":
                return
            yield self._stream.take(length)

    def _give(self, name: str) -> None:
        try:
            content = self._phone.path(name).read_bytes()
        except OSError as error:
            text = f"couldn't open: {error.strerror}".encode()
            self._stream.send(struct.pack("<4sI", b"FAIL", len(text)) + text)
            return
        for at in range(0, len(content), _CHUNK):
            part = content[at : at + _CHUNK]
            self._stream.send(struct.pack("<4sI", b"DATA", len(part)) + part)
        self._stream.send(struct.pack("<4sI", b"DONE", 0))


def _known(path: Path) -> tuple[int, int, int]:
    """Mode, bytes and time of change; zeros where there is nothing."""
    try:
        found = path.lstat()
    except OSError:
        return 0, 0, 0
    return found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime)


def _exec_shim(folder: Path) -> Path:
    library = folder / "phone_exec.so"
    source = Path(__file__).parent / "phone_exec.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
