"""Progress tokens: each belongs to one request in flight."""

from typing import Any

import pytest

from sansmcp import LocalProtocolError, ProgressReceived, ProtocolViolation, RequestReceived
from tests.support.wire import asked, call, note, only, ready_client, ready_server, receive, sent

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


def test_a_token_in_use_is_refused_to_the_second_request() -> None:
    """Progress would be taken for that of the other request; the request itself must be served."""
    server = ready_server(REVISION)
    first = asked(server, call(1, "tools/call", {**ECHO, "_meta": {"progressToken": "t"}}))
    broken, received = receive(
        server, call(2, "tools/call", {**ECHO, "_meta": {"progressToken": "t"}})
    )
    assert isinstance(broken, ProtocolViolation)
    assert (broken.rule, broken.tolerated) == ("PROG-002", True)
    assert isinstance(received, RequestReceived)
    assert received.request.progress_token is None
    assert server.send_progress(received.request, 1) is False
    assert server.send_progress(first, 1)

    server.send_result(first, {"content": []})
    third = asked(server, call(3, "tools/call", {**ECHO, "_meta": {"progressToken": "t"}}))
    assert server.send_progress(third, 1)


# --------------------------------------------------------------------------------- our tokens


def token_sent(progress: bool = True, **arguments: Any) -> Any:
    client = ready_client(REVISION)
    handle = client.send_request("tools/call", ECHO, progress=progress, **arguments)
    (message,) = sent(client)
    assert message["params"]["_meta"]["progressToken"] == handle.progress_token
    return handle.progress_token


def test_a_token_is_chosen_or_given() -> None:
    """A token may be given in `meta` or in the params, also as 0 or ""."""
    assert token_sent() == 2
    assert token_sent(meta={"a": 1}) == 2
    assert token_sent(id="mine") == "mine"
    for token in (0, "", "t", 2.0):
        assert token_sent(progress=False, meta={"progressToken": token}) == token


def test_a_token_given_in_the_params_is_used() -> None:
    """A caller that writes `_meta` by hand must get the progress too."""
    client = ready_client(REVISION)
    ours = client.send_request("tools/call", {"name": "echo", "_meta": {"progressToken": "x"}})
    params = {"progressToken": "x", "progress": 1}

    assert only(ProgressReceived, receive(client, note("notifications/progress", params))) == (
        ProgressReceived(request=ours, progress=1)
    )


@pytest.mark.parametrize("token", [True, None, 1.5, [1], {}])
def test_what_is_no_token_is_refused(token: Any) -> None:
    """`True` would be taken for 1."""
    with pytest.raises(LocalProtocolError) as caught:
        token_sent(meta={"progressToken": token})
    assert caught.value.rule == "PROG-001"


def test_tokens_of_ours_are_unique_among_requests_in_flight() -> None:
    """A given token in use must raise, and a chosen one avoid it."""
    client = ready_client(REVISION)
    client.send_request("tools/call", ECHO, meta={"progressToken": 4})
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/call", ECHO, meta={"progressToken": 4})
    assert caught.value.rule == "PROG-002"
    client.send_request("tools/call", ECHO, meta={"progressToken": "4+"})

    ours = client.send_request("tools/call", ECHO, progress=True)
    assert (ours.id, ours.progress_token) == (4, "4++")
