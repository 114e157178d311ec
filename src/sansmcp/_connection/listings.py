"""Listings: paginated requests of this side, fetched page by page within limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._rules.sending import Breach, judge_request, null_members
from .._rules.state_tables import State
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._wire.setting_checks import check_flag
from .._wire.values import MISSING, JSONObject, is_object
from .core import Core
from .events import (
    CacheHit,
    CancelCause,
    ErrorReceived,
    FailureReason,
    ListingEnd,
    ListingEnded,
    PageReceived,
    RequestFailed,
    ResponseReceived,
)
from .handles import IncomingRequest, Listing, OutgoingRequest, Purpose
from .incoming import IncomingRequests
from .modern_messages import ModernMessages
from .outgoing import Outcome, OutgoingRequests

if TYPE_CHECKING:
    from .caching.cached_responses import CachedResponses

_FAILURES = {
    FailureReason.CANCELLED: ListingEnd.CANCELLED,
    FailureReason.TIMED_OUT: ListingEnd.TIMED_OUT,
    FailureReason.LOST: ListingEnd.LOST,
    FailureReason.INVALID_ANSWER: ListingEnd.INVALID_ANSWER,
    FailureReason.NO_STREAM: ListingEnd.LOST,
    FailureReason.REFUSED: ListingEnd.REFUSED,
}
_CURSOR_BYTES = 1024 * 1024
"""The most characters of all remembered cursors of a listing, which are kept to detect a cycle;
the oldest is forgotten first."""
LIST_CHANGES: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""By notification: the methods whose listings become stale."""


class Listings:
    """The open listings of this side; each fetches one page after the other.

    Attributes:
        fresh: By method, the open listings that are not stale.
        on_demand: The open listings whose pages `next_page` requests, each with the cursor for the
            next page; None while a page is requested.
        cached: On a client with a cache, the part that uses it; else None.
    """

    __slots__ = ("_core", "_incoming", "_messages", "_outgoing", "cached", "fresh", "on_demand")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
    ) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self._incoming = incoming
        self.fresh: dict[str, dict[Listing, None]] = {}
        self.on_demand: dict[Listing, str | None] = {}
        self.cached: CachedResponses | None = None

    # -------------------------------------------------------------------- verbs of the application

    def start(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        timeout: float | None,
        max_timeout: float | None,
        auto: bool,
        request: IncomingRequest | None,
        data: Any,
        now: float | None,
    ) -> Listing:
        """Request the first page; further pages follow by themselves, or by `next_page`."""
        self._core.check_open(method)
        side = self._core.side
        conversation = self._core.conversation
        spec = conversation.dialect.requests[side].get(method)
        if params is not None and not is_object(params):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {params!r:.40}")
        given: JSONObject = {} if params is None else dict(params)
        for name in null_members(META if spec is None else spec.params_optional, given):
            del given[name]
        breach = judge_request(conversation, side, method, spec, given, self._core.checks_shape)
        if breach is not None and not breach.tolerated:
            raise breach.error()
        if self._core.payloads is not None:
            revision = conversation.dialect.revision
            self._core.payloads.check_params(method, given, meta, revision)
        if spec is None or spec.paginated is None:
            raise LocalProtocolError("PAGE-009", f"{method} is not paginated")
        if timeout is not None or max_timeout is not None:
            self._outgoing.check_timeouts(timeout, max_timeout, now)
        cursor: Any = given.pop("cursor", None)
        if cursor is not None and not isinstance(cursor, str):  # with `Config.check="none"`
            raise LocalProtocolError("OWN-014", f"a cursor is a string, not {cursor!r}")
        if conversation.dialect.is_modern:
            body = self._messages.with_envelope(given, meta)
        else:
            body = self._core.encode_object(given, meta)
        self._outgoing.check_room()
        self._core.check_belongs(request)
        check_flag("auto", auto)
        if not auto and len(self.on_demand) >= self._core.config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self.on_demand)} listings are open, which is the limit"
            )
        listing = Listing(method, body)
        listing._timeout = timeout
        listing._max_timeout = max_timeout
        listing._route = None if request is None else request._route
        listing.data = data
        if self.cached is not None and conversation.dialect.is_modern:
            listing._cached = self.cached.pages_of(spec, given, meta)
        first = self._page_params(listing, cursor)  # raises if the cursor has no JSON form
        self._core.check_size(first, method)
        if now is not None:
            self._core.tell(now)
        self.fresh.setdefault(method, {})[listing] = None
        if not auto:
            self.on_demand[listing] = None
        self._fetch(listing, cursor, first)
        if self._core.needs_settle:
            self._core.settle()
        return listing

    def next_page(self, listing: Listing, now: float | None) -> bool:
        """Request the next page of a listing that was started with `auto=False`."""
        cursor = self.on_demand.get(listing)
        if cursor is None:
            self._check_belongs(listing)
            return False
        self._outgoing.check_room()
        if now is not None:
            self._core.tell(now)
        self.on_demand[listing] = None
        self._fetch(listing, cursor, self._page_params(listing, cursor))
        if self._core.needs_settle:
            self._core.settle()
        return True

    def cancel_idle(self, listing: Listing, now: float | None) -> bool:
        """Cancel a listing that waits for `next_page`.

        Returns:
            Whether the listing was cancelled. False: a page is requested; cancel that request.

        Raises:
            LocalProtocolError: The listing belongs to another connection.
        """
        if self.on_demand.get(listing) is None:
            self._check_belongs(listing)
            return False
        if now is not None:  # without an open request the peer needs no cancellation
            self._core.tell(now)
        self._end_listing(listing, ListingEnd.CANCELLED)
        if self._core.needs_settle:
            self._core.settle()
        return True

    # ----------------------------------------------------------------------- events of other parts

    def list_changed(self, notification: str) -> None:
        """Mark the listings that a notification of the peer makes stale."""
        for method in LIST_CHANGES[notification]:
            for listing in self.fresh.pop(method, ()):
                listing._stale = True

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of the request for a page."""
        listing = call._subject
        assert isinstance(listing, Listing)
        if (pages := listing._cached) is not None:
            assert self.cached is not None  # it has made `pages`
            if isinstance(outcome, ResponseReceived):
                self.cached.page_came(pages, call, outcome.result)
            elif (found := self.cached.failed(pages.fetch, outcome)) is not None:
                result, hit = found
                self._page_came(listing, pages.items, result, hit)
                return
        if isinstance(outcome, RequestFailed):
            self._end_listing(listing, _FAILURES[outcome.reason], text=outcome.text)
        elif isinstance(outcome, ErrorReceived):
            if outcome.code == ErrorCode.INVALID_PARAMS and listing._has_cursor:
                listing._stale = True  # the peer refused the cursor: list again (CACHE-024)
            self._end_listing(listing, ListingEnd.ERROR, outcome)
        else:
            assert call._spec is not None
            assert call._spec.paginated is not None
            self._page_came(listing, call._spec.paginated, outcome.result, None)

    def lose_idle(self) -> None:
        """End the listings that wait for `next_page` as lost: no request can be sent any more."""
        for listing in [known for known, cursor in self.on_demand.items() if cursor is not None]:
            self._end_listing(listing, ListingEnd.LOST)

    def end(self, cause: CancelCause) -> None:
        """End all listings that wait for `next_page` as lost: the connection ends."""
        self.lose_idle()

    def take_over(self, other: Listings, listing: Listing) -> None:
        """Continue a listing of another connection."""
        self.fresh.setdefault(listing._method, {})[listing] = None
        if listing in other.on_demand:
            self.on_demand[listing] = other.on_demand.pop(listing)

    # ------------------------------------------------------------------------------------- helpers

    def _page_params(self, listing: Listing, cursor: str | None) -> bytes:
        """The encoded params of the page at `cursor`."""
        body = listing._params
        if cursor is None:
            return b"" if body == b"{}" else body
        separator = b"" if body == b"{}" else b","
        return b'%b%b"cursor":%b}' % (body[:-1], separator, self._core.encode(cursor))

    def _fetch(self, listing: Listing, cursor: str | None, params: bytes | None = None) -> None:
        """Report the pages that are in the cache, then request the next one.

        Args:
            listing: The listing.
            cursor: The cursor of the next page; None for the first one.
            params: The params for this page, if they are encoded already.
        """
        pages = listing._cached
        while pages is not None:
            assert self.cached is not None  # it has made `pages`
            found = self.cached.find_page(pages, cursor)
            if found is None:
                break
            self._note_cursor(listing, cursor)
            result, hit = found
            following = self._take_page(listing, pages.items, result, hit)
            if following is None:
                return
            cursor, params = following, None
        if params is None:
            params = self._page_params(listing, cursor)
        self._note_cursor(listing, cursor)
        listing._call = self._outgoing.send_own(
            listing._method,
            params,
            Purpose.PAGE,
            self,
            listing,
            listing._timeout,
            listing._max_timeout,
            listing._route,
        )

    @staticmethod
    def _note_cursor(listing: Listing, cursor: str | None) -> None:
        """Remember the cursor of a page, to recognise a cycle."""
        if cursor is not None:
            listing._has_cursor = True
            listing._cursors[cursor] = None
            listing._cursor_bytes += len(cursor)
            while listing._cursor_bytes > _CURSOR_BYTES:
                oldest = next(iter(listing._cursors))
                del listing._cursors[oldest]
                listing._cursor_bytes -= len(oldest)

    def _page_came(
        self, listing: Listing, member: str, result: JSONObject, hit: CacheHit | None
    ) -> None:
        """Report a page, then end the listing, request the next page, or wait."""
        cursor = self._take_page(listing, member, result, hit)
        if cursor is not None:
            self._fetch(listing, cursor)

    def _take_page(
        self, listing: Listing, member: str, result: JSONObject, hit: CacheHit | None
    ) -> str | None:
        """Report a page, then end the listing or wait for `next_page`.

        Args:
            listing: The listing.
            member: The member of the result with the items.
            result: The result.
            hit: Says that the page comes from the cache; else None.

        Returns:
            The cursor of the page to request now; None: the listing has ended, or it waits.
        """
        items: Any = result.get(member)
        if items.__class__ is not list:  # with `Config.check="none"`
            self._end_listing(listing, ListingEnd.INVALID_ANSWER)
            return None
        page: list[Any] = items
        count = len(page)
        cursor: Any = result.get("nextCursor", MISSING)
        listing._pages += 1
        listing._items += count
        listing._empty = 0 if count else listing._empty + 1
        self._core.events.append(
            PageReceived(listing=listing, items=page, result=result, cached=hit)
        )
        end = self._judge_cursor(listing, cursor)
        if end is not None:
            self._end_listing(listing, end)
        elif self._core.state is not State.OPEN:
            self._end_listing(listing, ListingEnd.LOST)
        elif listing in self.on_demand:
            listing._call = None
            self.on_demand[listing] = cursor
        else:
            following: str = cursor
            return following
        return None

    def _judge_cursor(self, listing: Listing, cursor: Any) -> ListingEnd | None:
        """The reason why the listing ends here; None if there is a next page.

        Keeps PAGE-003, PAGE-007, OWN-013.
        """
        if cursor is MISSING:
            return ListingEnd.COMPLETE
        if not isinstance(cursor, str):  # with `Config.check="none"`
            return ListingEnd.INVALID_ANSWER
        if cursor in listing._cursors:
            if not self._core.conversation.dialect.is_modern:
                return ListingEnd.CYCLE
            # In 2026-07-28 an equal cursor does not prove a cycle: the limits end the listing.
            self._core.report(Breach("OWN-028", "a cursor came a second time", tolerated=True))
        if listing._pages >= self._core.config.max_pages:
            return ListingEnd.PAGES
        if listing._items >= self._core.config.max_items:
            return ListingEnd.ITEMS
        if listing._empty >= self._core.config.max_empty_pages:
            return ListingEnd.EMPTY_PAGES
        return None

    def _end_listing(
        self,
        listing: Listing,
        reason: ListingEnd,
        error: ErrorReceived | None = None,
        text: str = "",
    ) -> None:
        """Remove a listing from the tables, and report its ending."""
        self.fresh.get(listing._method, {}).pop(listing, None)
        self.on_demand.pop(listing, None)
        listing._open = False
        listing._call = None
        listing._cursors = {}
        self._core.events.append(
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

    @staticmethod
    def _check_belongs(listing: Listing) -> None:
        """Raise if an open listing that waits for `next_page` belongs to another connection."""
        if listing._open and listing._call is None:
            raise LocalProtocolError("OWN-022", f"{listing!r} belongs to another connection")
