"""Does a bundle understand speech? A clip whose words are known, heard with it alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from as2d_cli import _native, catalog
from as2d_cli.audio.decode import RATE, AudioFile
from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.speech import speech_windows
from as2d_cli.catalog import Bundle
from as2d_cli.catalog.bundle import VOICE
from as2d_cli.catalog.check import CheckResult
from as2d_cli.decoding.ort_library import ort_library
from as2d_cli.errors import As2dError

__all__ = ["known_clip", "transcribe_known_clip"]

_CLIP = Path(catalog.__file__).with_name("known_clip.ogg")
"""John F. Kennedy, 20 January 1961; a work of the US government, in the public domain."""

_WORDS = [
    "and",
    "so",
    "my",
    "fellow",
    "americans",
    "ask",
    "not",
    "what",
    "your",
    "country",
    "can",
    "do",
    "for",
    "you",
    "ask",
    "what",
    "you",
    "can",
    "do",
    "for",
    "your",
    "country",
]

_MOST_MISSING = 3
"""A small model may mishear a word or two; a damaged one says nothing like it."""


def known_clip() -> Samples:
    """Eleven seconds of English."""
    with AudioFile(_CLIP) as audio:
        return np.concatenate(list(audio))


def transcribe_known_clip(bundle: Bundle, target: Bundle | None = None) -> CheckResult:
    """Transcribes eleven seconds of English; fails when more than three words are missing.

    Args:
        target: the target of a head.
    """
    if bundle.family == VOICE:
        return _found_in_known_clip(bundle)
    if "en" not in bundle.languages:
        return CheckResult("speech", True, "not heard: the known clip is in English")
    samples = known_clip()
    try:
        heard_through = None if target is None else target.path
        _, text = _native.draft_alone(ort_library(), bundle.path, samples, "en", heard_through)
    except (_native.NativeError, As2dError) as error:
        return CheckResult("speech", False, str(error))
    said = text.decode("utf-8", "replace")
    heard = "".join(c if c.isalpha() else " " for c in said.lower()).split()
    missing = [word for word in _WORDS if word not in heard]
    if len(missing) > _MOST_MISSING or len(heard) > 2 * len(_WORDS):
        problem = f"{bundle.path}: a known clip came out as '{said[:60]}'"
        return CheckResult("speech", False, problem)
    return CheckResult("speech", True, f"{len(_WORDS) - len(missing)} of {len(_WORDS)} words")


def _found_in_known_clip(bundle: Bundle) -> CheckResult:
    """Whether a voice-activity model finds the speaker, who speaks for most of the clip."""
    from as2d_cli.decoding.voice import VoiceModel

    try:
        model = VoiceModel(bundle.encoder_path)
        samples = known_clip()
        found = list(speech_windows([samples], model.start()))
    except As2dError as error:
        return CheckResult("speech", False, str(error))
    length = len(samples) / RATE
    spoken = sum(b - a for window in found for a, b in window.spoken)
    if spoken < length / 2:
        problem = f"{bundle.path}: finds speech for {spoken:.1f} s of a clip of {length:.1f} s"
        return CheckResult("speech", False, problem)
    return CheckResult("speech", True, f"{spoken:.1f} of {length:.1f} s")
