"""A client and a server driven at random; invariants 5 to 10 hold after every step.

The fixture in `conftest` checks all output against the official schema.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    Event,
    IncomingRequest,
    LocalProtocolError,
    NotificationReceived,
    RequestCancelled,
    RequestId,
    RequestReceived,
    Side,
    State,
    SubscriptionEnded,
)
from sansmcp.testing import InvariantBroken, Pair
from tests.support.machines.choices import PROVISIONS
from tests.support.machines.connection_machine import ConnectionMachine
from tests.support.machines.tracing import without_tracing
from tests.support.machines.wire_machine import methods_of

THOROUGH = settings(
    stateful_step_count=50,
    deadline=None,
    # What is left out traces every line that runs, to explain failures.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
        HealthCheck.filter_too_much,
    ],
)
# Examples by the number of steps in each, for each of four machines: 5,000 in all. Most races need
# few steps, limits and ids that were forgotten need many, and time is what the steps cost.
LENGTHS = {12: 550, 25: 450, 50: 250}
FEW = {12: 25, 25: 25, 50: 10}
QUICK = settings(
    THOROUGH, max_examples=200, database=None, derandomize=True, report_multiple_bugs=False
)
BOTH = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
# Tasks have explorations of their own (test_explorer_tasks.py): the machines here keep none.
TASK_EVENTS = {
    "TaskCancelled",
    "TaskInputReceived",
    "TaskInputRequired",
    "TaskToStore",
    "TaskUpdated",
    "TaskWanted",
    "TasksWanted",
}
EVERY_EVENT = {kind.__name__ for kind in get_args(Event)} - TASK_EVENTS
# Of revisions without a handshake only.
MODERN_EVENTS = {
    "InputRequired",
    "ListenerAdded",
    "ListenerRemoved",
    "SubscriptionAcknowledged",
    "SubscriptionEnded",
}


class Watched(ConnectionMachine):
    """Counts the events, so that a machine that does too little is noticed."""

    seen: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[tuple[RequestId, bool]] = set()
        self.eras: set[bool] = set()

    @classmethod
    def kinds(cls) -> set[str]:
        """The kinds of events that came."""
        return EVERY_EVENT.intersection(cls.seen)

    @classmethod
    def demand(cls, least: dict[str, int]) -> None:
        """Assert that each of these events came more often than this."""
        found = {name: cls.seen[name] for name in least}
        assert {name: n for name, n in found.items() if n <= least[name]} == {}

    def happened(self, side: Side, event: Event) -> None:
        self.seen[type(event).__name__] += 1
        if isinstance(event, RequestReceived) and side is Side.SERVER:
            self.was_asked(event.request)
        elif isinstance(event, RequestCancelled):
            self.seen["modern cancelled"] += event.request.revision in MODERN_REVISIONS
        elif isinstance(event, SubscriptionEnded):
            self.seen[f"subscription {event.reason.name}"] += 1
        elif isinstance(event, NotificationReceived):
            self.seen["changes told"] += event.subscription is not None

    def was_asked(self, request: IncomingRequest) -> None:
        is_modern = request.revision in MODERN_REVISIONS
        self.seen["rounds"] += request.input_responses != {}
        self.seen["ids used again"] += is_modern and (request.id, is_modern) in self.ids
        self.seen["side by side"] += (not is_modern) in self.eras
        self.ids.add((request.id, is_modern))
        self.eras.add(is_modern)

    def sent(self, side: Side, message: bytes, value: Any) -> None:
        self.seen[f"sent by {side.name}"] += 1
        self.seen["batches"] += isinstance(value, list)


class Newest(Watched):
    """The newest revision that opens with a handshake."""

    seen: ClassVar[Counter[str]] = Counter()


class WithBatches(Watched):
    """The one revision with batches."""

    revision = "2025-03-26"
    seen: ClassVar[Counter[str]] = Counter()


class Modern(Watched):
    """The revision without a handshake."""

    revision = MODERN_REVISIONS[-1]
    seen: ClassVar[Counter[str]] = Counter()


class Mixed(Watched):
    """Connections of which at least one speaks both eras."""

    speaks = (
        (BOTH, BOTH),
        (BOTH, LEGACY_REVISIONS),
        (LEGACY_REVISIONS, BOTH),
        (MODERN_REVISIONS, BOTH),
        (BOTH, MODERN_REVISIONS),
        (BOTH, ("2025-03-26", *MODERN_REVISIONS)),
    )
    seen: ClassVar[Counter[str]] = Counter()


def run(machine: type[ConnectionMachine], lengths: Mapping[int, int] = LENGTHS) -> None:
    for steps, examples in lengths.items():
        chosen = settings(THOROUGH, max_examples=examples, stateful_step_count=steps)
        with without_tracing():
            run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("machine", [Newest, WithBatches, Modern, Mixed])
def test_promises_are_kept_in_a_few_examples(machine: type[Watched]) -> None:
    """Most faults show in a few examples; the tests below try many more."""
    run(machine, FEW)

    assert machine.kinds() >= {"RequestReceived", "ResponseReceived", "RequestFailed"}


@pytest.mark.proof
def test_every_promise_is_kept_in_2025_11_25() -> None:
    """Races of responses, cancellations, time and ends break most implementations."""
    run(Newest)

    assert Newest.kinds() == EVERY_EVENT - MODERN_EVENTS
    Newest.demand({"sent by CLIENT": 1_000, "sent by SERVER": 1_000, "rounds": 5})


@pytest.mark.proof
def test_every_promise_is_kept_in_2025_03_26() -> None:
    """A batch must hold back responses until its last request has ended."""
    run(WithBatches)

    # Before 2025-11-25 an error without an id has no valid form, so that nobody here sends one.
    assert WithBatches.kinds() >= EVERY_EVENT - MODERN_EVENTS - {"ErrorWithoutIdReceived"}
    WithBatches.demand({"batches": 100, "rounds": 5})


@pytest.mark.proof
def test_every_promise_is_kept_in_2026_07_28() -> None:
    """Rounds of questions and subscriptions are requests with several states."""
    run(Modern)

    assert Modern.kinds() == EVERY_EVENT - {"PingEnded"}  # there are no pings
    Modern.demand(
        {
            "sent by CLIENT": 1_000,
            "sent by SERVER": 1_000,
            "rounds": 5,
            "ids used again": 0,
            "modern cancelled": 100,
            "changes told": 10,
            "subscription CANCELLED": 20,
            "subscription ENDED": 10,
            "subscription ERROR": 5,
            "subscription LOST": 20,
        }
    )


@pytest.mark.proof
def test_every_promise_is_kept_between_the_eras() -> None:
    """One stream carries both eras, and the client may find out late which one counts."""
    run(Mixed)

    assert Mixed.kinds() >= MODERN_EVENTS | {"PingEnded", "ResponseReceived", "RequestFailed"}
    Mixed.demand(
        {
            "sent by CLIENT": 1_000,
            "sent by SERVER": 1_000,
            "rounds": 5,
            "ids used again": 0,
            "modern cancelled": 100,
            "changes told": 5,
            "side by side": 10,
        }
    )


class OfBothEras(ConnectionMachine):
    """A subclass as a user would write it."""

    speaks = Mixed.speaks


@pytest.mark.parametrize("machine", [ConnectionMachine, OfBothEras])
def test_the_machine_needs_no_counting(machine: type[ConnectionMachine]) -> None:
    """Users get the machine without the counters of these tests."""
    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=15))


def begun(machine: ConnectionMachine, configs: int = 4) -> ConnectionMachine:
    """A machine that a test drives by hand, like the printed steps of a failure."""
    sides = (Side.CLIENT, Side.SERVER)
    machine.begin(
        configs=configs, speaking=0, connected=True, patience=60, prompt=sides, joining=True
    )
    return machine


def settle(machine: ConnectionMachine) -> None:
    """Deliver everything, in both directions."""
    machine.promises_are_kept()
    machine.promises_are_kept()


@pytest.mark.parametrize("how", sorted(set(PROVISIONS)))
def test_questions_are_answered_in_every_way(how: str) -> None:
    """A valid answer must lead to another round, and an invalid one leave the first round open."""
    machine = begun(Modern())
    tools_call = methods_of((machine.revision,), Side.CLIENT).index("tools/call")
    machine.send_request((Side.CLIENT, tools_call), {})
    settle(machine)
    machine.answer((Side.SERVER, 0), "one question")
    settle(machine)
    client, server = machine.checkers
    [call] = client.questioned
    machine.go_on((Side.CLIENT, 0), how)
    settle(machine)

    if how in ("incomplete", "misshapen", "unasked"):
        assert (client.questioned, server.handling) == ([call], [])
    else:
        assert client.questioned == []
        assert server.handling[0].input_responses == {"roots": {"roots": [{"uri": "file:///"}]}}
        assert (server.handling[0].progress_token is None) is (how != "progress")
        assert (client.connection.next_timeout() is None) is (how != "timeout")
    machine.teardown()


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("how", ["end", "eof", "drain", "close", "send_failed"])
def test_a_conversation_ends_in_every_way(side: Side, how: str) -> None:
    """Few random examples reach an end, and each kind of end has its promises."""
    machine = begun(Newest())
    machine.set_going(side, {})
    machine.end((side, how))
    settle(machine)
    machine.teardown()

    assert machine.pair.side(side).state is not State.OPEN or how == "end"


def test_subscriptions_are_taken_by_hand_and_ended() -> None:
    """The last setting acknowledges by hand, the others in the library."""
    machine = begun(Modern(), configs=8)
    machine.set_going(Side.CLIENT, {"notifications": {"toolsListChanged": True}})
    settle(machine)
    client, server = machine.checkers
    [subscription] = client.waiting
    assert (len(server.handling), server.listeners) == (1, [])
    machine.answer((Side.SERVER, 0), "p2")
    settle(machine)
    assert (server.handling, len(server.listeners)) == ([], 1)
    machine.cancel((Side.SERVER, 0))
    settle(machine)

    assert (client.waiting, server.listeners) == ([], [])
    assert not subscription.open
    machine.teardown()


def test_a_request_may_become_a_task() -> None:
    """Progress must go on after the response, and a cancellation be another request."""
    machine = begun(ConnectionMachine())
    tools_call = methods_of((machine.revision,), Side.CLIENT).index("tools/call")
    machine.send_request((Side.CLIENT, tools_call), {"progress": True, "max_timeout": 9.0})
    machine.promises_are_kept()
    machine.answer((Side.SERVER, 0), "task")
    machine.promises_are_kept()
    machine.progress((Side.SERVER, 7), 1)
    machine.promises_are_kept()
    machine.teardown()

    assert len(machine.checkers[Side.CLIENT].tasks) == 1
    assert machine.pair.transcript[-1][1].count(b"notifications/progress") == 1


def test_calls_are_joined_to_batches_where_the_revision_has_them() -> None:
    """The library sends no batches of requests, but other clients do."""
    machine = begun(WithBatches())
    before = len(machine.pair.transcript)
    for _ in range(2):
        machine.set_going(Side.CLIENT, {})
    machine.promises_are_kept()
    machine.promises_are_kept()
    assert machine.checkers[Side.CLIENT].waiting == []
    machine.teardown()

    assert [message[:1] for _, message in machine.pair.transcript[before:]] == [b"{", b"{", b"["]


def test_nothing_is_put_into_an_unfinished_line() -> None:
    """The meaning of a foreign line inside a cut message is undefined."""
    nothing_to_draw: Any = None
    machine = begun(ConnectionMachine())
    machine.pair.to_server.put(b"{")
    machine.inject(Side.SERVER, nothing_to_draw)
    machine.join_in(b"{}")

    assert machine.pair.to_server.drop() == b"{"


class BehindTheBack(ConnectionMachine):
    """Sends a request that the books do not know."""

    @rule(side=st.sampled_from(Side))
    def ask_secretly(self, side: Side) -> None:
        with suppress(LocalProtocolError):
            self.pair.side(side).send_request("ping")


class Forgetful(ConnectionMachine):
    """Loses a message from the transcript's end, and has a repeated id for it."""

    @rule()
    def repeat(self) -> None:
        requests = [entry for entry in self.pair.transcript if b'"id"' in entry[1]]
        self.pair.transcript.extend(requests[:1])


class NeverOver(ConnectionMachine):
    """Takes away the last event of a connection at the very end."""

    def teardown(self) -> None:
        self.pair.client.close()
        self.checkers[Side.CLIENT].take_events()
        self.checkers[Side.CLIENT].closed = False
        super().teardown()


class NoPair(ConnectionMachine):
    """A machine without a pair."""

    def make_pair(self, client_config: Config, server_config: Config) -> Pair:
        raise ZeroDivisionError("no pair")


def test_a_machine_that_cannot_begin_says_why() -> None:
    """A failing teardown must not hide the reason."""
    with pytest.raises(ZeroDivisionError, match="no pair"):
        run_state_machine_as_test(NoPair, settings=QUICK)


@pytest.mark.parametrize("machine", [BehindTheBack, Forgetful, NeverOver])
def test_the_machine_notices_what_is_wrong(machine: type[ConnectionMachine]) -> None:
    """A check that never fails may check nothing."""
    with without_tracing(), pytest.raises(InvariantBroken):
        run_state_machine_as_test(machine, settings=settings(QUICK, phases=[Phase.generate]))
