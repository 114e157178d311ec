"""Records the clients of an endpoint, their connections, and what each of them has read."""

from typing import Any, TypeAlias

import attrs

from sansmcp import JSONObject
from sansmcp.http import SendHead, ServerExchange, SSEDecoder
from tests.support.http.server_endpoint import Headers
from tests.support.modern import MODERN, envelope, modern
from tests.support.wire import call, note, result

Label: TypeAlias = tuple[object, ...]
"""Distinguishes a message of the server, other than a response, from all others."""


@attrs.define(eq=False)
class Reader:
    """One client: one with a session, one of 2024-11-05, or one without a session.

    Attributes:
        fields: The headers of each of its requests.
        revision: The revision that it speaks.
        target: The path to which it posts.
        session: The session, if it has one.
        can_resume: Events have ids and are logged.
        gives_way: The endpoint keeps few of its GET streams. Messages for a stream that was never
            read are lost when a newer stream replaces it.
        over: The session has ended.
        streams: By the name in the ids of its events, the POST of a stream; None for a GET stream.
        events: By event id, the event.
        questions: By id, the requests of the server that it has read.
        has_lost: A connection that was not the response to a POST was broken.
        old_posts: By id, the requests of a client of 2024-11-05, whose responses share one stream.
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
        """A message of this client: a request with this number, or a response."""
        is_modern = self.revision == MODERN
        make = modern if is_modern else call
        if is_modern:
            number %= 3  # the clients share one endpoint, and may use equal ids
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
        """Whether all messages for its session arrive, sooner or later."""
        is_kept = bool(self.old_posts) or (self.can_resume and not self.gives_way)
        return is_kept and not self.over and not self.has_lost


@attrs.define(eq=False)
class Posted:
    """The requests that came with one POST.

    Attributes:
        owed: By id, whether a response is due. It is undecided for an id that is missing.
        answers: By id, the event that carried the response.
        refused: The whole POST was refused with an error without an id.
        listens: The POST opens a subscription.
        reading: The exchange of the POST.
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
        """Whether its client can read, or has read, its responses to the end."""
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
        place: A name for the exchange.
        post: The POST of the exchange.
        stream: The name of the stream that it reads.
        last: The number of the last event; None allows any number for the next one.
        resumes: It asked for the events after `last`.
        gone: The client has closed it.
        ended: The client has read it to its end.
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
    """Whether a request is for the application, and not answered by the library."""
    return message["method"] == "tools/call" and "name" in message["params"]


def notification(client: Reader, open_ids: list[Any]) -> JSONObject:
    """A cancellation of an open request, or another notification if no request is open."""
    if client.revision == MODERN:
        return note("notifications/cancelled", {"requestId": 1})
    if open_ids:
        return note("notifications/cancelled", {"requestId": open_ids[0]})
    return note("notifications/roots/list_changed")


def label_of(message: Any) -> Label | None:
    """A key for a message; None for a change, since one change may be sent to many clients."""
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
