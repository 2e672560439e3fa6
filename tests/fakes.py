"""A scripted engine and catalogue, whose outcome is known, and an environment made of buffers."""

from __future__ import annotations

import io
import os
import time
import wave
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

from as2d_cli.app import run
from as2d_cli.audio.speech import FRAME
from as2d_cli.decoding import Window
from as2d_cli.decoding.events import (
    DrafterLost,
    DraftingChanged,
    LaneChanged,
    RunFinished,
    TokensCommitted,
    WindowFinished,
)
from as2d_cli.decoding.plan import PlanRequest
from as2d_cli.environment import Environment, Output
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.tasks.models import Backend, Model, PlanFace

PIECES: tuple[bytes, ...] = (
    b"",
    *(bytes([b]) for b in range(256)),
    b" Hello",
    b" world",
    b"",
)
"""Token 0 is a special without text, token 1 + b is byte b, then two words and another special."""

TIMES = 1000
"""The token of 0.00, of a model that has timestamps."""

START, NO_TIMESTAMPS, TRANSCRIBE = 259, 0, 0
LANGUAGES = {"en": 300, "de": 301, "ja": 302, "lv": 303}


def tokens_of(text: str) -> tuple[int, ...]:
    """`text`, one token per UTF-8 byte."""
    return tuple(1 + b for b in text.encode())


TOY = Path(__file__).parent / "toy"
"""A folder with a chat template, which writes tokens `TURN` and `OVER`."""

TURN, OVER, AUDIO = 0, 259, 260
"""The last one stands for audio, and no model says it."""


def text_of(tokens: Sequence[int]) -> str:
    """What `tokens_of` and words came from; specials are ``|``, and a line of audio is ``@``."""
    return b"".join(b"@" if t == AUDIO else PIECES[t] or b"|" for t in tokens).decode()


@dataclass
class FakeVocabulary:
    pieces: Sequence[bytes] = PIECES
    merge_ranks: bool = True
    merges: Sequence[int] = ()


@dataclass
class FakeModel:
    """A bundle of `as2d_cli.catalog` as far as it is used."""

    id: str
    languages: tuple[str, ...] = ("en",)
    language_tokens: Mapping[str, int] = field(default_factory=dict)
    family: str = "whisper"
    path: Path = Path("/nowhere")
    context: int = 448
    row_invariance: str = "any"
    target: str = ""
    vocabulary_file: str = "vocabulary.bin"
    alignment_heads: Sequence[int] = ()
    pre_tokenizer: str = ""
    special: Mapping[int, str] = field(default_factory=dict)
    kind: str = ""
    window_samples: int = 480000
    pad_to_window: bool = False
    samples_per_position: int = 0
    spare_positions: int = 0
    tokens: Mapping[str, int] = field(
        default_factory=lambda: {"start": START, "transcribe": 0, "no_timestamps": 0, "end": 0}
    )

    def vocabulary(self) -> FakeVocabulary:
        return FakeVocabulary()


@dataclass
class FakePlan:
    method: str
    budget: int
    windows: int = 1
    why: str = "by rule"
    least_seconds: float = 0.0
    target_cores: tuple[int, ...] = ()
    draft_cores: tuple[int, ...] = ()
    pin: bool = True

    def drafts(self, seconds: float | None) -> bool:
        return seconds is None or seconds >= self.least_seconds


@dataclass
class FakeCounters:
    """Counters as a run of `budget` candidates, three accepted per step, would have them."""

    committed: int = 0
    verify_steps: dict[int, int] = field(default_factory=dict)
    alone_steps: int = 0
    proposed: int = 0
    accepted: int = 0
    lead_total: int = 0
    lanes: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"target": {"cores": [0, 1, 2, 5]}, "draft": {"cores": [3]}}
    )
    exact: bool = True

    def as_json(self) -> dict[str, Any]:
        data = dict(self.__dict__)
        data["verify_steps"] = {str(k): v for k, v in self.verify_steps.items()}
        data["seconds"] = {"wall": float("nan")}
        return data


@dataclass
class Script:
    """What the engine does.

    Attributes:
        texts: by window index modulo their number; or a function of the window.
        chunk: tokens per commit.
        pause: seconds per commit.
        answer: what is answered to a prompt, of which the text is given.
        to_fetch: what would have to be fetched, for models that are not here.
        language: what it detects.
        dropped: after this window the engine drops drafting.
        drafter_dies: message of a `DrafterLost` before the first commit.
        fails: the error of the run.
        reason: of every window's end.
        says: the tokens in the place of a text, where that is not enough.
        ends: what more there is to say at the end of a window, by the names of `WindowFinished`.
        notices: what there is to say of the engine.
        drafter: what the catalogue has for any target and language.
        reverse: windows that are in flight together finish in reverse order.
        no_voice: why there is no voice-activity model.
        log: what was asked of it.
        asked: plans that were asked for.
        least_seconds: of a recording that is drafted.
    """

    texts: Sequence[str] | Callable[[Window], str] = (" Hello world.",)
    chunk: int = 4
    pause: float = 0.0
    answer: Callable[[str], str] = lambda prompt: "It is about Hello."
    to_fetch: Mapping[str, str] = field(default_factory=dict)
    language: tuple[str, float] = ("en", 0.98)
    dropped: int | None = None
    drafter_dies: str | None = None
    fails: str | None = None
    reason: str = "end"
    says: Callable[[Window], Sequence[int]] | None = None
    ends: Callable[[Window], Mapping[str, Any]] = lambda window: {}
    reverse: bool = False
    broken_drafter: str | None = None
    notices: Sequence[str] = ()
    drafter: str | None = "whisper-tiny.en"
    missing: Sequence[str] = ()
    absent: Sequence[str] = ()
    no_voice: str | None = None
    log: list[Any] = field(default_factory=list)
    asked: list[PlanRequest] = field(default_factory=list)
    least_seconds: float = 0.0

    def text(self, window: Window) -> str:
        if not len(window.samples) or AUDIO in window.prompt:
            return self.answer(text_of(window.prompt))
        if callable(self.texts):
            return str(self.texts(window))
        return self.texts[window.index % len(self.texts)]


class FakeRun:
    def __init__(self, script: Script, draft: bool, budget: int) -> None:
        self._script, self._draft, self._budget = script, draft, budget
        self._windows: deque[Window] = deque()
        self._events: deque[Any] = deque()
        self._finishing = self._cancelled = self._ended = False
        self._counters = FakeCounters()
        if script.drafter_dies is not None:
            self._events.append(DrafterLost(0.0, script.drafter_dies))

    def submit(self, window: Window, /) -> None:
        assert not self._finishing
        self._script.log.append(("window", window))
        self._windows.append(window)

    def finish(self) -> None:
        self._finishing = True

    def cancel(self) -> None:
        self._script.log.append("cancel")
        self._cancelled = True

    def poll(self, timeout: float, /) -> list[Any]:
        if self._cancelled:
            self._ended = True
            return [RunFinished(0.0, True, None)]
        if not self._events:
            self._work(timeout)
        if not self._events:
            return []
        if self._script.pause and isinstance(self._events[0], TokensCommitted):
            time.sleep(self._script.pause)
        event = self._events.popleft()
        if isinstance(event, TokensCommitted):
            self._count(len(event.tokens))
        return [event]

    def _work(self, timeout: float) -> None:
        if not self._windows:
            if self._finishing and not self._ended:
                self._ended = True
                self._events.append(RunFinished(0.0, False, self._script.fails))
            else:
                time.sleep(min(timeout, 0.001))
            return
        window = self._windows.pop() if self._script.reverse else self._windows.popleft()
        says = self._script.says
        ids = tuple(says(window)) if says is not None else tokens_of(self._script.text(window))
        reason = self._script.reason
        if len(ids) > window.max_tokens:
            ids, reason = ids[: window.max_tokens], "limit"
        self._events.append(LaneChanged(0.0, "target", "encoding", window.index))
        if self._draft:
            self._events.append(LaneChanged(0.0, "draft", "drafting", window.index + 1))
        self._events.append(LaneChanged(0.0, "target", "verifying", window.index))
        for i in range(0, len(ids), self._script.chunk):
            self._events.append(TokensCommitted(0.0, window.index, ids[i : i + self._script.chunk]))
        more = self._script.ends(window)
        self._events.append(WindowFinished(0.0, window.index, ids, reason, 0.01, **more))
        if self._draft and window.index == self._script.dropped:
            why = "drafting does not pay"
            self._events.append(DraftingChanged(0.0, window.index, False, why))
        if not self._windows:
            for lane in ("target", "draft") if self._draft else ("target",):
                self._events.append(LaneChanged(0.0, lane, "idle", -1))

    def _count(self, tokens: int) -> None:
        c = self._counters
        c.committed += tokens
        if self._draft:
            c.verify_steps[self._budget] = c.verify_steps.get(self._budget, 0) + 1
            c.proposed += self._budget
            c.accepted += tokens - 1
            c.lead_total += 5
        else:
            c.alone_steps += tokens

    def counters(self) -> FakeCounters:
        return self._counters


class FakeEngine:
    def __init__(self, script: Script, plan: PlanFace) -> None:
        self._script, self._plan = script, plan
        self.warnings = [script.broken_drafter] if script.broken_drafter else []
        self.notices = script.notices

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._script.log.append("closed")

    def detect_language(self, samples: NDArray[np.float32], /) -> tuple[str, float]:
        self._script.log.append(("detect", len(samples)))
        return self._script.language

    def start(self, draft: bool = True) -> FakeRun:
        self._script.log.append(("start", draft))
        return FakeRun(self._script, draft, self._plan.budget)


class FakeVoice:
    """Takes everything for speech that is louder than -60 dB of full scale."""

    def start(self) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        def likely(samples: NDArray[np.float32]) -> NDArray[np.float32]:
            frames = np.abs(samples.reshape(-1, FRAME)).max(axis=1)
            return np.asarray(frames > 1e-3, np.float32)

        return likely


def answerer(name: str, context: int = 2048) -> FakeModel:
    """A language model."""
    return FakeModel(
        name,
        family="llama",
        path=TOY,
        context=context,
        pre_tokenizer="gpt2",
        special={TURN: "<turn>", OVER: "<over>"},
    )


def listener(name: str, context: int = 2048, positions: int = 1) -> FakeModel:
    """A language model that hears, with so many lines for a second."""
    known = answerer(name, context)
    known.family, known.kind, known.samples_per_position = (
        "audio-llm",
        "ultravox",
        16_000 // positions,
    )
    known.special = {**known.special, AUDIO: "<|audio|>"}
    known.tokens = {"end": OVER, "audio": AUDIO}
    return known


def backend(script: Script) -> Backend:
    """Models whisper-base (four languages), whisper-timed (it, with all that a Whisper can),
    whisper-tiny.en, moonshine-tiny-en, and heads for whisper-base and whisper-small, over `script`.
    """
    timed = {**FakeModel("").tokens, "timestamp_begin": TIMES, "previous": 298, "translate": 299}
    models: dict[str, Model] = {
        "whisper-base": FakeModel("whisper-base", tuple(LANGUAGES), LANGUAGES),
        "whisper-timed": FakeModel(
            "whisper-timed", tuple(LANGUAGES), LANGUAGES, tokens=timed, alignment_heads=(1,)
        ),
        "whisper-tiny.en": FakeModel("whisper-tiny.en"),
        "moonshine-tiny-en": FakeModel("moonshine-tiny-en", family="moonshine"),
        "base-head": FakeModel("base-head", family="head", target="whisper-base"),
        "small-head": FakeModel("small-head", family="head", target="whisper-small"),
        **{name: answerer(name) for name in ("qwen2.5-coder-1.5b-instruct", "small-llm")},
        "hearing-llm": listener("hearing-llm"),
        "forgetful-llm": listener("forgetful-llm", context=1024, positions=10),
    }

    def ensure(name: str, offline: bool) -> Model:
        script.log.append(("ensure", name, offline))
        if offline and name in script.absent:
            raise As2dError(f"{name} is not here", status=ExitStatus.UNAVAILABLE)
        if name in script.missing or name not in models:
            raise As2dError(
                f"no model {name}", remedy="see 'as2d models list'", status=ExitStatus.UNAVAILABLE
            )
        return models[name]

    def drafter(target: str, language: str | None) -> str | None:
        script.log.append(("drafter", target, language))
        return script.drafter

    def plan(request: PlanRequest) -> PlanFace:
        method, budget = request.method, request.budget
        if request.target_cores == "99":
            raise As2dError("no core 99 for --target-cores", status=ExitStatus.USAGE)
        script.log.append(("plan", method))
        script.asked.append(request)
        return FakePlan(
            "as2d" if method == "auto" else method,
            8 if budget is None else budget,
            least_seconds=script.least_seconds,
        )

    def open_engine(target: Model, drafter: Model | None, plan: PlanFace) -> FakeEngine:
        script.log.append(("open", target.id, drafter.id if drafter is not None else None))
        return FakeEngine(script, plan)

    def voice(offline: bool) -> FakeVoice:
        script.log.append(("voice", offline))
        if script.no_voice is not None:
            raise As2dError(script.no_voice, status=ExitStatus.UNAVAILABLE)
        return FakeVoice()

    return Backend(
        ensure,
        drafter,
        lambda name: "head" in name,
        plan,
        open_engine,
        voice,
        to_fetch=script.to_fetch.get,
    )


class BrokenRaw(io.RawIOBase):
    """A stream whose reader has gone (EPIPE) or whose disk is full (ENOSPC)."""

    def __init__(self, error: int) -> None:
        self._error = error

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        raise OSError(self._error, os.strerror(self._error))


@dataclass
class Ran:
    """What a command line gave."""

    status: int
    stdout: str
    stderr: str


def run_cli(
    *args: str,
    script: Script | None = None,
    stdin: bytes | None = None,
    stdout: io.RawIOBase | None = None,
    terminal: bool = False,
    columns: int = 80,
    variables: Mapping[str, str] | None = None,
    real: bool = False,
    sound: Any = None,
) -> Ran:
    """Runs `args` in an environment of buffers; `terminal`: stdout and stderr are one terminal;
    `real`: with the real catalogue and engine; `sound`: in place of sounddevice.
    """
    out, err = io.BytesIO(), io.BytesIO()
    environment = Environment(
        stdin=io.BytesIO(stdin) if stdin is not None else None,
        stdout=Output(cast(BinaryIO, stdout or out), "standard output", terminal),
        stderr=Output(out if terminal else err, "standard error", terminal),
        # Not the settings of whoever runs the tests.
        variables={"AS2D_CONFIG": os.devnull, **(variables or {})},
        shared_terminal=terminal,
        columns=columns,
        backend=None if real else backend(script or Script()),
        sound=sound,
    )
    status = run(args, environment)
    return Ran(status, out.getvalue().decode(), err.getvalue().decode())


def write_wav(path: Path, samples: NDArray[Any], rate: int = 16_000) -> Path:
    """Writes float samples [n] or [n, channels] as 16-bit WAV."""
    data = np.asarray(samples, dtype=np.float64)
    data = data[:, None] if data.ndim == 1 else data
    with wave.open(str(path), "wb") as f:
        f.setnchannels(data.shape[1])
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.round(data * 32767).astype("<i2").tobytes())
    return path


def tone(seconds: float, rate: int = 16_000, level: float = 0.3) -> NDArray[np.float64]:
    """A 440 Hz tone: anything that is not silence."""
    t = np.arange(round(seconds * rate)) / rate
    return level * np.sin(2 * np.pi * 440 * t)
