"""Any container and codec -> a stream of 16 kHz mono float32, through PyAV alone."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import av
import numpy as np
from av.audio.resampler import AudioResampler

from as2d_cli.audio.downmix import Downmixer, Samples
from as2d_cli.audio.raw import RawFormat
from as2d_cli.audio.spool import Prefixed, index_comes_last, spooled
from as2d_cli.descriptors import descriptor_of
from as2d_cli.errors import As2dError

__all__ = ["RATE", "AudioFile", "NotAudioError", "display_name"]

RATE = 16_000
"""Samples per second of everything that leaves this module."""

_BLOCK = RATE
"""Samples per block handed on: one second, whatever the size of the file's own frames."""

_LOUDEST = 1e5
"""A float sample beyond this (100 dB above full scale) is garbage and not sound."""

_RATES = (1_000, 768_000)
_MOST_CHANNELS = 64
"""What FFmpeg's resampler takes."""

_MAX_GAP = 30 * RATE
"""A hole in the time line longer than this is not filled: it is more likely a wrong time stamp."""

_UNKNOWN_SIZE = 0x7FFF0000
"""Programs that write WAV into a pipe put such a size, or more, into its header."""

_HEADERLESS = {".gsm": "gsm", ".g722": "g722"}
"""The only formats told by the suffix, after content has failed to: their bytes carry no mark."""

_EXACT_LENGTH = {"wav", "w64", "aiff", "au", "avi", "caf", "flac", "mov", "mp4", "matroska", "webm"}
"""Containers whose header tells the true length, so that less of it means a truncated file."""

_MAX_ERRORS = 10_000
_MAX_PLANES = 8


class NotAudioError(As2dError):
    """There is no sound in the input: a picture, a text, nothing at all."""


class AudioFile:
    """One audio input, read once from front to back; iterate over it for blocks of samples.

    Blocks are float32[n], 1 <= n <= 16000, 16 kHz, mono. Memory does not depend on the length of
    the input nor on anything that its header claims.

    Attributes: name: for messages and results. duration: seconds according to the header, None
        where it does not say. Only for display: it may lie. warnings: what was wrong with the
        input and survived; complete when the iteration has ended.

    Raises: As2dError: missing, a directory, unreadable; NotAudioError: empty, or without audio. The
        message names the file. Raised by the constructor, or by the iteration where only decoding
        shows it.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        stdin: BinaryIO | None = None,
        raw: RawFormat | None = None,
        *,
        name: str | None = None,
    ) -> None:
        """Opens `source`; ``-`` stands for `stdin`, which stays open.

        Args:
            raw: it is samples alone, without a header.
            name: for messages; that of `source` if left out.
        """
        self.name = name or display_name(source)
        self._raw = raw
        self.warnings: list[str] = []
        self._bad_samples = 0
        self._errors = 0
        self._filled, self._left_out = _Gaps(), _Gaps()
        self._decoding = threading.Lock()
        self._closed = False
        self._is_ours = os.fspath(source) != "-"
        if not self._is_ours:
            if stdin is None:
                raise As2dError("standard input is closed", remedy="give a file, or a pipe for '-'")
            self._file: BinaryIO = stdin
            suffix = ""
        else:
            self._file = _opened(Path(source), self.name)
            suffix = Path(source).suffix.lower()
        try:
            self._reader = _Reader(self._streamable())
            self._container = self._open(suffix)
            self._format: str = self._container.format.name
            self._stream = self._audio_stream()
        except BaseException:
            self._close_file()
            raise
        self.duration = self._declared()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the decoder and closes the file (not standard input).

        Never waits: when another thread is inside the iteration, that thread does it.
        """
        self._closed = True
        self._free()

    def _free(self) -> None:
        if self._decoding.acquire(blocking=False):
            try:
                self._container.close()
                self._close_file()
            finally:
                self._decoding.release()

    def __iter__(self) -> Iterator[Samples]:
        count = 0
        blocks = self._blocks()
        while True:
            with self._decoding:
                block = None if self._closed else self._next(blocks)
            if self._closed:
                self._free()
                return
            if block is None:
                break
            count += len(block)
            yield block
        if self._reader.total == 0:  # raw samples have no header that would be missed before
            raise NotAudioError(f"empty file: {self.name}")
        self._judge(count / RATE)

    def _next(self, blocks: Iterator[Samples]) -> Samples | None:
        try:
            return next(blocks, None)
        except av.error.FFmpegError as e:
            raise As2dError(
                f"cannot decode {self.name}: {e.strerror}", remedy="convert it to WAV or FLAC"
            ) from e

    # Opening

    def _streamable(self) -> BinaryIO | Prefixed:
        """The file, or what can be read in its place where it can only be read once."""
        if self._raw is not None or _seekable(self._file):
            return self._file
        try:
            last, head = index_comes_last(self._file)
        except OSError as e:
            raise self._unreadable(e) from e
        if not last:
            return Prefixed(self._file, head)
        copy = spooled(self._file, head, self.name)
        self._close_file()
        self._file, self._is_ours = copy, True
        return copy

    def _open(self, suffix: str) -> Any:
        reader = self._reader
        try:
            if self._raw is not None:
                return _container(reader, self._raw.samples, self._raw.options)
            return _container(reader, None)
        except av.error.FFmpegError as e:
            if reader.total == 0:
                raise NotAudioError(f"empty file: {self.name}") from e
            fallback = _HEADERLESS.get(suffix)
            if fallback is not None and reader.rewind():
                try:
                    return _container(reader, fallback)
                except av.error.FFmpegError:
                    pass
            raise self._not_audio() from e
        except OSError as e:  # of the file itself: a bad sector, a descriptor open for writing only
            raise self._unreadable(e) from e

    def _audio_stream(self) -> Any:
        streams = self._container.streams.audio
        if not streams:
            kinds = {s.type for s in self._container.streams}
            if "video" in kinds and self._format not in _PICTURES:
                raise NotAudioError(f"no audio track in {self.name}")
            raise self._not_audio()
        best = self._container.streams.best("audio") or streams[0]
        if best.codec_context is None:
            raise As2dError(
                f"unknown audio codec in {self.name}", remedy="convert it to WAV or FLAC"
            )
        return best

    def _declared(self) -> float | None:
        stream = self._stream
        if self._format == "wav":
            # FFmpeg shortens the promise to what the file holds, and a truncated file looks whole.
            header = _wav_header(self._reader.head)
            return None if header is None else header.seconds
        if stream.duration is not None and stream.time_base is not None:
            seconds = float(stream.duration * stream.time_base)
        elif self._container.duration is not None:
            seconds = self._container.duration / av.time_base
        else:
            return None
        rate, channels = stream.codec_context.sample_rate, stream.codec_context.channels
        bits = _bits(stream.codec_context)
        if seconds <= 0 or (bits and seconds * rate * channels * bits / 8 >= _UNKNOWN_SIZE):
            return None
        return seconds

    def _unreadable(self, error: OSError) -> As2dError:
        return As2dError(f"cannot read {self.name}: {error.strerror or error}")

    def _not_audio(self) -> As2dError:
        header = _wav_header(self._reader.head)
        if header is not None and not _possible(header.rate, header.channels):
            return self._impossible(header.rate, header.channels)
        return NotAudioError(f"not an audio file: {self.name}")

    def _impossible(self, rate: int, channels: int) -> As2dError:
        return As2dError(
            f"impossible header in {self.name}: {rate} Hz, {channels} channels",
            remedy="convert it to WAV or FLAC",
        )

    # Decoding

    def _blocks(self) -> Iterator[Samples]:
        line: _Line | None = None
        clock = _Clock()
        for frame in self._frames():
            rate, channels = frame.sample_rate, frame.layout.nb_channels
            if not _possible(rate, channels):
                raise self._impossible(rate, channels)
            if line is None or not line.takes(frame):
                # A stream may change its rate or channels half-way (joined MP3s, chained OGG).
                if line is not None:
                    yield from line.finish()
                line = _Line(frame, self.warnings)
            gap = clock.gap(frame)
            if gap * RATE > _MAX_GAP:
                self._left_out.add(gap)
            elif gap > 0:
                # So that the words after the damage keep their times.
                self._filled.add(gap)
                yield from line.silence(round(gap * RATE))
            yield from line.push(self._sane(frame))
        if line is not None:
            yield from line.finish()
        elif self._errors:
            raise self._not_audio()

    def _frames(self) -> Iterator[Any]:
        """Decoded frames; damaged packets are counted and left out."""
        packets = self._container.demux(self._stream)
        while self._errors < _MAX_ERRORS:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except (av.error.EOFError, av.error.InvalidDataError, OSError) as e:
                if isinstance(e, av.error.EOFError):
                    return
                self._errors += 1
                if not isinstance(e, av.error.InvalidDataError):
                    if self._reader.total == 0:  # raw samples have no header that is read before
                        raise self._unreadable(e) from e
                    self.warnings.append(f"reading stopped early: {e.strerror or e}")
                    return
                # A generator that has raised is over; a new one goes on at the next packet.
                packets = self._container.demux(self._stream)
                continue
            try:
                yield from packet.decode()
            except av.error.EOFError:
                return
            except av.error.FFmpegError:
                self._errors += 1

    def _sane(self, frame: Any) -> Any:
        """The frame with what is no number replaced by zero, before a filter can spread it."""
        fmt = frame.format
        if not fmt.name.startswith(("flt", "dbl")):
            return frame
        if fmt.is_planar and frame.layout.nb_channels >= _MAX_PLANES:
            return frame  # see _Line.push; the downmixer's own check has to do
        data = frame.to_ndarray()
        bad = ~(np.abs(data) < _LOUDEST)  # true for NaN as well
        count = int(np.count_nonzero(bad))
        if count == 0:
            return frame
        self._bad_samples += count
        data[bad] = 0
        clean = av.AudioFrame.from_ndarray(data, format=fmt.name, layout=frame.layout.name)
        clean.sample_rate = frame.sample_rate
        return clean

    def _judge(self, found: float) -> None:
        """Warnings that need the whole: bad samples, damage, a file shorter than it says."""
        if self._left_out:
            self.warnings.append(f"{self._left_out} missing in the time line, left out")
        if self._filled:
            self.warnings.append(f"{self._filled} damaged or missing, taken as silence")
        if self._bad_samples:
            plural = (
                "s that are no numbers were" if self._bad_samples > 1 else " that is no number was"
            )
            self.warnings.append(f"{self._bad_samples} sample{plural} replaced by zero")
        declared = self.duration if _EXACT_LENGTH & set(self._format.split(",")) else None
        # Many a sound file ends in a packet that no decoder reads; only what can be missed is told.
        lacking = declared is not None and found < declared - max(0.1, 0.01 * declared)
        if lacking:
            self.warnings.append(
                f"truncated or damaged: {found:.1f} of {declared:.1f} s could be read"
            )
        elif self._errors and declared is None:
            self.warnings.append(f"damaged: {self._errors} unreadable packets were left out")

    def _close_file(self) -> None:
        if self._is_ours:
            self._file.close()


_PICTURES = {"image2", "png_pipe", "jpeg_pipe", "gif", "bmp_pipe", "webp_pipe", "tiff_pipe", "tty"}


def display_name(source: str | os.PathLike[str]) -> str:
    """The name of `source` as messages and results show it: undecodable bytes as ``\\xNN``."""
    path = os.fspath(source)
    if path == "-":
        return "<stdin>"
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Reader:
    """What PyAV reads from. Nameless, so that no suffix decides; seeks only in a real file."""

    def __init__(self, file: BinaryIO | Prefixed) -> None:
        self._file = file
        self.head = b""
        self.total = 0
        if not isinstance(file, Prefixed) and _seekable(file):
            self.seek = self._seek
            self.tell = file.tell

    def read(self, size: int) -> bytes:
        data = self._file.read(size) or b""  # a short read is fine, an empty one is the end
        self.total += len(data)
        if not self.head:
            self.head = data[:4096]
        return data

    def _seek(self, offset: int, whence: int = 0) -> int:
        assert not isinstance(self._file, Prefixed)
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError):
            # A broken file leads anywhere, and PyAV would print an exception: FFmpeg's own way.
            return -errno.EINVAL

    def rewind(self) -> bool:
        if not hasattr(self, "seek"):
            return False
        self.seek(0)
        return True


class _Line:
    """Resampler and downmixer for a stretch of frames of one kind."""

    def __init__(self, frame: Any, warnings: list[str]) -> None:
        self._kind = self._kind_of(frame)
        self._layout = frame.layout
        self._mixer = Downmixer(frame.layout.nb_channels, _BLOCK, warnings)
        self._resampler: AudioResampler | None = None

    @staticmethod
    def _kind_of(frame: Any) -> tuple[object, ...]:
        return (frame.format.name, frame.layout.name, frame.layout.nb_channels, frame.sample_rate)

    def takes(self, frame: Any) -> bool:
        return self._kind == self._kind_of(frame)

    def push(self, frame: Any) -> Iterator[Samples]:
        if self._resampler is None:
            # Packed, because PyAV reads beyond the planes of a planar frame of 8 and more channels.
            self._resampler = AudioResampler(format="flt", layout=self._layout, rate=RATE)
        frame.pts = None  # holes are filled here; the resampler must not fill them again
        for out in self._resampler.resample(frame):
            yield from self._mixer.push(self._planar(out))

    def silence(self, samples: int) -> Iterator[Samples]:
        yield from self._drain()
        yield from self._mixer.push(np.zeros((self._mixer.channels, samples), np.float32))

    def finish(self) -> Iterator[Samples]:
        yield from self._drain()
        yield from self._mixer.finish()

    def _drain(self) -> Iterator[Samples]:
        # A drained resampler takes nothing more: the next frame gets a new one.
        resampler, self._resampler = self._resampler, None
        if resampler is not None:
            for out in resampler.resample(None):
                yield from self._mixer.push(self._planar(out))

    def _planar(self, frame: Any) -> Samples:
        data: Samples = frame.to_ndarray().reshape(-1, self._mixer.channels).T
        return data


@dataclass
class _Gaps:
    """Counted, for a broken file may have any number of them."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        places = f" in {self.count} places" if self.count > 1 else ""
        return f"{self.seconds:.1f} s{places}"


class _Clock:
    """Finds holes in the time stamps of successive frames."""

    _LEAST = 0.05  # containers with millisecond stamps jitter by less

    def __init__(self) -> None:
        self._next: float | None = None

    def gap(self, frame: Any) -> float:
        """Seconds missing before `frame`; 0 when it follows the one before, or goes back."""
        missing = 0.0
        start = frame.time
        if start is not None and self._next is not None and start - self._next > self._LEAST:
            missing = start - self._next
        if start is None:
            start = self._next or 0.0
        self._next = start + frame.samples / frame.sample_rate
        return missing


def _opened(path: Path, name: str) -> BinaryIO:
    try:
        if not name:  # Path("") is the current folder
            raise As2dError("no such file: ''", remedy="check the name")
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise As2dError(
                f"is a directory: {name}", remedy="give audio files, or --recursive for those in it"
            )
        if stat.S_ISREG(info.st_mode) and info.st_size == 0:
            raise NotAudioError(f"empty file: {name}")
        return _bytes_of(path)
    except FileNotFoundError as e:
        raise As2dError(f"no such file: {name}", remedy="check the name") from e
    except OSError as e:
        raise As2dError(f"cannot read {name}: {e.strerror}") from e
    except ValueError as e:  # a NUL byte in the name
        raise As2dError(f"no such file: {name}", remedy="check the name") from e


def _bytes_of(path: Path) -> BinaryIO:
    try:
        return cast(BinaryIO, path.open("rb", buffering=0))
    except OSError as e:
        descriptor = descriptor_of(str(path))
        if e.errno != errno.ENXIO or descriptor is None:
            raise
        # A socket cannot be opened by its name in /dev/fd, but its descriptor is there.
        return cast(BinaryIO, os.fdopen(os.dup(descriptor), "rb", buffering=0))


def _container(reader: _Reader, kind: str | None, options: dict[str, str] | None = None) -> Any:
    return av.open(reader, mode="r", format=kind, options=options or {}, metadata_errors="replace")


def _seekable(file: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, io.UnsupportedOperation):
        return file.seekable()


def _bits(context: Any) -> int:
    fmt = context.format
    return 0 if fmt is None else int(fmt.bytes) * 8


@dataclass(frozen=True)
class _WavHeader:
    """What a WAV header promises; `seconds`: None for nothing, or for a pipe writer's filler."""

    rate: int
    channels: int
    seconds: float | None


def _wav_header(head: bytes) -> _WavHeader | None:
    """The header at the start of a file; None where there is none."""
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    at, rate, channels, bytes_per_second = 12, 0, 0, 0
    found = False
    seconds = None
    while at + 8 <= len(head):
        size = int.from_bytes(head[at + 4 : at + 8], "little")
        if head[at : at + 4] == b"fmt " and at + 24 <= len(head):
            found = True
            channels = int.from_bytes(head[at + 10 : at + 12], "little")
            rate = int.from_bytes(head[at + 12 : at + 16], "little")
            bytes_per_second = rate * int.from_bytes(head[at + 20 : at + 22], "little")
        elif head[at : at + 4] == b"data":
            if bytes_per_second > 0 and 0 < size < _UNKNOWN_SIZE:
                seconds = size / bytes_per_second
            break
        at += 8 + size + (size & 1)
    return _WavHeader(rate, channels, seconds) if found else None


def _possible(rate: int, channels: int) -> bool:
    return _RATES[0] <= rate <= _RATES[1] and 1 <= channels <= _MOST_CHANNELS
