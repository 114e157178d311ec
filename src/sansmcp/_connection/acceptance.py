"""Requests that come in: accepted, refused with an error, or cancelled by the peer."""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.messages import (
    BAD_REQUEST_ID,
    NULL_PARAMS,
    judge_call,
    judge_cancellation,
    judge_inputs,
    null_member,
    token_in,
    token_in_use,
)
from .._rules.request_meta import OPTIONAL, PROTOCOL_VERSION, Envelope, read_envelope
from .._rules.sending import NULLS, Breach, judge_request, null_members
from .._rules.state_tables import Phase, State
from .._spec.errors import ErrorCode
from .._spec.methods import META
from .._spec.modern_methods import MODERN_DIALECT
from .._spec.registry import KNOWN_METHODS
from .._wire.values import (
    GREATEST_OWN_HASH,
    LEAST_OWN_HASH,
    MISSING,
    IdKey,
    JSONObject,
    RequestId,
    RequestKey,
    Side,
    is_object,
    table_key,
)
from .events import (
    CancelCause,
    LimitReached,
    MessageIgnored,
    Ready,
    RequestAnswered,
    RequestReceived,
)
from .handles import Batch, IncomingRequest, Route
from .incoming import Answering
from .request_state import BadSeal, digest_of, unseal

_CLIENT: Final = Side.CLIENT
_OPERATING: Final = Phase.OPERATING
BAD_STATE: Final = "requestState is not valid"
"""What a client is told of a bad seal, whatever the cause: a forger learns nothing from it."""
_TEXT_CHARACTERS: Final = 300
"""An error message is one sentence, however long the method is that it quotes (JSON-016)."""


class Accepting(Answering):
    """Judges each request once, and files it or refuses it."""

    __slots__ = ("_by_route", "_envelope")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Many clients share this machine: ids and tokens mean something on their route only.
        self._by_route = False
        self._envelope: Envelope | None = None  # the last one read: the next is often the same

    # ----------------------------------------------------------------------------- receiving

    def _receive_request(
        self, message: JSONObject, method: str, route: Route | None, batch: Batch | None
    ) -> None:
        conversation, peer = self._conversation, self._peer
        if conversation.dialect.is_modern and self._side is _CLIENT:
            self._report(Breach("STATE-006", f"the server sent the request {method[:80]}"))
            return
        raw: Any = message["id"]
        id: IdKey | None
        if (type(raw) is int and LEAST_OWN_HASH <= raw <= GREATEST_OWN_HASH) or type(raw) is str:
            id = raw
        else:
            id = table_key(raw)
        if id is None:
            self._refuse_unreadable(BAD_REQUEST_ID, route, batch=batch)
            return
        key: RequestKey = (route, id) if self._by_route else id
        if key in self._incoming:
            is_modern = self._modern is not None and self._names_revision(message)
            self._refuse_duplicate(raw, route, batch, "ID-002" if is_modern else "ID-001")
            return
        given: Any = message.get("params", MISSING)
        breach: Breach | None = None
        params: JSONObject = given if given.__class__ is dict else {}
        if (
            params is not given
            or message.get("jsonrpc") != "2.0"
            or "result" in message
            or "error" in message
        ):
            breach = judge_call(message)
        is_modern = False
        if self._modern is not None and (
            "_meta" in params or conversation.phase is not _OPERATING or not self._legacy_revisions
        ):
            envelope = self._envelope_of(method, params)
            if envelope is not None:
                conversation, is_modern = self._modern, True
                if isinstance(envelope, Envelope):
                    peer = envelope.peer
                else:
                    breach = breach or envelope
        if self._by_route:
            given_by: Any = route
            principal = given_by.principal
            if principal is not None and principal is not peer.principal:
                peer = peer._as(principal, given_by.principal_key)
        sender = self._other
        spec = conversation.dialect.requests[sender].get(method)
        request = IncomingRequest(raw, key, method, params, spec, peer, route, batch)
        request._is_modern = is_modern
        if breach is None:
            breach = judge_request(conversation, sender, method, spec, params, self._shape)
            if breach is NULLS or ((spec is None or not self._shape) and None in params.values()):
                for name in null_members(META if spec is None else spec.params_optional, params):
                    del params[name]
                    self._report(null_member(name), request=request)
                breach = judge_request(conversation, sender, method, spec, params, self._shape)
            if breach is not None:
                if self._is_for_gateway(breach):
                    request._spec = spec = breach = None
                elif self._modern is None and not breach.tolerated:
                    breach = self._naming_era(breach, params)
            if (meta := params.get("_meta")) is not None and (breach is None or breach.tolerated):
                if breach is not None:
                    self._report(breach, request=request)
                if meta.__class__ is not dict or "progressToken" in meta:
                    breach = self._judge_meta(request, meta)
                else:
                    breach = None
        self._incoming[key] = request
        if batch is not None:
            self._join_batch(batch, raw)
        used = self._used
        if is_modern:  # an id may be used again once it is answered
            if self._unanswered.discard(id):
                text = f"the id {raw!r} is that of a cancelled request, which has no answer"
                self._report(Breach("ID-002", text, tolerated=True), request=request)
        elif self._by_route:
            pass  # many clients use the same ids
        elif id == used.expected:
            used.expected += 1
        elif used.add(id):
            self._report(
                Breach("ID-001", f"the id {raw!r} was used before", tolerated=True),
                request=request,
            )
        elif used.forgotten:
            self._tell_forgotten()
        if given is None:
            self._report(NULL_PARAMS, request=request)
        if breach is not None:
            if not breach.tolerated:
                if (method == "server/discover" and self._modern is None) or (
                    method == "initialize" and not self._legacy_revisions
                ):  # to ask is no breach
                    self._refuse(request, breach.code, breach.text, breach.data)
                else:
                    self._refuse_breach(request, breach)
                return
            self._report(breach, request=request)
        if spec is None or spec.task_gate is not None:
            if spec is None and self._config.unknown_methods == "refuse":
                self._refuse(request, ErrorCode.METHOD_NOT_FOUND, f"unknown method {method}")
                return
            if spec is not None and "task" in params:
                request._task = spec.task_gate in conversation.gates[self._side]
        elif spec.asks:
            if ("inputResponses" in params or "requestState" in params) and (
                breach := judge_inputs(params)
            ) is not None:
                self._refuse_breach(request, breach)
                return
            if self._config.state_keys and is_modern:
                try:
                    request._digest = digest_of(params)
                except RecursionError:
                    text = "params are nested too deep"
                    breach = Breach("OWN-002", text, ErrorCode.INVALID_PARAMS)
                    self._refuse_breach(request, breach)
                    return
                if (
                    self._at is not None
                    and "requestState" in params
                    and (breach := self._judge_seal(request, self._at)) is not None
                ):
                    self._refuse_breach(request, breach, BAD_STATE)
                    return
        if len(self._incoming) > self._config.max_requests and not self._is_own_ping(method):
            self._refuse_for_limit(request)
        elif spec is None or not spec.special or not self._handled(request):
            self._events.append(RequestReceived(request=request))
            if self._side is _CLIENT:
                self._peer_waits()

    def _judge_seal(self, request: IncomingRequest, at: float) -> Breach | None:
        """What is wrong with the seal of a state; a good one is opened."""
        state: Any = request._params["requestState"]
        try:
            request._opened = unseal(state, request, self._config.state_keys, at=at)
        except BadSeal as bad:
            return Breach("MRTR-013", f"requestState: {bad}", ErrorCode.INVALID_PARAMS)
        return None

    def _tell_forgotten(self) -> None:
        """Say once that an id of the peer was forgotten."""
        if not self._told_forgotten:
            self._told_forgotten = True
            text = "the oldest id of the peer was forgotten; forgotten_ids counts on"
            self._events.append(LimitReached(rule="OWN-007", text=text))

    def _envelope_of(self, method: str, params: JSONObject) -> Envelope | Breach | None:
        """What a request says of its sender; None where the handshake has said it."""
        meta: Any = params.get("_meta")
        if (
            meta.__class__ is dict
            and PROTOCOL_VERSION in meta
            # That method alone asks for a handshake, whatever else is in its `_meta` (VER-012);
            # by the route it is known whether it can.
            and (method != "initialize" or not self._legacy_revisions or self._by_route)
        ):
            envelope = self._envelope
            try:
                if envelope is not None and meta == envelope.meta:
                    return envelope
                for name in null_members(OPTIONAL, meta):
                    del meta[name]
                    self._report(null_member(name))
                if envelope is not None and envelope.says(meta):
                    return envelope
                read = read_envelope(meta, self._modern_revisions, self._shape)
            except RecursionError:
                text = "_meta is nested too deep"
                return Breach("OWN-002", text, ErrorCode.INVALID_PARAMS)
            if isinstance(read, Breach):
                return self._naming_revisions(read, meta[PROTOCOL_VERSION])
            read.peer.principal = self._peer.principal
            read.peer.principal_key = self._peer.principal_key
            if self._envelope is None and not self._by_route:
                self._events.append(Ready(revision=read.version, peer=read.peer))
            read.peer.capabilities = self._declared(read.version, read.capabilities)
            self._envelope = read
            return read
        if not self._legacy_revisions:
            speaks = f"this server speaks {', '.join(self._modern_revisions)} only"
            if method in KNOWN_METHODS and method not in MODERN_DIALECT.requests[Side.CLIENT]:
                return Breach(
                    "LIFE-011",
                    f"{method} does not exist; {speaks}, which has no handshake",
                    ErrorCode.METHOD_NOT_FOUND,
                    data={"supported": list(self._modern_revisions)},
                )
            text = f"{method[:80]} lacks {PROTOCOL_VERSION} in _meta; {speaks}"
        elif self._conversation.phase is Phase.NEW and (
            self._by_route or method not in ("initialize", "ping")
        ):
            text = f"{method[:80]} came without {PROTOCOL_VERSION} in _meta, and before initialize"
        else:
            return None
        return Breach("META-010", text, ErrorCode.INVALID_PARAMS)

    def _naming_revisions(self, breach: Breach, requested: object) -> Breach:
        if breach.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            return breach
        supported = list(reversed(self._revisions))
        return attrs.evolve(breach, data={"supported": supported, "requested": requested})

    def _naming_era(self, breach: Breach, params: JSONObject) -> Breach:
        """A server that knows handshakes only says so to a client that knows none."""
        meta: Any = params.get("_meta")
        if self._side is Side.CLIENT or not is_object(meta) or PROTOCOL_VERSION not in meta:
            return breach
        speaks = ", ".join(reversed(self._legacy_revisions))
        return attrs.evolve(breach, text=f"{breach.text}; this server speaks {speaks} only")

    def _is_for_gateway(self, breach: Breach) -> bool:
        """Whether an undeclared method is delivered, as one of which nothing is known."""
        return (
            breach.code == ErrorCode.METHOD_NOT_FOUND and self._config.unknown_methods == "deliver"
        )

    def _is_own_ping(self, method: str) -> bool:
        """Whether this is a ping that is answered at once, however much else is in flight."""
        return method == "ping" and "ping" not in self._config.manual

    def _judge_meta(self, request: IncomingRequest, meta: object) -> Breach | None:
        token = token_in(meta)
        if token is None or isinstance(token, Breach):
            return token
        if not self._by_route:
            key: Any = table_key(token)
            if key in self._peer_tokens:
                return token_in_use(token)
            self._peer_tokens.add(key)
        request._token = token
        return None

    def _handled(self, request: IncomingRequest) -> bool:
        """Whether the core answers this request by itself. Layers above add methods."""
        if self._is_own_ping(request._method):
            self._answer_self(request, b"{}")
            return True
        return False

    def _answer_self(self, request: IncomingRequest, body: bytes) -> None:
        self._events.append(RequestAnswered(request=request))
        self._answer(request, b'"result":', body)

    # ------------------------------------------------------------------------------ refusing

    def _refuse_duplicate(
        self, raw: RequestId, route: Route | None, batch: Batch | None, rule: str
    ) -> None:
        """An error would answer the first request of that id: nothing can be sent."""
        text = f"a second request with the id {raw!r} while one is in flight"
        self._report(Breach(rule, text))

    def _names_revision(self, message: JSONObject) -> bool:
        """Whether a request is one of the modern revision: it says so, or there is no other."""
        params: Any = message.get("params")
        meta: Any = params.get("_meta") if is_object(params) else None
        return not self._legacy_revisions or (is_object(meta) and PROTOCOL_VERSION in meta)

    def _refuse(self, request: IncomingRequest, code: int, text: str, data: Any = MISSING) -> None:
        self._events.append(RequestAnswered(request=request, code=code))
        self._answer(request, b'"error":', self._error_bytes(code, text[:_TEXT_CHARACTERS], data))

    def _refuse_breach(
        self, request: IncomingRequest, breach: Breach, said: str | None = None
    ) -> None:
        """Report a request that breaks a rule, and answer it with an error.

        Args:
            request: The request. Its id could be read.
            breach: The rule, and the error code and data of the answer.
            said: The message of the error; None: the text of the breach. For a text that the peer
                must not learn.
        """
        self._report(breach, request=request, code=breach.code)
        text = breach.text[:_TEXT_CHARACTERS] if said is None else said
        self._answer(request, b'"error":', self._error_bytes(breach.code, text, breach.data))

    def _refuse_for_limit(self, request: IncomingRequest) -> None:
        text = f"{self._config.max_requests} requests are in flight, which is the limit"
        self._events.append(LimitReached(rule="OWN-004", text=text))
        self._answer(
            request,
            b'"error":',
            self._error_bytes(
                ErrorCode.INTERNAL_ERROR, "too many requests in flight", {"reason": text}
            ),
        )

    def _refuse_unreadable(
        self,
        breach: Breach,
        route: Route | None,
        *,
        excerpt: bytes | None = None,
        raw_id: Any = None,
        batch: Batch | None = None,
    ) -> None:
        """Report something that is no message.

        A server answers it where the revision has a form for the answer: with the id if it could
        be read, else without one from 2025-11-25 on.
        """
        self._report(breach, excerpt=excerpt, code=breach.code)
        self._answer_unreadable(breach, route, raw_id=raw_id, batch=batch)

    def _answer_unreadable(
        self,
        breach: Breach,
        route: Route | None,
        *,
        raw_id: Any = None,
        batch: Batch | None = None,
    ) -> None:
        if self._side is Side.CLIENT or self._state is not State.OPEN:
            return
        body = self._error_bytes(breach.code, breach.text)
        key = table_key(raw_id)
        if key is not None:
            if key in self._incoming:
                return  # the error would answer that one
            answer = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self._encode(raw_id), body)
            if batch is not None:
                batch.answers.append(answer)
                batch.size += len(answer) + 1
                return
        elif self._dialect_of_unreadable().has_idless_errors and batch is None:
            answer = b'{"jsonrpc":"2.0","error":%b}' % body
        else:
            return
        self._queue(answer + self._newline, route)

    # -------------------------------------------------------------------------- cancellation

    def _receive_cancelled(self, params: JSONObject) -> None:
        breach = judge_cancellation(params, self._conversation.dialect)
        if breach is not None:
            self._report(breach)
            return
        raw: Any = params["requestId"]
        key = table_key(raw)
        assert key is not None  # it was judged
        reason: Any = params.get("reason")
        request = self._incoming.get(key)
        if request is None:
            self._ignore_cancel("CANC-013", "a cancellation of no request in flight", raw)
        elif request._method == "initialize":
            self._ignore_cancel("CANC-004", "a cancellation of initialize", raw)
        elif request._task:
            self._ignore_cancel("CANC-005", "a cancellation of a request for a task", raw)
        else:
            if request._is_modern:  # before, an id is used once, and `_used` has it
                self._unanswered.add(key)
                if self._unanswered.forgotten:
                    self._tell_forgotten()
            meta: Any = params.get("_meta")
            self._cancel_incoming(
                request,
                CancelCause.PEER,
                reason if isinstance(reason, str) else None,
                meta if is_object(meta) else None,
            )

    def _ignore_cancel(self, rule: str, text: str, raw: Any) -> None:
        self._events.append(
            MessageIgnored(rule=rule, text=text, method="notifications/cancelled", id=raw)
        )
