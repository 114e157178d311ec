"""Checks of tokens that fail, last too long, or are cut off: in this process, on each server."""

import asyncio
import math
import socket
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any

import h11
import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import (
    AddressRules,
    HTTPRequest,
    IntrospectionVerifier,
    ProtectedResource,
    ResourceServer,
    TokenVerifier,
    Verification,
)
from sansmcp.auth.jose import JWTVerifier
from sansmcp_io.asgi import App as ASGIApp
from sansmcp_io.wsgi import App as WSGIApp
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.adapters.on_asyncio import on_asyncio
from tests.support.http.authorized import AuthorizedHandler
from tests.support.http.on_loops import Talk, serving, talking
from tests.support.http.protected import SECONDS, Issuer, issuer
from tests.support.http.server_endpoint import POST, modern_headers, modern_tool_call

INFO: JSONObject = {"name": "server", "version": "1"}
ISSUER = "https://as.example"
URL = "http://127.0.0.1/mcp"
CLAIMS: JSONObject = {"iss": ISSUER, "aud": URL, "sub": "ann", "exp": 4e9}
MESSAGE = modern_tool_call(1, "any")
on_loops = on_each_loop(loops=STANDARD_LOOPS)


class OddVerifier:
    """A verifier of an application, with mistakes: a token says what it does."""

    def __init__(self) -> None:
        self._requests: list[HTTPRequest] = []

    def begin(self, token: str, *, at: float) -> Verification:
        verification = Verification(token)
        if token == "raises":
            raise ValueError("the verifier has a mistake")
        if token == "asks":
            request = HTTPRequest(
                method="GET",
                url="http://127.0.0.1:1/",  # nothing listens there
                max_body_bytes=1,
                timeout=5.0,
                addresses=AddressRules(own=None, everything=True),
            )
            self._requests.append(request)
        else:
            verification.claims = CLAIMS
        return verification

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        at: float,
    ) -> None:
        raise AssertionError  # there is none

    def receive_failure(self, request: HTTPRequest, text: str, *, at: float) -> None:
        raise ValueError("the verifier has another mistake")

    def handle_timeout(self, at: float) -> None:
        pass

    def next_timeout(self) -> float | None:
        return None

    def next_request(self) -> HTTPRequest | None:
        return self._requests.pop() if self._requests else None

    def next_ended(self) -> Verification | None:
        return None


def handle(call: Any) -> JSONObject:
    return {"content": []}


def access_by(verifier: TokenVerifier | None, issuer: str = ISSUER) -> ResourceServer:
    return ResourceServer(ProtectedResource(URL, authorization_servers=[issuer]), verifier)


def asking(endpoint: str, **settings: Any) -> ResourceServer:
    """A server that asks an endpoint about tokens."""
    given: Any = {"issuer": ISSUER, "client_id": "rs", "client_secret": "s", **settings}
    return access_by(IntrospectionVerifier(endpoint, **given))


@contextmanager
def endless(issuer: Issuer, path: str = "/introspect") -> Generator[threading.Event, None, None]:
    """Let an endpoint answer at the end of the block; the event is set when it is asked."""
    usual = issuer.realm.replaced.get(path)
    is_asked, is_over = threading.Event(), threading.Event()

    def answer(handler: AuthorizedHandler) -> None:
        is_asked.set()
        is_over.wait(SECONDS)
        if usual is None:
            handler.give({}, 404)
        else:
            usual(handler)

    issuer.realm.replaced[path] = answer
    try:
        yield is_asked
    finally:
        del issuer.realm.replaced[path]
        if usual is not None:
            issuer.realm.replaced[path] = usual
        is_over.set()


@pytest.fixture
def served() -> Generator[Issuer, None, None]:
    """An authorization server."""
    with issuer() as running:
        running.claims = {"good": {**CLAIMS}}
        yield running


def options(access: ResourceServer, **settings: Any) -> Any:
    return {"info": INFO, "capabilities": {"tools": {}}, "access": access, **settings}


def below_wsgi(access: ResourceServer, **settings: Any) -> httpx2.Client:
    """A client of an application."""
    app = WSGIApp(handle, **options(access, **settings))
    return httpx2.Client(transport=httpx2.WSGITransport(app=app))


def request_with(token: str) -> httpx2.Request:
    headers = {**POST, **modern_headers(MESSAGE), "authorization": f"Bearer {token}"}
    return httpx2.Request("POST", URL, json=MESSAGE, headers=headers)


async def status_for(talk: Talk, token: str) -> int:
    """Call a tool of a server on a loop."""
    fields = {**modern_headers(MESSAGE), "authorization": f"Bearer {token}"}
    return (await talk.post(MESSAGE, fields)).status


# ------------------------------------------------------------------- verifiers that raise


@on_loops
async def test_a_verifier_with_mistakes_ends_no_server(caplog: pytest.LogCaptureFixture) -> None:
    """Other clients go on, and nothing of a check that has failed is kept."""
    access = access_by(OddVerifier())
    settings = {"access": access, "lookup_timeout": 0.3}
    async with serving(handle, **settings) as server, talking(server) as talk:
        assert await status_for(talk, "raises") == 500
        assert await status_for(talk, "asks") == 503
        assert await status_for(talk, "good") == 200
    assert access.open_checks == 0
    for text in ("the verifier has a mistake", "the verifier has another mistake"):
        assert text in caplog.text


def test_a_verifier_with_mistakes_ends_no_application_of_wsgi(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The same in threads."""
    access = access_by(OddVerifier())
    with below_wsgi(access, lookup_timeout=0.3) as http:
        assert http.send(request_with("raises")).status_code == 500
        assert http.send(request_with("asks")).status_code == 503
        assert http.send(request_with("good")).status_code == 200
    assert access.open_checks == 0
    for text in ("the verifier has a mistake", "the verifier has another mistake"):
        assert text in caplog.text


class Stop(BaseException):
    """Ends the program."""


def stop(_token: str) -> None:
    raise Stop


@on_asyncio
async def test_a_function_that_ends_the_program_leaves_no_check() -> None:
    """The exception is no answer about the token, and the server may be started again."""
    access = access_by(None)
    app = ASGIApp(handle, **options(access, verify_token=stop))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
        with pytest.raises(Stop):
            await http.send(request_with("any"))
    assert access.open_checks == 0
    with below_wsgi(access, verify_token=stop) as same, pytest.raises(Stop):
        same.send(request_with("any"))
    assert access.open_checks == 0


# ----------------------------------------------------------- requests that cannot be made


def break_lookups(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Let the lookup of a name fail in a way that no one foresees."""
    real = socket.getaddrinfo

    def look_up(name: Any, *args: Any, **kwargs: Any) -> Any:
        if name == host:
            raise MemoryError
        return real(name, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@on_loops
async def test_an_error_of_a_request_ends_no_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients get 503, and the log has the traceback."""
    break_lookups(monkeypatch, "as.example")
    access = asking("https://as.example/introspect")
    async with serving(handle, access=access) as server, talking(server) as talk:
        assert await status_for(talk, "secret") == 503
        assert await status_for(talk, "secret") == 503
    assert "MemoryError" in caplog.text
    assert "secret" not in caplog.text


def test_an_error_of_a_request_ends_no_check_of_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same in threads; and where there can be no more of them."""
    break_lookups(monkeypatch, "as.example")
    with below_wsgi(asking("https://as.example/introspect")) as http:
        assert http.send(request_with("secret")).status_code == 503
        assert "MemoryError" in caplog.text

        def start(_thread: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)
        assert http.send(request_with("secret")).status_code == 503
        assert "can't start new thread" in caplog.text
    assert "secret" not in caplog.text


def test_clients_without_a_token_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """While nothing can be verified, each of their requests is an error of the server."""

    def verify(_token: str) -> None:
        raise OSError("the database is away")

    with below_wsgi(access_by(None), verify_token=verify) as http:
        for number in range(30):
            assert http.send(request_with(f"t{number}")).status_code == 503
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 10
    assert all("verify_token failed" in record.getMessage() for record in errors)
    assert caplog.text.count("OSError: the database is away") == 10


def accept(_token: str) -> JSONObject:
    return CLAIMS


def test_a_full_server_says_so_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """There is no other cause that could be named."""
    resource = ProtectedResource(URL, authorization_servers=[ISSUER])
    access = ResourceServer(resource, max_checks=1)
    access.check("POST", "/mcp", {"authorization": "Bearer other"}, at=1.0)
    access.next_event()
    with below_wsgi(access, verify_token=accept) as http:
        assert http.send(request_with("good")).status_code == 503
    assert "could not be verified: 1 requests are being checked" in caplog.text


# ---------------------------------------------------------------------- time, and the end


@pytest.mark.parametrize("seconds", [math.inf, 1e12, 60])
def test_threads_wait_for_a_verifier_as_long_as_is_said(served: Issuer, seconds: float) -> None:
    """Also longer than a lock can wait."""
    access = asking(f"{served.url}/introspect")
    with below_wsgi(access, lookup_timeout=seconds) as http:
        assert http.send(request_with("good")).status_code == 200
        assert http.send(request_with("bad")).status_code == 401


@on_loops
async def test_a_server_ends_while_tokens_are_checked(served: Issuer) -> None:
    """Nothing waits, neither the check nor the verifier, which another server may use."""
    access = asking(f"{served.url}/introspect", timeout=1000.0)
    with endless(served) as is_asked:
        async with (
            serving(handle, access=access, lookup_timeout=math.inf) as server,
            talking(server) as talk,
            loops.open_nursery() as nursery,
        ):
            nursery.start_soon(_send_in_vain, talk)
            await loops.in_thread(lambda: is_asked.wait(SECONDS))
            assert access.open_checks == 1
            server.close()
    assert access.open_checks == 0
    assert access.next_timeout() is None
    async with serving(handle, access=access) as server, talking(server) as talk:
        assert await status_for(talk, "good") == 200


async def _send_in_vain(talk: Talk) -> None:
    """Send a request whose server ends before it responds."""
    with suppress(*loops.BROKEN, h11.RemoteProtocolError):
        assert await status_for(talk, "good") == 503


@on_asyncio
async def test_no_request_follows_from_one_that_was_cancelled(served: Issuer) -> None:
    """The metadata of an issuer may be at several URLs: the next one would never be asked."""
    name = f"{served.url}/tenant"
    access = access_by(JWTVerifier([name], timeout=1000.0, min_interval=1e-9), name)
    app = ASGIApp(handle, drain=0.01, **options(access, lookup_timeout=math.inf))
    token = served.signed(URL, iss=name)
    path = "/.well-known/oauth-authorization-server/tenant"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
        with endless(served, path) as is_asked:
            async with app.lifespan():
                call = asyncio.create_task(http.send(request_with(token)))
                await asyncio.to_thread(is_asked.wait, SECONDS)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert access.open_checks == 0
                assert access.next_timeout() is not None  # others may wait for the keys
        assert access.next_timeout() is None
        assert served.realm.count("/tenant/.well-known/openid-configuration") == 0

        known = {**served.realm.metadata, "issuer": name}
        served.realm.replaced[path] = lambda handler: handler.give(known)
        async with app.lifespan():
            assert (await http.send(request_with(token))).status_code == 200
