"""The configuration file and AS2D_* variables: who goes before whom, and what is wrong where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from as2d_cli.machine import read_machine
from as2d_cli.machine.cores import core_list
from tests.fakes import Ran, Script, run_cli, tone, write_wav


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with clip.wav."""
    monkeypatch.chdir(tmp_path)
    write_wav(tmp_path / "clip.wav", tone(2))
    return tmp_path


def _run(*args: str, config: str | None = None, script: Script | None = None, **more: str) -> Ran:
    if config is not None:
        Path("my.toml").write_text(config)
        more["AS2D_CONFIG"] = "my.toml"
    return run_cli("transcribe", *args, "clip.wav", variables=more, script=script)


def _format(ran: Ran) -> str:
    return {"{": "json", "s": "tsv", "H": "txt"}[ran.stdout[0]]


def test_precedence(folder: Path) -> None:
    config = '[transcribe]\nformat = "tsv"\n'
    assert _format(_run()) == "txt"
    assert _format(_run(config=config)) == "tsv"
    assert _format(_run(config=config, AS2D_TRANSCRIBE_FORMAT="json")) == "json"
    assert _format(_run("-f", "txt", config=config, AS2D_TRANSCRIBE_FORMAT="json")) == "txt"


def test_values_of_every_kind(folder: Path) -> None:
    config = """
        [transcribe]
        format = ["txt", "srt"]
        output = "new/"
        max-tokens = 5
        line_length = 20
        vad = false
        drafter = "none"
    """
    script = Script()
    assert _run(config=config, script=script).status == 0
    assert sorted(p.name for p in Path("new").iterdir()) == ["clip.srt", "clip.txt"]
    assert Path("new/clip.txt").read_text() == "Hell\n"
    assert not [entry for entry in script.log if entry[0] == "voice"]


def test_variables_of_every_kind(folder: Path) -> None:
    variables = {
        "AS2D_TRANSCRIBE_FORMAT": "txt, srt",
        "AS2D_TRANSCRIBE_OUTPUT": "new/",
        "AS2D_TRANSCRIBE_MAX_TOKENS": "5",
        "AS2D_TRANSCRIBE_VAD": "0",
        "AS2D_TRANSCRIBE_LANGUAGE": "",
    }
    script = Script()
    assert _run(script=script, **variables).status == 0
    assert Path("new/clip.txt").read_text() == "Hell\n"
    assert Path("new/clip.srt").exists()
    assert not [entry for entry in script.log if entry[0] == "voice"]


WRONG = [
    ("[transcribe]\nlanguag = 1", "my.toml: transcribe.languag is no setting; did you mean langua"),
    ("[transcrib]", "my.toml: transcrib is no setting; did you mean transcribe?"),
    ("[transcribe]\nbudget = 'x'", "my.toml: transcribe.budget: "),
    ("[transcribe]\nlanguage = ['de']", "my.toml: transcribe.language is a list; give one value"),
    ("[transcribe]\nlanguage = true", "my.toml: transcribe.language cannot be True; see"),
    ("[transcribe]\nhelp = true", "my.toml: transcribe.help is no setting; "),
    ("[transcribe", "my.toml: "),
]


@pytest.mark.parametrize(("config", "stderr"), WRONG)
def test_what_is_wrong_is_named(folder: Path, config: str, stderr: str) -> None:
    ran = _run(config=config)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"as2d: {stderr}")
    assert ran.stderr.count("\n") == 1


def test_a_wrong_variable_is_named(folder: Path) -> None:
    ran = _run(AS2D_TRANSCRIBE_FORMAT="mp3")
    assert ran.status == 2
    assert ran.stderr.startswith("as2d: AS2D_TRANSCRIBE_FORMAT: ")


def test_a_file_that_was_asked_for_must_be_there(folder: Path) -> None:
    ran = _run(AS2D_CONFIG="gone.toml")
    assert (ran.status, ran.stderr) == (
        2,
        "as2d: cannot read gone.toml: No such file or directory; set AS2D_CONFIG to another\n",
    )


def test_doctor(folder: Path) -> None:
    ran = run_cli("doctor", "--json", variables={"AS2D_CACHE_DIR": str(folder / "cache")})
    assert ran.status == 0
    found = {row["topic"]: row["text"] for row in json.loads(ran.stdout)}
    assert {"as2d", "kernels", "pinning", "onnxruntime", "av", "cache", "microphone"} < set(found)
    for cluster in read_machine().clusters:
        assert f"cores {core_list(cluster.cores)}" in found
    assert found["model whisper-base"] == "target, not pulled"
    assert found["model silero-vad"] == "vad, not pulled"
    assert "whisper-base on cores" in found["would run"]
    assert found["planned"] == "by rule, not by measurement"
    assert "AS2D_CACHE_DIR" in found["settings"]
    assert not (folder / "cache").exists()


def test_doctor_fails_where_nothing_can_work(folder: Path) -> None:
    (folder / "file").write_text("x")
    ran = run_cli("doctor", variables={"AS2D_CACHE_DIR": str(folder / "file")})
    assert ran.status == 1
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("cache ")]
    assert line.endswith(f"FAILED: {folder / 'file'} cannot be written; set AS2D_CACHE_DIR")
