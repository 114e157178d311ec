"""The intake of requests: each new request of the peer is judged, then delivered or refused.

This is the way of a request until it is open. Afterwards it belongs to `incoming`, which has the
table of open requests and sends the responses.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.conversation import Conversation
from .._rules.messages import (
    BAD_REQUEST_ID,
    NULL_PARAMS,
    judge_inputs,
    judge_request_or_notification,
    null_member,
    token_in,
    token_in_use,
)
from .._rules.request_meta import OPTIONAL, PROTOCOL_VERSION, Envelope, read_envelope
from .._rules.sending import NULLS, Breach, judge_request, null_members
from .._rules.state_tables import Phase
from .._spec.errors import ErrorCode
from .._spec.methods import META, Method
from .._spec.modern_methods import MODERN_DIALECT
from .._spec.registry import KNOWN_METHODS
from .._wire.values import (
    GREATEST_OWN_HASH,
    LEAST_OWN_HASH,
    MISSING,
    IdKey,
    JSONObject,
    RequestKey,
    Side,
    is_object,
    table_key,
)
from .core import Core
from .events import (
    Ready,
    RequestReceived,
)
from .handles import Batch, IncomingRequest, Route
from .incoming import IncomingRequests
from .input_required.request_state import BadSeal, digest_of, unseal
from .outgoing import OutgoingRequests

_CLIENT: Final = Side.CLIENT
_OPERATING: Final = Phase.OPERATING
BAD_STATE: Final = "requestState is not valid"
"""The error message for a bad seal. It gives no cause, so that a forger learns nothing."""


class Intake:
    """Judges each request of the peer once, then delivers, answers or refuses it.

    Attributes:
        envelope: The envelope (`_meta`) of the last modern request, since the next one often has an
            equal one; None before the first.
    """

    __slots__ = ("_core", "_incoming", "_outgoing", "envelope")

    def __init__(self, core: Core, outgoing: OutgoingRequests, incoming: IncomingRequests) -> None:
        self._core = core
        self._outgoing = outgoing
        self._incoming = incoming
        self.envelope: Envelope | None = None

    def receive_request(
        self, message: JSONObject, method: str, route: Route | None, batch: Batch | None
    ) -> None:
        """Judge a request, then deliver, answer or refuse it.

        The order of the steps decides which breach is reported, and with which id and revision the
        error goes out. The comments in the code have the same numbers.

        1. A request of a server to a client of 2026-07-28 is reported and dropped.
        2. A request without a usable id, or with the id of an open request, gets no response of
           its own: `refuse_unreadable`, `refuse_duplicate`.
        3. The JSON-RPC envelope is judged.
        4. The conversation is found: modern by the envelope in `_meta`, else legacy; and the peer.
        5. The method is judged in this conversation (`judge_request`), then its progress token.
        6. The request is open: `_open` adds it to the tables, and notes the use of its id.
        7. The first breach of steps 3 to 5 is answered, or reported if it is tolerated.
        8. `_accepts_extras` notes the task or the answers that the request brings, or refuses it.
        9. Over the limit it is refused. Else a part answers it, or the application gets it.

        Keeps JSON-002.

        Args:
            message: The message, an object with `method` and `id`.
            method: The method name.
            route: The way of the response; None on a byte stream.
            batch: The batch that the request is part of.
        """
        # 1. Who may send requests.
        conversation, peer = self._core.conversation, self._core.peer
        if conversation.dialect.is_modern and self._core.side is _CLIENT:
            self._core.report(Breach("STATE-006", f"the server sent the request {method[:80]}"))
            return
        # 2. The id and its key in the table of open requests.
        raw: Any = message["id"]
        id: IdKey | None
        if (type(raw) is int and LEAST_OWN_HASH <= raw <= GREATEST_OWN_HASH) or type(raw) is str:
            id = raw
        else:
            id = table_key(raw)
        if id is None:
            self._incoming.refuse_unreadable(BAD_REQUEST_ID, route, batch=batch)
            return
        key: RequestKey = (route, id) if self._core.is_shared else id
        if key in self._incoming.requests:
            is_modern = self._core.modern is not None and self._is_modern_request(message)
            self._incoming.refuse_duplicate(raw, route, batch, "ID-002" if is_modern else "ID-001")
            return
        # 3. The JSON-RPC envelope.
        given: Any = message.get("params", MISSING)
        breach: Breach | None = None
        params: JSONObject = given if given.__class__ is dict else {}
        if (
            params is not given
            or message.get("jsonrpc") != "2.0"
            or "result" in message
            or "error" in message
        ):
            breach = judge_request_or_notification(message)
        # 4. The conversation: legacy, or modern by the envelope in `_meta`; and the sender.
        is_modern = False
        if self._core.modern is not None and (
            "_meta" in params
            or conversation.phase is not _OPERATING
            or not self._core.legacy_revisions
        ):
            envelope = self._envelope_of(method, params)
            if envelope is not None:
                conversation, is_modern = self._core.modern, True
                if isinstance(envelope, Envelope):
                    peer = envelope.peer
                else:
                    breach = breach or envelope
        if self._core.is_shared:
            given_by: Any = route
            principal = given_by.principal
            if principal is not None and principal is not peer.principal:
                peer = peer._as(principal, given_by.principal_key)
        # 5. The rules of the method in this conversation.
        sender = self._core.other
        spec = conversation.dialect.requests[sender].get(method)
        request = IncomingRequest(raw, key, method, params, spec, peer, route, batch)
        request._is_modern = is_modern
        if breach is None:
            breach = judge_request(
                conversation, sender, method, spec, params, self._core.checks_shape
            )
            if breach is NULLS or (
                (spec is None or not self._core.checks_shape) and None in params.values()
            ):
                for name in null_members(META if spec is None else spec.params_optional, params):
                    del params[name]
                    self._core.report(null_member(name), request=request)
                breach = judge_request(
                    conversation, sender, method, spec, params, self._core.checks_shape
                )
            if self._core.payloads is not None and (breach is None or breach.tolerated):
                revision = conversation.dialect.revision
                wrong = self._core.payloads.judge_params(method, params, revision)
                if breach is not None and wrong is not None:
                    self._core.report(breach, request=request)
                breach = wrong or breach
            if breach is not None:
                if self._delivers_undeclared(breach):
                    request._spec = spec = breach = None
                elif self._core.modern is None and not breach.tolerated:
                    breach = self._with_legacy_hint(breach, params)
            if (meta := params.get("_meta")) is not None and (breach is None or breach.tolerated):
                if breach is not None:
                    self._core.report(breach, request=request)
                if meta.__class__ is not dict or "progressToken" in meta:
                    breach = self._judge_meta(request, meta)
                else:
                    breach = None
        # 6. The request is open from here on.
        self._open(request, id, batch)
        # 7. The breach of an earlier step.
        if given is None:
            self._core.report(NULL_PARAMS, request=request)
        if breach is not None:
            if not breach.tolerated:
                if (method == "server/discover" and self._core.modern is None) or (
                    method == "initialize" and not self._core.legacy_revisions
                ):  # a probe by a client of the other era is no breach
                    self._incoming.refuse(request, breach.code, breach.text, breach.data)
                else:
                    self._incoming.refuse_breach(request, breach)
                return
            self._core.report(breach, request=request)
        # 8. What the request brings besides its params.
        if (
            spec is None or spec.allows_questions or spec.task_gate is not None
        ) and not self._accepts_extras(request, spec, conversation):
            return
        # 9. Deliver the request, or let a part answer it.
        n_open, limit = len(self._incoming.requests), self._core.config.max_requests
        if n_open > limit and not self._is_automatic_ping(method):
            self._incoming.refuse_for_limit(request)
        elif spec is None or not spec.has_part or not self._answer_by_part(request):
            self._core.events.append(RequestReceived(request=request))
            if self._core.side is _CLIENT:
                self._outgoing.pause_timeouts()

    def judge_seal(self, request: IncomingRequest, at: float) -> Breach | None:
        """Return the breach if the seal of a state is not valid; else keep the state."""
        state: Any = request._params["requestState"]
        try:
            request._opened = unseal(state, request, self._core.config.state_keys, at=at)
        except BadSeal as bad:
            return Breach("MRTR-013", f"requestState: {bad}", ErrorCode.INVALID_PARAMS)
        return None

    # ---------------------------------------------------------- helpers, in the order of their use

    def _is_modern_request(self, message: JSONObject) -> bool:
        """Whether a request is modern: its `_meta` has a revision, or the server is modern only."""
        params: Any = message.get("params")
        meta: Any = params.get("_meta") if is_object(params) else None
        return not self._core.legacy_revisions or (is_object(meta) and PROTOCOL_VERSION in meta)

    def _envelope_of(self, method: str, params: JSONObject) -> Envelope | Breach | None:
        """Return the envelope in `_meta`, or the breach if it is not valid; None if it is legacy.

        Keeps LIFE-012.
        """
        meta: Any = params.get("_meta")
        if (
            meta.__class__ is dict
            and PROTOCOL_VERSION in meta
            # `initialize` asks for a handshake, whatever is in its `_meta` (VER-012). On a shared
            # connection the route has decided already.
            and (method != "initialize" or not self._core.legacy_revisions or self._core.is_shared)
        ):
            envelope = self.envelope
            try:
                if envelope is not None and meta == envelope.meta:
                    return envelope
                for name in null_members(OPTIONAL, meta):
                    del meta[name]
                    self._core.report(null_member(name))
                if envelope is not None and envelope.matches(meta):
                    return envelope
                read = read_envelope(meta, self._core.modern_revisions, self._core.checks_shape)
            except RecursionError:
                text = "_meta is nested too deep"
                return Breach("OWN-002", text, ErrorCode.INVALID_PARAMS)
            if isinstance(read, Breach):
                return self._with_supported_revisions(read, meta[PROTOCOL_VERSION])
            read.peer.principal = self._core.peer.principal
            read.peer.principal_key = self._core.peer.principal_key
            if self.envelope is None and not self._core.is_shared:
                self._core.events.append(Ready(revision=read.version, peer=read.peer))
            read.peer.capabilities = self._core.accept_capabilities(read.version, read.capabilities)
            self.envelope = read
            return read
        if not self._core.legacy_revisions:
            speaks = f"this server speaks {', '.join(self._core.modern_revisions)} only"
            if method in KNOWN_METHODS and method not in MODERN_DIALECT.requests[Side.CLIENT]:
                return Breach(
                    "LIFE-011",
                    f"{method} does not exist; {speaks}, which has no handshake",
                    ErrorCode.METHOD_NOT_FOUND,
                    data={"supported": list(self._core.modern_revisions)},
                )
            text = f"{method[:80]} lacks {PROTOCOL_VERSION} in _meta; {speaks}"
        elif self._core.conversation.phase is Phase.NEW and (
            self._core.is_shared or method not in ("initialize", "ping")
        ):
            text = f"{method[:80]} came without {PROTOCOL_VERSION} in _meta, and before initialize"
        else:
            return None
        return Breach("META-010", text, ErrorCode.INVALID_PARAMS)

    def _with_supported_revisions(self, breach: Breach, requested: object) -> Breach:
        """The breach with `supported` and `requested` in the data of its error (VER-008).

        Keeps VER-008.
        """
        if breach.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            return breach
        supported = list(reversed(self._core.revisions))
        return attrs.evolve(breach, data={"supported": supported, "requested": requested})

    def _delivers_undeclared(self, breach: Breach) -> bool:
        """Whether a request for an undeclared method is delivered like one for an unknown method.

        A gateway sets `Config.unknown_methods` so.
        """
        return (
            breach.code == ErrorCode.METHOD_NOT_FOUND
            and self._core.config.unknown_methods == "deliver"
        )

    def _with_legacy_hint(self, breach: Breach, params: JSONObject) -> Breach:
        """The breach with the revisions of a legacy server in its text, for a modern client."""
        meta: Any = params.get("_meta")
        if self._core.side is Side.CLIENT or not is_object(meta) or PROTOCOL_VERSION not in meta:
            return breach
        speaks = ", ".join(reversed(self._core.legacy_revisions))
        return attrs.evolve(breach, text=f"{breach.text}; this server speaks {speaks} only")

    def _judge_meta(self, request: IncomingRequest, meta: object) -> Breach | None:
        """Return the breach if the progress token is not valid; else keep it, and return None."""
        token = token_in(meta)
        if token is None or isinstance(token, Breach):
            return token
        if not self._core.is_shared:
            key: Any = table_key(token)
            if key in self._incoming.tokens:
                return token_in_use(token)
            self._incoming.tokens[key] = None
        request._token = token
        return None

    def _open(self, request: IncomingRequest, id: IdKey, batch: Batch | None) -> None:
        """Add a request to the table of open requests, and note the use of its id.

        The reuse of an id is reported (ID-001, ID-002); the request is served all the same.

        Args:
            request: The request.
            id: Its id in the form that tables of ids have.
            batch: The batch that the request is part of.
        """
        incoming, raw = self._incoming, request._id
        incoming.requests[request._key] = request
        if batch is not None:
            incoming.join_batch(batch, raw)
        used = incoming.used_ids
        if request._is_modern:  # an id may be used again after its response
            if incoming.cancelled_ids.discard(id):
                text = f"the id {raw!r} is that of a cancelled request, which gets no response"
                self._core.report(Breach("ID-002", text, tolerated=True), request=request)
        elif self._core.is_shared:
            pass  # many clients use the same ids
        elif id == used.expected:
            used.expected += 1
        elif used.add(id):
            self._core.report(
                Breach("ID-001", f"the id {raw!r} was used before", tolerated=True),
                request=request,
            )
        elif used.forgotten:
            incoming.report_forgotten_id()

    def _accepts_extras(
        self, request: IncomingRequest, spec: Method | None, conversation: Conversation
    ) -> bool:
        """Note the task that a request wants to be, or the answers and the state that it brings.

        Returns:
            Whether the request goes on; False: it was refused, also as an unknown method.
        """
        params = request._params
        if spec is None:
            if self._core.config.unknown_methods == "refuse":
                text = f"unknown method {request._method}"
                self._incoming.refuse(request, ErrorCode.METHOD_NOT_FOUND, text)
                return False
        elif spec.task_gate is not None:
            if "task" in params:
                request._task = spec.task_gate in conversation.gates[self._core.side]
            if (owner := self._incoming.task_owner) is not None:
                return owner.judge_call(request)
        else:
            if ("inputResponses" in params or "requestState" in params) and (
                breach := judge_inputs(params)
            ) is not None:
                self._incoming.refuse_breach(request, breach)
                return False
            owner = self._incoming.task_owner
            if owner is not None and not owner.judge_call(request):
                return False
            if self._core.config.state_keys and request._is_modern:
                return self._accepts_state(request)
        return True

    def _accepts_state(self, request: IncomingRequest) -> bool:
        """Prepare the seal of the next state of a request, and open that of the state it brings."""
        params = request._params
        try:
            request._digest = digest_of(params)
        except RecursionError:
            text = "params are nested too deep"
            breach = Breach("OWN-002", text, ErrorCode.INVALID_PARAMS)
            self._incoming.refuse_breach(request, breach)
            return False
        if (
            self._core.at is not None
            and "requestState" in params
            and (found := self.judge_seal(request, self._core.at)) is not None
        ):
            self._incoming.refuse_breach(request, found, BAD_STATE)
            return False
        return True

    def _is_automatic_ping(self, method: str) -> bool:
        """Whether the method is a ping that the library answers, even at the limit of requests."""
        return method == "ping" and "ping" not in self._core.config.manual

    def _answer_by_part(self, request: IncomingRequest) -> bool:
        """Whether a part of the connection has answered or refused this request."""
        part = self._incoming.part_of(request)
        return part is not None and part.take(request)
