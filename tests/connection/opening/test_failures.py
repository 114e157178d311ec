"""How the opening of a connection fails."""

import pytest

from sansmcp import (
    ClientConnection,
    CloseCause,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    JSONObject,
    LocalProtocolError,
    PingEnded,
    Ready,
    ServerConnection,
    State,
)
from sansmcp.testing import drain
from tests.support.wire import (
    CLIENT_INFO,
    error,
    initialized_by,
    new_client,
    of,
    only,
    receive,
    result,
    sent,
)

REVISION = "2025-11-25"


def failure(answer: JSONObject, client: ClientConnection | None = None) -> ConnectionFailed:
    """The failure of a start that gets this response; asserts that the connection has ended."""
    client = client or new_client()
    start = client.start(data="mine")
    sent(client)
    events = receive(client, answer)
    (failed,) = of(ConnectionFailed, events)

    assert failed.start is start
    assert start.data == "mine"
    assert not start.open
    assert events[-1] == ConnectionClosed(cause=CloseCause.START_FAILED)
    assert client.state is State.CLOSED
    assert client.data_to_send() == b""
    return failed


@pytest.mark.parametrize("revision", ["2023-01-01", "2026-07-28", ""])
def test_a_revision_that_the_client_does_not_speak_ends_it(revision: str) -> None:
    """The text must have both revisions, so that the user knows which side to update."""
    failed = failure(result(1, initialized_by(revision)))

    assert failed.cause is FailureCause.UNSUPPORTED_REVISION
    assert repr(revision) in failed.text
    assert "2025-11-25" in failed.text


@pytest.mark.parametrize("data", [{"supported": ["2030-01-01"]}, {"other": 1}, None, "text"])
def test_an_error_is_shown_with_what_the_server_supports(data: object) -> None:
    """The text is for users, and the members of the error are for programs."""
    failed = failure(error(1, -32602, "no such version", data))

    assert failed.cause is FailureCause.REFUSED
    assert (failed.code, failed.message, failed.data) == (-32602, "no such version", data)
    assert "no such version" in failed.text
    assert ("2030-01-01" in failed.text) == (isinstance(data, dict) and "supported" in data)


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "serverInfo"])
@pytest.mark.parametrize("check", ["shape", "none"])
def test_an_answer_that_lacks_a_member_ends_it(missing: str, check: str) -> None:
    """An incomplete response must end the start also without the check of shapes."""
    answer = initialized_by(REVISION)
    del answer[missing]
    client = new_client(config=Config(check="none" if check == "none" else "shape"))
    failed = failure(result(1, answer), client)

    lax = check == "none" and missing == "protocolVersion"
    assert failed.cause is (
        FailureCause.UNSUPPORTED_REVISION if lax else FailureCause.INVALID_ANSWER
    )


def test_a_required_capability_that_is_missing_ends_it() -> None:
    """The failure must come at the start, and not with the first call."""
    client = new_client(requires=("tools", "resources.subscribe", "completions"))
    answer = initialized_by(REVISION, {"tools": {}, "resources": {"subscribe": False}})
    failed = failure(result(1, answer), client)

    assert failed.cause is FailureCause.MISSING_CAPABILITY
    assert "resources.subscribe, completions" in failed.text


def test_required_capabilities_that_are_there_are_no_obstacle() -> None:
    """An empty object declares a capability."""
    client = new_client(requires=("tools", "resources.subscribe", "completions"))
    client.start()

    assert isinstance(only(Ready, receive(client, result(1, initialized_by(REVISION)))), Ready)


def test_a_start_ends_with_its_time() -> None:
    """`initialize` cannot be cancelled, so the connection must end without a further message."""
    client = new_client()
    client.start(timeout=5, now=10)
    sent(client)
    client.handle_timeout(15)
    failed, closed = drain(client)

    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.TIMED_OUT
    assert closed == ConnectionClosed(cause=CloseCause.START_FAILED)
    assert sent(client) == []


@pytest.mark.parametrize("ending", ["close", "eof", "failed and eof"])
def test_a_start_ends_with_its_connection(ending: str) -> None:
    """A caller that waits for `Ready` must get the cause of the connection's end."""
    client = new_client()
    client.start()
    if ending == "close":
        client.close()
    else:
        sent(client)
        if ending == "failed and eof":
            client.send_failed()
            assert drain(client) == []
        client.receive_eof()
    failed, closed = drain(client)

    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.LOST
    causes = [CloseCause.CLOSED, CloseCause.EOF, CloseCause.SEND_FAILED]
    assert closed == ConnectionClosed(
        cause=causes[["close", "eof", "failed and eof"].index(ending)]
    )


def test_an_initialize_that_never_left_ends_everything_once() -> None:
    """Neither the start nor the ping behind it was written when sending failed."""
    client = new_client()
    client.start()
    ping = client.ping()
    client.send_failed()
    events = drain(client)

    assert len(of(ConnectionFailed, events)) == 1
    assert [event.ping for event in of(PingEnded, events)] == [ping]
    assert isinstance(events[-1], ConnectionClosed)


def test_an_answer_after_sending_failed_is_too_late() -> None:
    """`notifications/initialized` could no longer be sent."""
    client = new_client()
    client.start()
    sent(client)
    client.send_failed()
    failed, _ = receive(client, result(1, initialized_by(REVISION)))

    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.LOST
    assert "sending has failed" in failed.text


def test_a_closed_client_does_not_start() -> None:
    """A start after `close` must raise."""
    client = new_client()
    client.close()

    with pytest.raises(LocalProtocolError, match="cannot send initialize while CLOSED"):
        client.start()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"info": {"name": "x"}}, "'version'"),
        ({"info": {"name": 1, "version": "1"}}, "'name'"),
        ({"revisions": ()}, "revisions must be some of"),
        ({"revisions": ("2025-11-25", "1999-01-01")}, "1999-01-01"),
        ({"requires": ("tools", "nonsense.here")}, "nonsense.here"),
    ],
)
def test_settings_that_cannot_work_are_refused(arguments: dict[str, object], text: str) -> None:
    """Invalid settings must raise in the constructor, and not fail at the peer."""
    good: dict[str, object] = {"info": CLIENT_INFO}

    with pytest.raises(ValueError, match=text):
        ClientConnection(**good | arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # that is the test


def test_info_without_a_json_form_is_refused() -> None:
    """Such info would fail in the middle of the handshake."""
    with pytest.raises(LocalProtocolError, match="no JSON form"):
        ServerConnection(info={"name": "s", "version": "1", "icon": b"png"})
