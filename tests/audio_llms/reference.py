"""What `transformers` makes of audio and questions, by the rules of the published processors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from as2d_cli.audio.downmix import Samples
from tests.audio_llms.conftest import Published
from tests.audio_llms.folders import AUDIO

WINDOW = 480_000


@cache
def _extractor() -> Any:
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor(feature_size=128)


def features(kind: str, samples: Samples) -> list[Any]:
    """float32 [bins, frames] for each window: Voxtral's are padded, Ultravox's are not."""
    found = []
    for at in range(0, len(samples), WINDOW):
        made = _extractor()(
            samples[at : at + WINDOW],
            sampling_rate=16_000,
            padding="max_length" if kind == "voxtral" else "longest",
            return_tensors="np",
        )
        found.append(np.asarray(made.input_features[0], np.float32))
    return found


def prompt_ids(
    model: Published, messages: Sequence[dict[str, Any]], samples: int, *, spare: int = 0
) -> list[int]:
    """The template filled in, placeholders written as often as there are lines, and encoded."""
    text = model.tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True
    )
    audio = AUDIO[model.kind]
    if model.kind == "voxtral":
        windows = -(-samples // WINDOW)
        text = text.replace(audio, "[BEGIN_AUDIO]" + audio * 375 * windows)
    else:
        lines = 0
        for at in range(0, samples, WINDOW):
            count = min(WINDOW, samples - at)
            # As processing_ultravox.js counts them, which knows the line of padding.
            frames = int(np.floor(count / 320 + 1e-4 + 0.5))
            lines += int(np.ceil(frames / 8)) + spare
        text = text.replace(audio, audio * lines)
    ids: list[int] = model.tokenizer(text, add_special_tokens=False).input_ids
    return ids


def answer(model: Published, ids: Sequence[int], samples: Samples, tokens: int) -> list[int]:
    """What the network says to a prompt, one token after the other."""
    import torch

    windows = features(model.kind, samples)
    with torch.no_grad():
        if model.kind == "voxtral":
            heard: Any = torch.from_numpy(np.stack(windows))
        else:  # of different lengths
            heard = [torch.from_numpy(window) for window in windows]
        said: list[int] = model.network.answer(ids, heard, tokens)
    return said
