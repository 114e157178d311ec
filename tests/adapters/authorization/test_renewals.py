"""Tokens that are renewed in advance, while other things happen or fail."""

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
import pytest

from sansmcp import JSONObject
from sansmcp.http import AuthorizationRequired
from sansmcp_io import blocking
from sansmcp_io.oauth import FunctionUserAgent, OAuth, TokenStorage
from sansmcp_io.oauth import MemoryTokenStorage as Memory
from sansmcp_io.trio import Client, RequestRefused
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.authorized import ECHO, AuthorizedHandler, Realm, consent, realm
from tests.support.http.on_loops import connect_http

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
on_loops = on_each_loop(loops=STANDARD_LOOPS)


class Watch:
    """A trace that tells when the server has refused a token."""

    def __init__(self) -> None:
        self.refused = threading.Event()

    def sent(self, connection: str, data: bytes) -> None:
        pass

    def received(self, connection: str, data: bytes) -> None:
        pass

    def happened(self, event: object) -> None:
        if isinstance(event, AuthorizationRequired):
            self.refused.set()


@attrs.define
class SlowRefusal:
    """The MCP server takes one request, and refuses its token much later."""

    realm: Realm
    has_request: threading.Event = attrs.field(factory=threading.Event)
    may_answer: threading.Event = attrs.field(factory=threading.Event)

    def __attrs_post_init__(self) -> None:
        self.realm.replaced["/mcp"] = self._serve

    def _serve(self, handler: AuthorizedHandler) -> None:
        del self.realm.replaced["/mcp"]
        self.has_request.set()
        self.may_answer.wait(60)
        handler.give({}, 401, www_authenticate="Bearer")


def auth_of(storage: TokenStorage | None = None) -> OAuth:
    return OAuth(user_agent=FunctionUserAgent(consent), storage=storage or Memory())


@asynccontextmanager
async def connecting(served: Realm, auth: OAuth, **more: Any) -> AsyncGenerator[Client, None]:
    async with connect_http(served.url, info=INFO, auth=auth, **more) as client:
        yield client


@contextmanager
def connecting_without_loop(
    served: Realm, auth: OAuth, **more: Any
) -> Generator[blocking.Client, None, None]:
    with blocking.connect_http(served.url, info=INFO, auth=auth, **more) as client:
        yield client


def text_of(result: Any) -> str:
    text: str = result["content"][0]["text"]
    return text


async def echo(client: Client) -> str:
    """Call the tool; the token that the server has got."""
    return text_of(await client.request("tools/call", ECHO))


def _hold_tokens(served: Realm) -> None:
    served.gate.clear()
    served.at_gate.clear()


@on_loops
async def test_a_refusal_during_a_refresh_waits_for_its_end() -> None:
    """A second attempt would take the events of the first one, and the session would end."""
    with realm(seconds=0) as served:
        watch, texts = Watch(), list[str]()
        async with connecting(served, auth_of(), trace=watch) as client:
            watch.refused.clear()
            slow = SlowRefusal(served)
            async with loops.open_nursery() as nursery:

                async def call() -> None:
                    texts.append(await echo(client))

                nursery.start_soon(call)
                await loops.in_thread(slow.has_request.wait)
                _hold_tokens(served)
                nursery.start_soon(call)
                await loops.in_thread(served.at_gate.wait)
                slow.may_answer.set()
                await loops.in_thread(watch.refused.wait)
                served.gate.set()
            assert await echo(client) in served.tokens
        assert len(set(texts)) == 1  # both with the token that the refresh has given
        assert served.count("/authorize") == 1
        assert served.count("/token") == 4  # for the user, and one for each call


@on_loops
async def test_a_refusal_during_a_refresh_that_fails_ends_the_call() -> None:
    """The refused request must get an ending, though no refresh has sent it again."""
    with realm(seconds=0) as served:
        watch, texts = Watch(), list[str]()
        async with connecting(served, auth_of(), trace=watch) as client:
            watch.refused.clear()
            slow = SlowRefusal(served)
            async with loops.open_nursery() as nursery:

                async def call() -> None:
                    texts.append(await echo(client))

                async def call_in_vain() -> None:
                    with pytest.raises(RequestRefused, match="access_denied"):
                        await echo(client)
                    texts.append("refused")

                nursery.start_soon(call_in_vain)
                await loops.in_thread(slow.has_request.wait)
                _hold_tokens(served)
                nursery.start_soon(call)
                await loops.in_thread(served.at_gate.wait)
                slow.may_answer.set()
                await loops.in_thread(watch.refused.wait)
                served.refresh_tokens.clear()  # revoked, and the user says no
                served.denies = True
                served.gate.set()
        texts.remove("refused")
        assert texts[0] in served.tokens  # the server takes the old token longer
        assert served.count("/authorize") == 2


def test_a_refusal_during_a_refresh_waits_for_its_end_without_a_loop() -> None:
    """Another thread reads the refusal, and must not begin an attempt for it."""
    with realm(seconds=0) as served:
        watch, texts = Watch(), list[str]()
        with connecting_without_loop(served, auth_of(), trace=watch) as client:
            watch.refused.clear()
            slow = SlowRefusal(served)

            def call() -> None:
                texts.append(text_of(client.request("tools/call", ECHO)))

            threads = [threading.Thread(target=call, daemon=True) for _ in range(2)]
            threads[0].start()
            assert slow.has_request.wait(60)
            _hold_tokens(served)
            threads[1].start()
            assert served.at_gate.wait(60)
            slow.may_answer.set()
            assert watch.refused.wait(60)
            served.gate.set()
            for thread in threads:
                thread.join(60)
        assert len(texts) == 2
        assert len(set(texts)) == 1
        assert served.count("/token") == 3


class Failing:
    """A storage that does not work any more."""

    def __init__(self) -> None:
        self.is_broken = False

    def load(self, server: str) -> dict[str, JSONObject]:
        if self.is_broken:
            raise KeyError("the table is gone")
        return {}

    def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
        if self.is_broken:
            raise OSError("the disk is full")


@on_loops
async def test_a_renewal_that_fails_in_any_way_leaves_the_session_alone() -> None:
    """The server may take the old token; if not, the caller learns the cause."""
    storage = Failing()
    with realm(seconds=0) as served:
        async with connecting(served, auth_of(storage)) as client:
            storage.is_broken = True
            assert await echo(client) in served.tokens
            served.tokens.clear()
            with pytest.raises(RequestRefused, match="KeyError") as caught:
                await echo(client)
            assert isinstance(caught.value.__cause__, KeyError)
            storage.is_broken = False
            assert await echo(client) in served.tokens


def test_a_renewal_that_fails_in_any_way_leaves_a_session_without_a_loop_alone() -> None:
    """Each later call would raise the same again."""
    storage = Failing()
    with realm(seconds=0) as served, connecting_without_loop(served, auth_of(storage)) as client:
        storage.is_broken = True
        assert text_of(client.request("tools/call", ECHO)) in served.tokens
        served.tokens.clear()
        with pytest.raises(RequestRefused, match="KeyError"):
            client.request("tools/call", ECHO)
        storage.is_broken = False
        assert text_of(client.request("tools/call", ECHO)) in served.tokens
