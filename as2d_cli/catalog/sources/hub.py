"""Files of a Hugging Face repository at a pinned revision, by HTTPS."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from as2d_cli.catalog.entries import HubSource, ModelEntry, SourceFile
from as2d_cli.catalog.progress import Progress
from as2d_cli.catalog.sources import SIZE_LIMIT, SourceError, accept, is_whole

_ENDPOINT = "https://huggingface.co"
# Seconds within which the hub must answer at all, name look-up included.
_REACH_SECONDS = 2.5
_READ_SECONDS = 30.0
# A connection that breaks is taken up where it broke, this often.
_ATTEMPTS = 3
_CHUNK = 1 << 18


def fetch(entry: ModelEntry, source: HubSource, folder: Path, progress: Progress) -> None:
    """Download the files of ``entry`` that ``folder`` does not hold yet.

    An interrupted file stays as ``NAME.part`` and is resumed the next time.

    Raises:
        SourceError: the hub cannot be reached or does not have the right files.
    """
    missing = [file for file in entry.files if not is_whole(file, folder / file.name)]
    if not missing:
        return
    endpoint = os.environ.get("HF_ENDPOINT") or _ENDPOINT
    _require_reachable(endpoint)
    for file in missing:
        path = f"{source.repo}/resolve/{source.revision}/{file.name}"
        url = f"{endpoint.rstrip('/')}/{urllib.parse.quote(path)}"
        partial = folder / f"{file.name}.part"
        partial.parent.mkdir(parents=True, exist_ok=True)
        progress.start(file.name, file.size)
        try:
            if _download(url, file, partial, progress):
                accept(file, partial, folder / file.name)
        finally:
            progress.finish()


def _download(url: str, file: SourceFile, partial: Path, progress: Progress) -> bool:
    """Whether it is there now; False for an optional one that the hub does not have."""
    if partial.exists():
        progress.advance(partial.stat().st_size)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _continue(url, file, partial, progress)
            return True
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                partial.unlink(missing_ok=True)  # What is there is no beginning of this file.
                if attempt < _ATTEMPTS:
                    continue
            if error.code == http.HTTPStatus.NOT_FOUND and file.optional:
                return False
            raise SourceError(f"the hub answers {error.code} for {file.name}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS:
                raise SourceError(f"the hub broke off in {file.name} ({error})") from None
    return False


def _continue(url: str, file: SourceFile, partial: Path, progress: Progress) -> None:
    """Fetch what is missing of ``partial``, from the start if the server wants it so."""
    start = partial.stat().st_size if partial.exists() else 0
    limit = file.size if file.size is not None else SIZE_LIMIT
    if file.size is not None and start == file.size:
        return
    if start > limit:
        start = 0
    request = urllib.request.Request(url, headers={"User-Agent": "as2d"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=_READ_SECONDS) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise SourceError(f"the hub sends another part of {file.name} than was asked for")
        if not resumed:
            start = 0
        # Unbuffered both ways: what has arrived is there for the next run, however this one ends.
        with partial.open("ab" if resumed else "wb", buffering=0) as out:
            while chunk := response.read1(_CHUNK):
                start += len(chunk)
                if start > limit:
                    raise SourceError(f"{file.name} is larger than declared")
                out.write(chunk)
                progress.advance(len(chunk))
    if file.size is not None and start < file.size:
        raise http.client.IncompleteRead(b"", file.size - start)


def _require_reachable(endpoint: str) -> None:
    """Fail soon where the hub is blocked.

    Neither name look-up nor a connection to several addresses has a limit of its own in the
    standard library, so both run in a thread that is left behind.
    """
    url = urllib.parse.urlsplit(endpoint)
    proxies = urllib.request.getproxies()
    host = url.hostname or ""
    if url.scheme in proxies and not urllib.request.proxy_bypass(host):
        proxy = proxies[url.scheme]
        url = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    address = (url.hostname or "", url.port or (80 if url.scheme == "http" else 443))
    failure: list[str] = []
    connected = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection(address, timeout=_REACH_SECONDS).close()
            connected.set()
        except OSError as error:
            failure.append(error.strerror or str(error))

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_REACH_SECONDS)
    if not connected.is_set():
        reason = failure[0] if failure else "no answer"
        raise SourceError(f"{address[0]} cannot be reached ({reason})")
