"""The options of clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import attrs

from sansmcp import (
    ALL_REVISIONS,
    ClientConnection,
    Config,
    IncomingRequest,
    JSONObject,
    Tasks,
)

from .._common.bounds import DEFAULT_PROBE_TIMEOUT, DEFAULT_REQUEST_TIMEOUT, DEFAULT_START_TIMEOUT
from .._common.call import NotificationHandler, serves_nothing
from .._common.tasks import DEFAULT_RUNNING_TASKS, task_settings
from .._common.trace import HTTPClientTrace, Trace
from ..stdio import (
    DEFAULT_KILL_AFTER,
    DEFAULT_TERMINATE_AFTER,
    ProcessEnd,
    StderrMode,
    process_options,
)
from .checks import Checked, SessionOptions, check_limits, kept

if TYPE_CHECKING:
    import ssl

    import httpx2

    from sansmcp import Cache, CachePartition
    from sansmcp.http import ClientEndpoint

    from .._common.http_client_settings import Headers, HTTPClientLimits, OnUnauthorized
    from ..oauth import OAuth
    from ..oauth._authorization import ClientAuthorization

RequestHandlerT = TypeVar("RequestHandlerT")

_PROXY_REFUSED: Final = "the environment names a proxy for this URL: say proxies='ignore' or 'use'"


@attrs.frozen(kw_only=True)
class ClientOptions(Checked, Generic[RequestHandlerT]):
    """The options of any client.

    Args:
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What `on_request` does for the server. Without `on_request`, none is
            declared.
        revisions: The revisions to speak.
        requires: Capabilities that the server must declare, as dotted paths.
        on_request: Serves the server's requests; without a loop, it is called in a thread that
            waits.
        on_notification: Called with method and params of each notification; async (on a loop) or
            plain.
        context: Becomes `Call.context`.
        config: Limits and policies.
        cache: Keeps results for as long as the server allows (2026-07-28), and answers requests
            with them. Several clients may share one; without a loop it needs a `lock`. None: no
            result is kept.
        tasks: Whether requests may ask for tasks, and tasks are followed; or settings for that.
            With it, a server of 2025-11-25 may ask for tasks as far as `capabilities` has `tasks`:
            `on_request` runs in a task then, whatever it returns, and 100 of them work at a time.
        request_timeout: Default for `timeout` of each request, in seconds; `math.inf`: no limit.
        start_timeout: Seconds that the opening may take.
        probe_timeout: Seconds, as a part of these, after which a server that does not answer
            `server/discover` is taken for a legacy one.
        hint: The `peer.revision` of the last connection to this server. With it, the client
            need not find out again whether the server is legacy.
    """

    info: JSONObject
    capabilities: JSONObject | None = None
    revisions: Sequence[str] = ALL_REVISIONS
    requires: Iterable[str] = ()
    on_request: RequestHandlerT | None = None
    on_notification: NotificationHandler | None = None
    context: Any = None
    config: Config | None = None
    cache: Cache | CachePartition | None = None
    tasks: bool | Tasks = True
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT
    start_timeout: float = DEFAULT_START_TIMEOUT
    probe_timeout: float = DEFAULT_PROBE_TIMEOUT
    hint: str | None = None

    def __attrs_post_init__(self) -> None:
        # A connection is made again after a restart, and an iterator is read only once.
        object.__setattr__(self, "requires", kept(self.requires))

    def new_connection(self) -> ClientConnection:
        """Make the client's side of a connection."""
        return ClientConnection(
            info=self.info,
            capabilities=None if self.on_request is None else self.capabilities,
            revisions=self.revisions,
            requires=self.requires,
            config=self.config,
            cache=self.cache,
            tasks=task_settings(self.tasks),
        )

    def for_session(self, call_type: Callable[[Any, IncomingRequest], Any]) -> SessionOptions:
        """The options that a session needs."""
        handler: Any = serves_nothing if self.on_request is None else self.on_request
        return SessionOptions(
            handler,
            call_type,
            self.on_notification,
            self.context,
            self.request_timeout,
            DEFAULT_RUNNING_TASKS if self.tasks else 0,
        )

    @property
    def opening(self) -> tuple[float, float, str | None]:
        """The arguments of `start` of a session."""
        return self.start_timeout, self.probe_timeout, self.hint


@attrs.frozen(kw_only=True)
class StreamClientOptions(ClientOptions[RequestHandlerT]):
    """The options of a client on a stream of bytes.

    Args:
        trace: Gets the bytes and events of this side.
    """

    trace: Trace | None = None


@attrs.frozen
class StdioClientOptions(StreamClientOptions[RequestHandlerT]):
    """The options of a client that starts its server.

    Leaving the block closes the server's input. A server that does not end then gets SIGTERM, and
    SIGKILL after that; the processes that it has started and left behind are ended, too. When the
    block is left, the server has ended and was waited for.

    Args:
        command: The program and its arguments. No shell is involved.
        env: Variables for the server, besides those that are safe to inherit
            (`sansmcp_io.stdio.SAFE_VARIABLES`).
        cwd: The server's working directory.
        stderr: What happens to the server's standard error: `"inherit"`, `"capture"` or
            `"ignore"`. The end of what is captured can be read from `ConnectionLost.stderr`.
        on_stderr: Called with each line of the server's standard error, which is captured then.
        terminate_after: Seconds that the server has to end after its input was closed.
        kill_after: Seconds that it has to end after SIGTERM.
        restarts: How often a server that has ended is started again, with a new handshake, for
            the next request (not for a notification). The requests that were in flight end with
            `ConnectionLost`.

    Raises:
        OSError: The process could not be started.
        PeerError: The server refused `initialize`.
        RequestTimeout: The server did not answer in time.
        ConnectionLost: The server ended before it answered.
        InvalidAnswer: Its answer is not valid.
        StartFailed: There is no common revision, or a required capability is missing.
    """

    command: Sequence[str | PathLike[str]]
    env: Mapping[str, str] | None = attrs.field(default=None, kw_only=True)
    cwd: str | PathLike[str] | None = attrs.field(default=None, kw_only=True)
    stderr: StderrMode = attrs.field(default="inherit", kw_only=True)
    on_stderr: Callable[[str], object] | None = attrs.field(default=None, kw_only=True)
    terminate_after: float = attrs.field(default=DEFAULT_TERMINATE_AFTER, kw_only=True)
    kill_after: float = attrs.field(default=DEFAULT_KILL_AFTER, kw_only=True)
    restarts: int = attrs.field(default=0, kw_only=True)

    def of_process(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` other than the command."""
        # With a callback, standard error is captured.
        stderr: StderrMode = self.stderr if self.on_stderr is None else "capture"
        return process_options(env=self.env, cwd=self.cwd, stderr=stderr)

    def end_of(self, process: Any) -> ProcessEnd:
        """Return the object that ends a process, such as a `subprocess.Popen`."""
        return ProcessEnd(
            process.pid,
            process.kill,
            terminate_after=self.terminate_after,
            kill_after=self.kill_after,
        )


@attrs.frozen
class HTTPClientOptions(ClientOptions[RequestHandlerT]):
    """The options of a client over HTTP.

    Leaving the block cancels what is still open, and ends the session if there is one.

    Args:
        url: The URL of the server, `http` or `https`.
        revisions: The revisions to speak. With 2024-11-05 among them, servers of HTTP+SSE are
            recognised, too.
        headers: Headers of every request, such as `{"Authorization": "Bearer ..."}`. They go to
            the origin of `url` only.
        auth: How the client is authorized by OAuth: it gets tokens when the server wants them,
            refreshes them, and keeps them in its storage. None: `headers` and `on_unauthorized`.
        on_unauthorized: Called when the server refuses the credentials; without a loop, in a
            thread that waits. Without it, the request fails with `RequestRefused`.
        get_stream: Open a GET stream for messages that belong to no request, in the revisions
            that have one.
        tls: How the server's certificate is verified; None: by the system's certificates.
        proxies: What if the environment names a proxy for this URL: `"use"` it, which needs the
            extra `httpx`, `"refuse"` to connect, or `"ignore"` it.
        limits: Limits on connections and times.
        trace: Gets the bytes and events of this side.
        http: The httpx2 client that sends the requests: an `httpx2.AsyncClient` on a loop, an
            `httpx2.Client` without one. Its proxies, certificates, `auth=` and event hooks apply,
            and it is not closed. None: a client of this library for `url` alone.

    Raises:
        PeerError, RequestTimeout, ConnectionLost, InvalidAnswer, StartFailed: As `connect_stdio`.
        RequestRefused: The server refused the start with an HTTP status, such as 401.
        ValueError: The URL, a header or another option is unusable.
        ModuleNotFoundError: The extra `h11` is not installed; or `httpx`, which clients without a
            loop need, and others where the environment names a proxy.
    """

    url: str
    headers: Headers = attrs.field(default=(), kw_only=True)
    auth: OAuth | None = attrs.field(default=None, kw_only=True)
    on_unauthorized: OnUnauthorized | None = attrs.field(default=None, kw_only=True)
    get_stream: bool = attrs.field(default=True, kw_only=True)
    tls: ssl.SSLContext | None = attrs.field(default=None, kw_only=True)
    proxies: Literal["use", "refuse", "ignore"] = attrs.field(default="use", kw_only=True)
    limits: HTTPClientLimits | None = attrs.field(default=None, kw_only=True)
    trace: HTTPClientTrace | None = attrs.field(default=None, kw_only=True)
    http: httpx2.AsyncClient | httpx2.Client | None = attrs.field(default=None, kw_only=True)

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for `url`; None: none is used."""
        return self.proxy_for(self.url)

    def proxy_for(self, url: str) -> str | None:
        """The proxy that the environment names for any URL; None: none is used."""
        from .._common.http_client_settings import proxy_of

        return None if self.proxies == "ignore" or self.http is not None else proxy_of(url)

    def way_to(self, url: str) -> str | None:
        """The proxy for a single request to any URL; None: none is used.

        Raises:
            NoResponse: The environment names a proxy, and `proxies` refuses it.
        """
        from .._common.one_shot import NoResponse

        proxy = self.proxy_for(url)
        if proxy is not None and self.proxies == "refuse":
            raise NoResponse(_PROXY_REFUSED)
        return proxy

    @property
    def named_proxies(self) -> Sequence[str]:
        """The proxies that the application says that `http` uses."""
        return () if self.auth is None else self.auth.proxies

    def new_authorization(self) -> ClientAuthorization | None:
        """Make the client's part of its authorization; None without `auth`."""
        if self.auth is None:
            return None
        # Imported here: programs without authorization do not need it.
        from ..oauth._authorization import ClientAuthorization

        return ClientAuthorization(self.url, self.headers, self.auth)

    def new_endpoint(self, kind: Literal["AsyncClient", "Client"]) -> ClientEndpoint:
        """Make the client's endpoint.

        Args:
            kind: The httpx2 class that `http` must be an instance of.

        Raises:
            ValueError: An option is not usable, or a proxy is configured and refused.
            ModuleNotFoundError: The extra `h11` or `httpx` is not installed.
        """
        # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
        from .._common.errors import check_extra
        from .._common.http_client_settings import HTTPClientLimits

        self.check()
        check_limits(self.limits, HTTPClientLimits)
        self._check_auth()
        is_proxied = self.proxy is not None
        if self.http is not None:
            self._check_http(kind)
        elif is_proxied and self.proxies == "refuse":
            raise ValueError(_PROXY_REFUSED)
        elif is_proxied or kind == "Client":
            check_extra("httpx", "httpx2")
        else:
            check_extra("h11")
        from sansmcp.http import ClientEndpoint

        return ClientEndpoint(
            self.url,
            info=self.info,
            capabilities=None if self.on_request is None else self.capabilities,
            requires=self.requires,
            revisions=self.revisions,
            headers=self.headers,
            authorize=self.on_unauthorized is not None or self.auth is not None,
            get_stream=self.get_stream,
            config=self.config,
            cache=self.cache,
            tasks=task_settings(self.tasks),
        )

    def _check_auth(self) -> None:
        if self.auth is None:
            return
        from ..oauth import OAuth

        if not isinstance(self.auth, OAuth):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ValueError(
                f"auth must be a sansmcp_io.oauth.OAuth or None, not {self.auth!r:.80}"
            )
        if self.on_unauthorized is not None:
            raise ValueError("auth and on_unauthorized exclude each other")

    def _check_http(self, kind: str) -> None:
        httpx2 = sys.modules.get("httpx2")  # a program with an httpx2 client has imported it
        client: Any = self.http
        if httpx2 is None or not isinstance(client, getattr(httpx2, kind)):
            raise ValueError(f"http must be an httpx2.{kind} here, or None")
        if self.tls is not None:
            raise ValueError("tls is not used beside http: give the httpx2 client verify=")
        if client.is_closed:
            raise ValueError("http must be an httpx2 client that is not closed")
