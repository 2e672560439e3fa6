"""Heads in the store, in the catalogue, and under ``models check``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from as2d_cli.catalog import Bundle, Listeners, ModelEntry, State, Store, load_catalogue
from as2d_cli.catalog import store as store_module
from as2d_cli.catalog.bundle import record_file
from as2d_cli.catalog.check import CheckResult, check_bundle
from as2d_cli.catalog.entries import Catalogue, HubSource, ShippedSource
from as2d_cli.catalog.sources import shipped
from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.tasks import known_clip
from as2d_cli.tasks.known_clip import transcribe_known_clip
from tests.catalog.heads import adapter_head, ctc_head, head_bytes
from tests.catalog.material import catalogue, entry, put, whisper_files
from tests.fakes import Ran, run_cli

PLACE = "heads/tiny/head.npz"


class Heard:
    """Listeners that remember everything that they should not hear."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def listeners(self) -> Listeners:
        return Listeners(
            self,
            lambda entry, folder: self.said.append(entry.id),
            self.said.append,
            self.said.append,
        )

    def start(self, label: str, total_bytes: int | None) -> None:
        self.said.append(label)

    def advance(self, n: int) -> None:
        self.said.append(n)

    def finish(self) -> None:
        self.said.append("finish")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of as2d, with a head in it; and no network."""
    put(tmp_path / "package/heads/tiny", {"head.npz": head_bytes(tmp_path, adapter_head())})
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr("socket.create_connection", None)
    monkeypatch.setattr("subprocess.Popen", None)
    return tmp_path / "package"


def shipped_head(package: Path, *, model_id: str = "tiny-head", target: str = "tiny") -> ModelEntry:
    made = entry(
        {"head.npz": (package / PLACE).read_bytes()},
        ShippedSource({"head.npz": PLACE}),
        model_id=model_id,
        family="head",
    )
    return replace(made, role="drafter", default_for="", target=target, languages=("en", "de"))


def store(tmp_path: Path, *entries: ModelEntry, offline: bool = True) -> Store:
    return Store(tmp_path / "cache", catalogue(*entries), offline=offline)


# A head that comes with as2d


@pytest.mark.parametrize("offline", [True, False])
def test_a_head_that_came_along_is_built_and_nobody_hears_of_it(
    tmp_path: Path, package: Path, offline: bool
) -> None:
    head = shipped_head(package)
    here = store(tmp_path, head, offline=offline)
    assert here.state(head) is State.NOT_PULLED
    assert here.made("tiny-head") is None
    heard = Heard()
    bundle = here.ensure("tiny-head", heard.listeners())
    assert not heard.said
    assert here.state(head) is State.READY
    assert here.made("tiny-head") == here.find("tiny-head") == bundle
    assert (bundle.family, bundle.role, bundle.target) == ("head", "drafter", "tiny")
    assert bundle.sources == {"head.npz": head.files[0].sha256}
    assert (package / PLACE).exists()
    assert not (tmp_path / "cache/downloads").exists()


def test_an_upgrade_brings_a_new_head(tmp_path: Path, package: Path) -> None:
    store(tmp_path, shipped_head(package)).ensure("tiny-head", Heard().listeners())
    put(package / "heads/tiny", {"head.npz": head_bytes(tmp_path, adapter_head(seed=1))})
    head = shipped_head(package)
    here = store(tmp_path, head)
    assert here.state(head) is State.OUTDATED
    assert here.ensure("tiny-head", Heard().listeners()).sources == {
        "head.npz": head.files[0].sha256
    }


@pytest.mark.parametrize(("damage", "said"), [("lost", "is missing"), ("cut", "is damaged")])
def test_an_installation_that_is_not_whole(
    tmp_path: Path, package: Path, damage: str, said: str
) -> None:
    head = shipped_head(package)
    path = package / PLACE
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(As2dError, match="install as2d again") as error:
        store(tmp_path, head).ensure("tiny-head", Heard().listeners())
    assert f"{path}: {said}" in str(error.value)
    assert error.value.status is ExitStatus.UNAVAILABLE


def test_a_head_for_another_target_than_the_catalogue_says(tmp_path: Path, package: Path) -> None:
    head = shipped_head(package, target="large")
    with pytest.raises(As2dError, match="is a head for 'tiny', not for 'large'"):
        store(tmp_path, head).ensure("tiny-head", Heard().listeners())
    assert not list((tmp_path / "cache/bundles").iterdir())


def test_source_files_of_a_head_that_came_along_stay(tmp_path: Path, package: Path) -> None:
    here = store(tmp_path, shipped_head(package))
    with here.source_files("tiny-head", Heard().listeners()) as files:
        assert files == {"head.npz": package / PLACE}
    assert (package / PLACE).exists()


def test_the_catalogues_text(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(
        """
[[model]]
id = "tiny-head"
role = "drafter"
family = "head"
licence = "MIT"
languages = "en"
target = "tiny"

[[model.file]]
name = "head.npz"
bytes = 5
sha256 = "00"

[[model.source]]
kind = "package"
files = { "head.npz" = "heads/tiny/head.npz" }
"""
    )
    (head,) = load_catalogue(tmp_path / "models.toml").models
    assert (head.target, head.usable) == ("tiny", True)
    assert head.sources == (ShippedSource({"head.npz": PLACE}),)


# A user's own


@pytest.mark.parametrize("name", ["mine", "mine/head.npz", "mine/other.npz"])
def test_a_users_own_head_is_converted_once(tmp_path: Path, name: str) -> None:
    content = head_bytes(tmp_path, adapter_head())
    put(tmp_path / "mine", {"head.npz": content, "report.json": b"{}", "other.npz": content})
    here = store(tmp_path)
    bundle = here.find(str(tmp_path / name))
    assert bundle is not None
    assert (bundle.family, bundle.role, bundle.licence) == ("head", "drafter", "MIT")
    assert bundle.languages == ("en", "de")
    assert bundle.id.startswith("local-")
    assert here.made(bundle.id) == bundle
    stamp = (bundle.path / "bundle.txt").stat().st_mtime_ns
    again = here.ensure(str(tmp_path / "mine"), Heard().listeners())
    assert (again.path / "bundle.txt").stat().st_mtime_ns == stamp


def test_a_file_beside_a_bundle_is_the_head(tmp_path: Path) -> None:
    folder = put(tmp_path / "mine", {"head.npz": head_bytes(tmp_path, ctc_head())})
    put(folder, {"bundle.txt": b"nonsense"})
    bundle = store(tmp_path).find(str(folder / "head.npz"))
    assert bundle is not None and bundle.kind == "ctc"


def test_an_archive_that_is_no_head(tmp_path: Path) -> None:
    path = put(tmp_path, {"mine.npz": b"PK"}) / "mine.npz"
    with pytest.raises(As2dError, match=r"mine\.npz: is no whole npz archive"):
        store(tmp_path).find(str(path))


def test_ids_that_lead_out_of_the_cache_are_of_no_bundle(tmp_path: Path) -> None:
    here = store(tmp_path)
    bundle = here.find(str(put(tmp_path / "mine", {"head.npz": head_bytes(tmp_path, ctc_head())})))
    assert bundle is not None
    shutil.copytree(bundle.path, tmp_path / "outside")
    assert here.made("../../outside") is None
    assert here.made(str(tmp_path / "outside")) is None
    assert here.made("") is None


# Which one is used


def known(*entries: ModelEntry) -> Catalogue:
    return Catalogue(entries)


def model(model_id: str, role: str = "drafter", **changes: object) -> ModelEntry:
    made = replace(
        entry({}, HubSource("someone/x", "0" * 40), model_id=model_id), role=role, default_for=""
    )
    return replace(made, **changes)  # type: ignore[arg-type]


TARGET = model("base", "target", default_for="transcribe")
USUAL = model("usual", default_for="transcribe")
MINE = model("mine", family="head", target="base")


@pytest.mark.parametrize(
    ("models", "target", "language", "chosen"),
    [
        ((TARGET, USUAL), "base", "en", "usual"),
        ((TARGET, USUAL, MINE), "base", "en", "mine"),
        ((TARGET, USUAL, MINE), "base", None, "mine"),
        ((TARGET, USUAL, MINE), "base", "de", "usual"),
        ((TARGET, USUAL, MINE), "large", "en", "usual"),
        ((TARGET, USUAL, replace(MINE, family="gguf")), "base", "en", "usual"),
        ((TARGET, USUAL, replace(MINE, sources=())), "base", "en", "usual"),
        ((TARGET, USUAL, MINE, replace(MINE, id="de", languages=("de",))), "base", "de", "de"),
        ((TARGET, USUAL, replace(MINE, id="z"), MINE), "base", "en", "z"),
        ((TARGET, MINE), "large", "en", None),
        ((TARGET, replace(MINE, default_for="transcribe")), "large", "en", None),
        ((TARGET, model("unusual")), "base", "en", None),
    ],
)
def test_the_choice_of_a_drafter(
    models: tuple[ModelEntry, ...], target: str, language: str | None, chosen: str | None
) -> None:
    drafter = known(*models).default_drafter("transcribe", target, language)
    assert (drafter.id if drafter else None) == chosen


def test_pull_gets_what_transcribe_uses() -> None:
    assert known(USUAL, MINE, TARGET).defaults("transcribe") == (TARGET, MINE)
    assert known(USUAL, TARGET).defaults("transcribe") == (TARGET, USUAL)
    assert known(TARGET).defaults("transcribe") == (TARGET,)
    assert known(TARGET, USUAL).defaults("answer") == ()


# Proof


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """A target and heads for it, that no test may change."""
    folder = tmp_path_factory.mktemp("made")
    here = store(folder)
    target = here.find(str(put(folder / "target", whisper_files())))
    assert target is not None
    found = {"target": target}
    for name, file in (
        ("adapter", adapter_head(target=target.id)),
        ("ctc", ctc_head(target=target.id)),
    ):
        content = head_bytes(folder, file)
        bundle = here.find(str(put(folder / name, {"head.npz": content})))
        assert bundle is not None
        found[name] = bundle
    return found


@pytest.mark.parametrize(("kind", "rows"), [("adapter", "the same numbers"), ("ctc", "at once")])
def test_sound_heads(made: dict[str, Bundle], kind: str, rows: str) -> None:
    bundle, target = made[kind], made["target"]
    heard: list[Bundle | None] = []

    def transcribe(drafter: Bundle, behind: Bundle | None) -> CheckResult:
        heard.extend([drafter, behind])
        return CheckResult("speech", True, "heard")

    results = list(check_bundle(bundle, transcribe, target))
    assert [r.detail for r in results if not r.ok] == []
    assert [result.name for result in results] == [
        "files",
        "format",
        "graphs",
        "interface",
        "pair",
        "target",
        "vocabulary",
        "row invariance",
        "speech",
    ]
    assert heard == [bundle, target]
    details = {result.name: result.detail for result in results}
    assert details["target"] == f"{target.id}, lines of 32 numbers"
    assert details["interface"] == f"inputs and outputs of a head of kind {kind}"
    assert rows in details["row invariance"]


@pytest.mark.parametrize("kind", ["adapter", "ctc"])
def test_a_head_whose_target_is_not_here_is_not_heard(made: dict[str, Bundle], kind: str) -> None:
    results = list(check_bundle(made[kind], lambda b, t: CheckResult("speech", False, "")))
    assert all(result.ok for result in results)
    details = {result.name: result.detail for result in results}
    wanted = f"'{made['target'].id}' is not on this machine: nothing was heard"
    assert details["target"] == wanted
    assert "speech" not in details


def renamed(bundle: Bundle) -> Bundle:
    path = bundle.encoder_path
    graph = onnx.load_model(path, load_external_data=False)
    graph.graph.input[0].name = "sound"
    for node in graph.graph.node:
        for index, name in enumerate(node.input):
            if name == "encoding":
                node.input[index] = "sound"
    path.write_bytes(graph.SerializeToString())
    files = tuple(record_file(bundle.path / record.name) for record in bundle.files)
    return replace(bundle, files=files)


def cut_vocabulary(bundle: Bundle) -> Bundle:
    Vocabulary((b"a",), False).write(bundle.path / "vocabulary.bin")
    files = tuple(record_file(bundle.path / record.name) for record in bundle.files)
    return replace(bundle, files=files)


@pytest.mark.parametrize(
    ("kind", "damage", "name", "said"),
    [
        ("adapter", renamed, "interface", "no input 'encoding', which a head of kind adapter"),
        ("ctc", renamed, "interface", "no input 'encoding', which a head of kind ctc"),
        ("ctc", lambda b: replace(b, kind="adapter"), "interface", "no input 'tokens'"),
        ("adapter", lambda b: replace(b, encoding_width=48), "pair", "lines of 48 numbers"),
        ("ctc", lambda b: replace(b, encoding_width=48), "pair", "lines of 48 numbers"),
        ("adapter", lambda b: replace(b, layers=1), "pair", "1 layers"),
        ("adapter", lambda b: replace(b, context=99), "pair", "caches"),
        ("adapter", lambda b: replace(b, target="large"), "target", "is for 'large', not "),
        ("ctc", cut_vocabulary, "vocabulary", "has 1 tokens"),
        ("adapter", lambda b: replace(b, tokens={"end": 5}), "vocabulary", "(end) is text"),
    ],
)
def test_damage_is_named(
    made: dict[str, Bundle],
    tmp_path: Path,
    kind: str,
    damage: Callable[[Bundle], Bundle],
    name: str,
    said: str,
) -> None:
    bundle = Bundle.read(shutil.copytree(made[kind].path, tmp_path / "bundle"))
    results = check_bundle(damage(bundle), target=made["target"])
    failed = {result.name: result.detail for result in results if not result.ok}
    assert said in failed[name]
    assert str(bundle.path) in failed[name]
    assert "\n" not in failed[name]


def test_a_target_of_another_width(made: dict[str, Bundle]) -> None:
    results = check_bundle(made["ctc"], target=replace(made["target"], width=48))
    (failed,) = (result for result in results if not result.ok)
    assert failed.name == "target"
    assert "takes lines of 32 numbers" in failed.detail and "has 48" in failed.detail


@pytest.mark.parametrize("kind", ["adapter", "ctc"])
def test_a_head_is_heard_through_its_target(made: dict[str, Bundle], kind: str) -> None:
    """Random weights understand nothing; but they say it, and not that something is missing."""
    result = transcribe_known_clip(made[kind], made["target"])
    assert not result.ok
    assert "a known clip came out as" in result.detail


def test_a_head_without_its_target_is_not_heard(made: dict[str, Bundle]) -> None:
    result = transcribe_known_clip(made["adapter"])
    assert not result.ok
    assert made["target"].id in result.detail


def test_a_model_that_knows_no_english_is_not_heard(made: dict[str, Bundle]) -> None:
    result = transcribe_known_clip(replace(made["target"], languages=("de",)))
    assert result == CheckResult("speech", True, "not heard: the known clip is in English")


# The command


@pytest.fixture
def cache(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a catalogue of a target that cannot be had and a head for it."""
    target = entry(whisper_files(), HubSource("someone/tiny", "0" * 40))
    monkeypatch.setattr(
        store_module, "load_catalogue", lambda: catalogue(target, shipped_head(package))
    )
    return tmp_path / "cache"


def models(cache: Path, *args: str) -> Ran:
    return run_cli("models", *args, variables={"AS2D_CACHE_DIR": str(cache), "AS2D_OFFLINE": "1"})


def test_models_knows_heads(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = json.loads(models(cache, "list", "--json").stdout)
    assert [(row["id"], row["target"], row["state"]) for row in rows] == [
        ("tiny", None, "not pulled"),
        ("tiny-head", "tiny", "not pulled"),
    ]
    folder = cache / "bundles/tiny-head"
    ran = models(cache, "pull", "tiny-head")
    assert (ran.status, ran.stderr) == (0, f"as2d: tiny-head is ready in {folder}\n")
    line = models(cache, "list").stdout.splitlines()[1]
    assert line.startswith("tiny-head\tdrafter\thead\ten de\t")
    checked = models(cache, "check", "tiny-head")
    assert checked.status == 0
    assert "tiny-head\ttarget\tok\t'tiny' is not on this machine: nothing was heard\n" in (
        checked.stdout
    )
    # Its target comes to be here.
    sources = put(cache / "downloads/tiny", whisper_files())
    assert models(cache, "pull", "tiny").status == 0
    assert not sources.exists()
    heard: list[tuple[str, str | None]] = []

    def transcribe(bundle: Bundle, target: Bundle | None) -> CheckResult:
        heard.append((bundle.id, target.id if target else None))
        return CheckResult("speech", True, "heard")

    monkeypatch.setattr(known_clip, "transcribe_known_clip", transcribe)
    assert models(cache, "check").status == 0
    assert heard == [("tiny", None), ("tiny-head", "tiny")]
    assert models(cache, "remove", "tiny-head").stderr == "as2d: tiny-head is removed\n"
    assert not folder.exists()
