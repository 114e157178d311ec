"""The observer of one HTTP endpoint: it assigns each message to a conversation, and judges it.

Each exchange of 2026-07-28 is a conversation of its own. The older revisions have sessions. For a
request without a session id, the agreed revision and capabilities are not known, and less is
judged. The stream of HTTP+SSE (2024-11-05) names the URL to which its messages are POSTed.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, Streamable HTTP; MCP 2024-11-05,
basic/transports, HTTP with SSE.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import attrs

from .._connection.config import Config
from .._wire.values import JSONObject, Side
from . import _http_heads as heads
from ._events import AnswerMatched, BlindCause, BlindSpot, Observation
from ._http_conversations import HTTPConversation, violation
from ._http_heads import SESSION_ID, Fields, Header, member, object_of
from ._observer import Observer, observer_of_posts
from ._task_table import TaskTable

_FORGOTTEN: Final = "the oldest exchange that has not ended was forgotten: its rest is not judged"


@attrs.define(eq=False, repr=False)
class _SeenExchange:
    """A request, and its response as far as it was seen.

    Attributes:
        number: The number of its head.
        method: The method of HTTP.
        target: The target as the head has it.
        fields: The headers of the request.
        is_for_endpoint: Whether its target is the endpoint; if not, it is not judged.
        size: The bytes of head and body that count for the limit.
        conversation: The conversation that it belongs to; None where that is not known yet.
        message: The method and id of the POSTed message; None: the body was no JSON.
        has_request: Whether the POSTed body contains a JSON-RPC request.
        digest: A digest of the POSTed body.
        body_number: The number of the POSTed body among heads and messages.
        is_modern: Whether the POSTed message is one of 2026-07-28.
        status: The status of the response; None before its head.
        status_number: The number of the head of the response.
        is_answered: Whether the response contained the response to a request.
    """

    number: int
    method: str
    target: str
    fields: Fields
    is_for_endpoint: bool
    size: int
    conversation: HTTPConversation | None = None
    message: JSONObject | None = None
    has_request: bool = False
    digest: bytes = b""
    body_number: int = 0
    is_modern: bool = False
    status: int | None = None
    status_number: int = 0
    is_answered: bool = False


class HTTPObserver:
    """Watches the HTTP exchanges of one endpoint, and reports who does what and breaks which rule.

    It judges Streamable HTTP of all revisions and HTTP+SSE of 2024-11-05: headers, statuses,
    content types, and the messages in the bodies as `Observer` does, each in the conversation that
    it belongs to. It performs no I/O: a proxy, a middleware or a test gives it what passes.

    Feed it each exchange in this order, before the parts are passed on: the head of the request,
    its body, the head of the response, its body or its events, the end. Exchanges may overlap in
    any way. Bodies are given without transfer coding and content coding.

    Args:
        url: The URL of the endpoint, or its path. Exchanges with other paths are counted and not
            judged, except for the URLs that streams of HTTP+SSE name.
        config: Limits, as for `Observer`. Besides, `max_requests` bounds open exchanges, sessions,
            and bodies and events that are remembered of each; the heads and bodies of open
            exchanges may have four times `max_message_bytes`. Over a limit the oldest is forgotten.

    Observations have the number of the head or message that they are about: heads and messages are
    counted together. No method raises for what the two sides do.

    Raises:
        ValueError: `url` cannot be read as a URL.
    """

    __slots__ = (
        "_closed",
        "_config",
        "_exchanges",
        "_is_modern_served",
        "_n_bytes",
        "_now",
        "_number",
        "_old_targets",
        "_path",
        "_queue",
        "_reported_spots",
        "_sessions",
        "_tasks",
    )

    def __init__(self, url: str, *, config: Config | None = None) -> None:
        self._config = config or Config()
        self._path = urlsplit(url).path or "/"
        self._closed = False
        self._exchanges: dict[Hashable, _SeenExchange] = {}
        self._n_bytes = 0  # of the heads and bodies of open exchanges
        self._sessions: dict[str, HTTPConversation] = {}
        self._old_targets: dict[str, HTTPConversation] = {}
        self._is_modern_served = False
        self._tasks = TaskTable(self._config.max_requests)
        self._queue: deque[Observation] = deque()
        self._reported_spots: set[tuple[object, object]] = set()
        self._number = 0
        self._now: float | None = None

    # -------------------------------------------------------------------------------- requests

    def receive_request_head(
        self,
        exchange: Hashable,
        method: str,
        target: str,
        headers: Iterable[Header],
        *,
        now: float | None = None,
    ) -> None:
        """Begin an exchange with the head of its request.

        Args:
            exchange: Any value that names the exchange until it ends, such as a number. An open
                exchange with the same name is taken for one that was broken off by the server.
            method: The method of HTTP.
            target: The target of the request: path and query.
            headers: Pairs of name and value, both `str` or `bytes`.
            now: The time in seconds, on one clock for everything.
        """
        if self._closed:
            return
        self._tell_time(now)
        self._end(exchange, by=Side.SERVER)
        self._number += 1
        fields = heads.fields_of(headers)
        is_for_endpoint = self.is_for_endpoint(target)
        size = len(target) + sum(len(name) + len(value) for name, value in fields.items())
        seen = _SeenExchange(self._number, method, target, fields, is_for_endpoint, size)
        self._n_bytes += size
        self._exchanges[exchange] = seen
        if is_for_endpoint:
            seen.conversation = self._old_targets.get(target) or self._session_of(fields)
            if method == "GET":
                self._report(Side.CLIENT, heads.judge_get(fields), seen)
        self._forget_exchanges()

    def receive_request_body(
        self, exchange: Hashable, body: bytes, *, now: float | None = None
    ) -> None:
        """Take the whole body of a request.

        Args:
            exchange: The name of the exchange.
            body: The body. One that is longer than `max_message_bytes` may be cut behind the first
                byte over the limit. An empty one is ignored.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        seen = self._find(exchange)
        if seen is None or seen.method != "POST" or not body:
            return
        self._number += 1
        seen.body_number = self._number
        message = _decoded(body)
        seen.has_request = _has_request(message)
        seen.is_modern = heads.is_modern(seen.fields, message)
        if seen.conversation is None or seen.is_modern:
            seen.conversation = self._conversation_of_one(seen, message)
        if message is not None:
            seen.message = {name: member(message, name) for name in ("method", "id")}
        seen.digest = hashlib.sha256(body).digest()
        seen.size += len(body)
        self._n_bytes += len(body)
        conversation = seen.conversation
        if seen.digest in conversation.refused:  # the same again, perhaps with credentials
            del conversation.refused[seen.digest]
        else:
            self._take_message(conversation, Side.CLIENT, body)
        if not conversation.is_old:
            self._report(Side.CLIENT, heads.judge_post(seen.fields), seen)
            if seen.is_modern:
                self._report(Side.CLIENT, heads.judge_modern_fields(seen.fields, message), seen)
            elif SESSION_ID in seen.fields:
                revision = conversation.observer.revision
                self._report(Side.CLIENT, heads.judge_legacy_fields(seen.fields, revision), seen)
        self._forget_exchanges()

    # ------------------------------------------------------------------------------- responses

    def receive_response_head(
        self,
        exchange: Hashable,
        status: int,
        headers: Iterable[Header],
        *,
        now: float | None = None,
    ) -> None:
        """Take the head of the final response.

        Args:
            exchange: The name of the exchange.
            status: The status code.
            headers: Pairs of name and value, both `str` or `bytes`.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        self._number += 1
        seen = self._find(exchange)
        if seen is None:
            return
        seen.status, seen.status_number = status, self._number
        fields = heads.fields_of(headers)
        conversation = seen.conversation
        breaches: list[heads.HeadBreach] = []
        if seen.method == "GET":
            breaches += heads.judge_get_response(fields, status)
        elif seen.method == "POST" and conversation is not None:
            if not conversation.is_old:
                breaches += heads.judge_post_response(
                    fields, status, has_request=seen.has_request, is_modern=seen.is_modern
                )
            session = fields.get(SESSION_ID)
            if session is not None and member(seen.message, "method") == "initialize":
                breaches += heads.judge_session_id(session)
                self._keep_session(session, conversation)
        self._report(Side.SERVER, breaches, seen, number=self._number)

    def receive_response_body(
        self, exchange: Hashable, body: bytes, *, now: float | None = None
    ) -> None:
        """Take the whole body of a response that is no event stream.

        Args:
            exchange: The name of the exchange.
            body: The body. One that is longer than `max_message_bytes` may be cut behind the first
                byte over the limit. An empty one is ignored.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        seen = self._find(exchange)
        if seen is not None:
            self._take_from_server(seen, body, "", in_stream=False)

    def receive_response_event(
        self,
        exchange: Hashable,
        data: bytes,
        *,
        type: str = "message",
        id: str = "",
        now: float | None = None,
    ) -> None:
        """Take one event of a response that is an event stream.

        `sansmcp.http.SSEDecoder` reads events from a body; `data`, `type` and `id` are those of its
        `ServerSentEvent`.

        Args:
            exchange: The name of the exchange.
            data: The data of the event.
            type: The type of the event.
            id: The id of the event; `""` where it has none.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        seen = self._find(exchange)
        if seen is None or seen.status is None:
            return
        if type == "endpoint" and seen.method == "GET" and seen.conversation is None:
            self._open_old(seen, data)
        elif type == "message":
            self._take_from_server(seen, data, id, in_stream=True)

    def _take_from_server(
        self, seen: _SeenExchange, data: bytes, id: str, *, in_stream: bool
    ) -> None:
        if seen.status is None or not data:
            return
        self._number += 1
        message = _decoded(data)
        if seen.status >= 400 and member(message, "jsonrpc") is None:
            return  # the body of an error status may be anything
        conversation = seen.conversation
        if conversation is None:
            conversation = seen.conversation = self._conversation_from_the_middle()
        if id and self._is_replayed(conversation, seen, id):
            return
        seen.is_answered |= self._take_message(conversation, Side.SERVER, data, seen.status)
        breaches = self._judge_response(seen, conversation, message, in_stream=in_stream)
        self._report(Side.SERVER, breaches, seen, number=self._number, message=message)

    def _judge_response(
        self,
        seen: _SeenExchange,
        conversation: HTTPConversation,
        message: Any,
        *,
        in_stream: bool,
    ) -> Iterator[heads.HeadBreach]:
        members = object_of(message)
        if seen.is_modern:
            self._is_modern_served |= member(members.get("result"), "resultType") is not None
            if not in_stream and self._is_modern_served and seen.status is not None:
                yield from heads.judge_modern_error(seen.status, message)
        elif seen.method == "GET" and in_stream and not conversation.is_old:
            is_response = "method" not in members and ("result" in members or "error" in members)
            if is_response and "last-event-id" not in seen.fields:
                yield "SSE-024", "a response on a stream that no request has opened"

    def _is_replayed(self, conversation: HTTPConversation, seen: _SeenExchange, id: str) -> bool:
        """Whether a resumed stream repeats an event that was seen, and perhaps not received."""
        if id in conversation.seen_ids and "last-event-id" in seen.fields:
            return True
        conversation.seen_ids[id] = None
        self._bound(conversation.seen_ids)
        return False

    # ----------------------------------------------------------------------------------- ends

    def receive_end(self, exchange: Hashable, *, now: float | None = None) -> None:
        """The response is complete, and the exchange ends.

        Args:
            exchange: The name of the exchange.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        self._end(exchange, by=None)

    def receive_disconnect(
        self, exchange: Hashable, side: Side, *, now: float | None = None
    ) -> None:
        """A side broke off the exchange before the response was complete.

        Args:
            exchange: The name of the exchange.
            side: The side that closed its connection. A client of 2026-07-28 cancels in this way.
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        self._end(exchange, by=side)

    def close(self, *, now: float | None = None) -> None:
        """End the observation, and report all requests without a response.

        Args:
            now: The time in seconds, on one clock for everything.
        """
        self._tell_time(now)
        for exchange in list(self._exchanges):
            self._end(exchange, by=Side.SERVER)
        for conversation in (*self._sessions.values(), *self._old_targets.values()):
            self._close(conversation)
        self._closed = True

    def _end(self, exchange: Hashable, *, by: Side | None) -> None:
        seen = self._exchanges.pop(exchange, None)
        if seen is None:
            return
        self._n_bytes -= seen.size
        conversation = seen.conversation
        if conversation is None:
            return
        status = seen.status or 0
        if seen.has_request and not seen.is_answered and status >= 400:
            conversation.refused[seen.digest] = seen.body_number
            self._bound(conversation.refused)
        if conversation.is_old and seen.method == "GET":
            for target in [t for t, one in self._old_targets.items() if one is conversation]:
                del self._old_targets[target]
            self._close(conversation)
        elif seen.method == "DELETE" and heads.is_success(status):
            self._sessions.pop(seen.fields.get(SESSION_ID, ""), None)
            self._close(conversation)
        elif not conversation.is_shared:
            self._close(conversation, is_cancelled=by is Side.CLIENT)

    # ---------------------------------------------------------------------------------- output

    def next_event(self) -> Observation | None:
        """Take the oldest event; None: there is none now."""
        return self._queue.popleft() if self._queue else None

    @property
    def messages(self) -> int:
        """How many heads and messages were seen: the number of the latest."""
        return self._number

    def is_for_endpoint(self, target: str) -> bool:
        """Whether the body of a request with this target is judged.

        Args:
            target: The target of a request: path and query.
        """
        if target in self._old_targets:
            return True
        try:
            return urlsplit(target).path == self._path
        except ValueError:  # it is no URL
            return False

    # --------------------------------------------------------------------------- conversations

    def _find(self, exchange: Hashable) -> _SeenExchange | None:
        """An open exchange with the endpoint."""
        seen = self._exchanges.get(exchange)
        return seen if seen is not None and seen.is_for_endpoint else None

    def _session_of(self, fields: Fields) -> HTTPConversation | None:
        session = fields.get(SESSION_ID)
        if session is None:
            return None
        known = self._sessions.get(session)
        # If its beginning was not seen, its revision and capabilities are not known.
        return known or self._keep_session(session, self._conversation_from_the_middle())

    def _keep_session(self, session: str, conversation: HTTPConversation) -> HTTPConversation:
        conversation.is_shared = True
        self._sessions[session] = conversation
        self._bound(self._sessions)
        return conversation

    def _conversation_of_one(self, seen: _SeenExchange, message: Any) -> HTTPConversation:
        """The conversation of a POST that belongs to no known one."""
        begins = seen.is_modern or member(message, "method") == "initialize"
        # Earlier messages cannot explain a body that is no JSON.
        if begins or message is None:
            return HTTPConversation(observer_of_posts(self._config, self._tasks))
        observer = observer_of_posts(self._config, self._tasks, from_start=False)
        return HTTPConversation(observer, is_alone=True)

    def _conversation_from_the_middle(self) -> HTTPConversation:
        observer = observer_of_posts(self._config, self._tasks, from_start=False)
        return HTTPConversation(observer)

    def _open_old(self, seen: _SeenExchange, data: bytes) -> None:
        """The stream of HTTP+SSE begins: `data` is the URL for its messages."""
        observer = Observer(config=self._config)
        seen.conversation = HTTPConversation(observer, is_shared=True, is_old=True)
        try:
            parts = urlsplit(urljoin(seen.target, data.decode("utf-8", "replace").strip()))
        except ValueError:  # it is no URL
            return
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self._old_targets[target] = seen.conversation
        self._bound(self._old_targets)

    def _forget_exchanges(self) -> None:
        """Forget the oldest open exchanges over the limits, but not the latest."""
        most, most_bytes = self._config.max_requests, 4 * self._config.max_message_bytes
        exchanges, forgot = self._exchanges, False
        while len(exchanges) > most or (self._n_bytes > most_bytes and len(exchanges) > 1):
            self._n_bytes -= exchanges.pop(next(iter(exchanges))).size
            forgot = True
        if forgot:
            spot = BlindSpot(
                cause=BlindCause.FORGOTTEN,
                side=None,
                text=_FORGOTTEN,
                number=self._number,
                time=self._now,
            )
            self._add(spot)

    def _bound(self, table: dict[Any, Any]) -> None:
        """Forget the oldest entry of a table over the limit."""
        if len(table) > self._config.max_requests:
            del table[next(iter(table))]

    # ------------------------------------------------------------------------------- reporting

    def _tell_time(self, now: float | None) -> None:
        if now is not None and (self._now is None or now > self._now):
            self._now = now

    def _take_message(
        self, conversation: HTTPConversation, side: Side, data: bytes, status: int = 200
    ) -> bool:
        """Give a text to its conversation; returns whether it contains a matched response."""
        is_matched = False
        for event in conversation.take(side, data, self._number, self._now, status=status):
            is_matched |= isinstance(event, AnswerMatched)
            self._add(event)
        return is_matched

    def _close(self, conversation: HTTPConversation, *, is_cancelled: bool = False) -> None:
        for event in conversation.close(self._now, is_cancelled=is_cancelled):
            self._add(event)

    def _report(
        self,
        side: Side,
        breaches: Iterable[heads.HeadBreach],
        seen: _SeenExchange,
        *,
        number: int | None = None,
        message: Any = None,
    ) -> None:
        """Report breaches of a head, with the number of the request's head if no other is given."""
        number = seen.number if number is None else number
        about = seen.message if message is None else message
        for rule, text in breaches:
            self._add(violation(side, rule, text, number, self._now, about))

    def _add(self, event: Observation) -> None:
        """Queue an event; blind spots of several conversations that are alike only once."""
        if isinstance(event, BlindSpot):
            if (event.text, event.side) in self._reported_spots:
                return
            self._reported_spots.add((event.text, event.side))
        self._queue.append(event)


def _has_request(message: Any) -> bool:
    """Whether a body contains a request."""
    messages: list[Any] = message if message.__class__ is list else [message]
    return any("id" in object_of(one) and "method" in object_of(one) for one in messages)


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
