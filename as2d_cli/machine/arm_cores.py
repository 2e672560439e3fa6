"""Names of ARM cores, which the kernel tells apart by numbers."""

from __future__ import annotations

__all__ = ["core_name"]

_MAKERS = {0x41: "ARM", 0x48: "HiSilicon", 0x51: "Qualcomm", 0x53: "Samsung", 0x61: "Apple"}

_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4B): "Cortex-A78C",
    (0x41, 0xD4C): "Cortex-X1C",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x51, 0x001): "Oryon",
}


def core_name(model: str) -> str:
    """A person's name of a core that the kernel calls "0x41:0xd41"; other texts as they are."""
    implementer, colon, part = model.partition(":")
    try:
        numbers = int(implementer, 16), int(part, 16)
    except ValueError:
        return model
    if not colon or not (implementer.startswith("0x") and part.startswith("0x")):
        return model
    maker = _MAKERS.get(numbers[0], implementer)
    return _CORES.get(numbers, f"{maker} {part}")
