"""Decodes audio in a thread of its own, so that a slow pipe never holds up words that are ready."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import RATE, AudioWindow

__all__ = ["Cut", "Feeder"]

Cut = Callable[[Iterable[Samples]], Iterator[AudioWindow]]
"""Blocks of an input -> its windows."""


class Feeder:
    """Windows of one input, cut ahead of their use.

    Attributes:
        heard: seconds decoded; final once `ended`.
        ended: all windows have been taken.
    """

    _AHEAD = 2  # windows: enough to hide the decoding, 4 MB

    def __init__(self, audio: Iterable[Samples], cut: Cut) -> None:
        self._audio = audio
        self._cut = cut
        self._queue: queue.Queue[AudioWindow | BaseException | None] = queue.Queue(self._AHEAD)
        self._stop = threading.Event()
        self.heard = 0.0
        self.ended = False
        # Daemon: a read from a pipe that never ends cannot be called back.
        self._thread = threading.Thread(target=self._work, name="as2d-audio", daemon=True)
        self._thread.start()

    def take(self, timeout: float = 0.0) -> AudioWindow | None:
        """The next window, or None: none within `timeout` seconds, or no more (see `ended`).

        Raises:
            As2dError: the input turned out to be no audio.
        """
        if self.ended:
            return None
        try:
            item = self._queue.get(timeout > 0, timeout or None)
        except queue.Empty:
            return None
        if isinstance(item, AudioWindow):
            return item
        self.ended = True
        if item is not None:
            raise item
        return None

    def close(self) -> None:
        """Stops decoding; returns at once if the thread is caught in a read."""
        self._stop.set()
        self._thread.join(0.2)

    def _work(self) -> None:
        last: BaseException | None = None
        try:
            for window in self._cut(self._blocks()):
                if not self._put(window):
                    return
        except BaseException as e:  # raised again by `take`
            last = e
        self._put(last)

    def _blocks(self) -> Iterator[Samples]:
        """The audio until `close`; long silence would otherwise be decoded to its end."""
        for block in self._audio:
            if self._stop.is_set():
                return
            self.heard += len(block) / RATE
            yield block

    def _put(self, item: AudioWindow | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                time.sleep(0)
        return False
