"""Sessions that no command line asks for yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.bench.session import BenchRequest, Session
from as2d_cli.errors import As2dError, ExitStatus
from tests.bench.fakes import FakeMachine, Notes
from tests.fakes import tone, write_wav


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Three windows."""
    return write_wav(tmp_path / "long.wav", tone(65))


def request(clip: Path, *methods: str, whole: bool, memory: bool = False) -> BenchRequest:
    return BenchRequest(
        [clip],
        "whisper-base",
        methods,
        ["x"],
        [2, 4],
        whole=whole,
        language="en",
        spans=True,
        memory=memory,
    )


def test_batches_of_windows_need_recordings(clip: Path) -> None:
    notes = Notes()
    session = Session(request(clip, "batched", whole=False), FakeMachine().backend(), notes)
    assert [c.label for c in session.results.contenders] == ["target"]
    assert notes.lines == ["batched needs several windows at once: left out without --by recording"]
    notes = Notes()
    session = Session(request(clip, "batched", whole=True), FakeMachine().backend(), notes)
    assert [c.label for c in session.results.contenders] == ["target", "batched 2", "batched 4"]
    assert notes.lines == []


def test_methods_without_a_drafter_run_where_the_target_runs_alone(clip: Path) -> None:
    fake = FakeMachine(cores=4, takes=lambda job: 1.0 if job.cores == 2 else 2.0)
    session = Session(request(clip, "lookup", "as2d", whole=True), fake.backend(), Notes())
    session.run()
    cores = {job.method: job.cores for job in fake.jobs}
    assert cores == {"target": 2, "lookup": 2, "as2d": 3}
    assert {job.drafter for job in fake.jobs if job.method == "lookup"} == {None}


def test_a_head_drafts_for_its_own_target_only(clip: Path) -> None:
    asked = replace(request(clip, "as2d", whole=False), drafters=["x", "head"])
    with pytest.raises(As2dError, match="drafter head is a head for the target whisper-small") as e:
        Session(asked, FakeMachine().backend(), Notes())
    assert e.value.status is ExitStatus.USAGE
    mine = replace(asked, drafters=["mine"])
    session = Session(mine, FakeMachine().backend(), Notes())
    assert [c.drafter for c in session.results.contenders] == [None, "mine", "mine"]


def test_all_that_was_announced_gets_done(clip: Path) -> None:
    notes = Notes()
    Session(request(clip, "as2d", whole=False), FakeMachine().backend(), notes).run()
    assert notes.done == pytest.approx(notes.total) and notes.total > 0


def test_spans_know_the_windows_of_their_recording(clip: Path) -> None:
    session = Session(request(clip, "target", whole=True), FakeMachine(cores=1).backend(), Notes())
    session.run()
    (sample,) = session.results.samples
    assert [(span.activity, span.window, span.begin, span.end) for span in sample.ran.spans] == [
        ("encoding", index, 0.0, 0.5) for index in range(3)
    ]


def test_memory_that_cannot_be_measured_is_a_line(clip: Path) -> None:
    notes = Notes()
    session = Session(
        request(clip, "target", whole=False, memory=True), FakeMachine(cores=1).backend(), notes
    )
    session.run()
    (line,) = notes.lines
    assert line.startswith("target: no peak memory: /nowhere/bundle.txt: cannot be read")
    assert session.results.peak_memory == {}
    assert session.results.complete


def test_what_happens_in_memory_measuring_leaves_it_incomplete(
    clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("as2d_cli.bench.session.peak_memory", interrupted)
    session = Session(
        request(clip, "target", whole=False, memory=True), FakeMachine(cores=1).backend(), Notes()
    )
    with pytest.raises(KeyboardInterrupt):
        session.run()
    assert len(session.results.samples) == 3
    assert not session.results.complete


def test_a_target_that_is_not_deterministic_differs_from_itself(clip: Path) -> None:
    fake = FakeMachine(cores=1)
    # Warm-up, first round, and then it changes its mind.
    fake.says = lambda job, seconds: " once" if fake.names.count("target") < 3 else " more"
    asked = replace(request(clip, "target", whole=True), repeat=2)
    session = Session(asked, fake.backend(), Notes())
    session.run()
    assert [session.results.differing(s) for s in session.results.samples] == [[], [0, 1, 2]]
