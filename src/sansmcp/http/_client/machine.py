"""The protocol machine of a client whose every message is an HTTP request of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._asking import Outcome
from ..._errors import ErrorCode, LocalProtocolError
from ..._events import (
    CancelCause,
    CloseCause,
    ErrorReceived,
    FailureCause,
    FailureReason,
    RequestFailed,
    ResponseReceived,
)
from ..._framing import BOM
from ..._handles import Listing, OutgoingRequest, Purpose, Start
from ..._judge import Breach
from ..._lifecycle import STATES, Phase, PhaseTrigger, RequestState, State, StateTrigger
from ..._machine import Machine
from ..._timers import Timed
from ..._values import JSONObject, Side, id_key, is_list, is_object
from .._headers import Headers
from .exchange import ExchangePurpose
from .fields import message_fields
from .posts import Post, says_little, says_what_it_speaks

if TYPE_CHECKING:
    from .endpoint import ClientEndpoint


_LOST_SESSION: Final = frozenset({CloseCause.SESSION_LOST, CloseCause.START_FAILED})
"""What ends a session, and not a conversation that had one before."""


class ClientMachine(Machine):
    """All that a client says and hears; messages that go out become lanes of the endpoint."""

    __slots__ = (
        "_body_of",
        "_ended_by",
        "_endpoint",
        "_fault",
        "_fields",
        "_is_opening",
        "_is_standalone",
        "_start_fault",
    )

    def __init__(self, endpoint: ClientEndpoint, **settings: Any) -> None:
        super().__init__(
            Side.CLIENT,
            instructions=None,
            wake=None,
            newline=b"",
            timers=endpoint._timers,
            **settings,
        )
        events: Any = endpoint._events  # with some that only the endpoint has
        self._events = events
        self._endpoint = endpoint
        self._fields: Headers | None = None  # of the message that a verb is about to send
        self._is_opening = False  # what is being queued is `notifications/initialized`
        self._is_standalone = False  # what is being received came on the stream of a GET
        self._body_of: Post | None = None  # whose response's body, no stream, is being received
        self._fault = ""  # the breach that was reported last
        self._ended_by = ""  # why the conversation is over
        self._start_fault = ""  # why no session could be opened

    # -------------------------------------------------------------------------------- output

    def _launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        fields, self._fields = self._fields, None
        is_modern = call._is_modern
        if fields is None:
            fields = message_fields(call._method, {}, ()) if is_modern else ()
        call._route = self._post(call, fields, is_modern=is_modern)
        super()._launch(call, message, timeout, max_timeout)

    def _post(
        self,
        call: OutgoingRequest | None,
        fields: Headers,
        *,
        is_modern: bool,
        purpose: ExchangePurpose = ExchangePurpose.POST,
    ) -> Any:
        return Post(self, call, fields, is_modern=is_modern, purpose=purpose)

    def _queue(self, message: bytes, route: Any) -> None:
        unsent = self._unsent + len(message)
        if unsent > self._config.max_unsent_bytes:
            if not self._is_refused(message, "a message"):
                self._overflowing = self._restless = True
            return
        post: Post | None = route
        if post is None:
            is_modern = self._conversation.dialect.is_modern
            fields, self._fields = self._fields, None
            post = self._post(None, fields or (), is_modern=is_modern)
            if self._is_opening:
                self._endpoint._barrier = post
        elif post.body is not None:
            call = post.call
            assert call is not None  # else it would be no route
            if call.open:  # the same call once more
                post.concluded(is_answered=True)
                post = call._route = self._post(call, post.more, is_modern=post.is_modern)
            else:
                post = self._post(
                    None, (), is_modern=post.is_modern, purpose=ExchangePurpose.CANCEL
                )
        assert post is not None
        post.body = message
        post.send()

    def _report(self, breach: Breach, **about: Any) -> None:
        self._fault = breach.text
        super()._report(breach, **about)

    def _excerpt(self, data: bytes | bytearray, *, over: int | None = None) -> bytes:
        return self._endpoint._excerpt(data, over=over)

    # -------------------------------------------------------------------------------- opening

    def _agree_as_client(self, start: Start, result: JSONObject) -> None:
        self._is_opening = True
        super()._agree_as_client(start, result)
        self._is_opening = False
        if self._conversation.phase is Phase.OPERATING and self._state is State.OPEN:
            self._endpoint._opened()

    def _start_refused(self, start: Start, error: ErrorReceived) -> None:
        self._endpoint._session = None
        super()._start_refused(start, error)

    def _start_failed(
        self,
        start: Start,
        cause: FailureCause,
        text: str,
        error: ErrorReceived | None = None,
        **response: Any,
    ) -> None:
        self._start_fault = text
        if cause is FailureCause.REFUSED:
            assert start._call is not None  # which was refused
            route: Any = start._call._route
            post: Post = route
            response = {"status": post.status, "retry_after": post.wait}
        super()._start_failed(start, cause, text, error, **response)

    def fail_start(
        self,
        call: OutgoingRequest,
        cause: FailureCause,
        text: str,
        message: JSONObject | None = None,
    ) -> None:
        """The server cannot be opened, in whatever revision; it may have said why."""
        start: Any = call._owner
        said: Any = None if message is None else message["error"]
        error = None
        if said is not None:
            route: Any = call._route
            error = ErrorReceived(
                request=call,
                code=said["code"],
                message=said["message"],
                data=said.get("data"),
                status=route.status,
                retry_after=route.wait,
            )
            text += f": {error.message[:300]} ({error.code})"
        self._conclude(call, RequestState.CANCELLED)
        self._start_failed(start, cause, text, error)

    def falls_back(self, status: int, wait: float | None) -> bool:
        """Whether `initialize` follows where the probe was refused like this.

        A server that says when it wants to be asked again is not asked before, and so not at once.
        """
        return bool(self._legacy_revisions) and says_what_it_speaks(status) and not wait

    def probe_again(self, call: OutgoingRequest, timeout: float | None) -> None:
        """There are other credentials: it may be that the server answers the probe now.

        Else `initialize` with them would open a server of both eras in the older one.
        """
        start: Any = call._owner
        self._conclude(call, RequestState.CANCELLED)
        self._conversation.move(PhaseTrigger.INITIALIZE_ERROR)
        self._probe(start, timeout)

    def suspend_silence(self, call: OutgoingRequest) -> None:
        """Silence says nothing of the server as long as it is the application that is waited for.

        It would be taken for one that knows handshakes only.
        """
        self._parked.pop(call, None)
        if call._last_deadline is not None:
            call._deadline = call._last_deadline
        else:
            self._timers.drop(call)

    def restart_silence(self, call: OutgoingRequest) -> None:
        """The call is sent again: silence counts from now."""
        if call._timeout is not None:
            self._hear(call, self._now or 0.0)
            self._arm_silence(call, call._quiet_until)

    # ------------------------------------------------------------------------------- answers

    def _receive_answer(self, message: JSONObject) -> None:
        call = self._answered_by(id_key(message.get("id")))
        if self._is_standalone:
            text = "an answer came on a stream that belongs to no request"
            self._report(Breach("SSE-024", text, tolerated=True), request=call)
        if call is not None:
            route: Any = call._route
            post: Post = route
            if self._body_of is not None and self._body_of is not post:
                text = f"the response to another request holds an answer to {call._method}"
                self._report(Breach("HTTP-018", text), request=call)
                return
            post.heard = True
            if call._is_modern:
                if call._method == "tools/list":
                    self._endpoint._learn(message.get("result"))
                elif call._method == "tools/call" and self._refreshes(call, post, message):
                    return
        super()._receive_answer(message)

    def receive_body(self, post: Post, body: bytes) -> None:
        """The body of a good response, which answers nothing but what was POSTed there."""
        self._fault = ""
        self._body_of = post
        self._receive_whole(body)
        self._body_of = None

    def is_progress_of(self, call: OutgoingRequest, data: bytes) -> bool:
        """Whether a request or a notification is a notification of progress of this call."""
        try:
            message: Any = self._decoder.decode(data.removeprefix(BOM))
        except (ValueError, RecursionError):
            return False
        params: Any = message.get("params")
        return (
            message.get("method") == "notifications/progress"
            and "id" not in message
            and is_object(params)
            and (token := id_key(params.get("progressToken"))) is not None
            and self._tokens.get(token) is call
        )

    def answer_with(self, call: OutgoingRequest, message: JSONObject) -> None:
        """The answer to a call is this error, although it may not name it."""
        error: Any = message["error"]
        self._receive_answer({"jsonrpc": "2.0", "id": call._id, "error": error})

    def _no_result(
        self, call: OutgoingRequest, message: JSONObject
    ) -> tuple[Outcome, Breach | None]:
        outcome, breach = super()._no_result(call, message)
        if isinstance(outcome, ErrorReceived):
            route: Any = call._route
            post: Post = route
            outcome = attrs.evolve(outcome, status=post.status, retry_after=post.wait)
        return outcome, breach

    def refuse(self, call: OutgoingRequest, status: int, text: str) -> None:
        """The server has refused a request, with a status that may say what it speaks, or 0."""
        if call._purpose is Purpose.DISCOVER and (
            not says_what_it_speaks(status)
            or (says_little(status) and not self.falls_back(status, None))
        ):
            self.fail_start(call, FailureCause.REFUSED, text)
        else:
            self._abandon(call, FailureReason.REFUSED, text, None)

    def fail(self, call: OutgoingRequest, reason: FailureReason, text: str) -> None:
        """A request has no proper answer, and will not have one."""
        if call._purpose is Purpose.DISCOVER and reason is FailureReason.LOST:
            self.fail_start(call, FailureCause.LOST, text)
        else:
            self._abandon(call, reason, text, None)

    # -------------------------------------------------------------- the fields of tools' arguments

    def _refreshes(self, call: OutgoingRequest, post: Post, message: JSONObject) -> bool:
        """Whether a call is to be tried again once it is known which fields it needs."""
        error: Any = message.get("error")
        if (
            post.retried
            or not is_object(error)
            or error.get("code") != ErrorCode.HEADER_MISMATCH
            or self._state is not State.OPEN
            or len(self._outgoing) >= self._config.max_requests
        ):
            return False
        post.retried = True
        post.refusal = message
        if post.exchange is not None:
            post.exchange._abort()
        self._list_tools(call, post, {})
        return True

    def _list_tools(self, call: OutgoingRequest, post: Post, params: JSONObject) -> None:
        body = self._enveloped(params, None)
        post.refresh = self._send_own("tools/list", body, Purpose.SCHEMAS, call)

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        if call._purpose is not Purpose.SCHEMAS:
            if isinstance(outcome, RequestFailed):
                sent: Any = call._route
                outcome = attrs.evolve(outcome, not_run=sent.not_run)
            super()._ended(call, outcome)
            return
        owner: Any = call._owner
        waiting: OutgoingRequest = owner
        if not waiting.open:
            return
        route: Any = waiting._route
        post: Post = route
        post.refresh = None
        result: Any = outcome.result if isinstance(outcome, ResponseReceived) else {}
        message: Any = self._codec.decode(post.body or b"")
        params: Any = message["params"]
        if self._sends_again(post, params):
            return
        cursor: Any = result.get("nextCursor")
        post.pages += 1
        if (
            isinstance(cursor, str)
            and not _has_tool(result, params.get("name"))
            and post.pages < self._config.max_pages
            and self._state is State.OPEN
        ):
            self._list_tools(waiting, post, {"cursor": cursor})
        else:
            refusal: Any = post.refusal
            super()._receive_answer(refusal)

    def _sends_again(self, post: Post, params: JSONObject) -> bool:
        """Send a call with the fields that it needs by now, if these are others than before."""
        try:
            fields = self._endpoint._fields_of("tools/call", params)
        except LocalProtocolError:
            return False  # they can hold no such value
        if fields == post.more:
            return False
        post.more = fields
        post.heard = False
        post.send()
        return True

    # --------------------------------------------------------------------------------- ending

    def _conclude(self, call: OutgoingRequest, state: RequestState) -> None:
        super()._conclude(call, state)
        route: Any = call._route
        post: Post = route
        post.concluded(is_answered=state is RequestState.ANSWERED)
        if post.refresh is not None and post.refresh.open:
            text = "nobody waits for it any more"
            self._abandon(post.refresh, FailureReason.CANCELLED, text, None)

    def _abandon(
        self, call: OutgoingRequest, reason: FailureReason, text: str, message: bytes | None
    ) -> None:
        route: Any = call._route
        post: Post = route
        if call._is_modern or post.is_unsent or post.former:
            message = None  # the end of the exchange says it; or there is nothing to cancel
        post.is_cancelled = message is not None
        super()._abandon(call, reason, text, message)
        if call._is_modern:
            self._late.pop(call._id, None)  # no answer can come

    def _end(self, trigger: StateTrigger, cause: CloseCause, cancel: CancelCause) -> None:
        self._ended_by = self._ended_by or cause.value
        if (
            cause in _LOST_SESSION
            and self._state is State.OPEN
            and self._endpoint._keep_for_reopening(self)
        ):
            return
        super()._end(trigger, cause, cancel)

    def _loss_of(self, call: OutgoingRequest) -> str:
        text = f"{call._method} was not answered: {self._ended_by}"
        if self._start_fault:
            text += f"; no new session could be opened: {self._start_fault}"
        return text

    def _closed(self, cause: CloseCause) -> None:
        super()._closed(cause)
        self._endpoint._finish()

    def take_over(self, other: ClientMachine, posts: Iterable[Post]) -> None:
        """Go on with requests of a session that is lost, in that which this machine opens.

        They keep their ids, and none is used again.
        """
        self._last_id, self._own_names = other._last_id, other._own_names
        self._sent = other._sent
        for post in posts:
            call = post.call
            assert call is not None  # it is a request
            self._outgoing[call._id] = other._outgoing.pop(call._id)
            if call._token is not None:
                self._tokens[call._token] = other._tokens.pop(call._token)
            post.machine = self
            if isinstance(listing := call._owner, Listing):
                self._fresh.setdefault(call._method, {})[listing] = None
                if listing in other._on_demand:
                    self._on_demand[listing] = other._on_demand.pop(listing)

    def _timer_fired(self, subject: Timed) -> None:
        route: Any = subject._route if isinstance(subject, OutgoingRequest) else None
        if route is None or route.machine is self:
            super()._timer_fired(subject)
        else:
            route.machine._timer_fired(subject)  # which has taken it over

    def forsake(self) -> None:
        """The session is gone, and with it all that was open in it; another machine goes on."""
        self._state = STATES[State.OPEN, StateTrigger.CLOSE]
        self._end_requests(CancelCause.FAILED)


def _has_tool(page: JSONObject, name: object) -> bool:
    tools: Any = page.get("tools")
    return is_list(tools) and any(is_object(tool) and tool.get("name") == name for tool in tools)
