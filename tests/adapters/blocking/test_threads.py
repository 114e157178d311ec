"""Threads that share a blocking client get their own answers, and none waits for another."""

import threading
from functools import partial

import pytest

from sansmcp import LEGACY_REVISIONS, Event, JSONObject
from sansmcp_io.blocking import Call, ConnectionLost, RequestTimeout, connect_stdio
from tests.adapters.everywhere.shims import called
from tests.support.adapters.blocking_talk import INFO, InThread, call_tool, talking, text
from tests.support.processes import bad, call_bad

LEGACY = LEGACY_REVISIONS[-1]
THREADS = 8
CALLS = 200
SECONDS = 30


@pytest.mark.parametrize("adapter", ["blocking", "trio"])
def test_each_thread_gets_its_own_answers(adapter: str) -> None:
    """A response that goes to the wrong thread, or one lost wake-up in thousands of calls, would
    hang a caller.
    """

    def ask(thread: int) -> int:
        for number in range(CALLS):
            said = f"{thread} {number}"
            assert text(client, "echo", text=said) == said
        return CALLS

    with talking(adapter) as client:
        threads = [InThread(partial(ask, thread)) for thread in range(THREADS)]
        assert [thread.result() for thread in threads] == [CALLS] * THREADS


def test_handler_of_progress_holds_up_its_own_thread_only() -> None:
    """While one thread is held up in `on_progress`, another thread must read the responses."""
    others_are_done = threading.Event()
    has_come = threading.Event()

    def on_progress(*_: object) -> None:
        has_come.set()
        assert others_are_done.wait(30)

    with talking() as client:
        slow = InThread(
            partial(client.request, *call_tool("count"), on_progress=on_progress, timeout=30)
        )
        assert has_come.wait(30)
        for number in range(20):
            assert text(client, "echo", text=str(number)) == str(number)
        others_are_done.set()
        assert slow.result()["content"][0]["text"] == "3"


def test_handler_of_requests_holds_up_one_thread_only() -> None:
    """A user may take an hour to answer a question, which must hold up one thread only."""
    others_are_done = threading.Event()
    is_asked = threading.Event()

    def on_request(call: Call) -> JSONObject:
        is_asked.set()
        assert others_are_done.wait(30)
        return {"roots": [{"uri": "file:///late"}]}

    # On trio, a server can wait for one answer and serve others meanwhile.
    with talking(
        "trio", revisions=[LEGACY], capabilities={"roots": {}}, on_request=on_request
    ) as client:
        slow = InThread(partial(text, client, "ask"))
        assert is_asked.wait(30)
        for number in range(20):
            assert text(client, "echo", text=str(number)) == str(number)
        others_are_done.set()
        assert slow.result() == "file:///late"


def test_poll_ends_when_another_thread_has_handled_what_came() -> None:
    """A thread in `poll` must not sleep on because another thread has handled the message."""
    handling, go = threading.Event(), threading.Event()
    readers: list[int] = []
    polled: list[bool] = []

    def on_notification(method: str, params: JSONObject) -> None:
        handling.set()
        go.wait(SECONDS)

    class Readers:
        def sent(self, data: bytes) -> None: ...
        def received(self, data: bytes | bytearray) -> None:
            readers.append(threading.get_ident())

        def happened(self, event: Event) -> None: ...

    with talking(revisions=[LEGACY], on_notification=on_notification, trace=Readers()) as client:
        handler = threading.Thread(target=lambda: text(client, "change"))
        handler.start()
        assert handling.wait(SECONDS)
        poller = threading.Thread(target=lambda: polled.append(client.poll(10 * SECONDS)))
        poller.start()
        client.ping()
        while readers[-1] != poller.ident:
            client.ping()  # until its answer is read by that one
        go.set()
        for thread in (handler, poller):
            thread.join(SECONDS)
            assert not thread.is_alive()
    assert polled == [True]


def test_timeout_of_a_thread_that_does_not_read_is_kept() -> None:
    """A thread that waits while another one reads must still time out in time."""
    with talking("trio") as client:
        patient = InThread(partial(client.request, *call_tool("hang"), timeout=30))
        while not text(client, "echo", text="x"):
            pass
        for _ in range(3):
            with pytest.raises(RequestTimeout):
                client.request(*call_tool("hang"), timeout=0.1)
        with pytest.raises(ConnectionLost):
            client.request(*call_tool("die"))
        with pytest.raises(ConnectionLost):
            patient.result()


def test_threads_that_wait_when_the_block_is_left_are_told() -> None:
    """The end of the block must wake all threads, and no thread may use its descriptors
    afterwards."""
    with talking() as client:
        has_begun = threading.Event()
        threads = [
            InThread(
                partial(
                    client.request, *call_tool("hang"), on_progress=partial(called, has_begun.set)
                )
            )
            for _ in range(3)
        ]
        assert has_begun.wait(30)
    for thread in threads:
        with pytest.raises(ConnectionLost):
            thread.result()


def test_thread_that_finds_no_room_waits_for_it_in_its_turn() -> None:
    """Unsent output must not grow without bound, and the wait for room counts towards the
    timeout."""
    with connect_stdio(bad("unreading"), info=INFO, terminate_after=0.1) as client:

        def ask(_: int) -> None:
            with pytest.raises(RequestTimeout):
                client.request(*call_bad("x" * 400_000), timeout=0.5)

        for thread in [InThread(partial(ask, number)) for number in range(20)]:
            thread.result()


def test_threads_that_find_the_server_gone_share_one_new_process() -> None:
    """One thread must restart the server, and the others use it."""
    with connect_stdio(bad("fragile"), info=INFO, restarts=1) as client:
        with pytest.raises(ConnectionLost):
            client.request(*call_bad("die"))
        threads = [InThread(partial(client.request, *call_bad("pid"))) for _ in range(5)]
        pids = {thread.result()["content"][0]["text"] for thread in threads}
    assert len(pids) == 1
