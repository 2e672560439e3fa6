"""Real adb, with a server of its own, for emulated phones, and what they run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from as2d_cli.catalog import default_store
from as2d_cli.device.adb import Adb
from as2d_cli.device.build import ensure_built
from as2d_cli.device.manifest import Built
from tests.device.phone import Phone


@pytest.fixture(scope="session")
def adb_variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Variables of a process whose adb is nobody else's."""
    if shutil.which("adb") is None:
        pytest.skip("adb is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("adb")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("ANDROID_", "ADB_"))}
    # Nor does it look for emulators of others: from 5555 on, two by two.
    variables |= {
        "ANDROID_ADB_SERVER_PORT": str(port),
        "HOME": str(home),
        "ADB_LOCAL_TRANSPORT_MAX_PORT": "5553",
        "ADB_MDNS": "0",
    }
    yield variables
    subprocess.run(["adb", "kill-server"], env=variables, capture_output=True, check=False)


@pytest.fixture
def adb(adb_variables: Mapping[str, str]) -> Adb:
    return Adb.find(adb_variables)


@pytest.fixture
def phone(tmp_path: Path, adb: Adb) -> Iterator[Phone]:
    """A phone whose programs are this machine's."""
    properties = {
        "ro.product.manufacturer": "Maker",
        "ro.product.model": "8",
        "ro.build.version.release": "15",
        "ro.product.cpu.abilist": "arm64-v8a,armeabi-v7a",
    }
    with Phone(tmp_path / "phone", properties) as made:
        adb.call("connect", made.serial)
        yield made
        adb.call("disconnect", made.serial)


@pytest.fixture(scope="session")
def built() -> Built:
    """What a phone runs; compiled now, if it was not."""
    if shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("no cross compiler; apt-get install g++-aarch64-linux-gnu")
    return ensure_built(default_store().cache, os.environ, print)
