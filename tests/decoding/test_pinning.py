"""Threads that are not where they were asked to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from as2d_cli.catalog import ensure_bundle
from as2d_cli.decoding import Engine, Plan
from as2d_cli.decoding.pinning import misplaced
from as2d_cli.machine import read_machine
from as2d_cli.machine.cores import core_list
from tests.catalog.material import put, whisper_files
from tests.fakes import Script, run_cli, tone, write_wav

LAST = 1023
"""A core that no machine of these tests has."""


def thread(requested: str, actual: str, refused: str = "") -> dict[str, str]:
    return {"name": "t", "requested": requested, "actual": actual, "refused": refused}


@pytest.mark.parametrize(
    ("target", "draft", "line"),
    [
        ([], [], None),
        ([thread("0", "0"), thread("1", "1")], [thread("", "0-3")], None),
        (
            [thread("0", "0"), thread("2", "0-1", "Invalid argument")],
            [thread("10", "0-1", "Invalid argument")],
            "the system does not let threads be bound to core 2, 10 (Invalid argument): they run "
            "on 0-1",
        ),
        (
            [],
            [thread("3", "0-1")],
            "the system does not let threads be bound to core 3: they run on 0-1",
        ),
    ],
)
def test_one_line_for_all(target: list[Any], draft: list[Any], line: str | None) -> None:
    lanes = {"target": {"threads": target}, "draft": {"threads": draft}}
    assert misplaced(lanes) == line


def test_a_refused_core_is_a_notice_and_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = read_machine()
    if not facts.can_pin:
        pytest.skip("threads cannot be pinned here")
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    target = ensure_bundle(str(put(tmp_path / "one", whisper_files())))
    first = facts.cores[0]
    with Engine.open(target, None, Plan("target", (first, LAST), (), 0)) as engine:
        assert len(engine.notices) == 1
        assert f"core {LAST} (" in engine.notices[0]
        assert engine.notices[0].endswith(f"they run on {core_list(facts.allowed or ())}")
        threads = engine.start().counters().lanes["target"]["threads"]
        assert {t["requested"] for t in threads if t["refused"]} == {str(LAST)}
    with Engine.open(target, None, Plan("target", (first,), (), 0)) as engine:
        assert engine.notices == []


def test_a_notice_is_said_once(tmp_path: Path) -> None:
    clip = str(write_wav(tmp_path / "clip.wav", tone(2)))
    ran = run_cli("transcribe", clip, clip, script=Script(notices=["core 3 is refused"]))
    assert ran.status == 0
    assert ran.stderr == "as2d: core 3 is refused\n"
    assert run_cli("transcribe", "-q", clip, script=Script(notices=["core 3"])).stderr == ""
