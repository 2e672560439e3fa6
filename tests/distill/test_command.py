"""``as2d distill`` as a whole, on made-up models and noise."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli import catalog
from as2d_cli.audio.windows import RATE
from as2d_cli.catalog import Bundle, Listeners, Store, default_store, load_catalogue
from as2d_cli.catalog.weights.head import read_head
from as2d_cli.errors import As2dError, ExitStatus
from tests.catalog.material import put
from tests.distill.material import ENCODING_WIDTH, speaking_files
from tests.fakes import Ran, run_cli, write_wav

pytest.importorskip("torch")

from as2d_cli.distill.cache import Cache
from as2d_cli.distill.training import Trainer

ROOT = Path(__file__).parents[2]
SAID = 8
"""Tokens that the target says of any window."""


@dataclass(frozen=True)
class Place:
    """Models and recordings that no test changes."""

    folder: Path
    target: str
    init: str
    audio: str
    held_out: str

    def args(self, out: Path, *more: str) -> list[str]:
        """Arguments of the smallest distillation."""
        return [
            *("distill", "--out", str(out), "--target", self.target, "--init", self.init),
            *("--audio", self.audio, "--held-out", self.held_out, "--threads", "1"),
            *("--layers", "0,1", "--blocks", "1", "--passes", "1,2", *more),
        ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    random = np.random.default_rng(0)
    for name, count in (("talks", 12), ("judge", 2)):
        (folder / name).mkdir()
        for n in range(count):
            write_wav(folder / name / f"{n}.wav", 0.1 * random.standard_normal((2 + n % 5) * RATE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AS2D_CACHE_DIR", str(folder / "cache"))
        yield Place(
            folder,
            str(put(folder / "target", speaking_files(SAID, width=ENCODING_WIDTH, seed=1))),
            str(put(folder / "init", speaking_files(SAID, seed=2))),
            str(folder / "talks"),
            str(folder / "judge"),
        )


def ran(*args: str, **more: Any) -> Ran:
    return run_cli(*args, real=True, **more)


def done(out: Path) -> tuple[bytes, Any]:
    """Bytes of the head, and what the report says but for its times."""
    report = json.loads((out / "report.json").read_text())
    del report["seconds"]
    for point in report["curve"]:
        del point["seconds"]
    return (out / "head.npz").read_bytes(), report


@pytest.fixture(scope="module")
def whole(place: Place) -> Path:
    """The folder of a run that was not interrupted."""
    out = place.folder / "whole" / "mine"
    result = ran(*place.args(out))
    assert (result.status, result.stdout) == (0, f"{out}\n")
    lines = result.stderr.splitlines()
    assert lines[:2] == ["as2d: models", "as2d: 14 recordings"]
    assert [line.split(":")[1] for line in lines if "tokens a step" in line] == [
        " pass 0 of 3 (ridge)",
        " pass 1 of 3 (adapter)",
        " pass 2 of 3 (tune)",
        " pass 3 of 3 (tune)",
    ]
    assert any("the linear map explains" in line for line in lines)
    return out


def test_the_head_and_the_report_are_of_what_was_asked(whole: Path, place: Place) -> None:
    file = read_head(whole / "head.npz")
    target = default_store().find(place.target)
    assert target is not None
    assert (file.id, file.target, file.kind) == ("mine", target.id, "adapter")
    head: Any = file.head
    assert len(head.decoder.layers) == 2 and len(head.adapter.blocks) == 1
    report = json.loads((whole / "report.json").read_text())
    assert report["request"]["passes"] == [1, 2]
    assert (report["audio"], report["held_out_windows"]) == (["talks"], 2)
    assert report["hours"] == pytest.approx(46 / 3600, rel=0.3)  # joined, with pauses
    assert [point["passes"] for point in report["curve"]] == [0, 1, 2, 3]
    assert report["curve"][0]["loss"] is None
    assert report["head_bytes"] == (whole / "head.npz").stat().st_size
    # Nobody needs to know where on a machine it was made.
    assert str(place.folder) not in json.dumps({**report, "request": None})


def test_again_gives_the_same_without_training(whole: Path, place: Place) -> None:
    before = done(whole)
    result = ran(*place.args(whole))
    assert (result.status, result.stdout) == (0, f"{whole}\n")
    assert "pass" not in result.stderr
    assert done(whole) == before


def test_quiet_is_quiet(whole: Path, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    result = ran(*place.args(out, "--quiet"))
    assert (result.status, result.stdout, result.stderr) == (0, f"{out}\n", "")
    # And decides nothing.
    assert done(out) == done(whole)
    assert ran(*place.args(out, "-q", "--layers", "x")).stderr.count("\n") == 1


def test_on_a_terminal_the_folder_is_the_last_line(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    result = ran(*place.args(out), terminal=True, columns=200, variables={"TERM": "xterm"})
    assert result.status == 0
    assert "\x1b[?25l" in result.stdout and "collecting: " in result.stdout
    assert result.stdout.endswith(f"{out}\n")


def test_the_head_drafts_for_its_target(whole: Path, place: Place) -> None:
    clip = str(place.folder / "judge" / "1.wav")
    # What a random model says is neither speech nor to be believed.
    asked = ("transcribe", clip, "--target", place.target, "--no-vad", "--no-fallback", "-q")
    with_head = ran(*asked, "--drafter", str(whole))
    alone = ran(*asked, "--method", "target")
    assert (with_head.status, with_head.stderr) == (0, "")
    assert alone.status == 0 and alone.stdout.strip()
    assert with_head.stdout == alone.stdout


@pytest.mark.parametrize("method", ["adapter", "ctc"])
def test_an_interrupted_run_goes_on(
    place: Place, whole: Path, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole
    if method == "ctc":
        expected = tmp_path / "ctc" / "mine"
        assert ran(*place.args(expected, "--method", "ctc")).status == 0
        assert read_head(expected / "head.npz").kind == "ctc"
    out = tmp_path / "parts" / "mine"
    add, train = Cache.add, Trainer._pass

    def interrupted_while_collecting(cache: Cache, *args: Any) -> None:
        if len(cache.entries) == 2:
            raise KeyboardInterrupt
        add(cache, *args)

    def interrupted_while_training(trainer: Trainer, stage: str) -> float:
        if stage == "tune":
            raise KeyboardInterrupt
        return train(trainer, stage)

    for owner, name, instead in (
        (Cache, "add", interrupted_while_collecting),
        (Trainer, "_pass", interrupted_while_training),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, instead)
            result = ran(*place.args(out, "--method", method))
        assert (result.status, result.stdout) == (130, "")
        assert not (out / "head.npz").exists()
    result = ran(*place.args(out, "--method", method))
    assert (result.status, result.stdout) == (0, f"{out}\n")
    assert [line for line in result.stderr.splitlines() if "pass 1 of 3" in line] == []
    assert done(out) == done(expected)


def test_ctrl_c_of_the_process(place: Place, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "as2d_cli", *place.args(tmp_path / "mine", "--passes", "0,99")]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "pass 1 of 99" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert all(line.startswith("as2d: pass") for line in err.splitlines())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--layers", "a"], "--layers a: is not a list of numbers"),
        (["--layers", ""], "--layers : is not a list of numbers"),
        (["--layers", "0,²"], "--layers 0,²: is not a list of numbers"),
        (["--layers", "0,2"], "--layers 0,2: {init} has 2 layers; give numbers from 0 to 1"),
        (["--passes", "3"], "--passes 3: is not two numbers, one of them above 0"),
        (["--passes", "1,2,3"], "--passes 1,2,3: is not two numbers, one of them above 0"),
        (["--passes", "0,0"], "--passes 0,0: is not two numbers, one of them above 0"),
        (["--passes", "-1,2"], "--passes -1,2: is not a list of numbers"),
        (["--method", "rnn"], "invalid value for '--method'"),
        (["--hours", "inf"], "--hours inf: is no number"),
        (["--hours", "0"], "invalid value for '--hours'"),
        (["--cache-gb", "inf"], "--cache-gb inf: is no number"),
        (["--seed", "4294967296"], "invalid value for '--seed'"),
        (["--pieces", "5"], "invalid value for '--pieces'"),
        (["--noise", "{folder}/talks/0.wav"], "{folder}/talks/0.wav: holds no WAV files to mix"),
        (["--audio", "{folder}/missing"], "{folder}/missing: is no folder; name folders of audio"),
        (["--work", "{folder}/talks/0.wav"], "{folder}/talks/0.wav: cannot be made (File exists)"),
        (["--out", "{folder}/talks/0.wav"], "{folder}/talks/0.wav/work: cannot be made (Not a"),
        (["--init", "{folder}/other"], "--init {folder}/other: is of the family moonshine; give"),
        (["--target", "{folder}/other"], "--target {folder}/other: is of the family moonshine; "),
    ],
)
def test_what_cannot_be_served_is_told_of_in_one_line(
    place: Place, tmp_path: Path, more: list[str], message: str
) -> None:
    other = place.folder / "other"
    if not other.exists():
        bundle = default_store().find(place.target)
        assert bundle is not None
        other.mkdir()
        replace(bundle, path=other, family="moonshine").write()
    names = {"folder": str(place.folder), "init": place.init}
    result = ran(
        *place.args(tmp_path / "mine", "--quiet", *(part.format(**names) for part in more))
    )
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith(f"as2d: {message.format(**names)}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--audio", "--out"])
def test_what_must_be_given(option: str) -> None:
    args = {"--audio": "talks", "--out": "mine"}
    del args[option]
    result = ran("distill", *(word for pair in args.items() for word in pair))
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == f"as2d: missing option '{option}'; see 'as2d distill --help'\n"


def test_another_request_in_the_same_folder_is_refused(whole: Path, place: Place) -> None:
    before = done(whole)
    for more, message in (
        (["--seed", "1"], f"{whole / 'work' / 'cache'}: was collected with another seed; name"),
        (["--no-vary"], f"{whole / 'work' / 'cache'}: was collected with another vary; name"),
        (["--layers", "1"], f"{whole / 'work' / 'checkpoint.pt'}: is of another head or"),
    ):
        result = ran(*place.args(whole, "--quiet", *more))
        assert (result.status, result.stdout) == (2, "")
        assert result.stderr.startswith(f"as2d: {message}")
        assert result.stderr.count("\n") == 1
    assert done(whole) == before


def test_too_little_speech(place: Place, tmp_path: Path) -> None:
    write_wav(tmp_path / "silence.wav", np.zeros(5 * RATE))
    args = place.args(tmp_path / "mine", "--quiet")
    args[args.index("--audio") + 1] = str(tmp_path)
    result = ran(*args)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == (
        f"as2d: {tmp_path}: too little speech to train on and to judge by; "
        "add recordings, or name some with --held-out\n"
    )


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = ran("distill", "--audio", "talks", "--out", "mine")
    assert (result.status, result.stdout) == (3, "")
    assert result.stderr == (
        "as2d: distill needs PyTorch, which is not installed; run: pip install 'as2d[distill]'\n"
    )


@pytest.mark.parametrize("args", [["--help"], ["distill", "--help"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = (
        f"import sys; from as2d_cli.__main__ import main; sys.argv = ['as2d', *{args}]\n"
        "main()\n"
        "print(sorted({'numpy', 'torch', 'onnx', 'rich', 'as2d_cli._native'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path = {[str(ROOT), *sys.path]!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "distill" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "[]"


def test_downloads_are_told_of(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fetching(Store):
        """Begins to fetch whatever is asked for, and fails."""

        def ensure(self, name_or_path: str | Path, listeners: Listeners) -> Bundle:
            listeners.on_wait("whisper-base")
            entry = load_catalogue().get("whisper-base")
            assert entry is not None
            listeners.on_start(entry, tmp_path)
            raise As2dError("no network", status=ExitStatus.UNAVAILABLE)

    monkeypatch.setattr(catalog, "default_store", lambda **_: Fetching(tmp_path))
    result = ran(*place.args(tmp_path / "mine"))
    assert (result.status, result.stdout) == (3, "")
    assert result.stderr == (
        "as2d: models\n"
        "as2d: another process is pulling whisper-base, waiting\n"
        f"as2d: fetching whisper-base (148 MB, licence MIT) to {tmp_path}\n"
        "as2d: no network\n"
    )
