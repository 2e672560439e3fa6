"""The heads in PyTorch, against themselves, plain numpy and the graphs that come of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.graphs.head import (
    POOL,
    AdapterHead,
    CtcHead,
    write_adapter_encoder,
    write_ctc_encoder,
)
from as2d_cli.catalog.graphs.whisper import any_choice, run_places, write_decoder
from as2d_cli.catalog.runtime import open_session
from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.catalog.weights.head import read_head, write_head
from as2d_cli.distill.pieces import Pieces
from tests.catalog.material import HEADS, LAYERS, WIDTH, whisper_variables
from tests.catalog.reference import Reference
from tests.distill.material import ENCODING_WIDTH, init_whisper
from tests.kernels.operators import unpack_key, unpack_value

torch = pytest.importorskip("torch")

from as2d_cli.distill.export import head_file  # noqa: E402
from as2d_cli.distill.network import Adapter, AdapterNetwork, CtcNetwork, Sketch  # noqa: E402

Array = npt.NDArray[Any]

CONTEXT = 40
IDS = (*range(60, 160), 259, 265, 258)
LETTERS = tuple(range(30, 80, 2))
PIECES = Pieces(
    IDS, Vocabulary((*(bytes([n]) for n in range(100)), b"", b"", b""), merge_ranks=False), LETTERS
)
BLANK = len(IDS)
TARGET = cast(Bundle, SimpleNamespace(id="tiny"))


def adapter_network(folder: Path, *, fresh: bool = False) -> AdapterNetwork:
    """``fresh``: as training finds it; else every weight has been moved."""
    torch.manual_seed(0)
    network = AdapterNetwork(
        ENCODING_WIDTH,
        init_whisper(folder),
        IDS,
        len(LETTERS),
        range(LAYERS),
        blocks=2,
        context=CONTEXT,
    )
    if not fresh:
        move(network)
    return network.eval()


def move(network: Any) -> None:
    for weight in network.parameters():
        weight.data += 0.1 * torch.randn(weight.shape)


def ctc_network(folder: Path) -> CtcNetwork:
    whole = adapter_network(folder)
    return CtcNetwork(whole.adapter, sketch_of(whole)).eval()


def sketch_of(network: AdapterNetwork | CtcNetwork) -> Sketch:
    assert network.sketch is not None
    return network.sketch


def windows(*positions: int) -> tuple[Any, Any]:
    """Encoder output and mask of windows of so many positions, and rubbish behind them."""
    longest = max(positions)
    encoding = torch.from_numpy(
        np.random.default_rng(1)
        .standard_normal((len(positions), POOL * longest, ENCODING_WIDTH))
        .astype(np.float32)
    )
    mask = torch.arange(longest)[None] < torch.tensor(positions)[:, None]
    return encoding, mask


def text(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(2).integers(0, 100, shape))


def test_training_begins_at_the_linear_map() -> None:
    torch.manual_seed(0)
    adapter = Adapter(ENCODING_WIDTH, WIDTH, blocks=2)
    encoding, mask = windows(16, 32)
    with torch.no_grad():
        linear = adapter.join(adapter.norm(encoding.reshape(2, 32, POOL * ENCODING_WIDTH)))
        made = adapter(encoding, mask)
    assert torch.equal(made, linear * mask[..., None])


def test_the_decoder_begins_as_the_initial_drafters(tmp_path: Path) -> None:
    network = adapter_network(tmp_path, fresh=True)
    encoding, mask = windows(16)
    tokens = text(1, 12)
    with torch.no_grad():
        audio = network.audio(network.memory(encoding, mask))
        logits, _ = network.text(tokens, audio, mask)
    cross = [tuple(side[0].double().numpy() for side in pair) for pair in audio]
    said = np.array(IDS)[tokens[0].numpy()]
    expected = Reference(whisper_variables()).decode(said, cast(Any, cross))[:, list(IDS)]
    assert np.abs(logits[0].numpy() - expected).max() < 1e-3


def test_only_the_chosen_layers_are_taken(tmp_path: Path) -> None:
    init = init_whisper(tmp_path)
    network = AdapterNetwork(ENCODING_WIDTH, init, IDS, 5, [1], blocks=0, context=CONTEXT)
    (layer,) = network.text_layers
    expected = init.decoder.layers[1].cross.query.weight
    np.testing.assert_array_equal(layer.query.weight.detach(), expected.astype(np.float32))
    assert len(network.positions) == CONTEXT
    assert not network.adapter.stages


def test_windows_of_a_batch_do_not_see_each_other_or_what_is_behind_them(tmp_path: Path) -> None:
    encoding, mask = windows(16, 48, 32)
    tokens = text(3, 7)
    for network in (adapter_network(tmp_path), ctc_network(tmp_path)):
        with torch.no_grad():
            memory = network.memory(encoding, mask)
            sketch = sketch_of(network)(memory)
            for index, positions in enumerate((16, 48, 32)):
                alone = mask[index : index + 1, :positions]
                one = network.memory(encoding[index : index + 1, : POOL * positions], alone)
                torch.testing.assert_close(memory[index, :positions], one[0])
                assert not memory[index, positions:].any()
                torch.testing.assert_close(
                    sketch[index, : POOL * positions], sketch_of(network)(one)[0]
                )
                if isinstance(network, AdapterNetwork):
                    logits, _ = network.text(tokens, network.audio(memory), mask)
                    expected, _ = network.text(tokens[index : index + 1], network.audio(one), alone)
                    torch.testing.assert_close(logits[index], expected[0])


def test_a_step_after_the_cache_is_as_all_at_once(tmp_path: Path) -> None:
    network = adapter_network(tmp_path)
    encoding, mask = windows(16, 32)
    tokens = text(2, 9)
    with torch.no_grad():
        audio = network.audio(network.memory(encoding, mask))
        whole, kept = network.text(tokens, audio, mask)
        logits, past = network.text(tokens[:, :2], audio, mask)
        steps = [logits]
        for at in range(2, 9):
            logits, past = network.text(tokens[:, at : at + 1], audio, mask, past)
            steps.append(logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    for pair, expected in zip(past, kept, strict=True):
        torch.testing.assert_close(pair[0], expected[0])
        torch.testing.assert_close(pair[1], expected[1])


def head_of(network: Any) -> AdapterHead | CtcHead:
    return head_file(network, PIECES, TARGET, "mine").head


@pytest.mark.parametrize("make", [adapter_network, ctc_network])
def test_a_head_is_read_again_as_it_was_written(tmp_path: Path, make: Any) -> None:
    written = head_file(make(tmp_path), PIECES, TARGET, "mine")
    write_head(tmp_path / "head.npz", written)
    file = read_head(tmp_path / "head.npz")
    assert (file.id, file.target, file.languages, file.licence) == ("mine", "tiny", ("en",), "MIT")
    assert file.pieces == PIECES.vocabulary.pieces
    assert file.encoding_width == ENCODING_WIDTH
    assert type(file.head) is type(written.head)
    assert file.head.sketch is not None and written.head.sketch is not None
    assert file.head.sketch.letters == LETTERS
    for found, expected in (
        (file.head.adapter.join, written.head.adapter.join),
        (file.head.adapter.blocks[1].convolution, written.head.adapter.blocks[1].convolution),
        (file.head.sketch.output, written.head.sketch.output),
    ):
        # Of the largest weight of an output, one step of its few bits.
        step = np.abs(expected.weight).max(1, keepdims=True) / 31
        assert (np.abs(found.weight - expected.weight) <= step).all()
        np.testing.assert_array_equal(cast(Array, found.bias), cast(Array, expected.bias))


def ran(path: Path, encoding: Any) -> dict[str, Array]:
    session = open_session(path)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {"encoding": encoding.numpy()}), strict=True))


def near_the_best(logits: Array, chosen: Array) -> None:
    """What int8 weights choose is the likeliest, or as good as that."""
    rows = np.arange(len(logits))
    lacking = logits.max(-1) - logits[rows, chosen]
    assert lacking.max() < 0.25 * logits.std()
    assert (lacking == 0).mean() > 0.8


def check_sketch(found: Array, logits: Array, positions: int) -> None:
    """Four tokens a position, each a letter's or the blank."""
    assert found.shape == (1, POOL * positions)
    tokens = [*LETTERS, BLANK]
    near_the_best(logits, np.array([tokens.index(token) for token in found[0]]))
    assert len(set(found[0])) > 5


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> tuple[AdapterNetwork, Path]:
    folder = tmp_path_factory.mktemp("adapter")
    network = adapter_network(folder)
    head = head_of(network)
    assert isinstance(head, AdapterHead)
    write_adapter_encoder(head, folder / "encoder.onnx")
    write_decoder(head, folder / "decoder.onnx", [])
    return network, folder


@pytest.mark.parametrize("positions", [16, 48])
def test_the_graph_of_an_adapter_says_the_same(
    adapter: tuple[AdapterNetwork, Path], positions: int
) -> None:
    network, folder = adapter
    encoding, mask = windows(positions)
    found = ran(folder / "encoder.onnx", encoding)
    with torch.no_grad():
        memory = network.memory(encoding, mask)
        audio = network.audio(memory)
        sketch = sketch_of(network)(memory)[0].numpy()
    for layer, (key, value) in enumerate(audio):
        for kind, unpack, wanted in (("k", unpack_key, key), ("v", unpack_value, value)):
            made = unpack(
                found[f"cross_{kind}_{layer}"], found[f"cross_{kind}_scale_{layer}"], positions
            )
            expected = wanted[0].numpy()
            assert made.shape == expected.shape
            assert np.abs(made - expected).mean() < 0.05 * expected.std()
    check_sketch(found["sketch"], sketch, positions)


def test_the_graph_of_the_decoder_says_the_same(adapter: tuple[AdapterNetwork, Path]) -> None:
    network, folder = adapter
    encoding, mask = windows(32)
    cross = ran(folder / "encoder.onnx", encoding)
    cross.pop("sketch")
    tokens = text(1, 30)
    size = WIDTH // HEADS
    caches: Mapping[str, Array] = {
        f"past_{kind}_{layer}": np.zeros((1, HEADS, CONTEXT, size), dtype=np.float32)
        for kind in "kv"
        for layer in range(LAYERS)
    }
    chosen, log_prob = open_session(folder / "decoder.onnx").run(
        ["next", "log_prob"],
        {
            **{name: values[None] for name, values in cross.items()},
            **caches,
            "tokens": tokens.numpy(),
            "positions": np.arange(30),
            "places": run_places(0, 30),
            **any_choice(30),
            "suppress": np.zeros(len(IDS), dtype=np.float32),
        },
    )
    with torch.no_grad():
        audio = network.audio(network.memory(encoding, mask))
        logits, _ = network.text(tokens, audio, mask)
    near_the_best(logits[0].numpy(), chosen[0])
    likeliest = logits[0].log_softmax(-1).numpy()[np.arange(30), chosen[0]]
    assert np.abs(log_prob[0] - likeliest).max() < 0.5


@pytest.mark.parametrize("positions", [16, 48])
def test_the_graph_of_a_ctc_head_says_the_same(tmp_path: Path, positions: int) -> None:
    network = ctc_network(tmp_path)
    head = head_of(network)
    assert isinstance(head, CtcHead)
    write_ctc_encoder(head, BLANK, tmp_path / "encoder.onnx")
    encoding, mask = windows(positions)
    found = ran(tmp_path / "encoder.onnx", encoding)
    with torch.no_grad():
        logits = network.sketch(network.memory(encoding, mask))[0].numpy()
    assert list(found) == ["sketch"]
    check_sketch(found["sketch"], logits, positions)
