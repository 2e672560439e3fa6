"""Published folders of small random models, what made them, and bundles of them."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.downmix import Samples
from as2d_cli.catalog import Bundle, Store
from tests.audio_llms.folders import AUDIO, VOCABULARY, write_settings

DATA = Path(__file__).parents[1] / "data"

KINDS = ("ultravox", "ultravox-plain", "voxtral")
"""Ultravox as it is published; without a line of padding, and with a decoder that takes no
positions; and Voxtral, of which a graph has its weights in a file of its own.
"""


@dataclass(frozen=True)
class Published:
    """A folder and what made it.

    Attributes:
        network: see `tests.audio_llms.networks`.
        tokenizer: of `transformers`.
        bundle: what `as2d_cli.catalog` makes of the folder.
    """

    kind: str
    folder: Path
    network: Any
    tokenizer: Any
    bundle: Bundle


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Published]:
    """One of `KINDS`; skips where what makes it is not installed."""
    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install -e '.[reference]'")

    @cache
    def make(name: str) -> Published:
        root = tmp_path_factory.mktemp(name)
        folder = root / "published"
        # What the exporter has to say is not about these tests.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _make(name, folder, Store(root / "cache", offline=True))

    return make


def _make(name: str, folder: Path, store: Store) -> Published:
    from transformers import PreTrainedTokenizerFast

    from tests.audio_llms.exports import move_weights_out, write_graphs
    from tests.audio_llms.networks import make

    kind, plain = name.removesuffix("-plain"), name.endswith("-plain")
    placeholder = write_settings(kind, folder).token_to_id(AUDIO[kind])
    network = make(kind, VOCABULARY, placeholder, spare_line=not plain)
    graphs = folder if plain else folder / "onnx"
    write_graphs(network, graphs, positions=not plain)
    if kind == "voxtral":
        move_weights_out(graphs / "decoder_model_merged.onnx")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    bundle = store.find(str(folder))
    assert bundle is not None
    return Published(kind, folder, network, tokenizer, bundle)


def clip(name: str, seconds: float | None = None) -> Samples:
    """Real speech of `tests/data`, the beginning of it."""
    with AudioFile(DATA / name) as audio:
        samples = np.concatenate(list(audio))
    return samples if seconds is None else samples[: round(seconds * 16_000)]
