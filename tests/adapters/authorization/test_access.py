"""`access=` below frameworks, and `InsufficientScope` where no token is checked."""

import json
from typing import Any
from wsgiref.util import setup_testing_defaults

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from sansmcp import JSONObject
from sansmcp.auth import ProtectedResource, ResourceServer
from sansmcp.http import OldPaths
from sansmcp_io import InsufficientScope
from sansmcp_io.asgi import App as ASGIApp
from sansmcp_io.redis import Cluster
from sansmcp_io.trio import PeerError
from sansmcp_io.wsgi import App as WSGIApp
from tests.support.adapters.on_asyncio import on_asyncio
from tests.support.adapters.trio_talk import instantly, talking
from tests.support.http.server_endpoint import POST, modern_headers, modern_tool_call

INFO: JSONObject = {"name": "server", "version": "1"}
ISSUER = "https://as.example"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def verify(token: str) -> JSONObject | None:
    """A token is the URL that it is for."""
    audience = bytes.fromhex(token).decode()
    return {"iss": ISSUER, "aud": audience, "sub": "ann", "exp": 4e9, "scope": "read"}


def handle(call: Any) -> JSONObject:
    if call.params.get("name") == "forbidden":
        raise InsufficientScope(**call.params["arguments"])
    return {"content": [{"type": "text", "text": "ok"}]}


def options(url: str) -> Any:
    """The options of an application with this URL."""
    resource = ProtectedResource(url, authorization_servers=[ISSUER])
    return {
        "info": INFO,
        "capabilities": {"tools": {}},
        "hosts": ["api.example"],
        "access": ResourceServer(resource),
        "verify_token": verify,
    }


def request_for(
    url: str, audience: str | None, name: str = "any", **arguments: Any
) -> httpx2.Request:
    """A call of a tool, with a token for that URL."""
    message = modern_tool_call(1, name, **arguments)
    headers = {**POST, **modern_headers(message)}
    if audience is not None:
        headers["authorization"] = f"Bearer {audience.encode().hex()}"
    return httpx2.Request("POST", url, json=message, headers=headers)


# -------------------------------------------------------------------------- below frameworks


@pytest.mark.parametrize("url", ["https://api.example/tools/mcp", "https://api.example/mcp"])
@on_asyncio
async def test_an_application_is_mounted_below_a_path(url: str) -> None:
    """The metadata is at the root of the host, wherever the application is, and perhaps a proxy in
    front has left out a part of the path.
    """
    app = ASGIApp(handle, path="/mcp", **options(url))
    starlette = Starlette(routes=[Mount(WELL_KNOWN, app=app), Mount("/tools", app=app)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=starlette)) as http:
        path = httpx2.URL(url).path
        document = await http.get(f"https://api.example{WELL_KNOWN}{path}")
        assert document.status_code == 200
        assert document.json()["resource"] == url
        assert (await http.get(f"https://api.example{WELL_KNOWN}/other")).status_code == 404

        here = "https://api.example/tools/mcp"
        refused = await http.send(request_for(here, None))
        assert refused.status_code == 401
        assert f'"https://api.example{WELL_KNOWN}{path}"' in refused.headers["www-authenticate"]
        assert (await http.send(request_for(here, url))).status_code == 200
        assert (await http.send(request_for(here, "https://other.example"))).status_code == 401


@pytest.mark.parametrize(("script", "path"), [("", "/mcp"), ("/tools", "/mcp"), ("", "/")])
def test_an_application_of_wsgi_has_its_metadata_at_the_root(script: str, path: str) -> None:
    """Also if the server itself is there: then nothing stands behind the well-known path."""
    url, below = f"https://api.example{script}{path}", f"https://api.example{path}"
    well_known = WELL_KNOWN + script + path.removesuffix("/")
    app = WSGIApp(handle, **options(url))
    with httpx2.Client(transport=httpx2.WSGITransport(app=app, script_name=script)) as http:
        refused = http.send(request_for(below, None))
        assert refused.status_code == 401
        assert f'"https://api.example{well_known}"' in refused.headers["www-authenticate"]
        assert http.send(request_for(below, url)).status_code == 200
    with httpx2.Client(transport=httpx2.WSGITransport(app=app)) as http:
        assert http.get(f"https://api.example{well_known}").json()["resource"] == url


def test_the_path_of_a_resource_may_need_an_encoding() -> None:
    """Servers of WSGI decode it, and write each byte as one character (PEP 3333)."""
    url = "https://api.example/m%C3%A9"
    app, statuses = WSGIApp(handle, **options(url)), list[str]()

    def start_response(status: str, _fields: object) -> None:
        statuses.append(status)

    environ: dict[str, Any] = {"PATH_INFO": f"{WELL_KNOWN}/m\xc3\xa9", "HTTP_HOST": "api.example"}
    setup_testing_defaults(environ)
    body = b"".join(app(environ, start_response))
    assert statuses == ["200 OK"]
    assert json.loads(body)["resource"] == url


@pytest.mark.parametrize("how", ["asgi", "wsgi"])
@on_asyncio
async def test_another_host_gets_no_challenge_and_no_check(how: str) -> None:
    """A name that an attacker has led here is refused first; the metadata do not repeat it."""
    url, other = "https://api.example/mcp", "https://evil.example"
    seen: list[str] = []
    given: Any = {**options(url), "verify_token": seen.append}
    requests = [
        request_for(f"{other}/mcp", url),
        httpx2.Request("GET", other + WELL_KNOWN + "/mcp"),
    ]
    if how == "asgi":
        transport = httpx2.ASGITransport(app=ASGIApp(handle, **given))
        async with httpx2.AsyncClient(transport=transport) as http:
            refused, document = [await http.send(request) for request in requests]
    else:
        with httpx2.Client(transport=httpx2.WSGITransport(app=WSGIApp(handle, **given))) as same:
            refused, document = [same.send(request) for request in requests]
    assert refused.status_code == 403
    assert "www-authenticate" not in refused.headers
    assert seen == []
    assert b"evil" not in document.content
    assert document.json()["resource"] == url


@on_asyncio
async def test_the_paths_of_old_clients_are_protected_as_well() -> None:
    """Clients of 2024-11-05 have two, both with the tokens of the resource."""
    url = "https://api.example/mcp"
    old = OldPaths(stream="/sse", post="/post")
    app = ASGIApp(handle, path="/mcp", old_paths=old, **options(url))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
        stream = await http.get("https://api.example/sse", headers={"accept": "text/event-stream"})
        posted = await http.post("https://api.example/post?session=s", json={})
    for refused in (stream, posted):
        assert refused.status_code == 401
        challenge = refused.headers["www-authenticate"]
        assert f'"https://api.example{WELL_KNOWN}/mcp"' in challenge


@pytest.mark.parametrize("names", [("any", "forbidden"), ("forbidden", "any")])
@on_asyncio
async def test_a_call_of_a_batch_that_is_forbidden_takes_no_other_with_it(
    names: tuple[str, str],
) -> None:
    """They share a response, whose status and challenge would be for all of them (2025-03-26)."""
    url = "https://api.example/mcp"
    arguments = {"scopes": ["write"]}
    batch = [
        {
            **{"jsonrpc": "2.0", "id": number, "method": "tools/call"},
            "params": {"name": name, "arguments": arguments if name == "forbidden" else {}},
        }
        for number, name in enumerate(names)
    ]
    headers = {
        **{**POST, "mcp-protocol-version": "2025-03-26"},
        "authorization": f"Bearer {url.encode().hex()}",
    }
    transport = httpx2.ASGITransport(app=ASGIApp(handle, sessions=False, **options(url)))
    async with httpx2.AsyncClient(transport=transport) as http:
        response = await http.post(url, json=batch, headers=headers)
        unchecked = await http.post(url, json=batch, headers={**headers, "authorization": ""})
    assert response.status_code == 200
    assert "www-authenticate" not in response.headers
    found = {one["id"]: one for one in response.json()}
    good, forbidden = names.index("any"), names.index("forbidden")
    assert found[good]["result"]["content"][0]["text"] == "ok"
    assert found[forbidden]["error"]["data"] == {"error": "insufficient_scope", "scope": "write"}
    assert unchecked.status_code == 401


def test_a_cluster_does_not_say_again_how_principals_are_carried() -> None:
    """One of the two would be ignored."""
    cluster = Cluster("redis://localhost", dump_principal=str, load_principal=str)
    with pytest.raises(ValueError, match="leave out dump_principal and load_principal"):
        ASGIApp(handle, cluster=cluster, **options("https://api.example/mcp"))


# ----------------------------------------------------------------------- `InsufficientScope`


@pytest.mark.parametrize(
    ("arguments", "challenge", "message"),
    [
        (
            {"scopes": ["read", "write"]},
            'error_description="the token lacks a scope that this request needs", '
            'scope="read write"',
            "the token lacks a scope that this request needs",
        ),
        (
            {"scopes": "write", "text": 'für "x"\r\nX: \\'},
            'error_description="f?r \'x\' X: /", scope="write"',
            'für "x"\r\nX: \\',
        ),
    ],
)
@pytest.mark.parametrize("how", ["asgi", "wsgi"])
@on_asyncio
async def test_a_handler_forbids_a_call(
    how: str, arguments: JSONObject, challenge: str, message: str
) -> None:
    """Also where tokens are not checked by this library, and whatever its text is."""
    url = "http://127.0.0.1/mcp"
    settings: Any = {"info": INFO, "capabilities": {"tools": {}}}
    request = request_for(url, None, "forbidden", **arguments)
    if how == "asgi":
        transport = httpx2.ASGITransport(app=ASGIApp(handle, **settings))
        async with httpx2.AsyncClient(transport=transport) as http:
            response = await http.send(request)
    else:
        with httpx2.Client(transport=httpx2.WSGITransport(app=WSGIApp(handle, **settings))) as same:
            response = same.send(request)
    assert response.status_code == 403
    expected = f'Bearer error="insufficient_scope", {challenge}'
    assert response.headers["www-authenticate"] == expected
    error = json.loads(response.content)["error"]
    assert (error["code"], error["message"]) == (-32600, message)


@on_asyncio
async def test_a_scope_that_is_none_forbids_the_call_too(caplog: pytest.LogCaptureFixture) -> None:
    """It is a fault of the handler, which the log names; the client gets no result."""
    app = ASGIApp(handle, info=INFO, capabilities={"tools": {}})
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
        request = request_for("http://127.0.0.1/mcp", None, "forbidden", scopes=["a b"])
        response = await http.send(request)
    assert response.json()["error"]["code"] == -32603
    assert "'a b'" in caplog.text


@instantly()
async def test_a_handler_forbids_a_call_without_http() -> None:
    """There is no status, so the error says it."""
    async with talking(handle) as client:
        params = {"name": "forbidden", "arguments": {"scopes": ["read", "write"]}}
        with pytest.raises(PeerError) as caught:
            await client.request("tools/call", params)
    assert caught.value.code == -32600
    assert caught.value.data == {"error": "insufficient_scope", "scope": "read write"}


def test_the_exception_says_what_is_missing() -> None:
    """For a log."""
    assert str(InsufficientScope("write", "no")) == "no: write"
    assert InsufficientScope({"write"}).scopes == ("write",)
