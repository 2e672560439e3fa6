"""Signals as a terminal has them."""

from __future__ import annotations

import signal

# What a shell starts in the background, or nohup starts, ignores them, and so would all programs
# that the tests start and stop.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)
