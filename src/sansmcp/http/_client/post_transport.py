"""The client's end of a conversation over HTTP, where each message is POSTed by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from ..._connection.config import Config
from ..._connection.core import Core
from ..._connection.events import (
    CancelCause,
    CloseCause,
    FailureCause,
    FailureReason,
    ResponseReceived,
)
from ..._connection.handles import (
    OutgoingRequest,
    Purpose,
    Start,
    call_of,
    is_modern,
    purpose_of,
    set_route,
    subject_of,
    was_answered,
)
from ..._connection.machine import ClientMachine
from ..._connection.outgoing import Outcome
from ..._connection.tasks.board import TaskBoard
from ..._connection.transport import Transport
from ..._rules.sending import Breach
from ..._rules.state_tables import STATES, State, StateTrigger
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.values import JSONObject, Side, id_key, is_list, is_object
from .._headers import Headers
from .exchange import ExchangePurpose, ExchangeQueue
from .post import AskedOnStream, PostedMessage, post_of
from .responses import ReceivedResponses
from .tool_headers import ToolHeaders, message_fields

if TYPE_CHECKING:
    from ..._connection.caching.cache import CacheIdentity

_LOST_SESSION: Final = frozenset({CloseCause.SESSION_LOST, CloseCause.START_FAILED})
"""Causes that end a session, and not a conversation that had a session before."""


class SessionKeeper(Protocol):
    """The object that is told when the session of a transport opens and ends."""

    def opened(self) -> None:
        """The handshake is done."""
        ...

    def was_refused(self) -> None:
        """The server has answered `initialize` with an error: there is no session."""
        ...

    def keeps(self, transport: PostTransport) -> bool:
        """Whether the conversation goes on although its session ends, until it is reopened."""
        ...

    def finish(self) -> None:
        """The conversation is over, and every exchange with it."""
        ...


@attrs.define(eq=False, repr=False)
class ToolRefresh:
    """The retry of a tool call whose headers the server has refused (-32020).

    The tools are listed again, page by page up to the tool, since its schema says which headers
    repeat its arguments. If that changes the headers, the call is sent again, once.
    """

    _responses: ReceivedResponses
    _tool_headers: ToolHeaders

    def begins(self, call: OutgoingRequest, message: JSONObject) -> bool:
        """List the tools again if the server has refused the headers; return whether it has.

        Keeps HDR-038.
        """
        machine, post = self._responses.machine, post_of(call)
        error: Any = message.get("error")
        if (
            post.retried
            or not is_object(error)
            or error.get("code") != ErrorCode.HEADER_MISMATCH
            or machine.core.state is not State.OPEN
            or len(machine.outgoing.calls) >= machine.core.config.max_requests
        ):
            return False
        post.retried = True
        post.refusal = message
        if post.exchange is not None:
            post.exchange.abort()
        self._list_tools(call, post, {})
        return True

    def _list_tools(self, call: OutgoingRequest, post: PostedMessage, params: JSONObject) -> None:
        machine = self._responses.machine
        body = machine.messages.with_envelope(params, None)
        post.refresh = machine.outgoing.send_own("tools/list", body, Purpose.SCHEMAS, self, call)

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Go on with the call that waits for a page of tools, whose request has ended."""
        subject: Any = subject_of(call)
        waiting: OutgoingRequest = subject
        if not waiting.open:
            return
        post, core = post_of(waiting), self._responses.machine.core
        post.refresh = None
        result: Any = outcome.result if isinstance(outcome, ResponseReceived) else {}
        message: Any = core.codec.decode(post.body or b"")
        params: Any = message["params"]
        if self._sends_again(post, params):
            return
        cursor: Any = result.get("nextCursor")
        post.pages += 1
        if (
            isinstance(cursor, str)
            and not _has_tool(result, params.get("name"))
            and post.pages < core.config.max_pages
            and core.state is State.OPEN
        ):
            self._list_tools(waiting, post, {"cursor": cursor})
        else:
            refusal: Any = post.refusal
            self._responses.receive_kept(refusal)

    def _sends_again(self, post: PostedMessage, params: JSONObject) -> bool:
        """Send a call again if it has other headers by now; return whether it has.

        Keeps HDR-038.
        """
        try:
            fields = self._tool_headers.fields_of("tools/call", params)
        except LocalProtocolError:
            return False  # the headers can hold no such value
        if fields == post.more:
            return False
        post.more = fields
        post.heard = False
        post.send()
        return True

    def cancel(self, post: PostedMessage) -> None:
        """Cancel the request for tools, since the call that waited for it has ended."""
        if post.refresh is not None and post.refresh.open:
            text = "nobody waits for it any more"
            outgoing = self._responses.machine.outgoing
            outgoing.abandon(post.refresh, FailureReason.CANCELLED, text, None)


class PostTransport(Transport):
    """The transport of a client: each outgoing message is a `PostedMessage` in `ExchangeQueue`.

    Attributes:
        ended_by: Why the session is over; empty while it is not.
        fields: The headers of the message that a verb is about to send; None: the usual ones.
        machine: The protocol machine of this session.
        responses: What responses mean for its requests.
    """

    __slots__ = (
        "_is_opening",
        "_keeper",
        "_queue",
        "_refresh",
        "_start_failure",
        "_tool_headers",
        "ended_by",
        "fields",
        "machine",
        "responses",
    )

    core: Core  # which sets it

    def __init__(
        self,
        queue: ExchangeQueue,
        tool_headers: ToolHeaders,
        keeper: SessionKeeper,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        revisions: Sequence[str],
        requires: Iterable[str],
        config: Config,
        cache: CacheIdentity | None = None,
        tasks: TaskBoard | None = None,
    ) -> None:
        core = Core(
            Side.CLIENT,
            self,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            config=config,
            wake=None,
            newline=b"",
            timers=queue.core.timers,
            tasks=None if tasks is None else tasks.settings,
        )
        core.events = queue.core.events
        self.machine: ClientMachine = ClientMachine(core, requires, cache, tasks)
        self.responses: ReceivedResponses = ReceivedResponses(self.machine)
        self.fields: Headers | None = None
        self.ended_by: str = ""
        self._queue = queue
        self._tool_headers = tool_headers
        self._keeper = keeper
        self._refresh = ToolRefresh(self.responses, tool_headers)
        self._is_opening = False  # what is being queued is `notifications/initialized`
        self._start_failure = ""  # why no session could be opened

    # -------------------------------------------------------------------------------- output

    def before_send(self, call: OutgoingRequest) -> None:
        """Give a request its route: the POST that carries it."""
        fields, self.fields = self.fields, None
        modern = is_modern(call)
        if fields is None:
            fields = message_fields(call.method, named_by(call), ()) if modern else ()
        self._give_route(call, fields, modern=modern)

    def _give_route(self, call: OutgoingRequest, fields: Headers, *, modern: bool) -> PostedMessage:
        post = PostedMessage(self._queue, self.responses, call, fields, is_modern=modern)
        route: Any = post
        set_route(call, route)
        return post

    def queue(self, message: bytes, route: Any) -> None:
        """POST a message: that of its route, or one with a POST of its own."""
        core = self.core
        unsent = core.unsent + len(message)
        if unsent > core.config.max_unsent_bytes:
            if not core.is_refused(message, "a message"):
                core.overflowing = core.needs_settle = True
            return
        post: PostedMessage | None = None
        answered: PostedMessage | None = None
        if isinstance(route, AskedOnStream):
            answered = route.post
        else:
            post = route
        if post is None:
            modern = core.conversation.dialect.is_modern
            fields, self.fields = self.fields, None
            post = PostedMessage(
                self._queue,
                self.responses,
                None,
                fields or (),
                answered=answered,
                is_modern=modern,
            )
            if self._is_opening:
                self._queue.barrier = post
        elif post.body is not None:
            post = self._next_post(post)
        post.body = message
        post.send()

    def _next_post(self, post: PostedMessage) -> PostedMessage:
        """The POST for the next message of a route whose first message was POSTed before."""
        call = post.call
        assert call is not None  # else it would be no route
        if call.open:  # the same call once more
            post.concluded(is_answered=True)
            return self._give_route(call, post.more, modern=post.is_modern)
        purpose, modern = ExchangePurpose.CANCEL, post.is_modern
        return PostedMessage(
            self._queue, self.responses, None, (), is_modern=modern, purpose=purpose
        )

    def queue_initialized(self, message: bytes) -> None:
        """POST `notifications/initialized`, and nothing else before the server has it."""
        self._is_opening = True
        self.queue(message, None)
        self._is_opening = False

    def excerpt(self, data: bytes | bytearray, over: int | None) -> bytes:
        """Return the start of a bad message, without secrets of the caller."""
        queue = self._queue
        return queue.headers.excerpt(data, queue.core.session_id, over=over)

    # -------------------------------------------------------------------------------- opening

    def client_agreed(self) -> None:
        """Take the news that the handshake is done."""
        self.ended_by = ""
        self._keeper.opened()

    def initialize_refused(self) -> None:
        """Take the news that the server has refused `initialize`."""
        self._keeper.was_refused()

    def start_failed(
        self, start: Start, cause: FailureCause, text: str
    ) -> tuple[int | None, float | None]:
        """Return status and wait of the response that refused the start."""
        self._start_failure = text
        if cause is not FailureCause.REFUSED:
            return None, None
        call = call_of(start)
        assert call is not None  # which was refused
        return self.status_of(call)

    # ------------------------------------------------------------------------------- answers

    def takes_response(self, message: JSONObject) -> bool:
        """Whether a response counts: it came where it belongs, and causes no retry."""
        responses = self.responses
        if responses.is_replaying:
            return True
        call = self.machine.responses.answered_by(id_key(message.get("id")))
        if responses.is_standalone:
            text = "a response came on a stream that belongs to no request"
            self.core.report(Breach("SSE-024", text, tolerated=True), request=call)
        if call is None:
            return True
        post = post_of(call)
        if responses.body_of is not None and responses.body_of is not post:
            text = f"the HTTP response to another request holds the response to {call.method}"
            self.core.report(Breach("HTTP-018", text), request=call)
            return False
        post.heard = True
        if post.is_modern:
            if call.method == "tools/list":
                self._tool_headers.learn(message.get("result"))
            elif call.method == "tools/call" and self._refresh.begins(call, message):
                return False
        return True

    def status_of(self, call: OutgoingRequest) -> tuple[int | None, float | None]:
        """Return status and wait of the response to a request."""
        post = post_of(call)
        return post.status, post.wait

    def result_cached(self, method: str, result: JSONObject) -> None:
        """Learn from a list of tools, as from one that the server has sent."""
        if method == "tools/list":
            self._tool_headers.learn(result)

    # --------------------------------------------------------------------------------- ending

    def became_task(self, call: OutgoingRequest) -> None:
        """End the exchange of a request that was answered with a task."""
        post_of(call).concluded(is_answered=True)

    def request_concluded(self, call: OutgoingRequest) -> None:
        """End the exchange of a request that has had its ending."""
        if call.task_id is not None:
            return  # its exchange has ended before, if it had one
        post = post_of(call)
        if self.core.state is not State.OPEN and post.ends_task:
            post.over = True  # the server has to hear of it, and nobody waits for the response
            return
        post.concluded(is_answered=was_answered(call))
        self._refresh.cancel(post)

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """Return the message that cancels a request; None where the server needs none.

        In the modern revision the end of the exchange cancels the request, and a request that the
        server does not know cannot be cancelled.

        Keeps SSE-013, CANC-017, SUBS-011.
        """
        post = post_of(call)
        if post.is_modern or post.is_unsent or post.former:
            message = None
        post.is_cancelled = message is not None
        return message

    def request_abandoned(self, call: OutgoingRequest) -> None:
        """Expect no late response if the exchange is over."""
        if call.task_id is not None or post_of(call).is_modern:
            self.machine.outgoing.late.pop(call.id, None)

    def keeps_open(self, cause: CloseCause) -> bool:
        """Whether the conversation goes on until it is reopened, in another session."""
        self.ended_by = self.ended_by or cause.value
        return cause in _LOST_SESSION and self.core.state is State.OPEN and self._keeper.keeps(self)

    def was_not_run(self, call: OutgoingRequest) -> bool:
        """Whether the server has certainly not run a request, which waits for another session."""
        return call.task_id is None and post_of(call).not_run

    def loss_text(self, call: OutgoingRequest) -> str:
        """Return why a request has no response when its session has ended."""
        text = f"{call.method} was not answered: {self.ended_by}"
        if self._start_failure:
            text += f"; no new session could be opened: {self._start_failure}"
        return text

    def closed(self, cause: CloseCause) -> None:
        """Report the end of the conversation, and end every exchange."""
        super().closed(cause)
        self._keeper.finish()

    def take_over(self, other: PostTransport, posts: Iterable[PostedMessage]) -> None:
        """Go on with requests of a lost session in the session that this transport opens.

        They keep their ids, and no id is used again.
        """
        calls: list[OutgoingRequest] = []
        for post in posts:
            assert post.call is not None  # it is a request
            calls.append(post.call)
            post.responses = self.responses
        self.machine.take_over(other.machine, calls)

    def forsake(self) -> None:
        """End everything that was open in a lost session, while another transport goes on."""
        self.core.state = STATES[State.OPEN, StateTrigger.CLOSE]
        self.core.end_parts(CancelCause.FAILED)


def named_by(call: OutgoingRequest) -> JSONObject:
    """The params of a request of the library that a header repeats.

    Keeps XTASK-134.
    """
    return {"taskId": subject_of(call).task_id} if purpose_of(call) is Purpose.TASK else {}


def _has_tool(page: JSONObject, name: object) -> bool:
    tools: Any = page.get("tools")
    return is_list(tools) and any(is_object(tool) and tool.get("name") == name for tool in tools)
