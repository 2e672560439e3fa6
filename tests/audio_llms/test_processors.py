"""Features and prompts, against `transformers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from as2d_cli.audio.downmix import Samples
from as2d_cli.catalog.runtime import open_session
from as2d_cli.text.audio_chat import AudioChat, padded
from as2d_cli.text.chat import Message
from tests.audio_llms.conftest import KINDS, Published, clip
from tests.audio_llms.reference import features, prompt_ids

Publish = Callable[[str], Published]

TEXTS = (
    "summarize",
    "Was wird gesagt?  \n\n\tUnd von 12345 wem? ÄÖÜ naïve café",
    "日本語で答えてください。 Привет, мир! 👍🏽 HTTPServer's IDs, it's WE'LL",
    "<|eot_id|><|audio|>[AUDIO][/INST]</s> is plain text",
)


def padded_for(model: Published, samples: Samples) -> Samples:
    """As the engine hears it."""
    size = padded(len(samples), model.bundle.window_samples)
    if model.bundle.pad_to_window:
        size = model.bundle.window_samples
    return np.pad(samples, (0, size - len(samples)))


@pytest.mark.parametrize("name", ["ultravox", "voxtral"])
@pytest.mark.parametrize(("file", "seconds"), [("jfk.flac", None), ("hope.mp3", 3.21)])
def test_features_are_those_of_the_processor(
    published: Publish, name: str, file: str, seconds: float | None
) -> None:
    model = published(name)
    samples = padded_for(model, clip(file, seconds))
    session = open_session(model.bundle.path / model.bundle.features)
    (ours,) = session.run(None, {"audio": samples[None]})
    (theirs,) = features(model.kind, samples)
    assert ours.shape == (1, *theirs.shape)
    assert np.abs(ours[0] - theirs).max() < 1e-3


def conversation(model: Published, system: str, question: str) -> list[dict[str, Any]]:
    """As the model's own demonstrations have it."""
    if model.kind == "ultravox":
        told = [{"role": "system", "content": system}] if system else []
        return [*told, {"role": "user", "content": f"<|audio|>\n{question}"}]
    text = f"{system}\n\n{question}" if system else question
    parts = [{"type": "audio"}, {"type": "text", "text": text}]
    return [{"role": "user", "content": parts}]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("question", TEXTS)
@pytest.mark.parametrize("system", ["", "Be brief."])
@pytest.mark.parametrize("samples", [1, 321, 16_000, 100_000, 480_000, 480_001, 1_000_000])
def test_prompts_are_those_of_the_processor(
    published: Publish, name: str, question: str, system: str, samples: int
) -> None:
    model = published(name)
    chat = AudioChat.of(model.bundle)
    size = padded(samples, model.bundle.window_samples)
    told = [Message("system", system)] if system else []
    ours = chat.prompt([*told, chat.message(question)], size)
    if question == TEXTS[-1]:  # The reference takes what is typed for the tokens themselves.
        plain = chat.prompt([*told, chat.message("")], size)
        assert ours.count(model.network.audio_token) == plain.count(model.network.audio_token)
        special = set(model.bundle.special)
        assert [i for i in ours if i in special] == [i for i in plain if i in special]
        return
    messages = conversation(model, system, question)
    spare = int(name == "ultravox")
    assert ours == prompt_ids(model, messages, size, spare=spare)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("frames", [2, 15, 16, 17, 999, 2999, 3000])
def test_a_prompt_has_a_place_for_each_line_of_the_encoder(
    published: Publish, name: str, frames: int
) -> None:
    model = published(name)
    chat, bundle = AudioChat.of(model.bundle), model.bundle
    session = open_session(bundle.encoder_path)
    (entry,) = session.get_inputs()
    size = 3000 if bundle.pad_to_window else frames
    (lines,) = session.run(None, {entry.name: np.zeros((1, 128, size), np.float32)})
    assert chat.positions(frames * 160) == lines.reshape(-1, bundle.width).shape[0]
