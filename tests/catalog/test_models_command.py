"""``as2d models``: what it prints and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.catalog import load_catalogue
from as2d_cli.catalog import store as store_module
from as2d_cli.catalog.check import CheckResult
from as2d_cli.catalog.entries import HubSource, PackageSource, ShippedSource
from as2d_cli.catalog.sources import shipped
from as2d_cli.errors import ExitStatus
from as2d_cli.tasks import known_clip
from tests.catalog.conftest import FakeHub
from tests.catalog.material import catalogue, entry, hub_source, whisper_files
from tests.fakes import Ran, run_cli

FILES = whisper_files()
PREFIX = f"/someone/tiny/resolve/{'0' * 40}/"


@pytest.fixture
def cache(tmp_path: Path, fake_hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a catalogue of one model that the hub has and one that none can run."""
    fake_hub.files = {PREFIX + name: content for name, content in FILES.items()}
    known = catalogue(
        entry(FILES, hub_source()),
        replace(entry({"a.gguf": b"x"}, model_id="llm", family="gguf"), note="cannot speak"),
    )
    monkeypatch.setattr(store_module, "load_catalogue", lambda: known)
    return tmp_path / "cache"


def models(cache: Path, *args: str, terminal: bool = False, offline: bool = False) -> Ran:
    variables = {"AS2D_CACHE_DIR": str(cache), "NO_COLOR": "1"}
    if offline:
        variables["AS2D_OFFLINE"] = "1"
    return run_cli("models", *args, terminal=terminal, columns=100, variables=variables)


def test_list_on_a_pipe_is_tab_separated(cache: Path) -> None:
    size = sum(map(len, FILES.values()))
    ran = models(cache, "list")
    assert ran.status == 0
    assert ran.stdout.splitlines()[0] == f"tiny\ttarget\twhisper\ten\t{size}\tMIT\tnot pulled\t"
    assert "\x1b" not in ran.stdout
    models(cache, "pull")
    assert models(cache, "list").stdout.splitlines()[0].endswith("\tready\t")


def test_list_as_json(cache: Path) -> None:
    rows = json.loads(models(cache, "list", "--json").stdout)
    assert [row["id"] for row in rows] == ["tiny", "llm"]
    assert rows[0]["languages"] == ["en"]
    assert rows[0]["default"] is True


def test_list_on_a_terminal_is_a_table(cache: Path) -> None:
    lines = models(cache, "list", terminal=True).stdout.splitlines()
    assert lines[0].split() == ["id", "role", "family", "languages", "size", "licence", "state"]
    assert lines[1].split()[:4] == ["tiny", "target", "whisper", "en"]
    assert all(len(line) <= 100 for line in lines)
    assert lines[2].split()[-2:] == ["not", "usable"]
    assert lines[3:] == ["llm: cannot speak"]


def test_pull_says_what_how_large_and_where(cache: Path) -> None:
    ran = models(cache, "pull", "tiny")
    folder = cache / "bundles" / "tiny"
    assert (ran.status, ran.stdout) == (0, "")
    assert ran.stderr == (
        f"as2d: fetching tiny (0 MB, licence MIT) to {folder}\nas2d: tiny is ready in {folder}\n"
    )
    assert models(cache, "pull", "tiny").stderr == f"as2d: tiny is ready in {folder}\n"
    assert models(cache, "pull", "tiny", "--quiet", "--force").stderr == ""


def test_pull_on_a_terminal_leaves_only_its_lines(cache: Path) -> None:
    ran = models(cache, "pull", "tiny", terminal=True)
    assert ran.status == 0
    assert "model.bin" in ran.stdout
    assert ran.stdout.rstrip().endswith(f"as2d: tiny is ready in {cache / 'bundles' / 'tiny'}")


def test_a_typo_stops_before_anything_is_fetched(cache: Path, fake_hub: FakeHub) -> None:
    ran = models(cache, "pull", "tiny", "tinny")
    assert ran.status == ExitStatus.UNAVAILABLE
    assert ran.stderr == "as2d: no model 'tinny'; did you mean tiny?\n"
    assert not fake_hub.requests


@pytest.mark.parametrize(("args", "offline"), [(("--offline",), False), ((), True)])
def test_offline(cache: Path, fake_hub: FakeHub, args: tuple[str, ...], offline: bool) -> None:
    ran = models(cache, "pull", *args, offline=offline)
    assert ran.status == ExitStatus.UNAVAILABLE
    assert ran.stderr.count("\n") == 1
    assert not fake_hub.requests


def test_path_check_and_remove(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A model of a few random weights understands nothing.
    heard = CheckResult("speech", True, "22 of 22 words")
    monkeypatch.setattr(known_clip, "transcribe_known_clip", lambda bundle, target: heard)
    missing = models(cache, "path", "tiny")
    assert missing.status == ExitStatus.UNAVAILABLE
    assert (
        missing.stderr == "as2d: model 'tiny' is not on this machine; run 'as2d models pull tiny'\n"
    )
    models(cache, "pull", "tiny")
    assert models(cache, "path", "tiny").stdout == f"{cache / 'bundles' / 'tiny'}\n"
    checked = models(cache, "check")
    assert checked.status == 0
    assert checked.stdout.splitlines()[0] == "tiny\tfiles\tok\t5 whole"
    damaged = cache / "bundles" / "tiny" / "decoder.onnx"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    broken = models(cache, "check", "tiny")
    assert broken.status == ExitStatus.FAILURE
    assert broken.stdout.startswith(f"tiny\tfiles\tFAILED\t{damaged} has ")
    assert models(cache, "remove", "tiny").stderr == "as2d: tiny is removed\n"
    assert models(cache, "remove", "tiny").stderr == "as2d: tiny was not there\n"
    assert models(cache, "check").stdout == ""


def test_the_catalogue_that_comes_with_as2d() -> None:
    known = load_catalogue()
    target, drafter = known.defaults("transcribe")
    assert target.id == "whisper-base"
    # One that was made for the target, or the one for all of them.
    assert drafter.id == "whisper-tiny.en" or drafter.target == "whisper-base"
    other = known.default_drafter("transcribe", "whisper-small", "de")
    assert other is not None and other.id == "whisper-tiny.en"
    for model in known.models:
        for file in model.files:
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
        for source in model.sources:
            if isinstance(source, HubSource):
                seen = source.revision != "main"
                assert (
                    len(bytes.fromhex(source.revision)) == 20 if seen else model.role == "audio-llm"
                )
            if isinstance(source, PackageSource):
                assert set(source.members) == {file.name for file in model.files}
                assert all("==" in package for package in source.packages)
                assert all(file.size and file.sha256 for file in model.files)
            if isinstance(source, ShippedSource):
                assert set(source.paths) == {file.name for file in model.files}
                assert all(file.size and file.sha256 for file in model.files)
                assert shipped.find(model)
        assert bool(model.target) == (model.family == "head")
        if model.target:
            assert known.require(model.target).role == "target"


def test_models_list_says_which_answers_are_of_no_use(tmp_path: Path) -> None:
    ran = run_cli("models", "list", variables={"AS2D_CACHE_DIR": str(tmp_path)})
    rows = {line.split("\t")[0]: line.split("\t") for line in ran.stdout.splitlines()}
    assert rows["smollm2-135m-instruct"][-1] == "its answers are not usable"
    assert rows["qwen2.5-coder-1.5b-instruct"][1] == "llm"


def test_models_list_has_models_that_hear(tmp_path: Path) -> None:
    ran = run_cli("models", "list", variables={"AS2D_CACHE_DIR": str(tmp_path)})
    rows = {line.split("\t")[0]: line.split("\t") for line in ran.stdout.splitlines()}
    for name in ("ultravox-v0_5-llama-3_2-1b", "voxtral-mini-3b"):
        assert rows[name][1:3] == ["audio-llm", "audio-llm"]
        assert rows[name][-2] == "not pulled"
        assert "not tried yet" in rows[name][-1]
