"""Files and folders, and parts of them."""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio.decode import AudioFile, NotAudioError
from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.excerpt import Excerpt
from as2d_cli.audio.inputs import Input, expand
from as2d_cli.audio.raw import RAW_SAMPLES, RawFormat
from as2d_cli.commands.times import seconds_of
from as2d_cli.commands.transcribe import RawSamples
from as2d_cli.errors import As2dError
from tests.fakes import tone, write_wav

WHERE = ["-", "", "a\0b", "x" * 300, "missing"]


def test_names_that_are_no_folders_stay_as_they_are() -> None:
    assert list(expand(WHERE, recursive=True, problem=pytest.fail)) == [Input(n) for n in WHERE]


def test_odd_names_in_folders(tmp_path: Path) -> None:
    names = [b"caf\xe9.wav", b"two\nlines.wav", b"-dash.wav"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: opening it would wait for ever
    found = list(expand([str(tmp_path)], recursive=True, problem=pytest.fail))
    assert sorted(os.fsencode(i.below) for i in found) == sorted(names)


def test_a_folder_stays_a_folder_unless_asked(tmp_path: Path) -> None:
    (given,) = expand([str(tmp_path)], recursive=False, problem=pytest.fail)
    assert given == Input(str(tmp_path))


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "x").write_bytes(b"x")
    found = list(expand([str(tmp_path)], recursive=True, problem=pytest.fail))
    assert [str(i.below) for i in found] == ["x"]


def test_all_kinds_of_raw_samples(tmp_path: Path) -> None:
    assert [kind.value for kind in RawSamples] == list(RAW_SAMPLES)
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * 250)
    for kind in RAW_SAMPLES:
        width = int(kind[1:3].strip("lb")) // 8 if kind[1].isdigit() else 1
        with AudioFile(path, raw=RawFormat(kind, 16_000, 2)) as audio:
            assert sum(map(len, audio)) == 64_000 // width // 2


def test_raw_samples_without_any(tmp_path: Path) -> None:
    audio = AudioFile("-", io.BytesIO(), RawFormat("s16le", 16_000, 1))
    with audio, pytest.raises(NotAudioError, match="empty file: <stdin>"):
        list(audio)


def test_a_socket_by_its_descriptor(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "a.wav", tone(0.5)).read_bytes()
    ours, theirs = socket.socketpair()

    def write() -> None:
        with theirs:
            theirs.sendall(wav)

    with ours:
        writer = threading.Thread(target=write)
        writer.start()
        with AudioFile(f"/dev/fd/{ours.fileno()}") as audio:
            assert sum(map(len, audio)) == 8_000
        writer.join()


def test_closing_while_another_thread_decodes(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "a.wav", tone(60)).read_bytes()
    reading, go_on = threading.Event(), threading.Event()

    class Slow(io.RawIOBase):
        """A pipe that gives nothing for a while after its first bytes."""

        def __init__(self) -> None:
            self._data = io.BytesIO(wav)

        def read(self, size: int = -1) -> bytes:
            if self._data.tell() > 200_000:
                reading.set()
                go_on.wait()
            return self._data.read(size)

    audio = AudioFile("-", Slow())  # type: ignore[arg-type]
    blocks: list[Samples] = []
    thread = threading.Thread(target=lambda: blocks.extend(audio))
    thread.start()
    assert reading.wait(20)
    audio.close()  # returns at once, and takes nothing from under the decoder
    go_on.set()
    thread.join(20)
    assert not thread.is_alive()
    assert sum(map(len, blocks)) < 60 * 16_000


class Counted:
    """An input whose samples are their own positions."""

    name, duration = "counted", 10.0

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.read = 0
        self.closed = False

    def __iter__(self) -> Iterator[Samples]:
        for i in range(10):
            self.read += 1
            yield np.arange(i * 16_000, (i + 1) * 16_000, dtype=np.float32)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("start", "end", "read"),
    [(0, None, 10), (0, 1, 1), (2.5, 2.75, 3), (3, 5.5, 6), (9.5, 99, 10), (0, 10, 10)],
)
def test_excerpt(start: float, end: float | None, read: int) -> None:
    whole = Counted()
    with Excerpt(whole, start, end) as part:
        samples = np.concatenate(list(part))
    last = min(end or 10, 10)
    np.testing.assert_array_equal(samples, np.arange(start * 16_000, last * 16_000))
    assert part.first == start * 16_000
    assert part.duration == last
    assert (whole.read, whole.closed, part.warnings) == (read, True, [])


def test_excerpt_after_the_end() -> None:
    with Excerpt(Counted(), 11) as part:
        assert list(part) == []
        assert part.warnings == ["is over at 10.0 s, before the asked-for part"]


TIMES = {
    "90": 90.0,
    "1:30": 90.0,
    "1:30.5": 90.5,
    ".5": 0.5,
    "1:01:30": 3690.0,
    "90:00": 5400.0,
}


@pytest.mark.parametrize("text", [*TIMES, "0:90", "1:70:00", "-1", "1e3", "", "nan", "1:2:3:4"])
def test_times(text: str) -> None:
    if text not in TIMES:
        with pytest.raises(As2dError, match=r"--start '.*' is no time"):
            seconds_of("--start", text)
    else:
        assert seconds_of("--start", text) == TIMES[text]
