"""The endpoint of a client: one conversation with one server over any number of exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from ..._connection.config import Config, config_of
from ..._connection.handles import (
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
    params_of,
)
from ..._rules.conversation import Peer
from ..._rules.state_tables import Phase, State
from ..._spec.errors import LocalProtocolError
from ..._spec.registry import ALL_REVISIONS
from ..._wire.setting_checks import check_flag, check_function, names_in
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, is_object
from .authorization import Authorization
from .core import ClientEndpointCore
from .events import ClientHTTPEvent
from .exchange import ClientExchange, ExchangeQueue
from .headers import RequestHeaders, read_headers
from .response_judge import ResponseJudge
from .session import ClientSession
from .tool_headers import ToolHeaders
from .urls import read_url


@final
class ClientEndpoint:
    """A client over HTTP: it gives out HTTP requests to make, and takes their responses.

    It is the unit of locking: use it and its exchanges in one thread at a time. No call waits.

    Args:
        url: The URL of the MCP endpoint, of `http` or `https`.
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What the client can do for the server.
        requires: Capabilities that the server must declare; without one of them `start` fails.
        revisions: The revisions to speak. With 2024-11-05 among them, servers of HTTP+SSE are
            recognised, too.
        headers: Headers of every request, such as `Authorization`: a mapping, or pairs. They go to
            the origin of `url` and to no other.
        authorize: Hold exchanges that are answered with 401, or 403 and a challenge, until
            `authorize()` or `give_up()` is called. Without it they end as refused.
        get_stream: Open the standalone stream, for messages that belong to no request, in the
            revisions that have one.
        config: Limits and policies.
        wake: Called when an exchange, an abort, an event or an earlier deadline appears where
            none was.

    Raises:
        ValueError: The URL or a header is unusable, a revision or a capability unknown, or `info`
            incomplete.
        LocalProtocolError: `info` or `capabilities` have no JSON form.
    """

    __slots__ = (
        "__weakref__",
        "_authorization",
        "_core",
        "_queue",
        "_session",
        "_tool_headers",
    )

    def __init__(
        self,
        url: str,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        requires: Iterable[str] = (),
        revisions: Sequence[str] = ALL_REVISIONS,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        authorize: bool = False,
        get_stream: bool = True,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        config = config_of(config)
        check_flag("authorize", authorize)
        check_flag("get_stream", get_stream)
        check_function("wake", wake, optional=True)
        core = ClientEndpointCore(read_url(url), config, wake)
        queue = ExchangeQueue(core, RequestHeaders(read_headers(headers)))
        tool_headers = ToolHeaders(core)
        authorization = Authorization(core, queue, holds=authorize)
        session = ClientSession(
            core,
            queue,
            tool_headers,
            authorization,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            requires=names_in("requires", requires),
            get_stream=get_stream,
        )
        queue.judge = ResponseJudge(core, queue, session, authorization)
        self._core = core
        self._queue = queue
        self._tool_headers = tool_headers
        self._authorization = authorization
        self._session = session

    def __repr__(self) -> str:  # neither its headers nor the query of its URL
        return f"<ClientEndpoint {self._core.url.authority} {self.state.name}>"

    # ------------------------------------------------------------------------- to the caller

    def next_exchange(self) -> ClientExchange | None:
        """Take the next HTTP request to make; None means that there is none now."""
        return self._queue.take()

    def aborts(self) -> list[ClientExchange]:
        """Return the exchanges that were aborted since the last call: close their connections.

        Exchanges that were never given out are not among them.
        """
        return self._queue.take_aborted()

    def next_event(self) -> ClientHTTPEvent | None:
        """Take the oldest event; None means that there is none now."""
        event: ClientHTTPEvent | None = self._core.next_event()
        return event

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._core.timers.earliest()

    def handle_timeout(self, now: float) -> None:
        """Handle all deadlines up to `now`. A call before a deadline does nothing."""
        self._core.machine.handle_timeout(now)
        self._core.settle()

    # ------------------------------------------------------------------------------- looking

    @property
    def url(self) -> str:
        """The URL of the server. A permanent redirect changes it."""
        return self._core.url.text

    @property
    def exchanges(self) -> tuple[ClientExchange, ...]:
        """The exchanges that were given out and are not over, oldest first."""
        return self._queue.under_way

    @property
    def state(self) -> State:
        """What still works."""
        return self._core.machine.core.state

    @property
    def phase(self) -> Phase:
        """How far the opening has come."""
        return self._core.machine.core.conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._core.machine.core.peer.revision

    @property
    def peer(self) -> Peer:
        """What is known of the server."""
        return self._core.machine.core.peer

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return self._core.machine.outgoing.pending

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the server that still wait for a response, oldest first."""
        return self._core.machine.open_requests

    @property
    def unsent_bytes(self) -> int:
        """Bytes of messages that wait in exchanges not yet given out."""
        return self._core.machine.core.unsent

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._core.events.is_over(self._core.config)

    # --------------------------------------------------------------------------------- opening

    def start(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        probe_timeout: float | None = None,
        hint: str | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Start:
        """Open the conversation: as `ClientConnection.start`.

        Ends in one `Ready` or `ConnectionFailed`. A server that knows handshakes only is recognised
        by its answer to the probe, and a server of HTTP+SSE by its answer to `initialize`; each is
        then tried as such. A session that is lost is opened again (`SessionLost`) with the same
        `meta` and the same `timeout`.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Backward Compatibility.
        """
        start = self._session.start(meta, timeout, probe_timeout, hint, data, now)
        self._core.settle()
        return start

    def reopen(self, *, now: float | None = None) -> Start:
        """Open a session again after a `SessionLost` that names no start.

        It has the `meta` and the `timeout` of the first `start`, and ends in one `Ready`, or in
        `ConnectionFailed`, after which `SessionLost` comes once more.

        Args:
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: There is a session, or one is being opened; or the conversation has
                ended.
        """
        if not self._session.needs_reopening:
            raise LocalProtocolError("LIFE-001", "no session is lost that could be opened again")
        if now is not None:
            self._core.tell(now)
        start = self._session.reopen()
        self._core.settle()
        return start

    # --------------------------------------------------------------- requests and notifications

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        id: int | str | None = None,
        data: Any = None,
        now: float | None = None,
        request: IncomingRequest | None = None,
    ) -> OutgoingRequest:
        """Send a request to the server: as `ClientConnection.send_request`.

        Args:
            request: Has no effect, because each request has an exchange of its own.

        Raises:
            LocalProtocolError: As there; and where the method, or an integer that a header repeats,
                has no form in a header.
        """
        transport = self._session.transport
        if transport.core.conversation.dialect.is_modern:
            known = params if is_object(params) else {}
            transport.fields = self._tool_headers.fields_of(str(method), known)
        try:
            call = transport.machine.outgoing.send(
                method,
                params,
                meta,
                progress,
                timeout,
                max_timeout,
                log_level,
                id,
                None,
                data,
                now,
            )
        finally:
            transport.fields = None
        self._core.settle()
        return call

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> None:
        """Send a notification to the server: as `ClientConnection.send_notification`."""
        transport = self._session.transport
        if transport.core.conversation.dialect.is_modern:
            transport.fields = self._tool_headers.fields_of(str(method), {})
        try:
            transport.machine.notifications.send(method, params, meta, None, now)
        finally:
            transport.fields = None
        self._core.settle()

    def send_paginated(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        auto: bool = True,
        data: Any = None,
        now: float | None = None,
    ) -> Listing:
        """Fetch all pages of a list: as `ClientConnection.send_paginated`."""
        listing = self._core.machine.listings.start(
            method, params, meta, timeout, max_timeout, auto, None, data, now
        )
        self._core.settle()
        return listing

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Request the next page of a listing: as `ClientConnection.next_page`."""
        done = self._core.machine.listings.next_page(listing, now)
        self._core.settle()
        return done

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Send a ping to the server: as `ClientConnection.ping`."""
        ping = self._core.machine.pings.send(meta, timeout, data, now)
        self._core.settle()
        return ping

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel what is in flight: as `ClientConnection.cancel`.

        Its exchange is aborted. In 2026-07-28 that tells the server; in legacy revisions
        `notifications/cancelled` is sent as well.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Cancellation.
        """
        done = self._core.machine.cancel(call, reason, meta, now)
        self._core.settle()
        return done

    def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Subscription:
        """Subscribe to changes: as `ClientConnection.listen`, on a stream of its own."""
        subscription = self._core.machine.subscriptions.listen(
            notifications, meta, timeout, data, now
        )
        self._core.settle()
        return subscription

    def provide_input(
        self,
        call: OutgoingRequest,
        responses: Mapping[str, JSONObject],
        *,
        meta: JSONObject | None = None,
        log_level: str | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Send a request again with the answers: as `ClientConnection.provide_input`.

        The headers that repeat arguments of a tool are written again from the latest `tools/list`.
        """
        transport = self._session.transport
        if (encoded := params_of(call)) is not None:
            params: Any = self._core.config.codec.decode(encoded)
            transport.fields = self._tool_headers.fields_of(call.method, params)
        try:
            renewed = transport.machine.input_required.provide(
                call, responses, meta, log_level, progress, timeout, max_timeout, data, now
            )
        finally:
            transport.fields = None
        self._core.settle()
        return renewed

    # ------------------------------------------------------------------------------ answering

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request of the server with a result: as `ClientConnection.send_result`."""
        done = self._core.machine.incoming.send_result(request, result, meta, now)
        self._core.settle()
        return done

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        now: float | None = None,
    ) -> bool:
        """Answer a request of the server with an error: as `ClientConnection.send_error`."""
        done = self._core.machine.incoming.send_error(request, code, message, data, now)
        self._core.settle()
        return done

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Tell how far a request of the server has come: as `ClientConnection.send_progress`."""
        done = self._core.machine.incoming.send_progress(
            request, progress, total, message, meta, now
        )
        self._core.settle()
        return done

    # -------------------------------------------------------------------------- authorization

    def authorize(
        self,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        now: float | None = None,
    ) -> int:
        """Replace the caller's headers, and send again what was held for want of credentials.

        Args:
            headers: As for `ClientEndpoint`. They are sent to its origin only.
            now: The caller's clock in seconds.

        Returns:
            How many messages and streams were held (`AuthorizationRequired.kept`).

        Raises:
            ValueError: As for `ClientEndpoint`.
        """
        read = read_headers(headers)
        if now is not None:
            self._core.tell(now)
        count = self._authorization.supply(read)
        self._core.settle()
        return count

    def give_up(self, *, now: float | None = None) -> int:
        """End what is held for want of credentials as refused: there are none to supply.

        Returns:
            How many messages and streams were held.
        """
        if now is not None:
            self._core.tell(now)
        count = self._authorization.give_up()
        self._core.settle()
        return count

    # --------------------------------------------------------------------------------- ending

    def close(self, *, now: float | None = None) -> None:
        """End the conversation. Every open request ends; `ConnectionClosed` comes last.

        Exchanges under way are aborted. If there is a session, one more exchange tells the server
        that it is over; nothing depends on its response. A second call does nothing.
        """
        self._core.machine.close(now=now)
        self._core.settle()
