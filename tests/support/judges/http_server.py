"""Judges every message that a server endpoint sends in a test, by the official schema.

While `judging_http` is on, the public methods that take and give data of exchanges also record it.
A message of this side is judged when it is taken: a request by itself, a response by the request
that was posted in the same exchange. The responses on a resumed stream were judged when they were
sent first. An error without an id has a form in the schema since 2025-11-25 only. Over HTTP, it is
the body of a refusal in every revision, and is judged by that form.
"""

import functools
import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import pytest

from sansmcp import ALL_REVISIONS
from sansmcp.http import (
    SendBody,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    ServerSentEvent,
    SSEDecoder,
)
from tests.support.judges.schema import REVISIONS, Transcript

_MODERN = REVISIONS[-1]
_WITH_IDLESS_ERRORS = "2025-11-25"
_ASSUMED = "2025-03-26"


@attrs.define(eq=False)
class _Talk:
    """One exchange, and the messages in it so far."""

    endpoint: ServerEndpoint
    speaks: Sequence[str]
    fields: dict[str, str]
    posted: bytearray = attrs.field(factory=bytearray)
    decoder: SSEDecoder | None = None
    taken: bytearray = attrs.field(factory=bytearray)

    @property
    def revision(self) -> str:
        """The revision by which to judge a message of this exchange that does not show its own."""
        sessions = {session.id: session for session in self.endpoint.sessions}
        session = sessions.get(self.fields.get("mcp-session-id", ""))
        if session is not None and session.revision is not None:
            return session.revision
        field = self.fields.get("mcp-protocol-version", _ASSUMED)
        return field if field in self.speaks else max(self.speaks)

    def asked(self, id: object) -> Any:
        """The request with this id that was posted in this exchange."""
        try:
            value: Any = json.loads(self.posted)
        except ValueError:
            return None
        messages: list[Any] = value if value.__class__ is list else [value]
        for message in messages:
            if message.__class__ is dict and "method" in message and _same(message.get("id"), id):
                return message
        return None

    def took_head(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if (b"content-type", b"text/event-stream") in headers:
            self.decoder = SSEDecoder()

    def took(self, data: bytes, whole: bool) -> None:
        if self.decoder is not None:
            for event in self.decoder.feed(data):
                if isinstance(event, ServerSentEvent) and event.type == "message" and event.data:
                    self.judge(event.data)
        else:
            self.taken += data
            if whole:
                self.judge(bytes(self.taken))

    def judge(self, text: bytes) -> None:
        message: Any = json.loads(text)
        problems = self.problems(message)
        assert not problems, (problems, text)

    def problems(self, message: Any) -> list[str]:
        if message.__class__ is list:
            assert self.revision == _ASSUMED, "there are no batches in this revision"
            return [problem for one in message for problem in self.problems(one)]
        transcript = Transcript(self.revision, self.speaks)
        if "method" not in message:
            if "id" not in message:
                transcript = Transcript(_WITH_IDLESS_ERRORS, self.speaks)
            else:
                request = self.asked(message["id"])
                if request is None and "result" in message:
                    return []  # its request was posted in another exchange
                if request is None or not isinstance(request["method"], str):
                    request = {"jsonrpc": "2.0", "id": message["id"], "method": "x/unknown"}
                transcript.record("client", request)
        elif _speaks_for_itself(message):
            transcript = Transcript(_MODERN, self.speaks)
        transcript.record("server", message)
        return transcript.problems("server")


def _same(one: object, other: object) -> bool:
    return one == other and (isinstance(one, str) is isinstance(other, str))


def _speaks_for_itself(message: Any) -> bool:
    """Whether a notification shows by its form that it belongs to the modern era."""
    method, meta = message["method"], message.get("params", {}).get("_meta", {})
    tag = "io.modelcontextprotocol/subscriptionId"
    return method == "notifications/subscriptions/acknowledged" or tag in meta


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


@contextmanager
def judging_http() -> Generator[None, None, None]:
    """Judge what all endpoints send that are made from now on, except copies of endpoints."""
    speaks: WeakKeyDictionary[Any, Sequence[str]] = WeakKeyDictionary()
    talks: WeakKeyDictionary[Any, _Talk] = WeakKeyDictionary()
    create, exchange = ServerEndpoint.__init__, ServerEndpoint.exchange
    receive, next_output = ServerExchange.receive_data, ServerExchange.next_output
    response = ServerExchange.response

    @functools.wraps(create)
    def created(self: Any, *, revisions: Sequence[str] = ALL_REVISIONS, **more: Any) -> None:
        create(self, revisions=revisions, **more)
        speaks[self] = revisions

    @functools.wraps(exchange)
    def exchanged(self: Any, method: Any, target: Any, headers: Any, **more: Any) -> Any:
        is_mapping = hasattr(headers, "items")
        kept: Any = headers if is_mapping else list(headers)
        made = exchange(self, method, target, kept, **more)
        if self in speaks:
            pairs = kept.items() if is_mapping else kept
            fields = {_text(name).lower(): _text(value).strip() for name, value in pairs}
            talks[made] = _Talk(self, speaks[self], fields)
        return made

    @functools.wraps(receive)
    def received(self: Any, data: Any, **more: Any) -> None:
        if self in talks:
            talks[self].posted += data
        receive(self, data, **more)

    @functools.wraps(next_output)
    def took(self: Any) -> Any:
        output = next_output(self)
        talk = talks.get(self)
        if talk is not None:
            if isinstance(output, SendHead):
                talk.took_head(output.headers)
            elif isinstance(output, SendBody):
                talk.took(output.data, self.ended)
        return output

    @functools.wraps(response)
    def took_all(self: Any) -> Any:
        whole = response(self)
        talk = talks.pop(self, None) if whole is not None else None  # it may be read again
        if talk is not None and whole is not None and whole[2]:
            talk.took_head(whole[1])
            talk.took(whole[2], True)
        return whole

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerEndpoint, "__init__", created)
        patch.setattr(ServerEndpoint, "exchange", exchanged)
        patch.setattr(ServerExchange, "receive_data", received)
        patch.setattr(ServerExchange, "next_output", took)
        patch.setattr(ServerExchange, "response", took_all)
        yield
