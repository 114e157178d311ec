"""Notifications, both ways: logs, published changes, and whatever else needs no answer."""

from __future__ import annotations

from typing import Any, Final

from .._rules.conversation import Conversation
from .._rules.messages import NULL_PARAMS, UNKNOWN_LEVEL, is_level, judge_call
from .._rules.request_meta import SUBSCRIPTION_ID
from .._rules.sending import Breach, judge_notification, refuse_to_notify, without_nulls
from .._rules.state_tables import Phase, State
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._spec.registry import LOG_LEVELS
from .._wire.values import MISSING, JSONObject, JSONValue, Side, is_object
from .acceptance import Accepting
from .changes import Change, ResourceUpdated, change_method, change_params
from .events import CancelCause, LimitReached, NotificationReceived
from .handles import IncomingRequest
from .listings import LIST_CHANGES

_VERBS = {
    "notifications/cancelled": "cancel()",
    "notifications/progress": "send_progress()",
    "notifications/message": "send_log()",
    "notifications/initialized": "start()",
}


_MODERN_VERBS: Final = {
    **dict.fromkeys((*LIST_CHANGES, "notifications/resources/updated"), "publish()"),
    "notifications/subscriptions/acknowledged": "acknowledge()",
}

LISTEN: Final = "subscriptions/listen"

URI_CHARACTERS: Final = 16_384
"""A longer URI is not subscribed to: the table holds them for as long as the connection lasts."""


class Notifying(Accepting):
    """Verbs that send notifications, and the receipt of the peer's."""

    __slots__ = (
        "_held",
        "_subscribing",
        "_subscriptions",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._subscriptions: dict[str, None] = {}
        self._subscribing = 0
        self._held: dict[Change, tuple[bytes, bytes]] = {}

    # ---------------------------------------------------------------------------------- verbs

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        request: IncomingRequest | None = None,
        now: float | None = None,
    ) -> None:
        """Queue a notification that has no verb of its own.

        Args:
            method: The method name. One that no revision defines is sent as it is.
            params: The params object; nothing of it is kept.
            meta: Merged into `params._meta`.
            request: The request of the peer that it belongs to; it goes out on that one's
                stream where the transport has several. A server gives it for a client of
                2026-07-28, in which no notification stands alone.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The state, the handshake, a capability or the shape of the params
                forbids it, the method has a verb of its own, or a notification to a client of
                2026-07-28 belongs to no request. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Notifications.
        """
        if method in _VERBS:
            raise LocalProtocolError("OWN-025", f"{method} is sent by {_VERBS[method]}")
        conversation = self._conversation
        if self._modern is not None and (
            self._speaks_modern_only() if request is None else request._is_modern
        ):
            conversation = self._modern
        if conversation.dialect.is_modern and method in _MODERN_VERBS:
            raise LocalProtocolError("OWN-025", f"{method} is sent by {_MODERN_VERBS[method]}")
        self._check_ours(request)
        message = self._notification_bytes(method, params, meta, conversation)
        if (
            request is None
            and self._side is Side.SERVER
            and conversation.dialect.is_modern
            # One of an extension says itself where it belongs.
            and method not in conversation.dialect.notifications[self._side]
        ):
            raise refuse_to_notify(method)
        self._check_size(message, method)
        if now is not None:
            self._tell(now)
        if params is not None:
            self._own_tasks_seen(method, params)
        self._queue(message, None if request is None else request._route)
        if self._restless:
            self._settle()

    def _speaks_modern_only(self) -> bool:
        """Whether the client has said something in 2026-07-28, and asked for no handshake."""
        return self._conversation.phase is Phase.NEW and self._envelope is not None

    def _notification_bytes(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        conversation: Conversation,
    ) -> bytes:
        if self._state is not State.OPEN and self._state is not State.DRAINING:
            self._refuse_to_send(method)
        side = self._side
        given: JSONObject = {} if params is None else params
        spec = conversation.dialect.notifications[side].get(method)
        if not is_object(given):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {given!r:.40}")
        given = without_nulls(META if spec is None else spec.params_optional, given)
        breach = judge_notification(conversation, side, method, spec, given, self._shape)
        if breach is not None:
            raise breach.error()
        name = self._method_bytes(method) if spec is None else spec.wire
        if params is None and meta is None:
            return b'{"jsonrpc":"2.0","method":%b}%b' % (name, self._newline)
        body = self._encode_object(given, meta)
        return b'{"jsonrpc":"2.0","method":%b,"params":%b}%b' % (name, body, self._newline)

    # ----------------------------------------------------------------- verbs of servers only

    def _send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
        now: float | None,
    ) -> bool:
        severity = LOG_LEVELS.get(str(level))  # untyped callers may give anything
        if severity is None:
            raise LocalProtocolError(
                "LOG-002", f"a log level is one of {', '.join(LOG_LEVELS)}, not {level!r}"
            )
        if "logging" not in self._conversation.gates[self._side]:
            raise LocalProtocolError("LOG-001", "send_log() needs the capability logging")
        if self._state is State.CLOSED or self._state is State.SEND_CLOSED:
            return False
        self._check_ours(request)
        if request is not None and (not request.open or request._method == LISTEN):
            return False
        is_modern = request is not None and request._is_modern
        if not is_modern and (not self._conversation.agreed or self._conversation is self._modern):
            return False
        wanted = (self._peer if request is None else request._peer).log_level
        if is_modern if wanted is None else severity < LOG_LEVELS[wanted]:
            return False
        params: JSONObject = {"level": level, "data": data}
        if logger is not None:
            if not isinstance(logger, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
                raise LocalProtocolError("OWN-014", "logger must be a string")
            params["logger"] = logger
        conversation = self._conversation if not is_modern else self._modern
        assert conversation is not None  # where such a request came from
        message = self._notification_bytes("notifications/message", params, meta, conversation)
        if now is not None:
            self._tell(now)
        if self._choked(None if request is None else request._route):
            return False
        self._queue(message, None if request is None else request._route)
        return self._settle() if self._restless else True

    def _publish(self, change: Change, meta: JSONObject | None, now: float | None) -> bool:
        if self._state is not State.OPEN:
            return False
        uri = b""
        if isinstance(change, ResourceUpdated):
            for name in (change.uri, change.subscribed or ""):
                if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
                    raise LocalProtocolError("OWN-014", f"a URI is a string, not {name!r:.40}")
            uri = self._encode(change.uri)
        if not self._is_published(change):
            return False
        encoded = self._encode_object(meta, None) if meta else b""
        if meta and SUBSCRIPTION_ID in meta:
            raise LocalProtocolError("OWN-025", f"{SUBSCRIPTION_ID} is written by the library")
        if now is not None:
            self._tell(now)
        told = True
        if not self._holds_changes():
            told = self._send_change(change, uri, encoded)
        elif change not in self._held and len(self._held) >= self._config.max_held_changes:
            self._events.append(
                LimitReached(
                    rule="OWN-010",
                    text=f"{len(self._held)} changes wait for output to drain, which is the limit",
                )
            )
            return False
        else:
            self._held[change] = uri, encoded
        return (self._settle() if self._restless else True) and told

    def _holds_changes(self) -> bool:
        """Whether changes are to wait, each once, until output has drained."""
        return self._choked(None)

    def _is_published(self, change: Change) -> bool:
        """Whether there is anybody to be told of this change."""
        return self._is_wanted(change)

    def _send_change(self, change: Change, uri: bytes, meta: bytes) -> bool:
        """Tell everybody who is to be told, and return whether there is anybody.

        `uri` is the JSON of the change's, and `meta` of an object; each may be empty.
        """
        if not self._is_wanted(change):
            return False
        method = change_method(change).encode()
        members = [b'"_meta":' + meta] if meta else []
        if uri:
            members.insert(0, b'"uri":' + uri)
        params = b',"params":{%b}' % b",".join(members) if members else b""
        self._queue(b'{"jsonrpc":"2.0","method":"%b"%b}%b' % (method, params, self._newline), None)
        return True

    def _is_wanted(self, change: Change) -> bool:
        """Whether it is declared and, for a resource, subscribed to; after a handshake only."""
        if self._conversation.dialect.is_modern:
            return False
        method = change_method(change)
        spec = self._conversation.dialect.notifications[self._side][method]
        given = change_params(change) or {}
        if judge_notification(self._conversation, self._side, method, spec, given, False):
            return False
        if isinstance(change, ResourceUpdated):
            uri = change.uri if change.subscribed is None else change.subscribed
            return uri in self._subscriptions
        return True

    def _release_held(self) -> None:
        """Output has drained: what was held back for it follows, each change once.

        What would go over the soft limit again waits for the next time.
        """
        held = self._held
        if self._state is not State.OPEN:
            held.clear()
        while held and not self._holds_changes():
            change = next(iter(held))
            self._send_change(change, *held.pop(change))

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the peer is subscribed to."""
        return tuple(self._subscriptions)

    # ------------------------------------------------------------ requests with a lasting effect

    def _handled(self, request: IncomingRequest) -> bool:
        method, params = request._method, request._params
        if method == "logging/setLevel":
            return self._level_handled(request, params.get("level"))
        if method in ("resources/subscribe", "resources/unsubscribe"):
            request._subject = params.get("uri")
            if method == "resources/subscribe":
                # It counts once it is answered, but room is kept for it from here on.
                self._subscribing += 1
                if self._subscription_is_too_much(request):
                    self._refuse_subscription(request)
                    return True
        return super()._handled(request)

    def _subscription_is_too_much(self, request: IncomingRequest) -> bool:
        uri = request._subject
        if isinstance(uri, str):
            if uri in self._subscriptions:
                return False
            if len(uri) > URI_CHARACTERS:
                return True
        return self._taken_subscriptions() > self._config.max_subscriptions

    def _taken_subscriptions(self) -> int:
        """How many there are, with those that are being answered."""
        return self._subscribing + len(self._subscriptions)

    def _refuse_subscription(self, request: IncomingRequest) -> None:
        self._subscribing -= 1
        text = (
            f"{self._config.max_subscriptions} subscriptions, and {URI_CHARACTERS} characters "
            "for a URI, are the limits"
        )
        self._events.append(LimitReached(rule="OWN-009", text=text))
        self._refuse(request, ErrorCode.INTERNAL_ERROR, "too many subscriptions", {"reason": text})

    def _level_handled(self, request: IncomingRequest, level: object) -> bool:
        if not is_level(level):
            text = f"the log level is none of {', '.join(LOG_LEVELS)}"
            self._refuse_breach(request, Breach("LOG-006", text, ErrorCode.INVALID_PARAMS))
            return True
        request._subject = level
        if "logging/setLevel" in self._config.manual:
            return False
        self._peer.log_level = level
        self._answer_self(request, b"{}")
        return True

    def _result_accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        method, subject = request._method, request._subject
        if method == "resources/subscribe":
            self._subscribing -= 1
            if isinstance(subject, str):
                self._subscriptions[subject] = None
        elif method == "resources/unsubscribe":
            if isinstance(subject, str):
                self._subscriptions.pop(subject, None)
        elif method == "logging/setLevel":
            self._peer.log_level = subject
        else:
            super()._result_accepted(request, result)

    def _came_to_nothing(self, request: IncomingRequest) -> None:
        if request._method == "resources/subscribe":
            self._subscribing -= 1
        else:
            super()._came_to_nothing(request)

    # ----------------------------------------------------------------------------- receiving

    def _receive_notification(self, message: JSONObject, method: str) -> None:
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        if given.__class__ is not dict or message.get("jsonrpc") != "2.0":
            fault = judge_call(message)
            if fault is not None:
                self._report(fault)
                return
            if given is None:
                self._report(NULL_PARAMS)
        sender = self._other
        conversation = self._conversation
        if method == "notifications/cancelled":
            named = conversation.dialect.notifications[sender][method]
            self._drop_odd(named.params_optional, params)
            self._receive_cancelled(params)
            return
        if method == "notifications/progress":
            self._receive_progress(params)
            return
        if self._modern is not None and conversation.phase is Phase.NEW:
            conversation = self._modern
        spec = conversation.dialect.notifications[sender].get(method)
        if params:
            drop = self._drop_odd if self._shape else self._drop_nulls
            drop(META if spec is None else spec.params_optional, params)
        breach = judge_notification(conversation, sender, method, spec, params, self._shape)
        if breach is not None:
            self._report(breach)
            if not breach.tolerated:
                return
        if method == "notifications/initialized":
            self._receive_initialized()
            return
        if method in LIST_CHANGES:
            self._list_changed(method)
        self._tasks_seen(method, params)
        if method == "notifications/message" and not is_level(params.get("level")):
            self._report(UNKNOWN_LEVEL)
        self._notified(method, params)

    def _notified(self, method: str, params: JSONObject) -> None:
        """A notification that the application learns of."""
        self._events.append(NotificationReceived(method=method, params=params, peer=self._peer))

    def _receive_initialized(self) -> None:
        """The handshake layer above knows what follows."""

    def _end_requests(self, cause: CancelCause) -> None:
        self._subscriptions.clear()
        self._held.clear()
        super()._end_requests(cause)
