"""Bounds that more than one command states."""

MAX_BUDGET = 31
"""Most candidates: with the row of the target's own token these make a step of 32 rows."""

MAX_WINDOWS = 16
"""Most windows in a batch: each holds some 20 MB of keys and values, and more gain nothing."""

MAX_THREADS = 1024
"""Cores that the kernel's usual mask holds."""
