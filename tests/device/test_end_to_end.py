"""The commands as they are used: the real adb, an emulated phone, the runner for 64-bit ARM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.device.adb import Adb
from as2d_cli.device.manifest import Built
from as2d_cli.device.runner import Kit, kit_of
from as2d_cli.profile.measure import Effort
from tests.catalog.material import put
from tests.device.emulated import EmulatedPhone
from tests.device.material import run_on
from tests.device.phone import Phone
from tests.distill.material import speaking_files
from tests.fakes import Ran, run_cli, tone, write_wav

SAID = 8
"""Tokens that the target says of any window; emulated ones take their time."""

FOLDER = "/data/local/tmp/as2d"


@dataclass(frozen=True)
class Setup:
    """A phone, small models with random weights, a clip, and a folder for results."""

    folder: Path
    phone: Phone
    kit: Kit
    variables: Mapping[str, str]

    def on(self, *args: str) -> Ran:
        """A command whose device is the phone."""
        return run_on(*args, variables=self.variables, kit=self.kit)

    def bench(self, out: str, methods: str = "target,as2d") -> list[str]:
        """Words of a bench."""
        folder = self.folder
        models = ["--target", str(folder / "one"), "--drafters", str(folder / "two")]
        more = ["--methods", methods, "--language", "en", "--no-memory"]
        return ["bench", str(folder / "clip.wav"), *models, *more, "--json", str(folder / out)]

    def json(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / name).read_text())
        return found


@pytest.fixture(scope="module")
def setup(
    tmp_path_factory: pytest.TempPathFactory, built: Built, adb_variables: Mapping[str, str]
) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("device")
    for seed, name in enumerate(("one", "two")):
        put(folder / name, speaking_files(SAID, seed=seed))
    write_wav(folder / "clip.wav", tone(2))
    emulated = EmulatedPhone(folder / "prefix")
    emulated.lay()
    properties = {"ro.product.model": "Emulated", "ro.product.cpu.abilist": "arm64-v8a"}
    services = {"battery": "  level: 83\n  temperature: 305"}
    phone = Phone(folder / "phone", properties, services, emulator=emulated.command([]))
    variables = {**adb_variables, "AS2D_CACHE_DIR": str(folder / "cache")}
    adb = Adb.find(variables)
    with phone, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AS2D_CACHE_DIR", str(folder / "cache"))
        adb.call("connect", phone.serial)
        yield Setup(folder, phone, kit_of(built), variables)
        adb.call("disconnect", phone.serial)


def test_a_phone_is_listed_and_checked(setup: Setup) -> None:
    listed = setup.on("device", "list")
    assert listed.stdout == f"{setup.phone.serial}\tdevice\tEmulated\n"
    checked = setup.on("device", "shell-check")
    assert checked.status == 0, checked.stdout
    rows = dict(row.split("\t", 1) for row in checked.stdout.splitlines())
    assert list(rows) == [
        *("device", "shell", "folder", "runner", "library", "cores", "pinning", "sensors")
    ]
    assert rows["cores"].startswith("ok\t") and "Cortex-A76" in rows["cores"]
    assert rows["sensors"] == "ok\tbattery 30.5 °C, 83 % full"


def test_a_bench_says_what_one_says_here(setup: Setup) -> None:
    there = setup.on(*setup.bench("there.json"), "--device", setup.phone.serial)
    assert there.status == 0, there.stderr
    here = run_cli(*setup.bench("here.json"), real=True)
    assert here.status == 0, here.stderr
    found = setup.json("there.json")
    assert found["texts"] == setup.json("here.json")["texts"]
    assert found["texts"][0]["tokens"]
    labels = [row.split("  ")[0].strip() for row in there.stdout.splitlines()]
    assert labels[:3] == ["method", "target", f"as2d {setup.folder / 'two'} 8"]
    assert found["complete"] is True
    models = {core["model"] for core in found["machine"]["clusters"]}
    assert "0x41:0xd0b" in models
    cores = found["machine"]["cores"]
    for contender in found["contenders"]:
        for lane in contender["lanes"].values():
            assert set(lane["cores"]) <= set(cores)
            assert all(t["actual"] == t["requested"] != "" for t in lane["threads"])
    before = found["samples"][0]["before"]
    assert before["temperatures"] == [["cpu-1-0-usr", 41.5]]
    assert before["battery"]["celsius"] == 30.5
    assert set(before["governors"]) == {"walt"}


def test_a_profile_is_kept_and_planned_by(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    # Half a minute of audio takes an emulated phone minutes.
    monkeypatch.setattr("as2d_cli.profile.measure.QUICK", Effort(0.5, (1, 9), 2, 1))
    monkeypatch.setattr("as2d_cli.device.profile.AUDIO", (1.0, 2.0))
    monkeypatch.setattr("as2d_cli.device.profile.known_clip", lambda: tone(1).astype("float32"))
    models = ["--target", str(setup.folder / "one"), "--drafter", str(setup.folder / "two")]
    plan = setup.folder / "plan.json"
    profile = ["profile", *models, "--device", setup.phone.serial]
    made = setup.on(*profile, "--quick", "--save", str(plan))
    assert made.status == 0, made.stderr
    assert "architecture\t" in made.stdout and "Cortex-A76" in made.stdout
    assert "bench --device --plan auto plans by it" in made.stderr
    again = setup.on(*profile, "--saved", "--json")
    assert json.loads(again.stdout)["costs"]["key"]["machine"] == "Emulated"
    costs = json.loads(again.stdout)["costs"]["lanes"]
    assert json.loads(plan.read_text())["target_cores"] in [lane["target_cores"] for lane in costs]
    device = ("--plan", "auto", "--device", setup.phone.serial)
    ran = setup.on(*setup.bench("planned.json", "target"), *device)
    assert ran.status == 0, ran.stderr
    found = setup.json("planned.json")
    assert found["contenders"][-1]["label"].startswith("plan: ")
    assert found["summary"][0]["prediction_error"] is not None


def test_what_was_pushed_is_listed_and_cleaned(setup: Setup) -> None:
    pushed = setup.on("device", "push", str(setup.folder / "two"))
    assert pushed.status == 0, pushed.stderr
    rows = [row.split("\t") for row in pushed.stdout.splitlines()]
    for digest, size, _, name in rows:
        path = setup.phone.path(name)
        assert path.stat().st_size == int(size) and len(digest) == 64
    licences = {Path(name).name: licence for _, _, licence, name in rows}
    assert licences["libonnxruntime.so"] == "MIT"
    assert licences["libc.so.6"] == "LGPL-2.1-or-later"
    assert licences["bundle.txt"]
    assert setup.on("device", "clean").status == 0
    assert not setup.phone.path(FOLDER).exists()
