"""One message of a client on its way to the server, and its response on the way back.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from ..._connection.events import FailureReason
from ..._connection.handles import (
    OF_APPLICATION,
    Listing,
    OutgoingRequest,
    Ping,
    Purpose,
    Start,
    Subscription,
    purpose_of,
    route_of,
    subject_of,
    was_answered,
)
from ..._rules.sending import Breach
from ..._wire.outline import OutlineKind, read_head
from ..._wire.values import JSONObject
from .._headers import Headers
from .._server.events import MessageUndelivered
from .._sse import OverlongEvent, ServerSentEvent
from .events import Asked, MessageRefused
from .exchange import ClientExchangeCore, ExchangeOwner, ExchangePurpose, Reading
from .headers import event_id_value
from .response_head import Head
from .responses import ReceivedResponses
from .retries import StreamRetries
from .streams import JSON, SSE, opens_stream

_POST_HEADERS: Final[Headers] = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
)
_IDEMPOTENT: Final = frozenset(
    {
        *("server/discover", "initialize", "ping", "logging/setLevel", "completion/complete"),
        *("tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read"),
        *("resources/templates/list", "resources/subscribe", "resources/unsubscribe"),
        *("subscriptions/listen", "tasks/get", "tasks/list", "tasks/result"),
    }
)
"""Methods whose requests may be sent again: a second one changes nothing that the first did not.

`initialize` is among them: if a session is opened twice, the server ends the unused one by itself.
`tools/call` is not among them, because `idempotentHint` of a tool is only a hint, and neither are
the methods of extensions, which are unknown here.
"""
_IDEMPOTENT_NOTES: Final = tuple(
    b'{"jsonrpc":"2.0","method":"notifications/%b"' % name
    for name in (
        *(b"initialized", b"cancelled", b"progress", b"roots/list_changed"),
        b"tasks/status",  # it makes the server look again
    )
)
_POST: Final = ExchangePurpose.POST
_RESUME: Final = ExchangePurpose.RESUME  # looking a member up in its enum takes time
_STREAM: Final = Reading.STREAM
_LOST: Final = FailureReason.LOST
_INVALID: Final = FailureReason.INVALID_ANSWER


@attrs.define(eq=False, repr=False)
class AskedOnStream:
    """The route of the requests that the server sends on the stream of a response.

    Attributes:
        post: The message that the response answers.
        principal: None: a server is not authenticated by its requests.
        context: None: a client has no context for requests of the server.
    """

    post: PostedMessage
    principal: None = None
    context: None = None


@attrs.define(eq=False, repr=False)
class PostedMessage(ExchangeOwner):
    """A message that is POSTed; it is the route of a request.

    Attributes:
        answered: The message on whose stream the server sent the request that this message is
            about; None: there is none.
        body: The message; None before it is composed, and empty when it is of no more use.
        call: The request that the message is; None for a notification or a response.
        former: The request was sent in a session that was lost since; the server may have run it.
        heard: A response to the request came.
        is_cancelled: The server is told that the request is cancelled.
        more: The headers that repeat what the message says.
        moved: The request was sent a second time, in a new session.
        not_run: The server has certainly not run the request, which waits for another session.
        pages: How many pages of tools have come for `refresh`.
        purpose: What its exchanges are for.
        refresh: The request for a page of tools that the retry waits for, after the server has
            found that headers and body of the message differ; None: there is none.
        refusal: Why the server has refused the request, while it is undecided whether that counts.
        responses: The object that takes the responses of the session in which the message is sent.
        retried: The request was sent a second time with other headers.
        status: The status of the response; None: there is none yet.
        wait: Seconds after which the server wants the retry; None: it did not say.
    """

    responses: ReceivedResponses
    call: OutgoingRequest | None
    more: Headers
    answered: PostedMessage | None = attrs.field(default=None, kw_only=True)
    purpose: ExchangePurpose = attrs.field(default=_POST, kw_only=True)
    body: bytes | None = None
    former: bool = False
    heard: bool = False
    is_cancelled: bool = False
    moved: bool = False
    not_run: bool = False
    pages: int = 0
    refresh: OutgoingRequest | None = None
    refusal: JSONObject | str = ""
    retried: bool = False
    status: int | None = None
    wait: float | None = None

    @property
    def awaited(self) -> bool:
        return self.call is not None and not self.over

    @property
    def ends_task(self) -> bool:
        call = self.call
        return (
            call is not None
            and purpose_of(call) is Purpose.TASK
            and call.method == "tasks/cancel"
            and not was_answered(call)
        )

    @property
    def request(self) -> Asked | None:
        call = self.call
        if call is None or purpose_of(call) in OF_APPLICATION:
            return call
        subject = subject_of(call)
        return subject if isinstance(subject, Listing | Ping | Start | Subscription) else None

    @property
    def asked(self) -> AskedOnStream:
        """The route of the requests that the server sends on the stream of the response."""
        return AskedOnStream(self)

    @property
    def asker(self) -> ClientExchangeCore | None:
        if self.answered is None or not self._is_answer:  # such as progress
            return None
        return self.answered.exchange

    def resumes(self, exchange: ClientExchangeCore) -> bool:
        if self.over or self.retries is None:
            return False
        if self.retries.attempts >= self.queue.core.config.max_reconnects:
            return False
        is_resumed = exchange.purpose is _RESUME and self._has_place
        return is_resumed or self._can_be_resumed(exchange)

    @property
    def is_unsent(self) -> bool:
        """Whether the server cannot know the message yet."""
        exchange = self.exchange
        if exchange is None:
            return self in self.queue.held or self in self.queue.moved
        return exchange.method == "POST" and not exchange.is_given_out

    @property
    def may_repeat(self) -> bool:
        if self.repeated:
            return False
        if self.call is None:  # an answer is matched by its id, and the second one ignored
            return self._is_answer or (self.body or b"").startswith(_IDEMPOTENT_NOTES)
        return bool(self.last_event_id) or self.call.method in _IDEMPOTENT

    @property
    def _is_answer(self) -> bool:
        return b'"method"' not in (self.body or b"")[:30]

    @property
    def _is_on_old_transport(self) -> bool:
        """Whether messages of the server come on the one stream of HTTP+SSE only."""
        return self.queue.core.old_post_url is not None

    # -------------------------------------------------------------------------------- sending

    def send(self) -> None:
        if self.last_event_id:
            self.get()
            return
        core = self.queue.core
        url = self.url or core.old_post_url or core.url
        self.queue.add(
            ClientExchangeCore(self, self.queue, "POST", url, self.purpose, self.body or b"")
        )

    def fields(self, exchange: ClientExchangeCore) -> Headers:
        if exchange.method == "GET":
            return super().fields(exchange)
        return _POST_HEADERS + self.more

    # ------------------------------------------------------------------------------ receiving

    def head(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Take the head of a response that accepts the message, or of any that resumes a stream."""
        if exchange.purpose is _RESUME:
            text = f"the stream cannot be taken up again: GET was answered with {head.status}"
            if not opens_stream(self, self._resumed, exchange, head, text):
                self.lost(text)
            return
        self.redirects = self.challenged = 0
        call = self.call
        if call is None or self._is_on_old_transport:
            self._accepted(exchange, head)
            return
        self.status, self.wait = head.status, None
        form = head.media_type
        if form == SSE:
            if self.retries is None and not self.is_modern:  # in which no stream is resumed
                self.retries = StreamRetries(self.queue.core)
            exchange.read_stream()
        elif form == JSON:
            exchange.read_whole()
        else:
            form = form[:80] or "no form"
            text = f"{call.method} was answered with status {head.status} and {form}"
            self.queue.core.report(Breach("HTTP-018", text))
            self.responses.fail(call, _INVALID, text)
            exchange.abort()

    def _accepted(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Take the head of an HTTP response without a message, such as 202."""
        if self.call is None:
            self.over = True
            if head.status != 202 and not self.is_modern and not self._is_on_old_transport:
                text = f"a message that needs no response got the status {head.status}"
                self.queue.core.report(Breach("HTTP-014", text, tolerated=True))
        if head.media_type == SSE:
            exchange.abort()  # it would never end

    def event(self, exchange: ClientExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        call = self.call
        if (
            isinstance(item, OverlongEvent)
            and call is not None
            and call.open
            and read_head(item.excerpt)[0] is not OutlineKind.CALL
        ):
            core = self.queue.core
            limit = core.config.max_message_bytes
            text = self.responses.machine.responses.overlong_text(call, f"more than {limit}")
            excerpt = self.queue.headers.excerpt(item.excerpt, core.session_id, over=limit)
            core.report(Breach("OWN-001", text), excerpt=excerpt, request=call)
            self.responses.fail(call, _INVALID, text)
        elif not self.former or self._still_counts(item):
            self.responses.receive_event(item, route=self.asked)

    def _still_counts(self, item: ServerSentEvent | OverlongEvent) -> bool:
        """Whether an event still counts although its session is lost.

        The response counts, and so does progress of the request, which the server may still be
        running. Other requests and notifications of that session are ignored.
        """
        if isinstance(item, OverlongEvent):
            return read_head(item.excerpt)[0] is not OutlineKind.CALL
        if read_head(item.data)[0] is not OutlineKind.CALL:
            return True
        assert self.call is not None  # nothing else is former
        return self.responses.is_progress_of(self.call, item.data)

    def whole(self, head: Head, body: bytes) -> None:
        call = self.call
        assert call is not None  # the bodies of other responses are not read
        reason = self.responses.receive_body(self, body)
        if not self.heard:
            what = "it is empty" if not body else reason or "it answers no request"
            text = f"the body of the response to {call.method} (status {head.status})"
            self.responses.fail(call, _INVALID, f"{text} is no valid response: {what}")

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        call, head = self.call, exchange.head
        self.queue.passed(self)
        if self.over:
            return
        if exchange.purpose is _RESUME:
            if not self._has_place:  # the server has taken the id back meanwhile
                self.lost(text)
            elif head is None or not head.is_good:
                self._resumed.failed(self, text)
            else:
                self._resumed.after_end(self, text)
        elif call is None:
            self.over = True
            if head is None:
                lost = MessageUndelivered(session=None, is_answer=self._is_answer)
                self.queue.core.events.append(lost)
            else:
                self.queue.core.events.append(MessageRefused(status=head.status))
        elif self._can_be_resumed(exchange):
            self._resumed.later(self, text)
        else:
            reason = _LOST
            if self.former:
                text += "; the server did not know its session any more"
            if exchange.reading is _STREAM and purpose_of(call) is Purpose.DISCOVER:
                reason = _INVALID  # the server is there, and has no proper answer
            self.responses.fail(call, reason, f"{call.method} got no response: {text}")

    @property
    def _resumed(self) -> StreamRetries:
        """When the stream of the response is resumed, if it was opened before."""
        assert self.retries is not None
        return self.retries

    def _can_be_resumed(self, exchange: ClientExchangeCore) -> bool:
        # Keeps SSE-036.
        is_broken_stream = exchange.reading is _STREAM and not self.is_modern
        return is_broken_stream and not self.former and self._has_place

    @property
    def _has_place(self) -> bool:
        """Whether the last event id has a form in a header, so that the stream can be resumed."""
        return event_id_value(self.last_event_id) is not None

    def lost(self, text: str) -> None:
        assert self.call is not None  # nothing else has a stream
        self.responses.fail(self.call, _LOST, f"{self.call.method} got no response: {text}")

    # -------------------------------------------------------------------------------- refused

    def refused_for_good(self, text: str | None) -> None:
        """End `initialize` as refused, since no other transport is left to try.

        Args:
            text: Why the other transport cannot be used; None: there is no reason to name.
        """
        call, refusal = self.call, self.refusal
        assert call is not None  # it is initialize
        if isinstance(refusal, str):
            self.responses.refuse(call, 0, f"{refusal}; {text}" if text else refusal)
        else:
            self.responses.answer_with(call, refusal)

    def unreadable(self, head: Head, text: str) -> None:
        if self.call is None:
            self.fail_with_status(head.status, text)
        else:
            self.queue.passed(self)
            self.responses.fail(self.call, _INVALID, f"{self.call.method}: {text}")

    def fail_with_status(self, status: int, text: str) -> None:
        self.queue.passed(self)
        self.status, self.wait = status, None
        if self.call is None:
            self.over = True
            self.queue.core.events.append(MessageRefused(status=status))
        else:
            self.responses.refuse(self.call, 0, f"{self.call.method}: {text}")

    # --------------------------------------------------------------------------------- ending

    def concluded(self, *, is_answered: bool) -> None:
        """End the exchange of a request that has had its ending."""
        queue, exchange = self.queue, self.exchange
        self.over = True
        self.body = b""  # the handle may be kept for long, so that a late answer is recognised
        if self.retries is not None:
            self.retries.stop()
        queue.held.pop(self, None)
        queue.moved.pop(self, None)
        if exchange is None:
            return
        # On HTTP+SSE the answer may come before the response to the POST.
        is_faster = self._is_on_old_transport and exchange.is_given_out
        is_stream = exchange.reading is _STREAM
        if is_answered and (is_faster or is_stream):
            queue.close_later(exchange)
        elif is_stream and self.is_cancelled:
            queue.read_on(exchange)
        else:
            exchange.abort()


post_of: Final[Callable[[OutgoingRequest], PostedMessage]] = route_of
"""The message that carries a request: its route."""
