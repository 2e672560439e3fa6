"""Trains a head: first its adapter to say what the initial drafter's encoder would, then the whole
to say what the target says (after DistillSpec, Zhou et al. 2023: the target's own greedy text is
the label; the drafter never sees the target's history, so it is trained on noisy ones)."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from as2d_cli.catalog.graphs.head import PLACES
from as2d_cli.distill.batches import IGNORED, Batch, Text, batches, group_windows
from as2d_cli.distill.cache import Cache, Entry
from as2d_cli.distill.drafting import Draft, Judge, draft_by_sketch
from as2d_cli.distill.network import AdapterNetwork, CtcNetwork, Sketch
from as2d_cli.distill.pieces import Pieces, Speller
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Point", "Schedule", "Trainer"]

Network = AdapterNetwork | CtcNetwork

_SKETCH_WEIGHT = 0.3  # of the sketch's loss while the whole is trained
# Of the adapter's error while the whole is trained. With a small one the adapter soon learns the
# texts of hours of audio by heart, and is worth less for others.
_HINT_WEIGHT = 0.5
_NOISE = 0.05  # share of the history's tokens that are replaced by others
_SMOOTHING = 0.05
_MASKED = 0.05  # share of the positions whose encoder output is hidden while training
_MOST_AVERAGED = 0.998  # decay of the running mean of the weights, which is what is judged
# The rate, over the others', of what begins from nothing when the whole is trained.
_FASTER = 25.0
_NORM = 1.0  # of the gradient, at most


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Attributes:
        adapter_passes, tune_passes: times over all windows in the first and the second part.
        adapter_rate, tune_rate: peak learning rates of the parts. The second one is low: hours of
            audio would make the decoder forget what it knows of the language.
    """

    adapter_passes: int
    tune_passes: int
    adapter_rate: float = 2e-3
    tune_rate: float = 2e-5

    @property
    def passes(self) -> int:
        """All of them."""
        return self.adapter_passes + self.tune_passes


@dataclass(frozen=True)
class Point:
    """The state after a pass.

    Attributes:
        stage: ``ridge``, ``adapter`` or ``tune``.
        loss: mean over the pass; NaN for the ridge.
        tokens_per_step: on held-out windows, by budget.
        sketch_per_step: the same of the sketch alone; empty without one.
        seconds: that all training has taken so far.
    """

    passes: int
    stage: str
    loss: float
    tokens_per_step: dict[int, float]
    sketch_per_step: dict[int, float]
    seconds: float


@dataclass
class _State:
    passes: int = 0
    best: float = 0.0
    seconds: float = 0.0
    curve: list[Point] = field(default_factory=list)


class Trainer:
    """Trains one network; goes on from its checkpoint, if there is one.

    Given the same windows, a run that was interrupted ends at the same weights as one that was not:
    every pass begins from a checkpoint and its own random seed.
    """

    def __init__(
        self,
        network: Network,
        pieces: Pieces,
        cache: Cache,
        entries: Sequence[Entry],
        texts: Sequence[Text],
        judge: Judge,
        draft: Callable[[Network], Draft],
        schedule: Schedule,
        folder: Path,
        seed: int,
        facts: Mapping[str, Any],
    ) -> None:
        """Take up the checkpoint in ``folder``.

        Args:
            entries, texts: windows to train on, and what the target says in each.
            draft: makes a drafter of a network.
            facts: what else decides the network, as JSON has it.

        Raises:
            As2dError: the checkpoint is of another network or of other windows, or damaged.
        """
        self.network = network
        self._mean = copy.deepcopy(network)
        self._pieces = pieces
        self._speller = Speller(pieces)
        self._cache = cache
        self._entries = entries
        self._texts = texts
        self._judge = judge
        self._draft = draft
        self._schedule = schedule
        self._checkpoint = folder / "checkpoint.pt"
        self._best = folder / "best.pt"
        self._seed = seed
        self._state = _State()
        self._optimizer = torch.optim.AdamW(self._groups(), weight_decay=0.01, betas=(0.9, 0.98))
        self._average = 0
        of = [facts, pieces.ids, [entry.name for entry in entries]]
        self._of = hashlib.sha256(json.dumps(of).encode()).hexdigest()
        if self._checkpoint.exists():
            self._load()

    @property
    def curve(self) -> list[Point]:
        """What has been measured after every pass so far."""
        return self._state.curve

    def train(self, told: Callable[[Point], None]) -> None:
        """Does what is left to do; then `network` is the best there was.

        Args:
            told: called after every pass.
        """
        if not self._state.curve:
            self._measure("ridge", math.nan, 0.0, told)
        while self._state.passes < self._schedule.passes:
            began = time.monotonic()
            stage = "adapter" if self._state.passes < self._schedule.adapter_passes else "tune"
            loss = self._pass(stage)
            self._state.passes += 1
            self._measure(stage, loss, began, told)
        self.network.load_state_dict(_read(self._best))

    def _measure(
        self, stage: str, loss: float, began: float, told: Callable[[Point], None]
    ) -> None:
        worth = self._judge.tokens_per_step(self._draft(self._mean))
        sketch: dict[int, float] = {}
        if self._mean.sketch is not None:
            sketch = self._judge.tokens_per_step(draft_by_sketch(self._mean, self._pieces))
        state = self._state
        if began:
            state.seconds += time.monotonic() - began
        point = Point(state.passes, stage, loss, worth, sketch, state.seconds)
        state.curve.append(point)
        middle = sorted(worth)[len(worth) // 2]
        if worth[middle] > state.best:
            state.best = worth[middle]
            _save(self._mean.state_dict(), self._best)
        self._save()
        told(point)

    def _pass(self, stage: str) -> float:
        torch.manual_seed(self._seed * 1000 + self._state.passes)
        shuffle = random.Random(self._seed * 1000 + self._state.passes)
        if self._state.passes == self._schedule.adapter_passes:
            # What the first part is worth is its mean.
            self.network.load_state_dict(self._mean.state_dict())
            self._average = 0
        self.network.train()
        total = 0.0
        groups = group_windows(self._entries, shuffle)
        texts = self._texts
        if stage == "tune" and isinstance(self.network, AdapterNetwork):
            most = len(self.network.positions)
            texts = [self._spelled(text, most, shuffle) for text in texts]
        for index, batch in enumerate(batches(self._cache, self._entries, texts, groups)):
            self._set_rates(stage, index / len(groups))
            with torch.autocast("cpu", torch.bfloat16):
                loss = self._loss(stage, batch)
            self._optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), _NORM)
            self._optimizer.step()
            self._add_to_mean()
            total += float(loss.detach())
        return total / len(groups)

    def _spelled(self, text: Text, most: int, random: random.Random) -> Text:
        """Otherwise than before, unless that takes more than `most` tokens."""
        tokens = self._speller.vary(text.tokens, random)
        return Text(tokens, text.letters) if len(tokens) <= most else text

    def _loss(self, stage: str, batch: Batch) -> Tensor:
        network = self.network
        hidden = (torch.rand(batch.mask.shape) < _MASKED) if stage == "tune" else None
        memory = network.memory(_without(batch.encoding, hidden), batch.mask)
        error = _hint_error(memory, batch)
        if stage == "adapter":
            return error
        loss = _HINT_WEIGHT * error
        if isinstance(network, CtcNetwork):
            return loss + _sketch_loss(network.sketch, batch, memory)
        loss = loss + self._text_loss(network, batch, memory)
        if network.sketch is not None:
            loss = loss + _SKETCH_WEIGHT * _sketch_loss(network.sketch, batch, memory)
        return loss

    def _text_loss(self, network: AdapterNetwork, batch: Batch, memory: Tensor) -> Tensor:
        """Cross entropy of the next token, after a history some of whose tokens are wrong."""
        history = batch.tokens[:, :-1].clone()
        history[history == IGNORED] = 0
        noise = torch.rand(history.shape) < _NOISE
        noise[:, : len(self._pieces.prompt)] = False
        history = torch.where(noise, torch.randint(0, self._pieces.start, history.shape), history)
        logits, _ = network.text(history, network.audio(memory), batch.mask)
        labels = batch.tokens[:, 1:].clone()
        labels[:, 0] = IGNORED
        return functional.cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
            ignore_index=IGNORED,
            label_smoothing=_SMOOTHING,
        )

    def _set_rates(self, stage: str, part: float) -> None:
        schedule = self._schedule
        first = stage == "adapter"
        done = self._state.passes - (0 if first else schedule.adapter_passes) + part
        whole = schedule.adapter_passes if first else schedule.tune_passes
        peak = schedule.adapter_rate if first else schedule.tune_rate
        # A short rise, then half a cosine.
        rise = min(1.0, done / 0.5)
        rate = peak * rise * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, done / whole))))
        for group in self._optimizer.param_groups:
            group["lr"] = rate * (1.0 if first else group["speed"])

    def _groups(self) -> list[dict[str, Any]]:
        network = self.network
        alone = isinstance(network, CtcNetwork)  # its sketch has no decoder to spoil
        adapter = [*network.adapter.parameters()]
        sketch = [] if network.sketch is None else [*network.sketch.parameters()]
        done = {id(p) for p in (*adapter, *sketch)}
        rest = [p for p in network.parameters() if p.requires_grad and id(p) not in done]
        groups = (adapter, _FASTER if alone else 1.0), (sketch, _FASTER), (rest, 1.0)
        return [{"params": p, "lr": 0.0, "speed": speed} for p, speed in groups if p]

    def _add_to_mean(self) -> None:
        self._average += 1
        decay = min(_MOST_AVERAGED, (1 + self._average) / (10 + self._average))
        with torch.no_grad():
            for mean, now in zip(self._mean.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(now, 1 - decay)

    def _save(self) -> None:
        _save(
            {
                "of": self._of,
                "network": self.network.state_dict(),
                "mean": self._mean.state_dict(),
                "average": self._average,
                "optimizer": self._optimizer.state_dict(),
                "passes": self._state.passes,
                "best": self._state.best,
                "seconds": self._state.seconds,
                "curve": [vars(point) for point in self._state.curve],
            },
            self._checkpoint,
        )

    def _load(self) -> None:
        saved = _read(self._checkpoint)
        if saved.get("of") != self._of:
            raise As2dError(
                f"{self._checkpoint}: is of another head or of other recordings",
                remedy="name another --work folder, or remove it to train anew",
                status=ExitStatus.USAGE,
            )
        self.network.load_state_dict(saved["network"])
        self._mean.load_state_dict(saved["mean"])
        self._optimizer.load_state_dict(saved["optimizer"])
        self._average = saved["average"]
        curve = [Point(**point) for point in saved["curve"]]
        self._state = _State(saved["passes"], saved["best"], saved["seconds"], curve)


def _without(encoding: Tensor, hidden: Tensor | None) -> Tensor:
    if hidden is None:
        return encoding
    lines = hidden.repeat_interleave(encoding.shape[1] // hidden.shape[1], dim=1)
    return encoding.masked_fill(lines[..., None], 0.0)


def _sketch_loss(sketch: Sketch, batch: Batch, memory: Tensor) -> Tensor:
    """CTC loss of a letter, in the mean over windows."""
    logits = sketch(memory).float().log_softmax(-1)
    return functional.ctc_loss(
        logits.transpose(0, 1),
        batch.letters,
        batch.mask.sum(1) * PLACES,
        batch.letter_counts,
        blank=sketch.letters,
        zero_infinity=True,
    )


def _hint_error(memory: Tensor, batch: Batch) -> Tensor:
    difference = memory.float()[batch.hinted] - batch.hints[batch.hinted]
    return difference.square().mean()


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(torch.load(path, weights_only=True))
    except Exception:  # Whatever zipfile, pickle and PyTorch raise.
        raise As2dError(
            f"{path}: cannot be read", remedy=f"remove {path.parent / '*.pt'} to train anew"
        ) from None


def _save(values: Any, path: Path) -> None:
    """Whole or not at all."""
    temporary = path.with_suffix(".new")
    torch.save(values, temporary)
    temporary.replace(path)
