"""The era of a server, as each kind of response to the probe tells it.

Rules: VER-008 to VER-016, COMPAT-001 to COMPAT-003, DISC-006.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    Config,
    ConnectionFailed,
    FailureCause,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    Phase,
    Ready,
)
from sansmcp.testing import drain
from tests.support.modern import BOTH, EVERYTHING, MODERN, discovered, modern_client
from tests.support.wire import SERVER_INFO, error, new_client, of, receive, result, sent, wire

LEGACY = LEGACY_REVISIONS[-1]


def starting(
    revisions: Iterable[str] = BOTH, *, config: Config | None = None, **options: Any
) -> tuple[ClientConnection, JSONObject]:
    """A client, and the first message that it has sent."""
    client = new_client(capabilities=EVERYTHING, revisions=revisions, config=config)
    client.start(**options)
    (message,) = sent(client)
    return client, message


def handshake(revision: str = LEGACY) -> JSONObject:
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": SERVER_INFO}


def failure(client: ClientConnection, *messages: object) -> ConnectionFailed:
    (failed,) = of(ConnectionFailed, receive(client, *messages))
    return failed


def refused(code: int, **data: object) -> JSONObject:
    message = error(1, code, "no")
    if data:
        message["error"]["data"] = data
    return message


@pytest.mark.parametrize(
    ("revisions", "hint", "method"),
    [
        (BOTH, None, "server/discover"),
        (BOTH, MODERN, "server/discover"),
        (BOTH, "2025-06-18", "initialize"),
        (MODERN_REVISIONS, None, "server/discover"),
        (MODERN_REVISIONS, LEGACY, "server/discover"),
        (LEGACY_REVISIONS, None, "initialize"),
        (LEGACY_REVISIONS, MODERN, "initialize"),
    ],
)
def test_first_message(revisions: Iterable[str], hint: str | None, method: str) -> None:
    """No modern method except the probe may be sent to a server of unknown era."""
    _, message = starting(revisions, hint=hint)
    assert message["method"] == method
    if method == "initialize":
        assert message["params"]["protocolVersion"] == LEGACY


def test_answer_to_the_probe_opens_the_conversation() -> None:
    """After the response both sides know the capabilities of the other."""
    client, probe = starting(meta={"traceparent": "00-1-2-01"})
    assert probe["params"]["_meta"]["traceparent"] == "00-1-2-01"
    assert client.phase is Phase.PROBING
    with pytest.raises(LocalProtocolError, match="before the response to server/discover"):
        client.send_request("tools/list")
    versions = [MODERN, "2099-01-01", LEGACY]
    answer = discovered(versions=versions, instructions="be brief")
    (ready,) = of(Ready, receive(client, result(1, answer)))
    assert ready.revision == client.revision == MODERN
    assert client.peer.supported_versions == tuple(versions)
    assert client.peer.info == SERVER_INFO
    assert client.peer.instructions == "be brief"
    assert "tools" in client.peer.capabilities
    assert sent(client) == []


@pytest.mark.parametrize("member", ["supportedVersions", "capabilities"])
@pytest.mark.parametrize("check", ["shape", "none"])
def test_answer_without_a_required_member_is_none(member: str, check: Any) -> None:
    """An incomplete response must be refused also without the check of shapes."""
    client = new_client(revisions=MODERN_REVISIONS, config=Config(check=check))
    client.start()
    answer = discovered()
    del answer[member]
    (failed,) = of(ConnectionFailed, receive(client, result(1, answer)))
    assert failed.cause is FailureCause.INVALID_ANSWER


def test_answer_without_the_optional_members_is_enough() -> None:
    """Server info and instructions are optional."""
    client, _ = starting()
    bare: JSONObject = {
        "supportedVersions": [5, MODERN],
        "capabilities": {},
        "instructions": 5,
        "_meta": 5,
    }
    (ready,) = of(Ready, receive(client, result(1, bare)))
    assert (ready.peer.info, ready.peer.instructions) == (None, None)
    assert ready.peer.supported_versions == (MODERN,)


@pytest.mark.parametrize(
    "answer",
    [
        refused(-32601),
        refused(-32600),
        refused(-32000),
        refused(-32001),
        refused(-32004, supported=[MODERN]),
        refused(1),
        result(1, {}),
        result(1, {"supportedVersions": "all", "capabilities": {}}),
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "what?"}},
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}},
        result(1, discovered(versions=["2025-03-26", "2025-06-18", "1999-01-01"])),
        refused(-32022, supported=["2024-11-05", "2025-06-18"], requested=MODERN),
    ],
)
def test_anything_but_a_modern_answer_leads_to_the_handshake(answer: JSONObject) -> None:
    """No single error code tells that a server is legacy."""
    client, _ = starting()
    receive(client, answer)
    (message,) = sent(client)
    assert message["method"] == "initialize"
    named = "supportedVersions" in str(answer) and "2025-06-18" in str(answer)
    named = named or "2024-11-05" in str(answer)
    assert message["params"]["protocolVersion"] == ("2025-06-18" if named else LEGACY)
    (ready,) = of(Ready, receive(client, result(message["id"], handshake("2025-06-18"))))
    assert ready.revision == client.revision == "2025-06-18"
    assert client.phase is Phase.OPERATING
    assert [message["method"] for message in sent(client)] == ["notifications/initialized"]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (refused(-32020), FailureCause.REFUSED),
        (refused(-32021, requiredCapabilities={}), FailureCause.REFUSED),
        (refused(-32022), FailureCause.UNSUPPORTED_REVISION),
        (refused(-32022, supported=5), FailureCause.UNSUPPORTED_REVISION),
        (refused(-32022, supported=["2030-01-01"]), FailureCause.UNSUPPORTED_REVISION),
        (refused(-32022, supported=[MODERN], requested=MODERN), FailureCause.UNSUPPORTED_REVISION),
        (result(1, discovered(versions=["2030-01-01"])), FailureCause.UNSUPPORTED_REVISION),
    ],
)
def test_modern_server_is_never_asked_for_a_handshake(
    answer: JSONObject, cause: FailureCause
) -> None:
    """The error of a modern server names the fault, which a handshake could not cure."""
    client, _ = starting()
    failed = failure(client, answer)
    assert failed.cause is cause
    assert sent(client) == []
    if "error" in answer:
        assert failed.code == answer["error"]["code"]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (refused(-32601), FailureCause.REFUSED),
        (result(1, {}), FailureCause.INVALID_ANSWER),
        (result(1, discovered(versions=[LEGACY])), FailureCause.UNSUPPORTED_REVISION),
        (refused(-32022, supported=[LEGACY]), FailureCause.UNSUPPORTED_REVISION),
    ],
)
def test_client_of_one_era_fails_with_the_reason(answer: JSONObject, cause: FailureCause) -> None:
    """The user has to learn that the revision is the cause."""
    client, _ = starting(MODERN_REVISIONS)
    failed = failure(client, answer)
    assert failed.cause is cause
    assert sent(client) == []


def test_unchecked_answers_are_looked_at_all_the_same() -> None:
    """Without a check of shapes, the required members of the response must still be checked."""
    client, _ = starting(MODERN_REVISIONS, config=Config(check="none"))
    failed = failure(client, result(1, {"supportedVersions": 5}))
    assert failed.cause is FailureCause.INVALID_ANSWER


def test_missing_capability_ends_the_start() -> None:
    """The start must fail before the first request does."""
    client = new_client(revisions=BOTH, requires=["prompts"])
    client.start()
    sent(client)
    failed = failure(client, result(1, discovered({"tools": {}})))
    assert failed.cause is FailureCause.MISSING_CAPABILITY


def test_silent_server_gets_a_handshake_after_the_time_of_the_probe() -> None:
    """Some servers do not answer unknown requests; the whole start has its own limit."""
    client, _ = starting(timeout=10, probe_timeout=3, now=0)
    assert client.next_timeout() == 3
    client.handle_timeout(3)
    (message,) = sent(client)  # and no notification, which such a server may not bear
    assert message["method"] == "initialize"
    (ignored,) = of(MessageIgnored, receive(client, result(1, discovered())))
    assert ignored.rule == "CANC-011"
    assert client.phase is Phase.NEGOTIATING
    assert client.next_timeout() == 10
    client.handle_timeout(10)
    (failed,) = of(ConnectionFailed, drain(client))
    assert failed.cause is FailureCause.TIMED_OUT


def test_time_of_the_whole_start_ends_the_probe_too() -> None:
    """After the limit of the start no handshake may follow."""
    client, _ = starting(timeout=3, probe_timeout=5, now=0)
    client.handle_timeout(3)
    (failed,) = of(ConnectionFailed, drain(client))
    assert failed.cause is FailureCause.TIMED_OUT
    assert sent(client) == []


def test_hint_gives_the_probe_all_the_time() -> None:
    """A server that is known to be modern may only be slow."""
    client, _ = starting(timeout=30, probe_timeout=3, hint=MODERN, now=0)
    assert client.next_timeout() == 30


def test_hint_is_a_revision() -> None:
    """A word that is no revision must raise."""
    client = new_client(revisions=BOTH)
    with pytest.raises(LocalProtocolError, match="hint"):
        client.start(hint="modern")


def test_lost_connection_ends_the_start() -> None:
    """The start must have its ending, whichever response it waits for."""
    client, _ = starting()
    client.receive_eof()
    (failed,) = of(ConnectionFailed, drain(client))
    assert failed.cause is FailureCause.LOST


def test_no_handshake_follows_once_sending_has_failed() -> None:
    """A response may still come, but the handshake could not be sent."""
    client, _ = starting()
    client.send_failed()
    failed = failure(client, refused(-32601))
    assert failed.cause is FailureCause.REFUSED


def test_probe_cannot_be_cancelled() -> None:
    """A legacy server may not accept a cancellation of an unknown request."""
    client = new_client(revisions=BOTH)
    start = client.start()
    with pytest.raises(LocalProtocolError, match="CANC-004"):
        client.cancel(start)


def test_there_is_no_ping() -> None:
    """This revision has no ping, for the application or the library."""
    client, _ = starting(MODERN_REVISIONS, config=Config(ping_interval=1), now=0)
    receive(client, result(1, discovered()))
    with pytest.raises(LocalProtocolError, match="has no ping"):
        client.ping()
    client.handle_timeout(50)
    assert client.next_timeout() is None
    assert sent(client) == []


def test_request_of_a_server_is_dropped() -> None:
    """A modern server sends no requests, and a modern client no responses (STATE-006,
    STATE-007)."""
    client = modern_client()
    client.receive_data(wire({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    (violation,) = drain(client)
    assert getattr(violation, "rule", None) == "STATE-006"
    assert sent(client) == []
