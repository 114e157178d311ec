"""Clients that share a storage: one login, and refresh tokens that are good for one request."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from sansmcp import JSONObject
from sansmcp.auth import AuthorizationConfig, ClientWanted, RegisteredClient
from sansmcp_io import blocking
from sansmcp_io.oauth import (
    FileTokenStorage,
    FunctionUserAgent,
    MemoryTokenStorage,
    OAuth,
    StorageError,
    TokenStorage,
)
from sansmcp_io.oauth._locks import StorageLock
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.authorized import ECHO, Realm, consent, realm
from tests.support.http.on_loops import connect_http

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
on_loops = on_each_loop(loops=STANDARD_LOOPS)
PROGRAM = """
import asyncio, sys
from sansmcp_io import asyncio as on_asyncio, blocking
from sansmcp_io.oauth import FileTokenStorage, FunctionUserAgent, NoCallback, OAuth

def refuse(url):
    raise NoCallback("the login is lost")

kind, path, url = sys.argv[1:]
auth = OAuth(user_agent=FunctionUserAgent(refuse), storage=FileTokenStorage(path))
info, call = {"name": "p", "version": "1"}, ("tools/call", {"name": "echo", "arguments": {}})

def without_loop():
    with blocking.connect_http(url, info=info, auth=auth) as client:
        for _ in range(8):
            client.request(*call)

async def on_loop():
    async with on_asyncio.connect_http(url, info=info, auth=auth) as client:
        for _ in range(8):
            await client.request(*call)

without_loop() if kind == "blocking" else asyncio.run(on_loop())
"""


def auth_of(storage: TokenStorage, **more: Any) -> OAuth:
    return OAuth(user_agent=FunctionUserAgent(consent), storage=storage, **more)


def log_in(served: Realm, storage: TokenStorage, **more: Any) -> None:
    with blocking.connect_http(served.url, info=INFO, auth=auth_of(storage, **more)) as client:
        client.request("tools/call", ECHO)


def test_processes_that_share_a_file_keep_the_login(tmp_path: Path) -> None:
    """The authorization server gives a new refresh token each time.

    It ends the login if one comes twice (RFC 9700, section 4.14.2), which nobody can tell from a
    thief.
    """
    path = tmp_path / "tokens.json"
    with realm(seconds=0) as served:  # each call refreshes
        log_in(served, FileTokenStorage(path))
        commands = [
            [sys.executable, "-c", PROGRAM, kind, str(path), served.url]
            for kind in ("blocking", "asyncio", "blocking")
        ]
        running = [subprocess.Popen(command) for command in commands]
        assert [process.wait(120) for process in running] == [0, 0, 0]
        assert served.reused == []
        assert served.count("/authorize") == 1
        assert served.grants.count("refresh_token") >= 24


STORAGES = pytest.mark.parametrize("kind", ["file", "memory", "async"])


class AsyncStorage:
    """A storage that is async, with a lock of its loop."""

    def __init__(self) -> None:
        self._records: dict[str, JSONObject] = {}
        self._lock: Any = trio.Lock() if loops.is_trio() else asyncio.Lock()
        self.is_waited_for = loops.new_event()

    async def load(self, server: str) -> dict[str, JSONObject]:
        return dict(self._records)

    async def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        assert record is not None
        self._records[issuer] = record

    @asynccontextmanager
    async def locked(self, server: str) -> AsyncGenerator[None, None]:
        if self._lock.locked():
            self.is_waited_for.set()
        await self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


class Watched:
    """A storage that tells when the second client wants the lock."""

    def __init__(self, storage: Any) -> None:
        self._storage, self.wanted = storage, threading.Semaphore(0)
        self.load, self.store = storage.load, storage.store

    @contextmanager
    def locked(self, server: str) -> Generator[None, None, None]:
        self.wanted.release()
        with self._storage.locked(server):
            yield


@STORAGES
@on_loops
async def test_a_client_takes_the_token_that_another_one_has_got(kind: str, tmp_path: Path) -> None:
    """It waits for the refresh of the other one, and makes none."""
    texts: list[str] = []
    storage: Any
    match kind:
        case "file":
            storage = Watched(FileTokenStorage(tmp_path / "tokens.json"))
        case "memory":
            storage = Watched(MemoryTokenStorage())
        case _:
            storage = AsyncStorage()

    async def call(client: Any) -> None:
        result: Any = await client.request("tools/call", ECHO)
        texts.append(result["content"][0]["text"])

    with realm() as served:
        auth = auth_of(storage)
        async with (
            connect_http(served.url, info=INFO, auth=auth) as one,
            connect_http(served.url, info=INFO, auth=auth) as two,
        ):
            served.tokens.clear()  # revoked
            served.gate.clear()
            served.at_gate.clear()
            async with loops.open_nursery() as nursery:
                nursery.start_soon(call, one)
                await loops.in_thread(served.at_gate.wait)
                if isinstance(storage, Watched):
                    while storage.wanted.acquire(blocking=False):
                        pass
                nursery.start_soon(call, two)
                if isinstance(storage, Watched):
                    await loops.in_thread(storage.wanted.acquire)
                else:
                    await storage.is_waited_for.wait()
                served.gate.set()
        assert texts == [next(iter(served.tokens))] * 2
        assert served.grants == ["authorization_code", "refresh_token"]
        assert served.reused == []


class Broken:
    """A storage whose lock does not work."""

    def __init__(self, error: Exception | None, *, on_leaving: bool = False) -> None:
        storage = MemoryTokenStorage()
        self.load, self.store = storage.load, storage.store
        self._error, self._on_leaving = error, on_leaving
        self.released = threading.Event()

    @contextmanager
    def locked(self, server: str) -> Generator[None, None, None]:
        if self._error is None:
            self.released.wait(60)  # another process holds it, and is stopped
        elif not self._on_leaving:
            raise self._error
        yield
        if self._error is not None:
            raise self._error


BROKEN = pytest.mark.parametrize(
    ("storage", "says"),
    [
        (lambda: Broken(StorageError("the disk is gone")), "without a lock: the disk is gone"),
        (lambda: Broken(OSError("odd")), "without a lock"),
        (lambda: Broken(OSError("odd"), on_leaving=True), "was not released"),
        (lambda: Broken(None), "without a lock: another client holds it"),
    ],
)


@BROKEN
@on_loops
async def test_a_lock_that_does_not_work_costs_no_login(
    storage: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two clients seldom meet, and all of them would wait for ever."""
    made = storage()
    config = AuthorizationConfig(request_timeout=1.0)
    with realm() as served:
        auth = auth_of(made, config=config)
        async with connect_http(served.url, info=INFO, auth=auth) as client:
            await client.request("tools/call", ECHO)
    made.released.set()
    assert says in caplog.text


@BROKEN
def test_a_lock_that_does_not_work_costs_no_login_without_a_loop(
    storage: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The same."""
    made = storage()
    with realm() as served:
        log_in(served, made, config=AuthorizationConfig(request_timeout=1.0))
    made.released.set()
    assert says in caplog.text


def test_an_async_lock_is_for_a_loop(caplog: pytest.LogCaptureFixture) -> None:
    """As the other methods of a storage."""

    class Mixed:
        def __init__(self) -> None:
            storage = MemoryTokenStorage()
            self.load, self.store = storage.load, storage.store

        def locked(self, server: str) -> asyncio.Lock:
            return asyncio.Lock()

    with realm() as served:
        log_in(served, Mixed())
    assert "storage.locked is async" in caplog.text


def test_a_lock_that_nobody_waits_for_any_more_is_released(tmp_path: Path) -> None:
    """A client has given up waiting; the lock that it gets later must not stay taken."""
    storage = FileTokenStorage(tmp_path / "tokens.json")
    with realm() as served:
        with storage.locked(served.url):
            log_in(served, storage, config=AuthorizationConfig(request_timeout=0.5))
        taken = threading.Event()

        def take() -> None:
            with storage.locked(served.url):
                taken.set()

        threading.Thread(target=take, daemon=True).start()
        assert taken.wait(60)


@on_loops
async def test_a_client_that_ends_while_it_waits_leaves_no_lock(tmp_path: Path) -> None:
    """It is cancelled, and its thread gets the lock later."""
    storage = FileTokenStorage(tmp_path / "tokens.json")
    watched = Watched(storage)
    with realm() as served:
        with storage.locked(served.url):
            async with loops.open_nursery() as nursery:

                async def connect() -> None:
                    async with connect_http(served.url, info=INFO, auth=auth_of(watched)):
                        raise AssertionError("not opened")

                nursery.start_soon(connect)
                await loops.in_thread(watched.wanted.acquire)
                nursery.cancel()
        await loops.in_thread(partial(log_in, served, storage))
        assert served.count("/token") == 1


def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    """What it has locked is free at once."""
    path = tmp_path / "tokens.json"
    program = (
        "import sys, time; from sansmcp_io.oauth import FileTokenStorage\n"
        "with FileTokenStorage(sys.argv[1]).locked('s'):\n"
        " print('locked', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        process.send_signal(signal.SIGKILL)
        with FileTokenStorage(path).locked("s"):
            pass
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_locked_says_so(tmp_path: Path) -> None:
    """The folder is a file."""
    (tmp_path / "file").write_text("")
    locked = FileTokenStorage(tmp_path / "file" / "tokens.json").locked("s")
    with pytest.raises(StorageError, match="cannot be locked"), locked:
        raise AssertionError("not entered")


@pytest.mark.parametrize("who", ["user", "application"])
def test_nobody_waits_for_a_user_of_another_client(who: str) -> None:
    """A login takes minutes. The tokens of the server are free meanwhile."""
    storage, free = MemoryTokenStorage(), list[bool]()

    def is_free(server: str) -> None:
        lock: Any = storage.locked(server)
        free.append(lock.acquire(timeout=10))
        lock.release()

    with realm() as served:

        def visit(url: str) -> str:
            is_free(served.url)
            return consent(url)

        def on_client(wanted: ClientWanted) -> RegisteredClient:
            is_free(served.url)
            return RegisteredClient(client_id="me")

        agent = FunctionUserAgent(visit if who == "user" else consent)
        if who == "application":
            served.metadata["registration_endpoint"] = None
        config = AuthorizationConfig(ask_for_client=True)
        auth = OAuth(user_agent=agent, storage=storage, on_client=on_client, config=config)
        with blocking.connect_http(served.url, info=INFO, auth=auth) as client:
            client.request("tools/call", ECHO)
    assert free == [True]


# --------------------------------------------------------------------- leaving while it is taken


class CountedLock:
    """A lock of a storage that counts how often it is taken and released."""

    def __init__(self) -> None:
        self.counts = [0, 0]

    def __enter__(self) -> None:
        self.counts[0] += 1

    def __exit__(self, *exc_info: object) -> None:
        self.counts[1] += 1


class Guard:
    """A lock of the standard library, with a place for what another thread does after it."""

    def __init__(self) -> None:
        self._lock = real_lock()
        self.then: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()
        while self.then:
            self.then.pop()()


real_lock = threading.Lock


@pytest.mark.parametrize("when", ["before", "just after", "later"])
def test_lock_is_released_once_whenever_the_client_leaves(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second release would be that of the lock of the next client, whose refresh token is used
    by two at the same time then.
    """
    guard, counted = Guard(), CountedLock()
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Lock", lambda: guard)
        lock = StorageLock(counted)
    if when == "before":
        lock.leave()
    elif when == "just after":
        guard.then.append(lock.leave)
    lock.take()
    lock.leave()
    lock.leave()
    assert counted.counts == [1, 1]
