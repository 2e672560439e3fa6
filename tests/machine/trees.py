"""Machines in folders, as the kernel would show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CPU = "sys/devices/system/cpu"


def write(root: Path, file: str, text: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def cores(
    root: Path,
    count: int,
    *,
    online: str | None = None,
    capacities: Sequence[int] = (),
    max_khz: Sequence[int] = (),
    siblings: Sequence[str] = (),
) -> Path:
    """`count` cores that are there, all of them online unless `online` lists others."""
    write(root, f"{CPU}/present", f"0-{count - 1}")
    write(root, f"{CPU}/online", online or f"0-{count - 1}")
    files = {
        "cpu_capacity": [str(n) for n in capacities],
        "cpufreq/cpuinfo_max_freq": [str(n) for n in max_khz],
        "topology/thread_siblings_list": siblings,
    }
    for name, values in files.items():
        for core, value in enumerate(values):
            write(root, f"{CPU}/cpu{core}/{name}", value)
    return root


def cache(root: Path, core: int, level: int, kind: str, size: str, shared: str) -> None:
    index = 2 * level + (kind == "Instruction")
    for name, text in {
        "level": str(level),
        "type": kind,
        "size": size,
        "shared_cpu_list": shared,
    }.items():
        write(root, f"{CPU}/cpu{core}/cache/index{index}/{name}", text)


def arm_phone(root: Path) -> Path:
    """4+4 with all facts."""
    khz = [1_800_000] * 4 + [2_800_000] * 4
    cores(root, 8, capacities=[400] * 4 + [1024] * 4, max_khz=khz)
    blocks = []
    for core in range(8):
        big = core >= 4
        write(root, f"{CPU}/cpu{core}/topology/thread_siblings_list", str(core))
        write(root, f"{CPU}/cpu{core}/cpufreq/scaling_governor", "walt" if big else "schedutil")
        cache(root, core, 1, "Data", "64K" if big else "32K", str(core))
        cache(root, core, 2, "Unified", "512K" if big else "128K", str(core))
        cache(root, core, 3, "Unified", "4096K", "0-7")
        features = "fp asimd asimdhp asimddp" + (" i8mm bf16" if big else "")
        blocks.append(
            f"processor\t: {core}\nFeatures\t: {features}\nCPU implementer\t: 0x41\n"
            f"CPU part\t: {'0xd41' if big else '0xd05'}\n"
        )
    write(root, "proc/cpuinfo", "\n".join(blocks))
    write(root, "proc/self/cgroup", "0::/apps")
    write(root, "sys/fs/cgroup/apps/cpu.max", "150000 100000")
    for zone, (name, temperature) in enumerate([("cpu-big", 61_500), ("skin", 34_000)]):
        write(root, f"sys/class/thermal/thermal_zone{zone}/type", name)
        write(root, f"sys/class/thermal/thermal_zone{zone}/temp", str(temperature))
    return root
