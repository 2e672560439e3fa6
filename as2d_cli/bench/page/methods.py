"""What the figures mean, and all that is needed to get them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from as2d_cli.bench.page.marks import number, text
from as2d_cli.bench.page.reading import Reading

__all__ = ["methods"]

_DEFINITIONS = (
    ("unit", "what was timed: a window of at most 30 seconds, a whole recording, or a question"),
    ("ratio", "the baseline\u2019s seconds over a contender\u2019s, summed over the units that "
     "both ran, the median of the repeats of each unit taken first; above 1 is faster"),
    ("95\u202f% interval", "bootstrap over units with a fixed seed: how far the ratio would move "
     "with other units of this kind"),
    ("of best choice", "pooled throughput over that of a hindsight oracle, which takes for every "
     "unit the fastest pair of drafter and budget of the method, the target alone included"),
    ("differ", "windows with other tokens than the reference, the target alone in exact mode"),
    ("tokens /step", "tokens committed per forward of the target, prompts not counted"),
    ("accepted", "mean accepted candidates per verify step, without the target\u2019s own token"),
    ("acceptance", "candidates accepted over candidates proposed"),
    ("alone steps", "share of the target\u2019s steps without candidates"),
    ("lead", "draft tokens ready after the committed prefix, the mean over verify steps"),
    ("realigned", "times that candidates began elsewhere in the draft than where the last ended"),
    ("ceiling", "a drafter that is the target itself or knows its text: a bound, not a rival"),
)  # fmt: skip


def methods(reading: Reading) -> str:
    """Definitions, the command, machine and versions, models with digests, cores of the lanes."""
    document = reading.document
    definitions = "".join(
        f"<div><dt>{text(word)}</dt><dd>{text(meaning)}</dd></div>"
        for word, meaning in _DEFINITIONS
    )
    return (
        f'<dl class="words">{definitions}</dl>'
        f"<h3>Command</h3><pre>{text(shlex.join(map(str, document['command'])))}</pre>"
        f"<h3>Machine and versions</h3>{_pairs(_machine(document))}"
        f"<h3>Models</h3>{_models(document)}"
        f"<h3>Cores of the lanes</h3>{_cores(reading)}"
    )


def _machine(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    machine, settings = document["machine"], document["settings"]
    clusters = "; ".join(
        f"cores {_ids(cluster['cores'])}, capacity {cluster['capacity']}, "
        f"{number(cluster['max_khz'] / 1e6, 2)} GHz"
        if cluster.get("max_khz")
        else f"cores {_ids(cluster['cores'])}, capacity {cluster['capacity']}"
        for cluster in machine["clusters"]
    )
    versions = [
        f"{name} {version}"
        for name, version in (
            ("as2d", document["as2d"]),
            ("Python", machine.get("python")),
            ("ONNX Runtime", machine["onnxruntime"]),
            ("NumPy", machine.get("numpy")),
        )
        if version is not None
    ]
    return (
        *_phone(machine),
        ("CPU", machine["cpu"]),
        ("clusters", clusters),
        ("quota", f"{number(machine['quota'], 1)} cores" if machine["quota"] else "none"),
        ("kernels", machine["kernels"]),
        ("system", machine["system"]),
        ("versions", ", ".join(versions)),
        ("language", settings["language"] or "of each clip"),
        ("baseline", settings["baseline"]),
        ("repeats", str(settings["repeat"])),
    )


def _phone(machine: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Of a device that the bench was made on: what it is, and how warm it was."""
    phone = machine.get("phone")
    if phone is None:
        return
    words = (phone["manufacturer"], phone["model"], phone["soc"] or phone["board"])
    yield "device", " ".join(word for word in words if word) or phone["serial"]
    if phone["android"]:
        yield "Android", f"{phone['android']}, {phone['build']}"
    warm = [heat["battery_celsius"] for heat in machine["heat"]]
    if any(celsius is not None for celsius in warm):
        told = ["unknown" if celsius is None else f"{celsius:.1f} °C" for celsius in warm]
        yield "battery", ", then ".join(told)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{text(a)}</dt><dd>{text(b)}</dd></div>" for a, b in pairs)
    return f'<dl class="pairs">{rows}</dl>'


def _models(document: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{text(model['id'])}</td><td>{text(model['role'])}</td><td>{text(f['name'])}</td>"
        f"<td>{number(f['bytes'] / 1e6, 1)} MB</td><td><code>{text(f['sha256'])}</code></td></tr>"
        for model in document["models"]
        for f in model["files"]
    )
    return (
        '<div class="scroll"><table class="plain"><thead><tr><th>model</th><th>role</th>'
        f"<th>file</th><th>size</th><th>SHA-256</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cores(reading: Reading) -> str:
    shared: dict[tuple[str, str, str], list[str]] = {}
    for contender in reading.contenders:
        for name, lane in contender.entry["lanes"].items():
            threads = "; ".join(_thread(thread) for thread in lane["threads"])
            shared.setdefault((name, _ids(lane["cores"]), threads), []).append(contender.label)
    rows = "".join(
        f"<tr><td>{text(name)}</td><td>{text(cores)}</td><td>{text(threads)}</td>"
        f"<td>{text(', '.join(labels))}</td></tr>"
        for (name, cores, threads), labels in shared.items()
    )
    return (
        '<div class="scroll"><table class="plain"><thead><tr><th>lane</th><th>cores</th>'
        f"<th>threads and their masks</th><th>of</th></tr></thead><tbody>{rows}</tbody></table>"
        "</div>"
    )


def _thread(thread: Mapping[str, Any]) -> str:
    if thread["refused"]:
        return f"{thread['name']}: asked for {thread['requested']}, refused ({thread['refused']})"
    if thread["requested"] != thread["actual"]:
        asked = thread["requested"] or "any"
        return f"{thread['name']}: asked for {asked}, got {thread['actual'] or 'unknown'}"
    return f"{thread['name']}: {thread['actual'] or 'any'}"


def _ids(cores: Sequence[int]) -> str:
    return ", ".join(map(str, cores)) or "none"
