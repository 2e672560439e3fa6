"""Completion scripts: current, and answered by the program."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "completions"
GENERATOR = runpy.run_path(str(FOLDER / "generate.py"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_current(shell: str) -> None:
    file = FOLDER / GENERATOR["FILES"][shell]
    assert file.read_text() == GENERATOR["script"](shell), "run: python completions/generate.py"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("as2d tr", ["transcribe"]),
        ("as2d transcribe --format ", ["txt", "srt", "vtt", "tsv", "json", "jsonl"]),
        ("as2d transcribe --method a", ["auto", "as2d", "adaptive"]),
        ("as2d transcribe --target-c", ["--target-cores"]),
    ],
)
def test_program_answers(words: str, expected: list[str]) -> None:
    asked = {
        "_AS2D_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    path = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        [sys.executable, "-m", "as2d_cli"],
        env=os.environ | asked | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout.split() == expected
    assert answer.stderr == ""


@pytest.mark.parametrize("shell", [s for s in ("bash", "zsh", "fish") if shutil.which(s)])
def test_shell_accepts_the_script(shell: str) -> None:
    file = FOLDER / GENERATOR["FILES"][shell]
    subprocess.run([shell, "-n", str(file)], check=True)
