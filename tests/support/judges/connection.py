"""Judges every message that a connection sends in a test, by the official schema.

An observer judges the messages, too: against the earlier ones, in each order in which the peer may
have read them.

While `judging` is on, the public methods that take and give bytes or messages also record them. A
message of this side is judged when it is taken, so that a property test can shrink to it. A message
of the peer is only recorded: a response is judged together with the request that it answers.

A connection of both eras has no single revision. A response is judged at the revision of its
request, which may name one in its `_meta`; a notification at that of the request it belongs to.
"""

import functools
import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs
import pytest

from sansmcp import ALL_REVISIONS, ClientConnection, Config, Observer, ServerConnection, Side
from tests.support.judges.observer import Watch
from tests.support.judges.schema import (
    LEGACY_REVISIONS,
    REVISIONS,
    Sender,
    Transcript,
    is_stateless,
)

Connection: TypeAlias = ClientConnection | ServerConnection
Line: TypeAlias = bytes | bytearray | str


_MODERN = REVISIONS[-1]
_TAG = "io.modelcontextprotocol/subscriptionId"
_NAMES_REQUEST = {
    "notifications/progress": "progressToken",
    "notifications/cancelled": "requestId",
}


@attrs.define(eq=False)
class _Talk:
    """The messages of one connection and its peer."""

    sender: Sender
    speaks: Sequence[str]
    watch: Watch
    transcript: Transcript
    rest: bytearray = attrs.field(factory=bytearray)
    unjudged: list[Line] = attrs.field(factory=list[Line])
    asked: dict[str, list[Any]] = attrs.field(factory=dict[str, list[Any]])
    modern: set[str] = attrs.field(factory=set[str])  # ids and tokens of modern requests
    revision: str | None = None

    @property
    def newest(self) -> str:
        """The revision by which a response without a request is judged, before one is agreed."""
        return max(self.speaks)

    @property
    def newest_legacy(self) -> str:
        """The revision by which a request that names none is judged, before one is agreed."""
        return max((name for name in self.speaks if name in LEGACY_REVISIONS), default=self.newest)

    def peer_said(self, data: bytes) -> None:
        self.rest += data
        if b"\n" in data:
            *lines, self.rest = self.rest.split(b"\n")
            self.unjudged += lines

    def hear_peer(self, revision: str | None) -> None:
        """Record the messages of the peer, now that the revision of the answers is known."""
        other: Sender = "server" if self.sender == "client" else "client"
        self.transcript.revision = revision or self.newest_legacy
        for line in (*self.unjudged, *([self.rest] if self.rest else ())):
            try:
                message: object = _decoded(line)
                self.transcript.record(other, message)
            except (ValueError, RecursionError, OverflowError):
                continue  # no JSON, or too much for the validator: no request
            for one in _messages(message):
                if "method" in one and "id" in one:
                    self.asked.setdefault(_key(one.get("id")), []).append(one)
                    if _MODERN in self.speaks and is_stateless(one.get("params")):
                        token = one["params"]["_meta"].get("progressToken")
                        self.modern |= {_key(one["id"]), "token " + _key(token)}
        self.unjudged.clear()

    def we_wrote(self, revision: str | None, lines: Iterable[bytes]) -> None:
        self.hear_peer(revision)
        for line in lines:
            message: object = _decoded(line)
            self.transcript.revision = self.revision_of(message, revision)
            known = len(self.transcript.problems(self.sender))
            self.transcript.record(self.sender, message)
            problems = self.transcript.problems(self.sender)[known:]
            assert not problems or self.answers_one_of_many(message), (problems, line)
        self.revision = revision

    def revision_of(self, message: Any, agreed: str | None) -> str:
        """The revision by which to judge a message of this side.

        A response to a request that names a revision is judged by that one.
        """
        if isinstance(message, dict) and "method" in message:
            call = cast("dict[str, Any]", message)
            if "id" in call:
                return agreed or self.newest_legacy
            # Messages queued before the agreement may be taken after it.
            before = self.newest_legacy if agreed != self.revision else agreed
            return _MODERN if self.is_modern(call) else before or self.newest
        return agreed or self.newest

    def is_modern(self, notification: dict[str, Any]) -> bool:
        """Whether a notification of this side belongs to a request of the modern era.

        A log message does not show its request, but has the same form in all revisions.
        """
        method, params = notification["method"], notification.get("params", {})
        if method == "notifications/subscriptions/acknowledged" or _TAG in params.get("_meta", {}):
            return True
        if self.sender == "client" or method not in _NAMES_REQUEST:
            return False
        member = _NAMES_REQUEST[method]
        kind = "token " if member == "progressToken" else ""
        return kind + _key(params.get(member)) in self.modern

    def answers_one_of_many(self, message: object) -> bool:
        """Whether each response fits one of the requests with its id.

        If a peer uses the id of a refused request again, the id does not show which one was
        refused.
        """
        answers = _messages(message)
        return bool(answers) and all(
            any(self.fits(asked, one) for asked in self.asked.get(_key(one.get("id")), []))
            for one in answers
        )

    def fits(self, asked: Any, answer: Any) -> bool:
        transcript = Transcript(self.transcript.revision, self.speaks)
        transcript.record("server" if self.sender == "client" else "client", asked)
        transcript.record(self.sender, answer)
        return not transcript.problems(self.sender)


def _messages(message: Any) -> list[Any]:
    """The objects in a message, which may be a batch."""
    batch: list[Any] = message if _is_a(list, message) else [message]
    return [one for one in batch if _is_a(dict, one)]


def _is_a(kind: type, value: object) -> bool:
    return isinstance(value, kind)


def _key(id: object) -> str:
    """An id or a token as text: `1` and `1.0` are one id, `"1"` is another."""
    return repr(int(id) if isinstance(id, float) and id.is_integer() else id)


def _decoded(line: Line) -> Any:
    # `json` drops a byte order mark from bytes, but not from a string.
    value: Any = json.loads(line.removeprefix("\ufeff") if isinstance(line, str) else line)
    odd = "\\u" if isinstance(line, str) else b"\\u"
    return _without_surrogates(value) if odd in line else value  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]  # of its own kind


def _without_surrogates(value: Any) -> Any:
    """The value with `?` for lone surrogates, which the validator does not accept."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {_without_surrogates(name): _without_surrogates(item) for name, item in members}
    return value


def _observed(method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    """Wrap a method, so that `note` gets its arguments, or its result if it has no arguments."""

    @functools.wraps(method)
    def observed(self: Connection, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            note(self, *args, **kwargs)
            return method(self, *args, **kwargs)
        returned = method(self)
        note(self, returned)
        return returned

    return observed


@contextmanager
def judging() -> Generator[None, None, None]:
    """Judge what all connections send that are made from now on, except copies of connections."""
    talks: WeakKeyDictionary[Connection, _Talk] = WeakKeyDictionary()

    def created(
        self: Connection,
        *,
        revisions: Sequence[str] = ALL_REVISIONS,
        config: Config | None = None,
        tasks: object = None,
        **_: object,
    ) -> None:
        sender: Sender = "client" if isinstance(self, ClientConnection) else "server"
        side = Side.CLIENT if sender == "client" else Side.SERVER
        speaks = revisions or REVISIONS
        known = config.extensions if isinstance(config, Config) else ()  # else it is refused
        observer = Observer(config=Config(extensions=known))
        watch = Watch(side, observer, keeps_tasks=tasks is not None)
        talks[self] = _Talk(sender, speaks, watch, Transcript(speaks=speaks))

    def received_data(self: Connection, data: bytes | bytearray | memoryview, **_: object) -> None:
        if (talk := talks.get(self)) is not None:
            talk.peer_said(bytes(data))
            talk.watch.peer_said(self, bytes(data))

    def received_message(self: Connection, message: Line, **_: object) -> None:
        if (talk := talks.get(self)) is not None:
            talk.unjudged.append(message)
            line = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
            talk.watch.peer_sent_message(self, bytes(line))

    def received_eof(self: Connection, *_: object, **__: object) -> None:
        if (talk := talks.get(self)) is not None:
            talk.watch.peer_ended()

    def took_data(self: Connection, data: bytes) -> None:
        took_messages(self, data.splitlines())

    def took_messages(self: Connection, messages: list[bytes]) -> None:
        if (talk := talks.get(self)) is not None:
            talk.we_wrote(self.revision, messages)
            talk.watch.we_wrote(messages)

    notes: dict[str, Callable[..., None]] = {
        "__init__": created,
        "receive_data": received_data,
        "receive_message": received_message,
        "receive_eof": received_eof,
        "data_to_send": took_data,
        "buffers_to_send": took_messages,
        "messages_to_send": took_messages,
    }
    with pytest.MonkeyPatch.context() as patch:
        for face in (ClientConnection, ServerConnection):
            for name, note in notes.items():
                patch.setattr(face, name, _observed(getattr(face, name), note))
        yield
