"""Watches one endpoint: says to which conversation a message belongs, and what is wrong with it.

Modern requests speak for themselves: each exchange is a conversation. The older revisions have
sessions; without one, what a request may do depends on what was agreed on elsewhere, and less is
judged. Of HTTP+SSE, the stream says where its messages are POSTed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import attrs

from .._connection.config import Config
from .._wire.values import JSONObject, Side
from . import _http_heads as rules
from ._events import AnswerMatched, BlindCause, BlindSpot, Observation
from ._http_conversations import Conversation, violation
from ._http_heads import SESSION_FIELD, Fields, member, object_of
from ._observer import Observer

_MOST: Final = Config().max_requests
"""So many open exchanges, sessions, and bodies and events of each, are remembered: then the oldest
is forgotten."""
_MOST_HELD: Final = 4 * Config().max_message_bytes
"""So many bytes may the heads and bodies of all open exchanges have: then the oldest is forgotten.
"""
_FORGOTTEN: Final = "the oldest exchange that has not ended was forgotten: its rest is not judged"


@attrs.define(eq=False)
class _Exchange:
    """A request and its response.

    Attributes:
        number: That of its head among all that was seen.
        is_ours: Whether it is for the endpoint; of others nothing is judged.
        size: The bytes of its head and body.
        message: What was POSTed, without what nothing is judged by later; None: nothing that could
            be read.
        asked: Whether it carries a request, or may.
        body: A digest of what was POSTed.
        message_number: Its number among all that was seen.
        status: That of the response; None: it has not begun.
        answered: Whether the response has brought an answer to a request.
    """

    number: int
    method: str
    target: str
    fields: Fields
    is_ours: bool
    size: int
    conversation: Conversation | None = None
    message: JSONObject | None = None
    asked: bool = False
    body: bytes = b""
    message_number: int = 0
    modern: bool = False
    status: int | None = None
    status_number: int = 0
    answered: bool = False


class Watcher:
    """Takes what passes, exchange by exchange; each call returns what it shows.

    Args:
        url: The endpoint.

    Attributes:
        messages: How many heads and messages were seen: the number of the latest.
    """

    def __init__(self, url: str) -> None:
        self.messages = 0
        self._path = urlsplit(url).path or "/"
        self._open: dict[int, _Exchange] = {}
        self._sessions: dict[str, Conversation] = {}
        self._old_targets: dict[str, Conversation] = {}
        self._told: set[tuple[object, object]] = set()
        self._held = 0
        self._serves_modern = False

    def is_for_endpoint(self, target: str) -> bool:
        """Whether what is sent there may be a message."""
        return target in self._old_targets or urlsplit(target).path == self._path

    # ------------------------------------------------------------------------------- requests

    def began(
        self, exchange: int, method: str, target: str, fields: Fields, now: float
    ) -> list[Observation]:
        """The head of a request."""
        self.messages += 1
        is_ours = self.is_for_endpoint(target)
        size = len(target) + sum(len(name) + len(value) for name, value in fields.items())
        found = _Exchange(self.messages, method, target, fields, is_ours, size)
        self._held += size
        self._open[exchange] = found
        if not is_ours:
            return self._forgotten(now)
        found.conversation = self._old_targets.get(target) or self._session_of(fields)
        faults = rules.judge_get(fields) if method == "GET" else ()
        return self._faults(Side.CLIENT, faults, found, now) + self._forgotten(now)

    def _forgotten(self, now: float) -> list[Observation]:
        """Forget what is too much to keep, the oldest first, but for the latest."""
        forgot = False
        while len(self._open) > _MOST or (self._held > _MOST_HELD and len(self._open) > 1):
            self._held -= self._open.pop(next(iter(self._open))).size
            forgot = True
        if not forgot:
            return []
        spot = BlindSpot(
            cause=BlindCause.FORGOTTEN,
            side=None,
            text=_FORGOTTEN,
            number=self.messages,
            time=now,
        )
        return self._told_once([spot])

    def _session_of(self, fields: Fields) -> Conversation | None:
        session = fields.get(SESSION_FIELD)
        if session is None:
            return None
        # One that was not seen to begin: what it has agreed on is not known.
        return self._sessions.get(session) or self._keep(session, _in_the_middle())

    def _keep(self, session: str, conversation: Conversation) -> Conversation:
        conversation.is_shared = True
        self._sessions[session] = conversation
        _bound(self._sessions)
        return conversation

    def posted(self, exchange: int, data: bytes, now: float) -> list[Observation]:
        """The body of a request."""
        found = self._open.get(exchange)
        if found is None or not found.is_ours or found.method != "POST":
            return []
        self.messages += 1
        found.message_number = self.messages
        message = _decoded(data)
        found.asked = _asks(message)
        found.modern = rules.is_modern(found.fields, message)
        if found.conversation is None or found.modern:
            found.conversation = _alone(found, message)
        found.message = None if message is None else _told_of(message)
        found.body = hashlib.sha256(data).digest()
        found.size += len(data)
        self._held += len(data)
        conversation = found.conversation
        events: list[Observation] = []
        if found.body in conversation.refused:  # the same again, with a token perhaps
            del conversation.refused[found.body]
        else:
            events += self._see(found, Side.CLIENT, data, now)
        faults = self._post_faults(found, conversation, message)
        events += self._faults(Side.CLIENT, faults, found, now)
        return events + self._forgotten(now)

    @staticmethod
    def _post_faults(
        found: _Exchange, conversation: Conversation, message: Any
    ) -> Iterator[rules.Fault]:
        if conversation.is_old:
            return
        yield from rules.judge_post(found.fields)
        if found.modern:
            yield from rules.judge_modern_fields(found.fields, message)
        elif SESSION_FIELD in found.fields:
            yield from rules.judge_legacy_fields(found.fields, conversation.observer.revision)

    # ------------------------------------------------------------------------------ responses

    def answered(self, exchange: int, status: int, fields: Fields, now: float) -> list[Observation]:
        """The head of a response."""
        self.messages += 1
        found = self._open.get(exchange)
        if found is None or not found.is_ours:
            return []
        found.status, found.status_number = status, self.messages
        faults: list[rules.Fault] = []
        if found.method == "POST" and found.conversation is not None:
            if not found.conversation.is_old:
                faults += rules.judge_post_response(
                    fields, status, asked=found.asked, modern=found.modern
                )
            session = fields.get(SESSION_FIELD)
            if session is not None and member(found.message, "method") == "initialize":
                faults += rules.judge_session(fields)
                self._keep(session, found.conversation)
        elif found.method == "GET":
            faults += rules.judge_get_response(fields, status)
        return self._faults(Side.SERVER, faults, found, now, found.status_number)

    def sent(
        self, exchange: int, data: bytes, now: float, *, event: str | None = None, id: str = ""
    ) -> list[Observation]:
        """A body of a response (no `event`), or an event of its stream."""
        found = self._open.get(exchange)
        if found is None or not found.is_ours or found.status is None:
            return []
        if event == "endpoint" and found.method == "GET" and found.conversation is None:
            self._open_old(found, data)
            return []
        if event not in (None, "message") or not data:
            return []  # nobody takes it for a message
        self.messages += 1
        message = _decoded(data)
        if found.status >= 400 and member(message, "jsonrpc") is None:
            return []  # what goes with an error status may be anything
        conversation = found.conversation
        if conversation is None:
            conversation = found.conversation = _in_the_middle()
        if _was_replayed(conversation, found, id):
            return []
        events = list(self._see(found, Side.SERVER, data, now))
        found.answered |= any(isinstance(one, AnswerMatched) for one in events)
        faults = self._answer_faults(found, conversation, message, event)
        events += self._faults(Side.SERVER, faults, found, now, self.messages, message)
        return events

    def _answer_faults(
        self, found: _Exchange, conversation: Conversation, message: Any, event: str | None
    ) -> Iterator[rules.Fault]:
        members = object_of(message)
        if found.modern:
            self._serves_modern |= member(members.get("result"), "resultType") is not None
            if event is None and self._serves_modern and found.status is not None:
                yield from rules.judge_modern_error(found.status, message)
        elif found.method == "GET" and event is not None and not conversation.is_old:
            is_answer = "method" not in members and ("result" in members or "error" in members)
            if is_answer and "last-event-id" not in found.fields:
                yield "SSE-024", "an answer on a stream that no request has opened"

    def _open_old(self, found: _Exchange, data: bytes) -> None:
        """The stream of HTTP+SSE begins."""
        found.conversation = Conversation(Observer(), is_shared=True, is_old=True)
        parts = urlsplit(urljoin(found.target, data.decode("utf-8", "replace").strip()))
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self._old_targets[target] = found.conversation
        _bound(self._old_targets)

    # ----------------------------------------------------------------------------------- ends

    def ended(self, exchange: int, now: float, *, by: Side | None = None) -> list[Observation]:
        """The response is complete or, `by` a side, broken off."""
        found = self._open.pop(exchange, None)
        if found is None:
            return []
        self._held -= found.size
        conversation = found.conversation
        if conversation is None:
            return []
        if found.asked and not found.answered and (found.status or 0) >= 400:
            conversation.refused[found.body] = found.message_number
            _bound(conversation.refused)
        if conversation.is_old and found.method == "GET":
            for target in [t for t, one in self._old_targets.items() if one is conversation]:
                del self._old_targets[target]
            return self._told_once(conversation.close(now))
        if found.method == "DELETE" and found.status is not None and rules.is_success(found.status):
            self._sessions.pop(found.fields.get(SESSION_FIELD, ""), None)
            return self._told_once(conversation.close(now))
        if conversation.is_shared:
            return []
        return self._told_once(conversation.close(now, cancelled=by is Side.CLIENT))

    def close(self, now: float) -> list[Observation]:
        """Nothing more will be seen."""
        events: list[Observation] = []
        for exchange in list(self._open):
            events += self.ended(exchange, now, by=Side.SERVER)
        for conversation in (*self._sessions.values(), *self._old_targets.values()):
            events += self._told_once(conversation.close(now))
        return events

    # --------------------------------------------------------------------------------- saying

    def _see(self, found: _Exchange, side: Side, data: bytes, now: float) -> Iterator[Observation]:
        assert found.conversation is not None
        status = found.status or 200
        yield from self._told_once(
            found.conversation.see(side, data, self.messages, now, status=status)
        )

    def _told_once(self, events: Iterable[Observation]) -> list[Observation]:
        """Each conversation has its blind spots, and they are all alike."""
        kept: list[Observation] = []
        for event in events:
            if isinstance(event, BlindSpot):
                if (event.text, event.side) in self._told:
                    continue
                self._told.add((event.text, event.side))
            kept.append(event)
        return kept

    @staticmethod
    def _faults(
        side: Side,
        faults: Iterable[rules.Fault],
        found: _Exchange,
        now: float,
        number: int | None = None,
        message: Any = None,
    ) -> list[Observation]:
        number = found.number if number is None else number
        about = found.message if message is None else message
        return [violation(side, rule, text, number, now, about) for rule, text in faults]


def _alone(found: _Exchange, message: Any) -> Conversation:
    """The conversation of an exchange that belongs to none."""
    begins = found.modern or member(message, "method") == "initialize"
    # A body that is no JSON is whole, and cannot be explained by what came before.
    if begins or message is None:
        return Conversation(Observer())
    return Conversation(Observer(from_start=False), is_alone=True)


def _in_the_middle() -> Conversation:
    return Conversation(Observer(from_start=False))


def _asks(message: Any) -> bool:
    """Whether a body carries a request."""
    messages = message if isinstance(message, list) and message else [message]
    return any("id" in object_of(one) and "method" in object_of(one) for one in messages)


def _told_of(message: Any) -> JSONObject:
    """What is told of a message that was POSTed, when something is wrong with its response."""
    return {name: object_of(message).get(name) for name in ("method", "id")}


def _was_replayed(conversation: Conversation, found: _Exchange, id: str) -> bool:
    """Whether a stream that is resumed repeats an event that was seen, and perhaps not received."""
    if not id:
        return False
    if id in conversation.seen_ids and "last-event-id" in found.fields:
        return True
    conversation.seen_ids[id] = None
    _bound(conversation.seen_ids)
    return False


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _bound(table: dict[Any, Any]) -> None:
    if len(table) > _MOST:
        del table[next(iter(table))]
