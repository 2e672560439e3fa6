"""Formats, byte for byte."""

from __future__ import annotations

import io
import json
import re
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


SUBTITLES = [
    (
        Format.SRT,
        "1\n00:00:00,000 --> 00:00:30,000\na -> b\n\n2\n00:00:30,000 --> 00:01:00,000\nQ&A <i>\n\n",
    ),
    (
        Format.VTT,
        "WEBVTT\n\n00:00:00.000 --> 00:00:30.000\na --&gt; b\n\n"
        "00:00:30.000 --> 00:01:00.000\nQ&amp;A &lt;i&gt;\n\n",
    ),
    (Format.TSV, "start\tend\ttext\n0\t30000\ta --> b\n30000\t60000\tQ&A <i>\n"),
]


@pytest.mark.parametrize(("format", "expected"), SUBTITLES)
def test_escapes_of_formats(format: Format, expected: str) -> None:
    out, recorded = _made(format)
    _say(out, ["a --> b", "Q&A <i>"])
    assert (
        recorded.raw.getvalue().decode().replace("29,920", "30,000").replace("29.920", "30.000")
        == expected
    )


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (Format.TXT, ""),
        (Format.SRT, ""),
        (Format.VTT, "WEBVTT\n\n"),
        (Format.TSV, "start\tend\ttext\n"),
    ],
)
def test_no_speech_is_a_valid_file(format: Format, expected: str) -> None:
    out, recorded = _made(format)
    _say(out, [])
    assert recorded.raw.getvalue().decode() == expected


def _escaped(text: str, format: Format) -> str:
    match format:
        case Format.VTT:
            return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        case Format.SRT:
            return text.replace("-->", "->")
        case Format.JSONL:
            return json.dumps(text, ensure_ascii=False)[1:-1]
        case _:
            return text


@pytest.mark.parametrize("format", [Format.TSV, Format.JSONL])
def test_text_is_kept_in_lines(format: Format) -> None:
    out, recorded = _made(format)
    _say(out, NASTY)
    assert all(_escaped(text, format) in recorded.raw.getvalue().decode() for text in NASTY)


@pytest.mark.parametrize("format", [Format.SRT, Format.VTT])
def test_text_is_kept_in_cues(format: Format) -> None:
    out, recorded = _made(format)
    _say(out, NASTY)
    # A cue's words are on two lines, and a long text on several cues.
    cues = re.sub(r"(?m)^\d+$|^.* --> .*$|^WEBVTT$", "", recorded.raw.getvalue().decode())
    expected = "".join(_escaped(text, format) for text in NASTY)
    assert "".join(cues.split()) == "".join(expected.split())


def test_one_cue_never_touches_the_next() -> None:
    out, recorded = _made(Format.SRT)
    out.begin(INFO)
    for i in range(3):
        out.segment(Segment(10.0 * i, 10.0 * i + 10, f"word {i}", ()))
    # The last one is held back until what follows is known.
    assert recorded.seen[-1].count("-->") == 2
    out.abandon()
    assert recorded.seen[-1].count("-->") == 3
    times = [line for line in recorded.seen[-1].splitlines() if "-->" in line]
    assert times == [
        "00:00:00,000 --> 00:00:09,920",
        "00:00:10,000 --> 00:00:19,920",
        "00:00:20,000 --> 00:00:30,000",
    ]


def test_json_lines_come_segment_by_segment() -> None:
    out, recorded = _made(Format.JSONL)
    _say(out, NASTY)
    assert [len(seen.split("\n")) - 1 for seen in recorded.seen] == [1, 2, 3, 4, 5, 6]
    *segments, end = map(json.loads, recorded.raw.getvalue().decode().split("\n")[:-1])
    assert [s["text"] for s in segments] == NASTY
    assert {(s["type"], s["file"]) for s in segments} == {("segment", "a.wav")}
    assert (end["type"], end["file"], end["language"]) == ("end", "a.wav", "en")
    assert "segments" not in end and end["warnings"] == []


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
