"""``as2d profile`` and the options that take what it made."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from as2d_cli.decoding.plan import Machine
from as2d_cli.output.profile_page import page
from as2d_cli.output.profile_report import print_costs, print_plan, print_ranking
from as2d_cli.profile.alignment import perfect
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.document import document
from as2d_cli.profile.plan_file import SavedPlan, as_json
from as2d_cli.profile.session import Findings, ranked
from as2d_cli.profile.spread import Spread
from tests.fakes import Script, run_cli, tone, write_wav
from tests.profile.material import costs, target
from tests.profile.test_files import PLAN

RIGHT = [[perfect(10, 40)], [perfect(10, 40)] * 5]


def findings(model: CostModel | None = None) -> Findings:
    """Of two cores, where drafting wins."""
    dear = costs()
    lanes = [
        replace(lane, alone=target(window=0.011), beside=target(window=0.011))
        for lane in dear.lanes
    ]
    model = model or replace(dear, lanes=tuple(lanes))
    return ranked([model], {"x": RIGHT}, Machine(((0, 1),)))


def printed(found: Findings) -> str:
    console = Console(width=200, record=True, file=None, quiet=True)
    lines: list[str] = []
    with console.capture() as captured:
        console.quiet = False
        print_costs(found.costs, console)
        print_ranking(found, console)
        print_plan(found, console)
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def test_a_report_has_costs_ranking_and_what_to_do() -> None:
    text = printed(findings())
    assert "target, drafter works  0" in text
    assert "whisper-base with x, 2026-01-02T03:04:05+00:00" in text
    assert "beside a working drafter the target's steps take 1.00 x as long" in text
    assert re.search(r"as2d x \d+ +0 +1 +\d+ +([1-9]\.\d\d) +\1 +0%  chosen", text)
    assert re.search(r"target +0-1 +\d+ +1\.00", text)
    assert "lends no cores" in text
    assert "best: --method as2d --drafter x --budget" in text
    assert "--target-cores 0 --draft-cores 1" in text


def test_a_gain_that_noise_could_have_made_is_shown_as_such() -> None:
    shown = findings().costs
    spread = Spread(0.4, 2.5)
    lanes = tuple(
        replace(
            lane,
            alone=replace(lane.alone, step_spread=spread, encode_spread=spread),
            beside=lane.beside and replace(lane.beside, step_spread=spread, encode_spread=spread),
        )
        for lane in shown.lanes
    )
    text = printed(findings(replace(shown, lanes=lanes)))
    assert re.search(r"target +0-1 +\d+ +1\.00 +0%  chosen", text)
    assert re.search(r"as2d x \d+ might be .* perhaps only 0\.\d\d x: no sure gain", text)
    assert "their medians may be off by -60% to +150%" in text
    assert "best: --method target" in text
    assert "medians" not in printed(findings())


def test_plans_for_recordings_of_a_known_length_are_told() -> None:
    told = replace(findings(), by_length=[(5, findings().chosen), (240, findings().chosen)])
    text = printed(told)
    assert re.search(r"a recording of 5 s: as2d x \d+.*, 3\.\d\d x\na recording of 240 s", text)
    whole = document(told)
    assert [entry["seconds"] for entry in whole["by_length"]] == [5, 240]
    assert whole["by_length"][0]["chosen"]["least_ratio"] > 1


def test_noise_is_admitted() -> None:
    noisy = replace(findings().costs, noise=0.25)
    assert "this machine is noisy: repeats spread by +-25%" in printed(findings(noisy))
    assert "noisy" not in printed(findings(replace(noisy, noise=0.02)))


def test_the_document_is_json_and_says_what_was_chosen() -> None:
    whole = json.loads(json.dumps(document(findings()), allow_nan=False))
    assert whole["format"] == "as2d-profile-1"
    assert whole["chosen"] in whole["ranking"]
    assert whole["chosen"]["method"] == "as2d"
    assert CostModel.from_json(whole["costs"]) == findings().costs


def test_the_page_needs_nothing_else_and_nothing_in_it_breaks_it() -> None:
    named = replace(findings().costs, target="<script>alert(1)</script>")
    text = page(replace(findings(), costs=named))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=", text)
    assert text.count("<svg") == 2
    assert "$" not in text


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--quick", "--full"], "--quick and --full do not go together; leave one out"),
        (["--full", "--saved"], "--full and --saved do not go together"),
        (["--device-file", "tensor-g3", "--save", "x.json"], "--device-file and --save do not"),
        (["--device-file", "none.toml"], "--device-file none.toml: No such file or directory;"),
        (["--html", "no/where"], "cannot write --html no/where"),
    ],
)
def test_what_cannot_be_is_told(
    args: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run_cli("profile", *args)
    assert ran.status in (1, 2)
    assert ran.stderr.startswith(f"as2d: {told}")
    assert ran.stdout == ""
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_not_here_is_told(tmp_path: Path) -> None:
    ran = run_cli("profile", "--offline", variables={"AS2D_CACHE_DIR": str(tmp_path)})
    assert ran.status == 3
    assert "is not on this machine and the network is not to be used" in ran.stderr


def test_a_device_is_planned_without_measuring(tmp_path: Path) -> None:
    html = tmp_path / "phone.html"
    ran = run_cli("profile", "--device-file", "snapdragon-8-elite", "--html", str(html))
    assert ran.status == 0, ran.stderr
    assert ran.stdout.startswith("Snapdragon 8 Elite, 2+6\n")
    assert "estimated from clocks, vector width and memory, not measured" in ran.stdout
    assert "audio LLM of 7B, 4 bits" in ran.stdout
    assert "Snapdragon 8 Elite" in html.read_text()
    told = run_cli("profile", "--device-file", "snapdragon-8-elite", "--json")
    whole = json.loads(told.stdout)
    assert whole["estimated"] is True
    assert len(whole["targets"]) == 6
    assert whole["targets"][0]["target"] == "whisper-base"


@pytest.fixture
def clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_wav(tmp_path / "clip.wav", tone(2))
    return "clip.wav"


def test_plan_options_reach_the_plan(clip: str) -> None:
    script = Script()
    args = ["--threads", "3", "--no-pin", "--target-cores", "0", "--draft-cores", "1"]
    assert run_cli("transcribe", *args, clip, script=script).status == 0
    # Before any input is looked at, and when its length is known.
    first, asked = script.asked
    assert (first.seconds, asked.seconds) == (0.0, 2.0)
    assert asked == replace(first, seconds=2.0)
    assert (asked.threads, asked.pin, asked.target_cores, asked.draft_cores) == (3, False, "0", "1")
    assert (asked.target, asked.drafter) == ("whisper-base", "whisper-tiny.en")
    ran = run_cli("transcribe", "--threads", "0", clip)
    assert (ran.status, ran.stderr) == (2, "as2d: --threads 0 is out of range; choose 1 to 1024\n")


def test_a_recording_too_short_for_drafts_is_the_targets_alone(clip: str, tmp_path: Path) -> None:
    write_wav(tmp_path / "long.wav", tone(65))
    script = Script(least_seconds=12)
    ran = run_cli("transcribe", clip, "long.wav", "--output", "out/", script=script)
    assert ran.status == 0, ran.stderr
    assert [entry for entry in script.log if entry[0] == "start"] == [
        ("start", False),
        ("start", True),
    ]
    (asked,) = script.asked
    assert asked.seconds is None, "one plan for several recordings"


def test_only_the_part_that_is_wanted_counts(clip: str) -> None:
    write_wav(Path("long.wav"), tone(65))
    script = Script()
    part = ["--start", "5", "--end", "25", "long.wav"]
    assert run_cli("transcribe", *part, script=script).status == 0
    assert script.asked[-1].seconds == pytest.approx(20)


def test_a_saved_plan_is_what_transcribe_does(clip: str) -> None:
    Path("plan.json").write_text(
        json.dumps(as_json(SavedPlan("whisper-base", "whisper-tiny.en", PLAN)))
    )
    script = Script()
    assert run_cli("transcribe", "--plan", "plan.json", clip, script=script).status == 0
    asked = script.asked[-1]
    assert (asked.method, asked.budget, asked.target_cores) == ("as2d", 12, "1,0")
    assert asked.costs == PLAN.costs
    ran = run_cli("transcribe", "--plan", "none.json", clip)
    assert ran.status == 2
    assert ran.stderr.startswith("as2d: --plan none.json: No such file or directory; make one")


def test_a_person_who_watches_is_told_what_the_plan_was_made_by(clip: str) -> None:
    ran = run_cli("transcribe", clip, terminal=True)
    assert "plan: as2d, by rule" in ran.stdout
    assert "plan" not in run_cli("transcribe", clip).stderr
