"""Opening a client over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import trio

from sansmcp import ALL_REVISIONS, Config, JSONObject

from .._async.client import Client, RequestHandler
from .._common.callbacks import NotificationHandler, serves_nothing
from .._common.defaults import (
    DEFAULT_PROBE_TIMEOUT,
    DEFAULT_REQUEST_TIMEOUT,
    DEFAULT_START_TIMEOUT,
    check_given,
    check_limits,
    check_times,
)
from .._common.extras import check_extra
from .._common.http_client_settings import HTTPClientLimits, OnUnauthorized
from .._common.proxies import check_no_proxy
from .._common.trace import HTTPClientTrace
from ._unwrap import unwrapped


@asynccontextmanager
async def connect_http(
    url: str,
    *,
    info: JSONObject,
    capabilities: JSONObject | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    requires: Iterable[str] = (),
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    on_request: RequestHandler | None = None,
    on_notification: NotificationHandler | None = None,
    on_unauthorized: OnUnauthorized | None = None,
    context: Any = None,
    config: Config | None = None,
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT,
    start_timeout: float = DEFAULT_START_TIMEOUT,
    probe_timeout: float = DEFAULT_PROBE_TIMEOUT,
    hint: str | None = None,
    get_stream: bool = True,
    tls: ssl.SSLContext | None = None,
    proxies: Literal["refuse", "ignore"] = "refuse",
    limits: HTTPClientLimits | None = None,
    trace: HTTPClientTrace | None = None,
) -> AsyncGenerator[Client, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks.

    Leaving the block cancels what is still open, and ends the session if there is one.

    Args:
        url: Where the server is, `http` or `https`.
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What `on_request` can do for the server. Without `on_request` none is
            declared.
        revisions: The revisions to speak. With 2024-11-05 among them, servers of HTTP+SSE are
            recognised, too.
        requires: Capabilities that the server must declare, as dotted paths.
        headers: Fields of every request, such as `{"Authorization": "Bearer ..."}`. They go to
            the origin of `url` only.
        on_request: Serves the server's requests.
        on_notification: Called with method and params of each notification; async or plain.
        on_unauthorized: Called when the server wants to be shown something else. Without it, that
            is `RequestRefused`.
        context: Becomes `Call.context`.
        config: Limits and policies.
        request_timeout: Default for `timeout` of each request, in seconds; `math.inf`: no limit.
        start_timeout: Seconds that the opening may take.
        probe_timeout: Seconds of them after which a server that does not answer
            `server/discover` is taken for one that knows a handshake only.
        hint: The revision of `peer` when this server was last opened.
        get_stream: Open a stream for what belongs to no request, in the revisions that have one.
        tls: How HTTPS is checked; None: by the system's certificates.
        proxies: What if the environment names a proxy for this URL: `"refuse"` to go around it, or
            `"ignore"` it. There is no way through one.
        limits: What to put up with.
        trace: Told of everything that happens on this side.

    Raises:
        PeerError, RequestTimeout, ConnectionLost, InvalidAnswer, StartFailed: As `connect_stdio`.
        RequestRefused: The server refused the start with a status of HTTP, such as one that wants
            to know who asks.
        ValueError: The URL or a field is unusable, or a proxy was to be used.
        ModuleNotFoundError: The extra `h11` is not installed.
    """
    check_given(
        info=info,
        capabilities=capabilities,
        revisions=revisions,
        requires=requires,
        on_request=on_request,
        on_notification=on_notification,
        config=config,
        on_unauthorized=on_unauthorized,
        proxies=proxies,
        tls=tls,
    )
    check_limits(limits, HTTPClientLimits)
    check_times(
        request_timeout=request_timeout, start_timeout=start_timeout, probe_timeout=probe_timeout
    )
    check_extra("h11")
    # Here, since programs on stdio need none of it, and not all have h11.
    from sansmcp.http import ClientEndpoint

    from ._http_client import HTTPSession

    if proxies != "ignore":
        check_no_proxy(url)
    endpoint = ClientEndpoint(
        url,
        info=info,
        capabilities=None if on_request is None else capabilities,
        requires=requires,
        revisions=revisions,
        headers=headers,
        authorize=on_unauthorized is not None,
        get_stream=get_stream,
        config=config,
    )
    session = HTTPSession(
        endpoint,
        handler=serves_nothing if on_request is None else on_request,
        on_notification=on_notification,
        on_unauthorized=on_unauthorized,
        context=context,
        request_timeout=request_timeout,
        tls=tls,
        limits=limits or HTTPClientLimits(),
        trace=trace,
    )
    async with unwrapped(), trio.open_nursery() as nursery:
        session.around.append(nursery.cancel_scope)
        nursery.start_soon(session.run)
        try:
            await session.start(start_timeout, probe_timeout, hint)
            yield Client(session)
        finally:
            with trio.CancelScope(shield=True):
                await session.finish()
