"""The effects of HTTP responses on the requests of a connection: results, refusals and failures.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..._connection.core import Core
from ..._connection.events import ErrorReceived, FailureCause, FailureReason
from ..._connection.handles import OutgoingRequest, Purpose, Route, purpose_of, subject_of
from ..._connection.machine import ClientMachine
from ..._rules.messages import is_error
from ..._rules.sending import Breach
from ..._rules.state_tables import PhaseTrigger, RequestState
from ..._spec.errors import ErrorCode
from ..._wire.framing import BOM, BOM_NOTE
from ..._wire.values import JSONObject, id_key, is_object
from .._sse import OverlongEvent, ServerSentEvent

_MODERN_ERRORS: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
_SAYS_LITTLE: Final = frozenset({401, 403, 407, 408, 413, 421, 429, 431})
"""Statuses that depend on the revision of the request with a few servers only."""


def says_what_it_speaks(status: int) -> bool:
    """Whether a refusal with this status may come from a server that speaks another revision.

    502 and above come from a gateway, or from a server that is overloaded. Every 4xx counts: older
    servers, and gateways, answer an unknown method with any of them.
    """
    return 400 <= status < 502


def says_little(status: int) -> bool:
    """Whether a refusal with this status seldom depends on the revisions of the server."""
    return not says_what_it_speaks(status) or status in _SAYS_LITTLE


def is_modern_error(error: JSONObject | None) -> bool:
    """Whether only a server of 2026-07-28 answers with this error.

    Keeps COMPAT-005.
    """
    said: Any = {} if error is None else error["error"]
    return said.get("code") in _MODERN_ERRORS


def error_in(body: bytes, core: Core) -> JSONObject | None:
    """Return the message in a body if it is a JSON-RPC error, whatever its Content-Type is."""
    if not body:
        return None
    try:
        value: Any = core.decoder.decode(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    if is_object(value) and "method" not in value and is_error(value.get("error")):
        if body.startswith(BOM):
            core.report(Breach("OWN-017", BOM_NOTE, tolerated=True))
        return value
    return None


@attrs.define(eq=False, repr=False)
class ReceivedResponses:
    """Gives each HTTP response to the machine, and ends requests that got none.

    Attributes:
        body_of: The request whose HTTP response is being received as one body; None: the message
            that is being received came on a stream.
        is_replaying: The message that is being received came before, and was kept.
        is_standalone: The message that is being received came on the standalone stream.
        machine: The protocol machine of the connection.
    """

    machine: ClientMachine
    body_of: object = attrs.field(default=None, init=False)
    is_replaying: bool = attrs.field(default=False, init=False)
    is_standalone: bool = attrs.field(default=False, init=False)

    # ------------------------------------------------------------------------------- received

    def receive_body(self, post: object, body: bytes) -> str:
        """Receive the body of a successful response, which may answer only the POSTed request.

        Args:
            post: The route of that request.
            body: One message.

        Returns:
            What is wrong with the body; empty if nothing is.
        """
        self.machine.core.last_breach = None
        self.body_of = post
        self.machine.receive_whole(body)
        self.body_of = None
        return self._breach_text()

    def _breach_text(self) -> str:
        """Return the text of the last breach; empty if there was none."""
        breach = self.machine.core.last_breach
        return "" if breach is None else breach.text

    def receive_event(
        self,
        item: ServerSentEvent | OverlongEvent,
        *,
        route: Route | None = None,
        is_standalone: bool = False,
    ) -> None:
        """Receive an event of a stream; types other than `message` mean nothing.

        Args:
            item: The event.
            route: The route of a response to the event, if it is a request.
            is_standalone: The stream is the standalone one, for messages that belong to no request.
        """
        if isinstance(item, OverlongEvent):
            self.machine.receive_overlong(item.excerpt)
        elif item.type == "message" and item.data:
            self.is_standalone = is_standalone
            self.machine.receive_whole(item.data, route)
            self.is_standalone = False

    def is_progress_of(self, call: OutgoingRequest, data: bytes) -> bool:
        """Whether a request or a notification is a notification of progress of this request."""
        try:
            message: Any = self.machine.core.decoder.decode(data.removeprefix(BOM))
        except (ValueError, RecursionError):
            return False
        params: Any = message.get("params")
        return (
            message.get("method") == "notifications/progress"
            and "id" not in message
            and is_object(params)
            and (token := id_key(params.get("progressToken"))) is not None
            and self.machine.outgoing.tokens.get(token) is call
        )

    def receive_kept(self, message: JSONObject) -> None:
        """Receive a response that was kept until its effect was decided."""
        self.is_replaying = True
        self.machine.responses.receive_response(message)
        self.is_replaying = False

    def answer_with(self, call: OutgoingRequest, message: JSONObject) -> None:
        """Answer a request with the error in a message, whatever id the message has."""
        error: Any = message["error"]
        answer: JSONObject = {"jsonrpc": "2.0", "id": call.id, "error": error}
        self.machine.responses.receive_response(answer)

    # ---------------------------------------------------------------------------- not answered

    def refuse(self, call: OutgoingRequest, status: int, text: str) -> None:
        """End a request that the server has refused.

        Args:
            call: The request.
            status: The status, if it may depend on the revisions of the server; else 0.
            text: What happened.
        """
        if purpose_of(call) is Purpose.DISCOVER and (
            not says_what_it_speaks(status)
            or (says_little(status) and not self.falls_back(status, None))
        ):
            self.fail_start(call, FailureCause.REFUSED, text)
        else:
            self.machine.outgoing.abandon(call, FailureReason.REFUSED, text, None)

    def fail(self, call: OutgoingRequest, reason: FailureReason, text: str) -> None:
        """End a request without a valid response, if it is still open."""
        if not call.open:
            return
        if purpose_of(call) is Purpose.DISCOVER and reason is FailureReason.LOST:
            self.fail_start(call, FailureCause.LOST, text)
        else:
            self.machine.outgoing.abandon(call, reason, text, None)

    # -------------------------------------------------------------------------------- opening

    def fail_start(
        self,
        call: OutgoingRequest,
        cause: FailureCause,
        text: str,
        error: ErrorReceived | None = None,
    ) -> None:
        """End the start, since the server cannot be opened in any revision.

        Args:
            call: The probe of the start.
            cause: Why.
            text: The same in words.
            error: What the server has said about it.
        """
        start: Any = subject_of(call)
        if error is not None:
            text += f": {error.message[:300]} ({error.code})"
        self.machine.outgoing.conclude(call, RequestState.CANCELLED)
        self.machine.handshake.start_failed(start, cause, text, error)

    def falls_back(self, status: int, wait: float | None) -> bool:
        """Whether `initialize` follows a probe that was refused like this.

        If the server names a time for the retry, `initialize` does not follow.

        Keeps COMPAT-006.
        """
        is_dual = bool(self.machine.core.legacy_revisions)
        return is_dual and says_what_it_speaks(status) and not wait

    def probe_again(self, call: OutgoingRequest, timeout: float | None) -> None:
        """Probe the server again instead of `initialize`, since there are other credentials.

        `initialize` with them would open a server of both eras in the legacy one.
        """
        start: Any = subject_of(call)
        self.machine.outgoing.conclude(call, RequestState.CANCELLED)
        self.machine.core.conversation.move(PhaseTrigger.INITIALIZE_ERROR)
        self.machine.discovery.probe(start, timeout)
