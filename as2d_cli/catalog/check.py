"""Proof that a bundle is what it says: one line for each thing looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from as2d_cli.catalog.bundle import (
    AUDIO_LLM,
    DESCRIPTION,
    HEAD,
    LLAMA,
    VOICE,
    Bundle,
    sha256_of,
)
from as2d_cli.errors import As2dError

# Operator sets and file format that every ONNX Runtime that as2d accepts can load.
_NEWEST_OPSET = 23
_NEWEST_IR = 11

TranscribeCheck = Callable[[Bundle, Bundle | None], "CheckResult"]
Shapes = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check; ``detail`` names the file and what is wrong with it, in one line."""

    name: str
    ok: bool
    detail: str


def check_bundle(
    bundle: Bundle, transcribe: TranscribeCheck | None = None, target: Bundle | None = None
) -> Iterator[CheckResult]:
    """Check a bundle, yielding each result as it is known.

    The row invariance measured is recorded in the bundle. A check whose ground another one took
    away is left out.

    Args:
        bundle: what to check.
        transcribe: transcribes a short known clip with the bundle and judges the text; gets the
            target, too.
        target: of a head: the bundle of its target, if that is here. Without it nothing is heard.
    """
    files = _files(bundle)
    yield files
    if not files.ok:
        return
    if bundle.family == VOICE:
        if transcribe is not None:
            yield transcribe(bundle, None)
        return
    yield _formats(bundle)
    if bundle.family == AUDIO_LLM:
        yield from _published(bundle)
        return
    try:
        graphs = _Graphs.load(bundle)
    except As2dError as error:
        yield CheckResult("graphs", False, str(error))
        return
    yield CheckResult("graphs", True, "it loads" if bundle.family == LLAMA else "both load")
    interface = _interface(bundle, graphs)
    yield interface
    if not interface.ok:
        return
    yield _pair(bundle, graphs)
    if bundle.family == HEAD:
        yield _target(bundle, target)
    yield _vocabulary(bundle)
    yield _rows(bundle)
    if bundle.family == LLAMA:
        return  # It hears nothing.
    if transcribe is not None and (bundle.family != HEAD or target is not None):
        yield transcribe(bundle, target)


def _published(bundle: Bundle) -> Iterator[CheckResult]:
    """Of an audio language model. Whether its answers are any good is not for a check to say."""
    from as2d_cli.catalog.check_audio_llm import proved

    try:
        for name, detail in proved(bundle):
            yield CheckResult(name, True, detail)
    except As2dError as error:
        yield CheckResult("graphs", False, str(error))
        return
    yield _vocabulary(bundle)
    yield _rows(bundle)


def _files(bundle: Bundle) -> CheckResult:
    for record in bundle.files:
        path = bundle.path / record.name
        if not path.is_file():
            return CheckResult("files", False, f"{path} is missing")
        size = path.stat().st_size
        if size != record.size:
            return CheckResult("files", False, f"{path} has {size} bytes, not {record.size}")
        if sha256_of(path) != record.sha256:
            return CheckResult("files", False, f"{path} is damaged: its SHA-256 is another")
    return CheckResult("files", True, f"{len(bundle.files)} whole")


def _formats(bundle: Bundle) -> CheckResult:
    import onnx

    seen: list[str] = []
    for path in _graph_paths(bundle):
        if path.suffix != ".onnx":
            seen.append(f"{path.suffix} as published")
            continue
        try:
            model = onnx.load_model(path, load_external_data=False)
        except Exception as error:  # protobuf's error class depends on its backend.
            return CheckResult("format", False, f"{path} is no ONNX model ({error})")
        opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if opset > _NEWEST_OPSET or model.ir_version > _NEWEST_IR:
            problem = f"{path} has opset {opset} and IR {model.ir_version}, too new for the engine"
            return CheckResult("format", False, problem)
        seen.append(f"opset {opset} IR {model.ir_version}")
    return CheckResult("format", True, ", ".join(dict.fromkeys(seen)))


@dataclass(frozen=True)
class _Graphs:
    """Shapes of inputs and outputs by name."""

    encoder_inputs: Shapes
    encoder_outputs: Shapes
    decoder_inputs: Shapes
    decoder_outputs: Shapes

    @classmethod
    def load(cls, bundle: Bundle) -> _Graphs:
        from as2d_cli.catalog.runtime import open_session

        shapes: list[Shapes] = []
        for path in _graph_paths(bundle):
            session = open_session(path)
            shapes += [
                {value.name: value.shape for value in values}
                for values in (session.get_inputs(), session.get_outputs())
            ]
        if bundle.family == LLAMA:
            shapes = [{}, {}, *shapes]
        return cls(*shapes)


def _graph_paths(bundle: Bundle) -> Sequence[Path]:
    """The encoder if there is one, and the decoder; of an audio language model all."""
    decoder = bundle.decoder_path
    if bundle.family == LLAMA:
        return (decoder,)
    more = [bundle.path / name for name in (bundle.features, bundle.embedding) if name]
    return (*more, bundle.encoder_path, decoder)


def _takes_steps(bundle: Bundle) -> bool:
    """Whether the decoder is one of as2d's own, for one step over some rows."""
    return bundle.family in ("whisper", LLAMA) or bundle.kind == "adapter"


def _interface(bundle: Bundle, graphs: _Graphs) -> CheckResult:
    layers = range(bundle.layers)
    wanted: tuple[list[str], ...]
    if bundle.family == LLAMA:
        cache = [f"{kind}_{layer}" for layer in layers for kind in "kv"]
        steps = ["tokens", "positions", "places", "select"]
        steps += ["choices", "temperatures", "suppress"]
        wanted = (
            [],
            [],
            [*steps, *(f"past_{name}" for name in cache)],
            ["next", "log_prob", *(f"present_{name}" for name in cache)],
        )
    elif _takes_steps(bundle):
        cache = [f"{kind}_{layer}" for layer in layers for kind in "kv"]
        parts = ("k", "k_scale", "v", "v_scale")
        audio = [f"cross_{part}_{layer}" for layer in layers for part in parts]
        steps = ["tokens", "positions", "places", "choices", "temperatures", "suppress"]
        results = ["next", "log_prob"] + ["language_logits"] * bool(bundle.language_tokens)
        results += [f"query_{n // bundle.heads}" for n in bundle.alignment_heads]
        wanted = (
            ["encoding" if bundle.family == HEAD else "audio"],
            audio,
            [*steps, *audio, *(f"past_{name}" for name in cache)],
            [*results, *(f"present_{name}" for name in cache)],
        )
    elif bundle.family == HEAD:
        wanted = (["encoding"], ["sketch"]) * 2  # One graph in both places.
    else:
        kinds = [
            f"{layer}.{side}.{part}"
            for layer in layers
            for side in ("decoder", "encoder")
            for part in ("key", "value")
        ]
        steps = ["input_ids", "encoder_hidden_states", "use_cache_branch"]
        wanted = (
            ["input_values"],
            ["last_hidden_state"],
            [*steps, *(f"past_key_values.{kind}" for kind in kinds)],
            ["logits", *(f"present.{kind}" for kind in kinds)],
        )
    present = (
        (bundle.encoder_path, "input", graphs.encoder_inputs),
        (bundle.encoder_path, "output", graphs.encoder_outputs),
        (bundle.decoder_path, "input", graphs.decoder_inputs),
        (bundle.decoder_path, "output", graphs.decoder_outputs),
    )
    for (path, side, shapes), names in zip(present, wanted, strict=True):
        for name in names:
            if name not in shapes:
                problem = f"{path} has no {side} '{name}', which {_family(bundle)} needs"
                return CheckResult("interface", False, problem)
    return CheckResult("interface", True, f"inputs and outputs of {_family(bundle)}")


def _family(bundle: Bundle) -> str:
    return f"a head of kind {bundle.kind}" if bundle.family == HEAD else bundle.family


def _pair(bundle: Bundle, graphs: _Graphs) -> CheckResult:
    """Encoder and decoder of one export, and ``bundle.txt`` of both."""
    facts: list[tuple[bool, str]]
    if bundle.family == LLAMA:
        size = graphs.decoder_inputs["past_k_0"][3]
        caches = sum(1 for name in graphs.decoder_inputs if name.startswith("past_"))
        vocabulary = graphs.decoder_inputs["suppress"]
        facts = [
            (caches == 2 * bundle.layers, f"has not the {bundle.layers} layers it should"),
            (size == bundle.head_size, f"has no caches of heads of {bundle.head_size}"),
            (
                list(vocabulary) == [bundle.vocabulary_size],
                f"has not the {bundle.vocabulary_size} tokens it should",
            ),
        ]
    elif _takes_steps(bundle):
        produced = {n: list(s) for n, s in graphs.encoder_outputs.items() if n.startswith("cross_")}
        # The decoder has a slot for each window in front.
        consumed = {n: list(s[1:]) for n, s in graphs.decoder_inputs.items() if n in produced}
        stray = [n for n in graphs.decoder_inputs if n.startswith("cross_") and n not in produced]
        cache = [bundle.heads, bundle.context, bundle.head_size]
        facts = [
            (consumed == produced and not stray, "encoder and decoder are not of one export"),
            (len(produced) == 4 * bundle.layers, f"has not the {bundle.layers} layers it should"),
            (list(graphs.decoder_inputs["past_k_0"][1:]) == cache, f"has no caches of {cache}"),
            (
                list(graphs.decoder_inputs["suppress"]) == [bundle.vocabulary_size],
                f"has not the {bundle.vocabulary_size} tokens it should",
            ),
        ]
    elif bundle.family == HEAD:
        facts = [(bundle.encoder == bundle.decoder, "has a decoder that it does not need")]
    else:
        key = graphs.decoder_inputs["past_key_values.0.decoder.key"]
        layers = sum(1 for name in graphs.decoder_inputs if name.endswith(".decoder.key"))
        widths = {
            graphs.encoder_outputs["last_hidden_state"][2],
            graphs.decoder_inputs["encoder_hidden_states"][2],
            bundle.width,
        }
        facts = [
            (len(widths) == 1, "encoder and decoder are not of one export"),
            (layers == bundle.layers, f"has not the {bundle.layers} layers it should"),
            (
                (key[1], key[3]) == (bundle.heads, bundle.head_size),
                f"has not {bundle.heads} heads of {bundle.head_size}",
            ),
            (
                graphs.decoder_outputs["logits"][2] == bundle.vocabulary_size,
                f"has not the {bundle.vocabulary_size} tokens it should",
            ),
        ]
    if bundle.family == HEAD and graphs.encoder_inputs["encoding"][2] != bundle.encoding_width:
        problem = f"{bundle.encoder_path}: takes no lines of {bundle.encoding_width} numbers"
        return CheckResult("pair", False, problem)
    for holds, problem in facts:
        if not holds:
            return CheckResult("pair", False, f"{bundle.decoder_path}: {problem}")
    shape = f"{bundle.layers} layers, {bundle.heads} heads, {bundle.vocabulary_size} tokens"
    return CheckResult("pair", True, "one graph" if bundle.kind == "ctc" else shape)


def _target(bundle: Bundle, target: Bundle | None) -> CheckResult:
    """The head's target says what the head takes."""
    width = bundle.encoding_width
    if target is None:
        detail = f"'{bundle.target}' is not on this machine: nothing was heard"
        return CheckResult("target", True, detail)
    path = bundle.path / DESCRIPTION
    if target.id != bundle.target:
        return CheckResult("target", False, f"{path}: is for '{bundle.target}', not '{target.id}'")
    if target.width != width:
        problem = f"{path}: takes lines of {width} numbers, '{target.id}' has {target.width}"
        return CheckResult("target", False, problem)
    return CheckResult("target", True, f"{target.id}, lines of {width} numbers")


def _vocabulary(bundle: Bundle) -> CheckResult:
    path: Path = bundle.path / bundle.vocabulary_file
    try:
        pieces = bundle.vocabulary().pieces
    except As2dError as error:
        return CheckResult("vocabulary", False, str(error))
    if len(pieces) != bundle.vocabulary_size:
        problem = f"{path} has {len(pieces)} tokens, the model {bundle.vocabulary_size}"
        return CheckResult("vocabulary", False, problem)
    special = {**bundle.tokens, **bundle.language_tokens}
    if bundle.family == AUDIO_LLM and special["audio"] >= len(pieces):
        special.pop("audio")  # It is in prompts only.
    for name, token in special.items():
        if token >= len(pieces) or pieces[token]:
            return CheckResult("vocabulary", False, f"{path}: token {token} ({name}) is text")
    for token in (*bundle.suppress, *bundle.begin_suppress):
        if token >= len(pieces):
            return CheckResult(
                "vocabulary", False, f"{path}: suppressed token {token} is not there"
            )
    return CheckResult("vocabulary", True, f"{len(pieces)} tokens fit the model")


def _rows(bundle: Bundle) -> CheckResult:
    """Measure row invariance and record it; a graph without it is usable, but not exact."""
    if bundle.kind == "ctc":
        return CheckResult("row invariance", True, "any: all is said at once")
    if not _takes_steps(bundle) and bundle.family != AUDIO_LLM:
        return CheckResult("row invariance", True, "none: reports will say it is not exact")
    from as2d_cli.catalog.probe import measure_row_invariance
    from as2d_cli.catalog.published_probe import measure_decoder_rows

    measure = measure_decoder_rows if bundle.family == AUDIO_LLM else measure_row_invariance
    try:
        measured = measure(bundle.decoder_path)
    except As2dError as error:
        return CheckResult("row invariance", False, str(error))
    if measured != bundle.row_invariance:
        try:
            replace(bundle, row_invariance=measured).write()
        except OSError as error:
            problem = f"{bundle.path}: cannot record '{measured}' ({error.strerror})"
            return CheckResult("row invariance", False, problem)
    detail = {
        "any": "the same numbers for every number of rows",
        "even": "the same numbers for every even number of rows",
        "none": "none: reports will say it is not exact",
    }
    return CheckResult("row invariance", True, detail[measured])
