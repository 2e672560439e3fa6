"""The published voice-activity model on real speech, and on what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.speech import FRAME, speech_windows
from as2d_cli.catalog import ensure_bundle
from as2d_cli.catalog.check import check_bundle
from as2d_cli.decoding.voice import VoiceModel
from as2d_cli.errors import As2dError
from as2d_cli.tasks.known_clip import transcribe_known_clip

CLIP = Path(__file__).parents[1] / "data" / "jfk.flac"
RATE = 16_000


@pytest.fixture(scope="module")
def voice() -> VoiceModel:
    return VoiceModel(ensure_bundle("silero-vad").encoder_path)


def _speech() -> NDArray[np.float32]:
    with AudioFile(CLIP) as audio:
        return np.concatenate(list(audio))


def _spoken(voice: VoiceModel, samples: NDArray[np.float32]) -> list[tuple[float, float]]:
    found = speech_windows([samples], voice.start())
    return [span for window in found for span in window.spoken]


def _music(seconds: float) -> NDArray[np.float32]:
    t = np.arange(round(seconds * RATE)) / RATE
    chord = sum(np.sin(2 * np.pi * f * t) for f in (220, 277.2, 329.6, 440))
    return np.asarray(chord * 0.08 * (1 + np.sin(4 * np.pi * t)) / 2, np.float32)


@pytest.mark.model
@pytest.mark.parametrize("level", [1.0, 1e-3])
def test_speech_is_found_however_quiet(voice: VoiceModel, level: float) -> None:
    spans = _spoken(voice, _speech() * np.float32(level))
    assert spans[0][0] == pytest.approx(0.35, abs=0.15)
    assert spans[-1][1] == pytest.approx(10.7, abs=0.4)
    assert 6 < sum(b - a for a, b in spans) < 10


@pytest.mark.model
@pytest.mark.parametrize("level", [1e-3, 0.03, 0.3])
def test_noise_is_none(voice: VoiceModel, level: float) -> None:
    noise = np.random.default_rng(0).standard_normal(10 * RATE).astype(np.float32)
    assert _spoken(voice, noise * np.float32(level)) == []


@pytest.mark.model
def test_music_is_none_and_speech_after_it_is_found(voice: VoiceModel) -> None:
    spans = _spoken(voice, np.concatenate([_music(20), _speech()]))
    assert spans[0][0] == pytest.approx(20.4, abs=0.3)


@pytest.mark.model
def test_pieces_of_a_stream_are_the_stream(voice: VoiceModel) -> None:
    samples = _speech()[: 300 * FRAME]
    whole = voice.start()(samples)
    listen = voice.start()
    parts = [listen(samples[i : i + 7 * FRAME]) for i in range(0, len(samples), 7 * FRAME)]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)


@pytest.mark.model
def test_the_bundle_is_proven() -> None:
    results = list(check_bundle(ensure_bundle("silero-vad"), transcribe_known_clip))
    assert [(r.name, r.ok) for r in results] == [("files", True), ("speech", True)]


def test_a_broken_graph_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_text("<html>")
    with pytest.raises(As2dError, match=r"x\.onnx: ONNX Runtime cannot load it"):
        VoiceModel(path)
