"""Requests that this side sends: ids, timeouts, progress, cancellation, and their one ending."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

from .._rules.messages import token_in_use
from .._rules.sending import (
    NULLS,
    judge_request,
    judge_task,
    no_tasks,
    server_request_error,
    without_nulls,
)
from .._rules.state_tables import REQUESTS, Phase, RequestState, RequestTrigger, State
from .._spec.errors import LocalProtocolError
from .._spec.methods import META, Method
from .._spec.tasks import TASK_METHODS
from .._wire.setting_checks import check_flag, is_number
from .._wire.values import MISSING, IdKey, JSONObject, ProgressToken, Side, id_key, is_object
from .core import Core
from .events import (
    CancelCause,
    ErrorReceived,
    FailureReason,
    LimitReached,
    RequestFailed,
    ResponseReceived,
)
from .handles import (
    OF_APPLICATION,
    IncomingRequest,
    OutgoingRequest,
    Purpose,
    Route,
    Start,
    TaskFollowing,
)
from .modern_messages import ModernMessages
from .timers import Timed, TimeoutPauses

if TYPE_CHECKING:
    from .caching.cache import Fetch
    from .caching.cached_responses import CachedResponses
    from .tasks.follower import TaskFollower

_OPEN = RequestState.OPEN
_OPEN_STATE = State.OPEN
_APPLICATION = Purpose.APPLICATION
_ANSWERED = REQUESTS[RequestState.OPEN, RequestTrigger.ANSWER]
_CANCELLED = REQUESTS[RequestState.OPEN, RequestTrigger.CANCEL]
_EMPTY: JSONObject = {}
_SERVER = Side.SERVER
_NOT_CANCELLED: Final = frozenset({Purpose.INITIALIZE, Purpose.DISCOVER})
"""Requests that are not cancelled on the wire: before the opening, a server may not understand
`notifications/cancelled`. CANC-004 names `initialize` only; the same holds here for the probe, and
its error has the same id."""
_PAUSED: Final = OF_APPLICATION | {Purpose.PAGE}
"""Requests whose timeout pauses while the peer waits for a response of this side."""
INPUT_MEMBERS: Final = frozenset({"inputResponses", "requestState"})
"""The params that `provide_input` adds to a request that is sent again."""
Outcome = ResponseReceived | ErrorReceived | RequestFailed


class RequestOwner(Protocol):
    """A part that sends requests for its own purpose, and takes the one ending of each."""

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of a request that this part has sent."""
        ...


class OutgoingRequests:
    """The open requests of this side, with their ids, timeouts and endings.

    Attributes:
        calls: The open requests by id.
        follower: The part that follows tasks of the peer; None: tasks are not turned on.
        late: Requests that ended without a response, by id; a late response may still come.
        tokens: Progress tokens in use, with their request.
        task_calls: Requests that became a task which is not over, by the id of the task.
        last_id: The largest number that was used as an id.
        sent: The number of requests that were sent.
        handed_over: The number of requests that the transport has taken.
        forgotten_answers: The number of requests that were removed from `late` by its limit.
        timeout_pauses: On a client, the time that does not count for timeouts; on a server None.
        cached: On a client with a cache, the part that uses it; else None.
    """

    __slots__ = (
        "_core",
        "_messages",
        "_own_string_ids",
        "cached",
        "calls",
        "follower",
        "forgotten_answers",
        "handed_over",
        "last_id",
        "late",
        "sent",
        "task_calls",
        "timeout_pauses",
        "tokens",
    )

    def __init__(self, core: Core, messages: ModernMessages) -> None:
        self._core = core
        self._messages = messages
        self.follower: TaskFollower | None = None
        self.handed_over: int = 0
        self.calls: dict[IdKey, OutgoingRequest] = {}
        self.late: dict[IdKey, OutgoingRequest] = {}
        self.tokens: dict[ProgressToken, OutgoingRequest] = {}
        self.task_calls: dict[str, OutgoingRequest] = {}
        self._own_string_ids: dict[str, None] = {}
        self.last_id: int = 0
        self.sent: int = 0
        self.forgotten_answers: int = 0
        self.timeout_pauses: TimeoutPauses | None = (
            TimeoutPauses() if core.side is Side.CLIENT else None
        )
        self.cached: CachedResponses | None = None

    # -------------------------------------------------------------------- verbs of the application

    def send(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        progress: bool,
        timeout: float | None,
        max_timeout: float | None,
        log_level: str | None,
        id: int | str | None,
        request: IncomingRequest | None,
        data: Any,
        now: float | None,
        task: bool | int = False,
    ) -> OutgoingRequest:
        """Queue a request and return the handle that its one ending will carry."""
        if progress is not False and progress is not True:
            check_flag("progress", progress)
        if self._core.state is not _OPEN_STATE:
            self._core.refuse_to_send(method)
        side = self._core.side
        conversation = self._core.conversation
        is_modern = conversation.dialect.is_modern
        if side is _SERVER and (
            is_modern
            or (request is not None and request._is_modern)
            or (conversation.phase is Phase.NEW and self._core.modern_revisions)
        ):
            raise server_request_error(method)
        spec = conversation.dialect.requests[side].get(method)
        given = _EMPTY if params is None else params
        if type(given) is not dict and not is_object(given):
            raise LocalProtocolError("OWN-014", f"params are a JSON object, not {given!r:.40}")
        follower = self.follower
        if follower is None:
            if task is not False:
                raise no_tasks()
        elif task is not False or follower.support:
            given = follower.judge(method, spec, given, task, now)
        breach = judge_request(conversation, side, method, spec, given, self._core.checks_shape)
        if breach is NULLS or spec is None or not self._core.checks_shape:
            whole = given
            given = without_nulls(META if spec is None else spec.params_optional, whole)
            if given is not whole:
                breach = judge_request(
                    conversation, side, method, spec, given, self._core.checks_shape
                )
        if breach is not None and not breach.tolerated:
            raise breach.error()
        if self._core.payloads is not None:
            revision = conversation.dialect.revision
            self._core.payloads.check_params(method, given, meta, revision)
        if method == "initialize":
            raise LocalProtocolError("OWN-025", "initialize is sent by start()")
        if method == "ping":
            self.check_ping()
        if timeout is not None or max_timeout is not None:
            self.check_timeouts(timeout, max_timeout, now)
        key: int | str = self.last_id + 1 if id is None else self._check_id(id)
        token: ProgressToken | None = None
        bare = b""
        fetch: Fetch | None = None
        if is_modern:
            if log_level is not None:
                meta = self._messages.with_level(meta, log_level)
            token = self.requested_token(given, meta)
            if token is None and progress:
                token = self.unused_token(key)
            is_about_task = task is not False or method in TASK_METHODS
            bare = body = self._messages.with_envelope(given, meta, tasks=is_about_task)
            if token is not None:
                body = self._messages.with_token(bare, token)
            if self.cached is not None:
                fetch = self.cached.fetch_of(spec, given, meta)
        elif meta is not None or "_meta" in given or (progress and key in self.tokens):
            token, body = self._encode_with_token(given, meta, key if progress else None)
        elif progress:
            token = key
            meta_text = b'"_meta":{"progressToken":%b}}' % self._core.encode_id(key)
            body = self._core.encode_object(given, None)
            body = b"%b%b%b" % (body[:-1], b"," if given else b"", meta_text)
        else:
            body = b"" if params is None else self._core.encode_object(given, None)
        call = OutgoingRequest(key, method, spec, _APPLICATION, self, None)
        if spec is not None and spec.task_gate is not None and "task" in given:
            breach = judge_task(spec, conversation.gates[self._core.other])
            if breach is not None:
                raise breach.error()
            call._task = True
        if (
            follower is not None
            and (task is not False or is_modern)
            and follower.may_follow(method, task)
        ):
            call._following = TaskFollowing(call)
        self.check_room()
        if request is not None:
            self._core.check_belongs(request)
        message = self.request_bytes(key, method, spec, body)
        if len(message) > self._core.config.max_unsent_bytes:
            raise self._core.too_large(message, method)
        # Everything is checked: from here on nothing raises.
        if now is not None:
            self._core.tell(now)
        if fetch is not None and self._is_cached(call, fetch, data):
            return call
        if token is not None:
            call._token = token
            self.tokens[token] = call
        call._route = None if request is None else request._route
        call.data = data
        if is_modern:
            call._is_modern = True
            if spec is not None and spec.allows_questions and not given.keys() & INPUT_MEMBERS:
                call._body = bare
        self.launch(call, message, timeout, max_timeout)
        if self._core.needs_settle:
            self._core.settle()
        return call

    def cancel(
        self,
        call: OutgoingRequest,
        reason: str | None,
        meta: JSONObject | None,
        now: float | None,
    ) -> None:
        """Cancel an open request, and tell the peer.

        Keeps CANC-004, also for `server/discover`.
        """
        if self.calls.get(call._id) is not call:
            raise LocalProtocolError("OWN-022", f"{call!r} belongs to another connection")
        if call._purpose in _NOT_CANCELLED:
            raise LocalProtocolError("CANC-004", f"{call._method} cannot be cancelled")
        if call._task and call._following is None:
            raise LocalProtocolError(
                "CANC-005", f"{call!r} asks for a task: cancel it with tasks/cancel"
            )
        if reason is not None and not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", "reason must be a string")
        message: bytes | None = self.cancellation(call, reason, meta)
        self._core.check_size(message or b"", "the cancellation")
        if call._task:
            message = None  # CANC-005: the task is cancelled when the peer has made it
        if now is not None:
            self._core.tell(now)
        self.abandon(call, FailureReason.CANCELLED, reason or "cancelled", message)
        if self._core.needs_settle:
            self._core.settle()

    @property
    def pending(self) -> tuple[OutgoingRequest, ...]:
        """The open requests that the application has sent, oldest first."""
        return tuple(call for call in self.calls.values() if call._purpose in OF_APPLICATION)

    def _is_cached(self, call: OutgoingRequest, fetch: Fetch, data: Any) -> bool:
        """End a request with a fresh result from the cache; return whether there is one.

        Nothing is sent then. The number is used up all the same, so that handles differ in it.
        """
        assert self.cached is not None  # it has made `fetch`
        if not self.cached.answers(call, fetch):
            return False
        call._state = _ANSWERED
        call._is_modern = True
        call.data = data
        if type(call._id) is int:
            self.last_id = call._id
        if self._core.needs_settle:
            self._core.settle()
        return True

    # ---------------------------------------------------------------------- sending, for all parts

    def send_own(
        self,
        method: str,
        body: bytes,
        purpose: Purpose,
        owner: RequestOwner,
        subject: Any,
        timeout: float | None = None,
        max_timeout: float | None = None,
        route: Route | None = None,
    ) -> OutgoingRequest:
        """Send a request of the library.

        Args:
            method: The method name, which the revision defines.
            body: The encoded params; empty: none.
            purpose: Why the request is sent.
            owner: The part that takes its ending.
            subject: The handle or object for which the request is sent.
            timeout: Seconds of silence allowed.
            max_timeout: Seconds allowed in all.
            route: The way to the peer; None on a byte stream.

        Returns:
            The handle of the request.
        """
        spec = self._core.conversation.dialect.requests[self._core.side][method]
        call = OutgoingRequest(self.last_id + 1, method, spec, purpose, owner, subject)
        call._is_modern = self._core.conversation.dialect.is_modern
        call._route = route
        message = self.request_bytes(call._id, method, spec, body)
        self.launch(call, message, timeout, max_timeout)
        return call

    def launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        """File a request, arm its timer and queue it."""
        self.file(call, timeout, max_timeout)
        self.sent += 1
        call._order = self.sent
        transport = self._core.transport
        transport.before_send(call)
        self.queue_request(call, message)
        transport.after_send(call)

    def file(self, call: OutgoingRequest, timeout: float | None, max_timeout: float | None) -> None:
        """File a request, and arm its timer."""
        key = call._id
        if type(key) is int:
            self.last_id = key
        else:
            self._own_string_ids[str(key)] = None
            if len(self._own_string_ids) > self._core.config.max_used_ids:
                del self._own_string_ids[next(iter(self._own_string_ids))]
        self.calls[key] = call
        if timeout is not None or max_timeout is not None:
            now = self._core.now
            assert now is not None  # checked before
            pauses = self.timeout_pauses
            if pauses is not None and pauses.peer_waits:
                self.pause_timeouts()  # since before there was a clock
            deadline = inf
            if timeout is not None:
                call._timeout = timeout
                self._restart_silence(call, now)
                deadline = call._quiet_until
            if max_timeout is not None:
                call._last_deadline = last = now + max_timeout
                if last < deadline:
                    deadline = last
            self._core.timers.arm(self, call, deadline)

    def queue_request(self, call: OutgoingRequest, message: bytes) -> None:
        """Queue an encoded request; if it is too large, the request fails when the verb is done."""
        if len(message) > self._core.config.max_unsent_bytes:
            self._core.is_refused(message, call._method)
            limit = self._core.config.max_unsent_bytes
            text = f"{call._method} was not sent: Config.max_unsent_bytes is {limit}"
            self._core.fail_later(call, FailureReason.INVALID_ANSWER, text)
        else:
            self._core.transport.queue(message, call._route)

    def request_bytes(self, key: int | str, method: str, spec: Method | None, body: bytes) -> bytes:
        """The encoded request, newline included."""
        name = self._core.method_bytes(method) if spec is None else spec.wire
        text = b"%d" % key if type(key) is int else self._core.encode(key)
        if body:
            return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}%b' % (
                text,
                name,
                body,
                self._core.newline,
            )
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}%b' % (text, name, self._core.newline)

    def cancellation(
        self, call: OutgoingRequest, reason: str | None, meta: JSONObject | None = None
    ) -> bytes:
        """The encoded `notifications/cancelled` for a request.

        Keeps STDIO-010, CANC-017, SUBS-011.
        """
        params: JSONObject = {"requestId": call._id}
        if reason is not None:
            params["reason"] = reason
        return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}%b' % (
            self._core.encode_object(params, meta),
            self._core.newline,
        )

    def requested_token(self, params: JSONObject, meta: JSONObject | None) -> ProgressToken | None:
        """The token that the application has put into `_meta`; None without one.

        Raises:
            LocalProtocolError: The token is not valid, or it is in use.
        """
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
        if token in self.tokens:
            raise token_in_use(token).error()
        return token

    def unused_token(self, token: int | str) -> int | str:
        """`token`, or a variant of it that is not in use."""
        while token in self.tokens:  # the application may have used this number for a request
            token = f"{token}+"
        return token

    def _encode_with_token(
        self, params: JSONObject, meta: JSONObject | None, own: int | str | None
    ) -> tuple[ProgressToken | None, bytes]:
        """The progress token of the application or of the library, and the encoded params.

        `own` is the token of the library; None: no progress is wanted.
        """
        token = self.requested_token(params, meta)
        if token is None and own is not None:
            token = self.unused_token(own)
            meta = {**(meta or _EMPTY), "progressToken": token}
        return token, self._core.encode_object(params, meta)

    # ---------------------------------------------------------------- checks before a verb commits

    def check_room(self) -> None:
        """Raise if `Config.max_requests` requests are open."""
        if len(self.calls) >= self._core.config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self.calls)} requests are in flight, which is the limit"
            )

    def check_ping(self) -> None:
        """Raise if the conversation may still become modern: 2026-07-28 has no ping."""
        if self._core.modern_revisions and self._core.conversation.phase is Phase.NEW:
            if self._core.side is _SERVER:
                raise LocalProtocolError("STATE-006", "no client has asked for a handshake yet")
            raise LocalProtocolError("COMPAT-001", "ping came before server/discover")

    def check_timeouts(
        self, timeout: float | None, max_timeout: float | None, now: float | None
    ) -> None:
        """Raise unless each timeout is a number of seconds above zero, and there is a clock."""
        for seconds in (timeout, max_timeout):
            # The comparison also refuses NaN.
            if seconds is not None and not (is_number(seconds) and seconds > 0):
                raise LocalProtocolError(
                    "OWN-023",
                    "a timeout must be greater than zero, and a number of seconds, "
                    f"not {seconds!r}",
                )
        if self._core.now is None and (now is None or now != now):
            raise LocalProtocolError("OWN-023", "a timeout needs a clock: pass now=")

    def _check_id(self, id: object) -> int | str:
        """The id that the application wants; raise if it was used before or is not valid."""
        rule = "ID-002" if self._core.conversation.dialect.is_modern else "ID-001"
        if isinstance(id, str):
            if id in self._own_string_ids or id in self.calls or id in self.late:
                raise LocalProtocolError(rule, f"the id {id!r} was used before")
            return id
        if type(id) is not int:
            raise LocalProtocolError("JSON-002", f"an id is a string or an integer, not {id!r}")
        self._core.encode(id)  # raises for too many digits
        if id <= self.last_id:
            raise LocalProtocolError(
                rule, f"the id {id} is not above {self.last_id}, the last one used"
            )
        return id

    # ------------------------------------------------------------------------------------- endings

    def conclude(self, call: OutgoingRequest, state: RequestState) -> None:
        """Remove a request from the tables; its ending follows."""
        del self.calls[call._id]
        call._state = state
        if call._asked is None:
            call._body = None  # no next round needs it
        if call._token is not None and type(call._task) is not str:
            del self.tokens[call._token]
        if call._deadline is not None:
            self._core.timers.drop(call)
        if call._following is not None and self.follower is not None:
            self.follower.concluded(call)
        pauses = self.timeout_pauses
        if pauses is not None and pauses.parked:
            pauses.parked.pop(call, None)
        self._core.transport.request_concluded(call)

    def abandon(
        self, call: OutgoingRequest, reason: FailureReason, text: str, message: bytes | None
    ) -> None:
        """End a request without a response; a late response is recognised.

        Args:
            call: The request.
            reason: The reason for the event.
            text: The reason in one sentence.
            message: The encoded cancellation for the peer; None: send nothing.
        """
        is_task = call._following is not None and call._following.task_id is not None
        # The request of a task is answered: `notifications/cancelled` names none (XTASK-114).
        message = None if is_task else self._core.transport.cancellation(call, message)
        self.conclude(call, _CANCELLED)
        if is_task and self.follower is not None:
            self.follower.cancel(call)
        self.late[call._id] = call
        if len(self.late) > self._core.config.max_late_answers:
            del self.late[next(iter(self.late))]
            self.forgotten_answers += 1
            if self.forgotten_answers == 1:
                self._core.events.append(
                    LimitReached(
                        rule="OWN-008",
                        text="the oldest request that ended without a response was forgotten; "
                        "forgotten_answers counts on",
                    )
                )
        if message is not None and self._core.state is State.OPEN:
            self._core.transport.queue(message, call._route)
        self._core.transport.request_abandoned(call)
        not_run = self._core.transport.was_not_run(call)
        call._owner.ended(
            call, RequestFailed(request=call, reason=reason, text=text, not_run=not_run)
        )

    def withdraw(self, call: OutgoingRequest, text: str) -> None:
        """Cancel a request of the library whose response is not needed any more."""
        message = self.cancellation(call, text)
        self.abandon(call, FailureReason.CANCELLED, text, message)

    def lose(self, calls: list[OutgoingRequest]) -> None:
        """End these requests as lost: no response can come."""
        for call in calls:
            if self.calls.get(call._id) is not call:
                continue  # the ending of another request has closed the connection
            self.conclude(call, _CANCELLED)
            text = self._core.transport.loss_text(call)
            not_run = self._core.transport.was_not_run(call)
            failed = RequestFailed(
                request=call, reason=FailureReason.LOST, text=text, not_run=not_run
            )
            call._owner.ended(call, failed)

    def fail_unsent(self) -> None:
        """End the requests that could not be sent during the verb."""
        core = self._core
        while core.unsent_calls:
            unsent, core.unsent_calls = core.unsent_calls, None
            for call, reason, text in unsent:
                if call.open:
                    self.abandon(call, reason, text, None)

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Report the ending of a request of the application."""
        self._core.events.append(outcome)

    def end(self, cause: CancelCause) -> None:
        """End all open requests as lost: the connection ends."""
        self.lose(list(self.calls.values()))
        self.tokens.clear()
        self.task_calls.clear()
        self.late.clear()

    # ------------------------------------------------------------------------------------ timeouts

    def note_activity(self, call: OutgoingRequest) -> None:
        """Restart the timeout of a request after progress or another sign of activity."""
        following = call._following
        if call._timeout is not None and (following is None or not following.rests):
            self._restart_silence(call, self._core.now or 0.0)
            pauses = self.timeout_pauses
            if call._deadline is not None and (pauses is None or call not in pauses.parked):
                # The heap keeps the old entry and corrects it when it becomes the first.
                deadline, last = call._quiet_until, call._last_deadline
                call._deadline = deadline if last is None or deadline < last else last

    def pause_timeouts(self) -> None:
        """Begin a pause: the peer waits for a response of the application."""
        pauses = self.timeout_pauses
        assert pauses is not None  # only a client pauses
        pauses.peer_waits = True
        if pauses.since is None:
            pauses.since = self._core.now

    def resume_timeouts(self) -> None:
        """End the pause: no request and no task of the peer is open any more."""
        pauses, now = self.timeout_pauses, self._core.now
        assert pauses is not None  # only a client pauses
        pauses.peer_waits = False
        if now is None:
            return  # without a clock nothing runs out
        pauses.total, pauses.since = pauses.until(now), None
        parked, pauses.parked = pauses.parked, {}
        for call in parked:
            assert isinstance(call, OutgoingRequest)
            assert call._timeout is not None
            deadline = call._quiet_until + (pauses.total - call._paused)
            if deadline <= now:  # the timeout was over: the peer's request restarts it
                self._restart_silence(call, now)
                deadline = call._quiet_until
            self._core.timers.drop(call)
            self._arm_silence(call, deadline)

    def suspend_timeout(self, call: OutgoingRequest) -> None:
        """Stop the timeout of a request while no response of the peer is due.

        It waits for the application (`authorize`), or has become a task that is not polled now. The
        time allowed for it in all goes on, but not that of a start.
        """
        pauses = self.timeout_pauses
        if pauses is not None:
            pauses.parked.pop(call, None)
        if call._last_deadline is not None and not isinstance(call._subject, Start):
            call._deadline = call._last_deadline
        else:
            self._core.timers.drop(call)

    def restart_timeout(self, call: OutgoingRequest, waited: float) -> None:
        """Start the timeout of a request anew, which has waited for so many seconds."""
        start = call._subject
        if isinstance(start, Start) and start._until is not None:
            start._until += waited
            if call._last_deadline is not None:
                call._last_deadline += waited
        if call._timeout is not None:
            self._restart_silence(call, self._core.now or 0.0)
            self._arm_silence(call, call._quiet_until)
        elif call._last_deadline is not None:
            self._core.timers.arm(self, call, call._last_deadline)

    def _timer_fired(self, subject: Timed) -> None:
        self._core.run_timer(self._expire, subject)

    def _expire(self, subject: Timed) -> None:
        """End a request that has timed out, unless a pause postpones its timeout.

        Keeps TIME-002, TIME-003.
        """
        assert isinstance(subject, OutgoingRequest)
        now = self._core.now or 0.0
        if subject._last_deadline is not None and subject._last_deadline <= now:
            text = f"no response to {subject._method} came in the time allowed for it"
        elif self._postpone_for_pauses(subject, now):
            return
        else:
            seconds = f"{subject._timeout:.4g} s"
            text = f"no response to {subject._method} and no progress came for {seconds}"
        if subject._purpose in _NOT_CANCELLED or subject._task:
            message = None  # CANC-004, CANC-005
        else:
            message = self.cancellation(subject, "timed out")
        self.abandon(subject, FailureReason.TIMED_OUT, text, message)

    def _postpone_for_pauses(self, call: OutgoingRequest, now: float) -> bool:
        """Postpone the timeout of a request by the pauses in it; return whether there were any.

        A pause is the time in which the peer waits for a response of this side. The response to the
        request may depend on it, and on a byte stream this side cannot know: so no request of the
        application times out during a pause.
        """
        pauses, last = self.timeout_pauses, call._last_deadline
        if pauses is None or call._purpose not in _PAUSED:
            return False
        if pauses.since is not None:
            pauses.parked[call] = None
            if last is not None:
                self._core.timers.arm(self, call, last)
            return True
        seconds = pauses.total - call._paused
        if not seconds or call._quiet_until + seconds <= now:
            return False
        self._arm_silence(call, call._quiet_until + seconds)
        return True

    def _restart_silence(self, call: OutgoingRequest, now: float) -> None:
        """Restart the timeout of a request: its silence counts from `now`."""
        timeout = call._timeout
        assert timeout is not None
        call._quiet_until = now + timeout
        pauses = self.timeout_pauses
        call._paused = 0.0 if pauses is None else pauses.until(now)

    def _arm_silence(self, call: OutgoingRequest, deadline: float) -> None:
        """Arm the timer of a request: at `deadline`, or earlier at the end of `max_timeout`."""
        last = call._last_deadline
        self._core.timers.arm(self, call, deadline if last is None else min(deadline, last))

    # -------------------------------------------------------------- requests of another connection

    def take_over(self, other: OutgoingRequests, calls: Collection[OutgoingRequest]) -> None:
        """Continue requests of another connection; they keep their ids, and no id is used again."""
        self.last_id, self._own_string_ids = other.last_id, other._own_string_ids
        self.sent = other.sent
        self._core.timers.change_owner(calls, self)
        for call in calls:
            self.calls[call._id] = other.calls.pop(call._id)
            if call._token is not None:
                self.tokens[call._token] = other.tokens.pop(call._token)
            if call._timeout is not None:
                self._take_over_silence(other, call)

    def _take_over_silence(self, other: OutgoingRequests, call: OutgoingRequest) -> None:
        """Add the pauses of the other connection to a timeout; a current pause of it ends."""
        pauses, now = other.timeout_pauses, self._core.now
        assert pauses is not None  # only a client goes on in another connection
        assert now is not None  # a timeout has a clock
        call._quiet_until += pauses.until(now) - call._paused
        call._paused = 0.0
        if pauses.parked.pop(call, MISSING) is not MISSING:
            self._arm_silence(call, call._quiet_until)
