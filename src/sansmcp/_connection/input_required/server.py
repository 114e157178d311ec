"""Questions to the client before the response to its request: the server's side.

A modern client gets the questions as a result (`input_required`) and sends its request again. A
legacy client gets each question as a request of the server; this is the bridge. The application
calls `require_input` in both cases.

Source: MCP 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._rules.conversation import Peer
from ..._rules.sending import (
    Breach,
    judge_question,
    judge_request,
    missing_gates,
    question_without_nulls,
    without_nulls,
)
from ..._rules.state_tables import REQUESTS, RequestState, RequestTrigger
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.methods import META
from ..._spec.modern_methods import MODERN_REVISION
from ..._wire.setting_checks import is_number
from ..._wire.values import JSONObject, is_object
from ..core import Core
from ..events import ErrorReceived, RequestAnswered, RequestReceived, ResponseReceived
from ..handles import BridgedQuestions, IncomingRequest, OutgoingRequest, Purpose
from ..incoming import IncomingRequests
from ..intake import BAD_STATE, Intake
from ..modern_messages import ModernMessages
from ..outgoing import INPUT_MEMBERS, Outcome, OutgoingRequests
from .request_state import LAST, NO_PRINCIPAL_KEY, seal

_OPEN = RequestState.OPEN
_REFUSED = REQUESTS[RequestState.OPEN, RequestTrigger.REFUSE]
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]


def needs_session(method: str, peer: Peer) -> str:
    """The text of the error when a legacy client without a session is asked a question."""
    return (
        f"{method} needs a session: a client of revision {peer.revision} cannot be asked by a "
        "server without sessions"
    )


def checked_questions(
    core: Core, peer: Peer, questions: Mapping[str, JSONObject]
) -> dict[str, JSONObject]:
    """The questions to a client without null members.

    Keeps CAP-007.

    Raises:
        LocalProtocolError: A question is not valid, or needs a capability that the client did not
            declare.
    """
    if not isinstance(questions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise LocalProtocolError("OWN-014", f"questions are a mapping, not {questions!r:.40}")
    dialect = core.registry.dialects[MODERN_REVISION]
    gates = core.registry.open_gates(peer.capabilities)
    checked: dict[str, JSONObject] = {}
    undeclared: Breach | None = None
    needed: JSONObject = {}
    for name, question in questions.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("MRTR-005", f"a key is a string, not {name!r:.40}")
        if is_object(question):
            question, _ = question_without_nulls(dialect, question)
        breach = judge_question(dialect, gates, question, core.checks_shape)
        checked[name] = question
        if breach is None:
            if core.payloads is not None:
                params = question.get("params", {})
                core.payloads.check_params(question["method"], params, None, MODERN_REVISION)
            continue
        if breach.rule != "MRTR-008":
            raise breach.error()
        undeclared = undeclared or breach
        params = question.get("params", {})
        for gate in missing_gates(dialect.inputs[question["method"]], gates, params):
            node = needed
            for part in core.registry.gates[gate]:
                node = node.setdefault(part, {})
    if undeclared is not None:
        raise LocalProtocolError(undeclared.rule, undeclared.text, needed)
    return checked


class InputRequiredServer:
    """Asks the client questions about its request, and reads the state of the next round."""

    __slots__ = ("_core", "_incoming", "_intake", "_messages", "_outgoing")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
        intake: Intake,
    ) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self._incoming = incoming
        self._intake = intake
        incoming.input_required = self

    # -------------------------------------------------------------------- verbs of the application

    def require(
        self,
        request: IncomingRequest,
        questions: Mapping[str, JSONObject],
        state: str | None,
        meta: JSONObject | None,
        timeout: float | None,
        at: float | None,
        now: float | None,
    ) -> bool:
        """Ask the client questions before its request is answered."""
        if request._state is not _OPEN:
            return self._incoming.too_late(request)
        if self._incoming.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        questions = self._checked_questions(request, questions, state)
        if timeout is not None:
            self._outgoing.check_timeouts(timeout, None, now)
        if request._is_modern:
            body = self._questions_body(request, questions, state, meta, at)
            if now is not None:
                self._core.tell(now)
            self._incoming.answer(request, b'"result":', body)
        else:
            self._core.check_open(f"questions about {request._method}")
            bodies = self._encode_questions(request, questions)
            if now is not None:
                self._core.tell(now)
            self._bridge(request, bodies, state, timeout)
        return self._core.settle() if self._core.needs_settle else True

    def read_state(
        self, request: IncomingRequest, at: float | None, now: float | None
    ) -> str | None:
        """The verified state of the round before; None without one, or with a bad seal."""
        if request.open and self._incoming.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")
        if not request._is_modern and request._rounds == 0:
            return None  # no state was sent: a legacy member of this name is another thing
        state: str | None = request._params.get("requestState")
        keys = self._core.config.state_keys
        if state is None or not keys or not request._is_modern:
            return state
        if request._opened is not None:
            return request._opened
        if not is_number(at):
            text = f"opening a seal needs the time in Unix seconds: pass at=, not {at!r}"
            raise LocalProtocolError("OWN-023", text)
        breach = self._intake.judge_seal(request, at)
        if breach is None:
            return request._opened
        if request.open:
            if now is not None:
                self._core.tell(now)
            self._incoming.refuse_breach(request, breach, BAD_STATE)
            request._state = _REFUSED
            if self._core.needs_settle:
                self._core.settle()
        return None

    # --------------------------------------------------------- questions that are sent as requests

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of a question to a legacy client."""
        bridge = call._subject
        assert isinstance(bridge, BridgedQuestions)
        name = bridge.pending.pop(call, None)
        if name is None:
            return  # `withdraw` has ended the question
        if isinstance(outcome, ResponseReceived):
            bridge.responses[name] = outcome.result
            self._deliver_if_complete(bridge)
            return
        said = outcome.message if isinstance(outcome, ErrorReceived) else outcome.text
        self.withdraw(bridge)
        code = ErrorCode.INTERNAL_ERROR
        text = f"{call._method} was not answered: {said[:200]}"
        self._core.events.append(RequestAnswered(request=bridge.asked, code=code))
        self._incoming.answer(bridge.renewed, b'"error":', self._incoming.error_bytes(code, text))

    def withdraw(self, bridge: BridgedQuestions) -> None:
        """Cancel the questions of a round that are not answered yet."""
        pending, bridge.pending = bridge.pending, {}
        for call in pending:
            self._outgoing.withdraw(call, "the question is not needed any more")

    # ------------------------------------------------------------------------------------- helpers

    def _checked_questions(
        self, request: IncomingRequest, questions: Mapping[str, JSONObject], state: str | None
    ) -> dict[str, JSONObject]:
        """The questions without null members; raises `LocalProtocolError` if one is not valid."""
        spec = request._spec
        dialect = self._core.registry.dialects[MODERN_REVISION]
        modern = dialect.requests[self._core.other].get(request._method)
        if modern is None or not modern.allows_questions or spec is None:
            text = f"{request._method} is not answered with questions"
            raise LocalProtocolError("MRTR-003", text)
        if not questions and state is None:
            raise LocalProtocolError("MRTR-004", "neither questions nor a state were given")
        if state is not None and not isinstance(state, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"a state is a string, not {state!r:.40}")
        try:
            return checked_questions(self._core, request._peer, questions)
        except LocalProtocolError as error:
            if error.rule == "MRTR-008" and self._core.is_shared and not request._is_modern:
                # Without a session the capabilities of a legacy client are unknown.
                method = next(iter(questions.values()))["method"]
                text = needs_session(method, request._peer)
                raise LocalProtocolError("STATE-006", text, error.needed) from None
            raise

    def _questions_body(
        self,
        request: IncomingRequest,
        questions: dict[str, JSONObject],
        state: str | None,
        meta: JSONObject | None,
        at: float | None,
    ) -> bytes:
        """The encoded result with questions and state; the state is sealed if there are keys."""
        result: JSONObject = {"resultType": "input_required"}
        if questions:
            result["inputRequests"] = questions
        if state is not None:
            keys = self._core.config.state_keys
            if keys:
                if request.principal is not None and request.principal_key is None:
                    raise LocalProtocolError("OWN-050", NO_PRINCIPAL_KEY)
                if not is_number(at):
                    text = f"sealing a state needs the time in Unix seconds: pass at=, not {at!r}"
                    raise LocalProtocolError("OWN-023", text)
                expires = at + self._core.config.state_seconds
                if not expires >= 0:  # which also refuses NaN
                    raise LocalProtocolError("OWN-023", f"at is in Unix seconds, not {at}")
                state = seal(state, request, keys, expires=int(min(expires, LAST)))
            result["requestState"] = state
        if whole := self._messages.result_meta(meta):
            result["_meta"] = whole
        return self._core.encode_object(result, None)

    def _encode_questions(
        self, request: IncomingRequest, questions: Mapping[str, JSONObject]
    ) -> dict[str, tuple[str, bytes]]:
        """Method and encoded params of each question for a legacy client, by key.

        Raises:
            LocalProtocolError: A question may not be sent, or there are too many rounds or open
                requests.
        """
        if request._rounds >= self._core.config.max_input_rounds:
            raise LocalProtocolError(
                "OWN-027", f"{request!r} has asked {request._rounds} times, which is the limit"
            )
        conversation, side = self._core.conversation, self._core.side
        bodies: dict[str, tuple[str, bytes]] = {}
        for name, question in questions.items():
            method, params = question["method"], question.get("params", {})
            if params.get("mode") == "url" and "elicitationId" not in params:
                # The id of the question is unique in its session.
                params = {**params, "elicitationId": str(self._outgoing.last_id + 1 + len(bodies))}
            spec = conversation.dialect.requests[side].get(method)
            params = without_nulls(META if spec is None else spec.params_optional, params)
            breach = judge_request(
                conversation, side, method, spec, params, self._core.checks_shape
            )
            if breach is not None and not breach.tolerated:
                raise breach.error()
            if self._core.payloads is not None:
                revision = conversation.dialect.revision
                self._core.payloads.check_params(method, params, None, revision)
            bodies[name] = method, self._core.encode_object(params, None) if params else b""
        if len(self._outgoing.calls) + len(bodies) > self._core.config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self._outgoing.calls)} requests are in flight, near the limit"
            )
        return bodies

    def _bridge(
        self,
        request: IncomingRequest,
        bodies: dict[str, tuple[str, bytes]],
        state: str | None,
        timeout: float | None,
    ) -> None:
        """Send each question as a request, and replace the request by that of the next round."""
        params = {
            name: value for name, value in request._params.items() if name not in INPUT_MEMBERS
        }
        if state is not None:
            params["requestState"] = state
        renewed = IncomingRequest(
            request._id,
            request._key,
            request._method,
            params,
            request._spec,
            request._peer,
            request._route,
            request._batch,
        )
        renewed._token, renewed._progress = request._token, request._progress
        renewed._progress_at, renewed._task = request._progress_at, request._task
        renewed._rounds = request._rounds + 1
        renewed._held_bytes = request._held_bytes
        renewed.data = request.data
        request._state = _ANSWERED
        self._incoming.requests[request._key] = renewed
        bridge = renewed._bridge = BridgedQuestions(request, renewed)
        for name, (method, body) in bodies.items():
            call = self._outgoing.send_own(
                method, body, Purpose.QUESTION, self, bridge, timeout, route=request._route
            )
            bridge.pending[call] = name
        self._deliver_if_complete(bridge)

    def _deliver_if_complete(self, bridge: BridgedQuestions) -> None:
        """Deliver the request of the next round when all questions are answered."""
        if bridge.pending:
            return
        renewed = bridge.renewed
        renewed._bridge = None
        if bridge.responses:
            renewed._params["inputResponses"] = bridge.responses
        self._core.events.append(RequestReceived(request=renewed))
