"""Listings: pages fetched one after the other, with an end to every one of them."""

from __future__ import annotations

from typing import Any, Final

from .._rules.sending import Breach, judge_request, null_members
from .._rules.state_tables import State
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._wire.setting_checks import check_flag
from .._wire.values import MISSING, JSONObject, is_object
from .events import (
    ErrorReceived,
    FailureReason,
    ListingEnd,
    ListingEnded,
    PageReceived,
    RequestFailed,
)
from .handles import IncomingRequest, Listing, OutgoingRequest, Ping, Purpose, Start, Subscription
from .outgoing import Outcome
from .pings import Pinging

_FAILURES = {
    FailureReason.CANCELLED: ListingEnd.CANCELLED,
    FailureReason.TIMED_OUT: ListingEnd.TIMED_OUT,
    FailureReason.LOST: ListingEnd.LOST,
    FailureReason.INVALID_ANSWER: ListingEnd.INVALID_ANSWER,
    FailureReason.NO_STREAM: ListingEnd.LOST,
    FailureReason.REFUSED: ListingEnd.REFUSED,
}

_CURSOR_BYTES = 1024 * 1024
"""Cursors are remembered to see a cycle, up to this many characters in all; the oldest goes."""

LIST_CHANGES: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""Which listings a notification makes stale."""


class ListingLayer(Pinging):
    """`send_paginated`, and what becomes of each page."""

    __slots__ = ("_fresh", "_on_demand")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fresh: dict[str, dict[Listing, None]] = {}  # by method: open, and not stale yet
        # Open, and fetched by `next_page`: the cursor for it, or None while a page is under way.
        self._on_demand: dict[Listing, str | None] = {}

    def send_paginated(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        auto: bool = True,
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Listing:
        """List everything, page by page: `PageReceived` for each, then one `ListingEnded`.

        Args:
            method: A method that the agreed revision paginates (`tools/list` and the like).
            params: The params of each page but for the cursor; a `cursor` in it is where to
                begin.
            meta: Merged into `params._meta` of each page.
            timeout: Seconds allowed for each page.
            max_timeout: The same, which progress would not extend.
            auto: Ask for each further page as soon as the one before has come. If not, each
                waits for `next_page`, so that no more is fetched than somebody has use for.
            request: As for `send_request`.
            data: Anything; it becomes `Listing.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: As for `send_request`, the method is not paginated, or as many
                listings wait for `next_page` as requests may be in flight.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        self._may_send(method)
        side = self._side
        conversation = self._conversation
        spec = conversation.dialect.requests[side].get(method)
        if params is not None and not is_object(params):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {params!r:.40}")
        given: JSONObject = {} if params is None else dict(params)
        for name in null_members(META if spec is None else spec.params_optional, given):
            del given[name]
        breach = judge_request(conversation, side, method, spec, given, self._shape)
        if breach is not None and not breach.tolerated:
            raise breach.error()
        if spec is None or spec.paginated is None:
            raise LocalProtocolError("PAGE-009", f"{method} is not paginated")
        if timeout is not None or max_timeout is not None:
            self._check_timeouts(timeout, max_timeout, now)
        cursor: Any = given.pop("cursor", None)
        if cursor is not None and not isinstance(cursor, str):  # only where shapes are not checked
            raise LocalProtocolError("OWN-014", f"a cursor is a string, not {cursor!r}")
        if conversation.dialect.is_modern:
            body = self._enveloped(given, meta)
        else:
            body = self._encode_object(given, meta)
        self._check_room()
        self._check_ours(request)
        check_flag("auto", auto)
        if not auto and len(self._on_demand) >= self._config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self._on_demand)} listings are open, which is the limit"
            )
        listing = Listing(method, body)
        listing._timeout = timeout
        listing._max_timeout = max_timeout
        listing._route = None if request is None else request._route
        listing.data = data
        first = self._page_params(listing, cursor)  # the cursor may have no JSON form
        self._check_size(first, method)
        if now is not None:
            self._tell(now)
        self._fresh.setdefault(method, {})[listing] = None
        if not auto:
            self._on_demand[listing] = None
        self._fetch(listing, cursor, first)
        if self._restless:
            self._settle()
        return listing

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Ask for the next page of a listing that was begun with `auto=False`.

        Args:
            listing: The handle from `send_paginated`.
            now: The caller's clock in seconds. The page's timeout counts from here.

        Returns:
            Whether it was asked for. False changes nothing: a page is under way already, or the
            listing has ended.

        Raises:
            LocalProtocolError: Too many requests are in flight, or the handle is another
                connection's. Nothing was queued.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        cursor = self._on_demand.get(listing)
        if cursor is None:
            self._check_not_idle(listing)
            return False
        self._check_room()
        if now is not None:
            self._tell(now)
        self._on_demand[listing] = None
        self._fetch(listing, cursor, self._page_params(listing, cursor))
        if self._restless:
            self._settle()
        return True

    @staticmethod
    def _check_not_idle(listing: Listing) -> None:
        """A listing without a page under way is in the table of its connection, or has ended."""
        if listing._open and listing._call is None:
            raise LocalProtocolError("OWN-022", f"{listing!r} belongs to another connection")

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel what is in flight: tell the peer, and end it with its ending event.

        Args:
            call: The handle from `send_request`, `send_paginated`, `ping` or `listen`.
            reason: Why, for the peer's log.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether it was still in flight. False changes nothing: the race was lost.

        Raises:
            LocalProtocolError: It cannot be cancelled (`start`; a request for a task, which
                `tasks/cancel` ends), or the handle is another connection's.

        Source: MCP 2025-11-25, basic/utilities/cancellation.
        """
        if not call.open:
            return False
        if isinstance(call, Listing):
            if self._on_demand.get(call) is not None:
                if now is not None:  # no request is open: there is nothing to tell the peer
                    self._tell(now)
                self._end_listing(call, ListingEnd.CANCELLED)
                if self._restless:
                    self._settle()
                return True
            self._check_not_idle(call)
        inner = call if isinstance(call, OutgoingRequest) else call._call
        assert inner is not None  # it is open
        self._cancel_call(inner, reason, meta, now)
        return True

    def _page_params(self, listing: Listing, cursor: str | None) -> bytes:
        body = listing._params
        if cursor is None:
            return b"" if body == b"{}" else body
        separator = b"" if body == b"{}" else b","
        return b'%b%b"cursor":%b}' % (body[:-1], separator, self._encode(cursor))

    def _fetch(self, listing: Listing, cursor: str | None, params: bytes) -> None:
        if cursor is not None:
            listing._has_cursor = True
            listing._cursors[cursor] = None
            listing._cursor_bytes += len(cursor)
            while listing._cursor_bytes > _CURSOR_BYTES:
                oldest = next(iter(listing._cursors))
                del listing._cursors[oldest]
                listing._cursor_bytes -= len(oldest)
        listing._call = self._send_own(
            listing._method,
            params,
            Purpose.PAGE,
            listing,
            listing._timeout,
            listing._max_timeout,
            listing._route,
        )

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        if call._purpose is not Purpose.PAGE:
            super()._ended(call, outcome)
            return
        listing = call._owner
        assert isinstance(listing, Listing)
        if isinstance(outcome, RequestFailed):
            self._end_listing(listing, _FAILURES[outcome.reason], text=outcome.text)
        elif isinstance(outcome, ErrorReceived):
            if outcome.code == ErrorCode.INVALID_PARAMS and listing._has_cursor:
                listing._stale = True  # the cursor was refused: a new start has none (CACHE-024)
            self._end_listing(listing, ListingEnd.ERROR, outcome)
        else:
            self._page_came(listing, call, outcome.result)

    def _page_came(self, listing: Listing, call: OutgoingRequest, result: JSONObject) -> None:
        assert call._spec is not None
        assert call._spec.paginated is not None
        items: Any = result.get(call._spec.paginated)
        if items.__class__ is not list:  # only where shapes are not checked
            self._end_listing(listing, ListingEnd.INVALID_ANSWER)
            return
        page: list[Any] = items
        count = len(page)
        cursor: Any = result.get("nextCursor", MISSING)
        listing._pages += 1
        listing._items += count
        listing._empty = 0 if count else listing._empty + 1
        self._events.append(PageReceived(listing=listing, items=page, result=result))
        end = self._judge_cursor(listing, cursor)
        if end is not None:
            self._end_listing(listing, end)
        elif self._state is not State.OPEN:
            self._end_listing(listing, ListingEnd.LOST)
        elif listing in self._on_demand:
            listing._call = None
            self._on_demand[listing] = cursor
        else:
            self._fetch(listing, cursor, self._page_params(listing, cursor))

    def _judge_cursor(self, listing: Listing, cursor: Any) -> ListingEnd | None:
        """How the listing ends here, or None if the next page is to be fetched."""
        if cursor is MISSING:
            return ListingEnd.COMPLETE
        if not isinstance(cursor, str):  # only where shapes are not checked
            return ListingEnd.INVALID_ANSWER
        if cursor in listing._cursors:
            if not self._conversation.dialect.is_modern:
                return ListingEnd.CYCLE
            # There nothing may be concluded from a cursor: the limits end what has no end.
            self._report(Breach("OWN-028", "a cursor came a second time", tolerated=True))
        if listing._pages >= self._config.max_pages:
            return ListingEnd.PAGES
        if listing._items >= self._config.max_items:
            return ListingEnd.ITEMS
        if listing._empty >= self._config.max_empty_pages:
            return ListingEnd.EMPTY_PAGES
        return None

    def _end_listing(
        self,
        listing: Listing,
        reason: ListingEnd,
        error: ErrorReceived | None = None,
        text: str = "",
    ) -> None:
        self._fresh.get(listing._method, {}).pop(listing, None)
        self._on_demand.pop(listing, None)
        listing._open = False
        listing._call = None
        listing._cursors = {}
        self._events.append(
            ListingEnded(
                listing=listing,
                reason=reason,
                stale=listing._stale,
                code=None if error is None else error.code,
                message=None if error is None else error.message,
                data=None if error is None else error.data,
                status=None if error is None else error.status,
                retry_after=None if error is None else error.retry_after,
                text=text,
            )
        )

    def _lose(self, calls: list[OutgoingRequest]) -> None:
        """What waits for `next_page` is lost with the requests: nothing more can be sent."""
        super()._lose(calls)
        for listing in [known for known, cursor in self._on_demand.items() if cursor is not None]:
            self._end_listing(listing, ListingEnd.LOST)

    def _list_changed(self, notification: str) -> None:
        """Mark the listings that a notification makes stale, each at most once."""
        for method in LIST_CHANGES[notification]:
            for listing in self._fresh.pop(method, ()):
                listing._stale = True
