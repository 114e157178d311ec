"""Records what the clients of an endpoint have posted, read and lost, and what is still due.

The records come from bytes on the wire, and from events and calls of the application. A record that
contradicts an earlier one raises an AssertionError at once.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from sansmcp import IncomingRequest
from sansmcp.http import (
    SendBody,
    SendEnd,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    ServerSentEvent,
)
from tests.support.http.readers import Label, Posted, Reader, Reading, label_of
from tests.support.http.server_endpoint import Headers, request

_STATUSES: Final = {200, 202, 204, 400, 404, 405, 406, 503}


class Ledger:
    """The records of one endpoint."""

    def __init__(self, endpoint: ServerEndpoint) -> None:
        self.endpoint = endpoint
        self.readings: dict[ServerExchange, Reading] = {}
        self.sent: dict[Label, Posted | None] = {}  # the POST that must carry it
        self.places: dict[Label, str] = {}
        self.due: list[tuple[Label, Reader]] = []

    # ------------------------------------------------------------------------------- requests

    def send(
        self,
        client: Reader,
        method: str,
        more: Headers,
        body: bytes = b"",
        *,
        post: Posted | None = None,
        target: str = "",
        stream: str = "",
        last: int | None = None,
    ) -> Reading:
        """Send an HTTP request of a client, and record it before any of the response is read."""
        exchange = request(
            self.endpoint,
            method,
            {**client.fields, **more},
            body,
            target=target or client.target,
            context=post,
        )
        place = f"exchange {len(self.readings)}"
        reading = self.readings[exchange] = Reading(place, client, exchange, post, stream, last)
        if post is not None:
            reading.last = 0
            post.reading = reading
        return reading

    def owner_of(self, handle: IncomingRequest, old: Iterable[Reader]) -> Posted:
        """The POST that a request came with."""
        for client in old:
            if handle.peer.session is client.session:
                return client.old_posts[handle.id]
        assert isinstance(handle.context, Posted)
        return handle.context

    # -------------------------------------------------------------------------------- reading

    def read(self) -> None:
        """Let each client read all output, and demand that exactly these exchanges were ready."""
        while ready := self.endpoint.ready():  # taking output here can cause output there
            for exchange in ready:
                if exchange in self.readings:
                    self._take(self.readings[exchange])
        for exchange in self.readings:
            assert exchange.next_output() is None

    def _take(self, reading: Reading) -> None:
        assert not reading.gone
        while (output := reading.exchange.next_output()) is not None:
            assert not reading.ended
            if isinstance(output, SendHead):
                assert reading.head is None
                assert output.status in _STATUSES
                reading.head = output
            elif isinstance(output, SendBody):
                assert reading.head is not None
                if reading.is_stream:
                    for item in reading.decoder.feed(output.data):
                        assert isinstance(item, ServerSentEvent)
                        self._saw_event(reading, item)
                else:
                    reading.body += output.data
            else:
                assert isinstance(output, SendEnd)
                assert reading.head is not None
                reading.ended = True
                if not reading.is_stream:
                    self._saw_object(reading)

    def _saw_event(self, reading: Reading, event: ServerSentEvent) -> None:
        client = reading.client
        if event.type == "endpoint":
            return
        if event.id:
            name, _, number = event.id.rpartition("-")
            if reading.stream not in ("", name):
                # Only a GET stream may continue with events of another stream: of one that it has
                # replaced, or of one that was never sent.
                assert reading.post is None, "a connection carries events of two streams"
                assert client.streams[reading.stream] is client.streams.get(name) is None
                reading.resumes, reading.last = False, None
            reading.stream = name
            assert reading.last is None or int(number) == reading.last + 1, "an event is missing"
            reading.last = int(number)
            assert client.streams.setdefault(name, reading.post) is reading.post or not reading.post
            if not reading.resumes:
                assert event.id not in client.events, "an event was repeated without a resume"
            assert client.events.setdefault(event.id, event.data) == event.data
        if event.data:
            owner = reading.post or client.streams.get(reading.stream)
            self._saw(reading, json.loads(event.data), owner, event.id or reading.place)

    def _saw_object(self, reading: Reading) -> None:
        if reading.body:
            self._saw(reading, json.loads(reading.body), reading.post, reading.place)

    def _saw(self, reading: Reading, value: Any, owner: Posted | None, place: str) -> None:
        messages: list[Any] = value if value.__class__ is list else [value]
        for message in messages:
            if "method" in message:
                self._saw_call(reading, message, owner, place)
            elif "id" in message:
                self._saw_answer(reading.client, message["id"], owner, place)
            elif owner is not None:
                assert not owner.answers
                owner.refused = True

    def _saw_call(self, reading: Reading, message: Any, owner: Posted | None, place: str) -> None:
        label = label_of(message)
        if label is None:
            assert owner is None or owner.listens
            return
        if "id" in message:
            label = (reading.client, *label)
            reading.client.questions[message["id"]] = message["method"]
        assert self.sent[label] is owner, "the message belongs to another stream"
        assert self.places.setdefault(label, place) == place, "the message came on two streams"

    def _saw_answer(self, client: Reader, id: Any, owner: Posted | None, place: str) -> None:
        owner = client.old_posts.get(id, owner)
        assert owner is not None
        assert id in owner.ids, "the response answers another request"
        assert not owner.refused
        assert owner.owed.get(id, True), "a request was answered that must have no response"
        assert owner.answers.setdefault(id, place) == place, "a request was answered twice"
        assert set(owner.answers.values()) == {place}, "a batch was answered in several parts"

    # -------------------------------------------------------------------------- after the run

    def check(self, posts: Iterable[Posted]) -> None:
        """Demand that everything that is due has arrived, after all was answered and read."""
        for post in posts:
            if post.refused or not post.is_reachable:
                continue
            for id in post.ids:
                assert (id in post.answers) == post.owed[id], (id, post)
        for label, client in self.due:
            owner = self.sent[label]
            if owner is not None and owner.is_reachable:
                assert label in self.places, label
            if owner is None and client.misses_nothing:
                assert label in self.places, label
