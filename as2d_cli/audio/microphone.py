"""What is said into a microphone, as an input that ends when it is told to."""

from __future__ import annotations

import contextlib
import io
import queue
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from as2d_cli.audio.decode import AudioFile, NotAudioError
from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.raw import RawFormat
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Microphone", "default_microphone"]

_NAME = "<microphone>"
_MOST_CHANNELS = 8
_BACKLOG = 120.0
"""Seconds kept for a transcription that is slower than speech; more would be dropped."""


class Microphone:
    """One recording; see `as2d_cli.audio.excerpt.AudioInput`.

    It is opened at the device's own rate and channels, and goes on in PortAudio's thread until
    `stop`, which any thread may call at any time.
    """

    name = _NAME
    duration = None

    def __init__(self, device: str | None = None, library: Any = None) -> None:
        """Opens nothing yet.

        Args:
            device: number or part of the name of a sound device; the system's own if left out.
            library: what to use in place of sounddevice.
        """
        self._device = int(device) if device is not None and device.isdecimal() else device
        self._library = library
        self._stopped = threading.Event()
        self._sound: _Sound | None = None
        self._stream: Any = None
        self._audio: AudioFile | None = None

    def open(self) -> Microphone:
        """Starts to record.

        Raises:
            As2dError: status UNAVAILABLE; there is no PortAudio, or no such device.
        """
        library = self._library or _sounddevice()
        try:
            facts = library.query_devices(self._device, "input")
            rate = round(facts["default_samplerate"])
            channels = min(int(facts["max_input_channels"]), _MOST_CHANNELS)
            sound = _Sound(round(_BACKLOG * rate * channels * 4))
            self._stream = library.RawInputStream(
                samplerate=rate,
                channels=channels,
                dtype="float32",
                device=self._device,
                callback=sound.take,
            )
            self._stream.start()
        except (library.PortAudioError, ValueError, OSError) as e:
            what = "" if self._device is None else f" '{self._device}'"
            raise As2dError(
                f"cannot record from the microphone{what}: {' '.join(str(e).split())}",
                remedy="connect one, or choose another with --device",
                status=ExitStatus.UNAVAILABLE,
            ) from e
        self._sound = sound
        if self._stopped.is_set():
            self.stop()
        raw = RawFormat("f32le", rate, channels)
        self._audio = AudioFile("-", cast(BinaryIO, sound), raw, name=_NAME)
        return self

    @property
    def warnings(self) -> list[str]:
        """What went wrong so far."""
        return self._audio.warnings if self._audio is not None else []

    def __iter__(self) -> Iterator[Samples]:
        assert self._audio is not None and self._sound is not None
        with contextlib.suppress(NotAudioError):  # stopped before anything was said
            yield from self._audio
        if self._sound.overflows:
            times = "once" if self._sound.overflows == 1 else f"{self._sound.overflows} times"
            self.warnings.append(f"the computer was too slow {times}, and some sound is lost")

    def stop(self) -> None:
        """Ends the recording; what was said before still comes."""
        self._stopped.set()
        if self._sound is not None:
            self._sound.end()

    def close(self) -> None:
        """Frees the device."""
        self.stop()
        if self._stream is not None:
            self._stream.close()
        if self._audio is not None:
            self._audio.close()


def default_microphone(library: Any = None) -> str:
    """Name and rate of the system's own; `library` in place of sounddevice.

    Raises:
        As2dError: status UNAVAILABLE; there is no PortAudio, or no microphone.
    """
    library = library or _sounddevice()
    try:
        facts = library.query_devices(None, "input")
    except (library.PortAudioError, ValueError) as e:
        raise As2dError(f"none ({' '.join(str(e).split())})", status=ExitStatus.UNAVAILABLE) from e
    return f"{facts['name']}, {facts['default_samplerate']:.0f} Hz"


class _Sound(io.RawIOBase):
    """Bytes from PortAudio's thread to the decoder's.

    Attributes:
        overflows: how often some were lost.
    """

    def __init__(self, most: int) -> None:
        self._blocks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._most = most
        self._taken = 0  # bytes; written by PortAudio's thread only
        self._given = 0  # by the decoder's only
        self._rest = b""
        self._ended = False
        self.overflows = 0

    def readable(self) -> bool:
        return True

    def take(self, data: Any, frames: int, time: Any, status: Any) -> None:
        """PortAudio's call for each block."""
        block = bytes(data)
        full = self._taken - self._given + len(block) > self._most
        if full or status.input_overflow:
            self.overflows += 1
        if not full:
            self._taken += len(block)
            self._blocks.put(block)

    def end(self) -> None:
        """No more will be read than what is here."""
        self._ended = True
        self._blocks.put(b"")

    def read(self, size: int = -1) -> bytes:
        """Waits for the next bytes, at most `size`; empty at the end."""
        while not self._rest:
            if self._ended and self._blocks.empty():
                return b""
            self._rest = self._blocks.get()
            self._given += len(self._rest)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _sounddevice() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as e:  # OSError: the package is there, but not PortAudio
        raise As2dError(
            f"no microphone: {e}",
            remedy="install PortAudio (Debian: libportaudio2)",
            status=ExitStatus.UNAVAILABLE,
        ) from e
    return sounddevice
