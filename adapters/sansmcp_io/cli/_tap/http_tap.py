"""`sansmcp tap URL`: stands before a server on HTTP, passes on what is said, and watches."""

from __future__ import annotations

import contextlib
import signal
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import trio

from ..._common.errors import AuthorizationError
from ...oauth import OAuth
from .._arguments import check_url
from .._diagnosis import without_query
from .._errors import Failure, Status, UsageError
from .._output.output import Output
from . import http_captures
from .files import CaptureFile, Notes, open_files
from .http_recording import HTTPRecorder
from .reverse_proxy import ReverseProxy, UpstreamServer

DEFAULT_HOST: Final = "127.0.0.1"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")


def tap_http(
    url: str,
    *,
    port: int,
    host: str,
    trace: str | None = None,
    quiet: bool = False,
    jsonl: str | None = None,
    auth: OAuth | None = None,
) -> int:
    """Listen until a signal ends the tap, and return the exit status.

    Args:
        url: The endpoint of the server.
        port: The port to listen on; 0: any free port.
        host: The address to listen at.
        trace: The file for trace and summary; None: standard error.
        quiet: Show no trace, only the summary.
        jsonl: The file for the capture, if there is to be one.
        auth: How requests are authorized on their way; None: they are passed on as they are.

    Raises:
        UsageError: The URL is none, a file cannot be opened, or others could use the token.
            Nothing was done.
    """
    check_url(url)
    if auth is not None and host not in _LOOPBACK:
        raise UsageError(
            f"with --auth, tap listens only at a loopback address, and not at {host}: whoever "
            "reaches the port would use your token"
        )
    upstream = UpstreamServer.of(url)
    for_trace, for_capture = open_files(trace, jsonl)
    notes = Notes(trace, for_trace)
    capture = None
    if jsonl is not None and for_capture is not None:
        capture = CaptureFile(
            jsonl, for_capture, notes, http_captures.header(datetime.now(UTC), without_query(url))
        )
    recorder = HTTPRecorder(
        url, None if quiet else notes.show, None if capture is None else capture.write
    )
    proxy = ReverseProxy(upstream, recorder, notes.warn, loopback=host in _LOOPBACK)
    try:
        return trio.run(_serve, proxy, url, host, port, auth)
    finally:
        notes.summary(proxy.close())
        if capture is not None:
            capture.close()
        notes.close()


async def _serve(proxy: ReverseProxy, url: str, host: str, port: int, auth: OAuth | None) -> int:
    if auth is None:
        return await _listen(proxy, url, host, port)
    from ...trio._tokens import token_source

    try:
        async with token_source(url, auth) as tokens:
            proxy.tokens = tokens
            return await _listen(proxy, url, host, port)
    except AuthorizationError as error:
        Output().failure(Failure(kind="unauthorized", text=str(error)))
        return Status.PROTOCOL


async def _listen(proxy: ReverseProxy, url: str, host: str, port: int) -> int:
    with trio.open_signal_receiver(*_signals()) as received:
        try:
            listeners = await trio.open_tcp_listeners(port, host=host)
        except OSError as error:
            text = f"the port {port} of {host} cannot be used: {error.strerror or error}"
            Output().failure(Failure(kind="not-started", text=text))
            return Status.PROTOCOL
        bound = listeners[0].socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        here = urlunsplit(("http", f"{shown}:{bound}", urlsplit(url).path or "/", "", ""))
        # Standard output has nothing else: what starts this can read the address there.
        with contextlib.suppress(OSError):
            print(here, flush=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, proxy.serve, listeners)
            async for _ in received:
                proxy.ending = True
                nursery.cancel_scope.cancel()
                break
    return Status.OK


def _signals() -> list[signal.Signals]:
    """The signals that end the tap, without the signals that were ignored at its start."""
    known = [signal.Signals[name] for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
