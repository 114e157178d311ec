"""Requests that the server answers with questions (`input_required`): the client's side.

Source: MCP 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._rules.messages import judge_input_required, null_member
from ..._rules.request_meta import LIBRARY_KEYS
from ..._rules.sending import (
    Breach,
    judge_question,
    question_without_nulls,
    result_shape_breach,
    without_nulls,
)
from ..._rules.state_tables import State
from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_flag
from ..._wire.values import JSONObject, ProgressToken, is_object
from ..core import Core
from ..events import FailureReason, InputRequired, RequestFailed
from ..handles import OutgoingRequest, Purpose, TaskFollowing
from ..incoming_responses import invalid
from ..modern_messages import ModernMessages
from ..outgoing import Outcome, OutgoingRequests

_EMPTY: JSONObject = {}
_ALIEN = frozenset({"id", "jsonrpc", "resultType"})


class InputRequiredClient:
    """Judges results with questions, and sends a request again with the answers."""

    __slots__ = ("_core", "_messages", "_outgoing")

    def __init__(self, core: Core, messages: ModernMessages, outgoing: OutgoingRequests) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing

    def provide(
        self,
        call: OutgoingRequest,
        responses: Mapping[str, JSONObject],
        meta: JSONObject | None,
        log_level: str | None,
        progress: bool,
        timeout: float | None,
        max_timeout: float | None,
        data: Any,
        now: float | None,
    ) -> OutgoingRequest:
        """Send a request again with the answers to the questions of the server."""
        check_flag("progress", progress)
        self._core.check_open(call.method)
        asked = call._asked
        if asked is None or call._body is None:
            raise LocalProtocolError("OWN-022", f"nothing is asked about {call!r}")
        if timeout is not None or max_timeout is not None:
            self._outgoing.check_timeouts(timeout, max_timeout, now)
        questions, state, peer = asked
        if peer is not self._core.peer:
            raise LocalProtocolError("OWN-022", f"{call!r} belongs to another connection")
        responses = self.checked_responses(questions, responses)
        self._outgoing.check_room()
        if log_level is not None:
            meta = self._messages.with_level(meta, log_level)
        bare = self._with_meta(call._body, meta) if meta else call._body
        key = self._outgoing.last_id + 1
        renewed = OutgoingRequest(
            key, call._method, call._spec, Purpose.APPLICATION, self._outgoing, None
        )
        renewed._token = self._outgoing.requested_token(_EMPTY, meta)
        if renewed._token is None and progress:
            renewed._token = self._outgoing.unused_token(key)
        body = self._renewed_body(bare, renewed._token, responses, state)
        message = self._outgoing.request_bytes(key, call._method, call._spec, body)
        self._core.check_size(message, call._method)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._core.tell(now)
        call._asked = call._body = None
        renewed._is_modern = True
        renewed._body = bare
        renewed._rounds = call._rounds
        renewed._route = call._route
        if call._following is not None:
            renewed._following = TaskFollowing(renewed)
        renewed.data = data
        if renewed._token is not None:
            self._outgoing.tokens[renewed._token] = renewed
        self._outgoing.launch(renewed, message, timeout, max_timeout)
        if self._core.needs_settle:
            self._core.settle()
        return renewed

    def receive_questions(
        self, call: OutgoingRequest, result: JSONObject
    ) -> tuple[Outcome | InputRequired | None, Breach | None]:
        """Handle a result with questions or a state.

        Keeps OWN-027.

        Returns:
            The outcome, and the breach of the result, if any. Without an outcome the request was
            sent again (the server has asked no question) and stays open.
        """
        breach = self._judge_questions(call, result)
        if breach is not None:
            return invalid(call, breach, result), breach
        if call._rounds >= self._core.config.max_input_rounds:
            text = f"{call._method} was answered with questions {call._rounds} times"
            reason = FailureReason.TOO_MANY_ROUNDS
            return RequestFailed(request=call, reason=reason, text=text), None
        call._rounds += 1
        questions: Any = result.get("inputRequests") or {}
        state: Any = result.get("requestState")
        if not questions:
            if self._core.state is State.OPEN:
                self._ask_again(call, state)
                return None, None
            text = f"the server asked to send {call._method} again, but sending has failed"
            return RequestFailed(request=call, reason=FailureReason.LOST, text=text), None
        asked = {name: question["method"] for name, question in questions.items()}
        call._asked = asked, state, self._core.peer
        return InputRequired(request=call, questions=questions), None

    def checked_responses(
        self, questions: Mapping[str, str], responses: Mapping[str, JSONObject]
    ) -> dict[str, JSONObject]:
        """The answers without null members; raises `LocalProtocolError` if one is not valid.

        Keeps MRTR-017.
        """
        checked: dict[str, JSONObject] = {}
        if not isinstance(responses, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"answers are a mapping, not {responses!r:.40}")
        for name, method in questions.items():
            given = responses.get(name)
            if given is None:
                raise LocalProtocolError("MRTR-019", f"the answer to {name!r} is missing")
            spec = self._core.conversation.dialect.inputs[method]
            if not is_object(given):
                raise LocalProtocolError("MRTR-020", f"the answer to {name!r} is no object")
            if alien := _ALIEN & given.keys():
                text = f"the answer to {name!r} must be a bare result, without {min(alien)}"
                raise LocalProtocolError("MRTR-020", text)
            given = without_nulls(spec.result_optional, given)
            wrong = result_shape_breach(spec, False, given)
            if wrong is not None and self._core.checks_shape:
                raise LocalProtocolError("MRTR-020", f"the answer to {name!r}: {wrong}")
            if self._core.payloads is not None:
                revision = self._core.conversation.dialect.revision
                self._core.payloads.check_result(method, given, None, revision)
            checked[name] = given
        if unknown := responses.keys() - questions.keys():
            raise LocalProtocolError("MRTR-019", f"{min(unknown, key=str)!r} was not asked")
        return checked

    def _with_meta(self, body: bytes, meta: JSONObject) -> bytes:
        """The params of the round before, with members of `meta` in their `_meta`."""
        params: Any = self._core.codec.decode(body)
        params["_meta"] = {
            name: value for name, value in params["_meta"].items() if name not in LIBRARY_KEYS
        }
        return self._messages.with_envelope(params, meta)

    def _renewed_body(
        self,
        body: bytes,
        token: ProgressToken | None,
        responses: dict[str, JSONObject],
        state: str | None,
    ) -> bytes:
        """Encoded params with progress token, answers and state.

        Keeps MRTR-021, MRTR-022, MRTR-024.
        """
        if token is not None:
            body = self._messages.with_token(body, token)
        if responses:
            body = b'%b,"inputResponses":%b}' % (body[:-1], self._core.encode(responses))
        if state is not None:
            body = b'%b,"requestState":%b}' % (body[:-1], self._core.encode(state))
        return body

    def _judge_questions(self, call: OutgoingRequest, result: JSONObject) -> Breach | None:
        """Return the breach if a result with questions is not valid; else None.

        A tolerated breach is reported here.
        """
        if call._spec is None or not call._spec.allows_questions:
            return Breach("MRTR-003", f"{call._method} was answered with questions")
        if call._body is None:
            return Breach(
                "MRTR-026",
                f"{call._method} was sent with inputResponses or requestState of the application",
            )
        breach = judge_input_required(result)
        if breach is not None:
            return breach
        conversation = self._core.conversation
        gates = conversation.gates[self._core.side]
        questions: Any = result.get("inputRequests", {})
        for key, question in questions.items():
            if is_object(question):
                question, nulls = question_without_nulls(conversation.dialect, question)
                questions[key] = question
                for name in nulls:
                    self._core.report(null_member(name), request=call)
            breach = judge_question(conversation.dialect, gates, question, self._core.checks_shape)
            if breach is not None:
                if not breach.tolerated:
                    return breach
                self._core.report(breach, request=call)
            if self._core.payloads is not None:
                breach = self._core.payloads.judge_params(
                    question["method"], question.get("params", {}), conversation.dialect.revision
                )
                if breach is not None:
                    if not breach.tolerated:
                        return breach
                    self._core.report(breach, request=call)
        return None

    def _ask_again(self, call: OutgoingRequest, state: str) -> None:
        """Send a request again under a new id, with the state alone; the handle stays the same.

        Keeps MRTR-018.
        """
        assert call._body is not None  # `_judge_questions` has checked it
        body = self._renewed_body(call._body, call._token, {}, state)
        call._progress = None  # the server may count progress from the start again
        del self._outgoing.calls[call._id]
        self._outgoing.last_id += 1
        call._id = self._outgoing.last_id
        self._outgoing.calls[call._id] = call
        self._outgoing.sent += 1
        call._order = self._outgoing.sent
        self._outgoing.note_activity(call)
        message = self._outgoing.request_bytes(call._id, call._method, call._spec, body)
        self._outgoing.queue_request(call, message)
