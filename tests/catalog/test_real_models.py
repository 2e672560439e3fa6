"""The embedded models' bundles on a real clip, with ONNX Runtime alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli.catalog import Bundle, ensure_bundle
from as2d_cli.catalog.check import check_bundle
from as2d_cli.catalog.graphs import mel
from as2d_cli.catalog.graphs.blocks import FLOAT, GraphBuilder
from as2d_cli.catalog.graphs.whisper import ENCODING, any_choice, log_mel, run_places
from as2d_cli.catalog.runtime import open_session
from tests.catalog import reference

pytestmark = pytest.mark.model

CLIP = Path(__file__).parents[1] / "data" / "jfk.flac"
TEXT = (
    " And so my fellow Americans ask not what your country can do for you, ask what you can do for"
    " your country."
)


@pytest.fixture(scope="module")
def audio() -> Any:
    import av

    with av.open(str(CLIP)) as container:
        to_mono = av.AudioResampler(format="flt", layout="mono", rate=16_000)
        frames = [f for frame in container.decode(audio=0) for f in to_mono.resample(frame)]
    samples = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    padded = np.zeros(mel.WINDOW_SAMPLES, dtype=np.float32)
    padded[: len(samples)] = samples
    return padded


def greedy(bundle: Bundle, audio: Any) -> list[int]:
    """The target alone, one row a step: what an exact engine gives."""
    encoder, decoder = open_session(bundle.encoder_path), open_session(bundle.decoder_path)
    outputs = [value.name for value in encoder.get_outputs()]
    made = encoder.run(None, {"audio": audio[None]})
    named = zip(outputs, made, strict=True)
    feeds = {name: values[None] for name, values in named if name != ENCODING}
    shape = (1, bundle.heads, bundle.context, bundle.head_size)
    caches = {
        f"past_{kind}_{layer}": np.zeros(shape, dtype=np.float32)
        for kind in "kv"
        for layer in range(bundle.layers)
    }
    never = np.zeros(bundle.vocabulary_size, dtype=np.float32)
    never[list(bundle.suppress)] = -np.inf
    first = never.copy()
    first[list(bundle.begin_suppress)] = -np.inf
    names = [value.name for value in decoder.get_outputs()]

    def step(tokens: list[int], past: int, suppress: Any) -> Any:
        total = past + len(tokens)
        step_feeds = {
            **feeds,
            **caches,
            "tokens": np.array([tokens]),
            "positions": np.arange(past, total),
            "places": run_places(past, len(tokens)),
            **any_choice(len(tokens)),
            "suppress": suppress,
        }
        found = dict(zip(names, decoder.run(None, step_feeds), strict=True))
        for name in caches:
            caches[name] = found[name.replace("past", "present")]
        return found["next"][0]

    prompt = [bundle.tokens["start"]]
    if bundle.language_tokens:
        prompt += [bundle.language_tokens["en"], bundle.tokens["transcribe"]]
    prompt.append(bundle.tokens["no_timestamps"])
    token, past = int(step(prompt, 0, first)[-1]), len(prompt)
    tokens: list[int] = []
    while token != bundle.tokens["end"] and len(tokens) < 100:
        tokens.append(token)
        token, past = int(step([token], past, never)[0]), past + 1
    return tokens


def words(text: str) -> list[str]:
    return "".join(c for c in text.lower() if c.isalpha() or c == " ").split()


def test_log_mel_of_speech(tmp_path: Path, audio: Any) -> None:
    graph = GraphBuilder("mel")
    name = graph.input("audio", FLOAT, [1, mel.WINDOW_SAMPLES])
    graph.node("Identity", [log_mel(graph, name, 80)], ["mel"])
    graph.output("mel", FLOAT, [1, mel.FRAMES, 80])
    graph.save(tmp_path / "mel.onnx")
    (found,) = open_session(tmp_path / "mel.onnx").run(None, {"audio": audio[None]})
    assert np.abs(found[0].T - reference.log_mel(audio, 80)).max() < 1e-3


@pytest.mark.parametrize("model_id", ["whisper-base", "whisper-tiny.en"])
def test_greedy_text(model_id: str, audio: Any) -> None:
    bundle = ensure_bundle(model_id)
    pieces = bundle.vocabulary().pieces
    text = b"".join(pieces[token] for token in greedy(bundle, audio)).decode()
    assert words(text) == words(TEXT)


@pytest.mark.parametrize("model_id", ["whisper-base", "whisper-tiny.en", "moonshine-tiny-en"])
def test_bundles_prove_themselves(model_id: str) -> None:
    results = list(check_bundle(ensure_bundle(model_id)))
    assert [result.detail for result in results if not result.ok] == []


def test_facts_of_the_multilingual_target() -> None:
    bundle = ensure_bundle("whisper-base")
    assert (bundle.layers, bundle.heads, bundle.head_size, bundle.width) == (6, 8, 64, 512)
    assert len(bundle.languages) == 99
    assert bundle.tokens["timestamp_begin"] == 50364
    assert bundle.row_invariance == "any"
    vocabulary = bundle.vocabulary()
    assert vocabulary.merge_ranks
    assert vocabulary.pieces[400] == b" And"


def test_facts_of_the_drafters() -> None:
    tiny, moonshine = ensure_bundle("whisper-tiny.en"), ensure_bundle("moonshine-tiny-en")
    assert (tiny.tokens["timestamp_begin"], tiny.languages) == (50363, ("en",))
    assert not tiny.language_tokens
    assert (moonshine.layers, moonshine.heads, moonshine.head_size) == (6, 8, 36)
    assert moonshine.tokens == {"start": 1, "end": 2}
    assert len(moonshine.vocabulary().pieces) == moonshine.vocabulary_size == 32768
