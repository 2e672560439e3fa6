"""Whole files, and the option that asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.errors import As2dError
from as2d_cli.output.file import ResultFile


def test_the_option_that_asked_is_named(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match=r"--json .* is a directory"):
        ResultFile(tmp_path, "--json")
    with pytest.raises(As2dError, match="cannot write --json"):
        ResultFile(tmp_path / "gone" / "bench.json", "--json")
    assert list(tmp_path.iterdir()) == []
