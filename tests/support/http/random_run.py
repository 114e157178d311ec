"""Lets a client and a server act at random, over an unreliable network."""

import itertools
from collections import Counter
from typing import Any, Final, TypeVar

from sansmcp import (
    MODERN_REVISIONS,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    FailureReason,
    IncomingRequest,
    JSONObject,
    ListingEnded,
    NotificationReceived,
    OutgoingRequest,
    PingEnded,
    ProgressReceived,
    Ready,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    State,
    SubscriptionEnded,
    ToolsListChanged,
)
from sansmcp.http import (
    SessionLost,
    StreamUnavailable,
)
from tests.support.http.unreliable_network import UnreliableNetwork

TELL: Final = "custom/number"
EventT = TypeVar("EventT")
_ROOTS: Final[JSONObject] = {"roots": []}


def taken(events: list[EventT]) -> list[EventT]:
    """Take all events out of a list."""
    found = list(events)
    events.clear()
    return found


class RandomRun(UnreliableNetwork):
    """One run.

    Attributes:
        asked: Requests that the application of the server has not answered yet.
        endings: How often each handle has ended.
        handles: All handles that the application of the client was given.
        heard: The numbers of the notifications that have arrived.
        questions: Requests that the application of the client has not answered yet.
        ready: Sessions whose handshake is complete.
        server_calls: How often each request of the server has ended.
        told: The numbers of the notifications that were sent.
        tokens: By request, the text that its response must have.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.numbers = itertools.count(1)
        self.is_open = False
        self.asked: dict[IncomingRequest, None] = {}
        self.questions: dict[IncomingRequest, None] = {}
        self.server_calls: Counter[OutgoingRequest] = Counter()
        self.tokens: dict[OutgoingRequest, str] = {}
        self.handles: list[Any] = [self.client.start(timeout=300.0, probe_timeout=60.0, now=0.0)]
        self.endings: Counter[Any] = Counter()
        self.ready: set[Any] = set()
        self.told: list[int] = []
        self.heard: list[int] = []

    def flush(self) -> None:
        """Move and handle everything that both sides have to send."""
        super().flush()
        self.hear()
        self.serve()

    def forget(self) -> None:
        self.asked.clear()
        self.server_calls.clear()

    # ------------------------------------------------------------------------------ the client

    def hear(self) -> None:
        """Check the events of the client: each request has one ending, and the right result."""
        for event in taken(self.pair.client_events):
            match event:
                case ResponseReceived():
                    assert event.result["content"][0]["text"] == self.tokens[event.request]
                    self.endings[event.request] += 1
                case RequestFailed():
                    self.endings[event.request] += 1
                    if event.reason is FailureReason.LOST and event.request in self.primed:
                        assert self.restarts or self.client.revision in MODERN_REVISIONS
                case ErrorReceived():
                    self.endings[event.request] += 1
                case ProgressReceived():
                    assert event.message == self.tokens[event.request]
                    assert not self.endings[event.request]
                case ListingEnded():
                    self.endings[event.listing] += 1
                case SubscriptionEnded():
                    self.endings[event.subscription] += 1
                case PingEnded():
                    self.endings[event.ping] += 1
                case Ready() | ConnectionFailed():
                    self.endings[event.start] += 1
                    self.is_open = isinstance(event, Ready)
                case SessionLost():
                    # If the session was not reopened automatically, reopen it, as applications do.
                    start = event.start
                    if start is None and self.client.state is State.OPEN:
                        start = self.client.reopen()
                    self.handles += [] if start is None else [start]
                    self.is_open = False
                case ConnectionClosed():
                    self.is_open = False
                case StreamUnavailable():
                    self.unprimed = True
                case RequestReceived():
                    self.questions[event.request] = None
                case RequestCancelled():
                    del self.questions[event.request]
                case NotificationReceived() if event.method == TELL:
                    self.heard.append(event.params["number"])
                case _:
                    pass

    def ask(self) -> None:
        """Let the application of the client do something."""
        client, random, now = self.client, self.random, self.pair.now
        is_modern = client.revision in MODERN_REVISIONS
        match random.choice(["call", "call", "call", "cancel", "list", "listen", "ping", "note"]):
            case "call":
                token = f"token {next(self.numbers)}"
                call = client.send_request(
                    "tools/call",
                    {"name": "t", "arguments": {"token": token}},
                    progress=random.random() < 0.7,
                    timeout=random.choice([None, None, 4.0, 90.0]),
                    now=now,
                )
                self.tokens[call] = token
                self.handles.append(call)
            case "cancel":
                client.cancel(random.choice(self.handles), now=now)
            case "list":
                self.handles.append(client.send_paginated("tools/list", now=now))
            case "listen" if is_modern:
                self.handles.append(client.listen({"toolsListChanged": True}, now=now))
            case "ping" if not is_modern:
                self.handles.append(client.ping(now=now))
            case _:
                client.send_notification("custom/note", now=now)

    def answer_server(self) -> None:
        """Let the application of the client answer a request."""
        question = self.random.choice(list(self.questions))
        del self.questions[question]
        assert self.client.send_result(question, dict(_ROOTS), now=self.pair.now)

    # ------------------------------------------------------------------------------ the server

    def serve(self) -> None:
        """Handle the events of the server."""
        for event in taken(self.pair.server_events):
            match event:
                case RequestReceived():
                    self.asked[event.request] = None
                case RequestCancelled():
                    self.asked.pop(event.request, None)
                case Ready():
                    self.ready.add(event.peer.session)
                case ResponseReceived() | ErrorReceived() | RequestFailed():
                    self.server_calls[event.request] += 1
                case _:
                    pass

    def do(self) -> None:
        """Let the application of the server do something."""
        server, random, now = self.pair.server, self.random, self.pair.now
        session: Any = random.choice(server.sessions) if server.sessions else None
        request = random.choice(list(self.asked)) if self.asked else None
        what = (
            "answer"
            if self.is_reliable
            else random.choice(
                [
                    "answer",
                    "answer",
                    "progress",
                    "ask",
                    "close",
                    "tell",
                    "tell",
                    "publish",
                    "stream",
                ]
            )
        )
        if request is not None and what == "answer":
            self.answer_client(request)
        elif request is not None and what == "progress":
            progress = 1 + (request.data or 0)
            if server.send_progress(request, progress, message=self.token_of(request), now=now):
                request.data = progress
        elif request is not None and what == "stream":
            server.start_stream(request, now=now)
        elif what == "publish":
            server.publish(ToolsListChanged(), now=now)
        elif session in self.ready:
            if what == "ask":
                target: dict[str, Any] = {"session": session}
                if request is not None and request.peer.session is session:
                    target = {"request": request}
                self.server_calls[
                    server.send_request("roots/list", timeout=100.0, now=now, **target)
                ] += 0
            elif what == "tell":
                number = next(self.numbers)
                server.send_notification(TELL, {"number": number}, session=session, now=now)
                self.told.append(number)
            elif what == "close":
                where = request if request is not None else session
                server.close_stream(where, retry_ms=random.choice([None, 0, 500]), now=now)

    @staticmethod
    def token_of(request: IncomingRequest) -> str:
        """The text with which a request must be answered."""
        token: str = request.params.get("arguments", {}).get("token", "")
        return token

    def answer_client(self, request: IncomingRequest) -> None:
        """Answer a request with its result."""
        del self.asked[request]
        result: dict[str, Any] = {"content": [{"type": "text", "text": self.token_of(request)}]}
        if request.method == "tools/list":
            result = {"tools": []}
        self.pair.server.send_result(request, result, now=self.pair.now)

    # ------------------------------------------------------------------------------------ a run

    def step(self) -> None:
        """Take one random step."""
        random = self.random
        choice = random.random()
        waiting, answering = self.waiting, self.answering
        if choice < 0.22 and waiting:
            self.arrive(random.choice(waiting))
        elif choice < 0.55 and answering:
            self.bring(random.choice(answering))
        elif choice < 0.68:
            self.do()
        elif choice < 0.80 and self.is_open:
            self.ask()
        elif choice < 0.84 and self.questions:
            self.answer_server()
        elif choice < 0.88 and answering:
            self.break_off(random.choice(answering))
        elif choice < 0.90 and self.gone:
            self.gone.pop().cut(client=False)
        elif choice < 0.97:
            self.pass_time(random.choice([0.1, 0.5, 1.0, 2.0, 5.0]))
        elif choice < 0.973:
            self.restart()
        self.flush()

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.pair.now += seconds
        self.client.handle_timeout(self.pair.now)
        self.pair.server.handle_timeout(self.pair.now)

    def open(self) -> None:
        """Begin the run when the client is open, or in some runs before."""
        if self.random.random() < 0.85:
            self.settle(1)
            self.is_reliable = False

    def settle(self, leaps: int = 40) -> None:
        """Make the network reliable, and deliver everything that is on its way."""
        self.is_reliable = True
        self.all_seen()
        for double in self.doubles:
            double.cut(client=False)
        self.doubles.clear()
        for _ in range(leaps):
            moved = True
            while moved:
                self.flush()
                waiting = self.waiting
                moved = bool(waiting or self.asked or self.questions)
                for exchange in waiting:
                    self.arrive(exchange)
                while self.asked:
                    self.answer_client(next(iter(self.asked)))
                while self.questions:
                    self.answer_server()
                for exchange in self.answering:
                    while exchange in self.answering and self.bring(exchange):
                        moved = True
            self.pass_time(10.0)
