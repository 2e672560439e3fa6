"""Whisper's graphs against plain numpy, on random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli.catalog.graphs import mel
from as2d_cli.catalog.graphs.blocks import (
    FLOAT,
    GraphBuilder,
    Linear,
    pack_tiles,
    quantise_outputs,
)
from as2d_cli.catalog.graphs.whisper import (
    ENCODING,
    any_choice,
    log_mel,
    run_places,
    write_decoder,
    write_encoder,
)
from as2d_cli.catalog.probe import measure_row_invariance
from as2d_cli.catalog.runtime import GraphError, open_session
from as2d_cli.catalog.weights.whisper import read_whisper
from tests.catalog import reference
from tests.catalog.material import (
    AUDIO_POSITIONS,
    CONTEXT,
    HEADS,
    LAYERS,
    VOCABULARY,
    ct2_bytes,
    whisper_variables,
)
from tests.kernels.operators import unpack_key, unpack_value

Feeds = dict[str, Any]


def noise() -> np.ndarray[Any, np.dtype[np.float32]]:
    samples = np.random.default_rng(1).standard_normal(mel.WINDOW_SAMPLES) * 0.1
    samples[300_000:] = 0
    return samples.astype(np.float32)


@pytest.mark.parametrize("bands", [80, 128])
def test_mel_filters(bands: int) -> None:
    np.testing.assert_allclose(mel.mel_filters(bands), reference.slaney(bands), atol=1e-7)


@pytest.mark.parametrize("bands", [80, 128])
def test_log_mel_matches_the_definition(tmp_path: Path, bands: int) -> None:
    graph = GraphBuilder("mel")
    audio = graph.input("audio", FLOAT, [1, mel.WINDOW_SAMPLES])
    graph.node("Identity", [log_mel(graph, audio, bands)], ["mel"])
    graph.output("mel", FLOAT, [1, mel.FRAMES, bands])
    graph.save(tmp_path / "mel.onnx")
    runner = open_session(tmp_path / "mel.onnx")
    time = np.arange(mel.WINDOW_SAMPLES) / 16_000
    chirp = (0.5 * np.sin(2 * np.pi * (100 + 100 * time) * time)).astype(np.float32)
    for samples in (noise(), chirp, np.zeros_like(chirp)):
        (found,) = runner.run(None, {"audio": samples[None]})
        assert np.abs(found[0].T - reference.log_mel(samples, bands)).max() < 1e-3


@dataclass
class Decoder:
    """One step at a time over its own caches."""

    runner: Any
    cross: Feeds

    def __post_init__(self) -> None:
        shape = [1, HEADS, CONTEXT, 16]
        self.caches = {
            f"past_{k}_{n}": np.zeros(shape, dtype=np.float32) for k in "kv" for n in range(LAYERS)
        }
        self.suppress = np.zeros(VOCABULARY, dtype=np.float32)

    def step(self, tokens: list[int], past: int) -> Feeds:
        total = past + len(tokens)
        feeds = {
            **{name: values[None] for name, values in self.cross.items()},
            **self.caches,
            "tokens": np.array([tokens]),
            "positions": np.arange(past, total),
            "places": run_places(past, len(tokens)),
            **any_choice(len(tokens)),
            "suppress": self.suppress,
        }
        names = [value.name for value in self.runner.get_outputs()]
        found = dict(zip(names, self.runner.run(None, feeds), strict=True))
        for name in self.caches:
            self.caches[name] = found.pop(name.replace("past", "present"))
        return found


@dataclass
class Built:
    """Graphs of the random model, and what they are made of."""

    folder: Path
    variables: Feeds
    cross: Feeds

    def decoder(self) -> Decoder:
        return Decoder(open_session(self.folder / "decoder.onnx"), self.cross)

    def pairs(self) -> list[tuple[Any, ...]]:
        """Keys and values of the audio, as the encoder's 8-bit tensors tell them."""
        return [
            tuple(
                unpack(
                    self.cross[f"cross_{kind}_{layer}"],
                    self.cross[f"cross_{kind}_scale_{layer}"],
                    AUDIO_POSITIONS,
                )
                for kind, unpack in (("k", unpack_key), ("v", unpack_value))
            )
            for layer in range(LAYERS)
        ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    folder = tmp_path_factory.mktemp("graphs")
    variables = whisper_variables()
    (folder / "model.bin").write_bytes(ct2_bytes(variables))
    model = read_whisper(folder / "model.bin")
    write_encoder(model, folder / "encoder.onnx")
    write_decoder(model, folder / "decoder.onnx", [260, 261])
    encoder = open_session(folder / "encoder.onnx")
    names = [value.name for value in encoder.get_outputs()]
    made = zip(names, encoder.run(None, {"audio": noise()[None]}), strict=True)
    cross = {name: values for name, values in made if name != ENCODING}
    yield Built(folder, variables, cross)


def test_encoder_matches_numpy(built: Built) -> None:
    expected = reference.Reference(built.variables).encode(noise())
    for pair, wanted in zip(built.pairs(), expected, strict=True):
        for found, values in zip(pair, wanted, strict=True):
            assert found.shape == values.shape
            # int8 weights and activations: a few percent of the spread.
            assert np.abs(found - values).mean() < 0.05 * values.std()


def test_decoder_matches_numpy(built: Built) -> None:
    tokens = np.random.default_rng(2).integers(0, 256, 12)
    decoder = built.decoder()
    found = decoder.step(tokens.tolist(), 0)
    logits = reference.Reference(built.variables).decode(tokens, built.pairs())
    expected = found["language_logits"][0]
    assert np.abs(expected - logits[:, 260:262]).max() < 0.1 * logits.std()
    chosen = found["next"][0]
    rows = np.arange(len(tokens))
    assert (logits.max(-1) - logits[rows, chosen]).max() < 0.2 * logits.std()
    spread = np.log(np.exp(logits).sum(-1))
    assert np.abs(found["log_prob"][0] - (logits[rows, chosen] - spread)).max() < 0.2


def test_the_past_is_kept_and_a_rewind_forgets(built: Built) -> None:
    whole = built.decoder().step([5, 6, 7, 8, 9, 10], 0)
    decoder = built.decoder()
    decoder.step([5, 6], 0)
    decoder.step([200, 201, 202, 203], 2)  # What a verify step rejected.
    decoder.step([7, 8], 2)
    last = decoder.step([9, 10], 4)
    for name in ("next", "log_prob", "language_logits"):
        np.testing.assert_array_equal(last[name], whole[name][:, 4:])


def test_suppressed_tokens_are_not_chosen(built: Built) -> None:
    decoder = built.decoder()
    before = decoder.step([5, 6], 0)
    first = int(before["next"][0, 1])
    decoder.suppress[first] = -np.inf
    after = decoder.step([5, 6], 0)
    assert int(after["next"][0, 1]) != first
    np.testing.assert_array_equal(after["language_logits"], before["language_logits"])
    decoder.suppress[:] = -np.inf
    decoder.suppress[42] = 0
    alone = decoder.step([5, 6], 0)
    assert alone["next"].tolist() == [[42, 42]]
    assert np.abs(alone["log_prob"]).max() == 0


def test_any_number_of_rows_gives_the_same_bits(built: Built) -> None:
    assert measure_row_invariance(built.folder / "decoder.onnx") == "any"


def test_a_graph_of_another_kind_is_refused(built: Built, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no decoder of as2d"):
        measure_row_invariance(built.folder / "encoder.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x09nonsense")
    with pytest.raises(GraphError, match=r"broken\.onnx"):
        measure_row_invariance(tmp_path / "broken.onnx")


def shifted_by_the_largest(graph: GraphBuilder, x: str, linear: Linear, **more: Any) -> str:
    """A layer whose numbers depend on all rows, as those of one scale for all of them do."""
    y = LINEAR(graph, x, linear, **more)
    return graph.node("Add", [y, graph.node("ReduceMax", [x], keepdims=0)])


def shifted_by_odd_rows(graph: GraphBuilder, x: str, linear: Linear, **more: Any) -> str:
    """A layer whose numbers are larger where the number of rows is odd."""
    y = LINEAR(graph, x, linear, **more)
    rows = graph.node("Shape", [x], start=1, end=2)
    odd = graph.node("Mod", [rows, graph.constant(np.array([2]))])
    shift = graph.constant(np.array(1e-3, dtype=np.float32))
    return graph.node("Add", [y, graph.node("Mul", [graph.node("Cast", [odd], to=FLOAT), shift])])


LINEAR = GraphBuilder.linear


@pytest.mark.parametrize(
    ("layer", "measured"), [(shifted_by_the_largest, "none"), (shifted_by_odd_rows, "even")]
)
def test_a_decoder_whose_rows_depend_on_others_is_found_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layer: Callable[..., str],
    measured: str,
) -> None:
    (tmp_path / "model.bin").write_bytes(ct2_bytes(whisper_variables()))
    model = read_whisper(tmp_path / "model.bin")
    monkeypatch.setattr(GraphBuilder, "linear", layer)
    write_decoder(model, tmp_path / "decoder.onnx", [])
    assert measure_row_invariance(tmp_path / "decoder.onnx") == measured


def test_quantised_outputs_are_near_and_in_range() -> None:
    weight = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    weight[2] = 0
    quantised, scales = quantise_outputs(weight)
    assert quantised.shape == (5, 40)
    assert quantised.min() >= -127
    near = quantised * scales[:, None]
    assert (np.abs(near - weight) <= scales[:, None] / 2 + 1e-7).all()


@pytest.mark.parametrize("outputs", [1, 16, 37])
def test_packed_tiles_lie_as_documented(outputs: int) -> None:
    weight = np.random.default_rng(0).integers(-127, 128, (outputs, 12)).astype(np.int8)
    tiles = pack_tiles(weight)
    assert tiles.shape == (-(-outputs // 16), 3, 16, 4)
    for (a, b, i, j), value in np.ndenumerate(tiles):
        row = 16 * a + i
        assert value == (weight[row, 4 * b + j] if row < outputs else 0)
