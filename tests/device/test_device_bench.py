"""``as2d bench --device``: the real adb, an emulated phone, a runner that is told what to say."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.decoding.plan import Machine, Plan, PlanRequest
from as2d_cli.device.runner import Kit
from as2d_cli.output.bench_progress import BenchProgress
from tests.bench.fakes import FakeMachine
from tests.device.material import (
    CLUSTERS,
    END,
    MACHINE,
    line,
    parcel,
    run_on,
    sample,
    shell_kit,
    verified,
)
from tests.device.phone import Phone
from tests.fakes import Ran, tokens_of, tone, write_wav

SAYS = tokens_of(" hello")
FOLDER = "/data/local/tmp/as2d"

TOLD = (
    verified(0, 0, SAYS),
    verified(1, 0, SAYS),
    sample(0, 0, 0, 2.0, SAYS),
    sample(1, 1, 0, 1.0, SAYS),
)
"""The target alone, then look-up, on one window."""


class Bench:
    """Two contenders on a clip of two seconds, on a phone."""

    def __init__(self, folder: Path, phone: Phone, variables: Mapping[str, str]) -> None:
        self.folder, self.phone, self.variables = folder, phone, variables
        write_wav(folder / "clip.wav", tone(2))
        (folder / "bundle").mkdir()
        (folder / "bundle/bundle.txt").write_text("a bundle\n")
        self.fake = FakeMachine(cores=1, folder=folder / "bundle")

    def kit(self, told: Iterable[str] = (*TOLD, END), **how: Any) -> Kit:
        return shell_kit(self.folder / "kit", says=told, **how)

    def run(self, kit: Kit, *args: str) -> Ran:
        given = ("bench", str(self.folder / "clip.wav"), "--methods", "target,lookup")
        return run_on(
            *given,
            *("--language", "en", "--json", str(self.folder / "out.json"), *args),
            "--device",
            variables=self.variables,
            backend=self.fake.backend(),
            kit=kit,
        )

    @property
    def whole(self) -> dict[str, Any]:
        """The JSON."""
        found: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return found


@pytest.fixture
def bench(tmp_path: Path, phone: Phone, adb_variables: Mapping[str, str]) -> Bench:
    return Bench(tmp_path, phone, adb_variables)


def test_the_table_is_that_of_a_bench(bench: Bench) -> None:
    ran = bench.run(bench.kit())
    assert ran.status == 0
    rows = [row.split() for row in ran.stdout.splitlines()[:3]]
    assert [row[0] for row in rows] == ["method", "target", "lookup"]
    ratio = rows[0].index("ratio") - 1  # "real time" is two words
    assert rows[1][ratio] == "1.00"
    assert rows[2][ratio + 1] == "2.00"
    assert f", on Maker 8 ({bench.phone.serial})\n" in ran.stderr
    assert not bench.fake.jobs, "nothing runs here"


def test_the_json_tells_of_the_phone(bench: Bench) -> None:
    bench.phone.services["battery"] = "  level: 50\n  temperature: 301"
    bench.run(bench.kit())
    machine = bench.whole["machine"]
    assert machine["clusters"] == CLUSTERS
    assert machine["cores"] == list(range(8))
    assert machine["phone"]["model"] == "8"
    assert [heat["battery_celsius"] for heat in machine["heat"]] == [30.1, 30.1]
    assert machine["peak_memory_bytes"] == 123_000_000
    threads = bench.whole["contenders"][1]["lanes"]["target"]["threads"]
    assert [thread["actual"] for thread in threads] == ["6", "7"]
    found = bench.whole["samples"][0]
    assert found["before"]["temperatures"] == [["skin", 33.5]]
    assert found["after"]["battery"]["percent"] == 80


def test_the_job_is_for_the_phones_cores(bench: Bench) -> None:
    bench.run(bench.kit(), "--repeat", "3", "--cool-down", "38", "--device-seconds", "90")
    job = (bench.phone.path(FOLDER) / "job").read_text().splitlines()
    assert "repeats: 3" in job and "deadline: 90.0" in job
    assert "cool_celsius: 38.0" in job
    assert [text for text in job if text.startswith("target_cores")] == ["target_cores: 6 7"] * 2
    assert "window: 0 32000" in job
    clip = next(text for text in job if text.startswith("file: ")).removeprefix("file: ")
    assert (bench.phone.path(FOLDER) / clip).stat().st_size == 4 * 32000


def test_each_plan_is_a_contender_there_and_one_row_here(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording of two seconds goes alone, one of three in steps of four."""
    plans = {
        2.0: Plan("target", (6, 7), (), 0),
        3.0: Plan("lookup", (6, 7), (), 4),
    }

    def planned(request: PlanRequest, machine: Machine) -> Plan:
        return plans.get(request.seconds or 0, plans[2.0])

    monkeypatch.setattr("as2d_cli.device.known.make_plan", planned)
    write_wav(bench.folder / "other.wav", tone(3))
    monkeypatch.setattr("as2d_cli.bench.planned.rounded", lambda seconds: seconds)
    told = [
        *(verified(contender, unit, SAYS) for contender, unit in ((0, 0), (1, 0), (2, 0))),
        *(verified(contender, unit, SAYS) for contender, unit in ((0, 1), (1, 1), (3, 1))),
        *(sample(i, i, 0, 2.0, SAYS) for i in range(3)),
        *(sample(3 + i, c, 1, 1.0 + i, SAYS) for i, c in enumerate((3, 1, 0))),
        END,
    ]
    more = (str(bench.folder / "other.wav"), "--plan", "auto", "--repeat", "1")
    ran = bench.run(bench.kit(told), *more)
    assert ran.status == 0, ran.stderr
    job = (bench.phone.path(FOLDER) / "job").read_text().split("[contender]\n")[1:]
    assert [text.split("\n")[0] for text in job] == [
        "method: target",
        "method: lookup",
        "method: target",
        "method: lookup",
    ]
    assert ["units: 0" in job[2], "units: 1" in job[3]] == [True, True]
    whole = bench.whole
    mine = [s for s in whole["samples"] if s["contender"] == 2]
    assert [(s["unit"], s["seconds"]) for s in mine] == [(0, 2.0), (1, 1.0)]
    assert [unit["plan"] for unit in whole["units"]] == ["plan: target", "plan: lookup 4"]


def test_what_is_there_is_not_copied_again(bench: Bench) -> None:
    kit = bench.kit()
    bench.run(kit)
    assert len(bench.phone.received) == len(kit.parcels) + 3  # bundle, clip and job
    bench.phone.received.clear()
    again = bench.run(kit)
    assert [Path(name).name[:4] for name in bench.phone.received] == ["job-"]
    assert "copying" not in again.stderr


def test_without_keep_nothing_stays(bench: Bench) -> None:
    assert bench.run(bench.kit(), "--no-keep").status == 0
    left = [path.name for path in bench.phone.path(FOLDER).iterdir()]
    assert left == ["job"], "which the runner of this test has written"


def test_throttled_windows_are_marked(bench: Bench) -> None:
    told = [*TOLD[:3], sample(1, 1, 0, 1.0, SAYS, limit=1_500_000), END]
    ran = bench.run(bench.kit(told))
    assert [found["throttled"] for found in bench.whole["samples"]] == [False, True]
    assert "1 of 2 samples ran on cores that were throttled" in ran.stdout


def test_a_page_and_a_trace(bench: Bench) -> None:
    page, trace = bench.folder / "page.html", bench.folder / "trace.json"
    assert bench.run(bench.kit(), "--html", str(page), "--trace", str(trace)).status == 0
    assert "<dt>device</dt><dd>Maker 8</dd>" in page.read_text()
    assert json.loads(trace.read_text())["otherData"]["cpu"] == "emulated"


def test_a_difference_is_status_1(bench: Bench) -> None:
    other = tokens_of(" other")
    told = [*TOLD[:3], sample(1, 1, 0, 1.0, other), line("end", **_ended("differs"))]
    ran = bench.run(bench.kit(told))
    assert ran.status == 1
    assert "as2d: lookup 8: clip.wav window 0 differs\n" in ran.stderr


def test_a_difference_while_nobody_timed_is_status_1(bench: Bench) -> None:
    told = [TOLD[0], verified(1, 0, SAYS, [0]), *TOLD[2:], line("end", **_ended("differs"))]
    ran = bench.run(bench.kit(told))
    assert ran.status == 1
    assert "as2d: lookup 8: clip.wav window 0 differs\n" in ran.stderr


def test_a_drafter_that_dies_is_status_1(bench: Bench) -> None:
    told = [*TOLD[:3], line("withdrawn", contender=1, why="it died"), END]
    ran = bench.run(bench.kit(told))
    assert (ran.status, "lookup 8: withdrawn: it died" in ran.stderr) == (1, True)


FAILURES: list[tuple[Callable[[Bench], Kit], int, str]] = [
    (
        lambda b: b.kit(TOLD[:1], then="echo out of memory >&2; exit 3"),
        1,
        "as2d: the runner on SERIAL broke off: out of memory\n",
    ),
    (
        lambda b: b.kit(TOLD[:1], then="kill -KILL $$"),
        1,
        "as2d: the runner on SERIAL was killed: most likely there is too little memory; "
        "close other apps, or take smaller models\n",
    ),
    (
        lambda b: b.kit([line("end", **_ended("deadline"))], then="exit 124"),
        1,
        "as2d: the time for the runner on SERIAL is over; raise --device-seconds\n",
    ),
    (
        lambda b: b.kit([line("end", **_ended("failed", "no such model"))], then="exit 3"),
        1,
        "as2d: the runner on SERIAL: no such model\n",
    ),
    (
        lambda b: b.kit(["no JSON at all\r"], then="exit 0"),
        1,
        "as2d: the runner on SERIAL broke off: no JSON at all\n",
    ),
    (
        lambda b: b.kit(machine=MACHINE | {"problem": "it is for another processor"}),
        3,
        "as2d: ONNX Runtime cannot be loaded on Maker 8 (SERIAL): it is for another processor\n",
    ),
    (
        lambda b: _broken(
            b,
            "#!/bin/sh\necho 'a: error while loading shared libraries: libm.so.6:"
            " cannot open shared object file: No such file or directory' >&2; exit 127\n",
        ),
        3,
        "as2d: the runner cannot start on SERIAL: its library libm.so.6 is missing there; "
        "run as2d device build --force and as2d device push\n",
    ),
    (
        lambda b: _broken(
            b,
            '#!/bin/sh\necho \'CANNOT LINK EXECUTABLE "a": library'
            ' "libc++_shared.so" not found: needed by main executable\' >&2; exit 1\n',
        ),
        3,
        "as2d: the runner cannot start on SERIAL: its library libc++_shared.so is missing there; "
        "run as2d device build --force and as2d device push\n",
    ),
    (
        lambda b: _broken(b, "#!/no/such/loader\n"),
        3,
        "as2d: the runner cannot start on SERIAL: ",
    ),
    (
        # As on a file system that is mounted noexec.
        lambda b: _broken(b, "#!/bin/sh\n", mode=0o644),
        3,
        f"as2d: {FOLDER} on SERIAL is no place for programs: ",
    ),
]


@pytest.mark.parametrize(("kit", "status", "said"), FAILURES)
def test_what_fails_is_said_in_a_line(
    bench: Bench, kit: Callable[[Bench], Kit], status: int, said: str
) -> None:
    ran = bench.run(kit(bench))
    assert ran.status == status
    last = ran.stderr.splitlines(keepends=True)[-1]
    assert last.startswith(said.replace("SERIAL", bench.phone.serial))
    assert "Traceback" not in ran.stderr


def test_another_version_of_the_runner_is_named(bench: Bench) -> None:
    kit = bench.kit()
    facts = bench.folder / "kit/facts"
    facts.write_text(facts.read_text().replace("as2d-result-1", "as2d-result-0"))
    old = [p if p.local != facts else parcel(p.name, facts) for p in kit.parcels]
    ran = bench.run(Kit(old, kit.start, kit.library))
    assert ran.stderr.endswith("is another version; run as2d device build\n")


def test_what_was_measured_before_a_failure_is_shown(bench: Bench) -> None:
    ran = bench.run(bench.kit(TOLD, then="exit 9"))
    assert ran.status == 1
    assert "lookup 8" in ran.stdout
    assert "as2d: not complete: what follows is what was measured so far\n" in ran.stderr
    assert bench.whole["complete"] is False
    assert len(bench.whole["samples"]) == 2


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Grows whenever a run is told of."""
    found: list[float] = []
    monkeypatch.setattr(BenchProgress, "advance", lambda self, amount: found.append(amount))
    return found


def test_a_phone_that_is_unplugged_in_mid_run(bench: Bench, told: list[float]) -> None:
    running = bench.phone.path(FOLDER) / "running"
    with _when(lambda: running.exists() and len(told) == len(TOLD), bench.phone.unplug):
        ran = bench.run(bench.kit(TOLD, then="touch running; sleep 60"))
    assert ran.status == 3
    assert "in the middle of a command" in ran.stderr
    assert len(bench.whole["samples"]) == 2


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests are a job in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_what_runs_on_the_phone(bench: Bench, told: list[float]) -> None:
    """And shows what was measured so far."""
    running = bench.phone.path(FOLDER) / "running"
    then = "sleep 60 & echo $$ $! >now; mv now running; wait"
    with _when(
        lambda: running.exists() and len(told) == len(TOLD),
        lambda: os.kill(os.getpid(), signal.SIGINT),
    ):
        ran = bench.run(bench.kit(TOLD, then=then))
    assert ran.status == 130
    assert "lookup 8" in ran.stdout
    numbers = [int(word) for word in running.read_text().split()]
    end = time.monotonic() + 30
    while any(map(_runs, numbers)):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_runner_that_hangs_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("as2d_cli.device.runner._LATE", 0.5)
    ran = bench.run(bench.kit(TOLD, then="sleep 60"), "--device-seconds", "1")
    assert ran.status == 1
    assert "did not finish within 1.5 s" in ran.stderr


def test_a_device_of_another_kind_is_named(bench: Bench) -> None:
    bench.phone.properties["ro.product.cpu.abilist"] = "x86_64,x86"
    ran = bench.run(bench.kit())
    assert ran.status == 3
    assert ran.stderr == (
        f"as2d: device Maker 8 ({bench.phone.serial}) is x86_64, x86; take one of 64-bit ARM\n"
    )
    assert bench.phone.received == []


def _ended(status: str, message: str | None = None) -> dict[str, Any]:
    return {"status": status, "message": message, "peak_memory_bytes": None}


def _broken(bench: Bench, program: str, mode: int = 0o755) -> Kit:
    """A runner that is this program."""
    path = bench.folder / "broken"
    path.write_text(program)
    path.chmod(mode)
    return Kit([parcel("runner/runner", path)], ("./runner/runner",), "runner/library.so")


class _when:  # noqa: N801
    """In the body, `call` is called as soon as `ready` is true."""

    def __init__(self, ready: Callable[[], bool], call: Callable[[], None]) -> None:
        self._ready, self._call = ready, call
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            if self._ready():
                self._call()
                return


def _runs(number: int) -> bool:
    """A zombie does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
