"""An emulated phone: what is built for 64-bit ARM runs under QEMU and sees the phone's cores."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EmulatedPhone", "qemu"]

_LITTLE = (0xD05, 325, 1_800_000)  # Cortex-A55
_BIG = (0xD0B, 1024, 2_400_000)  # Cortex-A76

# In turn, so that a host of two cores, whose emulator can use no more, has one of each.
_CORES = (_LITTLE, _BIG) * 4

_EMULATED = "cortex-a76"
"""The emulator's newest would sign and check every address, which takes seven times as long."""

_FEATURES = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop "
    "asimddp"
)


def qemu() -> str:
    """The emulator's path."""
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no emulator; apt-get install qemu-user-static")


@dataclass(frozen=True)
class EmulatedPhone:
    """Files of a phone's kernel, laid into `prefix` for the emulator to look in first. Without them
    ONNX Runtime crashes on those of a foreign host.
    """

    prefix: Path

    def lay(self) -> None:
        """Writes the files."""
        cpuinfo = "".join(
            f"processor\t: {number}\nBogoMIPS\t: 38.40\nFeatures\t: {_FEATURES}\n"
            "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
            f"CPU part\t: {part:#x}\nCPU revision\t: 0\n\n"
            for number, (part, _, _) in enumerate(_CORES)
        )
        self._put("proc/cpuinfo", cpuinfo)
        cpus = "sys/devices/system/cpu"
        for name in ("present", "possible", "online"):
            self._put(f"{cpus}/{name}", f"0-{len(_CORES) - 1}\n")
        self._put(f"{cpus}/kernel_max", f"{len(_CORES) - 1}\n")
        for number, core in enumerate(_CORES):
            _, capacity, khz = core
            group = ",".join(str(i) for i, other in enumerate(_CORES) if other == core)
            values: dict[str, object] = {
                "cpu_capacity": capacity,
                "cpufreq/cpuinfo_max_freq": khz,
                "cpufreq/cpuinfo_min_freq": 300_000,
                "cpufreq/scaling_max_freq": khz,
                "cpufreq/scaling_cur_freq": 900_000,
                "cpufreq/scaling_governor": "walt",
                "topology/physical_package_id": 0,
                "topology/core_id": number,
                "topology/thread_siblings_list": number,
                "topology/core_siblings_list": group,
                "topology/package_cpus_list": group,
                "topology/cluster_cpus_list": group,
            }
            for name, value in values.items():
                self._put(f"{cpus}/cpu{number}/{name}", f"{value}\n")
        self._put("sys/class/thermal/thermal_zone0/type", "cpu-1-0-usr\n")
        self._put("sys/class/thermal/thermal_zone0/temp", "41500\n")
        battery = {"type": "Battery", "capacity": "83", "temp": "305", "status": "Discharging"}
        for name, text in battery.items():
            self._put(f"sys/class/power_supply/battery/{name}", f"{text}\n")

    def command(self, words: Sequence[str]) -> list[str]:
        """Runs a program of the phone here."""
        return [qemu(), "-cpu", _EMULATED, "-L", str(self.prefix), *words]

    def _put(self, name: str, text: str) -> None:
        path = self.prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
