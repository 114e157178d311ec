"""Requests that this side sends: ids, timeouts, progress, cancellation, and their one ending."""

from __future__ import annotations

from math import inf
from typing import Any, Final

from .._rules.messages import token_in_use
from .._rules.sending import NULLS, judge_request, judge_task, refuse_to_ask, without_nulls
from .._rules.state_tables import REQUESTS, Phase, RequestState, RequestTrigger, State
from .._spec.errors import LocalProtocolError
from .._spec.methods import META, Method
from .._wire.setting_checks import check_flag, is_number
from .._wire.values import MISSING, IdKey, JSONObject, ProgressToken, Side, id_key, is_object
from .events import (
    CancelCause,
    ErrorReceived,
    FailureReason,
    LimitReached,
    RequestFailed,
    ResponseReceived,
)
from .handles import IncomingRequest, OutgoingRequest, Purpose, Route
from .modern_messages import Composing
from .timers import Standstill, Timed

_OPEN = RequestState.OPEN
_OPEN_STATE = State.OPEN
_APPLICATION = Purpose.APPLICATION
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]
_EMPTY: JSONObject = {}
_SERVER = Side.SERVER

_NOT_CANCELLED: Final = frozenset({Purpose.INITIALIZE, Purpose.DISCOVER})
"""A server that does not answer these may not understand any notification yet."""

_PAUSED: Final = frozenset({Purpose.APPLICATION, Purpose.PAGE})
"""What may wait for an answer of ours to the peer; pings and what opens a connection do not."""

INPUT_MEMBERS: Final = frozenset({"inputResponses", "requestState"})
"""Params that only the retry of a request has, and `provide_input` writes."""

Outcome = ResponseReceived | ErrorReceived | RequestFailed


class Asking(Composing):
    """The table of requests in flight from this side."""

    __slots__ = (
        "_forgotten_answers",
        "_last_id",
        "_late",
        "_outgoing",
        "_own_names",
        "_parked",
        "_sent",
        "_standstill",
        "_task_calls",
        "_tokens",
        "_unfit",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outgoing: dict[IdKey, OutgoingRequest] = {}
        self._late: dict[IdKey, OutgoingRequest] = {}
        self._tokens: dict[ProgressToken, OutgoingRequest] = {}
        self._task_calls: dict[str, OutgoingRequest] = {}
        self._own_names: dict[str, None] = {}
        self._last_id: int = 0
        self._sent: int = 0
        self._forgotten_answers = 0
        self._standstill = Standstill()
        self._parked: dict[OutgoingRequest, None] = {}  # whose silence was over during a pause
        self._unfit: list[OutgoingRequest] = []  # requests of ours that were too large to be sent

    # ---------------------------------------------------------------------------------- verbs

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        id: int | str | None = None,
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Queue a request and return the handle that its one ending will carry.

        Args:
            method: The method name. One that no revision defines is sent as it is.
            params: The params object; nothing of it is kept.
            meta: Merged into `params._meta`. A `progressToken` in it (or in the params) is used.
            progress: Ask for progress with a token of the library's choice.
            timeout: Seconds of silence allowed; progress for this request restarts it. On a client,
                the time in which a request of the server waits for our answer, or for the end of a
                task that we answered with, does not count: give `now` to the verb that ends it.
            max_timeout: Seconds allowed in all, with or without progress.
            log_level: The least severe level of log messages about this request; None: no log
                messages. Before 2026-07-28 `logging/setLevel` decides for all requests, and
                this is ignored.
            id: The id to use instead of the next number: a string not used before, or an
                integer above every one used before.
            request: The request of the peer that this one serves; it goes out on that one's
                stream where the transport has several.
            data: Anything; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: The state, the handshake, a capability, a limit, the shape of
                the params, the id or the token forbids it. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Requests; basic/lifecycle, Timeouts.
        """
        if progress is not False and progress is not True:
            check_flag("progress", progress)
        if self._state is not _OPEN_STATE:
            self._refuse_to_send(method)
        side = self._side
        conversation = self._conversation
        is_modern = conversation.dialect.is_modern
        if side is _SERVER and (
            is_modern
            or (request is not None and request._is_modern)
            or (conversation.phase is Phase.NEW and self._modern_revisions)
        ):
            raise refuse_to_ask(method)
        spec = conversation.dialect.requests[side].get(method)
        given = _EMPTY if params is None else params
        if type(given) is not dict and not is_object(given):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {given!r:.40}")
        breach = judge_request(conversation, side, method, spec, given, self._shape)
        if breach is NULLS or spec is None or not self._shape:
            whole = given
            given = without_nulls(META if spec is None else spec.params_optional, whole)
            if given is not whole:
                breach = judge_request(conversation, side, method, spec, given, self._shape)
        if breach is not None and not breach.tolerated:
            raise breach.error()
        if method == "initialize":
            raise LocalProtocolError("OWN-025", "initialize is sent by start()")
        if method == "ping":
            self._check_ping()
        if timeout is not None or max_timeout is not None:
            self._check_timeouts(timeout, max_timeout, now)
        key: int | str = self._last_id + 1 if id is None else self._check_id(id)
        token: ProgressToken | None = None
        bare = b""
        if is_modern:
            if log_level is not None:
                meta = self._with_level(meta, log_level)
            token = self._asked_token(given, meta)
            if token is None and progress:
                token = self._free_token(key)
            bare = body = self._enveloped(given, meta)
            if token is not None:
                body = self._with_token(bare, token)
        elif meta is not None or "_meta" in given or (progress and key in self._tokens):
            token, body = self._encode_with_token(given, meta, key if progress else None)
        elif progress:
            token = key
            meta_text = b'"_meta":{"progressToken":%b}}' % self._encode_id(key)
            body = self._encode_object(given, None)
            body = b"%b%b%b" % (body[:-1], b"," if given else b"", meta_text)
        else:
            body = b"" if params is None else self._encode_object(given, None)
        call = OutgoingRequest(key, method, spec, _APPLICATION, None)
        if spec is not None and spec.task_gate is not None and "task" in given:
            breach = judge_task(spec, conversation.gates[self._other])
            if breach is not None:
                raise breach.error()
            call._task = True
        self._check_room()
        if request is not None:
            self._check_ours(request)
        message = self._request_bytes(key, method, spec, body)
        if len(message) > self._config.max_unsent_bytes:
            raise self._too_large(message, method)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._tell(now)
        if token is not None:
            call._token = token
            self._tokens[token] = call
        call._route = None if request is None else request._route
        call.data = data
        if is_modern:
            call._is_modern = True
            if spec is not None and spec.asks and not given.keys() & INPUT_MEMBERS:
                call._body = bare
        self._launch(call, message, timeout, max_timeout)
        if self._restless:
            self._settle()
        return call

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return tuple(
            call for call in self._outgoing.values() if call._purpose is Purpose.APPLICATION
        )

    @property
    def forgotten_answers(self) -> int:
        """How many ended requests were forgotten, so that a late answer counts as unknown."""
        return self._forgotten_answers

    # -------------------------------------------------------------------------------- sending

    def _check_room(self) -> None:
        if len(self._outgoing) >= self._config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self._outgoing)} requests are in flight, which is the limit"
            )

    def _check_ping(self) -> None:
        """There is no ping as long as it is not known that there is a handshake."""
        if self._modern_revisions and self._conversation.phase is Phase.NEW:
            if self._side is _SERVER:
                raise LocalProtocolError("STATE-006", "no client has asked for a handshake yet")
            raise LocalProtocolError("COMPAT-001", "ping came before server/discover")

    def _check_timeouts(
        self, timeout: float | None, max_timeout: float | None, now: float | None
    ) -> None:
        for seconds in (timeout, max_timeout):
            # The comparison also refuses NaN.
            if seconds is not None and not (is_number(seconds) and seconds > 0):
                raise LocalProtocolError(
                    "OWN-023",
                    "a timeout must be greater than zero, and a number of seconds, "
                    f"not {seconds!r}",
                )
        if self._now is None and (now is None or now != now):
            raise LocalProtocolError("OWN-023", "a timeout needs a clock: pass now=")

    def _check_id(self, id: object) -> int | str:
        rule = "ID-002" if self._conversation.dialect.is_modern else "ID-001"
        if isinstance(id, str):
            if id in self._own_names or id in self._outgoing or id in self._late:
                raise LocalProtocolError(rule, f"the id {id!r} was used before")
            return id
        if type(id) is not int:
            raise LocalProtocolError("JSON-002", f"an id is a string or an integer, not {id!r}")
        self._encode(id)  # which refuses what has too many digits
        if id <= self._last_id:
            raise LocalProtocolError(
                rule, f"the id {id} is not above {self._last_id}, the last one used"
            )
        return id

    def _encode_with_token(
        self, params: JSONObject, meta: JSONObject | None, own: int | str | None
    ) -> tuple[ProgressToken | None, bytes]:
        """The token that was asked for, or one of our own, and the params with it."""
        token = self._asked_token(params, meta)
        if token is None and own is not None:
            token = self._free_token(own)
            meta = {**(meta or _EMPTY), "progressToken": token}
        return token, self._encode_object(params, meta)

    def _free_token(self, token: int | str) -> int | str:
        while token in self._tokens:  # another call may have been given this number by hand
            token = f"{token}+"
        return token

    def _asked_token(self, params: JSONObject, meta: JSONObject | None) -> ProgressToken | None:
        """The token that the caller has put into `_meta`, if it may be used."""
        asked: Any = MISSING
        for source in (params.get("_meta"), meta):
            if is_object(source) and "progressToken" in source:
                asked = source["progressToken"]
        if asked is MISSING:
            return None
        token = id_key(asked)
        if token is None:
            raise LocalProtocolError(
                "PROG-001", f"a progress token is a string or an integer, not {asked!r}"
            )
        if token in self._tokens:
            raise token_in_use(token).error()
        return token

    def _request_bytes(
        self, key: int | str, method: str, spec: Method | None, body: bytes
    ) -> bytes:
        name = self._method_bytes(method) if spec is None else spec.wire
        text = b"%d" % key if type(key) is int else self._encode(key)
        if body:
            return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}%b' % (
                text,
                name,
                body,
                self._newline,
            )
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}%b' % (text, name, self._newline)

    def _send_own(
        self,
        method: str,
        body: bytes,
        purpose: Purpose,
        owner: object,
        timeout: float | None = None,
        max_timeout: float | None = None,
        route: Route | None = None,
    ) -> OutgoingRequest:
        """Send a request that the library itself has reason for; it reports through `owner`."""
        spec = self._conversation.dialect.requests[self._side][method]
        call = OutgoingRequest(self._last_id + 1, method, spec, purpose, owner)
        call._is_modern = self._conversation.dialect.is_modern
        call._route = route
        message = self._request_bytes(call._id, method, spec, body)
        self._launch(call, message, timeout, max_timeout)
        return call

    def _launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        key = call._id
        if type(key) is int:
            self._last_id = key
        else:
            self._own_names[str(key)] = None
            if len(self._own_names) > self._config.max_used_ids:
                del self._own_names[next(iter(self._own_names))]
        self._outgoing[key] = call
        if timeout is not None or max_timeout is not None:
            now = self._now
            assert now is not None  # checked before
            if self._incoming and self._side is Side.CLIENT:
                self._peer_waits()  # since before there was a clock
            deadline = inf
            if timeout is not None:
                call._timeout = timeout
                self._hear(call, now)
                deadline = call._quiet_until
            if max_timeout is not None:
                call._last_deadline = last = now + max_timeout
                if last < deadline:
                    deadline = last
            self._timers.arm(self, call, deadline)
        self._sent += 1
        call._order = self._sent
        self._hand_over(call, message)

    def _hand_over(self, call: OutgoingRequest, message: bytes) -> None:
        """Queue a request of ours. One that would never fit fails when the verb is done."""
        if len(message) > self._config.max_unsent_bytes:
            self._is_refused(message, call._method)
            self._unfit.append(call)
        else:
            self._queue(message, call._route)

    def _settle(self) -> bool:
        while self._unfit:
            calls, self._unfit = self._unfit, []
            for call in calls:
                if call.open:
                    limit = self._config.max_unsent_bytes
                    text = f"{call._method} was not sent: Config.max_unsent_bytes is {limit}"
                    self._abandon(call, FailureReason.INVALID_ANSWER, text, None)
        return super()._settle()

    # -------------------------------------------------------------------------------- ending

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """The one ending of a call. Layers above take those of the library's own purposes."""
        self._events.append(outcome)

    def _conclude(self, call: OutgoingRequest, state: RequestState) -> None:
        """Take a call out of the tables."""
        del self._outgoing[call._id]
        call._state = state
        if call._asked is None:
            call._body = None  # there is no next round that would need it
        if call._token is not None and type(call._task) is not str:
            del self._tokens[call._token]
        if call._deadline is not None:
            self._timers.drop(call)
        if self._parked:
            self._parked.pop(call, None)

    def _cancel_call(
        self,
        call: OutgoingRequest,
        reason: str | None,
        meta: JSONObject | None,
        now: float | None,
    ) -> None:
        if self._outgoing.get(call._id) is not call:
            raise LocalProtocolError("OWN-022", f"{call!r} belongs to another connection")
        if call._purpose in _NOT_CANCELLED:
            raise LocalProtocolError("CANC-004", f"{call._method} cannot be cancelled")
        if call._task:
            raise LocalProtocolError(
                "CANC-005", f"{call!r} asks for a task: cancel it with tasks/cancel"
            )
        if reason is not None and not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", "reason must be a string")
        message = self._cancellation(call, reason, meta)
        self._check_size(message, "the cancellation")
        if now is not None:
            self._tell(now)
        self._abandon(call, FailureReason.CANCELLED, reason or "cancelled", message)
        if self._restless:
            self._settle()

    def _cancellation(
        self, call: OutgoingRequest, reason: str | None, meta: JSONObject | None = None
    ) -> bytes:
        params: JSONObject = {"requestId": call._id}
        if reason is not None:
            params["reason"] = reason
        return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}%b' % (
            self._encode_object(params, meta),
            self._newline,
        )

    def _abandon(
        self, call: OutgoingRequest, reason: FailureReason, text: str, message: bytes | None
    ) -> None:
        """End a call without an answer, telling the peer with `message`, and expect a late one."""
        self._conclude(call, _CANCELLED)
        self._late[call._id] = call
        if len(self._late) > self._config.max_late_answers:
            del self._late[next(iter(self._late))]
            self._forgotten_answers += 1
            if self._forgotten_answers == 1:
                self._events.append(
                    LimitReached(
                        rule="OWN-008",
                        text="the oldest request that ended without an answer was forgotten; "
                        "forgotten_answers counts on",
                    )
                )
        if message is not None and self._state is State.OPEN:
            self._queue(message, call._route)
        self._ended(call, RequestFailed(request=call, reason=reason, text=text))

    def _timer_fired(self, subject: Timed) -> None:
        assert isinstance(subject, OutgoingRequest)  # layers above have taken their own
        now = self._now or 0.0
        if subject._last_deadline is not None and subject._last_deadline <= now:
            text = f"{subject._method} was not answered within its longest time"
        elif self._stands_still(subject, now):
            return
        else:
            seconds = f"{subject._timeout:.4g} s"
            text = f"{subject._method} was not answered, and {seconds} passed in silence"
        if subject._purpose in _NOT_CANCELLED or subject._task:
            message = None  # CANC-004, CANC-005
        else:
            message = self._cancellation(subject, "timed out")
        self._abandon(subject, FailureReason.TIMED_OUT, text, message)

    # ------------------------------------------------------------------------------- silence

    def _hear(self, call: OutgoingRequest, now: float) -> None:
        """There is a sign of life of a call that has a timeout: silence counts from now."""
        timeout = call._timeout
        assert timeout is not None
        call._quiet_until = now + timeout
        call._paused = self._standstill.until(now)

    def _stands_still(self, call: OutgoingRequest, now: float) -> bool:
        """Whether the silence of a call whose timer has fired is not over: part of it was ours.

        What the peer asked is open on this side, or was. It may be what the call waits for: on a
        stream nobody can tell, and so no call of the application runs out meanwhile.
        """
        still, last = self._standstill, call._last_deadline
        if call._purpose not in _PAUSED:
            return False
        if still.since is not None:
            self._parked[call] = None
            if last is not None:
                self._timers.arm(self, call, last)
            return True
        pauses = still.total - call._paused
        if not pauses or call._quiet_until + pauses <= now:
            return False
        self._arm_silence(call, call._quiet_until + pauses)
        return True

    def _arm_silence(self, call: OutgoingRequest, deadline: float) -> None:
        last = call._last_deadline
        self._timers.arm(self, call, deadline if last is None else min(deadline, last))

    def _peer_waits(self) -> None:
        """The peer asks something, and waits for the answer of the application."""
        if self._standstill.since is None:
            self._standstill.since = self._now

    def _peer_waits_no_more(self) -> None:
        """No request or task of the peer is open any more: timeouts run again."""
        still, now = self._standstill, self._now
        assert now is not None  # a pause began at a time
        still.total, still.since = still.until(now), None
        parked, self._parked = self._parked, {}
        for call in parked:
            assert call._timeout is not None
            deadline = call._quiet_until + (still.total - call._paused)
            if deadline <= now:  # nothing was left of it when the peer asked, as a sign of life
                self._hear(call, now)
                deadline = call._quiet_until
            self._timers.drop(call)
            self._arm_silence(call, deadline)

    # -------------------------------------------------------------------------------- ending

    def _end_requests(self, cause: CancelCause) -> None:
        super()._end_requests(cause)
        self._lose(list(self._outgoing.values()))
        self._tokens.clear()
        self._task_calls.clear()
        self._late.clear()

    def _lose(self, calls: list[OutgoingRequest]) -> None:
        for call in calls:
            if self._outgoing.get(call._id) is not call:
                continue  # the loss of another one has ended everything
            self._conclude(call, _CANCELLED)
            text = self._loss_of(call)
            self._ended(call, RequestFailed(request=call, reason=FailureReason.LOST, text=text))

    def _loss_of(self, call: OutgoingRequest) -> str:
        """Why a call has no answer, in one sentence; a transport may know more."""
        return f"the connection ended before {call._method} was answered"
