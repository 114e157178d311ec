"""How a worker starts: below which servers, and with which Redis it does not, and why."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import httpx2
import pytest
import trio

from sansmcp import Config, JSONObject, ToolsListChanged
from sansmcp.http import Sessions
from sansmcp_io import asyncio as on_asyncio
from sansmcp_io import trio as on_trio
from sansmcp_io.asgi import App
from sansmcp_io.redis import Cluster, ClusterError
from tests.cluster.by_hand import call
from tests.support.http.certificates import certificate
from tests.support.processes import ROOT
from tests.support.redis_server import RedisServer, running_redis
from tests.support.workers import bounded, free_place, initialized, named

__all__ = ["certificate"]  # a fixture

INFO: Final[JSONObject] = {"name": "worker", "version": "1"}
APP: Final = "tests.support.programs.cluster_app:app"


async def handle(call: Any) -> JSONObject:
    return {}


class OwnLog:
    """An event log of the application."""

    def append(self, stream: int, event: int, message: bytes) -> int:
        return 0

    def replay(self, stream: int, after: int) -> None:
        return None


class OwnStore:
    """A store of events of the application."""

    def append(self, session: str, stream: int, event: int, message: bytes) -> None:
        pass

    def replay(self, session: str, stream: int, after: int) -> None:
        pass

    def forget(self, session: str) -> None:
        pass


# ------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "url",
    ["localhost:6379", "http://localhost", "redis://localhost:port", "rediss://[", ""],
)
def test_a_url_that_is_none_of_redis_is_refused(url: str) -> None:
    """Before anything is opened."""
    with pytest.raises(ValueError, match=r"is one like redis://host:6379/0"):
        Cluster(url)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "a b"}, "name is up to 64"),
        ({"lease": 0.1}, "lease must be from 0.5"),
        ({"lease": "x"}, "lease must be greater than zero"),
        ({"keep_events": 0}, "keep_events must be greater"),
        ({"max_events": 0}, "max_events must be an integer"),
        ({"max_bytes": 1.5}, "max_bytes must be an integer"),
        ({"dump_principal": str}, "belong together: give both"),
        ({"load_principal": str}, "belong together: give both"),
        ({"headers": ["x-tenant", "a b"]}, "headers are names of headers"),
    ],
)
def test_settings_are_checked(arguments: dict[str, Any], text: str) -> None:
    """Before anything is opened."""
    with pytest.raises(ValueError, match=text):
        Cluster("redis://localhost", **arguments)


def test_credentials_of_the_url_are_not_shown() -> None:
    """It stands in logs."""
    assert repr(Cluster("redis://me:secret@host:1/2")) == "Cluster('redis://host:1/2')"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"authenticate": repr}, "give principal_key="),
        ({"sessions": Sessions(new_id=str, event_log=OwnLog)}, "keeps the events"),
        ({"event_log": OwnStore()}, "leave out event_log"),
    ],
)
def test_options_that_contradict_a_cluster_are_refused(options: dict[str, Any], text: str) -> None:
    """Users who cannot be told apart, and a second place for events."""
    with pytest.raises(ValueError, match=text):
        App(handle, info=INFO, cluster=Cluster("redis://localhost"), **options)


def test_events_of_a_session_are_no_more_than_a_response_may_have() -> None:
    """A client that resumes a stream is sent as much."""
    cluster = Cluster("redis://localhost", max_bytes=2_000_000)
    with pytest.raises(ValueError, match="make the first one smaller"):
        App(handle, info=INFO, cluster=cluster, config=Config(max_unsent_bytes=1_000_000))
    App(handle, info=INFO, cluster=cluster, config=Config(max_unsent_bytes=2_000_000))


# ------------------------------------------------------------------------------------ other Redis


def old_redis(listener: socket.socket) -> None:
    """A Redis of another time, which knows what is asked at the beginning."""
    with suppress(OSError):  # at the end of the test
        while True:
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(65536):
                    if b"INFO" in data:
                        text = b"# Server\r\nredis_version:6.2.14\r\n"
                        connection.sendall(b"$%d\r\n%b\r\n" % (len(text), text))
                    else:
                        connection.sendall(b"+OK\r\n" * data.count(b"*"))


@contextmanager
def wrong_redis(kind: str) -> Generator[str, None, None]:
    """The URL of a Redis that no worker can use."""
    if kind == "absent":
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        yield f"redis://127.0.0.1:{port}/0"
    elif kind == "old":
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        threading.Thread(target=old_redis, args=[listener], daemon=True).start()
        with listener:
            yield f"redis://127.0.0.1:{port}/0"
            listener.shutdown(socket.SHUT_RDWR)
    else:
        with running_redis("--requirepass", "secret") as redis:
            who = {"secret": "", "wrong": ":no@"}[kind.removeprefix("password ")]
            yield redis.url.replace("redis://", f"redis://{who}")


WRONG: Final = {
    "absent": "cannot be reached",
    "old": "has version 6.2.14: install Redis 7.0 or newer",
    "password secret": "refuses the credentials",
    "password wrong": "refuses the credentials",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_worker_says_why_it_cannot_start(kind: str) -> None:
    """In one sentence that says what to do; and nothing of it goes on."""
    with wrong_redis(kind) as url:
        cluster = Cluster(url, lease=0.5)
        with pytest.raises(ClusterError, match=re.escape(WRONG[kind])) as failure:
            asyncio.run(on_asyncio.serve_http(handle, port=0, info=INFO, cluster=cluster))
        assert "secret" not in str(failure.value)
        with pytest.raises(ClusterError, match=re.escape(WRONG[kind])):
            trio.run(partial(on_trio.serve_http, handle, port=0, info=INFO, cluster=cluster))
        with pytest.raises(ClusterError, match=re.escape(WRONG[kind])):
            asyncio.run(live(App(handle, info=INFO, cluster=cluster)))


async def live(app: App) -> None:
    """Start an application, and end it."""
    async with app.lifespan():
        pass


@bounded
async def test_an_application_that_could_not_start_can_be_started_again() -> None:
    """By the same loop, or by a request, when Redis is there."""
    with running_redis() as redis:
        redis.kill()
        app = App(handle, info=INFO, cluster=Cluster(redis.url, lease=0.5))
        await start_again(app, redis)


async def start_again(app: App, redis: RedisServer) -> None:
    """Start an application without its Redis, and then with it."""
    app.publish(ToolsListChanged())  # to nobody yet
    for _ in range(2):
        with pytest.raises(ClusterError, match="cannot be reached"):
            await live(app)
    transport = httpx2.ASGITransport(app)
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        response = await http.post("/", json=message, headers=named())
        assert response.status_code == 200  # sessions of its own need no Redis
    redis.start()
    await until_leases(redis, 1)
    await live(app)


def test_uvicorn_does_not_start_without_redis() -> None:
    """And says so in its log."""
    with wrong_redis("absent") as url:
        run = subprocess.run(
            [sys.executable, "-m", "uvicorn", "--port", "0", APP],
            cwd=ROOT,
            env={**os.environ, "REDIS_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert run.returncode != 0
    assert "cannot be reached" in run.stderr
    assert "start it, or put its host" in run.stderr


# --------------------------------------------------------------------------------- other servers


COMMANDS: Final = {
    "gunicorn": (
        *("gunicorn", "--worker-class=uvicorn.workers.UvicornWorker", "--workers=3", "--preload"),
        *("--graceful-timeout=3", "--bind=127.0.0.1:{}"),
    ),
    "uvicorn": ("uvicorn", "--workers=3", "--log-level=warning", "--port={}"),
}


@pytest.mark.parametrize("name", ["gunicorn", pytest.param("uvicorn", marks=pytest.mark.proof)])
@bounded
async def test_processes_that_are_forked_are_workers_of_their_own(name: str) -> None:
    """Also where the application was loaded before they were: each has its id and its threads."""
    with running_redis() as redis:
        worker = free_place()
        command = [option.format(worker.port) for option in COMMANDS[name]]
        with subprocess.Popen(
            [sys.executable, "-m", *command, APP],
            cwd=ROOT,
            env={**os.environ, "REDIS_URL": redis.url},
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                await until_leases(redis, 3)
                async with new_client() as http:
                    session = await initialized(http, worker)
                pids: set[str] = set()
                for number in range(24):
                    async with new_client() as http:  # with a connection of its own
                        response = await http.post(
                            worker.url, json=call(number, "pid"), headers=named(session)
                        )
                    assert response.status_code == 200
                    pids.add(response.json()["result"]["content"][0]["text"])
                assert len(pids) == 1
            finally:
                process.terminate()
        assert [key for key in redis.keys if "lease" in key] == []


def new_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=60, trust_env=False)


async def until_leases(redis: RedisServer, number: int) -> None:
    """Wait until so many workers have joined."""
    while sum("lease" in key for key in redis.keys) < number:
        await asyncio.sleep(0.05)


@bounded
async def test_an_application_without_a_lifespan_joins_with_its_first_request() -> None:
    """And goes on in another loop; `close` gives its lease up."""
    with running_redis() as redis:
        app = App(handle, info=INFO, cluster=Cluster(redis.url))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            assert (await http.get("/")).status_code == 400
            await until_leases(redis, 1)
        app.close()
        while redis.keys:
            await asyncio.sleep(0.02)


@bounded
async def test_a_redis_is_reached_by_tls(certificate: str) -> None:
    """By its certificate, which is that of an own authority; without that, the text says why."""
    options = ("--tls-cert-file", certificate, "--tls-key-file", certificate)
    place = free_place()
    tls = ("--tls-port", str(place.port), "--tls-ca-cert-file", certificate)
    with running_redis(*tls, *options, "--tls-auth-clients", "no") as redis:
        url = f"rediss://localhost:{place.port}/0"
        with pytest.raises(ClusterError, match=r"cannot be reached .*certificate"):
            await live(App(handle, info=INFO, cluster=Cluster(url, lease=0.5)))
        cluster = Cluster(url, lease=0.5, options={"ssl_ca_certs": certificate})
        async with App(handle, info=INFO, cluster=cluster).lifespan():
            assert sum("lease" in key for key in redis.keys) == 1


@bounded
async def test_a_redis_is_reached_by_a_unix_socket() -> None:
    """Which only this machine can use."""
    with running_redis("--unixsocket", "/tmp/sansmcp-test.sock") as redis:
        app = App(handle, info=INFO, cluster=Cluster("unix:///tmp/sansmcp-test.sock?db=0"))
        async with app.lifespan():
            assert sum("lease" in key for key in redis.keys) == 1
        assert redis.keys == []
