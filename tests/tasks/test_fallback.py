"""Windows whose text is not to be believed, and what more can be asked of a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.decoding import Window
from as2d_cli.errors import As2dError
from as2d_cli.tasks.models import ModelRequest
from as2d_cli.tasks.transcript import Transcript
from as2d_cli.tasks.transcription import TranscribeOptions, transcribe
from tests.fakes import LANGUAGES, START, TIMES, Script, backend, tokens_of, tone, write_wav
from tests.tasks.test_transcription import Watcher

LOOP = " so" * 40
TIMED = ModelRequest("whisper-timed", None)


def _run(
    script: Script, seconds: float, tmp_path: Path, options: TranscribeOptions | None = None
) -> tuple[Transcript, Watcher, list[Window]]:
    path = write_wav(tmp_path / "clip.wav", tone(seconds))
    watcher = Watcher()
    options = options or TranscribeOptions(language="en")
    (done,) = transcribe(
        [path], TIMED, options, sink=watcher, monitor=watcher, backend=backend(script)
    )
    return done, watcher, [entry[1] for entry in script.log if entry[0] == "window"]


def _at(temperature: float, good: str, bad: str) -> Script:
    """Good from a temperature on."""
    return Script(texts=lambda w: good if w.temperature >= temperature else bad)


def test_a_loop_is_decoded_again_at_rising_temperatures(tmp_path: Path) -> None:
    done, watcher, windows = _run(_at(0.4, " Hello world.", LOOP), 5, tmp_path)
    assert [w.temperature for w in windows] == [0.0, 0.2, 0.4]
    assert [w.index for w in windows] == [0, 1, 2], "each is a window of its own to the engine"
    assert done.text == "Hello world."
    assert watcher.commits == ["Hello world."], "nothing is told that is not final"
    assert done.warnings == [
        "the text of 0:00 to 0:05 was taken at temperature 0.4: the likeliest text was not to be "
        "believed"
    ]


def test_other_windows_keep_their_place_meanwhile(tmp_path: Path) -> None:
    def text(window: Window) -> str:
        if window.start < 1 and window.temperature < 0.6:
            return LOOP
        return f" Window at {window.start:.0f}."

    done, _, windows = _run(Script(texts=text), 85, tmp_path)
    starts = sorted({w.start for w in windows})
    assert len(starts) == 3 and len(windows) == 3 + 3
    assert [s.text for s in done.segments] == [f"Window at {s:.0f}." for s in starts]


def test_a_seed_gives_the_same_every_time_and_other_windows_another(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", seed=7)
    _, _, windows = _run(_at(0.2, " Hello.", LOOP), 70, tmp_path, options)
    drawn = [w.seed for w in windows if w.temperature > 0]
    assert sorted(drawn) == [7, 8, 9]


def test_what_is_unlikely_is_decoded_again_and_the_likeliest_is_taken(tmp_path: Path) -> None:
    sure = {0.0: -60.0, 0.2: -40.0, 0.4: -50.0}

    def ends(window: Window) -> Mapping[str, Any]:
        return {"log_probability": sure.get(round(window.temperature, 1), -90.0)}

    script = Script(texts=lambda w: f" Text {w.temperature:.1f}", ends=ends)
    done, _, windows = _run(script, 5, tmp_path)
    assert len(windows) == 6
    assert done.text == "Text 0.2"
    assert done.warnings == [
        "the text of 0:00 to 0:05 is unlikely to the model itself: it may be invented"
    ]


@pytest.mark.parametrize(("no_speech", "log_probability", "kept"), [
    (0.9, -200.0, False),
    (0.9, -1.0, True),
    (0.2, -1.0, True),
])  # fmt: skip
def test_nobody_speaks_where_the_model_says_so_and_is_not_sure(
    tmp_path: Path, no_speech: float, log_probability: float, kept: bool
) -> None:
    ends = {"no_speech": no_speech, "log_probability": log_probability}
    done, watcher, windows = _run(Script(ends=lambda w: ends), 5, tmp_path)
    assert bool(done.segments) is kept
    assert len(windows) == 1, "silence is not decoded again"
    assert any("no speech" in line for line in watcher.talk) is not kept


def test_an_invented_loop_is_cut_and_told(tmp_path: Path) -> None:
    text = " It was late." + " and then" * 30 + " The end."
    done, _, windows = _run(Script(texts=lambda w: text), 5, tmp_path)
    assert len(windows) == 6
    assert done.text == "It was late. and then The end."
    assert done.warnings == [
        "the text of 0:00 to 0:05 went round in circles and is cut where it begins to"
    ]


def test_what_people_do_say_again_and_again_stays(tmp_path: Path) -> None:
    text = " Row, row, row your boat." * 6
    done, _, _ = _run(Script(texts=lambda w: text), 20, tmp_path)
    assert done.text == text.strip()
    assert "it may be invented" in done.warnings[0]


def test_what_was_said_again_and_again_is_better_than_what_is_unlikely(tmp_path: Path) -> None:
    text = " Row, row, row your boat." * 6
    script = Script(
        texts=lambda w: text if w.temperature == 0 else f" Gibberish {w.temperature}.",
        ends=lambda w: {"log_probability": -5.0 if w.temperature == 0 else -999.0},
    )
    done, _, windows = _run(script, 20, tmp_path)
    assert len(windows) == 6
    assert done.text == text.strip()


def test_what_the_user_cut_short_is_not_decoded_again(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", max_tokens=60)
    _, _, windows = _run(Script(texts=lambda w: LOOP), 5, tmp_path, options)
    assert len(windows) == 1


def test_without_fallback_words_come_as_they_are_committed(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", fallback=False)
    script = Script(texts=lambda w: LOOP, chunk=3)
    done, watcher, windows = _run(script, 5, tmp_path, options)
    assert len(windows) == 1
    assert len(watcher.commits) > 10 and done.text == LOOP.strip()


# What comes before a text


def _before(window: Window) -> str:
    ids = list(window.prompt)
    at = ids.index(START)
    assert at == 0 or ids[0] == 298
    return bytes(t - 1 for t in ids[1:at]).decode()


def test_a_prompt_comes_before_the_first_window_and_hotwords_before_all(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", prompt="Dr. Mfume", hotwords="AS2D")
    _, _, windows = _run(Script(), 70, tmp_path, options)
    assert [_before(w) for w in windows] == [" AS2D Dr. Mfume", " AS2D", " AS2D"]


def test_what_looks_like_a_control_token_is_text(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", prompt="<|endoftext|>")
    _, _, (window,) = _run(Script(), 5, tmp_path, options)
    assert _before(window) == " <|endoftext|>"


def test_too_long_a_prompt_keeps_its_end(tmp_path: Path) -> None:
    options = TranscribeOptions(language="en", prompt="x" * 500 + " the end")
    _, _, (window,) = _run(Script(), 5, tmp_path, options)
    assert len(_before(window)) == 448 // 2 - 1
    assert _before(window).endswith("x the end")


def test_on_condition_each_window_goes_on_from_the_one_before(tmp_path: Path) -> None:
    script = Script(texts=[" One.", " Two.", " Three."])
    options = TranscribeOptions(language="en", condition=True, prompt="Zero.")
    _, _, windows = _run(script, 70, tmp_path, options)
    assert [_before(w) for w in windows] == [" Zero.", " One.", " Two."]


def test_on_condition_what_is_not_to_be_believed_leads_nobody_astray(tmp_path: Path) -> None:
    def text(window: Window) -> str:
        return LOOP if window.start < 1 else " Fine."

    options = TranscribeOptions(language="en", condition=True, prompt="Zero.")
    _, _, windows = _run(Script(texts=text), 70, tmp_path, options)
    first = [w for w in windows if w.start < 1]
    assert [_before(w) for w in first] == [" Zero."] * 3 + [""] * 3, (
        "not above a temperature of 0.5"
    )
    assert [_before(w) for w in windows if w.start > 1] == ["", " Fine."]


def test_translation_is_a_token_and_told_to_drafters(tmp_path: Path) -> None:
    options = TranscribeOptions(language="de", translate=True)
    _, _, (window,) = _run(Script(), 5, tmp_path, options)
    assert window.prompt[:3] == [START, LANGUAGES["de"], 299]
    assert window.translate


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (TranscribeOptions(translate=True), "moonshine-tiny-en cannot translate"),
        (TranscribeOptions(timestamps=True), "moonshine-tiny-en knows nothing of --timestamps"),
        (TranscribeOptions(word_times=True), "knows nothing of --word-timestamps"),
        (TranscribeOptions(prompt="x"), "knows nothing of --prompt"),
        (TranscribeOptions(hotwords="x"), "knows nothing of --hotwords"),
        (TranscribeOptions(condition=True), "knows nothing of --condition"),
    ],
)
def test_what_a_model_cannot_do_is_refused(
    tmp_path: Path, options: TranscribeOptions, what: str
) -> None:
    path = write_wav(tmp_path / "clip.wav", tone(1))
    watcher = Watcher()
    request = ModelRequest("moonshine-tiny-en", None)
    with pytest.raises(As2dError, match=what):
        transcribe(
            [path], request, options, sink=watcher, monitor=watcher, backend=backend(Script())
        )


# Times


def _timed(*parts: float | str) -> list[int]:
    ids: list[int] = []
    for part in parts:
        ids += tokens_of(part) if isinstance(part, str) else [TIMES + round(part / 0.02)]
    return ids


def test_timestamps_divide_the_text(tmp_path: Path) -> None:
    script = Script(says=lambda w: _timed(0.0, " One.", 1.5, 1.5, " Two.", 4.0))
    options = TranscribeOptions(language="en", timestamps=True)
    done, watcher, (window,) = _run(script, 5, tmp_path, options)
    assert window.timestamps and window.prompt == [START, LANGUAGES["en"], 0]
    assert [(s.start, s.end, s.text) for s in done.segments] == [
        (0.0, 1.5, "One."),
        (1.5, 4.0, "Two."),
    ]
    assert done.text == "One. Two."
    assert watcher.commits == ["One.", "Two."]


def test_times_stay_in_the_window_and_never_go_back(tmp_path: Path) -> None:
    script = Script(says=lambda w: _timed(0.0, " One.", 9.9, 9.9, " Two.", 29.0))
    options = TranscribeOptions(language="en", timestamps=True)
    done, _, _ = _run(script, 5, tmp_path, options)
    times = [t for s in done.segments for t in (s.start, s.end)]
    assert times == sorted(times) and times[-1] <= 5.0
    assert all(s.end > s.start for s in done.segments)


def test_what_the_model_leaves_of_a_window_is_a_window_of_its_own(tmp_path: Path) -> None:
    def says(window: Window) -> list[int]:
        if window.start == 0:
            return _timed(0.0, " The beginning", 3.0, 3.0)
        if len(window.samples) == 4 * 16_000:
            return _timed(0.0, " and the rest.", 3.9)
        return _timed(0.0, " Elsewhere.", 2.0)

    options = TranscribeOptions(language="en", timestamps=True)
    done, _, windows = _run(Script(says=says), 7, tmp_path, options)
    assert [(w.start, len(w.samples)) for w in windows] == [(0.0, 7 * 16_000), (3.0, 4 * 16_000)]
    assert done.text == "The beginning and the rest."
    assert [(s.start, s.end) for s in done.segments] == [(0.0, 3.0), (3.0, 6.9)]


def test_sentences_have_the_times_of_their_words(tmp_path: Path) -> None:
    text = " Hello, you. Yes!"

    def ends(window: Window) -> Mapping[str, Any]:
        return {"times": tuple(0.1 * i for i in range(len(text) + 1))}

    options = TranscribeOptions(language="en", times=True)
    done, _, (window,) = _run(Script(texts=[text], ends=ends), 5, tmp_path, options)
    assert window.token_times and not window.timestamps, "the text is what it is without times"
    assert [s.text for s in done.segments] == ["Hello, you.", "Yes!"]
    assert [(round(s.start, 2), round(s.end, 2)) for s in done.segments] == [(0.0, 1.1), (1.2, 1.6)]
    words = [(w.text, round(w.start, 2), round(w.end, 2)) for s in done.segments for w in s.words]
    assert words == [(" Hello,", 0, 0.6), (" you.", 0.7, 1.1), (" Yes!", 1.2, 1.6)]
    assert [s.tokens for s in done.segments] == [tokens_of(" Hello, you."), tokens_of(" Yes!")]
