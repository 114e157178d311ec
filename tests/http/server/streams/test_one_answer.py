"""Each request gets one response on one stream, however connections break and resume."""

import itertools
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sansmcp import (
    ErrorReceived,
    IncomingRequest,
    JSONObject,
    OutgoingRequest,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ToolsListChanged,
)
from sansmcp.http import EventToStore, MemoryEventLog, OldPaths, ReplayWanted, SessionEnded
from tests.support.http.ledger import Ledger
from tests.support.http.lookups import Store
from tests.support.http.readers import (
    Label,
    Posted,
    Reader,
    Reading,
    is_for_application,
    notification,
)
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    POST,
    body_of,
    connect,
    drain,
    modern_headers,
    new_endpoint,
    sessions,
)
from tests.support.machines.budget import examples
from tests.support.modern import MODERN, listen
from tests.support.wire import INITIALIZED, call
from tests.support.wire import initialize as hello

OLD = "2024-11-05"
PICK = st.integers(0, 9)
REVISIONS = st.lists(
    st.sampled_from(["2025-11-25", "2025-11-25", "2025-03-26", "2025-06-18", OLD]),
    min_size=1,
    max_size=3,
)
KINDS = st.sampled_from(["call", "call", "call", "ping", "un/known", "invalid", "note", "reply"])


class OneAnswer(RuleBasedStateMachine):
    """Clients of all revisions at one endpoint, with connections that break at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.now = 0.0
        self.open: list[IncomingRequest] = []
        self.asked: list[OutgoingRequest] = []
        self.posts: list[Posted] = []
        self.clients: list[Reader] = []

    @initialize(
        sse=st.booleans(),
        log=st.integers(0, 3),
        stateless=PICK,
        revisions=REVISIONS,
        store=st.sampled_from(["here", "elsewhere", "elsewhere and slow"]),
    )
    def start(self, sse: bool, log: int, stateless: int, revisions: list[str], store: str) -> None:
        self.is_slow = store == "elsewhere and slow"
        self.replays: list[ReplayWanted] = []
        self.log = log > 0
        self.gives_way = log < 2
        self.stateless = stateless == 0
        more: dict[str, Any] = {}
        if not self.stateless:
            more = {
                "sessions": sessions(
                    max_streams=2 if self.gives_way else 100,
                    event_log=(MemoryEventLog if store == "here" else "ask") if self.log else None,
                ),
                "old_paths": OldPaths(stream="/sse", post="/messages"),
            }
        self.endpoint = new_endpoint(
            answers="sse" if sse else "auto", stateless=self.stateless, **more
        )
        self.store = Store(self.endpoint, portion=2)
        self.ledger = Ledger(self.endpoint)
        self.modern = Reader(fields={}, revision=MODERN)
        for revision in revisions:
            self.join(revision)
            self.events_are_taken()
        self.clients.append(self.modern)

    def pick(self, items: Any, choice: int) -> Any:
        """One of these at random; None if there is none."""
        items = list(items)
        return items[choice % len(items)] if items else None

    # ------------------------------------------------------------------------- the application

    @invariant()
    def events_are_taken(self) -> None:
        """The application gets each request once, its ending, and the endings of its own
        requests."""
        if not hasattr(self, "endpoint"):
            return
        old = [client for client in self.clients if client.revision == OLD]
        events = drain(self.endpoint)
        for event in events:
            if isinstance(event, RequestReceived):
                self.open.append(event.request)
            elif isinstance(event, RequestCancelled):
                self.open.remove(event.request)
                self.ledger.owner_of(event.request, old).owed[event.request.id] = False
            elif isinstance(event, ResponseReceived | ErrorReceived | RequestFailed):
                self.asked.remove(event.request)
            elif isinstance(event, EventToStore):
                self.store.keep(event)
            elif isinstance(event, ReplayWanted):
                self.replays.append(event)
            elif isinstance(event, SessionEnded):
                for client in self.clients:
                    client.over = client.over or client.session is event.session
        if not self.is_slow:
            self.replay(len(self.replays))

    @rule(number=st.integers(1, 2))
    def replay(self, number: int) -> None:
        """The store answers some questions, also of clients that have left."""
        for question in self.replays[:number]:
            self.store.answer(question)
        del self.replays[:number]

    def read_all(self) -> None:
        """Each client reads all output, also of the store."""
        while True:
            self.events_are_taken()
            self.replay(len(self.replays))
            self.ledger.read()
            if not self.endpoint.open_questions:
                return

    def owner(self, handle: IncomingRequest) -> Posted:
        old = [client for client in self.clients if client.revision == OLD]
        return self.ledger.owner_of(handle, old)

    @rule(choice=PICK, well=st.booleans())
    def answer(self, choice: int, well: bool) -> None:
        if handle := self.pick(self.open, choice):
            self.answer_one(handle, well)

    def answer_one(self, handle: IncomingRequest, well: bool) -> None:
        self.open.remove(handle)
        if well:
            done = self.endpoint.send_result(handle, {"content": []})
        else:
            done = self.endpoint.send_error(handle, -32000, "no")
        self.owner(handle).owed[handle.id] = done

    @rule(choice=PICK, what=st.sampled_from(["progress", "log", "ask", "start", "close"]))
    def say(self, choice: int, what: str) -> None:
        """A message goes on the stream of a request."""
        handle = self.pick(self.open, choice)
        if handle is None:
            return
        owner, number = self.owner(handle), next(self.numbers)
        client = owner.client
        where = None if client.revision == OLD else owner
        if what == "progress":
            done = self.endpoint.send_progress(handle, number)
            self.sends(("progress", number), client, where, done)
        elif what == "log":
            done = self.endpoint.send_log("error", number, request=handle)
            self.sends(("log", number), client, where, done)
        elif what == "ask" and client.session is not None:
            asked = self.endpoint.send_request("roots/list", request=handle)
            self.asked.append(asked)
            self.sends((client, "roots/list", asked.id), client, where, asked.open)
        elif what == "start":
            self.endpoint.start_stream(handle)
        else:
            self.endpoint.close_stream(handle, retry_ms=1)

    def sends(self, label: Label, client: Reader, owner: Posted | None, done: bool) -> None:
        self.ledger.sent[label] = owner
        if done:
            self.ledger.due.append((label, client))

    @rule(choice=PICK, what=st.sampled_from(["log", "ask", "close"]))
    def say_to_session(self, choice: int, what: str) -> None:
        """A message goes to a session, outside of any request."""
        client = self.pick([one for one in self.clients if one.session and not one.over], choice)
        if client is None:
            return
        if what == "log":
            number = next(self.numbers)
            done = self.endpoint.send_log("error", number, session=client.session)
            self.sends(("log", number), client, None, done)
        elif what == "ask":
            asked = self.endpoint.send_request("roots/list", session=client.session)
            self.asked.append(asked)
            self.sends((client, "roots/list", asked.id), client, None, asked.open)
        else:
            self.endpoint.close_stream(client.session)

    @rule(
        choice=PICK,
        what=st.sampled_from(["publish", "end", "subscribe", "again", "delete", 4000]),
    )
    def seldom(self, choice: int, what: str | int) -> None:
        """Rare actions, such as the end of a session."""
        if what == "publish":
            self.endpoint.publish(ToolsListChanged())
        elif what == "end":
            if listener := self.pick(self.endpoint.listeners, choice):
                self.endpoint.end_listener(listener)
        elif what == "subscribe":
            self.subscribe(choice % 2)
        elif what == "again":
            self.post_an_id_again(choice)
        elif what == "delete":
            if choice == 5:  # else there would be nobody left soon
                self.ledger.send(self.clients[0], "DELETE", {})
        else:
            assert isinstance(what, int)
            self.now += what if choice == 5 else 20
            self.endpoint.handle_timeout(self.now)

    # ----------------------------------------------------------------------------- the clients

    def join(self, revision: str) -> None:
        if self.stateless:
            if revision != OLD:
                fields = {"mcp-protocol-version": revision}
                self.clients.append(Reader(fields=fields, revision=revision))
        elif revision == OLD:
            self.join_old()
        else:
            one = connect(self.endpoint, revision)
            self.clients.append(
                Reader(
                    fields=one.headers,
                    revision=revision,
                    session=one.session,
                    can_resume=self.log,
                    gives_way=self.gives_way,
                )
            )

    def join_old(self) -> None:
        client = Reader(fields={}, revision=OLD)
        self.clients.append(client)
        reading = self.ledger.send(client, "GET", GET, target="/sse")
        client.session = self.endpoint.sessions[-1]
        client.target = f"/messages?session_id={client.session.id}"
        for message in (hello(0, OLD), INITIALIZED):
            client.old_posts[0] = Posted(client, (0,))
            client.old_posts[0].reading = reading
            client.old_posts[0].owed[0] = True
            self.ledger.send(client, "POST", {"content-type": JSON}, body_of(message))

    @rule(who=PICK, kinds=st.lists(KINDS, min_size=1, max_size=4), choice=PICK, form=PICK)
    def post(self, who: int, kinds: list[str], choice: int, form: int) -> None:
        """One message, or a batch in the one revision that has them."""
        client = self.pick([*self.clients[:-1], *self.clients], who)
        if client.revision != "2025-03-26":
            del kinds[1:]
        messages = [self.message(client, kind, choice) for kind in kinds]
        ids = tuple(
            message["id"] for message in messages if "method" in message and "id" in message
        )
        post = Posted(client, ids)
        fields = dict(POST)
        if form in (0, 1):
            fields["accept"] = JSON
        elif form == 2:
            fields["accept"] = "text/event-stream"
        self.deliver(post, messages, fields, is_batch=len(messages) > 1 or form == 9)
        if form % 2:
            self.events_are_taken()
            for handle in self.open[-1:]:
                self.endpoint.start_stream(handle)
            self.ledger.read()

    def deliver(
        self, post: Posted, messages: list[JSONObject], fields: dict[str, str], *, is_batch: bool
    ) -> None:
        client = post.client
        for message in messages:
            if "method" in message and "id" in message and not is_for_application(message):
                post.owed[message["id"]] = True
        body = body_of(messages if is_batch and client.revision == "2025-03-26" else messages[0])
        if client is self.modern and "method" in messages[0]:
            fields |= modern_headers(messages[0])
        self.posts.append(post)
        if client.revision == OLD:
            client.old_posts |= dict.fromkeys(post.ids, post)
            post.reading = self.ledger.send(client, "POST", fields, body)
        else:
            self.ledger.send(client, "POST", fields, body, post=post)

    def message(self, client: Reader, kind: str, choice: int) -> JSONObject:
        if kind == "note":
            handles = [one for one in self.open if self.owner(one).client is client]
            return notification(client, [one.id for one in handles][choice % 4 :])
        return client.message(kind, next(self.numbers))

    def post_an_id_again(self, choice: int) -> None:
        """A second request with an id in flight must be refused without answering the first."""
        handles = [one for one in self.open if one.peer.session and one.revision != OLD]
        if handle := self.pick(handles, choice):
            client = self.owner(handle).client
            body = body_of(call(handle.id, "tools/call", {"name": "t"}))
            self.ledger.send(client, "POST", POST, body, post=Posted(client, ()))

    def subscribe(self, number: int) -> None:
        message = listen(number, {"toolsListChanged": True})
        post = Posted(self.modern, (number,), listens=True)
        self.deliver(post, [message], dict(POST), is_batch=False)

    @rule(who=PICK, choice=st.integers(0, 30))
    def get(self, who: int, choice: int) -> None:
        """Open a GET stream, or resume from any event that was ever seen."""
        client = self.pick([one for one in self.clients if one.session is not None], who)
        if client is None or client.revision == OLD:
            return
        if choice % 3 == 0 or not client.events:
            self.ledger.send(client, "GET", GET)
        else:
            self.resume(client, self.pick(client.events, choice))

    def resume(self, client: Reader, last: str) -> Reading:
        name, _, number = last.rpartition("-")
        fields = {**GET, "last-event-id": last}
        return self.ledger.send(client, "GET", fields, stream=name, last=int(number))

    @rule(choice=st.integers(0, 30), reads=st.booleans())
    def drop(self, choice: int, reads: bool) -> None:
        """A connection breaks, with or without the output that was on its way."""
        readings = [one for one in self.ledger.readings.values() if not one.gone and not one.ended]
        if reading := self.pick(reversed(readings), choice):
            if reads:
                self.ledger.read()
            reading.gone = True
            reading.client.has_lost |= reading.post is None
            reading.exchange.receive_disconnect()

    @rule()
    def read(self) -> None:
        self.ledger.read()

    # ------------------------------------------------------------------------------ at the end

    def teardown(self) -> None:
        """Answer all requests, and let every client resume for missed events."""
        self.events_are_taken()
        for handle in list(self.open):
            self.answer_one(handle, True)
        for listener in self.endpoint.listeners:
            self.endpoint.end_listener(listener)
        self.read_all()
        for client in self.clients:
            if client.can_resume and not client.over:
                self.ledger.send(client, "GET", GET)
                self.read_all()
                for name in list(client.streams):
                    seen = [id for id in client.events if id.rpartition("-")[0] == name]
                    reading = self.resume(client, seen[-1])
                    self.read_all()
                    assert reading.is_stream
        self.events_are_taken()
        self.ledger.check(self.posts)
        self.endpoint.close()
        self.events_are_taken()
        self.ledger.read()
        assert all(one.ended or one.gone for one in self.ledger.readings.values())
        assert self.asked == []
        assert self.endpoint.open_requests == ()
        assert self.endpoint.open_questions == ()
        assert self.endpoint.sessions == ()
        assert self.endpoint.next_timeout() is None


TestOneAnswer = OneAnswer.TestCase
TestOneAnswer.settings = settings(examples(30, 1000), stateful_step_count=50, deadline=None)
