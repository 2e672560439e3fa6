"""A microphone, simulated: its sound comes in real time from a file, in a thread of its own."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from as2d_cli.audio.microphone import Microphone
from as2d_cli.decoding import Window
from as2d_cli.errors import As2dError, ExitStatus
from tests.fakes import Script, run_cli, tone
from tests.sound import FakeSound


def _speech(seconds: float, channels: int = 1, rate: int = 48_000) -> NDArray[np.float32]:
    return np.repeat(tone(seconds, rate)[:, None], channels, axis=1).astype(np.float32)


@pytest.mark.parametrize(("channels", "rate"), [(1, 48_000), (2, 44_100)])
def test_all_that_was_said_before_the_end_comes(channels: int, rate: int) -> None:
    sound = FakeSound(_speech(1, channels, rate), rate)
    microphone = Microphone("3", sound)
    sound.said = microphone.stop
    samples = np.concatenate(list(microphone.open()))
    assert len(samples) == pytest.approx(16_000, abs=50)
    assert np.abs(np.fft.rfft(samples[:16_000])).argmax() == 440
    assert sound.opened == {
        "samplerate": rate,
        "channels": channels,
        "dtype": "float32",
        "device": 3,
    }
    microphone.close()
    assert sound.closed and microphone.warnings == []


def test_what_was_lost_is_told() -> None:
    sound = FakeSound(_speech(0.5), overflows=(2, 5))
    microphone = Microphone(None, sound)
    sound.said = microphone.stop
    assert list(microphone.open())
    assert microphone.warnings == ["the computer was too slow 2 times, and some sound is lost"]


def test_stopped_before_it_began() -> None:
    microphone = Microphone(None, FakeSound(np.zeros((0, 1), np.float32)))
    microphone.stop()
    assert list(microphone.open()) == []


def test_a_device_that_is_not_there() -> None:
    ran = run_cli("transcribe", "--mic", "--device", "x", sound=FakeSound(_speech(1)))
    assert (ran.status, ran.stdout) == (1, "")  # as any input that cannot be opened
    assert ran.stderr == (
        "as2d: cannot record from the microphone 'x': No input device matching 'x'; "
        "connect one, or choose another with --device\n"
    )


@pytest.mark.parametrize("error", [OSError("PortAudio library not found"), ImportError("no such")])
def test_without_portaudio_only_this_fails(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def find_spec(self, name: str, *rest: object) -> None:
            if name == "sounddevice":
                raise error

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    with pytest.raises(As2dError) as e:
        Microphone().open()
    assert e.value.status == ExitStatus.UNAVAILABLE
    assert str(e.value) == f"no microphone: {error}; install PortAudio (Debian: libportaudio2)"


def test_words_come_while_it_goes_on_and_the_last_are_kept() -> None:
    """Two sentences with a pause between: the first is written before all is said."""
    pause = np.zeros((2 * 48_000, 1), np.float32)
    sound = FakeSound(np.concatenate([_speech(1), pause, _speech(1), pause]))
    over = threading.Event()
    sound.said = over.set
    early: list[bool] = []

    def text(window: Window) -> str:
        early.append(not over.is_set())
        return " Hello world."

    ran = run_cli(
        "transcribe", "--mic", "--end", "4.5", "-f", "tsv", script=Script(texts=text), sound=sound
    )
    assert (ran.status, ran.stderr) == (0, "as2d: <microphone>: recording until Ctrl-C\n")
    assert len(ran.stdout.splitlines()) == 3
    assert early[0]
