"""A whole distillation: collect, fit, train, write."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from as2d_cli import __version__
from as2d_cli.catalog import Bundle, Listeners, Silent, Store, fetching, waiting
from as2d_cli.catalog.graphs.whisper import Whisper
from as2d_cli.catalog.weights.head import write_head
from as2d_cli.catalog.weights.whisper import read_whisper
from as2d_cli.distill.batches import Text, batches, group_windows
from as2d_cli.distill.cache import Cache, Entry
from as2d_cli.distill.collect import Collector, collect
from as2d_cli.distill.corpus import find_recordings, portions
from as2d_cli.distill.drafting import Draft, Judge, draft_by_adapter, draft_by_sketch, most_tokens
from as2d_cli.distill.export import head_file
from as2d_cli.distill.network import AdapterNetwork, CtcNetwork
from as2d_cli.distill.pieces import Cutter, Pieces, choose_pieces
from as2d_cli.distill.request import DistillRequest, Watch
from as2d_cli.distill.ridge import fit_ridge
from as2d_cli.distill.training import Schedule, Trainer
from as2d_cli.distill.variation import Variation
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["distill"]

HEAD_FILE = "head.npz"
REPORT_FILE = "report.json"

_CONTEXT = 256
"""Positions of a head: half a minute of the fastest speech."""

_MOST_JUDGED = 100
"""Held-out windows that every pass is judged by."""


def distill(request: DistillRequest, store: Store, watch: Watch) -> dict[str, Any]:
    """Trains a head and writes it; goes on where an earlier run of the same request stopped.

    Returns:
        The report, as written to ``report.json``.

    Raises:
        As2dError: a model, a folder or the audio is not what it takes.
    """
    began = time.monotonic()
    torch.set_num_threads(request.threads or torch.get_num_threads())
    for folder in (request.work, request.out):
        _make(folder)
    watch.stage("models")
    listeners = Listeners(
        Silent(),
        on_start=lambda entry, folder: watch.stage(fetching(entry, folder)),
        on_wait=lambda other: watch.stage(waiting(other)),
    )
    target = store.ensure(request.target, listeners)
    if target.family != "whisper":
        raise As2dError(
            f"--target {request.target}: is of the family {target.family}",
            remedy="give a Whisper, such as whisper-base",
            status=ExitStatus.USAGE,
        )
    init = store.ensure(request.init, listeners)
    weights = _init_weights(request, store, init, listeners)
    cache = Cache(
        request.work / "cache", target.width, weights.width, _facts(request, target, init)
    )
    _collect(request, target, init, weights, cache, watch)
    collected = time.monotonic() - began
    train, judged = _usable(cache, request)
    watch.stage(
        f"training on {_hours(train):.2f} h of audio, judging by {60 * _hours(judged):.1f} min"
    )
    trainer, pieces, explained = _trainer(request, target, init, weights, cache, train, judged)
    if not trainer.curve:
        watch.stage(f"the linear map explains {explained:.0%} of the initial encoder")
    trainer.train(lambda point: watch.point(point, sum(request.passes)))
    head = head_file(trainer.network, pieces, target, request.out.resolve().name)
    write_head(request.out / HEAD_FILE, head)
    report = {
        "as2d": __version__,
        "request": {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(request).items()
            if key not in ("audio", "held_out", "variation", "out", "work", "offline")
        },
        "audio": [folder.resolve().name for folder in request.audio],
        "hours": _hours(train),
        "windows": len(train),
        "held_out_minutes": 60 * _hours(judged),
        "held_out_windows": len(judged),
        "ridge_explains": explained,
        "curve": [
            {**asdict(p), "loss": None if math.isnan(p.loss) else p.loss} for p in trainer.curve
        ],
        "head_bytes": (request.out / HEAD_FILE).stat().st_size,
        "seconds": {"collect": collected, "all": time.monotonic() - began},
    }
    (request.out / REPORT_FILE).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise As2dError(
            f"{folder}: cannot be made ({error.strerror})",
            remedy="name another folder",
            status=ExitStatus.USAGE,
        ) from None


def _facts(request: DistillRequest, target: Bundle, init: Bundle) -> dict[str, Any]:
    """What decides the windows, and which of them are held out."""
    noise = request.variation
    return {
        "target": target.id,
        "init": init.id,
        "seed": request.seed,
        "audio": [folder.resolve().name for folder in request.audio],
        "held_out": [folder.resolve().name for folder in request.held_out],
        "vary": request.vary,
        "noise": noise.resolve().name if noise is not None and request.vary else None,
    }


def _init_weights(
    request: DistillRequest, store: Store, init: Bundle, listeners: Listeners
) -> Whisper:
    if init.family != "whisper":
        raise As2dError(
            f"--init {request.init}: is of the family {init.family}",
            remedy="give a small English Whisper, such as whisper-tiny.en",
            status=ExitStatus.USAGE,
        )
    with store.source_files(request.init, listeners) as sources:
        weights = read_whisper(sources["model.bin"])
    there = len(weights.decoder.layers)
    if max(request.layers) >= there:
        raise As2dError(
            f"--layers {','.join(map(str, request.layers))}: {request.init} has {there} layers",
            remedy=f"give numbers from 0 to {there - 1}",
            status=ExitStatus.USAGE,
        )
    return weights


def _collect(
    request: DistillRequest,
    target: Bundle,
    init: Bundle,
    weights: Whisper,
    cache: Cache,
    watch: Watch,
) -> None:
    recordings = find_recordings(request.audio, request.held_out, request.seed)
    wanted = math.inf if request.hours is None else request.hours * 3600
    watch.stage(f"{len(recordings)} recordings")
    variation = Variation(request.variation, request.seed) if request.vary else None
    with Collector(target, init, weights.encoder.norm) as collector:
        collect(
            portions(recordings, request.seed),
            collector,
            cache,
            variation,
            seed=request.seed,
            seconds=wanted,
            most_bytes=request.most_bytes,
            told=lambda seconds: watch.collected(seconds, None if wanted == math.inf else wanted),
            warn=watch.warning,
        )


def _usable(cache: Cache, request: DistillRequest) -> tuple[list[Entry], list[Entry]]:
    """What to train on and what to judge by, without loops and silence."""
    good = [
        entry
        for entry in sorted(cache.entries, key=lambda entry: entry.name)
        if 1 < len(entry.tokens) <= most_tokens(entry.seconds)
    ]
    train = [entry for entry in good if not entry.held_out]
    held = [entry for entry in good if entry.held_out]
    if not train or not held:
        raise As2dError(
            f"{request.audio[0]}: too little speech to train on and to judge by",
            remedy="add recordings, or name some with --held-out",
            status=ExitStatus.USAGE,
        )
    random.Random(request.seed).shuffle(held)
    return train, held[:_MOST_JUDGED]


def _trainer(
    request: DistillRequest,
    target: Bundle,
    init: Bundle,
    weights: Whisper,
    cache: Cache,
    train: Sequence[Entry],
    judged: Sequence[Entry],
) -> tuple[Trainer, Pieces, float]:
    """What trains, the vocabulary, and what the linear map explains."""
    pieces = choose_pieces((e.tokens for e in train), target, init, request.pieces)
    cutter = Cutter(pieces, target, request.work)
    texts = [
        Text(
            [*pieces.prompt, *cutter.pieces(entry.tokens), pieces.end],
            cutter.letters(entry.tokens),
        )
        for entry in train
    ]
    fits = [i for i, text in enumerate(texts) if len(text.tokens) <= _CONTEXT]
    train, texts = [train[i] for i in fits], [texts[i] for i in fits]
    torch.manual_seed(request.seed)
    whole = AdapterNetwork(
        target.width,
        weights,
        pieces.ids,
        len(pieces.letters) if request.sketch or request.method == "ctc" else None,
        request.layers,
        request.blocks,
        _CONTEXT,
    )
    groups = group_windows(train, random.Random(request.seed))
    explained = fit_ridge(whole.adapter, batches(cache, train, texts, groups))
    network: AdapterNetwork | CtcNetwork = whole
    if request.method == "ctc":
        assert whole.sketch is not None
        network = CtcNetwork(whole.adapter, whole.sketch)

    def draft(judged: AdapterNetwork | CtcNetwork) -> Draft:
        if isinstance(judged, CtcNetwork):
            return draft_by_sketch(judged, pieces)
        return draft_by_adapter(judged, pieces)

    trainer = Trainer(
        network,
        pieces,
        cache,
        train,
        texts,
        Judge(cache, judged, cutter, target),
        draft,
        Schedule(*request.passes),
        request.work,
        request.seed,
        {
            "target": target.id,
            "init": init.id,
            "method": request.method,
            "layers": request.layers,
            "blocks": request.blocks,
            "sketch": request.sketch,
            "seed": request.seed,
        },
    )
    return trainer, pieces, explained


def _hours(entries: Sequence[Entry]) -> float:
    return sum(entry.seconds for entry in entries) / 3600
