"""The handshake on either side, in every order of messages that a peer could try."""

from collections.abc import Callable

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    LocalProtocolError,
    Phase,
    ProtocolViolation,
    Ready,
    ServerConnection,
)
from sansmcp.testing import Pair, canonical
from tests.support.wire import (
    CLIENT_INFO,
    INITIALIZED,
    SERVER_INFO,
    asked,
    broken,
    initialize,
    initialized_by,
    new_client,
    new_server,
    of,
    only,
    receive,
    refusals,
    result,
    sent,
)

REVISION = "2025-11-25"
MANUAL = Config(manual={"initialize"})


# ------------------------------------------------------------------- every phase, every trigger


def server_in(phase: Phase) -> ServerConnection:
    server = new_server(config=MANUAL)
    if phase >= Phase.NEGOTIATING:
        request = asked(server, initialize("hello", REVISION))
        if phase >= Phase.AGREED:
            server.send_result(request, initialized_by(REVISION))
        if phase >= Phase.OPERATING:
            receive(server, INITIALIZED)
    sent(server)
    assert server.phase is phase
    return server


def client_in(phase: Phase) -> ClientConnection:
    client = new_client()
    if phase >= Phase.NEGOTIATING:
        client.start()
        sent(client)
    if phase >= Phase.OPERATING:
        receive(client, result(1, initialized_by(REVISION)))
        sent(client)
    assert client.phase is phase
    return client


SERVER_STEPS = {
    (Phase.NEW, "initialize"): (Phase.NEGOTIATING, None),
    (Phase.NEW, "initialized"): (Phase.NEW, "LIFE-004"),
    (Phase.NEGOTIATING, "initialize"): (Phase.NEGOTIATING, "LIFE-001"),
    (Phase.NEGOTIATING, "initialized"): (Phase.NEGOTIATING, "LIFE-004"),
    (Phase.AGREED, "initialize"): (Phase.AGREED, "LIFE-001"),
    (Phase.AGREED, "initialized"): (Phase.OPERATING, None),
    (Phase.OPERATING, "initialize"): (Phase.OPERATING, "LIFE-001"),
    (Phase.OPERATING, "initialized"): (Phase.OPERATING, "LIFE-004"),
}


@pytest.mark.parametrize(("phase", "trigger"), SERVER_STEPS)
def test_every_step_of_a_client_moves_a_server_or_leaves_it_alone(
    phase: Phase, trigger: str
) -> None:
    """A message out of order must be reported, and a request refused, without a change of phase."""
    server = server_in(phase)
    message = initialize("again", REVISION) if trigger == "initialize" else INITIALIZED
    broken = of(ProtocolViolation, receive(server, message))
    expected, rule = SERVER_STEPS[phase, trigger]

    assert server.phase is expected
    assert [event.rule for event in broken] == ([] if rule is None else [rule])
    refused = [("again", -32600)] if rule == "LIFE-001" else []
    assert refusals(sent(server)) == refused


@pytest.mark.parametrize("phase", [Phase.NEW, Phase.NEGOTIATING, Phase.OPERATING])
@pytest.mark.parametrize("trigger", ["initialize", "initialized"])
def test_no_step_of_a_server_moves_a_client(phase: Phase, trigger: str) -> None:
    """Only the client opens the handshake."""
    client = client_in(phase)
    message = initialize("x", REVISION) if trigger == "initialize" else INITIALIZED
    events = receive(client, message)

    assert client.phase is phase
    assert len(of(ProtocolViolation, events)) == 1
    assert len(sent(client)) == (1 if trigger == "initialize" else 0)


@pytest.mark.parametrize("phase", [Phase.NEGOTIATING, Phase.OPERATING])
def test_a_client_starts_once(phase: Phase) -> None:
    """A second `initialize` in a session would break the protocol."""
    client = client_in(phase)
    before = canonical(client)

    with pytest.raises(LocalProtocolError, match="before") as caught:
        client.start()
    assert caught.value.rule == "LIFE-001"
    assert canonical(client) == before


ALLOWED = {  # (side, phase) -> what may be sent there: ping always, the rest when agreed
    ("client", Phase.NEW): {"ping"},
    ("client", Phase.NEGOTIATING): {"ping"},
    ("client", Phase.OPERATING): {"ping", "request", "notification"},
    ("server", Phase.NEW): {"ping"},
    ("server", Phase.NEGOTIATING): {"ping"},
    ("server", Phase.AGREED): {"ping"},
    ("server", Phase.OPERATING): {"ping", "request", "notification"},
}


@pytest.mark.parametrize(("side", "phase"), ALLOWED)
@pytest.mark.parametrize("what", ["ping", "request", "notification"])
def test_what_may_be_sent_in_each_phase(side: str, phase: Phase, what: str) -> None:
    """Before the agreement only pings may be sent."""
    conn = client_in(phase) if side == "client" else server_in(phase)
    verbs: dict[str, Callable[[], object]] = {
        "ping": conn.ping,
        "request": lambda: conn.send_request("tools/list" if side == "client" else "roots/list"),
        "notification": lambda: conn.send_notification(
            f"notifications/{'roots' if side == 'client' else 'tools'}/list_changed"
        ),
    }
    if what in ALLOWED[side, phase]:
        verbs[what]()
        assert len(sent(conn)) == 1
    else:
        with pytest.raises(LocalProtocolError, match=r"LIFE-00\d"):
            verbs[what]()
        assert sent(conn) == []


# ----------------------------------------------------------------------------------- versions


@pytest.mark.parametrize("wish", LEGACY_REVISIONS)
def test_both_sides_agree_on_what_the_client_offers(wish: str) -> None:
    """Both sides must get `Ready` with the info of the peer."""
    pair = Pair(revision=wish, connected=False)
    start = pair.client.start(now=0)
    assert start.open
    pair.deliver()
    ours, theirs = only(Ready, pair.client_events), of(Ready, pair.server_events)[0]

    assert (ours.revision, ours.start, theirs.revision, theirs.start) == (wish, start, wish, None)
    assert (pair.client.revision, pair.server.revision) == (wish, wish)
    assert pair.client.peer.info == SERVER_INFO
    assert pair.server.peer.info == CLIENT_INFO
    assert not start.open


@pytest.mark.parametrize(
    ("revisions", "wish", "answer"),
    [
        (LEGACY_REVISIONS, "2025-03-26", "2025-03-26"),
        (LEGACY_REVISIONS, "1999-01-01", "2025-11-25"),
        (("2024-11-05", "2025-03-26"), "2025-11-25", "2025-03-26"),
        (("2025-03-26", "2024-11-05"), "2025-11-25", "2025-03-26"),
    ],
)
def test_a_server_answers_an_unknown_wish_with_its_newest(
    revisions: tuple[str, ...], wish: str, answer: str
) -> None:
    """A server that refuses an unknown revision leaves the client without a next step."""
    server = new_server(revisions=revisions)
    receive(server, initialize(1, wish))

    assert sent(server)[0]["result"]["protocolVersion"] == answer
    assert server.revision == answer


def test_a_client_offers_its_newest() -> None:
    """The order of the `revisions` setting must not matter."""
    client = new_client(revisions=("2025-06-18", "2025-03-26"))
    client.start()

    assert sent(client)[0]["params"]["protocolVersion"] == "2025-06-18"


def test_instructions_of_a_server_reach_the_client() -> None:
    """The instructions are for the model on the client's side."""
    server = ServerConnection(info=SERVER_INFO, instructions='Use "echo".')
    pair = Pair(server=server)

    assert pair.client.peer.instructions == 'Use "echo".'


@pytest.mark.parametrize("odd", [None, 5, ["text"]])
def test_instructions_of_the_wrong_type_are_none(odd: object) -> None:
    """An optional member of a wrong type must not end a handshake."""
    client = new_client()
    client.start()
    events = receive(client, result(1, {**initialized_by(REVISION), "instructions": odd}))

    assert broken(events) == ["OWN-015" if odd is None else "OWN-014"]
    assert client.peer.instructions is None
    assert client.phase is Phase.OPERATING
