"""Formats, byte for byte."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

import pytest

from as2d_cli.environment import Output
from as2d_cli.output.formats import Format, renderer
from as2d_cli.output.renderer import Renderer
from as2d_cli.output.talk import summary
from as2d_cli.tasks.transcript import Decision, Segment, SourceInfo, Transcript
from tests.fakes import FakeCounters

INFO = SourceInfo("a.wav", 38.2, "whisper-base", "moonshine-tiny-en", "as2d", 8)
NASTY = [
    r"[MUSIC] a[i] [/] [red]x :smile: 100% {0} \n",
    "x" * 500,
    "a --> b",
    "Q&A <i>",
    "\u2028 \U0001f469\u200d\U0001f680 ļ 日本",
]


@dataclass
class Recorded:
    """What had been written at each flush."""

    raw: io.BytesIO
    seen: list[str]


def _made(format: Format, terminal: bool = False) -> tuple[Renderer, Recorded]:
    recorded = Recorded(io.BytesIO(), [])

    class Recorder(Output):
        def flush(self) -> None:
            super().flush()
            recorded.seen.append(recorded.raw.getvalue().decode())

    return renderer(format, Recorder(recorded.raw, is_terminal=terminal)), recorded


def _say(out: Renderer, texts: list[str]) -> Transcript:
    transcript = Transcript(INFO, duration=30.0 * len(texts), language="en")
    out.begin(INFO)
    for i, text in enumerate(texts):
        for at in range(0, len(text), 7):
            out.commit(text[at : at + 7])
        transcript.segments.append(Segment(30.0 * i, 30.0 * i + 30, text, (1, 2)))
        out.segment(transcript.segments[-1])
    transcript.text = "".join(texts)
    out.end(transcript)
    return transcript


@pytest.mark.parametrize("terminal", [False, True])
def test_text_is_byte_for_byte(terminal: bool) -> None:
    out, recorded = _made(Format.TXT, terminal)
    _say(out, NASTY)
    assert recorded.raw.getvalue().decode() == "".join(f"{t}\n" for t in NASTY)


def test_text_is_flushed_by_line_on_a_pipe_and_by_commit_on_a_terminal() -> None:
    out, recorded = _made(Format.TXT)
    _say(out, ["Hello my world", "Bye"])
    assert recorded.seen == ["Hello my world\n", "Hello my world\nBye\n", "Hello my world\nBye\n"]
    out, recorded = _made(Format.TXT, terminal=True)
    _say(out, ["Hello my world"])
    assert recorded.seen[:3] == ["Hello m", "Hello my world", "Hello my world\n"]


def test_text_abandoned_ends_its_line() -> None:
    out, recorded = _made(Format.TXT)
    out.begin(INFO)
    out.commit("half a")
    out.abandon()
    assert recorded.seen == ["half a\n"]


def test_json_round_trip() -> None:
    out, recorded = _made(Format.JSON)
    _say(out, NASTY)
    line = recorded.raw.getvalue().decode()
    assert line.endswith("\n")
    data = json.loads(line)
    assert [s["text"] for s in data["segments"]] == NASTY
    assert "tokens" not in data["segments"][0]
    assert data["file"] == "a.wav"


def test_json_has_what_was_decided() -> None:
    out, recorded = _made(Format.JSON)
    out.begin(INFO)
    out.end(Transcript(INFO, decisions=[Decision(60.00001, False, "too dear")]))
    data = json.loads(recorded.raw.getvalue())
    assert data["decisions"] == [{"at": 60.0, "drafting": False, "reason": "too dear"}]


def test_json_has_no_nan() -> None:
    out, recorded = _made(Format.JSON)
    broken = Transcript(INFO, language_probability=float("nan"), counters=FakeCounters())
    out.begin(INFO)
    out.end(broken)
    data = json.loads(recorded.raw.getvalue(), parse_constant=pytest.fail)
    assert data["language_probability"] is None
    assert set(data["rates"].values()) == {None}


def test_summary() -> None:
    counters = FakeCounters(committed=142, verify_steps={8: 30, 4: 2}, accepted=109)
    done = Transcript(INFO, duration=38.2, wall=2.1, counters=counters)
    assert summary(done) == (
        "38.2 s of audio in 2.1 s (18 x real time), 142 tokens, 3.4 accepted per step"
    )
    assert summary(Transcript(INFO)) == "0.0 s of audio in 0.0 s"
