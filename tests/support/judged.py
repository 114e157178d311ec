"""Every message that a connection gives out in a test is judged by the official schema.

An observer judges it, too: by what was said before, in whatever order the peer may have read it.

While `judging` is on, the public ways in and out of a connection also write down what passes. Each
message of ours is judged at the moment it is taken, so that a property test shrinks to it; those of
the peer are written down only, since an answer is judged by the request that it answers.
"""

import functools
import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs
import pytest

from sansmcp import ALL_REVISIONS, ClientConnection, ServerConnection, Side

from .schema import Sender, Transcript
from .watched import Watch

Connection: TypeAlias = ClientConnection | ServerConnection
Line: TypeAlias = bytes | bytearray | str


@attrs.define(eq=False)
class _Talk:
    """What one connection and its peer have said."""

    sender: Sender
    newest: str  # of the revisions that it speaks: it decides before one is agreed
    watch: Watch
    transcript: Transcript = attrs.field(factory=Transcript)
    rest: bytearray = attrs.field(factory=bytearray)
    unjudged: list[Line] = attrs.field(factory=list[Line])
    asked: dict[str, list[Any]] = attrs.field(factory=dict[str, list[Any]])
    revision: str | None = None

    def peer_said(self, data: bytes) -> None:
        self.rest += data
        if b"\n" in data:
            *lines, self.rest = self.rest.split(b"\n")
            self.unjudged += lines

    def hear_peer(self, revision: str | None) -> None:
        """Note what the peer wrote, now that the revision is known at which we answered it."""
        other: Sender = "server" if self.sender == "client" else "client"
        self.transcript.revision = revision or self.newest
        for line in (*self.unjudged, *([self.rest] if self.rest else ())):
            try:
                message: object = _decoded(line)
                self.transcript.record(other, message)
            except (ValueError, RecursionError, OverflowError):
                continue  # no JSON, or some that the validator cannot hold: no request of the peer
            for one in _messages(message):
                if "method" in one and "id" in one:
                    self.asked.setdefault(_key(one), []).append(one)
        self.unjudged.clear()

    def we_wrote(self, revision: str | None, lines: Iterable[bytes]) -> None:
        self.hear_peer(revision)
        for line in lines:
            message: object = _decoded(line)
            new = revision != self.revision and not _has_id(message)
            # What was queued before there was an agreement may come out behind it.
            self.transcript.revision = self.newest if new or revision is None else revision
            known = len(self.transcript.problems(self.sender))
            self.transcript.record(self.sender, message)
            problems = self.transcript.problems(self.sender)[known:]
            assert not problems or self.answers_one_of_many(message), (problems, line)
        self.revision = revision

    def answers_one_of_many(self, message: object) -> bool:
        """Whether each answer fits some request of its id.

        A peer that uses an id again after a refusal leaves open which request was refused.
        """
        answers = _messages(message)
        return bool(answers) and all(
            any(self.fits(asked, one) for asked in self.asked.get(_key(one), [])) for one in answers
        )

    def fits(self, asked: Any, answer: Any) -> bool:
        transcript = Transcript(self.transcript.revision)
        transcript.record("server" if self.sender == "client" else "client", asked)
        transcript.record(self.sender, answer)
        return not transcript.problems(self.sender)


def _messages(message: Any) -> list[Any]:
    """The objects in a message, which may be a batch."""
    batch: list[Any] = message if _is_a(list, message) else [message]
    return [one for one in batch if _is_a(dict, one)]


def _is_a(kind: type, value: object) -> bool:
    return isinstance(value, kind)


def _key(message: Any) -> str:
    """The id as text: `1` and `1.0` are one id, `"1"` is another."""
    id: Any = message.get("id")
    return repr(int(id) if isinstance(id, float) and id.is_integer() else id)


def _has_id(message: Any) -> bool:
    return isinstance(message, list) or "id" in message


def _decoded(line: Line) -> Any:
    value: Any = json.loads(line)
    odd = "\\u" if isinstance(line, str) else b"\\u"
    return _without_surrogates(value) if odd in line else value  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]  # of its own kind


def _without_surrogates(value: Any) -> Any:
    """The value with `?` for lone surrogates, of which the validator knows nothing."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {_without_surrogates(name): _without_surrogates(item) for name, item in members}
    return value


def _observed(method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    """The method, which tells `note` its argument, or where it has none what it returns."""

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
    """Judge what every connection made from here on gives out; copies of one are left alone."""
    talks: WeakKeyDictionary[Connection, _Talk] = WeakKeyDictionary()

    def created(self: Connection, *, revisions: Sequence[str] = ALL_REVISIONS, **_: object) -> None:
        sender: Sender = "client" if isinstance(self, ClientConnection) else "server"
        side = Side.CLIENT if sender == "client" else Side.SERVER
        talks[self] = _Talk(sender, max(revisions, default=""), Watch(side))

    def received_data(self: Connection, data: bytes | bytearray | memoryview, **_: object) -> None:
        if (talk := talks.get(self)) is not None:
            talk.peer_said(bytes(data))
            talk.watch.peer_said(self, bytes(data))

    def received_message(self: Connection, message: Line, **_: object) -> None:
        if (talk := talks.get(self)) is not None:
            talk.unjudged.append(message)
            line = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
            talk.watch.peer_said(self, bytes(line).replace(b"\n", b" ") + b"\n")

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
