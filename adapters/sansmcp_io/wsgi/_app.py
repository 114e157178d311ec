"""The WSGI application and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from sansmcp.http import ServerEndpoint, Sessions

from .._common.call import is_async
from .._common.http_server import Response
from .._common.lookups import check_event_log
from .._common.server import AllClients
from .._options.arguments import described, init_takes
from .._options.checks import check_path, check_waits
from .._options.servers import HTTPServerOptions
from ._calls import Environ, ServerCall
from ._exchange import (
    Authenticate,
    Result,
    ServingSettings,
    StartResponse,
    WSGIExchange,
    fields_of,
    status_line,
    texts_of,
)
from ._runner import ThreadRunner

if TYPE_CHECKING:
    from ._access import ThreadAccessChecker

Handler: TypeAlias = Callable[[ServerCall], Result]
"""Serves a client's requests: returns the result, or raises `McpError`. A plain function, which
several threads may call at a time."""

_NOT_FOUND: Final = "nothing is served at this path"


@attrs.frozen
class _AppOptions(HTTPServerOptions[Authenticate]):
    """The options of the application.

    Args:
        handler: Serves the clients' requests, in the thread in which they come.
        path: The path of the endpoint, below the place where the application is mounted; other
            paths get 404. None: all requests that are routed here are served.
        authenticate: Called with the environment of each request; returns the principal, or raises
            `Unauthorized`. Preflights are not authenticated.
        sessions: Whether legacy clients have sessions; or settings for them. Sessions are in the
            memory of this process: all requests of a session must come to it.
        streams: Whether there are streams that last as long as clients like: those of
            `subscriptions/listen`, and the GET streams of sessions. Each takes a thread of the
            server for all that time. Without, only responses to requests are streams, which end
            with the response; `listChanged` and `resources.subscribe` are declared to no client.
        on_notification: Called with method and params of each notification.
    """

    handler: Handler
    path: str | None = attrs.field(default=None, kw_only=True)
    sessions: bool | Sessions = attrs.field(default=False, kw_only=True)
    streams: bool = attrs.field(default=False, kw_only=True)

    @property
    def _asks_tool_schema(self) -> bool:
        return self.tool_schema is not None  # it may wait for I/O, and not with the lock held


@described(_AppOptions)
class App(AllClients):
    """A WSGI application that serves MCP over HTTP. Any number of threads may call it at a time.

    One lock guards what they share, and is never held while a handler runs. No thread is started,
    but for the work on tasks, and for the HTTP requests of a verifier of tokens.

    Raises:
        ValueError: Settings contradict each other.
        TypeError: The handler is async.
    """

    @init_takes(_AppOptions)
    def __init__(self, options: _AppOptions) -> None:
        options.check()
        check_event_log(options.event_log, on_loop=False)
        for function in (
            options.handler,
            options.authenticate,
            options.on_notification,
            options.tool_schema,
            options.verify_token,
        ):
            if is_async(function):
                raise TypeError(
                    f"{function!r} is async, and below WSGI there is no event loop for it: "
                    "use a plain function, or sansmcp_io.asgi"
                )
        if options.path is not None:
            check_path(options.path)
        self._path = options.path
        access: ThreadAccessChecker | None = None
        self._runner = ThreadRunner(
            options.new_endpoint(streams=options.streams),
            on_notification=options.on_notification,
            request_timeout=options.request_timeout,
            lookups=options.lookups,
            handler=options.handler,
            make_call=partial(ServerCall, context=options.context),
            most_running=options.running_tasks if options.tasks else 0,
        )
        # After the endpoint is made, which checks the options.
        self._resource = None if options.access is None else options.access.resource
        if options.access is not None:
            from ._access import ThreadAccessChecker  # most servers need nothing of authorization

            access = ThreadAccessChecker(
                options.access, options.verify_token, options.lookup_timeout
            )
        self._serving = ServingSettings(
            self._runner,
            options.authenticate,
            options.key_of_principal,
            access,
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one HTTP request. It returns when the response is complete."""
        document = self._document(environ)
        if document is not None:
            status, fields, body = document
            start_response(status_line(status), texts_of(fields))
            return (body,)
        if self._path is not None and environ.get("PATH_INFO") != self._path:
            status, fields, body = self._runner.endpoint.refusal(
                404, _NOT_FOUND, method=environ["REQUEST_METHOD"], headers=fields_of(environ)
            )
            start_response(status_line(status), texts_of(fields))
            return (body,)
        return WSGIExchange(self._serving, environ, start_response).run()

    def _document(self, environ: Environ) -> Response | None:
        """The response to a request for the metadata of the resource; None: it is for MCP."""
        if self._resource is None:
            return None
        path: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        path = path.encode("latin-1", "replace").decode("utf-8", "replace")  # PEP 3333
        return self._resource.respond(environ["REQUEST_METHOD"], path)

    def close(self, *, drain: float = 0.0) -> None:
        """Cancel all open requests, and end all streams and sessions. Further requests get 503.

        Args:
            drain: Seconds that open requests have to finish before that.
        """
        check_waits(drain=drain)
        self._runner.close(drain)

    @property
    def _endpoint(self) -> ServerEndpoint:
        return self._runner.endpoint

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._runner.lock

    def _verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return self._runner.verb(function, *args, **options)
