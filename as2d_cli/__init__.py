"""AS²D: automatic speech recognition with asynchronous, target-decoupled speculative decoding."""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    # Reading the metadata costs tens of milliseconds; only who asks for the version pays.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("as2d")
        except PackageNotFoundError:  # run from a source tree that was never installed
            return "0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
