"""Subscriptions of clients, legacy and modern, and the changes that a server publishes to them.

Source: MCP 2025-11-25, server/resources, Subscriptions; MCP 2026-07-28,
basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from ..._rules.messages import null_member
from ..._rules.request_meta import SUBSCRIPTION_ID
from ..._rules.sending import judge_notification, null_members, without_nulls
from ..._rules.state_tables import State
from ..._rules.subscription_filters import FILTERS, TASK_IDS, judge_filter
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.methods import FILTER
from ..._wire.values import JSONObject, is_object
from ..core import Core, MethodPart
from ..events import CancelCause, LimitReached, ListenerAdded, ListenerRemoved
from ..handles import IncomingRequest, Listener
from ..incoming import IncomingRequests
from ..modern_messages import ModernMessages
from ..notifications import LISTEN
from .changes import Change, ResourceUpdated, change_method, change_params

if TYPE_CHECKING:
    from ..tasks.subscriptions import TaskSubscriptions

_GATES = {
    "toolsListChanged": "tools.listChanged",
    "promptsListChanged": "prompts.listChanged",
    "resourcesListChanged": "resources.listChanged",
    "resourceSubscriptions": "resources.subscribe",
}
_URIS = "resourceSubscriptions"
_KINDS = tuple(name for name in _GATES if name != _URIS)


def _honoured(asked: JSONObject, gates: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The part of a filter that a server with these gates can serve: list changes, and URIs.

    Keeps SUBS-007.
    """
    kinds = tuple(name for name in _KINDS if asked.get(name) and _GATES[name] in gates)
    uris: Any = asked.get(_URIS, ()) if _GATES[_URIS] in gates else ()
    return kinds, tuple(dict.fromkeys(uris))


URI_CHARACTERS: Final = 16_384
"""The most characters of a subscribed URI: the table keeps it as long as the connection lasts."""


class ResourceSubscriptions(MethodPart):
    """The resources that a legacy client is subscribed to (`resources/subscribe`).

    Attributes:
        uris: The URIs of the resources, oldest first.
        listeners: The subscriptions of modern clients, which share the limit.
    """

    __slots__ = ("_core", "_incoming", "_pending_subscribes", "listeners", "uris")

    def __init__(self, core: Core, incoming: IncomingRequests) -> None:
        self._core = core
        self._incoming = incoming
        self.uris: dict[str, None] = {}
        self._pending_subscribes = 0  # open requests to subscribe
        self.listeners: Listeners | None = None

    def take(self, request: IncomingRequest) -> bool:
        """Refuse a subscription over the limit; the application answers all others."""
        request._subject = request._params.get("uri")
        if request._method == "resources/subscribe":
            # The open request takes a place in the limit until it is answered.
            self._pending_subscribes += 1
            if self._is_over_limit(request):
                self._refuse_subscription(request)
                return True
        return False

    def accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """Begin or end a subscription after the application's result."""
        uri = request._subject
        if request._method == "resources/subscribe":
            self._pending_subscribes -= 1
            if isinstance(uri, str) and not self._core.is_shared:
                self.uris[uri] = None
                self._core.transport.subscribed(uri)
        elif isinstance(uri, str) and uri in self.uris:
            del self.uris[uri]
            self._core.transport.unsubscribed((uri,))

    def not_accepted(self, request: IncomingRequest) -> None:
        """Free the place of a request to subscribe that has failed."""
        if request._method == "resources/subscribe":
            self._pending_subscribes -= 1

    def is_wanted(self, change: Change) -> bool:
        """Whether a legacy client gets this change: it is declared, and subscribed to if needed.

        Keeps RES-008.
        """
        if self._core.conversation.dialect.is_modern or self._core.is_shared:
            return False
        method = change_method(change)
        spec = self._core.conversation.dialect.notifications[self._core.side][method]
        given = change_params(change) or {}
        if judge_notification(self._core.conversation, self._core.side, method, spec, given, False):
            return False
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return uri in self.uris
        return True

    def count(self) -> int:
        """The number of subscriptions and of open requests to subscribe."""
        return self._pending_subscribes + len(self.uris)

    def end(self, cause: CancelCause) -> None:
        """End all subscriptions to resources: the connection ends."""
        self._core.transport.unsubscribed(tuple(self.uris))
        self.uris.clear()

    def _is_over_limit(self, request: IncomingRequest) -> bool:
        """Whether a new subscription exceeds `Config.max_subscriptions` or `URI_CHARACTERS`."""
        uri = request._subject
        if isinstance(uri, str):
            if uri in self.uris:
                return False
            if len(uri) > URI_CHARACTERS:
                return True
        return not self._core.transport.has_room_for(0, self._count_all())

    def _refuse_subscription(self, request: IncomingRequest) -> None:
        self._pending_subscribes -= 1
        text = (
            f"{self._core.config.max_subscriptions} subscriptions, and {URI_CHARACTERS} characters "
            "for a URI, are the limits"
        )
        self._core.events.append(LimitReached(rule="OWN-009", text=text))
        self._incoming.refuse(
            request, ErrorCode.INTERNAL_ERROR, "too many subscriptions", {"reason": text}
        )

    def _count_all(self) -> int:
        """The number of subscriptions of legacy and modern clients together."""
        listened = 0 if self.listeners is None else self.listeners.count()
        return self.count() + listened


class Listeners(MethodPart):
    """The subscriptions of modern clients (`subscriptions/listen`), indexed by filter.

    Attributes:
        listeners: Each listener by its `subscriptions/listen` request, oldest first.
        of_kind: The listeners of each kind of list change, by member of the filter.
        of_uri: The listeners of each URI. Both tables are None before the first listener, as most
            connections have none.
        tasks: The subscriptions to tasks; None: tasks are not turned on.
    """

    __slots__ = (
        "_core",
        "_incoming",
        "_messages",
        "_subscriptions",
        "_uri_count",
        "listeners",
        "of_kind",
        "of_uri",
        "tasks",
    )

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        incoming: IncomingRequests,
        subscriptions: ResourceSubscriptions,
    ) -> None:
        self._core = core
        self._messages = messages
        self._incoming = incoming
        self._subscriptions = subscriptions
        subscriptions.listeners = self
        self.listeners: dict[IncomingRequest, Listener] = {}
        # With these tables the cost of a change depends on its own listeners only.
        self.of_kind: dict[str, dict[Listener, None]] | None = None
        self.of_uri: dict[str, dict[Listener, None]] | None = None
        self._uri_count = 0  # of all listeners; a URI counts once per listener, and so does a task
        self.tasks: TaskSubscriptions | None = None

    # -------------------------------------------------------------------- verbs of the application

    def acknowledge(
        self, request: IncomingRequest, notifications: JSONObject | None, now: float | None
    ) -> Listener | None:
        """Acknowledge a subscription that `Config.manual` leaves to the application."""
        if not request.open:
            return None
        listener = self.listeners.get(request)
        if listener is None or listener._held is None:
            raise LocalProtocolError("SUBS-004", f"{request!r} waits for no acknowledgement")
        if notifications is not None:
            notifications = without_nulls(FILTER, notifications)
            if (breach := judge_filter(notifications)) is not None:
                raise breach.error()
        if now is not None:
            self._core.tell(now)
        if notifications is not None:
            self._unfile(listener)
            wish: Any = notifications
            chosen = frozenset(wish.get(_URIS, ()))
            listener._kinds = tuple(name for name in listener._kinds if wish.get(name))
            listener._uris = tuple(uri for uri in listener._uris if uri in chosen)
            chosen = frozenset(wish.get(TASK_IDS, ()))
            listener._wanted = tuple(id for id in listener._wanted if id in chosen)
            self._file(listener)
        self._acknowledge(listener)
        if self._core.needs_settle:
            self._core.settle()
        return listener

    def end_listener(self, listener: Listener, now: float | None) -> bool:
        """End a subscription with a result; return whether it was open until now.

        Keeps SUBS-013.
        """
        request = listener._request
        if not request.open:
            return False
        if self.listeners.get(request) is not listener:
            raise LocalProtocolError("OWN-022", f"{listener!r} belongs to another connection")
        if now is not None:
            self._core.tell(now)
        self._complete_listener(listener)
        return self._core.settle() if self._core.needs_settle else True

    # ------------------------------------------------------------------------------------- looking

    @property
    def open(self) -> tuple[Listener, ...]:
        """The subscriptions that were acknowledged, oldest first."""
        return tuple(one for one in self.listeners.values() if one._held is None)

    def without_acknowledged(
        self, waiting: tuple[IncomingRequest, ...]
    ) -> tuple[IncomingRequest, ...]:
        """The requests in `waiting` that are no acknowledged subscriptions."""
        if not self.listeners:
            return waiting
        served = {listener._request for listener in self.open}
        return tuple(request for request in waiting if request not in served)

    def count(self) -> int:
        """The number of subscriptions: each listener counts, and each of its URIs."""
        return len(self.listeners) + self._uri_count

    # ------------------------------------------------------------------------ subscriptions/listen

    def take(self, request: IncomingRequest) -> bool:
        """Accept or refuse `subscriptions/listen`; False leaves it to the application."""
        if (text := self._core.transport.refusal_to_listen()) is not None:
            self._incoming.refuse(request, ErrorCode.METHOD_NOT_FOUND, text)
            return True
        asked: Any = request._params.get("notifications")
        for name in null_members(FILTER, asked) if is_object(asked) else ():
            del asked[name]
            self._core.report(null_member(name), request=request)
        breach = judge_filter(asked if is_object(asked) else {_URIS: None})
        if breach is not None:
            self._incoming.refuse_breach(request, breach)
            return True
        assert self._core.modern is not None  # no other conversation has this method
        wanted: tuple[str, ...] = ()
        if self.tasks is not None:
            if not self.tasks.judge_filter(request, asked):
                return True
            wanted = tuple(dict.fromkeys(asked.get(TASK_IDS, ())))
        kinds, uris = _honoured(asked, self._core.modern.gates[self._core.side])
        if not self._has_room_for((*uris, *wanted)):
            self._refuse_listener(request)
            return True
        listener = Listener(request, self._core.encode_id(request._id), kinds, uris, wanted)
        request._subject = listener
        if request._token is not None:  # a listener gets no progress (SUBS-017)
            self._incoming.release_token(request._token)
            request._token = None
        self.listeners[request] = listener
        self._file(listener)
        if LISTEN in self._core.config.manual:
            return False
        self._acknowledge(listener)
        return True

    def check_result(self, request: IncomingRequest, result: JSONObject) -> None:
        """Raise: `end_listener` sends the result of a subscription."""
        raise LocalProtocolError(
            "OWN-025", f"{LISTEN} is answered by acknowledge() and end_listener()"
        )

    def not_accepted(self, request: IncomingRequest) -> None:
        """Remove a listener that has ended without a result."""
        self._remove(self.listeners[request])

    def reports_cancelled(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None,
        meta: JSONObject | None,
    ) -> bool:
        """Report `ListenerRemoved` for an acknowledged listener; else return False."""
        listener = request._subject
        if not isinstance(listener, Listener) or listener._held is not None:
            return False
        self._core.events.append(
            ListenerRemoved(listener=listener, cause=cause, reason=reason, meta=meta)
        )
        return True

    # ------------------------------------------------------------------------------------- changes

    def listeners_to(self, change: Change) -> Collection[Listener]:
        """The listeners whose filter matches a change.

        Keeps SUBS-002, SUBS-003.
        """
        if self.of_kind is None or self.of_uri is None:
            return ()
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return self.of_uri.get(uri, ())
        return self.of_kind.get(FILTERS[change_method(change)], ())

    def hold(
        self, listener: Listener, held: dict[Change, bytes], change: Change, message: bytes
    ) -> bool:
        """Hold a change until its listener is acknowledged; False: the limit is reached.

        Keeps SUBS-005.
        """
        if change in held or len(held) < self._core.config.max_held_changes:
            held[change] = message
            return True
        text = (
            f"{len(held)} changes wait for the acknowledgement of {listener!r}, which is the limit"
        )
        self._core.events.append(LimitReached(rule="OWN-010", text=text))
        return False

    # ------------------------------------------------------------------- the end of the connection

    def complete(self) -> None:
        """End each acknowledged subscription with a result: this side closes the connection."""
        for listener in list(self.listeners.values()):
            if listener._held is None:
                self._complete_listener(listener)
                cause = CancelCause.CLOSED
                self._core.events.append(ListenerRemoved(listener=listener, cause=cause))

    def end_listeners(self, cause: CancelCause) -> None:
        """Cancel all subscriptions with this cause."""
        for request in list(self.listeners):
            self._incoming.cancel(request, cause)

    # ------------------------------------------------------------------------------------- helpers

    def _has_room_for(self, uris: Collection[str]) -> bool:
        """Whether the limits allow one more listener with these URIs."""
        taken = self.count() + self._subscriptions.count()
        return self._core.transport.has_room_for(1 + len(uris), taken) and all(
            len(uri) <= URI_CHARACTERS for uri in uris
        )

    def _refuse_listener(self, request: IncomingRequest) -> None:
        text = (
            f"{self._core.config.max_subscriptions} subscriptions, and {URI_CHARACTERS} characters "
            "for a URI, are the limits"
        )
        self._core.events.append(LimitReached(rule="OWN-009", text=text))
        self._incoming.refuse(
            request, ErrorCode.INTERNAL_ERROR, "too many subscriptions", {"reason": text}
        )

    def _acknowledge(self, listener: Listener) -> None:
        """Acknowledge a listener, as soon as the tasks in its filter are looked up."""
        if listener._wanted:
            assert self.tasks is not None  # else no tasks are in the filter
            self.tasks.filter(listener, listener._wanted)
        else:
            self.send_acknowledgement(listener)

    def send_acknowledgement(self, listener: Listener) -> None:
        """Queue the acknowledgement of a listener, and the changes that were held until then.

        Keeps SUBS-004, SUBS-009.
        """
        request = listener._request
        route = request._route
        # A listener may be open for long: keep the accepted part of its params only.
        request._params = {"notifications": listener.honoured}
        params: JSONObject = {
            **request._params,
            "_meta": {SUBSCRIPTION_ID: request._id},
        }
        self._core.transport.queue(
            b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":%b}%b'
            % (self._core.encode(params), self._core.newline),
            route,
        )
        self._core.events.append(ListenerAdded(listener=listener))
        held, listener._held = listener._held or {}, None
        for change, message in held.items():
            if listener in self.listeners_to(change):
                self._core.transport.queue(message, route)

    def _complete_listener(self, listener: Listener) -> None:
        """Answer the request of a subscription with its result.

        Keeps SUBS-014.
        """
        request = listener._request
        self._remove(listener)
        meta: JSONObject = {SUBSCRIPTION_ID: request._id, **self._messages.server_meta()}
        body = self._core.encode({"resultType": "complete", "_meta": meta})
        self._incoming.answer(request, b'"result":', body)
        if self._core.transport.ends_with_cancelled(listener):
            self._send_cancelled(listener)

    def _send_cancelled(self, listener: Listener) -> None:
        """Queue `notifications/cancelled` after the result of a subscription.

        One page of the specification asks for the result, and another for the cancellation. A
        client takes the first of them as the ending.

        Keeps CANC-018.
        """
        self._core.transport.queue(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}%b'
            % (listener._id, self._core.newline),
            listener._request._route,
        )

    def _file(self, listener: Listener) -> None:
        """Add a listener to the tables of kinds and URIs."""
        self._uri_count += len(listener._uris) + len(listener._wanted)
        if self.of_kind is None or self.of_uri is None:
            self.of_kind, self.of_uri = {}, {}
        for uri in listener._uris:
            self.of_uri.setdefault(uri, {})[listener] = None
        for kind in listener._kinds:
            self.of_kind.setdefault(kind, {})[listener] = None

    def _unfile(self, listener: Listener) -> None:
        """Remove a listener from the tables of kinds and URIs."""
        self._uri_count -= len(listener._uris) + len(listener._wanted)
        for table, names in ((self.of_uri, listener._uris), (self.of_kind, listener._kinds)):
            assert table is not None  # the listener is in them
            for name in names:
                del table[name][listener]
                if not table[name]:
                    del table[name]

    def _remove(self, listener: Listener) -> None:
        """Remove a listener from all tables."""
        # Keeps SUBS-012.
        del self.listeners[listener._request]
        self._unfile(listener)
        if self.tasks is not None:
            self.tasks.forget_listener(listener)


class ChangePublisher:
    """Sends each published change to the legacy client and to all matching listeners.

    Attributes:
        held: Changes that wait until the transport takes output, with the JSON of URI and `_meta`.
    """

    __slots__ = ("_core", "_listeners", "_subscriptions", "held")

    def __init__(
        self, core: Core, subscriptions: ResourceSubscriptions, listeners: Listeners
    ) -> None:
        self._core = core
        self._subscriptions = subscriptions
        self._listeners = listeners
        self.held: dict[Change, tuple[bytes, bytes]] = {}

    def publish(self, change: Change, meta: JSONObject | None, now: float | None) -> bool:
        """Send a change to all that want it, or hold it back while too much output waits."""
        if self._core.state is not State.OPEN:
            return False
        uri = b""
        if isinstance(change, ResourceUpdated):
            for name in (change.uri, change.subscribed or ""):
                if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
                    raise LocalProtocolError("OWN-014", f"a URI is a string, not {name!r:.40}")
            uri = self._core.encode(change.uri)
        if not (self._subscriptions.is_wanted(change) or self._listeners.listeners_to(change)):
            return False
        encoded = self._core.encode_object(meta, None) if meta else b""
        if meta and SUBSCRIPTION_ID in meta:
            raise LocalProtocolError("OWN-025", f"{SUBSCRIPTION_ID} is written by the library")
        if now is not None:
            self._core.tell(now)
        told = True
        if not self._core.transport.holds_changes():
            told = self._send_change(change, uri, encoded)
        elif change not in self.held and len(self.held) >= self._core.config.max_held_changes:
            self._core.events.append(
                LimitReached(
                    rule="OWN-010",
                    text=f"{len(self.held)} changes wait for output to drain, which is the limit",
                )
            )
            return False
        else:
            self.held[change] = uri, encoded
        return (self._core.settle() if self._core.needs_settle else True) and told

    def release_held(self) -> None:
        """Send the changes that were held back, as long as output stays below the soft limit."""
        held = self.held
        if self._core.state is not State.OPEN:
            held.clear()
        while held and not self._core.transport.holds_changes():
            change = next(iter(held))
            self._send_change(change, *held.pop(change))

    def end(self, cause: CancelCause) -> None:
        """Drop the changes that were held back: the connection ends."""
        self.held.clear()

    def _send_change(self, change: Change, uri: bytes, meta: bytes) -> bool:
        """Queue the notifications for a change; return whether any was queued or held.

        Args:
            change: The change.
            uri: The JSON of the URI; empty for a list.
            meta: The JSON of the `_meta` object; empty without one.
        """
        told = self._subscriptions.is_wanted(change)
        if told:
            self._notify(change, uri, meta)
        listeners = self._listeners.listeners_to(change)
        if not listeners:
            return told
        start = b'{"jsonrpc":"2.0","method":"%b","params":{%b"_meta":{%b"%b":' % (
            change_method(change).encode(),
            b'"uri":%b,' % uri if uri else b"",
            meta[1:-1] + b"," if meta else b"",
            SUBSCRIPTION_ID.encode(),
        )
        end = b"}}}" + self._core.newline
        for listener in listeners:
            message = start + listener._id + end
            if listener._held is None:
                told = self._core.transport.notify_listener(listener, message) or told
            elif self._listeners.hold(listener, listener._held, change, message):
                told = True
        return told

    def _notify(self, change: Change, uri: bytes, meta: bytes) -> None:
        """Queue the notification for a legacy client."""
        method = change_method(change).encode()
        members = [b'"_meta":' + meta] if meta else []
        if uri:
            members.insert(0, b'"uri":' + uri)
        params = b',"params":{%b}' % b",".join(members) if members else b""
        self._core.transport.queue(
            b'{"jsonrpc":"2.0","method":"%b"%b}%b' % (method, params, self._core.newline), None
        )
