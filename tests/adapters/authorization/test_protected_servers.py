"""`access=` of the servers, in processes of their own: what clients get with and without tokens."""

import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from joserfc.jwk import ECKey

from sansmcp.auth.jose import Signer, new_proof_signer
from sansmcp_io.blocking import connect_http
from sansmcp_io.oauth import FunctionUserAgent, OAuth
from tests.support.http import protected
from tests.support.http.authorized import AuthorizedHandler, consent
from tests.support.http.protected import SECONDS, Answer, Protected, Servers
from tests.support.http.server_endpoint import (
    LEGACY,
    POST,
    modern_headers,
    modern_tool_call,
    tool_call,
)
from tests.support.wire import INITIALIZED, initialize

KINDS = ("asyncio", "trio", "asgi", "wsgi")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Servers of all kinds, and their authorization server."""
    yield from protected.servers()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of server."""
    name: str = request.param
    return name


@pytest.fixture
def server(servers: Servers, kind: str) -> Protected:
    """A server of each kind, whose tokens are JWTs."""
    return servers.get(kind, "jwt")


def metadata_url(server: Protected) -> str:
    return f"{server.origin}/.well-known/oauth-protected-resource/mcp"


# ---------------------------------------------------------------------- without a good token


def test_the_metadata_is_at_its_well_known_path(server: Protected) -> None:
    """A client without a token finds the authorization server, also from the page of a browser."""
    answer = server.ask("GET", metadata_url(server), origin="https://page.example")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.last["resource"] == server.url
    assert answer.last["authorization_servers"] == [server.issuer.url]

    asked = {"origin": "https://page.example", "access_control_request_method": "GET"}
    preflight = server.ask("OPTIONS", metadata_url(server), b"", **asked)
    assert preflight.status in (200, 204)
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert server.ask("HEAD", metadata_url(server)).body == b""
    assert server.ask("POST", metadata_url(server), b"{}").status == 405
    assert server.ask("GET", f"{metadata_url(server)}/more").status == 404


def test_a_request_without_a_token_says_where_to_get_one(server: Protected) -> None:
    """Nothing of the request has an effect, whatever its method is."""
    in_query = f"{server.url}?access_token={server.issuer.signed(server.url)}"
    for answer in (
        server.call(None),
        server.ask("DELETE", server.url, mcp_session_id="s", mcp_protocol_version=LEGACY),
        server.ask("POST", in_query, b"{}", **POST),
        server.post({}, authorization="Basic YTpi"),
    ):
        assert answer.status == 401
        for scheme in ("DPoP ", "Bearer "):
            assert scheme in answer.challenge
        assert f'resource_metadata="{metadata_url(server)}"' in answer.challenge
        assert 'scope="read"' in answer.challenge
        assert "error=" not in answer.challenge  # RFC 6750, 3.1


def test_a_token_that_is_not_for_this_server_is_refused(server: Protected) -> None:
    """Each is right but for one thing."""
    mine = server.issuer.signed
    another = ECKey.generate_key("P-256", {"kid": "1"})
    wrong = {
        "no JWT": "x",
        "audience": mine(f"{server.origin}/other"),
        "issuer": mine(server.url, iss="https://as.example"),
        "time": mine(server.url, exp=int(time.time()) - 600),
        "signature": mine(server.url, another),
    }
    for what, token in wrong.items():
        answer = server.call(token)
        assert answer.status == 401, what
        assert 'error="invalid_token"' in answer.challenge, what
        assert token not in str(answer), what
    answer = server.call(mine(server.url, scope="other"))
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.challenge


def test_credentials_that_can_be_read_in_two_ways_are_refused(server: Protected) -> None:
    """A proxy in front may have read the other one."""
    token, other = (server.issuer.signed(server.url, sub=name) for name in ("ann", "bob"))
    message = modern_tool_call(1, "who")
    body = json.dumps(message).encode()
    fields = [*POST.items(), *modern_headers(message).items()]

    def post(*values: str, query: str = "") -> Answer:
        headers = [*fields, *(("authorization", f"Bearer {value}") for value in values)]
        response = server.http.post(server.url + query, content=body, headers=headers)
        return Answer(response.status_code, response.headers, response.content)

    assert post(token).text == "ann read"
    query = f"?access_token={other}"
    for answer in (post(token, other), post(token, token), post(token, query=query)):
        assert answer.status == 400
        assert 'error="invalid_request"' in answer.challenge
        assert b"result" not in answer.body


def test_a_request_is_checked_whatever_its_method_is(server: Protected, kind: str) -> None:
    """Also that for a stream: a session id opens nothing. Methods without a use need no token."""
    session = {"mcp_session_id": "s", "mcp_protocol_version": LEGACY}
    served = {"POST", "DELETE"} if kind == "wsgi" else {"POST", "DELETE", "GET"}
    for method in ("GET", "HEAD", "PUT", "DELETE", "POST"):
        fields = {**POST, **session}
        refused = server.ask(method, server.url, b"", **fields)
        if method not in served:
            assert refused.status == 405, method
        else:
            assert refused.status == 401, method
            assert f'resource_metadata="{metadata_url(server)}"' in refused.challenge, method


def test_preflights_need_no_token(server: Protected) -> None:
    """Browsers send them without credentials, and the request only after them."""
    page = "https://page.example"
    fields = {
        "origin": page,
        "access_control_request_method": "POST",
        "access_control_request_headers": "authorization, dpop, content-type",
    }
    answer = server.ask("OPTIONS", server.url, b"", **fields)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == page
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert "authorization" in allowed
    assert "dpop" in allowed

    refused = server.post({}, origin=page)
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == page
    assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]
    other = server.ask("OPTIONS", server.url, b"", **{**fields, "origin": "https://bad.example"})
    assert other.status == 403


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_clients_of_either_version_of_http_are_checked(server: Protected, version: str) -> None:
    """By bytes: nothing of a request is looked at before its token, its body least of all."""
    host, _, port = server.origin.removeprefix("http://").partition(":")
    message = modern_tool_call(1, "who")
    body = json.dumps(message).encode()

    def send(*fields: str, body: bytes) -> bytes:
        named = {**POST, **modern_headers(message)}
        lines = [f"{name}: {value}" for name, value in named.items()]
        lines += [f"Host: {host}:{port}", f"Content-Length: {len(body)}", "Connection: close"]
        head = "\r\n".join([f"POST /mcp HTTP/{version}", *lines, *fields, "", ""])
        with socket.create_connection((host, int(port)), SECONDS) as connection:
            connection.sendall(head.encode() + body)
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    assert send(body=b"no JSON").split(b" ")[1] == b"401"
    token = server.issuer.signed(server.url)
    assert b"ann read" in send(f"Authorization: Bearer {token}", body=body)


@pytest.mark.parametrize("kind", ["asyncio", "trio", "asgi"])
def test_a_body_is_asked_for_after_the_check(server: Protected) -> None:
    """Strangers must not have a server read what they send (AUTH-335)."""
    host, _, port = server.origin.removeprefix("http://").partition(":")
    lines = [f"{name}: {value}" for name, value in POST.items()]
    lines += [f"Host: {host}:{port}", "Content-Length: 1000000", "Expect: 100-continue"]

    def first_line(*fields: str) -> bytes:
        with socket.create_connection((host, int(port)), SECONDS) as connection:
            connection.sendall(
                "\r\n".join(["POST /mcp HTTP/1.1", *lines, *fields, "", ""]).encode()
            )
            return connection.makefile("rb").readline()

    assert first_line().split(b" ")[1] == b"401"
    token = server.issuer.signed(server.url)
    assert first_line(f"Authorization: Bearer {token}").split(b" ")[1] == b"100"


# ------------------------------------------------------------------------- with a good token


def test_a_good_token_works_and_its_keys_are_kept(server: Protected) -> None:
    """The keys of the issuer are read for the first token, and not for each."""
    for number in range(3):
        answer = server.call(server.issuer.signed(server.url, jti=str(number)))
        assert (answer.status, answer.text) == (200, "ann read")
    read = server.issuer.realm.count("/keys")
    assert server.call(server.issuer.signed(server.url, sub="bob")).text == "bob read"
    assert server.issuer.realm.count("/keys") == read


def test_a_session_belongs_to_the_user_and_not_to_the_token(server: Protected, kind: str) -> None:
    """A refreshed token with more scopes goes on in it; to another user it does not exist."""
    issuer = server.issuer

    def post(message: Any, session: str, **claims: Any) -> Answer:
        fields = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
        return server.post(message, issuer.signed(server.url, **claims), **fields)

    answer = server.post(initialize(0, LEGACY), issuer.signed(server.url))
    assert answer.status == 200
    session = answer.headers["mcp-session-id"]
    assert post(INITIALIZED, session).status == 202

    who = tool_call(1, "who")
    assert post(who, session).text == "ann read"
    refreshed = {"jti": "2", "exp": int(time.time()) + 900, "scope": "read write"}
    assert post(who, session, **refreshed).text == "ann read write"
    assert post(who, session, sub="bob").status == 404
    assert post(who, session, client_id="other").status == 404
    assert server.post(who, mcp_session_id=session, mcp_protocol_version=LEGACY).status == 401
    end = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    for method in ("DELETE",) if kind == "wsgi" else ("DELETE", "GET"):
        bob = f"Bearer {issuer.signed(server.url, sub='bob')}"
        fields = {"accept": "text/event-stream", "authorization": bob, **end}
        assert server.ask(method, server.url, b"", **fields).status == 404, method
    assert post(who, session).text == "ann read"  # they have not ended it


def test_a_tool_that_needs_more_scopes_is_forbidden(server: Protected) -> None:
    """The client learns all scopes to ask for, where the status is not sent yet."""
    token = server.issuer.signed(server.url)
    answer = server.call(token, "write")
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.challenge
    assert 'scope="read write"' in answer.challenge
    assert f'resource_metadata="{metadata_url(server)}"' in answer.challenge
    assert answer.last["id"] == 1
    assert answer.last["error"]["data"] == {"error": "insufficient_scope", "scope": "write"}

    late = server.call(token, "write", late=True)
    assert (late.status, "www-authenticate" in late.headers) == (200, False)
    assert late.last["error"]["data"] == {"error": "insufficient_scope", "scope": "write"}

    more = server.issuer.signed(server.url, scope="read write")
    assert server.call(more, "write").text == "ann read write"


def test_a_third_party_never_gets_the_token(server: Protected) -> None:
    """Not even by all that a handler can see of the request (AUTH-051, AUTH-052)."""
    token = server.issuer.signed(server.url, sub="carol")
    server.issuer.told.clear()
    assert server.call(token, "forward").text == "carol read"
    (told,) = server.issuer.told
    assert "carol" in told
    for part in token.split("."):
        assert part not in told
    assert "authorization" not in told.lower()


@pytest.mark.parametrize("kind", ["asyncio", "trio", "asgi"])
def test_a_stream_goes_on_after_its_token_has_expired(servers: Servers, kind: str) -> None:
    """A request is judged when it comes. What is open was granted, and nothing more is."""
    server = servers.get(kind, "jwt")
    token = server.issuer.signed(server.url, exp=int(time.time()) - 24)  # 30 seconds are allowed
    opened = server.post(initialize(0, LEGACY), token)
    fields = {
        "mcp_session_id": opened.headers["mcp-session-id"],
        "mcp_protocol_version": LEGACY,
        "authorization": f"Bearer {token}",
        "accept": "text/event-stream",
    }
    assert server.post(INITIALIZED, **fields).status == 202
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    with server.http.stream("GET", server.url, headers=headers) as stream:
        assert stream.status_code == 200
        while server.call(token).status != 401:
            time.sleep(0.1)  # by the clock of the server
        assert server.ask("GET", server.url, b"", **fields).status == 401
        assert server.call(server.issuer.signed(server.url), "publish").status == 200
        assert any("list_changed" in line for line in stream.iter_lines())


# ----------------------------------------------------------------------- bound to a key


def bound_call(
    server: Protected, token: str, signer: Signer | None, nonce: str | None = None, jti: str = "1"
) -> Answer:
    """Call a tool with a token that is bound to a key, and a proof if there is a key."""
    fields = {"authorization": f"DPoP {token}"}
    if signer is not None:
        digest = hashlib.sha256(token.encode()).digest()
        claims: dict[str, Any] = {
            **{"htm": "POST", "htu": server.url, "iat": int(time.time()), "jti": jti},
            "ath": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        }
        fields["dpop"] = signer.sign(claims if nonce is None else {**claims, "nonce": nonce})
    return server.call(None, fields=fields)


def test_a_bound_token_needs_its_key(server: Protected) -> None:
    """Whoever has stolen the token only, or a proof with it, gets nothing."""
    signer = new_proof_signer()
    bound = server.issuer.signed(server.url, cnf={"jkt": signer.thumbprint})
    plain = server.call(bound)
    assert plain.status == 401
    assert 'error="invalid_token"' in plain.challenge
    without = bound_call(server, bound, None)
    assert without.status == 401
    assert 'error="invalid_dpop_proof"' in without.challenge

    asked = bound_call(server, bound, signer)
    assert asked.status == 401
    assert 'error="use_dpop_nonce"' in asked.challenge
    nonce = asked.headers["dpop-nonce"]
    theirs = bound_call(server, bound, new_proof_signer(), nonce)
    assert theirs.status == 401
    assert bound_call(server, bound, signer, nonce).text == "ann read"
    again = bound_call(server, bound, signer, nonce)
    assert again.status == 401
    assert bound_call(server, bound, signer, nonce, jti="2").text == "ann read"


# ----------------------------------------------------------------------------- verifiers


def test_an_authorization_server_is_asked_about_tokens(servers: Servers, kind: str) -> None:
    """A token that it revokes is refused at once; when it is away, the client is not blamed."""
    server = servers.get(kind, "introspection")
    issuer = server.issuer
    issuer.claims = {"opaque": issuer.claims_for(server.url)}
    assert server.call("opaque").text == "ann read"
    assert server.call("unknown").status == 401
    issuer.claims["opaque"] = issuer.claims_for(f"{server.origin}/other")
    assert server.call("opaque").status == 401
    issuer.claims.clear()
    assert server.call("opaque").status == 401

    usual = issuer.realm.replaced["/introspect"]
    issuer.realm.replaced["/introspect"] = lambda handler: handler.connection.close()
    try:
        answer = server.call("new")  # a token that is not active is not asked about again at once
    finally:
        issuer.realm.replaced["/introspect"] = usual
    assert answer.status == 503
    assert "www-authenticate" not in answer.headers


def test_requests_that_come_together_are_all_checked(servers: Servers, kind: str) -> None:
    """Those with one token wait for one answer, also in threads; others are not delayed by it."""
    server = servers.get(kind, "introspection")
    issuer = server.issuer
    issuer.claims = {
        name: issuer.claims_for(server.url, sub=name) for name in ("ann", "bob", "carol")
    }
    names = ["ann", "bob", "carol", "nobody"] * 3
    with ThreadPoolExecutor(len(names)) as threads:
        answers = list(threads.map(server.call, names))
    for name, answer in zip(names, answers, strict=True):
        if name == "nobody":
            assert answer.status == 401
        else:
            assert answer.text == f"{name} read"


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("asyncio", "async"),
        ("trio", "async"),
        ("asgi", "async"),
        ("asyncio", "plain"),
        ("wsgi", "plain"),
    ],
)
def test_a_function_of_the_application_verifies_tokens(
    servers: Servers, kind: str, how: str
) -> None:
    """It may be plain or async, and its failure is none of the client."""
    server = servers.get(kind, how)
    assert server.call("good").text == "ann read"
    refused = server.call("bad")
    assert refused.status == 401
    assert 'error="invalid_token"' in refused.challenge
    for token in ("broken", "odd"):
        failed = server.call(token)
        assert failed.status == 503
        assert b"database" not in failed.body
    assert server.call("good").status == 200


@pytest.mark.parametrize("kind", ["asyncio", "trio", "asgi"])
def test_a_function_of_the_application_has_its_time(servers: Servers, kind: str) -> None:
    """`lookup_timeout`; then the function is cancelled, and the next request is served."""
    server = servers.get(kind, "async", timeout="0.3")
    late = server.call("endless")
    assert late.status == 503
    assert late.headers["retry-after"] == "5"
    assert "www-authenticate" not in late.headers
    assert server.call("good").text == "ann read"


def test_an_authorization_server_has_its_time(servers: Servers, kind: str) -> None:
    """Those who wait for one answer do not wait longer than one does."""
    server = servers.get(kind, "introspection", timeout="0.3")
    issuer = server.issuer
    issuer.claims = {"opaque": issuer.claims_for(server.url)}
    usual = issuer.realm.replaced["/introspect"]
    is_over = threading.Event()

    def answer(handler: AuthorizedHandler) -> None:
        is_over.wait(SECONDS)
        handler.give({"active": True, **issuer.claims_for(server.url)})

    issuer.realm.replaced["/introspect"] = answer
    try:
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(server.call, ["opaque"] * 3))
    finally:
        issuer.realm.replaced["/introspect"] = usual
        is_over.set()
    for late in answers:
        assert late.status == 503
        assert late.headers["retry-after"] == "5"
    until = time.monotonic() + SECONDS
    while server.call("opaque").status == 503:  # it waits for the answer that is on its way
        assert time.monotonic() < until
    assert server.call("opaque").text == "ann read"


def test_an_authorization_server_that_never_answers_is_given_up(
    servers: Servers, kind: str
) -> None:
    """No one keeps the time of the verifier: the sender of its request does. It is not blamed on
    the client, and is over as soon as the endpoint answers again.
    """
    server = servers.get(kind, "introspection", verifier_timeout="0.4")
    issuer = server.issuer
    issuer.claims = {"opaque": issuer.claims_for(server.url)}
    usual = issuer.realm.replaced["/introspect"]
    is_over = threading.Event()
    issuer.realm.replaced["/introspect"] = lambda _handler: is_over.wait(SECONDS)
    try:
        began = time.monotonic()
        with ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(server.call, ["opaque", "opaque"]))
        assert 0.4 <= time.monotonic() - began < 30  # `lookup_timeout` is 60
    finally:
        issuer.realm.replaced["/introspect"] = usual
        is_over.set()
    for failed in answers:
        assert failed.status == 503
        assert b"cannot be verified now" in failed.body
        assert "www-authenticate" not in failed.headers
    assert server.call("opaque").text == "ann read"


def test_kept_keys_serve_while_newer_ones_are_read(servers: Servers, kind: str) -> None:
    """An authorization server that is slow makes no request slow whose token it has signed."""
    server = servers.get(kind, "jwt", max_age="0.001")
    issuer = server.issuer
    assert server.call(None).status == 401
    usual = issuer.realm.replaced["/keys"]
    is_asked, is_over = threading.Event(), threading.Event()
    waits: list[bool] = []

    def answer(handler: AuthorizedHandler) -> None:
        is_asked.set()
        waits.append(is_over.wait(20))
        usual(handler)

    assert server.call(issuer.signed(server.url)).text == "ann read"
    issuer.realm.replaced["/keys"] = answer
    try:
        until = time.monotonic() + SECONDS
        while not is_asked.wait(0.1):  # they must be older than they may be
            assert time.monotonic() < until
            assert server.call(issuer.signed(server.url)).text == "ann read"
        assert server.call(issuer.signed(server.url, sub="bob")).text == "bob read"
        assert waits == [], "a request has waited for the keys"
    finally:
        issuer.realm.replaced["/keys"] = usual
        is_over.set()


def test_our_own_client_finds_all_by_itself(servers: Servers, kind: str) -> None:
    """Discovery, consent and tokens of a client of ours, at a server of ours."""
    server = servers.get(kind, "introspection")
    issuer = server.issuer

    def introspect(handler: Any) -> None:
        (token,) = issuer.realm.tokens
        scope = issuer.realm.tokens[token]
        handler.give({"active": True, **issuer.claims_for(server.url, scope=scope)})

    usual = issuer.realm.replaced["/introspect"]
    issuer.realm.replaced["/introspect"] = introspect
    issuer.realm.tokens.clear()
    try:
        auth = OAuth(user_agent=FunctionUserAgent(consent))
        info = {"name": "test-client", "version": "1.0"}
        with connect_http(server.url, info=info, auth=auth) as client:
            result: Any = client.request("tools/call", {"name": "who", "arguments": {}})
    finally:
        issuer.realm.replaced["/introspect"] = usual
    assert result["content"][0]["text"] == "ann read"
