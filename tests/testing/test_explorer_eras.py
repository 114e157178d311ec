"""Every interleaving of rounds, subscriptions and probes, in 2026-07-28 and before.

Each exploration is complete: `explore` raises if it would have to give up. The numbers of states
and transitions are printed, and a minimum is asserted, since an exploration that does too little
would find no fault.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    Phase,
    PromptsListChanged,
    ResourceUpdated,
    Side,
    State,
    ToolsListChanged,
)
from sansmcp.testing import (
    Exploration,
    Pair,
    Script,
    World,
    acknowledge,
    answer,
    ask,
    cancel,
    end_listener,
    listen,
    progress,
    provide_input,
    publish,
    request,
    require_input,
)
from tests.support.machines.exploration import explore

MODERN = MODERN_REVISIONS[-1]
BOTH = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
TOOL: dict[str, Any] = {"name": "slow"}
RESULT: dict[str, Any] = {"content": []}
ROOTS: dict[str, Any] = {"roots": []}
QUESTION: dict[str, Any] = {"roots": {"method": "roots/list"}}


def stated(
    capsys: pytest.CaptureFixture[str], name: str, found: Exploration, *, at_least: int
) -> Exploration:
    """Print the numbers of a complete exploration; asserts at least this many states."""
    with capsys.disabled():
        print(f"\n{name}: {found}")
    assert found.states >= at_least
    return found


def seen(exploration: Exploration, side: Side) -> set[str]:
    return {kind for owner, kind in exploration.events if owner is side}


# ------------------------------------------------------------------------------------ input rounds


def test_one_round_of_input_in_the_modern_revision(capsys: pytest.CaptureFixture[str]) -> None:
    """Cancellations and timeouts of either round must be able to cross its questions and answers.

    The client cancels either round; either may time out, and either has progress.
    """
    client: list[Script] = [
        [
            request("call", "tools/call", TOOL, progress=True, timeout=10),
            provide_input("call", {"roots": ROOTS}, renewed="again", progress=True, timeout=10),
        ],
        [cancel("call")],
        [cancel("again")],
    ]
    server: list[Script] = [
        [progress(0, 1), require_input(0, QUESTION, state="so far")],
        [progress(1, 1), answer(1, RESULT)],
    ]
    found = explore(Pair(revision=MODERN), client=client, server=server)

    stated(capsys, "one modern round", found, at_least=1_000)
    assert seen(found, Side.CLIENT) == {
        "ProgressReceived",
        "InputRequired",
        "ResponseReceived",
        "RequestFailed",
        "MessageIgnored",
        "ConnectionClosed",
    }
    assert seen(found, Side.SERVER) == {
        "RequestReceived",
        "RequestCancelled",
        "MessageIgnored",
        "ConnectionClosed",
    }
    ids = {text.split(b'"id":')[1][:1] for _, text in found.messages if b'"method":"tools' in text}
    assert ids == {b"2", b"3"}  # each round has its own


def test_one_round_of_input_over_the_bridge(capsys: pytest.CaptureFixture[str]) -> None:
    """The same handler asks a client with a handshake: one request more is in flight each way.

    Either request may time out or be cancelled while the other is under way.
    """
    client: list[Script] = [
        [request("call", "tools/call", TOOL, progress=True, timeout=10)],
        [cancel("call")],
        [answer(0, ROOTS)],
    ]
    server: list[Script] = [
        [progress(0, 1), require_input(0, QUESTION, state="so far", timeout=5)],
        [progress(1, 2), answer(1, RESULT)],
    ]
    found = explore(Pair(), client=client, server=server)

    stated(capsys, "one bridged round", found, at_least=1_100)
    assert seen(found, Side.CLIENT) == {
        "ProgressReceived",
        "RequestReceived",
        "RequestCancelled",
        "ResponseReceived",
        "ErrorReceived",
        "RequestFailed",
        "MessageIgnored",
        "ConnectionClosed",
    }
    assert seen(found, Side.SERVER) == {
        "RequestReceived",
        "RequestAnswered",
        "RequestCancelled",
        "MessageIgnored",
        "ConnectionClosed",
    }


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[-1], MODERN])
def test_a_round_for_the_state_alone(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The automatic retry must keep one handle and one ending, and cancel by the newest id."""
    found = explore(
        Pair(revision=revision),
        client=[[request("call", "tools/call", TOOL, timeout=10), cancel("call")]],
        server=[[require_input(0, {}, state="so far"), answer(1, RESULT)]],
    )

    stated(capsys, f"a state alone in {revision}", found, at_least=120)
    assert seen(found, Side.CLIENT) == {
        "ResponseReceived",
        "RequestFailed",
        "MessageIgnored",
        "ConnectionClosed",
    }
    assert "RequestCancelled" in seen(found, Side.SERVER)


# ----------------------------------------------------------------------------------- subscriptions

FILTER: dict[str, Any] = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
SUBSCRIBER: list[Script] = [[listen("changes", FILTER, timeout=10)], [cancel("changes")]]
PUBLISHER: Script = [
    publish(ToolsListChanged()),
    publish(ResourceUpdated("file:///a")),
    publish(PromptsListChanged()),
]
TOLD = {
    "SubscriptionAcknowledged",
    "NotificationReceived",
    "SubscriptionEnded",
    "MessageIgnored",
    "ConnectionClosed",
}


def test_one_subscription(capsys: pytest.CaptureFixture[str]) -> None:
    """Changes and the ends of client and server may cross, and one of the ends must count."""
    found = explore(Pair(revision=MODERN), client=SUBSCRIBER, server=[PUBLISHER, [end_listener(0)]])

    stated(capsys, "one subscription", found, at_least=1_200)
    assert seen(found, Side.CLIENT) == TOLD
    assert seen(found, Side.SERVER) == {
        "ListenerAdded",
        "ListenerRemoved",
        "MessageIgnored",
        "ConnectionClosed",
    }
    # What nobody has asked for was never sent.
    assert not [text for _, text in found.messages if b"prompts/list_changed" in text]


def test_one_subscription_acknowledged_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """Changes before the acknowledgement must wait for it, and be dropped if it never comes."""
    found = explore(
        Pair(revision=MODERN, server_config=Config(manual={"subscriptions/listen"})),
        client=SUBSCRIBER,
        server=[PUBLISHER, [acknowledge(0, {"toolsListChanged": True}), end_listener(0)]],
    )

    stated(capsys, "one subscription by hand", found, at_least=1_300)
    assert seen(found, Side.CLIENT) == TOLD
    assert seen(found, Side.SERVER) == {
        "RequestReceived",
        "RequestCancelled",
        "ListenerAdded",
        "ListenerRemoved",
        "MessageIgnored",
        "ConnectionClosed",
    }


def test_one_subscription_before_there_were_any(capsys: pytest.CaptureFixture[str]) -> None:
    """After a handshake `publish` must serve clients with an answered `resources/subscribe`."""
    asking = request("on", "resources/subscribe", {"uri": "file:///a"}, timeout=10)
    found = explore(
        Pair(),
        client=[[asking, cancel("on")]],
        server=[[publish(ResourceUpdated("file:///a"))], [answer(0, {})]],
    )

    stated(capsys, "one legacy subscription", found, at_least=200)
    assert "NotificationReceived" in seen(found, Side.CLIENT)


# ------------------------------------------------------------------------------------- era probes


def silent(side: Side, message: bytes) -> bool:
    """A server that never reads."""
    return side is Side.CLIENT


def deaf(side: Side, message: bytes) -> bool:
    """A server that ignores unknown messages."""
    return b"server/discover" in message


SERVERS: dict[str, tuple[Sequence[str], Any, int]] = {
    "silent": (LEGACY_REVISIONS, silent, 20),
    "deaf": (LEGACY_REVISIONS, deaf, 60),
    "legacy": (LEGACY_REVISIONS, None, 150),
    "late": (BOTH, None, 120),
    "modern": (MODERN_REVISIONS, None, 120),
}
"""What each speaks, what it never reads, and the least number of states to find."""


def opened_or_failed(revisions: Sequence[str]) -> Callable[[World], None]:
    """Assert that a finished start has opened a common revision, or failed."""

    def check(world: World) -> None:
        client = world.client.connection
        start: Any = world.client.asked.get("start")
        if start is not None and not start.open and client.state is not State.CLOSED:
            assert client.phase is Phase.OPERATING
            assert client.revision in revisions

    return check


@pytest.mark.parametrize("kind", SERVERS)
def test_one_probe(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The response to the probe may come before or after its deadline, whatever the server is.

    So each server is a late one too. A server of both eras then ends up in the legacy one; a modern
    one refuses the handshake, and is probed again.
    """
    revisions, loses, at_least = SERVERS[kind]
    pair = Pair(client_revisions=BOTH, server_revisions=revisions, connected=False)
    start = ask("start", lambda client: client.start(timeout=8, probe_timeout=3))
    client: list[Script] = [[start, request("call", "tools/call", TOOL)]]
    server: list[Script] = [[answer(0, RESULT)]]
    check = opened_or_failed(revisions)
    found = explore(pair, client=client, server=server, loses=loses, check=check)

    stated(capsys, f"one probe of a {kind} server", found, at_least=at_least)
    happened = seen(found, Side.CLIENT)
    assert {"ConnectionFailed", "ConnectionClosed"} <= happened
    assert ("Ready" in happened) is (kind != "silent")
    assert ("ResponseReceived" in happened) is (kind != "silent")
    assert ("MessageIgnored" in happened) is (loses is None)  # the answer that came too late
    called = [text for _, text in found.messages if b'"tools/call"' in text]
    enveloped = [text for text in called if MODERN.encode() in text]
    assert bool(enveloped) is (kind in ("late", "modern"))
    assert (len(called) > len(enveloped)) is (kind in ("deaf", "legacy", "late"))
