"""What a person is told on standard error while the work goes on: plain lines."""

from __future__ import annotations

from as2d_cli.environment import Environment
from as2d_cli.errors import one_line
from as2d_cli.tasks.transcript import Progress, Transcript

__all__ = ["Talk", "summary"]


class Talk:
    """A monitor that writes lines.

    Errors always; warnings and notices unless quiet; information and the summary where a person
    watches a terminal, or asked for them.

    Attributes:
        live: it draws on the terminal, so that download bars may, too.
        failures: inputs that failed.
    """

    live = False

    def __init__(self, environment: Environment, *, quiet: bool, verbose: bool = False) -> None:
        self._environment = environment
        self._quiet = quiet
        self._chatty = verbose or (environment.stderr.is_terminal and not quiet)
        self.failures = 0

    def info(self, text: str) -> None:
        if self._chatty:
            self.line(text)

    def notice(self, text: str) -> None:
        if not self._quiet:
            self.line(text)

    def warning(self, text: str) -> None:
        if not self._quiet:
            self.line(f"warning: {text}")

    def error(self, text: str) -> None:
        self.failures += 1
        self.line(text)

    def progress(self, progress: Progress) -> None:
        """Nothing: lines are no place for progress."""

    def finished(self, transcript: Transcript) -> None:
        if self._chatty:
            self._environment.stderr.say(summary(transcript) + "\n")

    def close(self) -> None:
        """Nothing is left to be taken away."""

    def line(self, text: str) -> None:
        """One line, on its way at once."""
        self._environment.talk(one_line(text))


def summary(transcript: Transcript) -> str:
    """``38.2 s of audio in 2.1 s (18 x real time), 142 tokens, 3.4 accepted per step``."""
    parts = [f"{transcript.duration:.1f} s of audio in {transcript.wall:.1f} s"]
    if transcript.wall > 0 and transcript.duration > 0:
        parts[0] += f" ({rate(transcript.duration / transcript.wall)} x real time)"
    counters = transcript.counters
    if counters is not None:
        parts.append(f"{counters.committed} tokens")
        steps = sum(counters.verify_steps.values())
        if steps:
            parts.append(f"{counters.accepted / steps:.1f} accepted per step")
    return ", ".join(parts)


def rate(x: float) -> str:
    """Two digits that matter."""
    return f"{x:.0f}" if x >= 10 else f"{x:.1f}"
