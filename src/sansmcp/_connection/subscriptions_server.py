"""Subscriptions of the modern revision: the server's half. One `publish` serves both eras.

Source: MCP 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._rules.messages import null_member
from .._rules.request_meta import SUBSCRIPTION_ID
from .._rules.sending import FILTERS, judge_filter, null_members, without_nulls
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import FILTER
from .._wire.values import JSONObject, is_object
from .changes import Change, ResourceUpdated, change_method
from .events import CancelCause, LimitReached, ListenerAdded, ListenerRemoved
from .handles import IncomingRequest, Listener
from .notifications import LISTEN, URI_CHARACTERS
from .subscriptions_client import Subscribing

_GATES = {
    "toolsListChanged": "tools.listChanged",
    "promptsListChanged": "prompts.listChanged",
    "resourcesListChanged": "resources.listChanged",
    "resourceSubscriptions": "resources.subscribe",
}
_URIS = "resourceSubscriptions"
_KINDS = tuple(name for name in _GATES if name != _URIS)


def _honoured(asked: JSONObject, gates: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of a filter a server with these gates can serve: kinds of changes, and URIs."""
    kinds = tuple(name for name in _KINDS if asked.get(name) and _GATES[name] in gates)
    uris: Any = asked.get(_URIS, ()) if _GATES[_URIS] in gates else ()
    return kinds, tuple(dict.fromkeys(uris))


class Serving(Subscribing):
    """The listeners of a server, filed by what they listen to."""

    __slots__ = ("_listened", "_listeners", "_of_kind", "_of_uri")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listeners: dict[IncomingRequest, Listener] = {}
        # A change costs as much as there are listeners to it.
        self._of_kind: dict[str, dict[Listener, None]] = {}
        self._of_uri: dict[str, dict[Listener, None]] = {}
        self._listened = 0  # URIs of all of them: one that two listen to counts twice

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the peer that still wait for an answer from this side, oldest first."""
        waiting = super().open_requests
        if not self._listeners:
            return waiting
        served = {
            listener._request for listener in self._listeners.values() if listener._held is None
        }
        return tuple(request for request in waiting if request not in served)

    # ---------------------------------------------------------------------------------- verbs

    def _acknowledge(
        self, request: IncomingRequest, notifications: JSONObject | None, now: float | None
    ) -> Listener | None:
        if not request.open:
            return None
        listener = self._listeners.get(request)
        if listener is None or listener._held is None:
            raise LocalProtocolError("SUBS-004", f"{request!r} waits for no acknowledgement")
        if notifications is not None:
            notifications = without_nulls(FILTER, notifications)
            if (breach := judge_filter(notifications)) is not None:
                raise breach.error()
        if now is not None:
            self._tell(now)
        if notifications is not None:
            self._unfile(listener)
            wish: Any = notifications
            chosen = frozenset(wish.get(_URIS, ()))
            listener._kinds = tuple(name for name in listener._kinds if wish.get(name))
            listener._uris = tuple(uri for uri in listener._uris if uri in chosen)
            self._file(listener)
        self._add_listener(listener)
        if self._restless:
            self._settle()
        return listener

    def _end_listener(self, listener: Listener, now: float | None) -> bool:
        request = listener._request
        if not request.open:
            return False
        if self._listeners.get(request) is not listener:
            raise LocalProtocolError("OWN-022", f"{listener!r} belongs to another connection")
        if now is not None:
            self._tell(now)
        self._complete_listener(listener)
        return self._settle() if self._restless else True

    def _complete_listener(self, listener: Listener) -> None:
        """Answer the request of a subscription with its result."""
        request = listener._request
        self._remove(listener)
        meta: JSONObject = {SUBSCRIPTION_ID: request._id, **self._server_meta()}
        body = self._encode({"resultType": "complete", "_meta": meta})
        self._answer(request, b'"result":', body)
        self._say_ended(listener)

    def _say_ended(self, listener: Listener) -> None:
        """Two pages of the specification ask for one ending each; clients take the first."""
        self._queue(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}%b'
            % (listener._id, self._newline),
            listener._request._route,
        )

    # ------------------------------------------------------------------------------ accepting

    def _handled(self, request: IncomingRequest) -> bool:
        if request._method != LISTEN:
            return super()._handled(request)
        asked: Any = request._params.get("notifications")
        for name in null_members(FILTER, asked) if is_object(asked) else ():
            del asked[name]
            self._report(null_member(name), request=request)
        breach = judge_filter(asked if is_object(asked) else {_URIS: None})
        if breach is not None:
            self._refuse_breach(request, breach)
            return True
        assert self._modern is not None  # no other conversation has this method
        kinds, uris = _honoured(asked, self._modern.gates[self._side])
        if not self._has_room_for(uris):
            self._refuse_listener(request)
            return True
        listener = Listener(request, self._encode_id(request._id), kinds, uris)
        request._subject = listener
        if request._token is not None:  # nothing but changes goes to a listener (SUBS-017)
            self._free_peer_token(request._token)
            request._token = None
        self._listeners[request] = listener
        self._file(listener)
        if LISTEN in self._config.manual:
            return False
        self._add_listener(listener)
        return True

    def _has_room_for(self, uris: Collection[str]) -> bool:
        taken = self._taken_subscriptions() + 1 + len(uris)
        return taken <= self._config.max_subscriptions and all(
            len(uri) <= URI_CHARACTERS for uri in uris
        )

    def _taken_subscriptions(self) -> int:
        return super()._taken_subscriptions() + len(self._listeners) + self._listened

    def _refuse_listener(self, request: IncomingRequest) -> None:
        text = (
            f"{self._config.max_subscriptions} subscriptions, and {URI_CHARACTERS} characters "
            "for a URI, are the limits"
        )
        self._events.append(LimitReached(rule="OWN-009", text=text))
        self._refuse(request, ErrorCode.INTERNAL_ERROR, "too many subscriptions", {"reason": text})

    def _add_listener(self, listener: Listener) -> None:
        """Acknowledge, and let out what was held back until then."""
        request = listener._request
        route = request._route
        # It may be open for long: of what was said, only what is honoured is kept.
        request._params = {"notifications": listener.honoured}
        params: JSONObject = {
            **request._params,
            "_meta": {SUBSCRIPTION_ID: request._id},
        }
        self._queue(
            b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":%b}%b'
            % (self._encode(params), self._newline),
            route,
        )
        self._events.append(ListenerAdded(listener=listener))
        held, listener._held = listener._held or {}, None
        for change, message in held.items():
            if listener in self._listeners_to(change):
                self._queue(message, route)

    # --------------------------------------------------------------------------------- filing

    def _file(self, listener: Listener) -> None:
        self._listened += len(listener._uris)
        for uri in listener._uris:
            self._of_uri.setdefault(uri, {})[listener] = None
        for kind in listener._kinds:
            self._of_kind.setdefault(kind, {})[listener] = None

    def _unfile(self, listener: Listener) -> None:
        self._listened -= len(listener._uris)
        for table, names in ((self._of_uri, listener._uris), (self._of_kind, listener._kinds)):
            for name in names:
                del table[name][listener]
                if not table[name]:
                    del table[name]

    def _remove(self, listener: Listener) -> None:
        del self._listeners[listener._request]
        self._unfile(listener)

    def _listeners_to(self, change: Change) -> Collection[Listener]:
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return self._of_uri.get(uri, ())
        return self._of_kind.get(FILTERS[change_method(change)], ())

    # -------------------------------------------------------------------------------- serving

    def _is_published(self, change: Change) -> bool:
        return super()._is_published(change) or bool(self._listeners_to(change))

    def _send_change(self, change: Change, uri: bytes, meta: bytes) -> bool:
        told = super()._send_change(change, uri, meta)
        listeners = self._listeners_to(change)
        if not listeners:
            return told
        start = b'{"jsonrpc":"2.0","method":"%b","params":{%b"_meta":{%b"%b":' % (
            change_method(change).encode(),
            b'"uri":%b,' % uri if uri else b"",
            meta[1:-1] + b"," if meta else b"",
            SUBSCRIPTION_ID.encode(),
        )
        end = b"}}}" + self._newline
        for listener in listeners:
            message = start + listener._id + end
            if listener._held is None:
                told = self._tell_listener(listener, message) or told
            elif self._held_until_acknowledged(listener, listener._held, change, message):
                told = True
        return told

    def _tell_listener(self, listener: Listener, message: bytes) -> bool:
        """Whether the listener is, or will be, told."""
        self._queue(message, listener._request._route)
        return True

    def _held_until_acknowledged(
        self, listener: Listener, held: dict[Change, bytes], change: Change, message: bytes
    ) -> bool:
        if change in held or len(held) < self._config.max_held_changes:
            held[change] = message
            return True
        text = f"{len(held)} changes wait for the acknowledgement of {listener!r}, the limit"
        self._events.append(LimitReached(rule="OWN-010", text=text))
        return False

    # --------------------------------------------------------------------------------- ending

    def _check_own_result(self, request: IncomingRequest, result: JSONObject) -> None:
        if request._method == LISTEN:
            raise LocalProtocolError(
                "OWN-025", f"{LISTEN} is answered by acknowledge() and end_listener()"
            )
        super()._check_own_result(request, result)

    def _came_to_nothing(self, request: IncomingRequest) -> None:
        listener = self._listeners.get(request)
        if listener is None:
            super()._came_to_nothing(request)
        else:
            self._remove(listener)

    def _cancelled(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None,
        meta: JSONObject | None,
    ) -> None:
        listener = request._subject
        if isinstance(listener, Listener) and listener._held is None:
            self._events.append(
                ListenerRemoved(listener=listener, cause=cause, reason=reason, meta=meta)
            )
        else:
            super()._cancelled(request, cause, reason, meta)

    def _complete_listeners(self) -> None:
        """This side closes the connection: each subscription ends as one that the server ends."""
        for listener in list(self._listeners.values()):
            if listener._held is None:
                self._complete_listener(listener)
                cause = CancelCause.CLOSED
                self._events.append(ListenerRemoved(listener=listener, cause=cause))

    def _end_listeners(self, cause: CancelCause) -> None:
        for request in list(self._listeners):
            self._cancel_incoming(request, cause)
