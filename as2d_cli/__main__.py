"""The program's door: ``as2d`` and ``python -m as2d_cli``."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the program on ``sys.argv`` and returns its exit status."""
    # Importing takes a tenth of a second in which a Ctrl-C must not show a traceback either.
    try:
        from as2d_cli.process import run_process

        return run_process(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
