"""The blocking client: behaviour besides what all adapters share (`tests/adapters/everywhere`)."""

import gc
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ConnectionClosed,
    Event,
    JSONObject,
    LocalProtocolError,
)
from sansmcp_io.blocking import (
    Call,
    Client,
    ConnectionLost,
    McpError,
    PeerError,
    RequestTimeout,
    StartFailed,
    connect_stdio,
)
from tests.adapters.everywhere.server import NAMES
from tests.adapters.everywhere.shims import listening, server
from tests.support.adapters.blocking_talk import INFO, SECONDS, InThread, call_tool, talking, text
from tests.support.processes import ROOT, bad, call_bad, descriptors, has_children, is_running

LEGACY = LEGACY_REVISIONS[-1]
ROOTS: JSONObject = {"roots": [{"uri": "file:///home"}]}


def test_neither_a_loop_nor_a_thread_is_hidden() -> None:
    """The blocking client must not start a loop or a thread, nor import what only HTTP needs."""
    unwanted = {"trio", "asyncio", "ssl", "h11", "sansmcp.http"}
    code = f"import sys, sansmcp_io.blocking; print({unwanted} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"

    before = set(threading.enumerate())
    with talking(stderr="capture") as client:
        client.request("tools/list")
        assert set(threading.enumerate()) <= before


def test_nothing_is_left_of_a_client() -> None:
    """A program may start thousands of servers: no zombie and no descriptor may be left."""
    before = descriptors()
    with talking(stderr="capture") as client:
        client.request("tools/list")
    assert not has_children()
    assert descriptors() <= before
    with pytest.raises(ConnectionLost):
        client.request("tools/list")
    with pytest.raises(ConnectionLost):
        client.poll()
    with pytest.raises(ConnectionLost):
        client.notify("notifications/x")
    assert client.peer.revision == MODERN_REVISIONS[-1]  # what was known is still to be had


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_program_with_thousands_of_files_open_has_clients(transport: str) -> None:
    """`select` fails for descriptors above 1023, so it must not be used."""
    code = (
        "import os, resource, sys\n"
        "from sansmcp_io.blocking import connect_http, connect_stdio\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "kept = [os.dup(0) for _ in range(1100)]\n"
        "connect = {'stdio': connect_stdio, 'http': connect_http}[sys.argv[1]]\n"
        "where = sys.argv[2] if sys.argv[1] == 'http' else sys.argv[2:]\n"
        f"with connect(where, info={INFO}) as client:\n"
        "    print(len(client.request('tools/list')['tools']))\n"
    )
    command = server("blocking" if transport == "stdio" else "trio", transport)
    with listening(command) if transport == "http" else nullcontext(command) as where:
        found = where if isinstance(where, list) else [where]
        run = subprocess.run(
            [sys.executable, "-c", code, transport, *found],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
        )
    assert run.stdout == "10\n", run.stderr


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["/no/such/program"], FileNotFoundError),
        (["false"], ConnectionLost),
        ([sys.executable, "-c", "print('{}')"], ConnectionLost),
    ],
)
def test_start_that_fails_leaves_nothing(command: list[str], error: type[Exception]) -> None:
    """A program that does not exist, or that is no server, must leave no process and no
    descriptor."""
    before = descriptors()
    with pytest.raises(error), connect_stdio(command, info=INFO):
        pytest.fail("it must not open")
    assert not has_children()
    assert descriptors() <= before


def test_server_that_lacks_what_is_required_is_refused() -> None:
    """A server without a required capability must be refused, and its process ended."""
    with pytest.raises(StartFailed), talking(requires=["prompts"]):
        pytest.fail("it must not open")
    assert not has_children()


def test_async_handler_is_refused_at_once() -> None:
    """No loop would run the handler, and the server would wait for its response."""

    async def on_request(call: Call) -> JSONObject:
        return {}

    with (
        pytest.raises(TypeError, match="async"),
        connect_stdio(
            ["false"],
            info=INFO,
            on_request=on_request,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        ),
    ):
        pytest.fail("it must not open")


def test_values_that_are_wrong_are_refused_before_anything_is_sent() -> None:
    """A timeout of zero would otherwise leave it open whether the call is made."""
    with talking() as client:
        with pytest.raises(LocalProtocolError):
            client.request("tools/list", timeout=0)
        with pytest.raises(LocalProtocolError):
            client.request("initialize")
        client.request("tools/list", timeout=math.inf)


# ------------------------------------------------------------------------------------------ poll


def test_poll_takes_what_came_and_waits_no_longer_than_it_is_told() -> None:
    """A program with other work polls for messages between its steps, so `poll` must return in
    time.
    """
    told: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        told.append(method)

    with talking(revisions=[LEGACY], on_notification=on_notification) as client:
        assert not client.poll()
        start = time.monotonic()
        assert not client.poll(0.1)
        assert 0.1 <= time.monotonic() - start < 10
        client.request(*call_tool("change"))
        while not told:
            assert client.poll(30)
        assert told == ["notifications/tools/list_changed"]


def test_poll_ends_when_the_server_does() -> None:
    """A program that waits in `poll` would wait for ever."""
    with connect_stdio(bad("mute"), info=INFO, terminate_after=0.1) as client:
        with pytest.raises(ConnectionLost):
            client.request(*call_bad())
        with pytest.raises(ConnectionLost):
            client.poll(30)


def test_poll_answers_what_the_server_asks_outside_of_calls() -> None:
    """A server waits for its response whether or not the client has a call open."""
    asked: list[str] = []

    def on_request(call: Call) -> JSONObject:
        asked.append(call.method)
        return ROOTS

    code = (
        "from sansmcp_io.blocking import serve_stdio\n"
        "def on_ready(server):\n"
        "    root = server.request('roots/list')['roots'][0]['uri']\n"
        "    server.notify('notifications/x', {'root': root, 'ping': server.ping() >= 0})\n"
        "serve_stdio(lambda call: {}, info={'name': 'x', 'version': '1'}, on_ready=on_ready)\n"
    )
    told: list[JSONObject] = []
    with connect_stdio(
        [sys.executable, "-c", code],
        info=INFO,
        revisions=[LEGACY],
        capabilities={"roots": {}},
        on_request=on_request,
        on_notification=lambda method, params: told.append(params),
    ) as client:
        while not told:
            assert client.poll(30)
    assert asked == ["roots/list"]
    assert told == [{"root": "file:///home", "ping": True}]


# -------------------------------------------------------------------------------------- handlers


def test_handlers_may_use_the_client() -> None:
    """A handler of `list_changed` usually lists again at once, so handlers must be able to call."""
    lists: list[Any] = []

    def on_notification(method: str, params: JSONObject) -> None:
        lists.append(client.request("tools/list"))
        raise ValueError("what it raises harms nobody")

    with talking(revisions=[LEGACY], on_notification=on_notification) as client:
        client.request(*call_tool("change"))
        while not lists:
            client.poll(30)
        assert len(lists[0]["tools"]) == 10


def test_notifications_that_come_too_fast_are_dropped_but_the_last_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of two notices that something has changed the newer one counts, so the oldest are dropped."""
    code = (
        "import json, sys\n"
        "from tests.support.programs.bad_servers import requests, answer, write\n"
        "for message in requests():\n"
        "    if message['method'] != 'initialize':\n"
        "        for number in range(3000):\n"
        "            note = {'jsonrpc': '2.0', 'method': 'notifications/x',\n"
        "                    'params': {'n': number}}\n"
        "            write(json.dumps(note).encode() + b'\\n')\n"
        "    write(answer(message))\n"
    )
    told: list[int] = []
    gate = threading.Event()

    def on_notification(method: str, params: JSONObject) -> None:
        gate.wait(30)
        told.append(params["n"])

    with connect_stdio(
        [sys.executable, "-c", code], info=INFO, on_notification=on_notification
    ) as client:
        # One thread is held up in the first notification while the other one reads.
        calls = [InThread(partial(client.request, *call_bad("a"))) for _ in range(2)]
        while not caplog.records:
            time.sleep(0.01)  # a log record wakes nobody
        gate.set()
        for call in calls:
            call.result()
    assert told[-1] == 2999
    assert len(told) < 6000
    assert [record.message for record in caplog.records] == [
        "notifications come faster than they are handled: some are dropped"
    ]


LARGE = r"""
import json, sys
from tests.support.programs.bad_servers import answer, requests, write

for message in requests():
    if message["method"] == "tools/call":
        token = message["params"].get("_meta", {}).get("progressToken")
        for number in range(24):
            text = "\U0001f600" + "x" * 3_700_000
            if token is None:
                method, params = "notifications/x", {"n": number, "x": text}
            else:
                method = "notifications/progress"
                params = {"progressToken": token, "progress": number, "message": text}
            note = {"jsonrpc": "2.0", "method": method, "params": params}
            write(json.dumps(note, ensure_ascii=False).encode() + b"\n")
    write(answer(message, {} if message["method"] == "ping" else None))
"""
"""A server that answers each call after 24 notifications, each of which takes 15 MB."""


@pytest.mark.parametrize("what", ["notifications", "reports of progress"])
def test_what_waits_for_a_handler_is_bounded_in_memory(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand notifications may wait, and each may be as large as a message may be: their memory
    needs a bound.
    """
    told: list[float] = []
    first, gate = threading.Event(), threading.Event()

    def tell(number: float) -> None:
        first.set()
        gate.wait(SECONDS)
        told.append(number)

    def on_notification(method: str, params: JSONObject) -> None:
        tell(params["n"])

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        tell(progress)

    options: dict[str, Any] = {} if what == "notifications" else {"on_progress": on_progress}
    command = [sys.executable, "-c", LARGE]
    with connect_stdio(command, info=INFO, cwd=ROOT, on_notification=on_notification) as client:
        for _ in range(2):
            # One thread is held up in the first of them while the other one reads.
            call = InThread(partial(client.request, *call_bad("a"), **options))
            assert first.wait(SECONDS)
            client.ping()
            gate.set()
            call.result()
            assert told[0] == 0
            assert told[1:] == list(range(24 - len(told) + 1, 24))
            assert len(told) == (18 if what == "notifications" else 19)
            for event in (first, gate):
                event.clear()
            told.clear()
    text = f"{what} come faster than they are handled: some are dropped"
    assert caplog.text.count(text) == (1 if what == "notifications" else 2)


def test_answer_to_a_question_that_comes_too_late_is_not_sent() -> None:
    """`max_timeout` includes the time of the user who is asked."""
    ended: list[bool] = []

    def on_request(call: Call) -> JSONObject:
        assert not call.is_cancelled
        assert (call.method, call.params, call.revision) == ("roots/list", {}, client.peer.revision)
        assert (call.principal, call.context) == (None, "context")
        assert call.capabilities == client.peer.capabilities
        assert not call.progress(1)
        assert "roots/list about" in repr(call)
        try:
            call.sleep(60)
        finally:
            ended.append(call.is_cancelled)
        return ROOTS

    with talking(capabilities={"roots": {}}, on_request=on_request, context="context") as client:
        with pytest.raises(RequestTimeout):
            client.request(*call_tool("require"), max_timeout=1.0)
        assert ended == [True]
        assert text(client, "echo", text="on") == "on"


@pytest.mark.parametrize("answer", [{"roots": 1}, {"roots": {1, 2}}])
def test_answer_to_a_question_that_cannot_be_sent_is_the_fault_of_this_side(
    answer: JSONObject, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer that cannot be encoded is an error of the client: its caller must see it, and the
    server must get a fixed text.
    """

    def on_request(call: Call) -> JSONObject:
        return answer

    with talking(capabilities={"roots": {}}, on_request=on_request) as client:
        with pytest.raises(McpError) as caught:
            client.request(*call_tool("require"))
        assert caught.value.code == -32603
        assert text(client, "echo", text="on") == "on"
    assert "cannot be sent" in caplog.text


def test_handler_that_fails_is_told_to_the_caller_by_a_fixed_text() -> None:
    """The details of a failure belong in the log, and not in an error that an application may
    show."""

    def on_request(call: Call) -> JSONObject:
        raise ValueError("a secret")

    with (
        talking(capabilities={"roots": {}}, on_request=on_request) as client,
        pytest.raises(McpError) as caught,
    ):
        client.request(*call_tool("require"))
    assert (caught.value.code, caught.value.message) == (-32603, "internal error")


def test_trace_that_fails_ends_the_connection_for_all() -> None:
    """A trace that raised may have lost an event, so no thread may go on waiting for that event."""

    class Trace:
        fails = False

        def sent(self, data: bytes) -> None:
            pass

        def received(self, data: bytes | bytearray) -> None:
            if self.fails and b"second" in data:
                raise ZeroDivisionError

        def happened(self, event: Event) -> None:
            pass

    trace = Trace()
    with talking(trace=trace) as client:
        waiting = InThread(partial(text, client, "hang"))
        assert text(client, "echo", text="first") == "first"
        trace.fails = True
        with pytest.raises((ZeroDivisionError, ConnectionLost)):
            text(client, "echo", text="second")
        with pytest.raises((ZeroDivisionError, ConnectionLost)):
            waiting.result()


# ---------------------------------------------------------------------------- listings, changes


def test_listing_that_is_left_early_asks_for_no_more() -> None:
    """A generator that is left early must send no further request, whenever it is collected."""
    with talking() as client:
        for tool in client.items("tools/list"):
            assert isinstance(tool, dict)
            assert tool["name"] == NAMES[0]
            break
        left = client.items("tools/list")
        next(left)
        del left
        gc.collect()
        assert text(client, "echo", text="on") == "on"
        with pytest.raises(PeerError):
            list(client.items("tools/list", {"cursor": "bad"}))


def test_changes_are_waited_for_no_longer_than_is_wanted() -> None:
    """A program with other work needs a time limit for the next change."""
    with talking(revisions=MODERN_REVISIONS) as client:
        with client.listen({"toolsListChanged": True}) as changes:
            with pytest.raises(TimeoutError):
                changes.take(0)
            with pytest.raises(TimeoutError):
                changes.take(0.1)
            text(client, "change")
            change = changes.take(30)
            assert change is not None
            assert change[0] == "notifications/tools/list_changed"
            assert client.poll() is False
        assert changes.take() is None
        assert list(changes) == []


def test_end_of_the_server_ends_the_changes_for_every_thread() -> None:
    """A loop over changes must not wait for ever after its server has ended."""
    with (
        talking(revisions=MODERN_REVISIONS) as client,
        client.listen({"toolsListChanged": True}) as changes,
    ):
        loops = [InThread(lambda: list(changes)) for _ in range(2)]
        with pytest.raises(ConnectionLost):
            text(client, "die")
        for loop in loops:
            with pytest.raises(ConnectionLost):
                loop.result()


# ------------------------------------------------------------------------- processes that are odd


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("has_descriptor", [True, False])
def test_death_of_a_server_is_noticed_although_a_child_of_it_holds_its_pipes(
    restarts: int, has_descriptor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that holds the pipes keeps the output open, so the end of the process has to be
    noticed by itself.

    Not every system has a descriptor that tells of the end of a process.
    """
    if not has_descriptor:
        monkeypatch.delattr(os, "pidfd_open")
    with connect_stdio(bad("orphaning"), info=INFO, restarts=restarts, kill_after=0.1) as client:
        for _ in range(2):
            with pytest.raises(ConnectionLost) as caught:
                client.request(*call_bad(), timeout=math.inf)
            assert caught.value.exit_status == -9
    assert not has_children()


def test_what_a_server_wrote_before_it_died_is_read_to_the_last() -> None:
    """A client that is busy may have more than one read to catch up after the process has ended."""
    heard: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        heard.append(method)
        time.sleep(0.6)  # no sleep would be no busy client

    with connect_stdio(
        bad("hasty"), info=INFO, on_notification=on_notification, kill_after=0.1
    ) as client:
        assert client.request(*call_bad("hi"))["content"][0]["text"] == "hi"
    assert len(heard) == 5


def test_answer_that_has_come_while_a_handler_took_its_time_is_in_time() -> None:
    """A response that waits in the pipe while a handler runs must not count as a timeout of the
    server.
    """
    code = (
        "import json\n"
        "from tests.support.programs.bad_servers import requests, answer, write\n"
        "for message in requests():\n"
        "    text = ''\n"
        "    if message['method'] == 'tools/call':\n"
        "        token = message['params']['_meta']['progressToken']\n"
        "        params = {'progressToken': token, 'progress': 1}\n"
        "        method = 'notifications/progress'\n"
        "        note = {'jsonrpc': '2.0', 'method': method, 'params': params}\n"
        "        write(json.dumps(note).encode() + b'\\n')\n"
        "        text = 'x' * 3_000_000\n"
        "    write(answer(message, {'content': [{'type': 'text', 'text': text}]}))\n"
    )

    def on_progress(*_: object) -> None:
        time.sleep(1)  # no sleep would be no handler that takes its time

    with connect_stdio([sys.executable, "-c", code], info=INFO, cwd=ROOT) as client:
        result = client.request(*call_bad(), timeout=0.5, on_progress=on_progress)
        assert len(result["content"][0]["text"]) == 3_000_000


def test_server_that_talks_all_the_time_does_not_put_a_timeout_off() -> None:
    """Messages that belong to other requests must not restart the timeout of this one."""
    code = (
        "from tests.support.programs.bad_servers import requests, answer, write\n"
        "for message in requests():\n"
        "    while message['method'] == 'tools/call':\n"
        '        write(b\'{"jsonrpc": "2.0", "method": "notifications/x"}\\n\' * 1000)\n'
        "    write(answer(message))\n"
    )
    with (
        connect_stdio(
            [sys.executable, "-c", code], info=INFO, cwd=ROOT, terminate_after=0.1
        ) as client,
        pytest.raises(RequestTimeout),
    ):
        client.request(*call_bad(), timeout=0.5)


def test_server_that_cannot_be_started_again_says_why(tmp_path: Path) -> None:
    """The first start worked, so the error must say why the restart failed."""
    broken = tmp_path / "broken"
    with connect_stdio(bad("fragile", str(broken)), info=INFO, stderr="capture", restarts=3) as c:
        with pytest.raises(ConnectionLost):
            c.request(*call_bad("die"))
        broken.touch()
        with pytest.raises(ConnectionLost, match="could not be started again") as caught:
            c.request(*call_bad())
        assert (caught.value.stderr, caught.value.exit_status) == ("it is broken\n", 3)
        broken.unlink()
        assert c.request(*call_bad())["content"]
    with pytest.raises(ConnectionLost, match="ended"):
        c.request(*call_bad())


def test_end_of_the_block_does_not_wait_for_a_server_that_is_started_again(tmp_path: Path) -> None:
    """The end of the block must not wait for a restart that another thread has begun and that gets
    no response.
    """
    hangs, is_starting = tmp_path / "hangs", threading.Event()

    class Trace:
        def sent(self, data: bytes) -> None:
            if hangs.exists():
                is_starting.set()

        def received(self, data: bytes | bytearray) -> None: ...
        def happened(self, event: Event) -> None: ...

    shell = 'if test -e "$0"; then exec sleep 60; fi; exec "$@"'
    command = ["sh", "-c", shell, str(hangs), *bad("fragile")]
    with connect_stdio(
        command, info=INFO, restarts=1, trace=Trace(), terminate_after=0.1
    ) as client:
        with pytest.raises(ConnectionLost):
            client.request(*call_bad("die"))
        hangs.touch()
        calls = [InThread(partial(client.request, *call_bad())) for _ in range(2)]
        assert is_starting.wait(30)
        start = time.monotonic()
    assert time.monotonic() - start < 20  # not the 30 s that the start may take
    assert not has_children()
    for call in calls:
        with pytest.raises(ConnectionLost):
            call.result()


def test_handler_that_asks_while_the_server_is_started_again_is_told_so() -> None:
    """A handler that is called by the restarting thread would wait for itself."""
    script: JSONObject = {
        "die_at": "custom/die",
        "stderr": ["hello"],
        "answers": {"tools/list": {"tools": []}},
    }
    program = ROOT / "tests" / "support" / "programs" / "scripted_server.py"
    clients: list[Client] = []
    told: list[str] = []

    def on_stderr(line: str) -> None:
        for client in clients:
            try:
                client.ping()
            except ConnectionLost as error:
                told.append(str(error))

    with connect_stdio(
        [sys.executable, program, json.dumps(script)],
        info=INFO,
        on_stderr=on_stderr,
        revisions=[LEGACY],
        restarts=1,
    ) as client:
        clients.append(client)
        with pytest.raises(ConnectionLost):
            client.request("custom/die")
        assert client.request("tools/list") == {"tools": []}
        clients.clear()
    assert told == ["the server is being started again"]


def test_trace_that_fails_at_the_end_leaves_no_process() -> None:
    """The process must be ended even if the trace raises during the shutdown."""

    class Failing:
        def sent(self, data: bytes) -> None: ...
        def received(self, data: bytes | bytearray) -> None: ...
        def happened(self, event: Event) -> None:
            if isinstance(event, ConnectionClosed):
                raise ValueError("at the end")

    before = descriptors()
    with (
        pytest.raises(ValueError, match="at the end"),
        connect_stdio(bad("noisy"), info=INFO, trace=Failing()) as client,
    ):
        client.request(*call_bad("hi"))
    assert not has_children()
    assert descriptors() <= before


def test_handler_of_ctrl_c_that_is_set_within_a_call_stays() -> None:
    """At the end of a call the old SIGINT handler must not replace one that the application has set
    meanwhile.
    """

    def mine(number: int, frame: object) -> None: ...

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        signal.signal(signal.SIGINT, mine)

    former = signal.getsignal(signal.SIGINT)
    try:
        with talking("blocking") as client:
            client.request(*call_tool("count"), on_progress=on_progress)
            assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, former)


def test_server_that_hears_neither_end_nor_signal_is_killed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both grace periods can be set, since some servers have data to write before they exit."""
    with connect_stdio(bad("deaf"), info=INFO, terminate_after=0.1, kill_after=0.2) as client:
        client.request(*call_bad("hi"))
    assert [record.message.split(": ")[1] for record in caplog.records] == ["terminate", "kill"]
    assert not has_children()


def test_end_of_the_block_does_not_wait_for_a_server_that_reads_too_slowly() -> None:
    """Flushing to a slow reader would take half an hour, during which Ctrl-C would have no
    effect."""
    with connect_stdio(
        bad("sipping"), info=INFO, revisions=[LEGACY], terminate_after=0.1
    ) as client:
        with pytest.raises(RequestTimeout):
            client.request(*call_bad("x" * 20_000_000), timeout=0.3)
        start = time.monotonic()
    assert time.monotonic() - start < 30
    assert not has_children()


def test_all_that_a_server_has_started_ends_with_it() -> None:
    """A wrapper script often starts the real server, which would stay as an orphan."""
    lines: list[str] = []
    with connect_stdio(bad("forking"), info=INFO, on_stderr=lines.append, kill_after=0.2) as client:
        client.request(*call_bad("hi"))
        while len(lines) < 2:
            client.poll(0.01)
    pids = [int(line.split()[1]) for line in lines]
    until = time.monotonic() + 30
    while any(is_running(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)  # they are no children of ours, to be waited for
    assert not any(is_running(pid) for pid in pids)


def test_chatter_on_standard_error_never_blocks_a_server() -> None:
    """c109: a client that captures standard error must read it while it waits, and keep only the
    end of it.
    """
    with connect_stdio(bad("chatty"), info=INFO, stderr="capture") as client:
        for _ in range(3):
            assert client.request(*call_bad("hi"))["content"][0]["text"] == "hi"


def test_chatter_that_nobody_handles_in_time_is_dropped_but_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While one thread is held up in the handler of standard error, the others must go on for
    days."""
    code = (
        "import sys\n"
        "from tests.support.programs.bad_servers import requests, answer, write\n"
        "for message in requests():\n"
        "    if message['method'] == 'tools/call':\n"
        "        sys.stderr.write(('x' * 99 + '\\n') * 10_000 + 'end\\n')\n"
        "        sys.stderr.flush()\n"
        "    write(answer(message, {'content': []}))\n"
    )
    told: list[str] = []
    has_begun, gate = threading.Event(), threading.Event()

    def on_stderr(line: str) -> None:
        has_begun.set()
        gate.wait(SECONDS)
        told.append(line)

    with connect_stdio(
        [sys.executable, "-c", code], info=INFO, cwd=ROOT, on_stderr=on_stderr
    ) as client:
        slow = InThread(partial(client.request, *call_bad()))
        assert has_begun.wait(SECONDS)
        for _ in range(5):
            client.request(*call_bad())
        gate.set()
        slow.result()
    assert 10_000 < len(told) < 25_000
    assert told[-1] == "end"
    assert [record.message for record in caplog.records] == [
        "standard error comes faster than it is handled: some is dropped"
    ]


def test_noise_between_and_inside_lines_is_survived() -> None:
    """Text printed to standard output is the commonest failure in the field, and must not end the
    connection.
    """
    with connect_stdio(bad("noisy"), info=INFO) as client:
        for number in range(20):
            said = str(number)
            assert client.request(*call_bad(said))["content"][0]["text"] == said
