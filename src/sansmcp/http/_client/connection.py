"""The client's end of a conversation over HTTP, where each message is a request of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..._connection.config import Config
from ..._connection.core import Core
from ..._connection.events import (
    CancelCause,
    CloseCause,
    ErrorReceived,
    FailureCause,
    FailureReason,
    ResponseReceived,
)
from ..._connection.handles import Listing, OutgoingRequest, Purpose, Start
from ..._connection.machine import ClientMachine
from ..._connection.outgoing import Outcome, RequestOwner
from ..._connection.transport import Transport
from ..._rules.sending import Breach
from ..._rules.state_tables import STATES, PhaseTrigger, RequestState, State, StateTrigger
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.framing import BOM
from ..._wire.values import JSONObject, Side, id_key, is_list, is_object
from .._headers import Headers
from .exchange import ExchangePurpose
from .headers import message_fields
from .post import Post, says_little, says_what_it_speaks

if TYPE_CHECKING:
    from .endpoint import ClientEndpoint


_LOST_SESSION: Final = frozenset({CloseCause.SESSION_LOST, CloseCause.START_FAILED})
"""What ends a session, and not a conversation that had one before."""


class PostConnection(Transport):
    """The transport of a client: messages that go out become lanes of the endpoint.

    Attributes:
        endpoint: The endpoint that it belongs to.
        machine: The parts of the connection.
        fields: The HTTP fields of the message that a verb is about to send; None: the usual ones.
        ended_by: Why the conversation is over; empty while it is not.
    """

    __slots__ = (
        "_body_of",
        "_is_opening",
        "_is_replaying",
        "_is_standalone",
        "_start_fault",
        "ended_by",
        "endpoint",
        "fields",
        "machine",
    )

    core: Core  # which sets it

    def __init__(
        self,
        endpoint: ClientEndpoint,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        revisions: Sequence[str],
        requires: Iterable[str],
        config: Config,
    ) -> None:
        self.endpoint = endpoint
        core = Core(
            Side.CLIENT,
            self,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            config=config,
            wake=None,
            newline=b"",
            timers=endpoint._timers,
        )
        events: Any = endpoint._events  # with some that only the endpoint has
        core.events = events
        self.machine = ClientMachine(core, requires)
        self.fields: Headers | None = None
        self.ended_by = ""
        self._is_opening = False  # what is being queued is `notifications/initialized`
        self._is_standalone = False  # what is being received came on the stream of a GET
        self._is_replaying = False  # what is being received was received before, and kept
        self._body_of: Post | None = None  # whose response's body, no stream, is being received
        self._start_fault = ""  # why no session could be opened

    # -------------------------------------------------------------------------------- output

    def before_send(self, call: OutgoingRequest) -> None:
        """The route of a request is the POST that carries it."""
        fields, self.fields = self.fields, None
        is_modern = call._is_modern
        if fields is None:
            fields = message_fields(call._method, {}, ()) if is_modern else ()
        call._route = self._post(call, fields, is_modern=is_modern)

    def _post(
        self,
        call: OutgoingRequest | None,
        fields: Headers,
        *,
        is_modern: bool,
        purpose: ExchangePurpose = ExchangePurpose.POST,
    ) -> Any:
        return Post(self, call, fields, is_modern=is_modern, purpose=purpose)

    def queue(self, message: bytes, route: Any) -> None:
        """POST a message: that of its route, or one with a POST of its own."""
        core = self.core
        unsent = core.unsent + len(message)
        if unsent > core.config.max_unsent_bytes:
            if not core.is_refused(message, "a message"):
                core.overflowing = core.needs_settle = True
            return
        post: Post | None = route
        if post is None:
            is_modern = core.conversation.dialect.is_modern
            fields, self.fields = self.fields, None
            post = self._post(None, fields or (), is_modern=is_modern)
            if self._is_opening:
                self.endpoint._barrier = post
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

    def queue_initialized(self, message: bytes) -> None:
        """Nothing else is POSTed before the server has `notifications/initialized`."""
        self._is_opening = True
        self.queue(message, None)
        self._is_opening = False

    def excerpt(self, data: bytes | bytearray, over: int | None) -> bytes:
        """The start of a bad message, without what the caller keeps secret."""
        return self.endpoint._excerpt(data, over=over)

    # -------------------------------------------------------------------------------- opening

    def client_agreed(self) -> None:
        """The session is open."""
        self.endpoint._opened()

    def initialize_refused(self) -> None:
        """A response that refuses `initialize` opens no session."""
        self.endpoint._session = None

    def start_failed(
        self, start: Start, cause: FailureCause, text: str
    ) -> tuple[int | None, float | None]:
        """Status and wait of the response that refused the start."""
        self._start_fault = text
        if cause is not FailureCause.REFUSED:
            return None, None
        assert start._call is not None  # which was refused
        return self.status_of(start._call)

    def fail_start(
        self,
        call: OutgoingRequest,
        cause: FailureCause,
        text: str,
        message: JSONObject | None = None,
    ) -> None:
        """The server cannot be opened, in whatever revision; it may have said why."""
        start: Any = call._subject
        said: Any = None if message is None else message["error"]
        error = None
        if said is not None:
            status, retry_after = self.status_of(call)
            error = ErrorReceived(
                request=call,
                code=said["code"],
                message=said["message"],
                data=said.get("data"),
                status=status,
                retry_after=retry_after,
            )
            text += f": {error.message[:300]} ({error.code})"
        self.machine.outgoing.conclude(call, RequestState.CANCELLED)
        self.machine.handshake.start_failed(start, cause, text, error)

    def falls_back(self, status: int, wait: float | None) -> bool:
        """Whether `initialize` follows where the probe was refused like this.

        A server that says when it wants to be asked again is not asked before, and so not at once.
        """
        return bool(self.core.legacy_revisions) and says_what_it_speaks(status) and not wait

    def probe_again(self, call: OutgoingRequest, timeout: float | None) -> None:
        """There are other credentials: it may be that the server answers the probe now.

        Else `initialize` with them would open a server of both eras in the older one.
        """
        start: Any = call._subject
        self.machine.outgoing.conclude(call, RequestState.CANCELLED)
        self.core.conversation.move(PhaseTrigger.INITIALIZE_ERROR)
        self.machine.discovery.probe(start, timeout)

    # ------------------------------------------------------------------------------- answers

    def takes_answer(self, message: JSONObject) -> bool:
        """Whether an answer counts: it came where it belongs, and asks for no second try."""
        if self._is_replaying:
            return True
        call = self.machine.answers.answered_by(id_key(message.get("id")))
        if self._is_standalone:
            text = "an answer came on a stream that belongs to no request"
            self.core.report(Breach("SSE-024", text, tolerated=True), request=call)
        if call is None:
            return True
        route: Any = call._route
        post: Post = route
        if self._body_of is not None and self._body_of is not post:
            text = f"the response to another request holds an answer to {call._method}"
            self.core.report(Breach("HTTP-018", text), request=call)
            return False
        post.heard = True
        if call._is_modern:
            if call._method == "tools/list":
                self.endpoint._learn(message.get("result"))
            elif call._method == "tools/call" and self._refreshes(call, post, message):
                return False
        return True

    def receive_body(self, post: Post, body: bytes) -> str:
        """Receive the body of a good response, which answers nothing but what was POSTed there.

        Returns:
            What is wrong with it; empty if nothing is.
        """
        self.core.last_fault = None
        self._body_of = post
        self.machine.receive_whole(body)
        self._body_of = None
        return self._fault_text()

    def _fault_text(self) -> str:
        """The text of the last fault; empty if there was none."""
        fault = self.core.last_fault
        return "" if fault is None else fault.text

    def receive_event(self, data: bytes | bytearray, *, standalone: bool) -> None:
        """Receive a message of an event stream; `standalone`: that of a GET."""
        self._is_standalone = standalone
        self.machine.receive_whole(data)
        self._is_standalone = False

    def is_progress_of(self, call: OutgoingRequest, data: bytes) -> bool:
        """Whether a request or a notification is a notification of progress of this call."""
        try:
            message: Any = self.core.decoder.decode(data.removeprefix(BOM))
        except (ValueError, RecursionError):
            return False
        params: Any = message.get("params")
        return (
            message.get("method") == "notifications/progress"
            and "id" not in message
            and is_object(params)
            and (token := id_key(params.get("progressToken"))) is not None
            and self.machine.outgoing.tokens.get(token) is call
        )

    def answer_with(self, call: OutgoingRequest, message: JSONObject) -> None:
        """The answer to a call is this error, although it may not name it."""
        error: Any = message["error"]
        answer: JSONObject = {"jsonrpc": "2.0", "id": call._id, "error": error}
        self.machine.answers.receive_answer(answer)

    def status_of(self, call: OutgoingRequest) -> tuple[int | None, float | None]:
        """Status and wait of the response to a request."""
        route: Any = call._route
        post: Post = route
        return post.status, post.wait

    def refuse(self, call: OutgoingRequest, status: int, text: str) -> None:
        """The server has refused a request, with a status that may say what it speaks, or 0."""
        if call._purpose is Purpose.DISCOVER and (
            not says_what_it_speaks(status)
            or (says_little(status) and not self.falls_back(status, None))
        ):
            self.fail_start(call, FailureCause.REFUSED, text)
        else:
            self.machine.outgoing.abandon(call, FailureReason.REFUSED, text, None)

    def fail(self, call: OutgoingRequest, reason: FailureReason, text: str) -> None:
        """A request has no proper answer, and will not have one."""
        if call._purpose is Purpose.DISCOVER and reason is FailureReason.LOST:
            self.fail_start(call, FailureCause.LOST, text)
        else:
            self.machine.outgoing.abandon(call, reason, text, None)

    # -------------------------------------------------------------- the fields of tools' arguments

    def _refreshes(self, call: OutgoingRequest, post: Post, message: JSONObject) -> bool:
        """Whether a call is to be tried again once it is known which fields it needs."""
        error: Any = message.get("error")
        if (
            post.retried
            or not is_object(error)
            or error.get("code") != ErrorCode.HEADER_MISMATCH
            or self.core.state is not State.OPEN
            or len(self.machine.outgoing.calls) >= self.core.config.max_requests
        ):
            return False
        post.retried = True
        post.refusal = message
        if post.exchange is not None:
            post.exchange._abort()
        self._list_tools(call, post, {})
        return True

    def _list_tools(self, call: OutgoingRequest, post: Post, params: JSONObject) -> None:
        body = self.machine.messages.with_envelope(params, None)
        post.refresh = self.machine.outgoing.send_own(
            "tools/list", body, Purpose.SCHEMAS, self, call
        )

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """A page of tools has come, or will not come: the call that waits for it goes on."""
        subject: Any = call._subject
        waiting: OutgoingRequest = subject
        if not waiting.open:
            return
        route: Any = waiting._route
        post: Post = route
        post.refresh = None
        result: Any = outcome.result if isinstance(outcome, ResponseReceived) else {}
        message: Any = self.core.codec.decode(post.body or b"")
        params: Any = message["params"]
        if self._sends_again(post, params):
            return
        cursor: Any = result.get("nextCursor")
        post.pages += 1
        if (
            isinstance(cursor, str)
            and not _has_tool(result, params.get("name"))
            and post.pages < self.core.config.max_pages
            and self.core.state is State.OPEN
        ):
            self._list_tools(waiting, post, {"cursor": cursor})
        else:
            refusal: Any = post.refusal
            self._is_replaying = True
            self.machine.answers.receive_answer(refusal)
            self._is_replaying = False

    def _sends_again(self, post: Post, params: JSONObject) -> bool:
        """Send a call with the fields that it needs by now, if these are others than before."""
        try:
            fields = self.endpoint._fields_of("tools/call", params)
        except LocalProtocolError:
            return False  # they can hold no such value
        if fields == post.more:
            return False
        post.more = fields
        post.heard = False
        post.send()
        return True

    # --------------------------------------------------------------------------------- ending

    def request_concluded(self, call: OutgoingRequest) -> None:
        """Nobody waits for the response to a request any more."""
        route: Any = call._route
        post: Post = route
        post.concluded(is_answered=call._state is RequestState.ANSWERED)
        if post.refresh is not None and post.refresh.open:
            text = "nobody waits for it any more"
            self.machine.outgoing.abandon(post.refresh, FailureReason.CANCELLED, text, None)

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """In the modern revision the end of the exchange says it; or there is nothing to cancel."""
        route: Any = call._route
        post: Post = route
        if call._is_modern or post.is_unsent or post.former:
            message = None
        post.is_cancelled = message is not None
        return message

    def request_abandoned(self, call: OutgoingRequest) -> None:
        """No late answer can come where the exchange is over."""
        if call._is_modern:
            self.machine.outgoing.late.pop(call._id, None)

    def keeps_open(self, cause: CloseCause) -> bool:
        """Whether the conversation goes on when it is asked again, in another session."""
        self.ended_by = self.ended_by or cause.value
        return (
            cause in _LOST_SESSION
            and self.core.state is State.OPEN
            and self.endpoint._keep_for_reopening(self)
        )

    def was_not_run(self, call: OutgoingRequest) -> bool:
        """Whether the server has certainly not run a request: it waits for another session."""
        route: Any = call._route
        post: Post = route
        return post.not_run

    def loss_text(self, call: OutgoingRequest) -> str:
        """Why a request has no answer when its session has ended."""
        text = f"{call._method} was not answered: {self.ended_by}"
        if self._start_fault:
            text += f"; no new session could be opened: {self._start_fault}"
        return text

    def closed(self, cause: CloseCause) -> None:
        """The conversation is over, and every exchange with it."""
        super().closed(cause)
        self.endpoint._finish()

    def take_over(self, other: PostConnection, posts: Iterable[Post]) -> None:
        """Go on with requests of a session that is lost, in that which this connection opens.

        They keep their ids, and none is used again.
        """
        mine, theirs = self.machine, other.machine
        owners: dict[RequestOwner, RequestOwner] = {
            theirs.outgoing: mine.outgoing,
            theirs.pings: mine.pings,
            theirs.listings: mine.listings,
        }
        calls: list[OutgoingRequest] = []
        for post in posts:
            call = post.call
            assert call is not None  # it is a request
            calls.append(call)
            call._owner = owners[call._owner]
            post.connection = self
            if isinstance(call._subject, Listing):
                mine.listings.take_over(theirs.listings, call._subject)
        mine.outgoing.take_over(theirs.outgoing, calls)

    def forsake(self) -> None:
        """The session is gone, and with it all that was open in it; another connection goes on."""
        self.core.state = STATES[State.OPEN, StateTrigger.CLOSE]
        self.core.end_parts(CancelCause.FAILED)


def _has_tool(page: JSONObject, name: object) -> bool:
    tools: Any = page.get("tools")
    return is_list(tools) and any(is_object(tool) and tool.get("name") == name for tool in tools)
