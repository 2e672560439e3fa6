"""What `as2d bench` takes as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.bench import dataset
from as2d_cli.bench.dataset import Clip, default_clips, load_clips
from as2d_cli.errors import As2dError, ExitStatus


def test_a_manifest_names_files_beside_it(tmp_path: Path) -> None:
    manifest = tmp_path / "clips.jsonl"
    manifest.write_text(
        '{"file": "a.wav", "language": "en", "text": "hello", "category": "noisy"}\n'
        "\n"
        '{"file": "sub/b.wav", "language": null}\n'
        '{"file": "c.wav", "score": false}\n'
    )
    assert load_clips([manifest]) == [
        Clip(tmp_path / "a.wav", "en", "hello", "noisy"),
        Clip(tmp_path / "sub" / "b.wav"),
    ]


def test_folders_and_files_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("b.wav", "a.flac"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "inner").mkdir()
    single = tmp_path / "b.wav"
    assert load_clips([tmp_path, single]) == [
        Clip(tmp_path / "a.flac"),
        Clip(single),
        Clip(single),
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("not json\n", "line 1"),
        ('{"file": "a.wav"}\n{"text": "x"}\n', "line 2"),
        ("[1]\n", "line 1"),
        ('"a.wav"\n', "line 1"),
        ('{"file": 3}\n', "line 1"),
        ('{"file": "a.wav", "score": false}\n', "no clips"),
        ("", "no clips"),
    ],
)
def test_a_malformed_manifest_is_refused_by_line(
    tmp_path: Path, content: str, problem: str
) -> None:
    manifest = tmp_path / "clips.jsonl"
    manifest.write_text(content)
    with pytest.raises(As2dError, match=problem) as caught:
        load_clips([manifest])
    assert caught.value.status == ExitStatus.USAGE
    assert str(manifest) in str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match="no such file"):
        load_clips([tmp_path / "gone.wav"])


def test_a_folder_with_a_manifest_is_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "b.wav").write_bytes(b"")
    (tmp_path / "a.wav").write_bytes(b"")
    (tmp_path / "clips.jsonl").write_text('{"file": "b.wav"}\n')
    assert load_clips([tmp_path]) == [Clip(tmp_path / "b.wav")]


def test_what_is_here_anyway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkout = default_clips()
    assert len(checkout) == 4 and all(clip.path.is_file() and clip.text for clip in checkout)
    # An installed package has no tests beside it.
    monkeypatch.setattr(dataset, "_CHECKOUT_MANIFEST", tmp_path / "clips.jsonl")
    (shipped,) = default_clips()
    assert shipped.path.is_file()
    assert (shipped.language, shipped.text) == (checkout[0].language, checkout[0].text)
