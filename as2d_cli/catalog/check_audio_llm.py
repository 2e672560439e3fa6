"""Proof that the graphs of an audio language model are what their bundle says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.published_probe import decoder_shapes
from as2d_cli.catalog.runtime import GraphError, open_session
from as2d_cli.text.audio_chat import AudioChat

_SECOND = 16_000


def proved(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """What is looked at, and what there is to say of it when it holds, one after the other.

    Raises:
        As2dError: something does not hold; the message names the file and what is wrong with it.
    """
    yield "decoder", _decoder(bundle)
    yield "embedding", _embedding(bundle)
    yield "audio", _audio(bundle)
    yield "prompt", _prompt(bundle)


def _decoder(bundle: Bundle) -> str:
    shapes = decoder_shapes(bundle.decoder_path)
    for what, found, wanted in (
        ("layers", shapes.layers, bundle.layers),
        ("cached heads", shapes.heads, bundle.heads),
        ("numbers in a head", shapes.head_size, bundle.head_size),
        ("numbers in a line", shapes.width, bundle.width),
        ("tokens", shapes.vocabulary_size, bundle.vocabulary_size),
    ):
        if found != wanted:
            raise GraphError(bundle.decoder_path, f"has {found} {what}, not {wanted}")
    return f"{shapes.layers} layers, {shapes.heads} heads, {shapes.vocabulary_size} tokens"


def _embedding(bundle: Bundle) -> str:
    path = bundle.path / bundle.embedding
    lines = _run(path, np.array([[0, bundle.vocabulary_size - 1]]))
    if lines.shape != (1, 2, bundle.width):
        problem = f"gives {list(lines.shape)} for two tokens, not {bundle.width} numbers for each"
        raise GraphError(path, problem)
    return f"lines of {bundle.width} numbers"


def _audio(bundle: Bundle) -> str:
    """Features of a second of noise, and what the encoder makes of them."""
    chat = AudioChat.of(bundle)
    samples = bundle.window_samples if bundle.pad_to_window else _SECOND
    noise = np.random.default_rng(0).normal(0, 0.1, (1, samples)).astype(np.float32)
    features = _run(bundle.path / bundle.features, noise)
    lines = _run(bundle.encoder_path, features)
    found, wanted = lines.size // bundle.width, chat.positions(samples)
    if lines.shape[-1] != bundle.width or found != wanted:
        problem = f"gives {list(lines.shape)}, not {wanted} lines of {bundle.width} numbers"
        raise GraphError(bundle.encoder_path, problem)
    if not np.isfinite(lines).all():
        raise GraphError(bundle.encoder_path, "gives what is no number")
    return f"{found} lines for {samples / _SECOND:g} s"


def _prompt(bundle: Bundle) -> str:
    chat = AudioChat.of(bundle)
    ids = chat.prompt([chat.message("What is said?")], _SECOND)
    return f"a question about a second is {len(ids)} tokens"


def _run(path: Path, values: Any) -> Any:
    session = open_session(path)
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise GraphError(path, f"takes {len(inputs)} inputs instead of one")
    try:
        return session.run(None, {inputs[0].name: values})[0]
    except Exception as error:  # The runtime has one exception class for each status code.
        raise GraphError(path, f"does not run ({error})") from None
