"""Responses from a cache: which requests they answer, and which results are kept.

Only a client with `cache=` has this part, and only in the modern revision, whose results say how
long they may be kept.

Source: MCP 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from ..._rules.messages import judge_caching_hints
from ..._rules.request_meta import LOG_LEVEL
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from ..._spec.methods import Method
from ..._wire.codec import STANDARD_CODEC
from ..._wire.values import MISSING, JSONObject, JSONValue
from ..core import Core
from ..events import CacheHit, ErrorReceived, FailureReason, RequestFailed, ResponseReceived
from ..handles import OutgoingRequest, Purpose
from ..listings import LIST_CHANGES
from ..outgoing import INPUT_MEMBERS, Outcome
from .cache import CacheIdentity, Fetch, ResultStore, SubjectKey, Target

_READ: Final = "resources/read"
_UPDATED: Final = "notifications/resources/updated"
_UNSAID: Final = frozenset({"_meta", "cursor"})
"""Params that are not in the key as they are: of `_meta` a part is, and the cursor by itself."""
_NEUTRAL: Final = frozenset({"progressToken", LOG_LEVEL, "traceparent", "tracestate"})
"""Members of `_meta` that say who follows a request, and change nothing in its result."""
_LONGEST_MS: Final = 2**53
_UNREACHABLE: Final = frozenset(
    {FailureReason.LOST, FailureReason.NO_STREAM, FailureReason.TIMED_OUT}
)
_SERVER_ERROR: Final = 500  # the first HTTP status that says so


@attrs.define(eq=False)
class CachedPages:
    """The pages of one listing, as far as the cache is concerned.

    Attributes:
        first: What the request for the first page fetches.
        items: The member of a result with the items of a page.
        fetch: What the request for the current page fetches.
        scope: The `cacheScope` of the pages so far; None before the first.
        is_mixed: Whether the pages have different scopes: nothing of the listing is kept.
    """

    first: Fetch
    items: str
    fetch: Fetch
    scope: Any = None
    is_mixed: bool = False


class CachedResponses:
    """Answers requests of a client from its cache, and keeps what the server allows to keep.

    As a `RequestOwner` it takes the endings of requests of the application whose results may be
    cached.
    """

    __slots__ = ("_capabilities", "_core", "_identity", "_store")

    def __init__(self, core: Core, identity: CacheIdentity) -> None:
        self._core = core
        self._identity = identity
        self._store: ResultStore = identity.store
        # A server may answer a client that can do more in another way.
        self._capabilities: bytes = core.encode(core.capabilities)

    # ------------------------------------------------------------------------------------ requests

    def fetch_of(
        self, spec: Method | None, params: JSONObject, meta: JSONObject | None
    ) -> Fetch | None:
        """What a request fetches; None if its result may not be cached.

        The key has all params, and all members of `_meta` that may have an effect on the result.

        Keeps CACHE-005, CACHE-006.
        """
        if spec is None or not spec.cacheable or params.keys() & INPUT_MEMBERS:
            return None
        said: Any = {name: params[name] for name in sorted(params.keys() - _UNSAID)}
        merged: JSONObject = {**(params.get("_meta") or {}), **(meta or {})}
        about = {name: merged[name] for name in sorted(merged.keys() - _NEUTRAL)}
        text = b"%b%b" % (self._core.encode([said, about]), self._capabilities)
        server = self._identity.server
        uri = _uri_bytes(params.get("uri")) if spec.name == _READ else None
        return self._fetch(
            (server, spec.name, text), (server, spec.name, uri), params.get("cursor")
        )

    def _fetch(self, subject: SubjectKey, target: Target, cursor: JSONValue) -> Fetch:
        return Fetch(
            subject=subject,
            target=target,
            cursor=None if cursor is None else self._core.encode(cursor),
            context=self._identity.context,
            version=self._identity.version,
            mark=self._store.mark,
        )

    def answers(self, call: OutgoingRequest, fetch: Fetch) -> bool:
        """Report a fresh response to a request of the application, or take its ending later.

        Returns:
            Whether there was a fresh response: then the request must not be sent.
        """
        found = self.find(fetch)
        if found is None:
            call._purpose = Purpose.FETCH
            call._owner = self
            call._subject = fetch
            return False
        result, hit = found
        self._core.events.append(ResponseReceived(request=call, result=result, cached=hit))
        return True

    def find(self, fetch: Fetch) -> tuple[JSONObject, CacheHit] | None:
        """Return the fresh result for a request; None: the server must be asked."""
        now = self._core.now
        found = None if now is None else self._store.find(fetch, now)
        if found is None:
            return None
        data, age = found
        return self._decoded(fetch, data), CacheHit(age=age)

    # --------------------------------------------------------------------------- pages of listings

    def pages_of(
        self, spec: Method, params: JSONObject, meta: JSONObject | None
    ) -> CachedPages | None:
        """What a listing fetches; None if its pages may not be cached."""
        first = self.fetch_of(spec, params, meta)
        return None if first is None else CachedPages(first, spec.paginated or "", first)

    def find_page(
        self, pages: CachedPages, cursor: str | None
    ) -> tuple[JSONObject, CacheHit] | None:
        """Return the fresh page at a cursor; None: the server must be asked.

        Keeps CACHE-020.
        """
        pages.fetch = self._fetch(pages.first.subject, pages.first.target, cursor)
        found = self.find(pages.fetch)
        if found is not None:
            pages.scope = found[0]["cacheScope"]
        return found

    def page_came(self, pages: CachedPages, call: OutgoingRequest, result: JSONObject) -> None:
        """Keep a page of a listing, unless it has another scope than the pages before.

        Keeps CACHE-022.
        """
        scope = result.get("cacheScope")
        breach: Breach | None = None
        if pages.is_mixed:
            return
        if pages.scope is not None and scope != pages.scope:
            self._store.forget(pages.first.target)
            breach = mixed_scopes(pages.first.subject[1])
        else:
            pages.scope = scope
            breach = self.keep(pages.fetch, result)
        if breach is not None:
            pages.is_mixed = True
            self._core.report(breach, request=call)

    # ------------------------------------------------------------------------------------- endings

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Report the ending of a request of the application, and keep its result.

        Keeps CACHE-006: after questions, a result depends on what is not in the key.
        """
        fetch: Any = call._subject
        if isinstance(outcome, ResponseReceived):
            breach = None if call._rounds else self.keep(fetch, outcome.result)
            if breach is not None:
                self._core.report(breach, request=call)
        elif (found := self.failed(fetch, outcome)) is not None:
            result, hit = found
            outcome = ResponseReceived(request=call, result=result, cached=hit)
        self._core.events.append(outcome)

    def keep(self, fetch: Fetch, result: JSONObject) -> Breach | None:
        """Keep a result for as long as the server allows.

        A result without valid hints is stale at once. A private result is not kept if the
        credentials were replaced since it was asked for.

        Keeps CACHE-004, CACHE-009, CACHE-010, CACHE-017.

        Returns:
            The breach if pages of one list have different scopes; else None.
        """
        now = self._core.now
        if now is None or result.get("resultType", "complete") != "complete":
            return None
        has_hints = judge_caching_hints(result) is None
        scope: Any = result["cacheScope"] if has_hints else "private"
        ttl: Any = min(result["ttlMs"], _LONGEST_MS) if has_hints else 0
        if scope == "private" and fetch.version != self._identity.version:
            return None
        try:
            data = STANDARD_CODEC.encode(result)
        except (ValueError, TypeError, RecursionError):
            return None  # the codec of the application has made a value that is not JSON
        if self._store.keep(fetch, scope, data, ttl / 1000, now):
            return None
        return mixed_scopes(fetch.subject[1])

    def failed(
        self, fetch: Fetch, outcome: ErrorReceived | RequestFailed
    ) -> tuple[JSONObject, CacheHit] | None:
        """React to a request that has failed.

        An error for a cursor makes all pages of its list stale.

        Keeps CACHE-015, CACHE-024.

        Returns:
            The stale result to use in place of the failure; None: report the failure.
        """
        if isinstance(outcome, ErrorReceived):
            if outcome.code == ErrorCode.INVALID_PARAMS and fetch.cursor is not None:
                self._store.forget(fetch.target)
            status = outcome.status or 0
            cannot_answer = outcome.code == ErrorCode.INTERNAL_ERROR or status >= _SERVER_ERROR
            text = f"the server answered with the error {outcome.code}: {outcome.message}"
        else:
            status = 0
            if outcome.reason is FailureReason.REFUSED:
                status = self._core.transport.status_of(outcome.request)[0] or 0
            cannot_answer = outcome.reason in _UNREACHABLE or status >= _SERVER_ERROR
            text = outcome.text
        now = self._core.now
        if not cannot_answer or now is None or fetch.version != self._identity.version:
            return None
        found = self._store.find_stale(fetch, now)
        if found is None:
            return None
        data, age = found
        return self._decoded(fetch, data), CacheHit(age=age, failure=text)

    # ------------------------------------------------------------------------------- notifications

    def changed(self, method: str, params: JSONObject, subscribed: Iterable[str]) -> None:
        """Make results stale that a notification of the server tells the change of.

        An update of a part of a resource is one of each resource that was subscribed to for it.

        Keeps CACHE-018.

        Args:
            method: The method of the notification.
            params: Its params.
            subscribed: The URIs of the subscription that it belongs to.
        """
        server = self._identity.server
        for listed in LIST_CHANGES.get(method, ()):
            self._store.forget((server, listed, None))
        uri: Any = params.get("uri", MISSING) if method == _UPDATED else MISSING
        if isinstance(uri, str):
            for known in {uri, *(root for root in subscribed if uri.startswith(root))}:
                self._store.forget((server, _READ, _uri_bytes(known)))

    # ------------------------------------------------------------------------------------- helpers

    def _decoded(self, fetch: Fetch, data: bytes) -> JSONObject:
        """A copy of a result for the application, which the transport may also learn from."""
        decoded: Any = STANDARD_CODEC.decode(data)
        result: JSONObject = decoded
        self._core.transport.result_cached(fetch.subject[1], result)
        return result


def mixed_scopes(method: str) -> Breach:
    """The breach of a list whose pages have different scopes."""
    text = f"pages of one list ({method}) have different values of cacheScope: none is kept"
    return Breach("CACHE-022", text, tolerated=True)


def _uri_bytes(uri: object) -> bytes | None:
    """A URI as targets have it; None for what is no URI."""
    return uri.encode("utf-8", "surrogatepass") if isinstance(uri, str) else None
