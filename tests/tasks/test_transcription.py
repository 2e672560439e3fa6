"""The task as a library user calls it: order, limits, languages, failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.decoding import Window
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import ModelRequest
from as2d_cli.tasks.transcript import Progress, Segment, SourceInfo, Transcript
from as2d_cli.tasks.transcription import TranscribeOptions, transcribe
from tests.fakes import LANGUAGES, START, Script, backend, tokens_of, tone, write_wav


@dataclass
class Watcher:
    """A sink and a monitor that write down what they are told."""

    calls: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    talk: list[str] = field(default_factory=list)
    last: Progress | None = None

    def begin(self, info: SourceInfo) -> None:
        self.calls.append("begin")

    def commit(self, text: str) -> None:
        self.calls.append("commit")
        self.commits.append(text)

    def segment(self, segment: Segment) -> None:
        self.calls.append("segment")
        self.segments.append(segment)

    def end(self, transcript: Transcript) -> None:
        self.calls.append("end")

    def abandon(self) -> None:
        self.calls.append("abandon")

    def info(self, text: str) -> None:
        self.talk.append(f"info {text}")

    def notice(self, text: str) -> None:
        self.talk.append(f"notice {text}")

    def warning(self, text: str) -> None:
        self.talk.append(f"warning {text}")

    def error(self, text: str) -> None:
        self.talk.append(f"error {text}")

    def progress(self, progress: Progress) -> None:
        self.last = progress

    def finished(self, transcript: Transcript) -> None:
        self.calls.append("finished")


REQUEST = ModelRequest("whisper-base", "moonshine-tiny-en")


def _run(
    script: Script,
    *paths: Path,
    options: TranscribeOptions | None = None,
    request: ModelRequest = REQUEST,
) -> tuple[list[Transcript], Watcher]:
    watcher = Watcher()
    done = transcribe(
        paths,
        request,
        options or TranscribeOptions(),
        sink=watcher,
        monitor=watcher,
        backend=backend(script),
    )
    return done, watcher


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """70 s: three windows."""
    return write_wav(tmp_path / "clip.wav", tone(70))


def _windows(script: Script) -> list[Window]:
    return [entry[1] for entry in script.log if entry[0] == "window"]


LONG = " ".join(str(n) for n in np.random.default_rng(0).integers(0, 99_999, 150))
"""More bytes than a window may have tokens, and no loop."""

TEXTS = [" One ļ.", " Two 日本.", " Three."]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_text_comes_in_the_order_of_the_audio(clip: Path, reverse: bool, chunk: int) -> None:
    (done,), watcher = _run(Script(texts=TEXTS, reverse=reverse, chunk=chunk), clip)
    assert "".join(watcher.commits) == "One ļ.Two 日本.Three."
    assert [s.text for s in done.segments] == ["One ļ.", "Two 日本.", "Three."]
    assert done.text == "One ļ. Two 日本. Three."
    assert watcher.segments == done.segments
    assert "\ufffd" not in done.text
    order = [c for c in watcher.calls if c != "commit"]
    assert order == ["begin", *["segment"] * 3, "end", "finished"]


def test_a_drafter_that_was_dropped_is_in_the_result(clip: Path) -> None:
    (done,), watcher = _run(Script(texts=TEXTS, dropped=0), clip)
    (decision,) = done.decisions
    assert decision.at == done.segments[0].end
    assert not decision.drafting
    assert decision.reason == "drafting does not pay"
    assert all(line.startswith("info ") for line in watcher.talk)


def test_what_a_drafter_said_otherwise_is_in_the_result(clip: Path) -> None:
    said = [" One.", " Too.", ""]

    def ends(window: Window) -> dict[str, tuple[int, ...]]:
        return {"draft": tokens_of(said[window.index])}

    script = Script(texts=[" One.", " Two.", " Three."], ends=ends)
    (result,), _ = _run(script, clip)
    assert result.drafts == ["Too."]


def test_segments_tile_the_audio(clip: Path) -> None:
    (done,), _ = _run(Script(texts=TEXTS), clip)
    edges = [(s.start, s.end) for s in done.segments]
    assert edges[0][0] == 0 and edges[-1][1] == done.duration == 70.0
    assert all(a[1] == b[0] for a, b in pairwise(edges))


def test_windows_carry_prompt_language_and_limit(clip: Path) -> None:
    script = Script(language=("de", 0.7))
    (done,), watcher = _run(script, clip)
    assert {tuple(w.prompt) for w in _windows(script)} == {(START, LANGUAGES["de"], 0, 0)}
    assert {(w.max_tokens, w.language) for w in _windows(script)} == {(444, "de")}
    assert (done.language, done.language_probability) == ("de", 0.7)
    assert ("start", False) in script.log  # the drafter knows English only
    assert watcher.talk == [
        "info plan: as2d, by rule",
        f"info {clip}: language de (70%)",
        f"notice {clip}: drafter moonshine-tiny-en does not know language de, "
        "the target goes alone",
    ]


def test_given_language_is_not_detected(clip: Path) -> None:
    script = Script()
    (done,), _ = _run(script, clip, options=TranscribeOptions(language="en"))
    assert not [entry for entry in script.log if entry[0] == "detect"]
    assert (done.language, done.language_probability) == ("en", None)
    assert ("start", True) in script.log


def test_english_only_target_needs_no_detection(clip: Path) -> None:
    script = Script()
    (done,), _ = _run(script, clip, request=ModelRequest("whisper-tiny.en", None))
    assert done.language == "en"
    assert not [entry for entry in script.log if entry[0] == "detect"]
    assert ("open", "whisper-tiny.en", None) in script.log


@pytest.mark.parametrize("limit", [1, 2, 7, 444, 10_000])
def test_limit_is_exact(clip: Path, limit: int) -> None:
    script = Script(texts=["x" * 600])
    options = TranscribeOptions(max_tokens=limit, fallback=False)
    (done,), _ = _run(script, clip, options=options)
    assert {len(s.tokens) for s in done.segments} == {min(limit, 444)}


def test_silence_before_speech_is_skipped_and_not_listened_to(tmp_path: Path) -> None:
    quiet = np.zeros(45 * 16_000)
    path = write_wav(tmp_path / "x.wav", np.concatenate([quiet, tone(10)]))
    script = Script()
    (done,), _ = _run(script, path)
    (window,) = _windows(script)
    assert window.start == pytest.approx(44.6, abs=0.05)
    assert [entry for entry in script.log if entry[0] == "detect"] == [
        ("detect", len(window.samples))
    ]
    assert done.segments[0].start == pytest.approx(45, abs=0.04)
    assert done.duration == 55.0


def test_everything_is_windows_of_all_there_is(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "x.wav", np.concatenate([tone(1, level=1e-4), tone(1)]))
    script = Script()
    (done,), _ = _run(script, path, options=TranscribeOptions(everything=True))
    assert [(s.start, s.end) for s in done.segments] == [(0.0, 2.0)]


def test_empty_text_is_no_speech(clip: Path) -> None:
    (done,), watcher = _run(Script(texts=[""]), clip)
    assert done.segments == [] and done.text == ""
    assert watcher.talk[-1] == f"notice {clip}: no speech"
    assert "commit" not in watcher.calls


def test_full_context_is_a_warning(clip: Path) -> None:
    (done,), _ = _run(Script(texts=["", "", " loop"], reason="context"), clip)
    assert len(done.warnings) == 3 and "may be a loop" in done.warnings[0]


@pytest.mark.parametrize(("limit", "warnings"), [(None, 3), (444, 3), (443, 0)])
def test_text_as_long_as_the_model_can_hold_is_a_warning(
    clip: Path, limit: int | None, warnings: int
) -> None:
    script = Script(texts=[LONG])
    (done,), _ = _run(script, clip, options=TranscribeOptions(max_tokens=limit))
    assert len(done.warnings) == warnings


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (" so so so so so so so so", "goes round in circles"),
        (" so" * 40, "goes round in circles and says little for its length"),
    ],
)
def test_a_loop_is_told_and_stays(clip: Path, text: str, what: str) -> None:
    script = Script(texts=[text, " Hello world.", " Hello world."])
    (done,), _ = _run(script, clip, options=TranscribeOptions(fallback=False))
    assert done.segments[0].text == text.strip()
    assert done.warnings == [f"the text of 0:00 to 0:30 {what}: it may be invented"]


def test_others_are_done_when_one_fails(clip: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.wav"
    bad.write_text("no audio")
    script = Script()
    done, watcher = _run(script, clip, bad, clip)
    assert len(done) == 2
    assert [t for t in watcher.talk if t.startswith("error")] == [f"error not an audio file: {bad}"]
    assert [entry[0] for entry in script.log].count("open") == 1


def test_failed_run_abandons_the_input(clip: Path) -> None:
    done, watcher = _run(Script(fails="no memory"), clip)
    assert done == []
    assert watcher.calls[-1] == "abandon"
    assert watcher.talk[-1] == f"error {clip}: decoding failed: no memory"


def test_sink_that_fails_cancels_the_run(clip: Path) -> None:
    class Broken(Watcher):
        def commit(self, text: str) -> None:
            raise BrokenPipeError

    script, watcher = Script(), Broken()
    with pytest.raises(BrokenPipeError):
        transcribe(
            [clip],
            REQUEST,
            TranscribeOptions(),
            sink=watcher,
            monitor=watcher,
            backend=backend(script),
        )
    assert script.log[-2:] == ["cancel", "closed"]
    assert watcher.calls[-1] == "abandon"


def test_interruptible_hands_on_results_and_errors() -> None:
    assert interruptible(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
