"""Word error rate and wall time of as2d and of faster-whisper on the same clips, in one run.

    pip install -e '.[rivals]'
    python tests/rivals/against_faster_whisper.py MANIFEST MODEL
        [--category long] [--repeat 3] [--threads 2] [--batched 4]

MANIFEST: see `as2d bench`. MODEL: a folder with whisper-base as CTranslate2 (model.bin,
config.json, tokenizer.json, vocabulary.txt), the weights from which the bundle is made. Both
programs get a file and give text; each clip is done by one and then the other, in alternating
order. faster-whisper runs int8, greedy, one temperature, without text of the window before, with
the clip's language given. With --batched N as2d also decodes N windows at a time, and
faster-whisper's batched pipeline (its own voice-activity detector, no timestamps) as many.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jiwer
from faster_whisper import BatchedInferencePipeline, WhisperModel
from whisper_normalizer.english import EnglishTextNormalizer

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.windows import is_silent, windows
from as2d_cli.bench.dataset import Clip, load_clips
from as2d_cli.catalog import find_bundle
from as2d_cli.catalog.bundle import Bundle
from as2d_cli.decoding import Engine, PlanRequest, Window, make_plan
from as2d_cli.decoding.events import RunFinished, WindowFinished
from as2d_cli.errors import As2dError
from as2d_cli.text.whisper_prompt import prompt


@dataclass
class Contestant:
    """A program under test: what it said and how long it took, by clip."""

    name: str
    transcribe: Callable[[Clip], str]
    texts: dict[Path, str] = field(default_factory=dict)
    seconds: dict[Path, list[float]] = field(default_factory=dict)

    def run(self, clip: Clip) -> None:
        """Transcribes one clip and takes the time."""
        start = time.perf_counter()
        self.texts[clip.path] = self.transcribe(clip)
        self.seconds.setdefault(clip.path, []).append(time.perf_counter() - start)

    def wall(self) -> float:
        """Sum over the clips of the median time."""
        return sum(statistics.median(times) for times in self.seconds.values())


def as2d(
    engine: Engine, target: Bundle, exact: bool, method: str = "target", windows_at_a_time: int = 1
) -> Callable[[Clip], str]:
    """as2d as a function from clip to text."""
    pieces = target.vocabulary().pieces

    def transcribe(clip: Clip) -> str:
        run = engine.start(method=method, budget=windows_at_a_time, exact=exact)
        ids = prompt(target, clip.language or "en")
        with AudioFile(clip.path) as audio:
            for window in windows(audio):
                if not is_silent(window.samples):
                    room = target.context - len(ids)
                    run.submit(Window(window.index, window.start, window.samples, ids, room, "en"))
        run.finish()
        texts: dict[int, bytes] = {}
        while True:
            for event in run.poll(1.0):
                if isinstance(event, WindowFinished):
                    texts[event.window] = b"".join(pieces[token] for token in event.tokens)
                if isinstance(event, RunFinished):
                    text = b"".join(texts[window] for window in sorted(texts))
                    return text.decode("utf-8", "replace")

    return transcribe


def rival(
    model: WhisperModel | BatchedInferencePipeline, **options: bool | int
) -> Callable[[Clip], str]:
    """faster-whisper, or its batched pipeline, as a function from clip to text."""

    def transcribe(clip: Clip) -> str:
        segments, _ = model.transcribe(
            str(clip.path), language=clip.language, beam_size=1, temperature=0.0, **options
        )
        return "".join(segment.text for segment in segments)

    return transcribe


def decodes(clip: Clip) -> bool:
    """Whether it is audio with a header; the rival takes nothing else."""
    try:
        with AudioFile(clip.path):
            return True
    except As2dError as error:
        print(f"left out: {error}")
        return False


def error_rate(clips: list[Clip], texts: dict[Path, str]) -> float:
    """Word error rate pooled over all words, in per cent, after Whisper's English normaliser."""
    normal = EnglishTextNormalizer()
    pairs = [(normal(clip.text or ""), normal(texts[clip.path])) for clip in clips]
    pairs = [(reference, said) for reference, said in pairs if reference]
    return 100 * float(jiwer.wer([p[0] for p in pairs], [p[1] for p in pairs]))


def main() -> None:
    """Runs the comparison and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--category")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batched", type=int, metavar="N")
    options = parser.parse_args()
    clips = [
        clip
        for clip in load_clips([options.manifest])
        if clip.language == "en" and options.category in (None, clip.category) and decodes(clip)
    ]
    target = find_bundle("whisper-base")
    assert target is not None, "run 'as2d models pull whisper-base' first"
    plan = make_plan(
        PlanRequest("target", 0, f"0-{options.threads - 1}" if options.threads > 1 else "0")
    )
    theirs = WhisperModel(
        str(options.model), device="cpu", compute_type="int8", cpu_threads=options.threads
    )
    with Engine.open(target, None, plan) as engine:
        contestants = [
            Contestant("faster-whisper", rival(theirs, condition_on_previous_text=False)),
            Contestant("as2d target", as2d(engine, target, exact=True)),
        ]
        if target.row_invariance != "any":  # otherwise exact mode takes one row itself
            one_row = as2d(engine, target, exact=False)
            contestants.append(Contestant("as2d target, one row", one_row))
        if options.batched:
            ours = as2d(engine, target, True, "batched", options.batched)
            contestants += [
                Contestant(
                    "faster-whisper batched",
                    rival(BatchedInferencePipeline(theirs), batch_size=options.batched),
                ),
                Contestant("as2d batched", ours),
            ]
        for contestant in contestants:
            contestant.transcribe(clips[0])  # warm-up, not counted
        for _ in range(options.repeat):
            for clip in clips:
                contestants.reverse()
                for contestant in contestants:
                    contestant.run(clip)
    contestants.sort(key=lambda c: c.name, reverse=True)
    base = next(c for c in contestants if c.name == "faster-whisper").wall()
    print(f"{len(clips)} clips, {options.threads} threads, {options.repeat} rounds")
    for contestant in contestants:
        wall = contestant.wall()
        rate = error_rate(clips, contestant.texts)
        print(f"{contestant.name:22} {wall:8.2f} s  {wall / base:6.3f} x  WER {rate:6.2f} %")
    for category in sorted({clip.category for clip in clips}):
        part = [clip for clip in clips if clip.category == category]
        rates = "  ".join(f"{c.name} {error_rate(part, c.texts):.2f} %" for c in contestants)
        print(f"  {category:24} {rates}")


if __name__ == "__main__":
    main()
