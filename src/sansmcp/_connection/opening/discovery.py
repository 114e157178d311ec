"""`start` of a client, with the probe `server/discover`, and a server's response to it.

Source: MCP 2026-07-28, basic/versioning; basic/transports/stdio, Backward Compatibility;
server/discover.
"""

from __future__ import annotations

from typing import Any, Final

from ..._rules.request_meta import SERVER_INFO
from ..._rules.state_tables import Phase, PhaseTrigger, State
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.modern_methods import MODERN_REVISION
from ..._wire.values import JSONObject, is_object
from ..core import Core, MethodPart
from ..events import ErrorReceived, FailureCause, FailureReason, Ready, RequestFailed
from ..handles import IncomingRequest, OutgoingRequest, Purpose, Start
from ..incoming import IncomingRequests
from ..modern_messages import ModernMessages
from ..outgoing import Outcome, OutgoingRequests
from ..pings import Pings
from .handshake import ClientHandshake, listed

_DISCOVER: Final = "server/discover"
_MODERN_ERRORS: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Errors that only a modern server sends."""
_OTHER_ERA: Final = "; it may speak revisions with a handshake only"


class ClientDiscovery:
    """Opens the conversation of a client: it probes the server, or sends `initialize`.

    The probe is `server/discover`. Its outcome decides whether the conversation is modern or
    legacy.
    """

    __slots__ = ("_core", "_handshake", "_messages", "_outgoing", "_pings")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        outgoing: OutgoingRequests,
        pings: Pings,
        handshake: ClientHandshake,
    ) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self._pings = pings
        self._handshake = handshake

    def start(
        self,
        meta: JSONObject | None,
        timeout: float | None,
        probe_timeout: float | None,
        hint: str | None,
        data: Any,
        now: float | None,
    ) -> Start:
        """Open the conversation: probe the server, or send `initialize` at once."""
        self._core.check_open("initialize" if self._core.legacy_revisions else _DISCOVER)
        if self._core.conversation.phase is not Phase.NEW:
            raise LocalProtocolError("LIFE-001", "start() was called before")
        # A tuple, so that a hint without a hash raises the same error.
        if hint is not None and hint not in tuple(self._core.registry.dialects):
            raise LocalProtocolError("VER-009", f"a hint is a revision, not {hint!r}")
        if timeout is not None or probe_timeout is not None or self._pings.keep_alive is not None:
            self._outgoing.check_timeouts(timeout, probe_timeout, now)
        text = self._core.encode_object(meta, None) if meta else b""
        probe = self._messages.with_envelope({}, meta) if self._core.modern_revisions else b""
        if now is not None:
            self._core.tell(now)
        until = None if timeout is None or self._core.now is None else self._core.now + timeout
        start = Start(text, probe, until)
        start.data = data
        if self._core.modern_revisions and (hint not in self._core.legacy_revisions):
            if hint in self._core.modern_revisions or not self._core.legacy_revisions:
                probe_timeout = None  # the server is modern, or cannot be used
            self.probe(start, probe_timeout)
        else:
            self._handshake.initialize(start, self._core.legacy_revisions[-1], timeout, self)
        if self._core.needs_settle:
            self._core.settle()
        return start

    def probe(self, start: Start, timeout: float | None) -> None:
        """Send `server/discover` to learn which revisions the server speaks.

        Keeps COMPAT-001.
        """
        left = self._left(start)
        self._core.conversation.dialect = self._core.registry.dialects[MODERN_REVISION]
        self._core.conversation.move(PhaseTrigger.DISCOVER)
        start._call = self._outgoing.send_own(
            _DISCOVER, start._probe, Purpose.DISCOVER, self, start, timeout, left
        )

    def error_without_id(self) -> None:
        """Handle an error without an id while the probe is open: the server could not read it."""
        if self._core.conversation.phase is not Phase.PROBING:
            return
        for call in list(self._outgoing.calls.values()):
            text = f"the server could not read {call._method}"
            self._outgoing.abandon(call, FailureReason.INVALID_ANSWER, text, None)

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of `server/discover` or `initialize`."""
        start = call._subject
        assert isinstance(start, Start)
        if call._purpose is Purpose.INITIALIZE:
            if isinstance(outcome, ErrorReceived):
                self._core.transport.initialize_refused()
                if self._probes_again(start, outcome):
                    return
            self._handshake.ended(start, outcome)
        elif isinstance(outcome, RequestFailed):
            self._probe_failed(start, outcome)
        elif isinstance(outcome, ErrorReceived):
            self._probe_refused(start, outcome, call._timeout)
        else:
            self._server_discovered(start, outcome.result)

    # ----------------------------------------------------------------------- outcomes of the probe

    def _server_discovered(self, start: Start, result: JSONObject) -> None:
        """Handle the result of the probe: agree on 2026-07-28, fall back, or fail."""
        versions: Any = result.get("supportedVersions")
        capabilities: Any = result.get("capabilities")
        if versions.__class__ is not list or not is_object(capabilities):
            # Reached only with `Config.check="none"`.
            text = f"the response to {_DISCOVER} lacks supportedVersions or capabilities"
            self._handshake.start_failed(start, FailureCause.INVALID_ANSWER, text)
            return
        if MODERN_REVISION not in versions:
            text = f"the server speaks {listed(versions)}"
            text += f"; this client speaks {', '.join(self._core.revisions)}"
            common = [name for name in self._core.legacy_revisions if name in versions]
            newest = common[-1] if common else None
            if newest is None:
                self._handshake.start_failed(start, FailureCause.UNSUPPORTED_REVISION, text)
            else:
                self._fall_back(start, FailureCause.UNSUPPORTED_REVISION, text, None, newest)
            return
        capabilities = self._core.accept_capabilities(MODERN_REVISION, capabilities)
        if not self._handshake.has_required(start, capabilities):
            return
        if self._core.state is not State.OPEN:
            self._handshake.start_failed(start, FailureCause.LOST, "sending has failed meanwhile")
            return
        meta: Any = result.get("_meta")
        info: Any = meta.get(SERVER_INFO) if is_object(meta) else None
        instructions: Any = result.get("instructions")
        peer = self._core.peer
        peer.revision, peer.capabilities = MODERN_REVISION, capabilities
        peer.info = info if is_object(info) else None
        peer.instructions = instructions if isinstance(instructions, str) else None
        peer.supported_versions = tuple(name for name in versions if isinstance(name, str))
        conversation = self._core.conversation
        conversation.gates[self._core.other] = self._core.registry.open_gates(capabilities)
        conversation.move(PhaseTrigger.DISCOVER_RESULT)
        self._core.events.append(Ready(revision=MODERN_REVISION, peer=peer, start=start))

    def _probe_refused(self, start: Start, error: ErrorReceived, timeout: float | None) -> None:
        """Handle an error response to the probe: probe again, fall back, or fail.

        Keeps VER-009, COMPAT-002, COMPAT-003.
        """
        text = f"the server refused {_DISCOVER}: {error.message[:300]} ({error.code})"
        if error.code not in _MODERN_ERRORS:
            text += _OTHER_ERA
            self._fall_back(start, FailureCause.REFUSED, text, error)
            return
        data: Any = error.data
        supported: Any = data.get("supported") if is_object(data) else None
        if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and supported.__class__ is list:
            text += f"; it supports {listed(supported)}"
            asked: Any = data.get("requested")
            if (
                MODERN_REVISION in supported
                and asked != MODERN_REVISION
                and not start._probed_twice
            ):
                start._probed_twice = True  # the error names another revision
                left = self._left(start)
                if self._core.state is State.OPEN and (left is None or left > 0):
                    self._core.conversation.move(PhaseTrigger.DISCOVER_ERROR)
                    self.probe(start, timeout)
                    return
            common = [name for name in self._core.legacy_revisions if name in supported]
            if common:
                self._fall_back(start, FailureCause.REFUSED, text, error, common[-1])
                return
        cause = FailureCause.REFUSED
        if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            cause = FailureCause.UNSUPPORTED_REVISION
        self._handshake.start_failed(start, cause, text, error)

    def _probe_failed(self, start: Start, outcome: RequestFailed) -> None:
        """Handle a probe without a valid response: fall back to `initialize`, or fail."""
        text = outcome.text
        if not self._core.legacy_revisions:
            text += _OTHER_ERA
        if outcome.reason is FailureReason.LOST:
            if self._core.legacy_revisions:
                text += "; if the server does not survive server/discover, start it again with "
                text += f"the hint {self._core.legacy_revisions[-1]}, for which it is not probed"
            self._handshake.start_failed(start, FailureCause.LOST, text)
            return
        cause = FailureCause.INVALID_ANSWER
        if outcome.reason is FailureReason.TIMED_OUT:
            cause = FailureCause.TIMED_OUT
        elif outcome.reason is FailureReason.REFUSED:
            cause = FailureCause.REFUSED
        self._fall_back(start, cause, text)

    def _probes_again(self, start: Start, error: ErrorReceived) -> bool:
        """Whether the error response to `initialize` names modern revisions; probe again if so."""
        data: Any = error.data
        supported: Any = data.get("supported") if is_object(data) else None
        left = self._left(start)
        if (
            supported.__class__ is list
            and any(name in supported for name in self._core.modern_revisions)
            and not start._probed_twice
            and self._core.state is State.OPEN
            and (left is None or left > 0)
        ):
            # The server started slowly: it has read the probe late and is modern since.
            start._probed_twice = True
            self._core.conversation.move(PhaseTrigger.INITIALIZE_ERROR)
            self.probe(start, None)
            return True
        return False

    def _fall_back(
        self,
        start: Start,
        cause: FailureCause,
        text: str,
        error: ErrorReceived | None = None,
        revision: str | None = None,
    ) -> None:
        """Send `initialize` to a legacy server; fail with `cause` if this side cannot."""
        left = self._left(start)
        if not self._core.legacy_revisions or self._core.state is not State.OPEN:
            self._handshake.start_failed(start, cause, text, error)
        elif left is not None and left <= 0:
            self._handshake.start_failed(start, FailureCause.TIMED_OUT, text)
        else:
            newest = self._core.legacy_revisions[-1]
            self._core.conversation.move(PhaseTrigger.DISCOVER_ERROR)
            self._core.conversation.dialect = self._core.registry.dialects[newest]
            self._handshake.initialize(start, revision or newest, left, self)

    def _left(self, start: Start) -> float | None:
        """The seconds that are left for a start; None: no timeout."""
        return None if start._until is None else start._until - (self._core.now or 0.0)


class ServerDiscovery(MethodPart):
    """The response of a server to `server/discover`; it never changes and is encoded once."""

    __slots__ = ("_core", "_discovered", "_incoming", "_instructions", "_messages")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        incoming: IncomingRequests,
        instructions: str | None,
    ) -> None:
        self._core = core
        self._messages = messages
        self._incoming = incoming
        self._instructions = instructions
        self._discovered: bytes | None = None

    def take(self, request: IncomingRequest) -> bool:
        """Answer `server/discover`."""
        if self._discovered is None:
            result: JSONObject = {
                "supportedVersions": list(reversed(self._core.revisions)),
                "capabilities": self._core.codec.decode(
                    self._core.capabilities_in(MODERN_REVISION)
                ),
            }
            if self._instructions is not None:
                result["instructions"] = self._instructions
            self._discovered = self._messages.complete(request._spec, result, None)
        self._incoming.answer_automatically(request, self._discovered)
        return True
