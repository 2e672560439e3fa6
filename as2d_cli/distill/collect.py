"""Runs the target and the initial drafter over recordings and keeps what they say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.graphs.blocks import Norm
from as2d_cli.catalog.graphs.head import POOL, lines_for
from as2d_cli.decoding.engine import Engine, Run, Window
from as2d_cli.decoding.events import Event, RunFinished, WindowEncoded, WindowFinished
from as2d_cli.decoding.plan import PlanRequest, make_plan
from as2d_cli.distill.cache import Cache
from as2d_cli.distill.corpus import Recording, Speech, speech
from as2d_cli.distill.variation import Variation
from as2d_cli.errors import As2dError
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["Collector", "collect"]

_AT_ONCE = 8
"""Windows in a run: enough to decode several in one batch, 25 MB of encoder output."""

_MAX_TOKENS = 224
"""What Whisper says of half a minute of speech at most; more is a loop."""


class Collector:
    """A target and the encoder of an initial drafter, loaded. Use it in a ``with`` statement."""

    def __init__(self, target: Bundle, init: Bundle, norm: Norm) -> None:
        """Load the models; ``norm`` is what ``init``'s decoder looks through.

        Raises:
            As2dError: a model cannot be loaded.
        """
        plan = make_plan(PlanRequest("batched", 4))
        self._norm = norm
        self._sides = [(m, Engine.open(m, None, plan)) for m in (target, init)]

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        for _model, engine in self._sides:
            engine.close()

    def put(self, items: Sequence[Speech], cache: Cache) -> None:
        """Puts what both say of some windows into the cache.

        Raises:
            As2dError: a model failed.
        """
        (target, target_engine), (init, init_engine) = self._sides
        encodings, texts = _run(target, target_engine, items, _MAX_TOKENS)
        hints, _ = _run(init, init_engine, items, 1)
        for index, item in enumerate(items):
            lines = lines_for(len(item.samples), len(encodings[index]))
            cache.add(
                item.name,
                item.held_out,
                len(item.samples) / init.sample_rate,
                texts[index],
                encodings[index][:lines].astype(np.float16),
                _pooled(hints[index][: lines // POOL * POOL], self._norm).astype(np.float16),
            )


def collect(
    portions: Sequence[Sequence[Recording]],
    collector: Collector,
    cache: Cache,
    variation: Variation | None,
    *,
    seed: int,
    seconds: float,
    most_bytes: int,
    told: Callable[[float], None],
    warn: Callable[[str], None],
) -> None:
    """Fills the cache with windows until there are ``seconds`` to train on, or ``most_bytes``.

    What is there already is not done again. Held-out windows are not varied.

    Args:
        told: called with the seconds there are now.
        warn: called with one line for a file that is no audio.
    """
    fresh = (
        item
        for portion in portions
        for item in speech(portion, seed, warn)
        if item.name not in cache
    )
    while cache.seconds < seconds and cache.bytes < most_bytes:
        items = list(itertools.islice(fresh, _AT_ONCE))
        if not items:
            return
        if variation is not None:
            items = [
                item
                if item.held_out
                else replace(item, samples=variation.apply(item.samples, item.name))
                for item in items
            ]
        collector.put(items, cache)
        told(cache.seconds)


def _run(
    model: Bundle, engine: Engine, items: Sequence[Speech], max_tokens: int
) -> tuple[dict[int, npt.NDArray[np.float32]], dict[int, tuple[int, ...]]]:
    run: Run = engine.start(tell_encodings=True)
    start = prompt(model, "en")
    for index, item in enumerate(items):
        run.submit(Window(index, 0.0, item.samples, start, max_tokens, "en"))
    run.finish()
    encodings: dict[int, npt.NDArray[np.float32]] = {}
    texts: dict[int, tuple[int, ...]] = {}
    for event in _events(run):
        if isinstance(event, WindowEncoded):
            encodings[event.window] = event.encoding
        elif isinstance(event, WindowFinished):
            texts[event.window] = event.tokens
        elif isinstance(event, RunFinished) and event.error is not None:
            raise As2dError(event.error)
    return encodings, texts


def _events(run: Run) -> Iterator[Event]:
    while True:
        for event in run.poll(1.0):
            yield event
            if isinstance(event, RunFinished):
                return


def _pooled(encoding: npt.NDArray[np.float32], norm: Norm) -> npt.NDArray[np.float32]:
    """The mean of every ``POOL`` lines after the layer norm: [lines / POOL, width]."""
    mean = encoding.mean(axis=-1, keepdims=True)
    centred = encoding - mean
    scale = np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + np.float32(1e-5))
    lines = centred / scale * norm.gamma + norm.beta
    pooled: npt.NDArray[np.float32] = lines.reshape(-1, POOL, lines.shape[-1]).mean(axis=1)
    return pooled
