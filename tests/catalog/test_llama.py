"""Language models from GGUF: their weights, graph and tokens, against plain numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.catalog.build import Recipe, build
from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.check import check_bundle
from as2d_cli.catalog.graphs.block_weights import (
    EightBits,
    FourBits,
    Matrix,
    SixBits,
    interleave,
    stack,
)
from as2d_cli.catalog.graphs.blocks import AS2D, FLOAT, INT64, GraphBuilder
from as2d_cli.catalog.graphs.whisper import any_choice
from as2d_cli.catalog.runtime import open_session
from as2d_cli.catalog.weights.ctranslate2 import WeightsError
from as2d_cli.catalog.weights.gguf import read_llama
from tests.catalog.language_models import (
    CHAT_TEMPLATE,
    HEADS,
    KV_HEADS,
    LAYERS,
    SPECIALS,
    VOCABULARY,
    WIDTH,
    WORDS,
    log_probabilities,
    q4_k,
    q6_k,
    write_model,
)

Array = npt.NDArray[Any]


def bundle_of(file: Path, folder: Path) -> Bundle:
    folder.mkdir()
    return build(
        Recipe(
            id="tiny",
            role="llm",
            family="llama",
            languages=("en",),
            licence="MIT",
            sources={file.name: file},
            digests={file.name: "0"},
        ),
        folder,
    )


def answers(bundle: Bundle, tokens: list[int]) -> tuple[Array, Array]:
    """What the graph chooses after each token, and how likely it finds that."""
    session = open_session(bundle.decoder_path)
    count, size = len(tokens), WIDTH // HEADS
    places = np.zeros((count, 4), dtype=np.int32)
    places[:, 1] = np.arange(count)
    feeds: dict[str, Array] = {
        "tokens": np.array([tokens]),
        "positions": np.arange(count),
        "places": places,
        "select": np.arange(count),
        "suppress": np.zeros(VOCABULARY, dtype=np.float32),
        **any_choice(count),
    }
    for layer in range(LAYERS):
        for kind in "kv":
            cache = np.zeros((1, KV_HEADS, count, size), dtype=np.float32)
            feeds[f"past_{kind}_{layer}"] = cache
    chosen, log_prob = session.run(["next", "log_prob"], feeds)
    return np.asarray(chosen)[0], np.asarray(log_prob)[0]


@pytest.mark.parametrize(("architecture", "tied"), [("qwen2", True), ("llama", False)])
def test_the_graph_says_what_the_weights_say(tmp_path: Path, architecture: str, tied: bool) -> None:
    file = write_model(tmp_path / "tiny.gguf", architecture=architecture, tied=tied)
    bundle = bundle_of(file, tmp_path / "bundle")
    assert bundle.row_invariance == "any"
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, 50).tolist()
    expected = log_probabilities(file, tokens)
    chosen, log_prob = answers(bundle, tokens)
    of_chosen = expected[np.arange(len(tokens)), chosen]
    # Activations have 8 bits: a near second best may be chosen, nothing else.
    assert np.all(expected.max(axis=1) - of_chosen < 0.1)
    assert np.mean(expected.argmax(axis=1) == chosen) > 0.9
    np.testing.assert_allclose(log_prob, of_chosen, atol=0.3)
    assert np.abs(log_prob - of_chosen).mean() < 0.05
    assert np.ptp(expected.max(axis=1)) > 0.5, "it does not say the same of everything"


def test_a_bundle_has_what_a_conversation_needs(tmp_path: Path) -> None:
    bundle = bundle_of(write_model(tmp_path / "tiny.gguf"), tmp_path / "bundle")
    again = Bundle.read(bundle.path)
    assert again == bundle
    first = len(WORDS)
    assert again.special == {first + n: text for n, text in enumerate(SPECIALS)}
    assert again.ends == (first + 2, first), "the file's own, and the other that it may say"
    assert again.tokens == {"end": first + 2}
    assert again.pre_tokenizer == "qwen2"
    assert (again.path / "chat_template.jinja").read_text() == CHAT_TEMPLATE
    vocabulary = again.vocabulary()
    assert vocabulary.merge_ranks
    assert vocabulary.pieces[first - 1] == b" th"
    assert vocabulary.pieces[first:] == (b"",) * len(SPECIALS)


def test_check_tells_what_is_wrong_with_a_bundle(tmp_path: Path) -> None:
    bundle = bundle_of(write_model(tmp_path / "tiny.gguf"), tmp_path / "bundle")
    results = list(check_bundle(bundle))
    assert [r.name for r in results if not r.ok] == []
    assert "row invariance" in [result.name for result in results]
    for changes, said in (
        ({"layers": 3}, "has no input 'past_k_2', which llama needs"),
        ({"layers": 1}, "has not the 1 layers it should"),
        ({"head_size": 32}, "has no caches of heads of 32"),
        ({"vocabulary_size": 5}, "has not the 5 tokens it should"),
        ({"tokens": {"end": 5}}, "token 5 (end) is text"),
    ):
        failed = [r for r in check_bundle(replace(bundle, **changes)) if not r.ok]
        assert said in failed[0].detail
        assert str(bundle.path) in failed[0].detail


def test_published_matrices_are_kept_bit_for_bit() -> None:
    random = np.random.default_rng(0)
    four, six = q4_k(random, 20, 512), q6_k(random, 20, 512)
    expected = gguf.dequantize(four, gguf.GGMLQuantizationType.Q4_K)
    np.testing.assert_array_equal(FourBits(four.reshape(20, 2, 144)).floats(), expected)
    expected = gguf.dequantize(six, gguf.GGMLQuantizationType.Q6_K)
    np.testing.assert_array_equal(SixBits(six.reshape(20, 2, 210)).floats(), expected)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_rows_of_a_packed_matrix_are_looked_up(tmp_path: Path, bits: int) -> None:
    random = np.random.default_rng(0)
    matrices: dict[int, Matrix] = {
        4: FourBits(q4_k(random, 20, 512).reshape(20, 2, 144)),
        6: SixBits(q6_k(random, 20, 512).reshape(20, 2, 210)),
        8: EightBits.of(random.standard_normal((20, 512)).astype(np.float32)),
    }
    matrix = matrices[bits]
    graph = GraphBuilder("rows")
    ids = graph.input("ids", INT64, ["rows"])
    constants = [ids, graph.constant(matrix.pack())]
    graph.node("BlockRows", constants, ["found"], domain=AS2D, bits=bits, width=512)
    graph.output("found", FLOAT, ["rows", 512])
    graph.save(tmp_path / "rows.onnx")
    rows = np.array([19, 0, 7, 16, 15])
    (found,) = open_session(tmp_path / "rows.onnx").run(None, {"ids": rows})
    np.testing.assert_allclose(found, matrix.floats()[rows], rtol=1e-5, atol=1e-6)


def test_eight_bits_are_as_close_as_they_can_be() -> None:
    weights = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
    weights[2, 32:] = 0
    error = np.abs(EightBits.of(weights).floats() - weights).reshape(5, 2, 32)
    peaks = np.abs(weights).reshape(5, 2, 32).max(axis=2)
    assert np.all(error <= 0.51 * peaks[..., None] / 127 + 1e-4 * peaks[..., None])


def test_stacks_of_unlike_matrices_have_eight_bits() -> None:
    random = np.random.default_rng(0)
    four = FourBits(q4_k(random, 16, 256).reshape(16, 1, 144))
    eight = EightBits.of(random.standard_normal((8, 256)).astype(np.float32))
    assert isinstance(stack([four, four]), FourBits)
    both = stack([four, eight])
    assert both.bits == 8
    np.testing.assert_array_equal(both.floats()[16:], eight.floats())
    assert np.abs(both.floats()[:16] - four.floats()).max() < 0.01 * np.abs(four.floats()).max()


def test_gates_and_what_they_gate_lie_side_by_side() -> None:
    gate, up = (EightBits.of(np.full((20, 64), v, dtype=np.float32)) for v in (1, 2))
    first = np.rint(interleave(gate, up).floats()[:, 0]).astype(int).tolist()
    assert first == ([1] * 16 + [2] * 16) * 2


@pytest.mark.parametrize(
    ("architecture", "facts", "without", "said"),
    [
        ("gpt2", {}, "", "architecture 'gpt2'"),
        ("qwen2", {"rope.scaling.type": "yarn"}, "", "stretches its positions"),
        ("qwen2", {"rope.dimension_count": 32}, "", "of which 32 are rotated"),
        ("qwen2", {}, "blk.1.ffn_up.weight", "no tensor 'blk.1.ffn_up.weight'"),
        ("qwen2", {}, "blk.0.attn_k.bias", "a bias for queries or keys alone"),
    ],
)
def test_what_cannot_be_run_is_refused(
    tmp_path: Path, architecture: str, facts: dict[str, Any], without: str, said: str
) -> None:
    file = write_model(
        tmp_path / "tiny.gguf", architecture=architecture, facts=facts, without=without
    )
    with pytest.raises(WeightsError, match=said) as failure:
        read_llama(file)
    assert str(file) in str(failure.value)


@pytest.mark.parametrize("size", [0, 3, 100, 5000])
def test_what_is_no_whole_file_is_refused(tmp_path: Path, size: int) -> None:
    file = write_model(tmp_path / "tiny.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:size])
    with pytest.raises(WeightsError, match="no whole GGUF file"):
        read_llama(cut)
