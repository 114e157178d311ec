"""The handshake of the legacy revisions, for both sides.

Source: MCP 2025-11-25, basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._rules.messages import judge_capabilities
from ..._rules.state_tables import PhaseTrigger, State, StateTrigger
from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_text, names_in
from ..._wire.values import JSONObject, is_list, is_object
from ..core import Core, MethodPart
from ..events import (
    CancelCause,
    CloseCause,
    ConnectionFailed,
    ErrorReceived,
    FailureCause,
    FailureReason,
    Ready,
    RequestAnswered,
    RequestFailed,
)
from ..handles import IncomingRequest, Purpose, Start
from ..incoming import IncomingRequests
from ..outgoing import Outcome, OutgoingRequests, RequestOwner
from ..pings import Pings

_FAILURES = {
    FailureReason.TIMED_OUT: FailureCause.TIMED_OUT,
    FailureReason.INVALID_ANSWER: FailureCause.INVALID_ANSWER,
    FailureReason.LOST: FailureCause.LOST,
    FailureReason.REFUSED: FailureCause.REFUSED,
}


def listed(names: object) -> str:
    """The revisions in a server's message as a text of at most 300 characters."""
    return (", ".join(map(str, names)) if is_list(names) else str(names))[:300]


class ClientHandshake:
    """Sends `initialize`, judges the response, and agrees on a revision or fails the start."""

    __slots__ = ("_core", "_outgoing", "_pings", "_requires")

    def __init__(
        self, core: Core, outgoing: OutgoingRequests, pings: Pings, requires: Iterable[str]
    ) -> None:
        self._core = core
        self._outgoing = outgoing
        self._pings = pings
        self._requires = names_in("requires", requires)
        if unknown := set(self._requires) - core.registry.gates.keys():
            raise ValueError(f"no method needs the capability {', '.join(sorted(unknown))}")

    def initialize(
        self, start: Start, revision: str, timeout: float | None, owner: RequestOwner
    ) -> None:
        """Send `initialize` with this revision; `owner` gets its ending and calls `ended`.

        Keeps VER-001, VER-002.
        """
        body = b'{"protocolVersion":"%b","capabilities":%b,"clientInfo":%b%b}' % (
            revision.encode(),
            self._core.capabilities_in(revision),
            self._core.info,
            b',"_meta":' + start._meta if start._meta else b"",
        )
        self._core.conversation.move(PhaseTrigger.INITIALIZE)
        start._call = self._outgoing.send_own(
            "initialize", body, Purpose.INITIALIZE, owner, start, timeout
        )

    def ended(self, start: Start, outcome: Outcome) -> None:
        """Take the ending of `initialize`."""
        if isinstance(outcome, RequestFailed):
            self.start_failed(start, _FAILURES[outcome.reason], outcome.text)
        elif isinstance(outcome, ErrorReceived):
            self._start_refused(start, outcome)
        else:
            self._agree(start, outcome.result)

    def start_failed(
        self,
        start: Start,
        cause: FailureCause,
        text: str,
        error: ErrorReceived | None = None,
    ) -> None:
        """End a start with `ConnectionFailed`, and end the connection."""
        status, retry_after = self._core.transport.start_failed(start, cause, text)
        self._core.events.append(
            ConnectionFailed(
                start=start,
                cause=cause,
                text=text,
                code=None if error is None else error.code,
                message=None if error is None else error.message,
                data=None if error is None else error.data,
                status=status if error is None else error.status,
                retry_after=retry_after if error is None else error.retry_after,
            )
        )
        # If the connection is ending already, this call does nothing.
        self._core.end(StateTrigger.CLOSE, CloseCause.START_FAILED, CancelCause.FAILED)

    def has_required(self, start: Start, capabilities: JSONObject) -> bool:
        """Whether the server declares all required capabilities; if not, fail the start."""
        gates = self._core.registry.open_gates(capabilities)
        missing = [name for name in self._requires if name not in gates]
        if missing:
            text = f"the server does not declare {', '.join(missing)}, which this client requires"
            self.start_failed(start, FailureCause.MISSING_CAPABILITY, text)
        return not missing

    def _start_refused(self, start: Start, error: ErrorReceived) -> None:
        text = f"the server refused initialize: {error.message[:300]} ({error.code})"
        data: Any = error.data
        if is_object(data) and "supported" in data:
            text += f"; it supports {listed(data['supported'])}"
        self.start_failed(start, FailureCause.REFUSED, text, error)

    def _agree(self, start: Start, result: JSONObject) -> None:
        """Judge the result of `initialize`; open the conversation, or fail the start.

        Keeps LIFE-004, VER-006, VER-007.
        """
        revision: Any = result.get("protocolVersion")
        capabilities: Any = result.get("capabilities")
        info: Any = result.get("serverInfo")
        if not is_object(capabilities) or not is_object(info):
            # Reached only with `Config.check="none"`.
            text = "the response to initialize lacks capabilities or serverInfo"
            self.start_failed(start, FailureCause.INVALID_ANSWER, text)
            return
        if revision not in self._core.legacy_revisions:
            text = (
                f"the server speaks revision {revision!r}; this client speaks "
                f"{', '.join(self._core.legacy_revisions)}"
            )
            self.start_failed(start, FailureCause.UNSUPPORTED_REVISION, text)
            return
        if self._core.state is not State.OPEN:
            text = "the server has answered initialize, but sending has failed meanwhile"
            self.start_failed(start, FailureCause.LOST, text)
            return
        capabilities = self._core.accept_capabilities(revision, capabilities)
        if not self.has_required(start, capabilities):
            return
        peer = self._core.peer
        peer.revision, peer.info, peer.capabilities = revision, info, capabilities
        instructions: Any = result.get("instructions")
        peer.instructions = instructions if isinstance(instructions, str) else None
        conversation = self._core.conversation
        conversation.dialect = self._core.registry.dialects[revision]
        conversation.gates[self._core.other] = self._core.registry.open_gates(capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)
        conversation.move(PhaseTrigger.INITIALIZED)
        self._core.events.append(Ready(revision=revision, peer=peer, start=start))
        self._pings.start_keep_alive()
        self._core.transport.queue_initialized(
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}' + self._core.newline
        )
        self._core.transport.client_agreed()


class ServerHandshake(MethodPart):
    """Answers `initialize`, agrees on a revision, and waits for `notifications/initialized`."""

    __slots__ = ("_core", "_incoming", "_instructions", "_pings")

    def __init__(
        self, core: Core, incoming: IncomingRequests, pings: Pings, instructions: str | None
    ) -> None:
        self._core = core
        self._incoming = incoming
        self._pings = pings
        check_text("instructions", instructions, optional=True)
        self._instructions = instructions

    def take(self, request: IncomingRequest) -> bool:
        """Answer `initialize`, unless the application does (`Config.manual`).

        Keeps VER-003, VER-004, VER-005.
        """
        params = request._params
        self._core.conversation.move(PhaseTrigger.INITIALIZE)
        request._subject = (params.get("clientInfo"), params.get("capabilities"))
        if "initialize" in self._core.config.manual:
            return False
        wish = params.get("protocolVersion")
        # VER-004: the result names the latest revision of this side if it lacks the one asked for.
        revision = wish if wish in self._core.legacy_revisions else self._core.legacy_revisions[-1]
        body = b'{"protocolVersion":"%b","capabilities":%b,"serverInfo":%b' % (
            revision.encode(),
            self._core.capabilities_in(revision),
            self._core.info,
        )
        if self._instructions is not None:
            body += b',"instructions":' + self._core.encode(self._instructions)
        self._agree(request, revision)
        self._core.events.append(RequestAnswered(request=request))
        self._incoming.answer(request, b'"result":', body + b"}")
        return True

    def prepare_result(self, request: IncomingRequest, result: JSONObject) -> JSONObject:
        """The application's result of `initialize`, without null capabilities."""
        capabilities: Any = result.get("capabilities")
        if not is_object(capabilities):
            return result
        return {**result, "capabilities": self._core.registry.without_nulls(capabilities)}

    def check_result(self, request: IncomingRequest, result: JSONObject) -> None:
        """Raise unless the application's result has a known revision and valid capabilities."""
        if result.get("protocolVersion") not in self._core.legacy_revisions:
            raise LocalProtocolError(
                "VER-004",
                f"protocolVersion must be one of {', '.join(self._core.legacy_revisions)}",
            )
        elif is_object(capabilities := result.get("capabilities")):
            for breach in judge_capabilities(self._core.registry, None, capabilities):
                raise breach.error()

    def accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """Agree on the revision in the application's result of `initialize`."""
        if self._core.is_shared:
            self.not_accepted(request)
            return
        self._core.conversation.gates[self._core.side] = self._core.registry.open_gates(
            result.get("capabilities") or {}
        )
        self._agree(request, result["protocolVersion"])

    def not_accepted(self, request: IncomingRequest) -> None:
        """Allow another `initialize`: this one was refused."""
        if self._core.state is State.OPEN:
            self._core.conversation.move(PhaseTrigger.INITIALIZE_ERROR)

    def receive_initialized(self) -> None:
        """Open the conversation: the client has sent `notifications/initialized`."""
        conversation = self._core.conversation
        conversation.move(PhaseTrigger.INITIALIZED)
        revision = conversation.dialect.revision
        self._core.events.append(Ready(revision=revision, peer=self._core.peer))
        self._pings.start_keep_alive()

    def _agree(self, request: IncomingRequest, revision: str) -> None:
        """Agree on a revision with the client that has sent `initialize`."""
        info, capabilities = request._subject
        peer = self._core.peer
        peer.revision = revision
        peer.info = info if is_object(info) else None
        peer.capabilities = {}
        if is_object(capabilities):
            peer.capabilities = self._core.accept_capabilities(revision, capabilities)
        conversation = self._core.conversation
        conversation.dialect = self._core.registry.dialects[revision]
        conversation.gates[self._core.other] = self._core.registry.open_gates(peer.capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)
        self._core.transport.server_agreed(request)
