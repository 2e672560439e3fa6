"""What this machine is: cores, caches, limits. Free of numpy and ONNX Runtime."""

from as2d_cli.machine.facts import Cache, Cluster, Conditions, MachineFacts
from as2d_cli.machine.reading import read_conditions, read_machine

__all__ = [
    "Cache",
    "Cluster",
    "Conditions",
    "MachineFacts",
    "read_conditions",
    "read_machine",
]
