"""A folder with a published audio language model: which files it is made of, and their facts.

The layout is that of transformers.js: ``audio_encoder``, ``embed_tokens`` and
``decoder_model_merged``, below ``onnx/`` or beside the rest, each in one or several forms of which
the file's name tells the kind, and each with or without files of external data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.catalog.bundle import BundleError
from as2d_cli.catalog.tokenizer_json import TEMPLATES, TOKENIZER, TOKENIZER_CONFIG, read_json

GRAPHS = ("audio_encoder", "embed_tokens", "decoder_model_merged")
CONFIG, GENERATION, PREPROCESSOR = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
)
_FORMS = ("_q4", "", "_quantized", "_int8", "_uint8", "_bnb4", "_q4f16", "_fp16")
"""The forms of a graph, the one to take first. The last two have half precision inside, and often
outside, too, which is not supported there."""
SETTINGS = (CONFIG, GENERATION, PREPROCESSOR, TOKENIZER, TOKENIZER_CONFIG, *TEMPLATES)
"""All of a folder but its graphs and their weights."""
_OPTIONAL = (GENERATION, TOKENIZER_CONFIG, *TEMPLATES)
_KINDS = ("ultravox", "voxtral")
_MOST_BINS = 512
"""Numbers in a frame; more than a spectrum of 400 samples has."""
_LEAST_CONTEXT = 4
"""What the engine takes."""
_REMEDY = "give a folder as it was published"


def is_published(folder: Path) -> bool:
    """Whether `folder` looks as if it had an audio language model."""
    return any(_forms(folder, graph) for graph in GRAPHS)


def published_files(folder: Path) -> dict[str, Path]:
    """The files that a bundle is made of, by their paths in `folder`.

    Raises:
        BundleError: one is missing.
    """
    found: dict[str, Path] = {}
    for graph in GRAPHS:
        forms = _forms(folder, graph)
        if not forms:
            raise BundleError(folder, f"has no {graph}.onnx, nor another form of it", _REMEDY)
        path = next((form for form in forms if not _half(form)), None)
        if path is None:
            raise BundleError(
                forms[0],
                "takes or gives numbers of half precision, which is not supported",
                f"fetch another form of it, such as {graph}_q4.onnx",
            )
        weights = external_files(path)
        lost = next((p for p in weights if not p.is_file()), None)
        if lost is not None:
            raise BundleError(folder, f"has no {_name(folder, lost)}", _REMEDY)
        found |= {_name(folder, p): p for p in (path, *weights)}
    for name in SETTINGS:
        path = folder / name
        if path.is_file():
            found[name] = path
        elif name not in _OPTIONAL:
            raise BundleError(folder, f"has no {name}", _REMEDY)
    return found


def external_files(graph: Path) -> list[Path]:
    """Those in which weights of an ONNX graph lie, whether or not they are there.

    Raises:
        BundleError: it is no ONNX graph, or its weights lie in another folder.
    """
    import onnx

    names: dict[str, None] = {}
    for tensor in _tensors(_load(graph).graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        place = {entry.key: entry.value for entry in tensor.external_data}.get("location", "")
        if place in ("", ".", "..") or Path(place).name != place:
            raise BundleError(graph, f"has weights in '{place[:60]}', outside its folder", _REMEDY)
        if place != place.strip() or not place.isprintable():  # bundle.txt has it in a line
            raise BundleError(graph, f"has weights in '{place[:60]}', which is no name", _REMEDY)
        names[place] = None
    return [graph.parent / name for name in names]


@dataclass(frozen=True)
class Facts:
    """What the configuration says.

    Attributes:
        kind: ``ultravox`` or ``voxtral``.
        bins: numbers in a frame of the features.
        audio_token: id of the placeholder in prompts, or None.
        stack: lines of the encoder that become one; of Ultravox.
        context: positions that the language model knows.
        ends: ids that end an answer.
    """

    kind: str
    bins: int
    audio_token: int | None
    stack: int
    context: int
    ends: tuple[int, ...]


def read_facts(files: Mapping[str, Path]) -> Facts:
    """The facts in the configuration among `files`.

    Raises:
        As2dError: a file is broken, or of another kind of model.
    """
    path = files[CONFIG]
    config = read_json(path)
    kind = config.get("model_type")
    if kind not in _KINDS:
        known = " and ".join(_KINDS)
        raise BundleError(path, f"is of kind '{kind}'; {known} are known", _REMEDY)
    features = _settings(files[PREPROCESSOR])
    text = _part(config, "text_config")
    generation = read_json(files[GENERATION]) if GENERATION in files else {}
    ends: Any = generation.get("eos_token_id", text.get("eos_token_id"))
    listed = ends if isinstance(ends, list) else [ends]
    return Facts(
        kind=str(kind),
        bins=features,
        audio_token=_audio_token(config),
        stack=_number(path, config, "stack_factor", 8),
        context=_number(path, text, "max_position_embeddings", 4096, _LEAST_CONTEXT),
        ends=tuple(end for end in listed if _is_id(end)),
    )


def caches_in_place(decoder: Path) -> bool:
    """Whether a merged decoder may write what it caches where it read what was cached: only its
    operators for grouped-query attention read the one and write the other.

    Raises:
        BundleError: it is no ONNX graph.
    """
    graph = _load(decoder).graph
    pasts = {v.name for v in graph.input if v.name.startswith("past_key_values.")}
    presents = {v.name for v in graph.output if v.name.startswith("present.")}
    for node in graph.node:
        reads, writes = list(node.input), set(node.output)
        if node.op_type == "GroupQueryAttention" and node.domain == "com.microsoft":
            presents -= set(node.output[1:3])
            reads[3:5] = []
        elif any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            return False  # A branch may read anything.
        if pasts & set(reads) or presents & writes:
            return False
    return bool(pasts) and not presents


def _settings(path: Path) -> int:
    """Bins of a front end that is Whisper's in all else."""
    config = read_json(path)
    usual = {"sampling_rate": 16_000, "hop_length": 160, "n_fft": 400, "chunk_length": 30}
    for key, value in usual.items():
        if config.get(key, value) != value:
            problem = f"'{key}' is {config[key]}, where Whisper's feature extractor has {value}"
            raise BundleError(path, problem, _REMEDY)
    bins = _number(path, config, "feature_size", 80)
    if bins % 16 or bins > _MOST_BINS:
        problem = f"'feature_size' is {bins}, which is no multiple of 16 up to {_MOST_BINS}"
        raise BundleError(path, problem, _REMEDY)
    return bins


def _audio_token(config: Mapping[str, Any]) -> int | None:
    # The order in which transformers.js looks for it; -100 is what losses ignore, and no token.
    keys = ("ignore_index", "audio_token_id", "audio_token_index")
    return next((config[key] for key in keys if _is_id(config.get(key))), None)


def _number(path: Path, config: Mapping[str, Any], key: str, otherwise: int, least: int = 1) -> int:
    value = config.get(key, otherwise)
    if type(value) is not int or not least <= value < 1 << 30:
        raise BundleError(path, f"'{key}' is no number that can be", _REMEDY)
    return value


def _part(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 30


def _forms(folder: Path, graph: str) -> list[Path]:
    """The forms of a graph that are there, the one to take first."""
    places = (folder / "onnx", folder)
    paths = (place / f"{graph}{form}.onnx" for form in _FORMS for place in places)
    return [path for path in paths if path.is_file()]


def _half(graph: Path) -> bool:
    """Some input or output is of half precision."""
    import onnx

    main = _load(graph).graph
    values = (*main.input, *main.output)
    return any(v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for v in values)


def _load(graph: Path) -> Any:
    import onnx

    try:
        return onnx.load_model(graph, load_external_data=False)
    except Exception as error:  # protobuf's error class depends on its backend.
        raise BundleError(graph, f"is no ONNX model ({error})", _REMEDY) from None


def _tensors(graph: Any) -> Sequence[Any]:
    """All weights, those inside of branches, too."""
    found = [*graph.initializer]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                found.append(attribute.t)
            for inner in (attribute.g, *attribute.graphs):
                if inner.ByteSize():
                    found += _tensors(inner)
    return found


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
