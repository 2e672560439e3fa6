"""Building for a device, with tools that only look like ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from as2d_cli.device import build, ort_package
from as2d_cli.device.build import ensure_built
from as2d_cli.device.manifest import MANIFEST, Built
from as2d_cli.device.ort_package import OrtPackage
from as2d_cli.errors import As2dError, ExitStatus

COMPILER = "aarch64-linux-gnu-g++"


class Tools:
    """Programs of one folder, which say what they were asked in its file ``asked``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.put("ninja", "")
        self.put(
            "cmake",
            'case "$1" in --build) mkdir -p "$2/runner"; echo program > "$2/runner/as2d-runner";; '
            "esac",
        )
        self.put(
            COMPILER,
            f'case "$1" in -print-file-name=*) f={folder}/lib-${{1#*=}}; '
            'echo "of the system" > $f; echo $f;; *) echo "compiler 1";; esac',
        )
        self.put(
            "aarch64-linux-gnu-readelf",
            'case "$3" in *as2d-runner) n=libc.so.6;; *libonnxruntime.so) n=libstdc++.so.6;; '
            "*libstdc*) n=libgcc_s.so.1;; *) n=libc.so.6;; esac; "
            'echo " 0x01 (NEEDED) Shared library: [$n]"',
        )

    def put(self, name: str, script: str) -> None:
        path = self.folder / name
        head = f'#!/bin/sh\necho "{name} $*" >> {self.folder}/asked\n'
        path.write_text(head + script + "\n", encoding="utf-8")
        path.chmod(0o755)

    def asked(self) -> list[str]:
        """What cmake was asked so far."""
        lines = (self.folder / "asked").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith("cmake ")]

    def variables(self, **more: str) -> Mapping[str, str]:
        return {"PATH": f"{self.folder}:/usr/bin:/bin", **more}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools(tmp_path / "bin")
    monkeypatch.setenv("PATH", tools.variables()["PATH"])

    def fetch(system: str, folder: Path) -> OrtPackage:
        (folder / "libonnxruntime.so").write_text(system, encoding="utf-8")
        (folder / "LICENSE").write_text("MIT", encoding="utf-8")
        return OrtPackage("libonnxruntime.so", "a package")

    sources = tmp_path / "native"
    (sources / "runner").mkdir(parents=True)
    for name in ("CMakeLists.txt", "runner/CMakeLists.txt", "runner/main.cc"):
        (sources / name).write_text(name, encoding="utf-8")
    for name in ("cmake", "include", "src"):
        (sources / name).mkdir()
    monkeypatch.setattr(build, "fetch_ort", fetch)
    monkeypatch.setattr(build, "native_sources", lambda: sources)
    return tools


def test_lists_what_goes_to_the_device(tools: Tools, tmp_path: Path) -> None:
    told: list[str] = []
    built = ensure_built(tmp_path / "cache", tools.variables(), told.append)
    assert told == ["fetching ONNX Runtime for the device", "compiling the runner"]
    assert [(file.name.removeprefix("runner/"), file.licence) for file in built.files] == [
        ("as2d-runner", "MIT"),
        ("libonnxruntime.so", "MIT"),
        ("LICENSE", "MIT"),
        ("ld-linux-aarch64.so.1", "LGPL-2.1-or-later"),
        ("libc.so.6", "LGPL-2.1-or-later"),
        ("libstdc++.so.6", "GPL-3.0-or-later WITH GCC-exception-3.1"),
        ("libgcc_s.so.1", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ]
    assert built.start == (
        "runner/ld-linux-aarch64.so.1",
        "--library-path",
        "runner",
        "runner/as2d-runner",
    )
    assert os.access(built.folder / "runner/as2d-runner", os.X_OK)
    assert Built.read(built.folder) == built


def test_is_made_once_and_again_when_something_changed(tools: Tools, tmp_path: Path) -> None:
    cache, variables = tmp_path / "cache", tools.variables()

    def makes() -> bool:
        before = len(tools.asked())
        ensure_built(cache, variables, lambda text: None)
        return len(tools.asked()) > before

    first = ensure_built(cache, variables, lambda text: None)
    assert not makes()
    (first.folder / "runner/as2d-runner").write_text("half", encoding="utf-8")
    assert makes()
    (first.folder / MANIFEST).write_text("{", encoding="utf-8")
    assert makes()
    (tmp_path / "native/runner/main.cc").write_text("another", encoding="utf-8")
    assert makes()
    tools.put(COMPILER, 'case "$1" in -p*) echo /bin/sh;; *) echo "compiler 2";; esac')
    assert makes()
    assert not makes()
    before = len(tools.asked())
    ensure_built(cache, variables, lambda text: None, force=True)
    assert len(tools.asked()) > before
    assert not list((cache / "device").glob("tmp-*"))


def test_what_is_missing_is_named_all_at_once(tools: Tools, tmp_path: Path) -> None:
    (tools.folder / COMPILER).unlink()
    variables = {"PATH": str(tools.folder)}
    with pytest.raises(As2dError, match=f"lacks {COMPILER.replace('+', '.')}; apt-get") as caught:
        ensure_built(tmp_path / "cache", variables, print)
    assert caught.value.status is ExitStatus.UNAVAILABLE
    with pytest.raises(As2dError, match="is no Android NDK"):
        ensure_built(tmp_path / "cache", {**variables, "ANDROID_NDK_HOME": str(tmp_path)}, print)


def test_a_build_that_fails_says_the_first_error_and_keeps_the_log(
    tools: Tools, tmp_path: Path
) -> None:
    tools.put("cmake", "echo working; echo 'x.cc:1: error: no'; echo 'error: more'; exit 1")
    with pytest.raises(As2dError, match=r"compiled: x\.cc:1: error: no; see (.*)") as caught:
        ensure_built(tmp_path / "cache", tools.variables(), lambda text: None)
    log = Path(str(caught.value.remedy).removeprefix("see "))
    assert log.read_text(encoding="utf-8").startswith("working\n")
    log.unlink()
    assert not list((tmp_path / "cache/device").glob("*-*"))


def test_with_an_ndk_nothing_of_the_system_travels_along(tools: Tools, tmp_path: Path) -> None:
    ndk = tmp_path / "ndk"
    (ndk / "build/cmake").mkdir(parents=True)
    (ndk / "build/cmake/android.toolchain.cmake").touch()
    (tools.folder / COMPILER).unlink()
    variables = tools.variables(ANDROID_NDK_HOME=str(ndk))
    built = ensure_built(tmp_path / "cache", variables, lambda text: None)
    assert built.system == "bionic" and built.start == ("runner/as2d-runner",)
    names = [file.name for file in built.files]
    assert names == ["runner/as2d-runner", "runner/libonnxruntime.so", "runner/LICENSE"]
    configured = tools.asked()[0]
    assert "-DANDROID_ABI=arm64-v8a" in configured and f"{ndk}/build/cmake" in configured


def test_a_package_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ort_package, "ort_version", lambda system: "0.0.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(As2dError, match="no ONNX Runtime for the device: pip cannot get") as caught:
        ort_package.fetch_ort("glibc", tmp_path / "out")
    assert caught.value.status is ExitStatus.UNAVAILABLE
    assert not list((tmp_path / "out").iterdir())
