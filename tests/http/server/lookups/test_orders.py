"""Answers in any order, late, twice, never, and with clients that leave between them.

Each exchange ends once, with a whole response, and no table keeps an entry.
"""

import contextlib
import copy
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import Config, LocalProtocolError, RequestReceived
from sansmcp.http import (
    CredentialsReceived,
    EventToStore,
    HTTPEvent,
    LookupEnded,
    OldPaths,
    ReplayWanted,
    SendBody,
    SendHead,
    ServerExchange,
    SessionRequested,
    SessionWanted,
    ToolSchemaWanted,
)
from tests.support.http.lookups import Store, asking
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    POST,
    body_of,
    modern_headers,
    modern_tool_call,
    progressing,
)
from tests.support.machines.budget import examples
from tests.support.wire import call, initialize, note

NAMES = ("s1", "s1", "s1", "s2", "elsewhere")


class World:
    """An endpoint that asks for everything, its clients, and an application that acts at random."""

    def __init__(self, dice: random.Random, credentials: str) -> None:
        self.dice = dice
        self.endpoint = asking(
            credentials=credentials,
            config=Config(max_requests=8, max_held_bytes=200_000, max_unsent_bytes=20_000),
            old_paths=OldPaths(stream="/sse", post="/messages"),
        )
        self.store = Store(self.endpoint, portion=2)
        self.questions: list[Any] = []
        self.answered: set[int] = set()
        self.ended: set[ServerExchange] = set()  # of which LookupEnded was told
        self.gone: set[ServerExchange] = set()
        self.exchanges: list[ServerExchange] = []
        self.carried: list[ServerExchange] = []
        self.outputs: dict[ServerExchange, list[Any]] = {}
        self.calls: list[Any] = []
        self.request("POST", dict(POST), body_of(initialize(1, LEGACY)), "/mcp")
        self.exchanges[0].receive_end()
        while questions := self.endpoint.open_questions:
            self.give(questions[0])

    def chance(self, n: int) -> bool:
        """True once in this number of times."""
        return self.dice.randrange(n) == 0

    # ---------------------------------------------------------------------------- clients

    def request(self, method: str, headers: dict[str, str], body: bytes, target: str) -> None:
        exchange = self.endpoint.exchange(method, target, headers, now=1.0)
        self.exchanges.append(exchange)
        self.outputs[exchange] = []
        exchange.receive_data(body)
        if not self.chance(5) or not body:
            exchange.receive_end()

    def arrive(self) -> None:
        """A request arrives that leads to a question."""
        kind = self.dice.choice([0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6])
        named = {
            "mcp-session-id": self.dice.choice(NAMES),
            "mcp-protocol-version": LEGACY,
        }
        if kind == 0:
            message = modern_tool_call()
            self.request("POST", {**POST, **modern_headers(message)}, body_of(message), "/mcp")
        elif kind == 1:
            self.request("POST", dict(POST), body_of(initialize(1, LEGACY)), "/mcp")
        elif kind == 4 and self.chance(10):
            self.request("DELETE", named, b"", "/mcp")
        elif kind in (2, 4):
            message = self.dice.choice(
                [call(5, "ping"), *[progressing(len(self.exchanges))] * 3, note("notifications/x")]
            )
            self.request("POST", {**POST, **named}, body_of(message), "/mcp")
        elif kind == 3:
            last = {} if self.chance(3) else {"last-event-id": self.last()}
            self.request("GET", {**GET, **named, **last}, b"", "/mcp")
        elif kind == 5:
            self.request("GET", dict(GET), b"", "/sse")
        else:
            target = f"/messages?session_id={named['mcp-session-id']}"
            self.request("POST", dict(POST), body_of(call(5, "ping")), target)

    def last(self) -> str:
        """The id of some event that was sent."""
        ids = [
            line.removeprefix(b"id: ").decode()
            for outputs in self.outputs.values()
            for output in outputs
            if isinstance(output, SendBody)
            for line in output.data.split(b"\n")
            if line.startswith(b"id: ")
        ]
        return self.dice.choice(ids) if ids else "none"

    def leave(self) -> None:
        """A client closes its connection."""
        if self.exchanges:
            exchange = self.dice.choice(self.exchanges)
            exchange.receive_disconnect()
            self.gone.add(exchange)

    def end_body(self) -> None:
        """The rest of a body arrives."""
        if self.exchanges:
            self.dice.choice(self.exchanges).receive_end()

    # ------------------------------------------------------------------------ application

    def look(self) -> None:
        """Take all events, and the output of some exchanges."""
        while (event := self.endpoint.next_event()) is not None:
            self.happened(event)
        for exchange in self.endpoint.ready():
            while (output := exchange.next_output()) is not None:
                self.outputs[exchange].append(output)

    def happened(self, event: HTTPEvent) -> None:
        if isinstance(event, EventToStore):
            self.store.keep(event)
            if self.chance(10):
                self.endpoint.store_failed(event, "no")
        elif isinstance(event, LookupEnded):
            self.ended.add(event.exchange)
        elif isinstance(event, RequestReceived):
            self.calls.append(event.request)
        elif isinstance(
            event,
            CredentialsReceived
            | ToolSchemaWanted
            | SessionRequested
            | SessionWanted
            | ReplayWanted,
        ):
            assert event not in self.questions
            self.questions.append(event)

    def serve(self) -> None:
        """Handlers send messages, or answer."""
        for request in self.calls:
            if request.open and self.chance(2):
                request.data = (request.data or 0) + 1
                self.endpoint.send_progress(request, request.data)
            elif request.open:
                self.endpoint.send_result(request, {"content": []})

    def answer(self) -> None:
        """Answer a question, perhaps one that was answered or whose client has gone."""
        if not self.questions:
            return
        open_questions = self.endpoint.open_questions
        few = self.chance(6) or not open_questions
        question: Any = self.dice.choice(self.questions if few else open_questions)
        is_open = any(question is one for one in self.endpoint.open_questions)
        before = id(question) in self.answered
        try:
            done = self.give(question)
        except LocalProtocolError:
            assert not is_open
            return
        assert done == is_open
        assert not (before and done), "each question is answered once"
        if done:
            self.answered.add(id(question))

    def give(self, question: Any) -> bool:
        endpoint = self.endpoint
        if self.chance(8):
            return endpoint.fail_lookup(question, status=503, retry_after=1)
        if isinstance(question, CredentialsReceived):
            return endpoint.admit(question, "user")
        if isinstance(question, ToolSchemaWanted):
            return endpoint.provide_tool_schema(question, None)
        if isinstance(question, SessionRequested):
            return endpoint.open_session(question)
        if isinstance(question, ReplayWanted):
            return self.store.answer(question)
        if question.stream is not None and self.chance(2):
            return endpoint.replay_ended(question, [])
        if self.chance(2):
            return endpoint.refuse_session(question)
        if endpoint.carry(question) is None:
            return False
        self.carried.append(question.exchange)
        return True

    def relay(self) -> None:
        """A part of the response of another process arrives."""
        if not self.carried:
            return
        exchange = self.dice.choice(self.carried)
        is_open = exchange in self.endpoint.carried
        step = self.dice.randint(0, 4)
        try:
            if step == 0:
                length = self.dice.choice([{}, {"content-length": "3"}])
                assert exchange.relay_head(200, length) == is_open
            elif step < 3:
                data = b":" * self.dice.choice([0, 1, 15_000])
                assert exchange.relay_body(data) <= is_open
            elif step == 3:
                assert exchange.relay_end() <= is_open
            else:
                assert exchange.relay_failed() == is_open
        except LocalProtocolError:
            assert step < 4  # the verbs were in no order

    def refuse(self) -> None:
        """The transport, or the application, refuses a request."""
        if self.exchanges:
            self.dice.choice(self.exchanges).refuse(403, "no")

    def copy(self) -> None:
        """All state is plain data: a copy can be closed as well."""
        while any(one not in self.questions for one in self.endpoint.open_questions):
            self.look()
        endpoint, questions = copy.deepcopy((self.endpoint, self.questions))
        open_questions: Sequence[Any] = endpoint.open_questions
        assert len(open_questions) == len(self.endpoint.open_questions)
        assert all(any(one is other for other in questions) for one in open_questions)
        endpoint.close()
        assert (endpoint.open_questions, endpoint.carried) == ((), ())

    # --------------------------------------------------------------------------- the end

    def finish(self) -> None:
        """Close the endpoint, and check the output of each exchange."""
        self.endpoint.close()
        self.look()
        self.look()
        for exchange in self.exchanges:
            if exchange in self.gone:
                assert exchange.next_output() is None
                continue
            exchange.receive_end()
            while (output := exchange.next_output()) is not None:
                self.outputs[exchange].append(output)
            head, *rest = self.outputs[exchange]
            assert isinstance(head, SendHead)
            *body, _end = rest
            assert all(isinstance(output, SendBody) for output in body)
            length = dict(head.headers).get(b"content-length")
            assert length is None or int(length) == sum(len(output.data) for output in body)
            assert exchange.ended
        endpoint = self.endpoint
        assert (endpoint.open_questions, endpoint.carried, endpoint.sessions) == ((), (), ())
        assert (endpoint.held_bytes, endpoint.next_timeout()) == (0, None)
        for question in self.questions:
            if id(question) in self.answered:
                continue
            assert question.exchange in self.ended | self.gone or question.exchange.ended
            with contextlib.suppress(LocalProtocolError):  # it was, before a later one was asked
                assert not endpoint.fail_lookup(question)


@pytest.mark.unjudged("responses of the other process are made up")
@given(
    seed=st.integers(0, 2**32),
    n_steps=st.integers(0, 300),
    credentials=st.sampled_from(["given", "ask"]),
)
@examples(60, 2000)
def test_every_exchange_ends_once_whatever_the_application_answers(
    seed: int, n_steps: int, credentials: str
) -> None:
    """A lost question would be a request that hangs, and a double answer a broken response."""
    dice = random.Random(seed)
    world = World(dice, credentials)
    steps = [
        *[world.arrive, world.look, world.answer, world.serve] * 4,
        *[world.relay, world.end_body] * 2,
        *[world.leave, world.refuse, world.copy],
    ]
    for _ in range(n_steps):
        dice.choice(steps)()
    world.finish()
