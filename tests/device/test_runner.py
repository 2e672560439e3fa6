"""The runner as it is used: a job in, lines out, on small random models."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.ort_library import ort_library
from as2d_cli.device.job import (
    ORACLE,
    DraftsJob,
    JobClip,
    JobDrafter,
    JobLayout,
    JobUnit,
    JobWindow,
    Lanes,
    ProfileJob,
)
from as2d_cli.device.results import (
    Bandwidth,
    Begun,
    DeviceMachine,
    Draft,
    End,
    HeardRun,
    Loaded,
    MomentTold,
    Sampled,
    Verified,
    Visited,
    Widths,
    Withdrawn,
    read_result,
)
from as2d_cli.machine import read_machine
from tests.device.programs import (
    CLIP,
    START,
    bench_job,
    contender,
    host_runner,
    put_clip,
    run,
    tiny,
)

LIBRARY = str(ort_library())
ENDLESS = 1_000_000


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny(tmp_path_factory.mktemp("bundles")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put_clip(tmp_path)
    return tmp_path


def said_here(bundles: str, folder: Path, first: int, count: int) -> list[int]:
    """What the engine says of a piece of the clip in this process."""
    samples = np.fromfile(folder / CLIP, "<f4")[first : first + count]
    engine = _native.Engine(Path(LIBRARY), Path(bundles) / "one", [0], 1)
    native = engine.start("target", 0, True)
    native.submit(0, samples, START, 12, "en")
    native.finish()
    events: list[dict[str, Any]] = []
    while not events or events[-1]["kind"] != "run_finished":
        events += native.poll(1.0)
    return next(list(e["tokens"]) for e in events if e["kind"] == "window_finished")


def test_verifies_first_and_then_times_in_alternating_order(bundles: str, folder: Path) -> None:
    job = bench_job(
        LIBRARY,
        bundles,
        [contender("as2d", 0), contender("as2d", ORACLE), contender("lookup")],
        repeats=2,
        spans=True,
    )
    ended = run(host_runner(), folder, job)
    assert ended.status == 0, ended.errors
    assert isinstance(ended.results[0], Begun) and ended.results[0].job == "bench"
    assert isinstance(ended.results[-1], End) and ended.results[-1].status == "done"
    kinds = [type(r) for r in ended.results if isinstance(r, Verified | Sampled)]
    assert kinds == [Verified] * 8 + [Sampled] * 16
    order = [
        (s.sample.turn.repeat, s.sample.turn.unit, s.sample.turn.contender)
        for s in ended.of(Sampled)
    ]
    forth, back = [0, 1, 2, 3], [3, 2, 1, 0]
    rounds = ((0, 0, forth), (0, 1, back), (1, 0, back), (1, 1, forth))
    assert order == [(round_, unit, c) for round_, unit, turn in rounds for c in turn]
    assert [s.sample.order for s in ended.of(Sampled)] == list(range(16))
    assert sorted(loaded.contender for loaded in ended.of(Loaded)) == [0, 1, 2, 3]

    reference = next(v for v in ended.of(Verified) if v.contender == 0)
    assert [list(text) for text in reference.texts] == [
        said_here(bundles, folder, 0, 16_000),
        said_here(bundles, folder, 16_000, 16_000),
    ]
    for sampled in ended.of(Sampled):
        counters = sampled.sample.ran.counters
        assert not sampled.differing
        assert counters.committed == sum(map(len, sampled.sample.ran.texts))
        assert counters.windows == len(sampled.sample.ran.texts)
        assert counters.seconds["wall"] == sampled.sample.seconds > 0
        assert {span.lane for span in sampled.sample.ran.spans} >= {"target"}
    alone = ended.of(Sampled)[0].sample.ran.counters
    assert alone.alone_steps and not alone.verify_steps
    oracle = ended.of(Sampled)[2].sample.ran.counters
    assert oracle.accepted == oracle.proposed > 0


def test_tells_of_the_machine_as_this_process_sees_it(bundles: str, folder: Path) -> None:
    ended = run(host_runner(), folder, bench_job(LIBRARY, bundles, repeats=0))
    (machine,) = ended.of(DeviceMachine)
    assert machine.facts == read_machine()
    assert machine.onnxruntime and machine.problem is None
    assert len(ended.of(MomentTold)) == 2
    assert not ended.of(Sampled)
    last = ended.results[-1]
    assert isinstance(last, End) and last.peak_memory_bytes and last.peak_memory_bytes > 1 << 20


def test_threads_are_where_they_were_asked_to_be(bundles: str, folder: Path) -> None:
    ended = run(host_runner(), folder, bench_job(LIBRARY, bundles, [contender("as2d", 0)]))
    drafted = next(v for v in ended.of(Verified) if v.contender == 1)
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    for lane, core in (("target", first), ("draft", last)):
        assert drafted.lanes[lane]["cores"] == [core]
        for thread in drafted.lanes[lane]["threads"]:
            assert thread["actual"] == thread["requested"] == str(core)


def test_a_text_that_was_not_expected_is_told(bundles: str, folder: Path) -> None:
    ended = run(host_runner(), folder, bench_job(LIBRARY, bundles, expected=[7], repeats=0))
    assert ended.status == 1
    first, second = ended.of(Verified)
    assert list(first.unexpected) == [1] and not second.unexpected
    assert isinstance(ended.results[-1], End) and ended.results[-1].status == "differs"
    right = said_here(bundles, folder, 16_000, 16_000)
    assert run(host_runner(), folder, bench_job(LIBRARY, bundles, expected=right)).status == 0


def test_a_drafter_that_cannot_be_loaded_is_withdrawn(bundles: str, folder: Path) -> None:
    job = bench_job(LIBRARY, bundles, [contender("as2d", 0)], drafter="nobody")
    ended = run(host_runner(), folder, job)
    assert ended.status == 1
    (withdrawn,) = ended.of(Withdrawn)
    assert withdrawn.contender == 1 and "nobody" in withdrawn.why
    assert {s.sample.turn.contender for s in ended.of(Sampled)} == {0}


def test_what_is_not_there_is_named(bundles: str, folder: Path) -> None:
    ended = run(host_runner(), folder, bench_job(LIBRARY, "/no/such"))
    assert ended.status == 3 and "/no/such/one" in ended.errors
    ended = run(host_runner(), folder, bench_job("./lib.so", bundles))
    assert ended.status == 3 and "lib.so" in ended.errors
    (folder / CLIP).write_bytes(bytes(64_000))
    ended = run(host_runner(), folder, bench_job(LIBRARY, bundles))
    assert ended.status == 3 and "clip.f32: has 16000 samples, too few" in ended.errors
    last = ended.results[-1]
    assert isinstance(last, End) and last.message and last.message in ended.errors


def test_a_wrong_job_and_a_wrong_command_line(folder: Path) -> None:
    (folder / "job").write_text("as2d-job 1\nkind: race\n", encoding="utf-8")
    program = host_runner()
    done = subprocess.run([*program, "run", "job"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 2 and b"job:2: kind: 'race' is no kind of job" in done.stderr
    last = read_result(done.stdout.splitlines()[-1])
    assert isinstance(last, End) and last.status == "failed"
    for words in ([], ["walk"], ["run"], ["run", "a", "b"]):
        done = subprocess.run([*program, *words], capture_output=True, check=False)
        assert done.returncode == 2 and done.stderr.startswith(b"usage: as2d-runner run JOB")
        assert not done.stdout


def test_facts_with_and_without_a_library(folder: Path) -> None:
    for library, status in (((), 0), ((LIBRARY,), 0), (("job.txt",), 3)):
        done = subprocess.run(
            [*host_runner(), "facts", *library], cwd=folder, capture_output=True, check=False
        )
        assert done.returncode == status
        (machine,) = (
            r for r in map(read_result, done.stdout.splitlines()) if isinstance(r, DeviceMachine)
        )
        assert (machine.onnxruntime is not None) == (library == (LIBRARY,))
        assert (machine.problem is not None) == (status == 3)


def until_sampled(process: subprocess.Popen[bytes]) -> None:
    """Reads until the first run was timed."""
    assert process.stdout is not None
    for line in process.stdout:
        if isinstance(read_result(line), Sampled):
            return


def sends(*numbers: int) -> Callable[[subprocess.Popen[bytes]], None]:
    """Sends signals, each while runs are timed."""

    def send(process: subprocess.Popen[bytes]) -> None:
        for number in numbers:
            until_sampled(process)
            process.send_signal(number)

    return send


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(bundles: str, folder: Path, number: int) -> None:
    job = bench_job(LIBRARY, bundles, [contender("as2d", 0)], repeats=ENDLESS)
    ended = run(host_runner(), folder, job, sends(number))
    assert ended.status == 128 + number
    assert isinstance(ended.results[-1], End) and ended.results[-1].status == "interrupted"


def test_a_signal_that_is_ignored_does_not(bundles: str, folder: Path) -> None:
    job = bench_job(LIBRARY, bundles, repeats=ENDLESS)
    meanwhile = sends(signal.SIGHUP, signal.SIGTERM)
    ended = run(host_runner(), folder, job, meanwhile, ignored=[signal.SIGHUP])
    assert ended.status == 128 + signal.SIGTERM


def test_the_deadline_ends_it(bundles: str, folder: Path) -> None:
    job = bench_job(LIBRARY, bundles, [contender("as2d", 0)], repeats=ENDLESS, deadline=0.5)
    ended = run(host_runner(), folder, job)
    assert ended.status == 124
    assert isinstance(ended.results[-1], End) and ended.results[-1].status == "deadline"


def test_it_ends_when_nobody_reads_any_more(bundles: str, folder: Path) -> None:
    def leave(process: subprocess.Popen[bytes]) -> None:
        until_sampled(process)
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=300)
        process.stdout = None  # nothing is left to read

    job = bench_job(LIBRARY, bundles, [contender("as2d", 0)], repeats=ENDLESS)
    assert run(host_runner(), folder, job, leave).status == 141


def test_it_ends_though_a_reader_sleeps(bundles: str, folder: Path) -> None:
    def fill(process: subprocess.Popen[bytes]) -> None:
        # Until the pipe is full, and it waits for somebody to read.
        assert process.stdout is not None
        state = Path(f"/proc/{process.pid}/task/{process.pid}/wchan")
        while "pipe" not in state.read_text(encoding="ascii"):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)

    job = bench_job(LIBRARY, bundles, repeats=ENDLESS)
    (folder / "job.txt").write_text(job.text(), encoding="utf-8")
    with subprocess.Popen(
        [*host_runner(), "run", "job.txt"], cwd=folder, stdout=subprocess.PIPE
    ) as process:
        try:
            fill(process)
        finally:
            process.kill()
    assert process.returncode == 128 + signal.SIGTERM


def test_the_target_alone_gets_the_cores_it_is_fastest_on(bundles: str, folder: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("there is one core only")
    job = bench_job(LIBRARY, bundles)
    alone = contender("target", reference=True, baseline=True, calibrated=True)
    several = bench_job(LIBRARY, bundles, [contender("lookup", calibrated=True)])
    both = [
        type(alone)(**{**vars(entry), "lanes": Lanes(cores)})
        for entry in (alone, several.contenders[1])
    ]
    job = type(job)(**{**vars(job), "contenders": both})
    ended = run(host_runner(), folder, job)
    (widths,) = ended.of(Widths)
    assert set(widths.widths) == {1, 2}
    assert widths.widths[widths.best] == min(widths.widths.values())
    for verified in ended.of(Verified):
        assert verified.lanes["target"]["cores"] == cores[: widths.best]


def test_adaptive_contenders_know_the_costs(bundles: str, folder: Path) -> None:
    costs = RunCosts({1: 0.01, 9: 1.0}, {1: 0.01, 9: 1.0}, 0.1, 0.01)
    job = bench_job(LIBRARY, bundles, [contender("as2d", ORACLE, adaptive=True, costs=costs)])
    ended = run(host_runner(), folder, job)
    assert ended.status == 0
    adapted = next(s.sample.ran.counters for s in ended.of(Sampled) if s.sample.turn.contender)
    # Candidates at such a price do not pay, however good they are.
    assert set(adapted.verify_steps) <= {1, 2}


def test_drafts_are_the_drafters_own(bundles: str, folder: Path) -> None:
    job = bench_job(LIBRARY, bundles, [contender("as2d", 0)], repeats=0, drafts=True)
    ended = run(host_runner(), folder, job)
    assert [(d.drafter, d.unit, d.window) for d in ended.of(Draft)] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
    ]
    units = [JobUnit(0, "en", START, 12, [JobWindow(0, 16_000)])]
    alone = DraftsJob(LIBRARY, [JobDrafter("two", f"{bundles}/two")], [JobClip(CLIP)], units)
    ended = run(host_runner(), folder, alone)
    samples = np.fromfile(folder / CLIP, "<f4")[:16_000]
    said, _ = _native.draft_alone(Path(LIBRARY), Path(bundles) / "two", samples, "en")
    assert [list(draft.tokens) for draft in ended.of(Draft)] == [said]


def test_profile_measures_every_layout(bundles: str, folder: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    job = ProfileJob(
        library=LIBRARY,
        target=f"{bundles}/one",
        clip=JobClip(CLIP),
        unit=JobUnit(0, "en", START, 12, [JobWindow(0, 16_000)]),
        layouts=[JobLayout([first]), JobLayout([first], [last])],
        seconds=0.5,
        rows=[1, 4],
        batches=2,
        batch=3,
        audio=[1.0, 2.5],
        drafter=JobDrafter("two", f"{bundles}/two"),
    )
    ended = run(host_runner(), folder, job)
    assert ended.status == 0, ended.errors
    visits = ended.of(Visited)
    # Two rounds in any case, A B and then B A; more of them, where there was time, as they come.
    assert [visited.layout for visited in visits][:4] == [0, 1, 1, 0]
    heard = [run.windows for run in ended.of(HeardRun)]
    assert heard[:4] == [1, 3, 1, 3] and set(heard[4:]) <= {1}
    assert heard.count(1) == len([visited for visited in visits if visited.layout == 0])
    right = tuple(said_here(bundles, folder, 0, 16_000))
    assert all(run.texts == (right,) * run.windows for run in ended.of(HeardRun))
    alone = [visited.visit for visited in visits if visited.layout == 0]
    both = [visited.visit for visited in visits if visited.layout == 1]
    assert all(visit.own is None and visit.beside is None for visit in alone)
    assert all(visit.draft is None and not visit.drafts for visit in alone)
    assert both[0].own is not None and both[1].own is None
    assert all(visit.beside is not None and set(visit.beside) == {1, 4} for visit in both)
    assert all(visit.drafts for visit in both)
    for visit in (*alone, *both):
        assert {rows: len(taken) for rows, taken in visit.alone.steps.items()} == {1: 5, 4: 5}
        assert visit.alone.encode > 0
    for visits_of_one in (alone, both):
        assert [visit.alone.audio for visit in visits_of_one[:2]] == [1.0, 2.5]
    drafts = [visit.draft.audio for visit in both[:2] if visit.draft is not None]
    assert drafts == [1.0, 2.0]
    (bandwidth,) = ended.of(Bandwidth)
    assert bandwidth.bytes_per_second > 0
