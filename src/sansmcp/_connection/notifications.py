"""Notifications in both directions, log messages among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from .._rules.conversation import Conversation
from .._rules.messages import NULL_PARAMS, UNKNOWN_LEVEL, is_level, judge_request_or_notification
from .._rules.sending import Breach, judge_notification, unrelated_notification_error, without_nulls
from .._rules.state_tables import Phase, State
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import META
from .._spec.registry import LOG_LEVELS
from .._wire.values import MISSING, JSONObject, JSONValue, Side, is_object
from .core import Core, MethodPart
from .handles import IncomingRequest
from .incoming import IncomingRequests
from .incoming_responses import IncomingResponses
from .intake import Intake
from .listings import LIST_CHANGES, Listings

if TYPE_CHECKING:
    from .opening.handshake import ServerHandshake
    from .subscriptions.client import ClientSubscriptions

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
TASK_NEWS: Final = frozenset({"notifications/tasks", "notifications/tasks/status"})
"""Notifications about a task of the sender."""
LISTEN: Final = "subscriptions/listen"


class ReceivesCancelled(Protocol):
    """The part that takes `notifications/cancelled`."""

    def receive_cancelled(self, params: JSONObject) -> None:
        """Handle `notifications/cancelled` of the peer."""
        ...


class Notifications(MethodPart):
    """Sends notifications, judges those of the peer, and answers `logging/setLevel`.

    Attributes:
        cancellations: The part that handles `notifications/cancelled`.
        subscriptions: On a client, the part that handles notifications for subscriptions; else
            None.
        handshake: On a server, the part that waits for `notifications/initialized`; else None.
    """

    __slots__ = (
        "_core",
        "_incoming",
        "_intake",
        "_listings",
        "_responses",
        "cancellations",
        "handshake",
        "subscriptions",
    )

    def __init__(
        self,
        core: Core,
        responses: IncomingResponses,
        listings: Listings,
        incoming: IncomingRequests,
        intake: Intake,
    ) -> None:
        self._core = core
        self._responses = responses
        self._listings = listings
        self._incoming = incoming
        self._intake = intake
        self.cancellations: ReceivesCancelled = incoming
        self.subscriptions: ClientSubscriptions | None = None
        self.handshake: ServerHandshake | None = None

    # -------------------------------------------------------------------- verbs of the application

    def send(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
        now: float | None,
    ) -> None:
        """Queue a notification that no other verb sends."""
        if method in _VERBS:
            raise LocalProtocolError("OWN-025", f"{method} is sent by {_VERBS[method]}")
        conversation = self._core.conversation
        if self._core.modern is not None and (
            self._speaks_modern_only() if request is None else request._is_modern
        ):
            conversation = self._core.modern
        if conversation.dialect.is_modern and method in _MODERN_VERBS:
            raise LocalProtocolError("OWN-025", f"{method} is sent by {_MODERN_VERBS[method]}")
        self._core.check_belongs(request)
        message = self._notification_bytes(method, params, meta, conversation)
        if (
            request is None
            and self._core.side is Side.SERVER
            and conversation.dialect.is_modern
            # A notification of an extension needs no request.
            and method not in conversation.dialect.notifications[self._core.side]
        ):
            raise unrelated_notification_error(method)
        self._core.check_size(message, method)
        if now is not None:
            self._core.tell(now)
        if params is not None:
            self._incoming.note_own_tasks(method, params)
        self._core.transport.queue(message, None if request is None else request._route)
        if self._core.needs_settle:
            self._core.settle()

    def send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
        now: float | None,
    ) -> bool:
        """Queue a log message if the client wants messages of this level.

        Keeps LOG-004, LOG-007.
        """
        severity = LOG_LEVELS.get(str(level))  # untyped callers may give anything
        if severity is None:
            raise LocalProtocolError(
                "LOG-002", f"a log level is one of {', '.join(LOG_LEVELS)}, not {level!r}"
            )
        if "logging" not in self._core.conversation.gates[self._core.side]:
            raise LocalProtocolError("LOG-001", "send_log() needs the capability logging")
        if self._core.state is State.CLOSED or self._core.state is State.SEND_CLOSED:
            return False
        self._core.check_belongs(request)
        if request is not None and (not request.open or request._method == LISTEN):
            return False
        is_modern = request is not None and request._is_modern
        if not is_modern and (
            not self._core.conversation.agreed or self._core.conversation is self._core.modern
        ):
            return False
        wanted = (self._core.peer if request is None else request._peer).log_level
        if is_modern if wanted is None else severity < LOG_LEVELS[wanted]:
            return False
        params: JSONObject = {"level": level, "data": data}
        if logger is not None:
            if not isinstance(logger, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
                raise LocalProtocolError("OWN-014", "logger must be a string")
            params["logger"] = logger
        conversation = self._core.conversation if not is_modern else self._core.modern
        assert conversation is not None  # a modern request has this conversation
        message = self._notification_bytes("notifications/message", params, meta, conversation)
        if now is not None:
            self._core.tell(now)
        if self._core.transport.is_congested(None if request is None else request._route):
            return False
        self._core.transport.queue(message, None if request is None else request._route)
        return self._core.settle() if self._core.needs_settle else True

    # ------------------------------------------------------------------------------- from the peer

    def receive_notification(self, message: JSONObject, method: str) -> None:
        """Judge a notification, then give it to its part or deliver it."""
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        if given.__class__ is not dict or message.get("jsonrpc") != "2.0":
            breach = judge_request_or_notification(message)
            if breach is not None:
                self._core.report(breach)
                return
            if given is None:
                self._core.report(NULL_PARAMS)
        sender = self._core.other
        conversation = self._core.conversation
        if method == "notifications/cancelled":
            named = conversation.dialect.notifications[sender][method]
            self._core.drop_invalid(named.params_optional, params)
            self.cancellations.receive_cancelled(params)
            return
        if method == "notifications/progress":
            self._responses.receive_progress(params)
            return
        if self._core.modern is not None and conversation.phase is Phase.NEW:
            conversation = self._core.modern
        spec = conversation.dialect.notifications[sender].get(method)
        if params:
            drop = self._core.drop_invalid if self._core.checks_shape else self._core.drop_nulls
            drop(META if spec is None else spec.params_optional, params)
        breach = judge_notification(
            conversation, sender, method, spec, params, self._core.checks_shape
        )
        if self._core.payloads is not None and (breach is None or breach.tolerated):
            revision = conversation.dialect.revision
            wrong = self._core.payloads.judge_params(method, params, revision)
            if breach is not None and wrong is not None:
                self._core.report(breach)
            breach = wrong or breach
        if breach is not None:
            self._core.report(breach)
            if not breach.tolerated:
                return
        if method == "notifications/initialized":
            assert self.handshake is not None  # a client has reported a breach above
            self.handshake.receive_initialized()
            return
        if method in LIST_CHANGES:
            self._listings.list_changed(method)
        self._responses.note_peer_tasks(method, params)
        follower = self._responses.follower
        if follower is not None and method in TASK_NEWS:
            follower.notified(params)
        if method == "notifications/message" and not is_level(params.get("level")):
            self._core.report(UNKNOWN_LEVEL)
        if self.subscriptions is None or not self.subscriptions.receive_notification(
            method, params
        ):
            self._core.transport.deliver_notification(method, params)

    # ---------------------------------------------------------------------------- logging/setLevel

    def take(self, request: IncomingRequest) -> bool:
        """Answer `logging/setLevel`."""
        if not is_level(level := request._params.get("level")):
            text = f"the log level is none of {', '.join(LOG_LEVELS)}"
            self._incoming.refuse_breach(request, Breach("LOG-006", text, ErrorCode.INVALID_PARAMS))
            return True
        request._subject = level
        if "logging/setLevel" in self._core.config.manual:
            return False
        self._core.peer.log_level = level
        self._incoming.answer_automatically(request, b"{}")
        return True

    def accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """Set the log level after the application has answered `logging/setLevel`."""
        self._core.peer.log_level = request._subject

    # ------------------------------------------------------------------------------------- helpers

    def _speaks_modern_only(self) -> bool:
        """Whether the client has sent a modern request, and no `initialize`."""
        return self._core.conversation.phase is Phase.NEW and self._intake.envelope is not None

    def _notification_bytes(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        conversation: Conversation,
    ) -> bytes:
        """The encoded notification; raises `LocalProtocolError` if it may not be sent."""
        if self._core.state is not State.OPEN and self._core.state is not State.DRAINING:
            self._core.refuse_to_send(method)
        side = self._core.side
        given: JSONObject = {} if params is None else params
        spec = conversation.dialect.notifications[side].get(method)
        if not is_object(given):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {given!r:.40}")
        given = without_nulls(META if spec is None else spec.params_optional, given)
        breach = judge_notification(
            conversation, side, method, spec, given, self._core.checks_shape
        )
        if breach is not None:
            raise breach.error()
        if self._core.payloads is not None:
            revision = conversation.dialect.revision
            self._core.payloads.check_params(method, given, meta, revision)
        name = self._core.method_bytes(method) if spec is None else spec.wire
        if params is None and meta is None:
            return b'{"jsonrpc":"2.0","method":%b}%b' % (name, self._core.newline)
        body = self._core.encode_object(given, meta)
        return b'{"jsonrpc":"2.0","method":%b,"params":%b}%b' % (name, body, self._core.newline)
