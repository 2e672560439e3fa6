"""Writes the completion scripts of this folder: ``python completions/generate.py``.

The scripts ask the program itself for what can come next, so they change with Typer and not with
the options; a test compares them with what this file would write.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FILES = {"bash": "as2d.bash", "zsh": "_as2d", "fish": "as2d.fish"}
"""Named as each shell looks for them in its folder of completions."""


def script(shell: str) -> str:
    """The script for `shell`, as the program gives it."""
    given = subprocess.run(
        [sys.executable, "-m", "as2d_cli"],
        env=os.environ | {"_AS2D_COMPLETE": f"source_{shell}"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return given.stdout.strip("\n") + "\n"


if __name__ == "__main__":
    for shell, name in FILES.items():
        (Path(__file__).parent / name).write_text(script(shell), encoding="utf-8")
