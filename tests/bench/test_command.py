"""``as2d bench`` as a whole, on a machine whose times and texts are known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.app import Terminated
from tests.bench.fakes import FakeMachine, Job, run_bench
from tests.fakes import Ran, tone, write_wav


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A manifest of 2 s and 3 s in English, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_wav(tmp_path / "two.wav", tone(2))
    write_wav(tmp_path / "three.wav", tone(3))
    (tmp_path / "clips.jsonl").write_text(
        '{"file": "two.wav", "language": "en", "text": "hello 2"}\n'
        '{"file": "three.wav", "language": "en", "text": "hello 4"}\n'
    )
    return "clips.jsonl"


TIMES = {"target": 2.0, "as2d x 8": 1.0, "as2d y 8": 4.0, "as2d oracle 8": 0.5}


def machine(**how: Any) -> FakeMachine:
    """One core, so that there is nothing to calibrate, and TIMES."""
    known: dict[str, Any] = {"cores": 1, "takes": lambda job: TIMES.get(job.name, 3.0)}
    return FakeMachine(**(known | how))


def timed(fake: FakeMachine) -> list[tuple[str, float]]:
    """Jobs with the length of their first window."""
    return [(job.name, job.seconds[0]) for job in fake.jobs]


def rows(ran: Ran) -> dict[str, list[str]]:
    """The table's cells by label; labels have no two blanks in a row."""
    lines = ran.stdout.split("\n\n", maxsplit=1)[0].splitlines()
    cells = [re.split(r"\s{2,}", line) for line in lines]
    return {row[0]: row[1:] for row in cells}


def document(*args: str, fake: FakeMachine) -> dict[str, Any]:
    run_bench(fake, "--json", "out.json", *args)
    whole: dict[str, Any] = json.loads(Path("out.json").read_text())
    return whole


def test_windows_are_interleaved_and_warm_up_is_apart(clips: str) -> None:
    fake = machine()
    whole = document(clips, "--drafters", "x,y", "--repeat", "2", fake=fake)
    warm_up = [("target", 2), ("as2d x 8", 2), ("as2d y 8", 2)]
    forward = ["target", "as2d x 8", "as2d y 8"]
    assert timed(fake) == [
        *warm_up,
        *((name, 2) for name in forward),
        *((name, 3) for name in forward[::-1]),
        *((name, 2) for name in forward[::-1]),
        *((name, 3) for name in forward),
    ]
    assert len(whole["samples"]) == 12
    assert [sample["order"] for sample in whole["samples"]] == list(range(12))
    assert [s["contender"] for s in whole["samples"]][:6] == [0, 1, 2, 2, 1, 0]
    assert whole["complete"] is True


def test_the_oracle_replays_what_the_reference_says(clips: str) -> None:
    fake = machine()
    ran = run_bench(fake, clips, "--drafters", "oracle")
    jobs = [job for job in fake.jobs if job.method == "as2d"]
    assert [job.seconds for job in jobs] == [(2,), (2,), (3,)]
    for job in jobs:
        assert job.script is not None
        said = bytes(token - 1 for token in job.script[0]).decode()
        assert said == f" hello {job.seconds[0]:g}"
    # The second window's turn was the oracle's first, so the reference spoke out of turn.
    assert timed(fake)[-3:] == [("target", 3), ("as2d oracle 8", 3), ("target", 3)]
    assert rows(ran)["as2d oracle 8"][2] == "4.00"
    assert "the most that drafts can give" in ran.stdout


def test_the_targets_own_id_is_a_drafter_and_a_ceiling(clips: str) -> None:
    fake = machine()
    whole = document(clips, "--drafters", "whisper-base", fake=fake)
    assert [c["ceiling"] for c in whole["contenders"]] == [False, True]
    assert whole["contenders"][1]["label"] == "as2d whisper-base 8"
    assert whole["summary"][1]["oracle_share"] is None


def test_by_recording_all_windows_are_queued(tmp_path: Path) -> None:
    long = write_wav(tmp_path / "long.wav", tone(65))
    fake = machine()
    run_bench(fake, str(long), "--by", "recording", "--drafters", "x", "--language", "en")
    assert {len(job.seconds) for job in fake.jobs} == {3}
    by_window = machine()
    run_bench(by_window, str(long), "--drafters", "x", "--language", "en")
    assert {len(job.seconds) for job in by_window.jobs} == {1}


def test_the_baseline_is_the_best_width(clips: str) -> None:
    def takes(job: Job) -> float:
        return {1: 5.0, 2: 2.0, 4: 3.0}[job.cores] if job.drafter is None else 1.0

    fake = machine(cores=4, takes=takes)
    whole = document(clips, "--drafters", "x", fake=fake)
    assert {job.cores for job in fake.jobs if job.drafter is None} == {1, 2, 4}
    assert len(whole["contenders"][0]["lanes"]["target"]["cores"]) == 2
    assert {s["seconds"] for s in whole["samples"] if s["contender"] == 0} == {2.0}
    ran = run_bench(machine(cores=4, takes=takes), clips, "--drafters", "x")
    assert "target-only runs on 2 cores, the fastest of 1, 2, 4 in warm-up\n" in ran.stdout


def test_the_table_on_a_pipe_has_all_and_no_colour(clips: str) -> None:
    ran = run_bench(machine(), clips, "--drafters", "x,y")
    assert ran.status == 0
    table = rows(ran)
    assert table["method"][:4] == ["tokens/s", "real time", "ratio", "95 %"]
    assert table["target"][1:4] == ["1.2x", "1.00", "-"]
    assert table["as2d x 8"][1:4] == ["2.5x", "2.00", "2.00-2.00"]
    assert table["as2d y 8"][1:3] == ["0.6x", "0.50"]
    assert table["as2d y 8"][table["method"].index("exact")] == "yes"
    assert table["as2d y 8"][table["method"].index("WER")] == "25.0%"
    assert "\x1b" not in ran.stdout
    assert not re.search(r" $", ran.stdout, re.MULTILINE)
    assert ran.stderr == ("as2d: 2 windows of 2 recordings (5 s of audio), 3 contenders, 1 round\n")


def test_what_is_slower_is_said_with_what_to_do(clips: str) -> None:
    ran = run_bench(machine(), clips, "--drafters", "x,y")
    lines = ran.stdout.split("\n\n", maxsplit=1)[1].splitlines()
    assert lines == [
        "as2d with y 8 is slower here (0.50 x): its drafter's encoder takes 0.10 s a window and "
        "lanes that start and stop take 2.00 s a window; use --method as2d --drafter x --budget 8"
    ]


@pytest.mark.parametrize(("slowest", "rough"), [(2.2, False), (3.0, True)])
def test_repeats_that_differ_are_said(clips: str, slowest: float, rough: bool) -> None:
    fake = machine()
    # After the warm-up, both units of the first round.
    fake.takes = lambda job: slowest if fake.names.count("target") in (2, 3) else 2.0
    ran = run_bench(fake, clips, "--methods", "target", "--repeat", "3")
    said = "repeats of one window differ by 50%: something else uses these cores" in ran.stdout
    assert said == rough


def test_a_terminal_gets_what_fits(clips: str) -> None:
    for columns in (40, 80, 120):
        ran = run_bench(machine(), clips, "--drafters", "x", terminal=True, columns=columns)
        plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", ran.stdout)
        assert "100%" in plain and "left" in plain
        at = plain.index("method ")
        table = [line for line in plain[at:].split("\n") if line][:3]
        assert max(map(len, table)) <= columns
        assert "\u2026" not in "".join(table)
        assert "ratio" in table[0] and "exact" in table[0]
        assert ("accepted" in table[0]) == (columns >= 80)
        assert "realigned" not in table[0]


def test_a_difference_is_status_1_and_named(clips: str) -> None:
    def says(job: Job, seconds: float) -> str:
        return " other" if job.name == "as2d x 8" and seconds == 3 else " same"

    ran = run_bench(machine(says=says), clips, "--drafters", "x,y", "--repeat", "2")
    assert ran.status == 1
    assert "as2d: as2d x 8: three.wav window 0 differs\n" in ran.stderr
    assert ran.stderr.count("differs") == 1
    table = rows(ran)
    assert table["as2d x 8"][table["method"].index("exact")] == "1 differ"
    assert table["as2d y 8"][table["method"].index("exact")] == "yes"


@pytest.mark.parametrize(("rows_", "status"), [("even", 1), ("none", 0)])
def test_only_who_must_be_exact_can_fail(clips: str, rows_: str, status: int) -> None:
    fake = machine(says=lambda job, seconds: f" {job.name}", row_invariance=rows_)
    ran = run_bench(fake, clips, "--drafters", "x")
    assert ran.status == status
    assert "target (one row)" in rows(ran)


def test_loops_are_a_table_of_their_own_and_differences_in_them_count(clips: str) -> None:
    def says(job: Job, seconds: float) -> str:
        text = " la" * 40 if seconds == 3 else " speech"
        return text + "!" if job.name == "as2d x 8" and seconds == 3 else text

    fake = machine(says=says)
    whole = document(clips, "--drafters", "x", fake=fake)
    assert [unit["flags"] for unit in whole["units"]] == [[], ["compression", "loop"]]
    assert [row["windows"] for row in whole["summary"]] == [1, 1]
    assert [row["looped"] for row in whole["summary"]] == [1, 1]
    assert whole["summary"][1]["flagged"]["differing"] == 1
    ran = run_bench(machine(says=says), clips, "--drafters", "x")
    assert ran.status == 1
    assert "\nleft out above: 1 window whose text goes in circles" in ran.stdout
    assert ran.stdout.count("method ") == 2
    table = rows(ran)
    assert table["as2d x 8"][table["method"].index("exact")] == "1 differ"


def test_a_drafter_that_dies_is_withdrawn_and_status_1(clips: str) -> None:
    fake = machine(loses=["as2d x 8"])
    ran = run_bench(fake, clips, "--drafters", "x,y", "--budgets", "4,8", "--repeat", "3")
    assert ran.status == 1
    assert "as2d: as2d x 8: withdrawn: it died\n" in ran.stderr
    assert fake.names.count("as2d x 8") == 1
    # It had the same drafter, which is gone.
    assert "as2d: as2d x 4: withdrawn: it died\n" in ran.stderr
    assert rows(ran)["as2d x 8"][2] == "-"
    assert rows(ran)["as2d y 8"][2] == "0.50"


def test_a_drafter_that_dies_later_leaves_what_was_measured(clips: str) -> None:
    seen: list[str] = []
    fake = machine()

    def before(job: Job) -> None:
        seen.append(job.name)
        fake.loses = ["as2d x 8"] if seen.count("as2d x 8") == 3 else []

    fake.before = before
    whole = document(clips, "--drafters", "x", "--repeat", "2", fake=fake)
    mine = [sample for sample in whole["samples"] if sample["contender"] == 1]
    assert [sample["lost"] for sample in mine] == [None, "it died"]
    assert whole["summary"][1]["windows"] == 1


def test_a_drafter_that_cannot_be_loaded_is_withdrawn(clips: str) -> None:
    ran = run_bench(machine(broken=["x"]), clips, "--drafters", "x,y")
    assert ran.status == 1
    assert "as2d: as2d x 8: withdrawn: no drafter, the target goes alone: x is broken" in ran.stderr
    assert rows(ran)["as2d y 8"][2] == "0.50"


@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c_shows_what_was_measured(clips: str, terminal: bool) -> None:
    fake = machine()

    def before(job: Job) -> None:
        if len(timed(fake)) == 3 + 3 + 2:
            raise KeyboardInterrupt

    fake.before = before
    ran = run_bench(fake, clips, "--drafters", "x,y", "--json", "out.json", terminal=terminal)
    assert ran.status == 130
    assert "not complete" in (ran.stdout if terminal else ran.stderr)
    whole = json.loads(Path("out.json").read_text())
    assert whole["complete"] is False
    # In the second unit the reference had not spoken yet, so nobody can judge what y said there.
    assert [(s["contender"], s["unit"]) for s in whole["samples"]] == [(0, 0), (1, 0), (2, 0)]
    assert [row["ratio"] for row in whole["summary"]] == [1.0, 2.0, 0.5]
    assert "as2d x 8" in ran.stdout


def test_ctrl_c_before_anything_was_measured_leaves_files_alone(clips: str) -> None:
    def before(job: Job) -> None:
        raise KeyboardInterrupt

    Path("out.json").write_text("before")
    ran = run_bench(machine(before=before), clips, "--drafters", "x", "--json", "out.json")
    assert (ran.status, ran.stdout) == (130, "")
    assert Path("out.json").read_text() == "before"


def test_sigterm_ends_it_without_a_word(clips: str) -> None:
    fake = machine()

    def before(job: Job) -> None:
        if len(fake.jobs) > 6:
            raise Terminated

    fake.before = before
    ran = run_bench(fake, clips, "--drafters", "x,y", "--json", "out.json")
    assert (ran.status, ran.stdout) == (143, "")
    assert not Path("out.json").exists()


def test_a_drafter_sits_out_languages_it_does_not_know(clips: str) -> None:
    with Path(clips).open("a") as manifest:
        manifest.write('{"file": "two.wav", "language": "de"}\n')
    whole = document(clips, "--drafters", "x,oracle", fake=machine())
    assert [row["windows"] for row in whole["summary"]] == [3, 2, 3]
    assert whole["summary"][1]["ratio"] == 2.0


def test_languages_are_found_where_nobody_said(clips: str) -> None:
    whole = document("two.wav", "--drafters", "x", fake=machine())
    assert whole["units"][0]["language"] == "de"
    whole = document("two.wav", "--language", "en", "--drafters", "x", fake=machine())
    assert whole["units"][0]["language"] == "en"


def test_a_language_that_the_target_does_not_know_is_left_out(clips: str) -> None:
    with Path(clips).open("a") as manifest:
        manifest.write('{"file": "two.wav", "language": "tlh"}\n')
    ran = run_bench(machine(), clips, "--drafters", "x")
    assert ran.status == 0
    assert "left out: two.wav: whisper-base does not know language tlh" in ran.stderr


@pytest.mark.parametrize(
    ("args", "status", "problem"),
    [
        (["--methods", "magic"], 2, "--methods magic: there is no such method; choose from target"),
        (["--methods", ","], 2, "--methods is empty"),
        (["--budgets", "8,99"], 2, "--budgets 99: not a number from 1 to 31"),
        (["--windows", "1,17"], 2, "--windows 17: not a number from 1 to 16"),
        (["--drafters", "zzz"], 3, "no model zzz"),
        (["--language", "lv"], 2, "no clips in language lv"),
        (["--json", "no/where.json"], 1, "cannot write --json no/where.json"),
        (["--html", "."], 1, "--html . is a directory"),
        (["--by", "word"], 2, "invalid value for '--by'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    clips: str, args: list[str], status: int, problem: str
) -> None:
    fake = machine()
    ran = run_bench(fake, clips, *args)
    assert ran.status == status
    assert problem in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert fake.jobs == []


def test_without_data_it_runs_on_the_clips_that_are_here() -> None:
    fake = machine()
    ran = run_bench(fake, "--methods", "target")
    # One of the four is in a language that the fake model does not know.
    assert "as2d: 4 windows of 3 recordings (69 s of audio), 1 contender, 1 round\n" in ran.stderr


def test_the_document_says_everything(clips: str) -> None:
    whole = document(clips, "--drafters", "x,oracle", "--budgets", "4", fake=machine())
    assert list(whole) == [
        "as2d",
        "created",
        "command",
        "complete",
        "machine",
        "models",
        "settings",
        "contenders",
        "units",
        "samples",
        "texts",
        "summary",
        "categories",
        "spans",
    ]
    assert whole["command"] == [
        *("as2d", "bench", "--drafters", "x,oracle", "--budgets", "4"),
        *("--no-memory", "--json", "out.json", "clips.jsonl"),
    ]
    assert [(model["id"], model["role"]) for model in whole["models"]] == [
        ("whisper-base", "target"),
        ("x", "drafter"),
    ]
    assert whole["settings"] == {
        "methods": ["target", "as2d"],
        "drafters": ["x", "oracle"],
        "budgets": [4],
        "windows": [1],
        "repeat": 1,
        "by": "window",
        "language": None,
        "baseline": "target",
    }
    assert whole["units"][1] == {
        "clip": "three.wav",
        "window": 0,
        "start": 0.0,
        "question": None,
        "audio_seconds": 3.0,
        "language": "en",
        "category": "",
        "reference_text": "hello 4",
        "flags": [],
        "plan": None,
        "plan_is_baseline": False,
    }
    assert whole["texts"][1]["text"] == "hello 3"
    assert whole["samples"][1]["steps"] == {"alone": 1, "verify": {"4": 2}}
    assert whole["spans"] == []
    assert set(whole["summary"][0]) >= {"ratio_interval", "oracle_share", "flagged", "looped"}
