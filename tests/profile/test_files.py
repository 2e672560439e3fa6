"""Profiles, plans and traces as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from as2d_cli import _native
from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.plan import Plan
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.alignment import (
    as_json,
    perfect,
    read_traces,
    shipped,
    trace_of,
)
from as2d_cli.profile.plan_file import SavedPlan, filled, read_plan
from as2d_cli.profile.plan_file import as_json as plan_json
from as2d_cli.profile.profiles import Profile, Profiles, key_of
from as2d_cli.tasks.models import AUTO, ModelRequest
from tests.fakes import FakeModel
from tests.profile.material import KEY, costs, wrong

PLAN = Plan(
    "as2d", (1, 0), (2,), 12, windows=2, costs=RunCosts({1: 0.1, 9: 0.2}, {1: 0.3}, 0.5, 0.01)
)


def test_a_profile_is_found_again(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profile = Profile(costs(), [[perfect(10, 3)]])
    path = profiles.save(profile)
    assert path.parent == tmp_path / "profiles"
    assert profiles.load(KEY) == (profile, "")
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"


def test_a_profile_of_the_target_with_any_drafter_tells_of_the_target(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profiles.save(Profile(costs()))
    found, why = profiles.load(KEY | {"drafter": None, "drafter's files": None})
    assert found is not None and why == ""
    assert profiles.load(KEY | {"drafter": None, "target's files": "0"})[0] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cores, or what limits them", "def"),
        ("as2d", "2"),
        ("target's files", "3"),
        ("drafter's files", None),
    ],
)
def test_a_profile_is_stale_when_anything_changed(tmp_path: Path, name: str, value: object) -> None:
    profiles = Profiles(tmp_path)
    profiles.save(Profile(costs()))
    found, why = profiles.load(KEY | {name: value})
    assert found is None
    assert why == f"what was measured is stale: {name} changed since"


def test_other_machines_and_models_have_profiles_of_their_own(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profiles.save(Profile(costs()))
    for name in ("machine", "target", "drafter"):
        assert profiles.load(KEY | {name: "another"}) == (None, "nothing was measured here")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"format": "as2d-costs-2"}', "[" * 100_000]
)
def test_a_broken_profile_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    profiles = Profiles(tmp_path)
    path = profiles.save(Profile(costs()))
    path.write_text(text)
    assert profiles.load(KEY) == (None, f"{path.name} is broken")


def test_a_key_tells_apart_what_matters(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "bundle.txt").write_text("one")
    model = FakeModel("x", path=folder)
    before = key_of(model, None)
    assert before["drafter"] is None
    (folder / "bundle.txt").write_text("two")
    after = key_of(model, None)
    assert [name for name in after if after[name] != before[name]] == ["target's files"]
    assert json.loads(json.dumps(after)) == after


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    saved = SavedPlan("whisper-base", "x", PLAN)
    path.write_text(json.dumps(plan_json(saved)))
    assert read_plan(path) == saved


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "as2d-plan-9"}, "its format is not as2d-plan-1"),
        ({"method": "magic"}, "there is no method magic"),
        ({"budget": 99}, "99 is not from 0 to 31"),
        ({"windows": 0}, "0 is not from 1 to 16"),
        ({"target_cores": [-1]}, "-1 is not from"),
        ({"draft_cores": []}, "its cores do not suit its method"),
        ({"costs": {"alone_steps": 3}}, "is no plan"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_json(SavedPlan("whisper-base", "x", PLAN)) | change))
    with pytest.raises(As2dError, match=problem) as caught:
        read_plan(path)
    assert caught.value.status == ExitStatus.USAGE
    assert str(caught.value).startswith("--plan ")


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match="No such file"):
        read_plan(tmp_path / "none.json")


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000])
def test_what_is_no_json_object_is_no_plan(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(As2dError, match="is no plan") as caught:
        read_plan(path)
    assert caught.value.status == ExitStatus.USAGE


def test_a_plan_fills_in_what_is_not_asked_for() -> None:
    saved = SavedPlan("whisper-base", "x", PLAN)
    whole = filled(ModelRequest("whisper-base", AUTO, AUTO), saved)
    assert (whole.method, whole.drafter, whole.budget, whole.windows) == ("as2d", "x", 12, 2)
    assert (whole.target_cores, whole.draft_cores) == ("1,0", "2")
    assert whole.costs == PLAN.costs
    own = ModelRequest("whisper-base", "y", AUTO, budget=3, draft_cores="3", pin=False)
    part = filled(own, saved)
    assert (part.drafter, part.budget, part.draft_cores, part.pin) == ("y", 3, "3", False)
    other = ModelRequest("whisper-base", AUTO, "target")
    assert filled(other, saved) == other, "a plan for another method says nothing of this one"


def test_traces_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "alignment.json"
    recordings = [[perfect(10, 3), wrong(4.5, 2)], [perfect(1, 0)]]
    path.write_text(json.dumps(as_json({("a", "b"): recordings})))
    assert read_traces(path, "a", "b") == recordings
    assert read_traces(path, "a", None) == recordings
    with pytest.raises(As2dError, match="has nothing of a with c"):
        read_traces(path, "a", "c")
    path.write_text("[]")
    with pytest.raises(As2dError, match="is no alignment file"):
        read_traces(path, "a", "b")
    with pytest.raises(As2dError, match="cannot read"):
        read_traces(tmp_path / "none", "a", "b")


def test_traces_came_with_as2d() -> None:
    for drafter in ("whisper-base-head-en", "whisper-tiny.en", "moonshine-tiny-en"):
        recordings = shipped("whisper-base", drafter)
        windows = [window for recording in recordings for window in recording]
        assert len(windows) >= 20
        assert any(len(recording) > 1 for recording in recordings)
        for window in windows:
            assert 0 < window.seconds <= 30
            assert len(window.place) == len(window.run) == window.tokens
            for committed, (place, run) in enumerate(zip(window.place, window.run, strict=True), 1):
                assert 0 <= place <= window.drafted + 1
                assert 0 <= run <= min(window.tokens + 1 - committed, window.drafted + 1 - place)
    assert shipped("whisper-base", None)
    assert not shipped("nothing", "nobody")


def test_a_trace_is_made_by_the_engines_own_aligner(tmp_path: Path) -> None:
    vocabulary = _vocabulary(tmp_path / "vocabulary.bin")
    tracer = _native.Replay(vocabulary)
    trace = trace_of(tracer, 2.0, [1, 2, 3, 4], [1, 2, 7, 4], 9)
    assert (trace.tokens, trace.drafted) == (4, 4)
    assert trace.place == (1, 2, 3, 4)
    assert trace.run == (1, 0, 2, 1)


def _vocabulary(path: Path) -> Path:
    from as2d_cli.catalog.vocabulary import Vocabulary

    Vocabulary(tuple(f" word{letter}".encode() for letter in "abcdefghij"), False).write(path)
    return path


def test_a_profile_that_cannot_be_kept_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("no folder")
    with pytest.raises(As2dError, match=r"cannot write .*profiles.*; make room there"):
        Profiles(tmp_path).save(Profile(costs()))
