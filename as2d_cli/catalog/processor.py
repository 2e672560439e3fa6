"""The one fact about the processor that the encoder graphs depend on."""

from __future__ import annotations

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def multiplies_signed_weights_exactly(machine: str | None = None, cpuinfo: Path = _CPUINFO) -> bool:
    """Whether uint8 x int8 products are summed without saturation here.

    x86-64 without VNNI sums pairs of them in 16 bits, which overflow ("When and why do I need to
    try U8U8?", ONNX Runtime documentation, Quantization); uint8 x uint8 is slower but exact there.
    """
    machine = machine if machine is not None else platform.machine()
    if machine.lower() not in ("x86_64", "amd64"):
        return True
    try:
        text = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return any(
        {"avx512_vnni", "avx_vnni"} & set(line.split())
        for line in text.splitlines()
        if line.startswith("flags")
    )
