"""The check that a bundle understands speech."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from as2d_cli.catalog import ensure_bundle
from as2d_cli.tasks.known_clip import transcribe_known_clip


@pytest.mark.model
@pytest.mark.parametrize("model", ["whisper-base", "whisper-tiny.en", "moonshine-tiny-en"])
def test_each_embedded_model_hears_the_words(model: str) -> None:
    result = transcribe_known_clip(ensure_bundle(model))
    assert result.ok, result.detail


@pytest.mark.model
def test_weights_that_were_overwritten_are_found(tmp_path: Path) -> None:
    bundle = ensure_bundle("whisper-tiny.en")
    folder = shutil.copytree(bundle.path, tmp_path / "damaged")
    weights = folder / "decoder.data"
    weights.write_bytes(bytes(weights.stat().st_size))
    result = transcribe_known_clip(dataclasses.replace(bundle, path=folder))
    assert not result.ok
    assert str(folder) in result.detail


def test_a_folder_that_cannot_be_loaded_fails(tmp_path: Path) -> None:
    from as2d_cli.catalog import find_bundle
    from tests.catalog.material import put, whisper_files

    bundle = find_bundle(str(put(tmp_path / "tiny", whisper_files())))
    assert bundle is not None
    result = transcribe_known_clip(dataclasses.replace(bundle, path=tmp_path / "nowhere"))
    assert not result.ok
    assert "nowhere" in result.detail
