"""The explorer: every interleaving of short scripts, with its results and failures."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    Config,
    Event,
    LocalProtocolError,
    Phase,
    ResponseReceived,
    Side,
    State,
)
from sansmcp.testing import (
    Actor,
    Exploration,
    ExplorationFailed,
    Pair,
    Script,
    Step,
    World,
    acknowledge,
    answer,
    ask,
    cancel,
    close,
    fail_sending,
    listen,
    progress,
    provide_input,
    refuse,
    request,
    require_input,
)
from sansmcp.testing import explore as explore_from_outside
from tests.support.machines.checked_actor import CheckedActor
from tests.support.machines.exploration import explore
from tests.support.machines.tracing import without_tracing

TOOL: dict[str, Any] = {"name": "slow"}
RESULT: dict[str, Any] = {"content": []}


def asking(name: str, method: str, params: dict[str, Any] | None = None) -> Script:
    return [request(name, method, params, progress=True, timeout=10), cancel(name)]


def handling(number: int, result: dict[str, Any]) -> Script:
    return [progress(number, 1), progress(number, 2), answer(number, result)]


def seen(exploration: Exploration, side: Side) -> set[str]:
    return {kind for owner, kind in exploration.events if owner is side}


# Everything that can come of one request, seen from whoever asked and from whoever was asked.
ASKED = {"ResponseReceived", "ProgressReceived", "RequestFailed", "MessageIgnored"}
WAS_ASKED = {"RequestReceived", "RequestCancelled", "MessageIgnored"}
ENDED = {"ConnectionClosed"}


@pytest.mark.proof
def test_one_request_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    """Invariants 7, 8 and 10 must hold in every order, which no one could write by hand.

    Each side has one request, a cancellation, two steps of progress and timeouts, and either stream
    may end at any point.
    """
    with without_tracing():
        found = explore(
            Pair(),
            client=[asking("call", "tools/call", TOOL), handling(0, {"roots": []})],
            server=[asking("roots", "roots/list"), handling(0, RESULT)],
        )

    with capsys.disabled():
        print(f"\none request each way: {found}")
    assert found.states > 100_000
    assert seen(found, Side.CLIENT) == seen(found, Side.SERVER) == ASKED | WAS_ASKED | ENDED


@pytest.mark.proof
def test_two_requests_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    """Two requests in flight may be mixed up, which one alone cannot show."""
    with without_tracing():
        found = explore(
            Pair(),
            client=[asking("first", "tools/call", TOOL), asking("second", "tools/call", TOOL)],
            server=[handling(0, RESULT), handling(1, RESULT)],
        )

    with capsys.disabled():
        print(f"\ntwo requests one way: {found}")
    assert found.states > 100_000
    assert seen(found, Side.CLIENT) == ASKED | ENDED
    assert seen(found, Side.SERVER) == WAS_ASKED | ENDED


def test_one_request_one_way() -> None:
    """The orders of one request are few enough for each run of the tests."""
    found = explore(
        Pair(),
        client=[asking("call", "tools/call", TOOL)],
        server=[handling(0, RESULT)],
    )

    assert found.states > 200
    assert seen(found, Side.CLIENT) == ASKED | ENDED
    assert seen(found, Side.SERVER) == WAS_ASKED | ENDED


def test_one_short_request_each_way() -> None:
    """Responses must be able to cross requests and cancellations of the other side."""
    found = explore(
        Pair(),
        client=[[request("call", "tools/call", TOOL), cancel("call")], [answer(0, {"roots": []})]],
        server=[[request("roots", "roots/list"), cancel("roots")], [answer(0, RESULT)]],
        eof=False,
    )

    assert found.states > 200
    both = {"ResponseReceived", "RequestFailed", "MessageIgnored"} | WAS_ASKED
    assert seen(found, Side.CLIENT) == seen(found, Side.SERVER) == both


def test_the_handshake(capsys: pytest.CaptureFixture[str]) -> None:
    """Messages before the handshake is done have rules of their own."""
    client: list[Script] = [
        [
            ask("start", lambda connection: connection.start(timeout=5)),
            *asking("call", "tools/list"),
        ],
        [close()],
    ]
    server: list[Script] = [
        [ask("ping", lambda connection: connection.ping(timeout=5))],
        [answer(0, {"tools": []})],
    ]
    with without_tracing():
        found = explore(Pair(connected=False), client=client, server=server)

    with capsys.disabled():
        print(f"\nhandshake: {found}")
    assert seen(found, Side.CLIENT) >= {"Ready", "ConnectionFailed", "RequestAnswered"}
    assert seen(found, Side.SERVER) >= {"Ready", "PingEnded", "RequestReceived"}


def test_server_that_cannot_send_leaves_no_request_open() -> None:
    """Its client sees the end of the stream, at whatever point that comes."""
    found = explore(
        Pair(), client=[[request("call", "tools/call", TOOL)]], server=[[fail_sending()]]
    )

    assert "RequestFailed" in seen(found, Side.CLIENT)
    assert "ConnectionClosed" in seen(found, Side.SERVER)


def test_closing_and_failing_at_any_point(capsys: pytest.CaptureFixture[str]) -> None:
    """Each request must have its ending also if a side closes or cannot send."""
    with without_tracing():
        found = explore(
            Pair(),
            client=[asking("call", "tools/call", TOOL), [fail_sending()], [close()]],
            server=[[progress(0, 1), refuse(0)], [fail_sending()], [close()]],
        )

    with capsys.disabled():
        print(f"\nclosing and failing: {found}")
    assert seen(found, Side.CLIENT) >= {"ErrorReceived", "RequestFailed", "ConnectionClosed"}
    assert seen(found, Side.SERVER) >= {"RequestReceived", "RequestCancelled", "ConnectionClosed"}


def test_a_listing_with_a_cancellation() -> None:
    """A listing must have one ending, also between two pages."""
    listing = ask("list", lambda connection: connection.send_paginated("tools/list", timeout=10))
    found = explore(
        Pair(),
        client=[[listing, cancel("list")]],
        server=[[answer(0, {"tools": [], "nextCursor": "2"}), answer(1, {"tools": []})]],
    )

    assert seen(found, Side.CLIENT) == {
        "PageReceived",
        "ListingEnded",
        "MessageIgnored",
        "ConnectionClosed",
    }


# --------------------------------------------------------------------------- the explorer itself


def test_numbers_are_those_counted_by_hand() -> None:
    """One notification has few states, so the numbers can be checked by hand."""
    step = Step("tell", lambda actor: actor.connection.send_notification("extension/told"))
    found = explore(Pair(), client=[[step]], eof=False)

    assert (found.states, found.transitions, found.depth) == (3, 2, 2)
    assert str(found) == "3 states, 2 transitions, depth 2"
    assert found.messages == {(Side.CLIENT, b'{"jsonrpc":"2.0","method":"extension/told"}')}
    assert found.events == {(Side.SERVER, "NotificationReceived")}


def test_two_steps_in_either_order_lead_to_one_state() -> None:
    """Equal states must be merged, or the number of paths would explode."""

    def nothing(_actor: Actor) -> None:
        pass

    found = explore(Pair(), client=[[Step("a", nothing)]], server=[[Step("b", nothing)]], eof=False)

    assert (found.states, found.transitions) == (4, 4)


def test_ends_and_deadlines_come_only_where_asked_for() -> None:
    """Without ends and deadlines an exploration is smaller."""
    scripts: list[Script] = [[request("call", "tools/call", TOOL, timeout=5)]]
    neither, ends, deadlines = (
        explore(Pair(), client=scripts, eof=eof, timeouts=timeouts)
        for eof, timeouts in ((False, False), (True, False), (False, True))
    )

    assert seen(neither, Side.CLIENT) == set()
    assert seen(ends, Side.CLIENT) == {"RequestFailed", "ConnectionClosed"}
    assert seen(deadlines, Side.CLIENT) == {"RequestFailed"}


def test_the_pair_is_not_changed() -> None:
    """One pair may be the start of several explorations."""
    pair = Pair()
    first = explore(pair, client=[asking("call", "tools/call", TOOL)], server=[handling(0, RESULT)])
    second = explore(
        pair, client=[asking("call", "tools/call", TOOL)], server=[handling(0, RESULT)]
    )

    assert first == second
    assert len(pair.transcript) == 3
    assert pair.events == ([], [])


def test_it_begins_with_what_is_under_way() -> None:
    """Open requests and bytes in flight must be part of the start."""
    pair = Pair()
    pair.client.send_request("tools/call", TOOL)
    pair.deliver()
    pair.clear_events()
    pair.client.send_request("tools/call", TOOL)
    found = explore(pair, server=[[answer(0, RESULT)]], eof=False)

    assert seen(found, Side.SERVER) == {"RequestReceived"}
    assert seen(found, Side.CLIENT) == {"ResponseReceived"}


def test_too_many_states_end_it() -> None:
    """A script that is too long must end with an error."""
    with pytest.raises(RuntimeError, match="more than 5 states"):
        explore(Pair(), client=[asking("call", "tools/call", TOOL)], max_states=5)


def never(text: str, holds: Callable[[World], bool]) -> Callable[[World], None]:
    def check(world: World) -> None:
        assert not holds(world), text

    return check


def test_a_failed_check_has_the_shortest_trace() -> None:
    """The shortest trace is the easiest to understand."""
    check = never(
        "both are over",
        lambda world: (
            world.client.connection.state is world.server.connection.state is State.CLOSED
        ),
    )
    with pytest.raises(ExplorationFailed) as caught:
        explore(Pair(), client=[asking("call", "tools/call", TOOL)], check=check)

    assert caught.value.trace == ["the stream to the client ends", "the stream to the server ends"]
    assert "both are over" in str(caught.value)


def test_the_trace_names_steps_messages_and_deadlines() -> None:
    """The trace must be complete enough to repeat it by hand."""
    check = never(
        "answered",
        lambda world: (
            not world.client.connection.pending_requests
            and world.client.asked != {}
            and world.server.received != []
            and not world.server.connection.open_requests
            and world.to_client == ()
        ),
    )
    with pytest.raises(ExplorationFailed) as caught:
        explore(
            Pair(),
            client=[[request("call", "tools/call", TOOL, timeout=5)]],
            server=[[answer(0, RESULT)]],
            check=check,
            eof=False,
            timeouts=False,
        )

    assert [re.sub(r"\{.*\}", "...", line) for line in caught.value.trace] == [
        "client: ask call",
        "server receives ...",
        "server: answer #0",
        "client receives ...",
    ]

    def deadline(world: World) -> None:
        assert world.server.received == [] or world.client.connection.pending_requests

    with pytest.raises(ExplorationFailed) as caught:
        explore(Pair(), client=[[request("call", "tools/call", TOOL, timeout=5)]], check=deadline)
    assert len(caught.value.trace) == 3
    assert caught.value.trace[1:] in (
        ["a deadline of the client passes", caught.value.trace[2]],
        [caught.value.trace[1], "a deadline of the client passes"],
        [caught.value.trace[1], "the stream to the client ends"],
    )


def test_a_step_that_raises_is_a_failure() -> None:
    """An exception must be reported with its trace, and not as a crash of the explorer."""

    def broken(_actor: Actor) -> None:
        raise ZeroDivisionError("oops")

    with pytest.raises(ExplorationFailed, match="ZeroDivisionError: oops") as caught:
        explore(Pair(), client=[[Step("break", broken)]], eof=False)
    assert caught.value.trace == ["client: break"]


def test_a_violation_is_a_failure() -> None:
    """Two correct sides must not report breaches."""
    pair = Pair()
    pair.to_client.put(b"noise\n")

    with pytest.raises(ExplorationFailed, match="a peer that keeps to the rules is reported"):
        explore(pair, eof=False)


def test_disagreement_is_a_failure() -> None:
    """A request that one side waits for and the other has forgotten would wait for ever."""
    pair = Pair()
    pair.client.send_request("tools/call", TOOL)
    pair.to_server.drop()

    with pytest.raises(ExplorationFailed, match="are waited for, but") as caught:
        explore(pair, eof=False)
    assert caught.value.trace == []


def test_disagreement_on_a_subscription_is_a_failure() -> None:
    """A client would wait for changes of a subscription that the server has forgotten."""
    pair = Pair(revision=MODERN_REVISIONS[-1])
    pair.client.listen({"toolsListChanged": True})
    pair.deliver_to_server()
    pair.to_client.drop()

    with pytest.raises(ExplorationFailed, match="are acknowledged, but"):
        explore(pair, eof=False)


def test_what_is_lost_never_arrives() -> None:
    """With a peer that ignores messages, the two sides need not agree."""
    found = explore(
        Pair(),
        client=[[request("call", "tools/call", TOOL, timeout=5)]],
        server=[[answer(0, RESULT)]],
        eof=False,
        loses=lambda side, message: side is Side.CLIENT and b"tools/call" in message,
    )

    assert found.events == {(Side.CLIENT, "RequestFailed"), (Side.SERVER, "MessageIgnored")}
    # One state before, one while it waits, and two with its cancellation under way and arrived.
    assert found.states == 4


def test_steps_of_rounds_and_subscriptions_fail_where_the_library_refuses() -> None:
    """A script that silently skips a step would explore less than it claims."""
    modern: dict[str, Any] = {"revision": MODERN_REVISIONS[-1]}
    by_hand = Config(manual={"subscriptions/listen"})
    call: Script = [request("call", "tools/call", TOOL)]
    subscription: Script = [listen("changes", {"toolsListChanged": True})]
    odd: Any = {"toolsListChanged": 1}
    cases: list[tuple[Script, Script, Pair, str]] = [
        (call, [require_input(0, {})], Pair(**modern), "MRTR-004"),
        (
            subscription,
            [acknowledge(0, odd)],
            Pair(**modern, server_config=by_hand),
            "LocalProtocolError",
        ),
        (
            [*call, provide_input("call", {}, renewed="again")],
            [require_input(0, {"roots": {"method": "roots/list"}})],
            Pair(**modern),
            "LocalProtocolError",
        ),
    ]
    for client, server, pair, text in cases:
        with pytest.raises(ExplorationFailed, match=text):
            explore(pair, client=[client], server=[server], eof=False)


def test_asking_waits_for_the_handshake() -> None:
    """A step that is not possible yet must wait, and not fail."""
    start = ask("start", lambda connection: connection.start())
    found = explore(
        Pair(connected=False),
        client=[[start], [request("ping", "ping")]],
        eof=False,
        check=lambda world: check_phase(world.client),
    )

    assert seen(found, Side.CLIENT) == {"Ready", "ResponseReceived"}


def check_phase(actor: Actor) -> None:
    if "ping" in actor.asked:
        assert actor.connection.phase is Phase.OPERATING


def test_a_step_that_must_not_be_refused_is_a_failure_if_it_is() -> None:
    """A script that silently skips a step would explore less than it claims."""
    with pytest.raises(ExplorationFailed, match="OWN-005"):
        explore(
            Pair(client_config=Config(max_requests=1)),
            client=[[request("first", "tools/list")], [request("second", "tools/list")]],
            eof=False,
        )


def test_cancelling_what_was_never_asked_does_nothing() -> None:
    """After the end of a stream the request is not made, and the script must go on."""
    found = explore(Pair(), client=[[cancel("nothing")]], eof=False)
    assert (found.states, found.transitions) == (2, 1)


def test_steps_that_raise_what_they_must_not_are_failures() -> None:
    """Decreasing progress and an invalid result are mistakes in the script."""
    client: list[Script] = [[request("call", "tools/call", TOOL, progress=True)]]
    for script, text in (
        ([progress(0, 2), progress(0, 1)], "PROG-003"),
        ([answer(0, {})], "LocalProtocolError"),
        ([refuse(0, message=1)], "LocalProtocolError"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
    ):
        with pytest.raises(ExplorationFailed, match=text):
            explore(Pair(), client=client, server=[script], eof=False)


def test_a_refused_step_leaves_the_books_as_they_were() -> None:
    """The books would wait for a request that was never sent."""
    actor = CheckedActor(Pair().client, 0)
    with pytest.raises(LocalProtocolError):
        actor.ask(lambda connection: connection.send_request("tools/call", {}))

    assert actor.checker.waiting == []


def test_actors_of_users_take_every_step_and_check_nothing() -> None:
    """Users explore their own scripts; the promises of the library are tested elsewhere."""
    question = {"roots": {"method": "roots/list"}}
    client: list[Script] = [
        [
            request("call", "tools/call", TOOL),
            provide_input("call", {"roots": {"roots": []}}, renewed="again"),
            close(),
            request("late", "tools/call", TOOL),
        ]
    ]
    server: list[Script] = [[require_input(0, question), answer(1, RESULT)]]
    found = explore_from_outside(Pair(revision=MODERN_REVISIONS[-1]), client=client, server=server)

    assert seen(found, Side.CLIENT) >= {"InputRequired", "ResponseReceived", "ConnectionClosed"}
    assert seen(found, Side.SERVER) >= {"RequestReceived", "ConnectionClosed"}


def test_an_actor_may_check_more() -> None:
    """A rule about events cannot be checked by looking at states."""

    class Strict(Actor):
        def note(self, event: Event) -> None:
            super().note(event)
            assert not isinstance(event, ResponseReceived), "a response came"

    with pytest.raises(ExplorationFailed, match="a response came"):
        explore_from_outside(
            Pair(),
            client=[[request("call", "tools/call", TOOL)]],
            server=[[answer(0, RESULT)]],
            actor=Strict,
        )
