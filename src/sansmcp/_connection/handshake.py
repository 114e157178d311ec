"""The handshake of the legacy revisions, for both sides.

Source: MCP 2025-11-25, basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._rules.messages import judge_capabilities
from .._rules.state_tables import Phase, PhaseTrigger, State, StateTrigger
from .._spec.errors import LocalProtocolError
from .._wire.setting_checks import check_text, names_in
from .._wire.values import JSONObject, is_list, is_object
from .events import (
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
from .handles import IncomingRequest, OutgoingRequest, Purpose, Start
from .outgoing import Outcome
from .subscriptions_server import Serving

_FAILURES = {
    FailureReason.TIMED_OUT: FailureCause.TIMED_OUT,
    FailureReason.INVALID_ANSWER: FailureCause.INVALID_ANSWER,
    FailureReason.LOST: FailureCause.LOST,
    FailureReason.REFUSED: FailureCause.REFUSED,
}


def listed(names: object) -> str:
    """What a server says that it supports, in words."""
    return (", ".join(map(str, names)) if is_list(names) else str(names))[:300]


class Handshake(Serving):
    """`initialize` sent or answered, and what both sides have agreed on afterwards."""

    __slots__ = (
        "_instructions",
        "_requires",
    )

    def __init__(
        self, *args: Any, requires: Iterable[str], instructions: str | None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._requires = names_in("requires", requires)
        check_text("instructions", instructions, optional=True)
        if unknown := set(self._requires) - self._registry.gates.keys():
            raise ValueError(f"no method needs the capability {', '.join(sorted(unknown))}")
        self._instructions = instructions

    # -------------------------------------------------------------------------- as the client

    def _initialize(self, start: Start, revision: str, timeout: float | None) -> None:
        """Offer a revision."""
        body = b'{"protocolVersion":"%b","capabilities":%b,"clientInfo":%b%b}' % (
            revision.encode(),
            self._capabilities_in(revision),
            self._info,
            b',"_meta":' + start._meta if start._meta else b"",
        )
        self._conversation.move(PhaseTrigger.INITIALIZE)
        start._call = self._send_own("initialize", body, Purpose.INITIALIZE, start, timeout)

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        if call._purpose is not Purpose.INITIALIZE:
            super()._ended(call, outcome)
            return
        start = call._owner
        assert isinstance(start, Start)
        if isinstance(outcome, RequestFailed):
            self._start_failed(start, _FAILURES[outcome.reason], outcome.text)
        elif isinstance(outcome, ErrorReceived):
            self._start_refused(start, outcome)
        else:
            self._agree_as_client(start, outcome.result)

    def _start_refused(self, start: Start, error: ErrorReceived) -> None:
        text = f"the server refused initialize: {error.message[:300]} ({error.code})"
        data: Any = error.data
        if is_object(data) and "supported" in data:
            text += f"; it supports {listed(data['supported'])}"
        self._start_failed(start, FailureCause.REFUSED, text, error)

    def _agree_as_client(self, start: Start, result: JSONObject) -> None:
        revision: Any = result.get("protocolVersion")
        capabilities: Any = result.get("capabilities")
        info: Any = result.get("serverInfo")
        if not is_object(capabilities) or not is_object(info):
            # Only where shapes are not checked.
            text = "the answer to initialize lacks capabilities or serverInfo"
            self._start_failed(start, FailureCause.INVALID_ANSWER, text)
            return
        if revision not in self._legacy_revisions:
            text = (
                f"the server speaks revision {revision!r}; this client speaks "
                f"{', '.join(self._legacy_revisions)}"
            )
            self._start_failed(start, FailureCause.UNSUPPORTED_REVISION, text)
            return
        if self._state is not State.OPEN:
            text = "the server has answered initialize, but sending has failed meanwhile"
            self._start_failed(start, FailureCause.LOST, text)
            return
        capabilities = self._declared(revision, capabilities)
        if not self._has_required(start, capabilities):
            return
        peer = self._peer
        peer.revision, peer.info, peer.capabilities = revision, info, capabilities
        instructions: Any = result.get("instructions")
        peer.instructions = instructions if isinstance(instructions, str) else None
        conversation = self._conversation
        conversation.dialect = self._registry.dialects[revision]
        conversation.gates[self._other] = self._registry.open_gates(capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)
        conversation.move(PhaseTrigger.INITIALIZED)
        self._events.append(Ready(revision=revision, peer=peer, start=start))
        self._start_keep_alive()
        self._queue(b'{"jsonrpc":"2.0","method":"notifications/initialized"}' + self._newline, None)

    def _has_required(self, start: Start, capabilities: JSONObject) -> bool:
        """Whether the server declares what this client requires; if not, the start has failed."""
        gates = self._registry.open_gates(capabilities)
        missing = [name for name in self._requires if name not in gates]
        if missing:
            text = f"the server does not declare {', '.join(missing)}, which this client requires"
            self._start_failed(start, FailureCause.MISSING_CAPABILITY, text)
        return not missing

    def _start_failed(
        self,
        start: Start,
        cause: FailureCause,
        text: str,
        error: ErrorReceived | None = None,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        self._events.append(
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
        # Where the connection is ending already, that is what this failure is part of.
        self._end(StateTrigger.CLOSE, CloseCause.START_FAILED, CancelCause.FAILED)

    # -------------------------------------------------------------------------- as the server

    def _handled(self, request: IncomingRequest) -> bool:
        if request._method != "initialize":
            return super()._handled(request)
        params = request._params
        self._conversation.move(PhaseTrigger.INITIALIZE)
        request._subject = (params.get("clientInfo"), params.get("capabilities"))
        if "initialize" in self._config.manual:
            return False
        wish = params.get("protocolVersion")
        revision = wish if wish in self._legacy_revisions else self._legacy_revisions[-1]
        body = b'{"protocolVersion":"%b","capabilities":%b,"serverInfo":%b' % (
            revision.encode(),
            self._capabilities_in(revision),
            self._info,
        )
        if self._instructions is not None:
            body += b',"instructions":' + self._encode(self._instructions)
        self._agree_as_server(request, revision)
        self._events.append(RequestAnswered(request=request))
        self._answer(request, b'"result":', body + b"}")
        return True

    def _agree_as_server(self, request: IncomingRequest, revision: str) -> None:
        info, capabilities = request._subject
        peer = self._peer
        peer.revision = revision
        peer.info = info if is_object(info) else None
        peer.capabilities = {}
        if is_object(capabilities):
            peer.capabilities = self._declared(revision, capabilities)
        conversation = self._conversation
        conversation.dialect = self._registry.dialects[revision]
        conversation.gates[self._other] = self._registry.open_gates(peer.capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)

    def _as_sent(self, request: IncomingRequest, result: JSONObject) -> JSONObject:
        capabilities: Any = result.get("capabilities")
        if request._method != "initialize" or not is_object(capabilities):
            return super()._as_sent(request, result)
        return {**result, "capabilities": self._registry.without_nulls(capabilities)}

    def _check_own_result(self, request: IncomingRequest, result: JSONObject) -> None:
        """The application answers `initialize` itself (`Config.manual`)."""
        if request._method != "initialize":
            super()._check_own_result(request, result)
        elif result.get("protocolVersion") not in self._legacy_revisions:
            raise LocalProtocolError(
                "VER-004", f"protocolVersion must be one of {', '.join(self._legacy_revisions)}"
            )
        elif is_object(capabilities := result.get("capabilities")):
            for breach in judge_capabilities(self._registry, None, capabilities):
                raise breach.error()

    def _result_accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        if request._method != "initialize":
            super()._result_accepted(request, result)
            return
        self._conversation.gates[self._side] = self._registry.open_gates(
            result.get("capabilities") or {}
        )
        self._agree_as_server(request, result["protocolVersion"])

    def _came_to_nothing(self, request: IncomingRequest) -> None:
        if request._method != "initialize":
            super()._came_to_nothing(request)
        elif self._state is State.OPEN:
            self._conversation.move(PhaseTrigger.INITIALIZE_ERROR)

    def _receive_initialized(self) -> None:
        conversation = self._conversation
        conversation.move(PhaseTrigger.INITIALIZED)
        revision = conversation.dialect.revision
        self._events.append(Ready(revision=revision, peer=self._peer))
        self._start_keep_alive()

    def _clock_started(self) -> None:
        super()._clock_started()
        if self._conversation.phase is Phase.OPERATING:
            self._start_keep_alive()
