"""What an application says through an endpoint by itself: the verbs of a client connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ..._connection.handles import (
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
)
from ..._spec.errors import LocalProtocolError
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, is_object
from .headers import read_headers
from .session import Conduct


class Verbs(Conduct):
    """The application's side of `ClientEndpoint`."""

    __slots__ = ()

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
        by what it answers to the probe, and one of HTTP+SSE by what it answers to `initialize`;
        each is then tried as such. A session that is lost is opened again (`SessionLost`) with the
        same `meta`, and in the same `timeout`.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Backward Compatibility.
        """
        start = self._connection.machine.discovery.start(
            meta, timeout, probe_timeout, hint, data, now
        )
        self._opening = start._meta, timeout  # as it is to be opened again
        self._settle()
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
        if not self._needs_reopening:
            raise LocalProtocolError("LIFE-001", "no session is lost that could be opened again")
        if now is not None:
            self._tell(now)
        start = self._open_again()
        self._settle()
        return start

    # ---------------------------------------------------------------------- asking and telling

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
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Ask the server: as `ClientConnection.send_request`.

        Each request has an exchange of its own, so `request` makes no difference.

        Raises:
            LocalProtocolError: As there; and where the method, or an integer that the tool wants
                to have in a field, has no form in one.
        """
        connection = self._connection
        if connection.core.conversation.dialect.is_modern:
            connection.fields = self._fields_of(str(method), params if is_object(params) else {})
        try:
            call = connection.machine.outgoing.send(
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
            connection.fields = None
        self._settle()
        return call

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> None:
        """Tell the server something: as `ClientConnection.send_notification`."""
        connection = self._connection
        if connection.core.conversation.dialect.is_modern:
            connection.fields = self._fields_of(str(method), {})
        try:
            connection.machine.notifications.send(method, params, meta, None, now)
        finally:
            connection.fields = None
        self._settle()

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
        """List everything, page by page: as `ClientConnection.send_paginated`."""
        listing = self._connection.machine.listings.start(
            method, params, meta, timeout, max_timeout, auto, None, data, now
        )
        self._settle()
        return listing

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Ask for the next page of a listing: as `ClientConnection.next_page`."""
        done = self._connection.machine.listings.next_page(listing, now)
        self._settle()
        return done

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Ping the server: as `ClientConnection.ping`."""
        ping = self._connection.machine.pings.send(meta, timeout, data, now)
        self._settle()
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

        Its exchange is aborted. In 2026-07-28 that is what tells the server; before, it is also
        sent `notifications/cancelled`.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Cancellation.
        """
        done = self._connection.machine.cancel(call, reason, meta, now)
        self._settle()
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
        subscription = self._connection.machine.subscriptions.listen(
            notifications, meta, timeout, data, now
        )
        self._settle()
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
        """Send a request again with the answers: as `ClientConnection.provide_input`."""
        connection = self._connection
        if call._body is not None:
            params: Any = self._config.codec.decode(call._body)
            connection.fields = self._fields_of(call._method, params)
        try:
            renewed = connection.machine.input_required.provide(
                call, responses, meta, log_level, progress, timeout, max_timeout, data, now
            )
        finally:
            connection.fields = None
        self._settle()
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
        done = self._connection.machine.incoming.send_result(request, result, meta, now)
        self._settle()
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
        done = self._connection.machine.incoming.send_error(request, code, message, data, now)
        self._settle()
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
        done = self._connection.machine.incoming.send_progress(
            request, progress, total, message, meta, now
        )
        self._settle()
        return done

    # -------------------------------------------------------------------------- authorization

    def authorize(
        self,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        now: float | None = None,
    ) -> int:
        """Send these fields from now on, in place of those before, and what was kept again.

        Args:
            headers: As for `ClientEndpoint`. They are sent to its origin only.
            now: The caller's clock in seconds.

        Returns:
            How many messages and streams had waited for it (`AuthorizationRequired.kept`).

        Raises:
            ValueError: As for `ClientEndpoint`.
        """
        fields = read_headers(headers)
        if now is not None:
            self._tell(now)
        self._set_headers(fields)
        self._version += 1
        kept, self._kept = self._kept, {}
        for lane in kept:
            lane.authorized()
        self._settle()
        return len(kept)

    def give_up(self, *, now: float | None = None) -> int:
        """There is no authorization to be had: what was kept for it ends as refused.

        Returns:
            How many messages and streams that were.
        """
        if now is not None:
            self._tell(now)
        kept = self._kept
        count = len(kept)
        while kept:  # the end of one may be the end of all
            lane = next(iter(kept))
            event = attrs.evolve(kept.pop(lane), kept=False)
            self._events.append(event)
            text = f"the server wants authorization (status {event.status}), and there is none"
            lane.give_up(event.status, text)
        self._settle()
        return count

    # --------------------------------------------------------------------------------- ending

    def close(self, *, now: float | None = None) -> None:
        """End the conversation. Every open request ends; `ConnectionClosed` comes last.

        Exchanges under way are aborted. If there is a session, one exchange more tells the server
        that it is over; nothing depends on how that comes out. A second call does nothing.
        """
        self._connection.machine.close(now=now)
        self._settle()
