"""What is timed as one piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio.windows import AudioWindow
from as2d_cli.bench.dataset import Clip
from as2d_cli.bench.units import Recordings, Unit, load_units
from as2d_cli.errors import As2dError
from tests.fakes import tone, write_wav


def units(*clips: Clip, whole: bool) -> tuple[list[Unit], list[str]]:
    problems: list[str] = []

    def language(clip: Clip, window: AudioWindow) -> str:
        assert float(np.abs(window.samples).max()) > 0.1
        if clip.language == "xx":
            raise As2dError("nobody knows xx")
        return clip.language or "de"

    found = load_units(
        clips, whole=whole, language=language, left_out=lambda error: problems.append(str(error))
    )
    return found, problems


@pytest.fixture
def clips(tmp_path: Path) -> list[Clip]:
    """Two seconds; silence and then speech, more than two windows; and one that is no audio."""
    long = np.concatenate([np.zeros(30 * 16_000), tone(35)])
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    return [
        Clip(write_wav(tmp_path / "short.wav", tone(2)), "en"),
        Clip(write_wav(tmp_path / "long.wav", long)),
        Clip(tmp_path / "bad.wav"),
        Clip(write_wav(tmp_path / "strange.wav", tone(2)), "xx"),
        Clip(write_wav(tmp_path / "silent.wav", np.zeros(16_000))),
    ]


def test_windows(clips: list[Clip]) -> None:
    found, problems = units(*clips, whole=False)
    assert [(unit.name, unit.language, unit.recording) for unit in found] == [
        ("short.wav window 0", "en", 0),
        ("long.wav window 1", "de", 1),
        ("long.wav window 2", "de", 1),
    ]
    assert [len(unit.pieces) for unit in found] == [1, 1, 1]
    assert found[1].start + found[1].audio_seconds == pytest.approx(found[2].start)
    assert len(problems) == 2
    assert "bad.wav" in problems[0] and problems[1] == "nobody knows xx"


def test_recordings(clips: list[Clip]) -> None:
    found, _ = units(*clips, whole=True)
    assert [unit.name for unit in found] == ["short.wav", "long.wav"]
    assert [piece.index for piece in found[1].pieces] == [1, 2]
    assert found[1].audio_seconds < 40, "the silent window is no work"


def test_samples_are_those_of_the_pieces(clips: list[Clip]) -> None:
    recordings = Recordings()
    for unit in units(*clips, whole=False)[0]:
        (window,) = recordings.windows(unit)
        (piece,) = unit.pieces
        assert (window.index, window.first, len(window.samples)) == (
            piece.index,
            piece.first,
            piece.count,
        )


def test_a_file_that_became_shorter_is_named(clips: list[Clip], tmp_path: Path) -> None:
    found, _ = units(*clips, whole=False)
    write_wav(tmp_path / "long.wav", tone(2))
    with pytest.raises(As2dError, match=r"long\.wav: changed"):
        Recordings().windows(found[2])
