"""The program over a scripted engine: ``python -m tests.app.driver ARGS``; $SCRIPT is JSON, and
$SOUND how many seconds are said into the microphone.
"""

from __future__ import annotations

import json
import os
import sys
from unittest.mock import patch

from as2d_cli.environment import Environment
from as2d_cli.process import run_process
from tests.fakes import Script, backend, tone
from tests.sound import FakeSound

_of_process = Environment.of_process


def with_fakes() -> Environment:
    """In place of `Environment.of_process`."""
    environment = _of_process()
    environment.backend = backend(Script(**json.loads(os.environ.get("SCRIPT", "{}"))))
    seconds = float(os.environ.get("SOUND", "0"))
    environment.sound = FakeSound(tone(seconds, 48_000).astype("float32")[:, None])
    return environment


if __name__ == "__main__":
    with patch.object(Environment, "of_process", with_fakes):
        sys.exit(run_process(sys.argv[1:]))
