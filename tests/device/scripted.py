"""A program called adb that says what a test wants: for failures that no emulator has."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Rule", "scripted_adb"]

_PROGRAM = """\
#!{python} -IS
import json, re, sys, time
said = " ".join(sys.argv[1:])
with open({log!r}, "a") as log:
    log.write(said + "\\n")
rules = json.load(open({rules!r}))
rule = next((rule for rule in rules if re.search(rule["asked"], said)), None)
if rule is None:
    sys.exit("adb: error: nothing is scripted for " + said)
if rule["once"]:
    rules.remove(rule)
    json.dump(rules, open({rules!r}, "w"))
sys.stdout.buffer.write(rule["out"].encode())
sys.stdout.flush()
sys.stderr.write(rule["err"])
sys.stderr.flush()
time.sleep(rule["sleep"])
sys.exit(rule["status"])
"""


@dataclass(frozen=True)
class Rule:
    """What is answered to a command line that `asked` is found in.

    Attributes:
        sleep: seconds between its words and its end.
        once: the next time, later rules have their turn.
    """

    asked: str
    out: str = ""
    err: str = ""
    status: int = 0
    sleep: float = 0.0
    once: bool = False


def scripted_adb(folder: Path, rules: Sequence[Rule]) -> Mapping[str, str]:
    """Variables of a process that finds the program; `folder`/log gets the command lines."""
    program, script = folder / "adb", folder / "rules.json"
    script.write_text(json.dumps([asdict(rule) for rule in [*rules, Rule("^start-server$")]]))
    names = {"python": sys.executable, "log": str(folder / "log"), "rules": str(script)}
    program.write_text(_PROGRAM.format(**names))
    program.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ANDROID_")}
    return kept | {"PATH": f"{folder}:{os.environ['PATH']}"}
