"""Folders with published audio language models: what a bundle is made of, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from as2d_cli.catalog import Bundle, Listeners, Silent, Store
from as2d_cli.catalog.check import check_bundle
from as2d_cli.catalog.entries import Catalogue, HubSource, ModelEntry, SourceFile
from as2d_cli.catalog.published import caches_in_place, external_files, published_files
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.text.audio_chat import AudioChat
from tests.audio_llms.folders import AUDIO, END, VOCABULARY, write_settings
from tests.catalog import audio_llms
from tests.catalog.conftest import FakeHub
from tests.fakes import run_cli

GRAPHS = ("audio_encoder", "embed_tokens", "decoder_model_merged")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Voxtral of small random graphs, with the runtime's own operators in its decoder."""
    folder = tmp_path_factory.mktemp("voxtral")
    write_settings("voxtral", folder)
    preprocessor = json.loads((folder / "preprocessor_config.json").read_text())
    preprocessor["feature_size"] = audio_llms.BANDS
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    graphs = folder / "onnx"
    graphs.mkdir()
    audio_llms.write_encoder(graphs / "audio_encoder_q4.onnx", 3, flat=True)
    audio_llms.write_embedding(graphs / "embed_tokens.onnx", 3, VOCABULARY)
    audio_llms.write_decoder(
        graphs / "decoder_model_merged_q4.onnx",
        3,
        VOCABULARY,
        fused=True,
    )
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def bundle_of(folder: Path, cache: Path) -> Bundle:
    bundle = Store(cache, offline=True).find(str(folder))
    assert bundle is not None
    return bundle


def change(path: Path, **values: Any) -> None:
    """Sets values of a JSON file; None takes one away."""
    data = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))


def move_weights(graph: Path, location: str) -> None:
    """Puts the weights of a graph into a file beside it, and names another place for them."""
    model = onnx.load_model(graph)
    onnx.save_model(
        model, graph, save_as_external_data=True, location=f"{graph.name}_data", size_threshold=1024
    )
    model = onnx.load_model(graph, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    graph.write_bytes(model.SerializeToString())


def test_a_folder_becomes_a_bundle(original: Path, tmp_path: Path) -> None:
    bundle = bundle_of(original, tmp_path)
    assert Bundle.read(bundle.path) == bundle
    assert (bundle.family, bundle.role, bundle.kind) == ("audio-llm", "audio-llm", "voxtral")
    shape = (bundle.layers, bundle.heads, bundle.head_size, bundle.width, bundle.vocabulary_size)
    assert shape == (
        audio_llms.LAYERS,
        audio_llms.KV_HEADS,
        audio_llms.HEAD_SIZE,
        audio_llms.WIDTH,
        VOCABULARY,
    )
    assert bundle.context == 4096
    assert bundle.samples_per_position == audio_llms.SAMPLES_PER_POSITION
    assert (bundle.pad_to_window, bundle.spare_positions) == (True, 0)
    assert bundle.most_windows == -(-4096 * audio_llms.SAMPLES_PER_POSITION // 480_000)
    assert bundle.special[bundle.tokens["audio"]] == AUDIO["voxtral"]
    assert [bundle.special[token] for token in bundle.ends] == [END["voxtral"]]
    assert bundle.special[bundle.tokens["start"]] == "<s>"
    assert bundle.pre_tokenizer == "tekken"
    assert bundle.caches == "in_place"
    results = list(check_bundle(bundle))
    assert all(result.ok for result in results), results
    assert [result.name for result in results] == [
        "files",
        "format",
        "decoder",
        "embedding",
        "audio",
        "prompt",
        "vocabulary",
        "row invariance",
    ]


def test_graphs_are_linked_and_the_folder_stays(folder: Path, tmp_path: Path) -> None:
    bundle = bundle_of(folder, tmp_path / "cache")
    source = folder / "onnx" / bundle.decoder
    assert source.stat().st_ino == bundle.decoder_path.stat().st_ino


def test_weights_in_files_of_their_own(folder: Path, tmp_path: Path) -> None:
    graph = folder / "onnx" / "decoder_model_merged_q4.onnx"
    move_weights(graph, f"{graph.name}_data")
    assert external_files(graph) == [graph.with_name(f"{graph.name}_data")]
    bundle = bundle_of(folder, tmp_path / "cache")
    assert f"{graph.name}_data" in [record.name for record in bundle.files]
    assert all(result.ok for result in check_bundle(bundle))


@pytest.mark.parametrize("place", ["../weights", "/etc/passwd", "..", "deep/weights"])
def test_weights_outside_the_folder_are_refused(folder: Path, tmp_path: Path, place: str) -> None:
    move_weights(folder / "onnx" / "embed_tokens.onnx", place)
    with pytest.raises(As2dError, match=r"embed_tokens\.onnx: has weights in '.*', outside"):
        bundle_of(folder, tmp_path / "cache")


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, os.mkfifo])
def test_weights_that_are_not_there(
    folder: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    move_weights(folder / "onnx" / "embed_tokens.onnx", "weights")
    make(folder / "onnx" / "weights")
    with pytest.raises(As2dError, match="has no onnx/weights") as caught:
        bundle_of(folder, tmp_path / "cache")
    assert caught.value.status is ExitStatus.UNAVAILABLE


@pytest.mark.parametrize("place", ["a\nfile: b", " weights"])
def test_weights_whose_name_is_no_line_are_refused(
    folder: Path, tmp_path: Path, place: str
) -> None:
    move_weights(folder / "onnx" / "embed_tokens.onnx", place)
    with pytest.raises(As2dError, match=r"has weights in '.*', which is no name"):
        bundle_of(folder, tmp_path / "cache")


@pytest.mark.parametrize(
    "name",
    [
        "bundle.txt",
        "vocabulary.bin",
        "merges.bin",
        "chat_template.jinja",
        "features.onnx",
        "features.data",
    ],
)
def test_no_file_of_the_folder_is_written_over(folder: Path, tmp_path: Path, name: str) -> None:
    graph = folder / "onnx" / "embed_tokens.onnx"
    move_weights(graph, name)
    weights = graph.with_name(f"{graph.name}_data").rename(graph.with_name(name))
    before = weights.read_bytes()
    with pytest.raises(As2dError, match="has the name of another file of the bundle"):
        bundle_of(folder, tmp_path / "cache")
    assert weights.read_bytes() == before


def test_weights_of_one_name_in_two_folders(folder: Path, tmp_path: Path) -> None:
    first, second = folder / "onnx" / "audio_encoder_q4.onnx", folder / "embed_tokens.onnx"
    for path in list((folder / "onnx").glob("embed_tokens.*")):
        path.rename(folder / path.name)
    (name,) = [path.name for path in external_files(first)]
    move_weights(second, name)
    weights = [first.with_name(name), folder / name]
    second.with_name(f"{second.name}_data").rename(weights[1])
    before = [path.read_bytes() for path in weights]
    assert before[0] != before[1]
    with pytest.raises(As2dError, match="has the name of another file of the bundle"):
        bundle_of(folder, tmp_path / "cache")
    assert [path.read_bytes() for path in weights] == before


def test_the_form_with_four_bits_is_taken_first(folder: Path) -> None:
    graphs = folder / "onnx"
    shutil.copyfile(graphs / "embed_tokens.onnx", graphs / "embed_tokens_q4.onnx")
    shutil.copyfile(graphs / "embed_tokens.onnx", graphs / "embed_tokens_int8.onnx")
    names = [name for name in published_files(folder) if name.endswith(".onnx")]
    assert names == [f"onnx/{graph}_q4.onnx" for graph in GRAPHS]
    for graph in graphs.iterdir():  # They may be beside the rest as well.
        graph.rename(folder / graph.name)
    names = [name for name in published_files(folder) if name.endswith(".onnx")]
    assert names == [f"{graph}_q4.onnx" for graph in GRAPHS]


def half(path: Path) -> None:
    """A graph of numbers of half precision."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1]) for name in ("in", "out")
    ]
    node = helper.make_node("Identity", ["in"], ["out"])
    onnx.save_model(
        helper.make_model(helper.make_graph([node], "half", values[:1], values[1:])), path
    )


def test_half_precision_is_passed_over_or_refused(folder: Path) -> None:
    graphs = folder / "onnx"
    half(graphs / "embed_tokens_q4.onnx")
    assert "onnx/embed_tokens.onnx" in published_files(folder)
    (graphs / "embed_tokens.onnx").unlink()
    with pytest.raises(As2dError, match=r"embed_tokens_q4\.onnx: .*half precision") as caught:
        published_files(folder)
    assert caught.value.remedy == "fetch another form of it, such as embed_tokens_q4.onnx"


@pytest.mark.parametrize("name", [*GRAPHS, "config.json", "preprocessor_config.json"])
def test_a_folder_that_lacks_something(folder: Path, tmp_path: Path, name: str) -> None:
    for path in [*folder.glob(f"{name}*"), *folder.glob(f"onnx/{name}*")]:
        path.unlink()
    with pytest.raises(As2dError, match=f"has no {name}") as caught:
        bundle_of(folder, tmp_path / "cache")
    assert caught.value.status is ExitStatus.UNAVAILABLE


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("config", {"model_type": "qwen2_audio"}, "is of kind 'qwen2_audio'"),
        ("config", {"text_config": {"max_position_embeddings": "many"}}, "is no number"),
        ("preprocessor_config", {"hop_length": 320}, "'hop_length' is 320"),
        ("config", {"text_config": {"max_position_embeddings": 3}}, "is no number"),
        ("preprocessor_config", {"feature_size": 24}, "no multiple of 16"),
        ("preprocessor_config", {"feature_size": 1 << 26}, "no multiple of 16 up to 512"),
        ("preprocessor_config", {"feature_size": 32}, r"does not run on 3000 frames of 32 bins"),
        ("tokenizer", {"pre_tokenizer": None}, "cuts text in a way that is not known"),
        ("tokenizer", {"normalizer": {"type": "Lowercase"}}, "in a way that is not known"),
        ("tokenizer", {"model": {"type": "Unigram"}}, "no byte-level BPE"),
    ],
)
def test_a_model_that_is_not_known(
    folder: Path, tmp_path: Path, name: str, values: dict[str, Any], problem: str
) -> None:
    change(folder / f"{name}.json", **values)
    with pytest.raises(As2dError, match=problem) as caught:
        bundle_of(folder, tmp_path / "cache")
    assert name in str(caught.value) or "audio_encoder" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ({"id": 1 << 70, "content": "<x>", "special": True}, f"has token {1 << 70}, which cannot"),
        ({"id": VOCABULARY, "content": "\ud800", "special": True}, "is not JSON"),
        ({"id": 300, "content": "x" * 70_000, "special": False}, "token 300 is too long"),
    ],
)
def test_an_added_token_that_cannot_be(
    folder: Path, tmp_path: Path, token: dict[str, Any], problem: str
) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"].append(token)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(As2dError, match=rf"tokenizer\.json: {problem}"):
        bundle_of(folder, tmp_path / "cache")


def test_errors_are_about_files_that_the_user_has(folder: Path, tmp_path: Path) -> None:
    graph = folder / "onnx" / "decoder_model_merged_q4.onnx"
    graph.write_bytes(b"")
    with pytest.raises(As2dError, match="cannot load it") as caught:
        bundle_of(folder, tmp_path / "cache")
    assert str(caught.value).startswith(f"{graph}: ")
    assert "building" not in str(caught.value)


@pytest.mark.parametrize("lost", ["past_key_values.0.value", "present.1.key"])
def test_a_decoder_that_forgets(folder: Path, tmp_path: Path, lost: str) -> None:
    graph = folder / "onnx" / "decoder_model_merged_q4.onnx"
    model = onnx.load_model(graph)
    for values in (model.graph.input, model.graph.output):
        for value in [v for v in values if v.name == lost]:
            values.remove(value)
    for node in model.graph.node:
        node.input[:] = ["" if name == lost else name for name in node.input]
    onnx.save_model(model, graph)
    with pytest.raises(As2dError, match=r"decoder_model_merged_q4\.onnx: ") as caught:
        bundle_of(folder, tmp_path / "cache")
    assert caught.value.status is ExitStatus.UNAVAILABLE


def test_a_decoder_of_sizes_that_cannot_be(folder: Path, tmp_path: Path) -> None:
    graph = folder / "onnx" / "decoder_model_merged_q4.onnx"
    model = onnx.load_model(graph)
    for value in model.graph.input:
        if value.name == "past_key_values.0.key":
            value.type.tensor_type.shape.dim[1].dim_value = 0
    onnx.save_model(model, graph)
    with pytest.raises(As2dError, match="heads, width or vocabulary that cannot be"):
        bundle_of(folder, tmp_path / "cache")


@pytest.mark.parametrize("context", [4, 100, 300, 400, 4096])
def test_audio_that_fits_the_context_is_not_too_much_for_the_encoder(
    original: Path, tmp_path: Path, context: int
) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    change(folder / "config.json", text_config={"max_position_embeddings": context})
    bundle = bundle_of(folder, tmp_path / "cache")
    chat = AudioChat.of(replace(bundle, pad_to_window=False))
    most = bundle.most_windows * bundle.window_samples
    assert most > 0
    assert chat.positions(most + 320) > context


def test_an_encoder_of_the_other_kind(folder: Path, tmp_path: Path) -> None:
    change(folder / "config.json", model_type="ultravox")
    with pytest.raises(As2dError, match=r"10 lines for a second, not Ultravox's"):
        bundle_of(folder, tmp_path / "cache")


def test_a_decoder_that_is_none(folder: Path, tmp_path: Path) -> None:
    graphs = folder / "onnx"
    shutil.copyfile(graphs / "embed_tokens.onnx", graphs / "decoder_model_merged_q4.onnx")
    with pytest.raises(As2dError, match="is no decoder of an audio language model"):
        bundle_of(folder, tmp_path / "cache")


# Tokens


@pytest.mark.parametrize(
    ("generation", "own", "ends"),
    [
        ([6, 2, 0], "</s>", (2, 6, 0)),
        (4, None, (4,)),
        ([4], "</s>", (4,)),
        ([4, 1 << 20], "</s>", (4,)),  # the model cannot say all of them
        (None, "</s>", (2,)),
    ],
)
def test_tokens_that_end_an_answer(
    folder: Path, tmp_path: Path, generation: Any, own: str | None, ends: tuple[int, ...]
) -> None:
    change(folder / "generation_config.json", eos_token_id=generation)
    change(folder / "tokenizer_config.json", eos_token=own)
    bundle = bundle_of(folder, tmp_path / "cache")
    assert bundle.ends == ends
    assert bundle.tokens["end"] == ends[0]


def test_nothing_ends_an_answer(folder: Path, tmp_path: Path) -> None:
    (folder / "generation_config.json").unlink()
    change(folder / "tokenizer_config.json", eos_token=None)
    with pytest.raises(As2dError, match="which token ends an answer"):
        bundle_of(folder, tmp_path / "cache")


def test_a_placeholder_is_added_where_the_files_have_none(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    for token in data["added_tokens"]:
        if token["content"] == AUDIO["voxtral"]:
            token["content"] = "<other>"
    data["model"]["vocab"]["<other>"] = data["model"]["vocab"].pop(AUDIO["voxtral"])
    (folder / "tokenizer.json").write_text(json.dumps(data))
    # What the configuration names is a word, which must not become audio.
    change(folder / "config.json", audio_token_id=300)
    bundle = bundle_of(folder, tmp_path / "cache")
    assert bundle.tokens["audio"] == VOCABULARY
    assert bundle.special[VOCABULARY] == AUDIO["voxtral"]
    assert all(result.ok for result in check_bundle(bundle))


def test_tokens_in_no_order_have_the_order_of_merges_beside_them(
    folder: Path, tmp_path: Path
) -> None:
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    vocab = data["model"]["vocab"]
    special = {token["content"] for token in data["added_tokens"]}
    words = [word for word in vocab if word not in special]
    turned = dict(zip(words, reversed([vocab[word] for word in words]), strict=True))
    data["model"]["vocab"] = vocab | turned
    path.write_text(json.dumps(data))
    bundle = bundle_of(folder, tmp_path / "cache")
    made = bundle.vocabulary().merges
    assert bundle.merges == "merges.bin"
    assert len(made) == len(data["model"]["merges"])
    assert list(made) == sorted(made, reverse=True)
    raw = (bundle.path / bundle.merges).read_bytes()
    (bundle.path / bundle.merges).write_bytes(raw[:-1])
    with pytest.raises(As2dError, match=r"merges\.bin: is cut short"):
        bundle.vocabulary()
    (bundle.path / bundle.merges).write_bytes(b"\xff\xff\xff\x7f")
    with pytest.raises(As2dError, match=r"merges\.bin: makes token"):
        bundle.vocabulary()


def test_added_tokens_that_are_text(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    for token in data["added_tokens"]:
        if token["content"] in ("<unk>", AUDIO["voxtral"]):
            token["special"] = False
    more = {"id": VOCABULARY + 3, "content": "\n\n", "special": False}
    data["added_tokens"].append(more)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    bundle = bundle_of(folder, tmp_path / "cache")
    assert bundle.vocabulary().pieces[0] == b"<unk>"
    assert 0 not in bundle.special and VOCABULARY + 3 not in bundle.special
    # What stands for audio is no text, whatever the file says.
    assert not bundle.vocabulary().pieces[bundle.tokens["audio"]]
    assert all(result.ok for result in check_bundle(bundle))


def test_a_tokenizer_that_is_larger_than_the_model(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    data["model"]["vocab"]["Ġthere"] = VOCABULARY
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(As2dError, match="they are no pair"):
        bundle_of(folder, tmp_path / "cache")


@pytest.mark.parametrize("where", ["json", "config", "list"])
def test_places_of_a_chat_template(folder: Path, tmp_path: Path, where: str) -> None:
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    if where == "json":
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    else:
        others = [{"name": ["none"], "template": ""}, {"name": "tool_use", "template": ""}]
        listed = [*others, {"name": "default", "template": template}]
        change(
            folder / "tokenizer_config.json",
            chat_template=template if where == "config" else listed,
        )
    bundle = bundle_of(folder, tmp_path / "cache")
    assert (bundle.path / "chat_template.jinja").read_text() == template


def test_a_folder_without_a_chat_template(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(As2dError, match="no chat template"):
        bundle_of(folder, tmp_path / "cache")


def test_a_template_without_a_place_for_audio(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[0].role }}")
    results = list(check_bundle(bundle_of(folder, tmp_path / "cache")))
    assert [result.ok for result in results[-2:]] == [True, False]
    assert "has no place for audio" in results[-1].detail


@pytest.mark.parametrize("key", ["layers", "heads", "width", "vocabulary_size"])
def test_a_bundle_that_is_not_what_it_says(original: Path, tmp_path: Path, key: str) -> None:
    bundle = bundle_of(original, tmp_path)
    text = (bundle.path / "bundle.txt").read_text()
    (bundle.path / "bundle.txt").write_text(
        text.replace(f"\n{key}: {getattr(bundle, key)}\n", f"\n{key}: 7\n")
    )
    results = list(check_bundle(Bundle.read(bundle.path)))
    assert not results[-1].ok
    assert bundle.decoder in results[-1].detail and "not 7" in results[-1].detail


def test_profile_refuses_what_writes_down_nothing(original: Path, tmp_path: Path) -> None:
    variables = {"AS2D_CACHE_DIR": str(tmp_path)}
    ran = run_cli("profile", "--target", str(original), "--drafter", "none", variables=variables)
    assert ran.status == ExitStatus.USAGE
    assert "is a language model, which writes down nothing" in ran.stderr
    assert ran.stderr.count("\n") == 1


# Caches


def attention(*, reads: bool = True, others: bool = False, domain: str = "com.microsoft") -> Any:
    """A decoder of one layer; its past may be read by something else as well."""
    names = ["past_key_values.0.key", "past_key_values.0.value"]
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", *(names if reads else ["a", "b"]), "seqlens", "total"],
        ["y", "present.0.key", "present.0.value"],
        domain=domain,
    )
    nodes = [node] + [helper.make_node("Shape", [names[0]], ["length"])] * others
    inputs, outputs = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, None, 16]) for name in some]
        for some in (names, ["present.0.key", "present.0.value"])
    ]
    return helper.make_model(helper.make_graph(nodes, "decoder", inputs, outputs))


@pytest.mark.parametrize(
    ("how", "in_place"),
    [({}, True), ({"others": True}, False), ({"domain": ""}, False), ({"reads": False}, True)],
)
def test_which_caches_may_be_written_in_place(
    tmp_path: Path, how: dict[str, Any], in_place: bool
) -> None:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(attention(**how).SerializeToString())
    assert caches_in_place(path) is in_place


def test_caches_that_are_read_in_a_branch(tmp_path: Path) -> None:
    model = attention()
    inner = helper.make_graph(
        [helper.make_node("Shape", ["past_key_values.0.key"], ["n"])], "b", [], []
    )
    model.graph.node.append(
        helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    )
    path = tmp_path / "decoder.onnx"
    path.write_bytes(model.SerializeToString())
    assert not caches_in_place(path)


# From the hub


@pytest.fixture
def entry(folder: Path, fake_hub: FakeHub) -> ModelEntry:
    """A model of the catalogue that lists graphs, and not the weights beside them."""
    for graph in GRAPHS[1:]:
        (path,) = (folder / "onnx").glob(f"{graph}*.onnx")
        move_weights(path, f"{path.name}_data")
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    prefix = "/someone/listener/resolve/main/"
    fake_hub.files = {prefix + name: content for name, content in names.items()}
    return ModelEntry(
        id="listener",
        role="audio-llm",
        family="audio-llm",
        licence="MIT",
        languages=("en",),
        files=tuple(SourceFile(name) for name in sorted(names) if not name.endswith("_data")),
        sources=(HubSource("someone/listener", "main"),),
    )


def test_weights_beside_the_graphs_are_fetched_as_well(
    entry: ModelEntry, fake_hub: FakeHub, tmp_path: Path
) -> None:
    store = Store(tmp_path / "cache", Catalogue((entry,)))
    started: list[str] = []
    hear = Listeners(Silent(), on_start=lambda entry, folder: started.append(entry.id))
    bundle = store.pull("listener", hear)
    assert started == ["listener"]
    data = [record.name for record in bundle.files if record.name.endswith("_data")]
    assert sorted(data) == ["decoder_model_merged_q4.onnx_data", "embed_tokens.onnx_data"]
    assert all(f"onnx/{name}" in bundle.sources for name in data)
    assert all(result.ok for result in check_bundle(bundle))
    assert not (tmp_path / "cache" / "downloads" / "listener").exists()
    count = len(fake_hub.requests)
    assert store.pull("listener", hear) == bundle
    assert len(fake_hub.requests) == count


def test_weights_that_the_hub_lacks(entry: ModelEntry, fake_hub: FakeHub, tmp_path: Path) -> None:
    lost = next(name for name in fake_hub.files if name.endswith("_data"))
    del fake_hub.files[lost]
    store = Store(tmp_path / "cache", Catalogue((entry,)))
    with pytest.raises(As2dError, match=r"listener.*cannot be fetched.*_data"):
        store.pull("listener", Listeners(Silent()))


def test_an_optional_file_that_the_hub_lacks(
    entry: ModelEntry, fake_hub: FakeHub, tmp_path: Path
) -> None:
    optional = SourceFile("chat_template.json", optional=True)
    asked = replace(entry, files=(*entry.files, optional))
    bundle = Store(tmp_path / "cache", Catalogue((asked,))).pull("listener", Listeners(Silent()))
    assert "chat_template.json" not in bundle.sources
    needed = replace(entry, files=(*entry.files, SourceFile("more.json")))
    with pytest.raises(As2dError, match=r"the hub answers 404 for more\.json"):
        Store(tmp_path / "other", Catalogue((needed,))).pull("listener", Listeners(Silent()))
