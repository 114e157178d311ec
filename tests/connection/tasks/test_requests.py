"""What a request says of tasks before it is answered."""

import pytest

from sansmcp import IncomingRequest, JSONObject, RequestReceived, ServerConnection
from tests.support.modern import EVERYTHING, envelope, modern
from tests.support.tasks import WITH_TASKS, host, legacy
from tests.support.wire import SERVER_INFO, call, of, receive


def received(server: ServerConnection, message: JSONObject) -> IncomingRequest:
    """The request that this message is."""
    (event,) = of(RequestReceived, receive(server, message))
    return event.request


@pytest.mark.parametrize(
    ("method", "params", "capabilities", "accepts"),
    [
        ("tools/call", {"name": "t"}, WITH_TASKS, True),
        ("tools/call", {"name": "t", "task": {}}, EVERYTHING, False),
        ("prompts/get", {"name": "p"}, WITH_TASKS, False),
    ],
)
def test_a_modern_call_accepts_a_task_if_its_client_declares_them(
    method: str, params: JSONObject, capabilities: JSONObject, accepts: bool
) -> None:
    """A client of 2026-07-28 asks for nothing: the server decides."""
    server = host(capabilities={"tools": {}, "prompts": {}}).server
    request = received(server, modern(1, method, params, envelope(capabilities)))
    assert (request.asks_for_task, request.accepts_task) == (False, accepts)
    if accepts:
        assert server.create_task(request, at=0.0) is not None


def test_a_legacy_call_asks_for_its_task() -> None:
    """In 2025-11-25 the client decides."""
    kept = legacy(host())
    wanted = kept.called()
    assert (wanted.asks_for_task, wanted.accepts_task) == (True, True)
    plain = received(kept.server, call(7, "tools/call", {"name": "t"}))
    assert (plain.asks_for_task, plain.accepts_task) == (False, False)


def test_a_server_that_declares_no_tasks_is_asked_for_none() -> None:
    """The member is ignored then."""
    server = ServerConnection(info=SERVER_INFO, capabilities={"tools": {}})
    message = modern(1, "tools/call", {"name": "t", "task": {}}, envelope(EVERYTHING))
    assert not received(server, message).asks_for_task
