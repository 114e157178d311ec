"""One message of a client on its way to the server, and its answer on the way back.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._connection.events import FailureCause, FailureReason
from ..._connection.handles import Listing, OutgoingRequest, Ping, Purpose, Start, Subscription
from ..._rules.sending import Breach
from ..._wire.outline import Kind, read_head
from ..._wire.values import JSONObject, id_key
from .._headers import Headers
from .._server.events import MessageUndelivered
from .._sse import OverlongEvent, ServerSentEvent
from .errors import error_in, is_modern_error
from .events import Asked, MessageRefused
from .exchange import ClientExchange, ExchangePurpose, Reading
from .headers import event_id_value
from .response_head import Head
from .retries import JSON, SSE, Lane

if TYPE_CHECKING:
    from .connection import PostConnection

_CALLING: Final[Headers] = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
)
_SAYS_LITTLE: Final = frozenset({401, 403, 407, 408, 413, 421, 429, 431})
"""Statuses that seldom come of what a server speaks, but do with some servers."""
_IDEMPOTENT: Final = frozenset(
    {
        *("server/discover", "initialize", "ping", "logging/setLevel", "completion/complete"),
        *("tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read"),
        *("resources/templates/list", "resources/subscribe", "resources/unsubscribe"),
        *("subscriptions/listen", "tasks/get", "tasks/list", "tasks/result"),
    }
)
"""Methods whose requests may be sent again: a second one changes nothing that the first did not.

`initialize` is one of them: a session that was opened twice leaves an unused one, which the server
ends by itself. `tools/call` is none, because `idempotentHint` of a tool is only a hint, and neither
are the methods of extensions, which are not known here.
"""
_IDEMPOTENT_NOTES: Final = tuple(
    b'{"jsonrpc":"2.0","method":"notifications/%b"' % name
    for name in (b"initialized", b"cancelled", b"progress", b"roots/list_changed")
)
_LOST: Final = FailureReason.LOST
_INVALID: Final = FailureReason.INVALID_ANSWER


def says_what_it_speaks(status: int) -> bool:
    """Whether a status that says no may come from a server that speaks something else.

    502 and above come from a gateway, or from a server that is overloaded. Every 4xx counts:
    servers and gateways before 2026-07-28 answer a method they do not know with any of them.
    """
    return 400 <= status < 502


def says_little(status: int) -> bool:
    """Whether a status that says no seldom has to do with what the server speaks."""
    return not says_what_it_speaks(status) or status in _SAYS_LITTLE


class Post(Lane):
    """A message that is POSTed; the route of the call, where it is a request.

    Attributes:
        body: The message; None until it is there, and empty when it is of no more use.
        call: The request that it is; None for a notification or an answer.
        former: It is under way in a session that was lost since, and the server may have run it.
        heard: An answer to it came.
        is_cancelled: The server is told that nobody waits for the answer any more.
        is_modern: It is of the revision in which fields repeat what it says.
        connection: Whose it is. After the loss of a session there is another one.
        more: The fields that repeat what it says.
        moved: It was sent a second time, in a new session.
        not_run: The server has certainly not run it, and it waits for another session.
        pages: Pages of that listing that have come.
        purpose: What for.
        refresh: The listing of tools that it waits for, where the server has found that fields and
            body of it differ.
        refusal: What the server has said to it, until it is certain that this counts.
        retried: It was sent a second time with other fields.
        status: Of the response to it; None: there is none yet.
        wait: Seconds after which the server wants to be asked again; None: it did not say.
    """

    __slots__ = (
        "body",
        "call",
        "connection",
        "former",
        "heard",
        "is_cancelled",
        "is_modern",
        "more",
        "moved",
        "not_run",
        "pages",
        "purpose",
        "refresh",
        "refusal",
        "retried",
        "status",
        "wait",
    )

    def __init__(
        self,
        connection: PostConnection,
        call: OutgoingRequest | None,
        more: Headers,
        *,
        is_modern: bool,
        purpose: ExchangePurpose = ExchangePurpose.POST,
    ) -> None:
        super().__init__(connection.endpoint)
        self.connection = connection
        self.call = call
        self.more = more
        self.is_modern = is_modern
        self.purpose = purpose
        self.body: bytes | None = None
        self.former = False
        self.heard = False
        self.is_cancelled = False
        self.moved = False
        self.not_run = False
        self.retried = False
        self.status: int | None = None
        self.wait: float | None = None
        self.pages = 0
        self.refresh: OutgoingRequest | None = None
        self.refusal: JSONObject | str = ""

    @property
    def awaited(self) -> bool:
        return self.call is not None and not self.over

    @property
    def request(self) -> Asked | None:
        call = self.call
        if call is None or call._purpose is Purpose.APPLICATION:
            return call
        subject = call._subject
        return subject if isinstance(subject, Listing | Ping | Start | Subscription) else None

    @property
    def is_unsent(self) -> bool:
        """The server knows nothing of it yet."""
        exchange = self.exchange
        if exchange is None:
            return self in self.endpoint._kept or self in self.endpoint._moved
        return exchange.method == "POST" and not exchange._given_out

    @property
    def may_repeat(self) -> bool:
        if self.repeated:
            return False
        if self.call is None:  # an answer is matched by its id, and the second one ignored
            return self._is_answer or (self.body or b"").startswith(_IDEMPOTENT_NOTES)
        return bool(self.last_event_id) or self.call._method in _IDEMPOTENT

    @property
    def _is_answer(self) -> bool:
        return b'"method"' not in (self.body or b"")[:30]

    # -------------------------------------------------------------------------------- sending

    def send(self) -> None:
        endpoint = self.endpoint
        if self.last_event_id:
            self._get(ExchangePurpose.RESUME)
            return
        url = self.url or endpoint._post_url or endpoint._url
        endpoint._enqueue(ClientExchange(self, "POST", url, self.purpose, self.body or b""))

    def fields(self, exchange: ClientExchange) -> Headers:
        if exchange.method == "GET":
            return super().fields(exchange)
        return _CALLING + self.more

    # ------------------------------------------------------------------------------ receiving

    def head(self, exchange: ClientExchange, head: Head) -> None:
        if exchange.purpose is ExchangePurpose.RESUME:
            text = f"the stream cannot be taken up again: GET was answered with {head.status}"
            if not self._opens_stream(exchange, head, text):
                self.lost(text)
            return
        self.endpoint._passed(self)
        if not head.is_good:
            exchange._read_whole()
            return
        self.redirects = self.challenged = 0
        call = self.call
        if call is None or self.endpoint._post_url is not None:
            self._taken(exchange, head)
            return
        self.status, self.wait = head.status, None
        if call._purpose is Purpose.INITIALIZE:
            self.endpoint._keep_session(head)
        elif not self.is_modern and not self.former:
            self.endpoint._is_useful = True
        if head.media_type == SSE:
            exchange._read_stream("")
        elif head.media_type == JSON:
            exchange._read_whole()
        else:
            form = head.media_type[:80] or "no form"
            text = f"{call._method} was answered with status {head.status} and {form}"
            self.endpoint._report(Breach("HTTP-018", text))
            self._fail(call, _INVALID, text)
            exchange._abort()

    def _taken(self, exchange: ClientExchange, head: Head) -> None:
        """The server has it, and will answer elsewhere, if at all."""
        if self.call is None:
            self.over = True
            if head.status != 202 and not self.is_modern and self.endpoint._post_url is None:
                text = f"a message without an answer got the status {head.status}"
                self.endpoint._report(Breach("HTTP-014", text, tolerated=True))
        if head.media_type == SSE:
            exchange._abort()  # it would never end

    def event(self, exchange: ClientExchange, item: ServerSentEvent | OverlongEvent) -> None:
        call = self.call
        if (
            isinstance(item, OverlongEvent)
            and call is not None
            and call.open
            and read_head(item.excerpt)[0] is not Kind.CALL
        ):
            limit = self.endpoint._config.max_message_bytes
            text = self.connection.machine.answers.overlong_text(call, f"more than {limit}")
            excerpt = self.endpoint._excerpt(item.excerpt, over=limit)
            self.endpoint._report(Breach("OWN-001", text), excerpt=excerpt, request=call)
            self._fail(call, _INVALID, text)
        elif not self.former or self._still_counts(item):
            self.endpoint._receive_event(item, standalone=False)

    def _still_counts(self, item: ServerSentEvent | OverlongEvent) -> bool:
        """Whether an event means something although its session is lost.

        The answer does, and progress of this call, which the server may still be running. What else
        the server asks and tells there belongs to nothing any more.
        """
        if isinstance(item, OverlongEvent):
            return read_head(item.excerpt)[0] is not Kind.CALL
        if read_head(item.data)[0] is not Kind.CALL:
            return True
        assert self.call is not None  # nothing else is former
        return self.connection.is_progress_of(self.call, item.data)

    def whole(self, head: Head, body: bytes) -> None:
        call = self.call
        if self.over:
            return  # its answer came elsewhere, and was faster
        if not head.is_good:
            self._refused(head, body)
        else:
            assert call is not None  # nobody reads what is said to anything else
            connection = self.connection
            fault = connection.receive_body(self, body)
            if not self.heard:
                what = "it is empty" if not body else fault or "it answers no request"
                text = f"the body of the response to {call._method} (status {head.status})"
                self._fail(call, _INVALID, f"{text} is no answer: {what}")

    def broken(self, exchange: ClientExchange, text: str) -> None:
        endpoint, call, head = self.endpoint, self.call, exchange._head
        endpoint._passed(self)
        if self.over:
            return
        if exchange.purpose is ExchangePurpose.RESUME:
            if head is None or not head.is_good:
                self.attempts += 1
            if self._has_place:
                self.ended(text)
            else:  # the server has taken it back meanwhile
                self.lost(text)
        elif call is None:
            self.over = True
            if head is None:
                endpoint._events.append(MessageUndelivered(session=None, is_answer=self._is_answer))
            else:
                endpoint._events.append(MessageRefused(status=head.status))
        elif self._can_be_resumed(exchange):
            self.later(text)
        else:
            reason = _LOST
            if self.former:
                text += "; the server did not know its session any more"
            if exchange._reading is Reading.STREAM and call._purpose is Purpose.DISCOVER:
                reason = _INVALID  # it is there, and does not know what to say
            self._fail(call, reason, f"{call._method} got no answer: {text}")

    def _can_be_resumed(self, exchange: ClientExchange) -> bool:
        is_broken_stream = exchange._reading is Reading.STREAM and not self.is_modern
        return is_broken_stream and not self.former and self._has_place

    @property
    def _has_place(self) -> bool:
        """Whether it can be said where the stream is to be taken up."""
        return event_id_value(self.last_event_id) is not None

    def lost(self, text: str) -> None:
        assert self.call is not None  # nothing else has a stream
        self._fail(self.call, _LOST, f"{self.call._method} got no answer: {text}")

    # -------------------------------------------------------------------------------- refused

    def _refused(self, head: Head, body: bytes) -> None:
        """The body of a status that says no."""
        endpoint, call = self.endpoint, self.call
        status, error = head.status, error_in(body, self.connection)
        is_of_this_session = not self.is_modern and not self.former
        if is_of_this_session and endpoint._is_of_session(status, error, body, call):
            text = "a session that is not known is answered with status 400 instead of 404"
            endpoint._report(Breach("SESS-008", text, tolerated=True))
            endpoint._lose_session(self, status)
            return
        self.status = status
        self.wait = wait = endpoint._retry_after(head)
        if call is not None:
            id: Any = None if error is None else error.get("id")
            if id is not None and id_key(id) != call._id:
                # The exchange says whose it is.
                text = f"an answer has the id {id!r:.80} instead of {call._id!r}"
                endpoint._report(Breach("OWN-019", text, tolerated=True))
        is_try = call is not None and (
            self.connection.falls_back(status, wait)
            if call._purpose is Purpose.DISCOVER
            else call._purpose is Purpose.INITIALIZE and not says_little(status)
        )
        if call is None or (not is_try and (wait is not None or error is None)):
            said: Any = {} if error is None else error["error"]
            endpoint._events.append(
                MessageRefused(
                    status=status,
                    request=self.request,
                    code=said.get("code"),
                    message=said.get("message"),
                    data=said.get("data"),
                    retry_after=wait,
                    excerpt=endpoint._excerpt(body) if error is None else b"",
                )
            )
        if call is None:
            self.over = True
            return
        text = f"the server answered {call._method} with status {status}"
        if wait is not None:
            text += f", and wants to be asked again in {wait:.4g} s"
        self.refusal = text if error is None else error
        if call._purpose is Purpose.DISCOVER and wait and not is_modern_error(error):
            self.connection.fail_start(call, FailureCause.REFUSED, text, error)
        elif call._purpose is Purpose.INITIALIZE and endpoint._may_be_old(status, error):
            endpoint._open_old(self)
        elif error is not None:
            self.connection.answer_with(call, error)
        else:
            self.connection.refuse(call, status, text)

    def refused_for_good(self, text: str | None) -> None:
        """There is no other transport to try: what was said to initialize counts."""
        call, refusal = self.call, self.refusal
        assert call is not None  # it is initialize
        if isinstance(refusal, str):
            self.connection.refuse(call, 0, f"{refusal}; {text}" if text else refusal)
        else:
            self.connection.answer_with(call, refusal)

    def unreadable(self, head: Head, text: str) -> None:
        if self.call is None:
            self.give_up(head.status, text)
        else:
            self.endpoint._passed(self)
            self._fail(self.call, _INVALID, f"{self.call._method}: {text}")

    def kept(self) -> None:
        if self.call is not None and self.call._purpose is Purpose.DISCOVER:
            self.connection.machine.outgoing.suspend_timeout(self.call)

    def authorized(self) -> None:
        call, endpoint = self.call, self.endpoint
        if call is not None and call._purpose is Purpose.DISCOVER:
            self.connection.machine.outgoing.resume_timeout(call)
        elif call is not None and call._purpose is Purpose.INITIALIZE and endpoint._refused_probes:
            self.connection.probe_again(call, endpoint._probe_timeout)
            return
        self.send()

    def give_up(self, status: int, text: str) -> None:
        self.endpoint._passed(self)
        self.status, self.wait = status, None
        if self.call is None:
            self.over = True
            self.endpoint._events.append(MessageRefused(status=status))
        else:
            self.connection.refuse(self.call, 0, f"{self.call._method}: {text}")

    def _fail(self, call: OutgoingRequest, reason: FailureReason, text: str) -> None:
        if call.open:
            self.connection.fail(call, reason, text)

    # --------------------------------------------------------------------------------- ending

    def concluded(self, *, is_answered: bool) -> None:
        """The call has had its ending."""
        endpoint, exchange = self.endpoint, self.exchange
        self.over = True
        self.body = b""  # its handle may be kept for long, so that a late answer is recognised
        endpoint._timers.drop(self)
        endpoint._kept.pop(self, None)
        endpoint._moved.pop(self, None)
        if exchange is None:
            return
        # On HTTP+SSE the answer may be faster than the thanks for the question.
        is_faster = endpoint._post_url is not None and exchange._given_out
        if is_answered and (is_faster or exchange._reading is Reading.STREAM):
            endpoint._linger(exchange)
        elif exchange._reading is Reading.STREAM and self.is_cancelled:
            endpoint._trail(exchange)
        else:
            exchange._abort()
