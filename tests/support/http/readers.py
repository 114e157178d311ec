"""Clients of an endpoint in a test, their connections, and what each of them has read."""

from typing import Any, TypeAlias

import attrs

from sansmcp import JSONObject
from sansmcp.http import SendHead, ServerExchange, SSEDecoder
from tests.support.http.server_endpoint import Headers
from tests.support.modern import MODERN, envelope, modern
from tests.support.wire import call, note, result

Label: TypeAlias = tuple[object, ...]
"""What tells one message of the server that is no answer from all others."""


@attrs.define(eq=False)
class Reader:
    """One client: with a session, of 2024-11-05, or one of those that have none.

    Attributes:
        fields: Of each of its requests.
        revision: That it speaks.
        target: Where it posts.
        session: The session, if there is one.
        can_resume: Events have ids, and a log.
        gives_way: Few of its GET streams are kept: what waits for one that it has never read is
            lost when that has to give way.
        over: The session is over.
        streams: By the name that its events have: what was posted on it; None: it listens.
        events: What each event id was seen to stand for.
        questions: Requests of the server that it has read, by id.
        has_lost: A connection of it that was not the answer to a POST was broken.
        old_posts: Of a client of 2024-11-05, by id: their answers come on its one stream.
    """

    fields: Headers
    revision: str
    target: str = "/mcp"
    session: Any = None
    can_resume: bool = False
    gives_way: bool = False
    over: bool = False
    streams: dict[str, "Posted | None"] = attrs.field(
        factory=dict[str, "Posted | None"], init=False
    )
    events: dict[str, bytes] = attrs.field(factory=dict[str, bytes], init=False)
    questions: dict[Any, str] = attrs.field(factory=dict[Any, str], init=False)
    has_lost: bool = attrs.field(default=False, init=False)
    old_posts: dict[Any, "Posted"] = attrs.field(factory=dict[Any, "Posted"], init=False)

    def message(self, kind: str, number: int) -> JSONObject:
        """A message of this client: a request with this number, or an answer."""
        is_modern = self.revision == MODERN
        make = modern if is_modern else call
        if is_modern:
            number %= 3  # its clients share one endpoint, and choose ids as they like
        if kind == "reply" and self.questions:
            id, _ = self.questions.popitem()
            return result(id, {"roots": []})
        if kind == "invalid":
            return make(number, "tools/call", {})
        if kind in ("ping", "un/known"):
            return make(number, kind, {})
        meta: JSONObject = {"progressToken": number}
        if is_modern:
            meta = envelope(level="debug", **meta)
        return call(number, "tools/call", {"name": "t", "_meta": meta})

    @property
    def misses_nothing(self) -> bool:
        """Whether what was told to its session reaches it, sooner or later."""
        is_kept = bool(self.old_posts) or (self.can_resume and not self.gives_way)
        return is_kept and not self.over and not self.has_lost


@attrs.define(eq=False)
class Posted:
    """The requests that came with one POST.

    Attributes:
        owed: By id, whether an answer is due; an id that is not there is not decided yet.
        answers: By id, in which event the answer was seen.
        refused: The whole was refused with an error that names no request.
        listens: It is a subscription.
        reading: Its own connection.
    """

    client: Reader
    ids: tuple[int, ...]
    listens: bool = False
    owed: dict[Any, bool] = attrs.field(factory=dict[Any, bool], init=False)
    answers: dict[Any, str] = attrs.field(factory=dict[Any, str], init=False)
    refused: bool = attrs.field(default=False, init=False)
    reading: "Reading" = attrs.field(init=False)

    @property
    def is_reachable(self) -> bool:
        """Whether its client still can, or did, read to the end of it."""
        reading, client = self.reading, self.client
        if client.over:
            return False
        if client.old_posts:
            return not client.has_lost
        return not reading.gone or (client.can_resume and self in client.streams.values())


@attrs.define(eq=False)
class Reading:
    """One exchange, as far as its client has read it.

    Attributes:
        place: A name for it.
        post: What was posted in it.
        stream: The name of the stream that is read in it.
        last: The number of the last event; None: any may come.
        resumes: It asked for what follows that event.
        gone: Its client has left.
        ended: It was read to its end.
    """

    place: str
    client: Reader
    exchange: ServerExchange
    post: Posted | None
    stream: str = ""
    last: int | None = None
    resumes: bool = attrs.field(init=False)
    gone: bool = attrs.field(default=False, init=False)
    ended: bool = attrs.field(default=False, init=False)
    head: SendHead | None = attrs.field(default=None, init=False)
    body: bytes = attrs.field(default=b"", init=False)
    decoder: SSEDecoder = attrs.field(factory=SSEDecoder, init=False)

    def __attrs_post_init__(self) -> None:
        self.resumes = self.last is not None

    @property
    def is_stream(self) -> bool:
        return self.head is not None and dict(self.head.headers).get(b"content-type") == (
            b"text/event-stream"
        )


def is_for_application(message: JSONObject) -> bool:
    """Whether it is not answered by the library."""
    return message["method"] == "tools/call" and "name" in message["params"]


def notification(client: Reader, open_ids: list[Any]) -> JSONObject:
    """It cancels a request, where one is open."""
    if client.revision == MODERN:
        return note("notifications/cancelled", {"requestId": 1})
    if open_ids:
        return note("notifications/cancelled", {"requestId": open_ids[0]})
    return note("notifications/roots/list_changed")


def label_of(message: Any) -> Label | None:
    """What a message is known by; None: it tells of a change, which may be told once for many."""
    params = message.get("params", {})
    match message["method"]:
        case "notifications/progress":
            return "progress", params["progress"]
        case "notifications/message":
            return "log", params["data"]
        case method if "id" in message:
            return method, message["id"]
        case _:
            return None
