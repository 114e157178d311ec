"""Clients that end while a token is renewed, and functions of the application that never end."""

import signal
import threading
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp.auth import AuthorizationConfig
from sansmcp_io import blocking
from sansmcp_io.oauth import FunctionUserAgent, MemoryTokenStorage, OAuth
from sansmcp_io.trio import AuthorizationError, RequestRefused
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.authorized import ECHO, Realm, consent, realm
from tests.support.http.on_loops import connect_http

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
on_loops = on_each_loop(loops=STANDARD_LOOPS)
AGENT = FunctionUserAgent(consent)


def refresh_token_in(records: Any, served: Realm) -> str:
    token: str = records[served.origin]["tokens"]["refresh_token"]
    return token


def hold_tokens(served: Realm) -> None:
    served.gate.clear()
    served.at_gate.clear()


@on_loops
async def test_leaving_the_block_during_a_refresh_stores_the_new_refresh_token() -> None:
    """The server has replaced the old one, with which nobody is authorized any more."""
    storage = MemoryTokenStorage()
    with realm(seconds=0) as served:
        auth = OAuth(user_agent=AGENT, storage=storage)
        is_open = loops.new_event()
        async with loops.open_nursery() as nursery:

            async def connect() -> None:
                async with connect_http(served.url, info=INFO, auth=auth) as client:
                    hold_tokens(served)
                    is_open.set()
                    await client.request("tools/call", ECHO)

            nursery.start_soon(connect)
            await is_open.wait()
            await loops.in_thread(served.at_gate.wait)
            nursery.cancel()
            served.gate.set()
        assert refresh_token_in(storage.load(served.url), served) in served.refresh_tokens


@on_loops
async def test_leaving_the_block_waits_for_a_storage() -> None:
    """What the storage has begun to write is written."""

    class Slow:
        def __init__(self) -> None:
            self.kept: dict[str, Any] = {}
            self.writes = 0
            self.is_writing, self.may_write = loops.new_event(), loops.new_event()

        async def load(self, server: str) -> dict[str, JSONObject]:
            return dict(self.kept)

        async def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
            if record is not None and record.get("tokens") is not None:
                self.is_writing.set()
                await self.may_write.wait()
            self.kept[issuer] = record

    storage = Slow()
    with realm() as served:
        auth = OAuth(user_agent=AGENT, storage=storage)
        async with loops.open_nursery() as nursery:

            async def connect() -> None:
                async with connect_http(served.url, info=INFO, auth=auth):
                    raise AssertionError("not opened")

            nursery.start_soon(connect)
            await storage.is_writing.wait()
            nursery.cancel()
            storage.may_write.set()
        assert refresh_token_in(storage.kept, served) in served.refresh_tokens


def test_ctrl_c_during_a_refresh_stores_the_new_refresh_token() -> None:
    """It is raised as soon as the credentials are in the storage."""
    storage = MemoryTokenStorage()
    heard = threading.Event()

    def handler(number: int, frame: object) -> None:
        heard.set()
        raise KeyboardInterrupt

    main = threading.get_ident()
    assert main == threading.main_thread().ident

    def interrupt() -> None:
        assert served.at_gate.wait(60)
        signal.pthread_kill(main, signal.SIGINT)
        heard.wait(0.2)  # it comes at once if nothing holds it back, and then it is too early
        served.gate.set()

    former = signal.signal(signal.SIGINT, handler)
    try:
        with realm(seconds=0) as served:
            auth = OAuth(user_agent=AGENT, storage=storage)
            thread = threading.Thread(target=interrupt)
            interrupted = pytest.raises(KeyboardInterrupt)
            with interrupted, blocking.connect_http(served.url, info=INFO, auth=auth) as client:
                _call_during(thread, served, client)
            thread.join(60)
            assert refresh_token_in(storage.load(served.url), served) in served.refresh_tokens
    finally:
        signal.signal(signal.SIGINT, former)


def _call_during(thread: threading.Thread, served: Realm, client: blocking.Client) -> None:
    hold_tokens(served)
    thread.start()
    client.request("tools/call", ECHO)


class Stuck:
    """A storage one of whose methods does not return when it is called first."""

    def __init__(self, method: str) -> None:
        self._method = method

    def load(self, server: str) -> dict[str, JSONObject]:
        self._stay("load")
        return {}

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        self._stay("store")

    def _stay(self, method: str) -> None:
        if method == self._method:
            self._method = ""
            threading.Event().wait(60)


def never(wanted: object) -> None:
    threading.Event().wait(60)


HURRIED = AuthorizationConfig(user_timeout=2.0, ask_for_client=True)


def asking(served: Realm) -> OAuth:
    """A client whose application is asked for a client id, and never answers."""
    served.metadata = {"registration_endpoint": None}
    return OAuth(user_agent=AGENT, on_client=never, config=HURRIED)


@on_loops
async def test_an_application_that_never_answers_has_its_time_and_no_more() -> None:
    """The timeout of the call stands still meanwhile, so nothing else would end it."""
    with realm() as served:
        with pytest.raises(RequestRefused, match=r"no answer within 2 seconds"):
            async with connect_http(served.url, info=INFO, auth=asking(served)):
                raise AssertionError("not opened")
        auth = OAuth(user_agent=AGENT, storage=Stuck("load"), config=HURRIED)
        with pytest.raises(AuthorizationError, match=r"storage .* within 2 s"):
            async with connect_http(served.url, info=INFO, auth=auth):
                raise AssertionError("not opened")


def test_an_application_without_a_loop_that_never_answers_has_its_time_and_no_more() -> None:
    """As on a loop."""
    with realm() as served:
        refused = pytest.raises(RequestRefused, match=r"no answer within 2 seconds")
        with refused, blocking.connect_http(served.url, info=INFO, auth=asking(served)):
            raise AssertionError("not opened")
        auth = OAuth(user_agent=AGENT, storage=Stuck("load"), config=HURRIED)
        slow = pytest.raises(AuthorizationError, match=r"storage .* within 2 s")
        with slow, blocking.connect_http(served.url, info=INFO, auth=auth):
            raise AssertionError("not opened")


@on_loops
async def test_a_client_goes_on_where_nothing_can_be_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever the storage raises, or if it never ends: the token is good for this client."""
    for storage in (_Full(), Stuck("store")):
        with realm() as served:
            config = AuthorizationConfig(request_timeout=4.0)
            auth = OAuth(user_agent=AGENT, storage=storage, config=config)
            async with connect_http(served.url, info=INFO, auth=auth) as client:
                await client.request("tools/call", ECHO)
    assert "credentials are not stored" in caplog.text
    assert "has not answered within 4 s" in caplog.text


def test_a_client_without_a_loop_goes_on_where_nothing_can_be_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As on a loop."""
    for storage in (_Full(), Stuck("store")):
        with realm() as served:
            config = AuthorizationConfig(request_timeout=4.0)
            auth = OAuth(user_agent=AGENT, storage=storage, config=config)
            with blocking.connect_http(served.url, info=INFO, auth=auth) as client:
                client.request("tools/call", ECHO)
    assert "credentials are not stored" in caplog.text
    assert "has not answered within 4 s" in caplog.text


class _Full:
    def load(self, server: str) -> dict[str, JSONObject]:
        return {}

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        raise OSError("the disk is full")
