"""A client and a server driven in every way there is; invariants 5 to 10 hold after every step.

What either side sends is held against the official schema by the fixture in `conftest`.
"""

from contextlib import suppress
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from sansmcp import Config, Event, LocalProtocolError, Side
from sansmcp.testing import ConnectionMachine, InvariantBroken, Pair
from sansmcp.testing._examples import requests_of
from tests.support.tracing import without_tracing

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
# Examples by the number of steps in each, for each of two machines: 5,000 in all. Most races need
# few steps, limits and ids that were forgotten need many, and time is what the steps cost.
LENGTHS = {20: 900, 35: 900, 50: 700}
QUICK = settings(
    THOROUGH, max_examples=200, database=None, derandomize=True, report_multiple_bugs=False
)
EVERY_EVENT = {kind.__name__ for kind in get_args(Event)}


class Watched(ConnectionMachine):
    """Counts what came about, so that a machine that has stopped doing much is noticed."""

    kinds: ClassVar[set[str]]
    sent_by: ClassVar[dict[Side, int]]

    def happened(self, side: Side, event: Event) -> None:
        self.kinds.add(type(event).__name__)

    def sent(self, side: Side, message: bytes, value: Any) -> None:
        self.sent_by[side] += 1


class Newest(Watched):
    """The newest revision that opens with a handshake."""

    kinds: ClassVar[set[str]] = set()
    sent_by: ClassVar[dict[Side, int]] = dict.fromkeys(Side, 0)


class WithBatches(Watched):
    """The one revision with batches."""

    revision = "2025-03-26"
    batches_of_answers = 0
    kinds: ClassVar[set[str]] = set()
    sent_by: ClassVar[dict[Side, int]] = dict.fromkeys(Side, 0)

    def sent(self, side: Side, message: bytes, value: Any) -> None:
        super().sent(side, message, value)
        WithBatches.batches_of_answers += isinstance(value, list)


def run(machine: type[ConnectionMachine]) -> None:
    for steps, examples in LENGTHS.items():
        chosen = settings(THOROUGH, max_examples=examples, stateful_step_count=steps)
        with without_tracing():
            run_state_machine_as_test(machine, settings=chosen)


def test_every_promise_is_kept_in_2025_11_25() -> None:
    """Races of answers, cancellations, time and ends are where implementations break."""
    run(Newest)

    assert Newest.kinds == EVERY_EVENT
    assert min(Newest.sent_by.values()) > 1_000


def test_every_promise_is_kept_in_2025_03_26() -> None:
    """Batches hold back answers until the last one is there, whatever becomes of the others."""
    run(WithBatches)

    # Before 2025-11-25 an error without an id has no valid form, so that nobody here sends one.
    assert WithBatches.kinds >= EVERY_EVENT - {"ErrorWithoutIdReceived"}
    assert WithBatches.batches_of_answers > 100


def test_the_machine_needs_no_subclass() -> None:
    """It is shipped to be used as it is, too."""
    run_state_machine_as_test(ConnectionMachine, settings=QUICK)


def begun(machine: ConnectionMachine) -> ConnectionMachine:
    """A machine that can be driven by hand, as the steps of a failure that hypothesis shows."""
    sides = (Side.CLIENT, Side.SERVER)
    machine.begin(configs=3, connected=True, patience=60, prompt=sides, joining=True)
    return machine


def test_a_request_may_become_a_task() -> None:
    """Progress goes on behind the answer then, and cancelling it is another request."""
    machine = begun(ConnectionMachine())
    tools_call = sorted(requests_of(machine.revision, Side.CLIENT)).index("tools/call")
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
    """The library sends no batches of requests, others do."""
    machine = begun(WithBatches())
    before = len(machine.pair.transcript)
    for _ in range(2):
        machine.list_or_ping(Side.CLIENT, None)
    machine.promises_are_kept()
    machine.promises_are_kept()
    assert machine.checkers[Side.CLIENT].waiting == []
    machine.teardown()

    assert [message[:1] for _, message in machine.pair.transcript[before:]] == [b"{", b"{", b"["]


def test_nothing_is_put_into_an_unfinished_line() -> None:
    """What a cut message and a foreign one mean together, nobody could say."""
    nothing_to_draw: Any = None
    machine = begun(ConnectionMachine())
    machine.pair.to_server.put(b"{")
    machine.inject(Side.SERVER, nothing_to_draw)

    assert machine.pair.to_server.drop() == b"{"


class BehindTheBack(ConnectionMachine):
    """Asks for something that the books do not know."""

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
    """Has nothing to drive."""

    def make_pair(self, client_config: Config, server_config: Config) -> Pair:
        raise ZeroDivisionError("no pair")


def test_a_machine_that_cannot_begin_says_why() -> None:
    """Tidying up what was never made must not hide the reason."""
    with pytest.raises(ZeroDivisionError, match="no pair"):
        run_state_machine_as_test(NoPair, settings=QUICK)


@pytest.mark.parametrize("machine", [BehindTheBack, Forgetful, NeverOver])
def test_the_machine_notices_what_is_wrong(machine: type[ConnectionMachine]) -> None:
    """Checks that have never failed may be checks of nothing."""
    with pytest.raises(InvariantBroken):
        run_state_machine_as_test(machine, settings=QUICK)
