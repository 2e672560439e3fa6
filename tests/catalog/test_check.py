"""``models check`` finds what is wrong and names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from as2d_cli.catalog import Bundle, Store
from as2d_cli.catalog.bundle import FileRecord, record_file
from as2d_cli.catalog.check import CheckResult, check_bundle
from as2d_cli.catalog.vocabulary import Vocabulary
from tests.catalog.material import catalogue, put, whisper_files


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("sound")
    mine = put(folder / "mine", whisper_files())
    bundle = Store(folder / "cache", catalogue()).find(str(mine))
    assert bundle is not None
    return bundle


@pytest.fixture
def bundle(sound: Bundle, tmp_path: Path) -> Bundle:
    return Bundle.read(shutil.copytree(sound.path, tmp_path / "bundle"))


def recorded_again(bundle: Bundle, **changes: object) -> Bundle:
    """The bundle with the records of the files as they are now: damage that digests hide."""
    files: tuple[FileRecord, ...] = tuple(record_file(bundle.path / f.name) for f in bundle.files)
    return replace(bundle, files=files, **changes)  # type: ignore[arg-type]


def failures(bundle: Bundle) -> dict[str, str]:
    return {result.name: result.detail for result in check_bundle(bundle) if not result.ok}


def test_a_sound_bundle(bundle: Bundle) -> None:
    results = list(check_bundle(bundle))
    assert all(result.ok for result in results)
    assert [result.name for result in results] == [
        "files",
        "format",
        "graphs",
        "interface",
        "pair",
        "vocabulary",
        "row invariance",
    ]


def flip(bundle: Bundle) -> Bundle:
    path = bundle.path / "decoder.data"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    return bundle


def lose(bundle: Bundle) -> Bundle:
    (bundle.path / "encoder.data").unlink()
    return bundle


def cut(bundle: Bundle) -> Bundle:
    path = bundle.path / "vocabulary.bin"
    path.write_bytes(path.read_bytes()[:-1])
    return bundle


def web_page(bundle: Bundle) -> Bundle:
    (bundle.path / "encoder.onnx").write_bytes(b"<html>")
    return recorded_again(bundle)


def future(bundle: Bundle) -> Bundle:
    model = onnx.load_model(bundle.decoder_path, load_external_data=False)
    model.ir_version = 99
    bundle.decoder_path.write_bytes(model.SerializeToString())
    return recorded_again(bundle)


def renamed(bundle: Bundle) -> Bundle:
    model = onnx.load_model(bundle.encoder_path, load_external_data=False)
    model.graph.input[0].name = "sound"
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == "audio":
                node.input[index] = "sound"
    bundle.encoder_path.write_bytes(model.SerializeToString())
    return recorded_again(bundle)


def other_layers(bundle: Bundle) -> Bundle:
    return replace(bundle, layers=1)


def other_heads(bundle: Bundle) -> Bundle:
    return replace(bundle, heads=4, head_size=8)


def other_vocabulary(bundle: Bundle) -> Bundle:
    Vocabulary((b"a",), False).write(bundle.path / "vocabulary.bin")
    return recorded_again(bundle)


def text_as_special(bundle: Bundle) -> Bundle:
    return replace(bundle, tokens={**bundle.tokens, "end": 5})


@pytest.mark.parametrize(
    ("damage", "name", "file", "said"),
    [
        (flip, "files", "decoder.data", "SHA-256"),
        (lose, "files", "encoder.data", "is missing"),
        (cut, "files", "vocabulary.bin", "bytes, not"),
        (web_page, "format", "encoder.onnx", "no ONNX model"),
        (future, "format", "decoder.onnx", "IR 99"),
        (renamed, "interface", "encoder.onnx", "no input 'audio'"),
        (other_layers, "pair", "decoder.onnx", "1 layers"),
        (other_heads, "pair", "decoder.onnx", "caches"),
        (other_vocabulary, "vocabulary", "vocabulary.bin", "has 1 tokens"),
        (text_as_special, "vocabulary", "vocabulary.bin", "token 5 (end) is text"),
    ],
)
def test_damage_is_named(
    bundle: Bundle, damage: Callable[[Bundle], Bundle], name: str, file: str, said: str
) -> None:
    found = failures(damage(bundle))
    assert name in found
    assert str(bundle.path / file) in found[name]
    assert said in found[name]
    assert "\n" not in found[name]


def test_measured_rows_are_recorded(bundle: Bundle) -> None:
    replace(bundle, row_invariance="none").write()
    assert not failures(Bundle.read(bundle.path))
    assert Bundle.read(bundle.path).row_invariance == "any"


def test_the_clip_is_transcribed_last(bundle: Bundle) -> None:
    results = list(
        check_bundle(bundle, lambda b, _: CheckResult("transcribe", b is bundle, "said so"))
    )
    assert results[-1] == CheckResult("transcribe", True, "said so")
