"""Settings of adapters that make no sense raise at once, and the error says what is accepted."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any, Final, TypeAlias

import httpx2
import pytest
import trio

import sansmcp_io.asyncio as on_asyncio
import sansmcp_io.blocking as on_threads
import sansmcp_io.trio as on_trio
from sansmcp import LocalProtocolError
from sansmcp.auth import IntrospectionVerifier, ProtectedResource, ResourceServer
from sansmcp_io.asgi import App as ASGIApp
from sansmcp_io.wsgi import App as WSGIApp
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.processes import bad, call_bad
from tests.support.wire import CLIENT_INFO, SERVER_INFO

COMMAND: Final = ["true"]
URL: Final = "http://127.0.0.1:9/mcp"
CLIENT_TIMES: Final = ("request_timeout", "start_timeout", "probe_timeout")


def handler(_call: object) -> dict[str, Any]:
    raise AssertionError  # nothing is ever served here


def run(open: Callable[..., Any], module: Any, *args: Any, **settings: Any) -> None:
    """Open a client or a server as users do, on its own loop."""
    made = open(*args, **settings)
    if isinstance(made, AbstractContextManager):
        with made:
            return
    if isinstance(made, AbstractAsyncContextManager):

        async def entered() -> None:
            async with made:
                pass

    else:

        async def entered() -> None:
            await made

    if module is on_trio:
        trio.run(entered)
    elif isinstance(made, Awaitable) or module is on_asyncio:
        asyncio.run(entered())


def clients() -> list[Any]:
    found: list[Any] = []
    for module in (on_asyncio, on_trio, on_threads):
        name = module.__name__.rpartition(".")[2]
        for open, where in ((module.connect_stdio, COMMAND), (module.connect_http, URL)):
            found.append(pytest.param(module, open, where, id=f"{name}-{open.__name__}"))
    return found


def servers() -> list[Any]:
    found: list[Any] = [
        pytest.param(None, partial(ASGIApp, handler), id="asgi"),
        pytest.param(None, partial(WSGIApp, handler), id="wsgi"),
    ]
    for module in (on_asyncio, on_trio, on_threads):
        name = module.__name__.rpartition(".")[2]
        found.append(pytest.param(module, partial(module.serve_stdio, handler), id=f"{name}-stdio"))
    found += [
        pytest.param(module, partial(module.serve_http, handler), id=f"{name}-http")
        for name, module in (("asyncio", on_asyncio), ("trio", on_trio))
    ]
    return found


@pytest.mark.parametrize("value", [0, -1.0, math.nan, True, "60"])
@pytest.mark.parametrize("name", CLIENT_TIMES)
@pytest.mark.parametrize(("module", "open", "where"), clients())
def test_the_times_of_a_client(
    module: Any, open: Callable[..., Any], where: Any, name: str, value: object
) -> None:
    """With NaN no request ever times out, and the error came only after a process was started."""
    with pytest.raises(ValueError, match=f"{name} must be greater than zero.*math.inf: no limit"):
        run(open, module, where, info=CLIENT_INFO, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        *(
            (name, value, "must not be negative")
            for name in ("terminate_after", "kill_after")
            for value in (-1, math.nan, True)
        ),
        *(("restarts", value, "must be an integer of 0 or more") for value in (-1, True, 1.5)),
    ],
)
@pytest.mark.parametrize("module", [on_asyncio, on_trio, on_threads])
def test_how_a_process_is_kept(module: Any, name: str, value: object, text: str) -> None:
    """The same for the settings that only stdio has."""
    with pytest.raises(ValueError, match=f"{name} {text}"):
        run(module.connect_stdio, module, COMMAND, info=CLIENT_INFO, **{name: value})


@pytest.mark.parametrize("value", [0, math.nan, True])
@pytest.mark.parametrize(("module", "open"), servers())
def test_the_request_timeout_of_a_server(
    module: Any, open: Callable[..., Any], value: object
) -> None:
    """Otherwise the mistake shows with the first question to a client."""
    with pytest.raises(ValueError, match="request_timeout must be greater than zero"):
        run(open, module, info=SERVER_INFO, request_timeout=value)


@pytest.mark.parametrize("value", [-1, math.nan, True])
@pytest.mark.parametrize(
    ("module", "open"), [server for server in servers() if server.id != "wsgi"]
)
def test_the_drain_of_a_server(module: Any, open: Callable[..., Any], value: object) -> None:
    """Otherwise the mistake shows in the middle of a shutdown."""
    with pytest.raises(ValueError, match="drain must not be negative"):
        run(open, module, info=SERVER_INFO, drain=value)


def test_the_drain_of_wsgi_is_given_when_it_is_closed() -> None:
    """The same for the `drain` that is given to `close`."""
    app = WSGIApp(handler, info=SERVER_INFO)
    with pytest.raises(ValueError, match="drain must not be negative"):
        app.close(drain=math.nan)
    app.close()


@pytest.mark.parametrize("threads", [0, True, 1.5])
def test_the_threads_of_a_blocking_server(threads: Any) -> None:
    """With zero threads no request would be answered."""
    with pytest.raises(ValueError, match="threads must be an integer of 1 or more"):
        on_threads.serve_stdio(handler, info=SERVER_INFO, threads=threads)


@pytest.mark.parametrize("name", ["connections", "head_bytes", "head", "idle", "held_bytes"])
@pytest.mark.parametrize("value", [0, math.nan, True, "1"])
def test_limits_of_an_http_server(name: str, value: object) -> None:
    """`True` was accepted as one connection."""
    make: Any = on_asyncio.HTTPLimits
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        make(**{name: value})
    assert getattr(make(**{name: math.inf}), name) == math.inf


@pytest.mark.parametrize("name", ["requests", "connect", "head", "silence"])
@pytest.mark.parametrize("value", [0, math.nan, True, "1"])
def test_limits_of_an_http_client(name: str, value: object) -> None:
    """Without a check, a limit of zero would keep every request waiting for ever."""
    make: Any = on_asyncio.HTTPClientLimits
    with pytest.raises(ValueError, match=f"{name} must be greater than zero"):
        make(**{name: value})


def test_numbers_of_things_are_integers() -> None:
    """Half a connection makes no sense."""
    server: Any = on_asyncio.HTTPLimits
    client: Any = on_asyncio.HTTPClientLimits
    with pytest.raises(ValueError, match="connections must be greater than zero, and an integer"):
        server(connections=1.5)
    with pytest.raises(ValueError, match="requests must be greater than zero, and an integer"):
        client(requests=1.5)
    assert client(connect=1.5).connect == 1.5


# ------------------------------------------------------------------- arguments of any other kind

Wrong: TypeAlias = tuple[list[Any], str]
STRINGS: Final[Wrong] = (
    [None, True, 5, "x", b"x", {}],
    "must be a list or a tuple of strings",
)
OBJECT_OR_NONE: Final[Wrong] = ([True, 5, "x", ["x"]], "must be a dict or None")
FUNCTION: Final[Wrong] = ([True, 5, "x", {}], "must be a callable or None")
FLAG: Final[Wrong] = ([None, 1, "no"], "must be True or False")
WRONG: Final[dict[str, Wrong]] = {
    "info": ([None, 5, "x", ["x"]], "must be a dict, not"),
    "capabilities": OBJECT_OR_NONE,
    "instructions": ([True, 5, ["x"]], "must be a string or None"),
    "revisions": ([*STRINGS[0], iter(["2025-11-25"])], STRINGS[1]),  # each session reads them
    "requires": STRINGS,
    "hosts": STRINGS,
    "origins": ([True, 5, "x", b"x", {5: 5}], "must be a list or a tuple of strings"),
    "config": ([True, 5, "x", {}], "must be a Config or None"),
    "cache": ([True, 5, "x", {}], "cache must be a Cache, a partition of one or None"),
    "handler": ([None, 5, "x"], "must be a callable, not"),
    **dict.fromkeys(
        (
            *("on_request", "on_notification", "on_unauthorized", "on_ready", "on_stderr"),
            *("on_listening", "authenticate", "principal_key", "tool_schema", "verify_token"),
        ),
        FUNCTION,
    ),
    "command": (
        [None, True, 5, "python server.py", b"x", {}, iter(COMMAND)],  # each restart reads it
        "the program and its arguments",
    ),
    "env": ([True, 5, "x", ["A=1"]], "must be a mapping or None"),
    "stderr": ([None, True, "Inherit", ["inherit"]], "'inherit' or 'capture' or 'ignore'"),
    "proxies": ([None, True, "Refuse", ["refuse"]], "'use' or 'refuse' or 'ignore'"),
    "access": ([True, 5, "x", {}], r"access must be a sansmcp\.auth\.ResourceServer, not"),
    "auth": ([True, 5, "x", {}], r"auth must be a sansmcp_io\.oauth\.OAuth or None"),
    "http": ([True, 5, "x", httpx2], r"http must be an httpx2\.\w+ here, or None"),
    "tls": ([True, 5, "x", {}], "an ssl.SSLContext or None"),
    "port": ([None, True, "80", 80.0, -1, 65_536], "an integer from 0 to 65535"),
    "cluster": ([True, 5, "redis://localhost", {}], "must be a sansmcp_io.redis.Cluster or None"),
    "event_log": ([True, 5, "x", dict], "event_log needs a method append"),
    "lookup_timeout": ([None, 0, -1, math.nan, "5"], "lookup_timeout must be greater than zero"),
    "limits": ([True, 5, {}], "limits must be HTTP(Client)?Limits or None"),
    "sessions": ([None, 5, "no", {}], "sessions must be True, False or Sessions"),
    "tasks": ([None, 5, "no", {}], "tasks must be True, False or Tasks"),
    "running_tasks": ([None, True, 0, 1.5], "running_tasks must be an integer of 1 or more"),
    "task_store": ([5, "x", {}], "task_store keeps tasks, and they are not turned on"),
    "streams": FLAG,
    "get_stream": FLAG,
    "answers": ([None, True, "SSE"], "'auto' or 'sse'"),
    "keep_alive": ([True, 0, -1, math.nan, "5"], "a finite number of seconds"),
    "path": ([True, 5, b"/mcp", "mcp"], "the path of an endpoint begins with /"),
    "old_paths": ([True, 5, "/sse", ("/sse", "/post")], "must be a OldPaths or None"),
    "url": ([None, 5, b"http://x", ["http://x"]], "a URL is a string"),
    "headers": ([None, True, 5, "x", ["x"]], "headers are a mapping"),
}
"""For each argument what it does not take, and what is said then."""
LOOKED_AT_ABOVE: Final = {
    *CLIENT_TIMES,
    *("terminate_after", "kill_after", "restarts", "drain", "threads"),
}
ANYTHING: Final = {"context", "trace", "task_status"}
OTHERS: Final = {"host", "cwd", "hint"}
"""A wrong one raises where it is used first, and says what it takes."""


def opened() -> list[Any]:
    found: list[Any] = [
        pytest.param(None, ASGIApp, (handler,), id="asgi"),
        pytest.param(None, WSGIApp, (handler,), id="wsgi"),
    ]
    for module in (on_asyncio, on_trio, on_threads):
        name = module.__name__.rpartition(".")[2]
        for open, *args in (
            (module.connect_stdio, COMMAND),
            (module.connect_http, URL),
            (module.serve_stdio, handler),
        ):
            found.append(pytest.param(module, open, args, id=f"{name}-{open.__name__}"))
    for name, module in (("asyncio", on_asyncio), ("trio", on_trio)):
        found.append(pytest.param(module, module.serve_http, (handler,), id=f"{name}-serve_http"))
    for name, module, streams in (
        ("asyncio", on_asyncio, (None, None)),
        ("trio", on_trio, (None,)),
    ):
        found += [
            pytest.param(module, module.connect, streams, id=f"{name}-connect"),
            pytest.param(module, module.serve, (*streams, handler), id=f"{name}-serve"),
        ]
    return found


@pytest.mark.parametrize(("module", "open", "args"), opened())
def test_whatever_else_is_given(module: Any, open: Callable[..., Any], args: Any) -> None:
    """Without a check, the mistake raises after a process was started or a port was opened."""
    names = list(inspect.signature(open).parameters)
    given = dict(zip(names, args, strict=False)) | {"info": CLIENT_INFO}
    streams = {name for name in names if name in ("reader", "writer", "stream")}
    assert set(names) <= {*WRONG, *LOOKED_AT_ABOVE, *ANYTHING, *OTHERS, *streams}
    for name in set(names) & set(WRONG):
        values, text = WRONG[name]
        for value in values:
            with pytest.raises(ValueError, match=text):
                run(partial(open, **{**given, name: value}), module)


RESOURCE: Final = ProtectedResource(
    "http://127.0.0.1:9/mcp", authorization_servers=["https://as.example"]
)
VERIFIES: Final = IntrospectionVerifier(
    "https://as.example/ask", issuer="https://as.example", client_id="rs", client_secret="s"
)


@pytest.mark.parametrize(
    ("verifier", "settings", "text"),
    [
        (None, {}, "nothing verifies tokens"),
        (VERIFIES, {"verify_token": handler}, "has a verifier: leave out verify_token"),
        (VERIFIES, {"authenticate": handler}, "leave out authenticate"),
        (VERIFIES, {"principal_key": str}, "leave out principal_key"),
        (VERIFIES, {"access": None, "verify_token": handler}, "access=.* which is missing"),
    ],
)
@pytest.mark.parametrize(
    ("module", "open"), [server for server in servers() if not str(server.id).endswith("stdio")]
)
def test_how_tokens_are_checked(
    module: Any, open: Callable[..., Any], verifier: Any, settings: dict[str, Any], text: str
) -> None:
    """One part of a server says who sends a request: with none or two, one would be ignored."""
    given = {"access": ResourceServer(RESOURCE, verifier), **settings}
    with pytest.raises(ValueError, match=text):
        run(open, module, info=SERVER_INFO, **given)


def test_threads_verify_tokens_by_a_plain_function() -> None:
    """Nothing would await another one."""

    async def verify(token: str) -> dict[str, Any]:
        raise AssertionError  # never called

    with pytest.raises(TypeError, match="verify"):
        WSGIApp(handler, info=SERVER_INFO, access=ResourceServer(RESOURCE), verify_token=verify)


def test_the_path_of_serve_http_is_ascii() -> None:
    """Clients send a path with other characters encoded, which would never match."""
    with pytest.raises(ValueError, match="the path of an endpoint is ASCII"):
        run(on_asyncio.serve_http, on_asyncio, handler, info=SERVER_INFO, path="/ä")


@pytest.mark.parametrize("timeout", [True, 0, -1, math.nan, "5"])
@on_each_loop()
async def test_the_timeout_of_a_call(timeout: Any) -> None:
    """Without a check, `True` counts as one second."""
    connect = on_trio.connect_stdio if loops.is_trio() else on_asyncio.connect_stdio
    async with connect(bad("verbose", "first"), info=CLIENT_INFO) as client:
        with pytest.raises(LocalProtocolError, match="a timeout must be greater than zero"):
            await client.request(*call_bad("small"), timeout=timeout)
        await client.request(*call_bad("small"), timeout=math.inf)


@pytest.mark.parametrize("timeout", [True, 0, -1, math.nan, "5"])
def test_the_timeout_of_a_call_without_a_loop(timeout: Any) -> None:
    """The same, where there is no loop."""
    with on_threads.connect_stdio(bad("verbose", "first"), info=CLIENT_INFO) as client:
        with pytest.raises(LocalProtocolError, match="a timeout must be greater than zero"):
            client.request(*call_bad("small"), timeout=timeout)
        client.request(*call_bad("small"), timeout=math.inf)
