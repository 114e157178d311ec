"""Host, Origin and CORS: the origins whose requests are accepted."""

from typing import Any

import pytest

from tests.support.http.server_endpoint import (
    GET,
    JSON,
    POST,
    answer,
    broken,
    connect,
    new_endpoint,
    post,
    request,
    tool_call,
)
from tests.support.wire import initialize

APP = "https://app.example"

# ---------------------------------------------------------------------------------- Host, Origin


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:65535",
        " localhost ",
    ],
)
def test_loopback_hosts_are_served(host: str) -> None:
    """Local clients use loopback names."""
    assert answer(post(new_endpoint(), initialize(1, "2025-11-25"), {"host": host})).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "localhost:x",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "::1",
        "",
        "localhost:123456",
        "api.example",
    ],
)
def test_other_hosts_are_refused_with_the_setting(host: str) -> None:
    """A page whose host name resolves to this machine must be refused (DNS rebinding)."""
    exchange = post(new_endpoint(), initialize(1, "2025-11-25"), {"host": host})
    response = answer(exchange)

    assert exchange.refused
    assert response.status == 403
    assert "hosts=" in response.json["error"]["message"]
    assert "id" not in response.json


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("api.example", 200),
        ("API.example:8443", 200),
        ("one.example:8443", 200),
        ("one.example", 403),
        ("one.example:8444", 403),
        ("[2001:db8::1]:80", 200),
        ("localhost:1", 200),
        ("sub.api.example", 403),
        ("api.example:", 200),
        ("localhost:", 200),
        ("localhost::", 403),
    ],
)
def test_hosts_widens_what_is_served(host: str, status: int) -> None:
    """A name without a port must allow all ports."""
    endpoint = new_endpoint(hosts=("Api.example", "one.example:8443", "[2001:db8::1]"))

    assert answer(post(endpoint, initialize(1, "2025-11-25"), {"host": host})).status == status


def test_any_host_can_be_served() -> None:
    """A proxy in front may have checked the host."""
    endpoint = new_endpoint(hosts=["*"])

    assert answer(post(endpoint, initialize(1, "2025-11-25"), {"host": "x.example"})).status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://localhost", 200),
        ("https://LOCALHOST:3000", 200),
        ("http://127.0.0.1:5", 200),
        ("http://[::1]", 200),
        ("null", 403),
        ("", 403),
        ("http://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("file://localhost", 403),
        ("http://localhost/", 403),
    ],
)
def test_pages_of_other_origins_are_refused(origin: str | None, status: int) -> None:
    """HTTP-002: a client that is no page sends no Origin, and must be served."""
    endpoint = new_endpoint()
    fields = {} if origin is None else {"origin": origin}
    response = answer(post(endpoint, initialize(1, "2025-11-25"), fields))

    assert response.status == status
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert ("HTTP-001" in broken(endpoint)) == (status == 403)


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT"])
def test_origin_is_checked_for_every_method(method: str) -> None:
    """HTTP-001: the origin must be checked on every connection."""
    fields = {**GET, "origin": "https://evil.example"}

    assert answer(request(new_endpoint(), method, fields)).status == 403


@pytest.mark.parametrize("field", ["host", "origin", "content-type", "content-length"])
def test_a_field_that_comes_twice_is_refused(field: str) -> None:
    """A proxy in front of this server may have read the other header."""
    endpoint = new_endpoint()
    twice = [(field, "localhost"), (field, "localhost")]
    exchange = endpoint.exchange("POST", "/mcp", [*POST.items(), *twice])

    assert answer(exchange).status == 400
    assert broken(endpoint) == ["OWN-037"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"hosts": "api.example"},
            "^hosts must be a list or a tuple of strings.* not 'api.example'$",
        ),
        (
            {"origins": "https://x"},
            "^origins must be a list or a tuple of strings.* not 'https://x'$",
        ),
        ({"hosts": [None]}, r"^hosts must be a list or a tuple of strings.* not \[None\]$"),
        ({"hosts": None}, "^hosts must be a list or a tuple of strings.* not None$"),
        ({"origins": [APP, 5]}, "^origins must be a list or a tuple of strings"),
    ],
)
def test_one_name_instead_of_several_raises(settings: dict[str, Any], text: str) -> None:
    """A string would be read as a sequence of one-letter hosts, and refuse every client."""
    with pytest.raises(ValueError, match=text):
        new_endpoint(**settings)


def test_names_may_be_given_by_an_iterator() -> None:
    """An iterator can be read once: after the check it would be empty and refuse every client."""
    names: Any = iter([APP])
    endpoint = new_endpoint(origins=names)
    response = answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": APP}))

    assert response.headers["access-control-allow-origin"] == APP


@pytest.mark.parametrize(
    "settings",
    [
        {"origins": ["https://app.example/"]},
        {"origins": ["app.example"]},
        {"origins": ["https://app.example:https"]},
        {"origins": [""]},
        {"hosts": ["https://api.example"]},
        {"hosts": ["api.example/mcp"]},
        {"hosts": ["2001:db8::1"]},
        {"hosts": ["[api.example]"]},
        {"hosts": ["api .example"]},
        {"hosts": [""]},
    ],
)
def test_a_name_that_nobody_can_have_raises(settings: dict[str, Any]) -> None:
    """The setting would refuse the intended clients, and its author would see no error."""
    with pytest.raises(ValueError, match="is like"):
        new_endpoint(**settings)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("https://app.example:443", "write 'https://app.example'$"),
        ("HTTP://app.example:80", "write 'HTTP://app.example'$"),
        ("https://app.example:99999", "write a port from 1 to 65535, or none"),
        ("https://app.example:08443", "write a port from 1 to 65535, or none"),
        ("https://app.example:0", "write a port from 1 to 65535, or none"),
        ("https://*.example", r'write each of them by itself, or "\*" for all'),
        ("https://.app.example", "write each of them by itself"),
        ("https://b\xfccher.example", r"write the name in ASCII \(xn--"),
        ("https://app..example", "write a name of letters"),
        ("https://app.example%20", "write a name of letters"),
        ("https://[::g]", "is like"),
        ("https://[:::]", "write an address of IPv6"),
        ("https://[1.2.3.4]", "write an address of IPv6"),
        ("ws://a:80", "write 'ws://a'$"),
        ("wss://a:443", "write 'wss://a'$"),
        ("ftp://a:21", "write 'ftp://a'$"),
        ("https://127.1", r"write the address as a browser does, 127\.0\.0\.1$"),
        ("https://0x7f.1", r"write the address as a browser does, 127\.0\.0\.1$"),
        ("http://0X7F000001:8080", r"write the address as a browser does, 127\.0\.0\.1$"),
        ("http://10.0x.258", r"write the address as a browser does, 10\.0\.1\.2$"),
        ("https://010.0.0.1", r"write the address as a browser does, 8\.0\.0\.1$"),
        ("https://10.0.0.1.", r"write the address as a browser does, 10\.0\.0\.1$"),
        ("ws://2130706433", r"write the address as a browser does, 127\.0\.0\.1$"),
        ("https://10.0.0.256", "the last part of a name is no number"),
        ("https://256.1", "the last part of a name is no number"),
        ("https://1.2.3.4.0", "the last part of a name is no number"),
        ("https://app.example.08", "the last part of a name is no number"),
        ("https://1_0.1", "the last part of a name is no number"),
        ("https://4294967296", "the last part of a name is no number"),
        ("https://[0:0::1]:8443", r"write the address in its shortest form, \[::1\]"),
    ],
)
def test_an_origin_that_no_browser_sends_raises_and_says_what_to_write(name: str, why: str) -> None:
    """The setting would match no request, and its author would see no error."""
    with pytest.raises(ValueError, match=why):
        new_endpoint(origins=["https://other.example", name])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("api.example:443", "write 'api.example'$"),
        ("[2001:db8::1]:80", r"write '\[2001:db8::1\]'$"),
        ("api.example:99999", "write a port from 1 to 65535, or none"),
        ("*.api.example", r'write each of them by itself, or "\*" for all'),
        ("b\xfccher.example", r"write the name in ASCII \(xn--"),
        ("[2001:0db8::1]", r"write the address in its shortest form, \[2001:db8::1\]"),
    ],
)
def test_a_host_that_no_client_sends_raises_and_says_what_to_write(name: str, why: str) -> None:
    """The setting would match no request, as with origins."""
    with pytest.raises(ValueError, match=why):
        new_endpoint(hosts=["other.example", name])


@pytest.mark.parametrize(
    ("origins", "rule"),
    [
        (None, "only pages from loopback addresses may, as origins= is not set"),
        ([APP], "only those in origins= of the endpoint may"),
        ([], "only those in origins= of the endpoint may"),
    ],
)
def test_a_refusal_of_an_origin_says_the_rule_that_holds(origins: Any, rule: str) -> None:
    """Where origins are named, pages from loopback addresses are refused too."""
    endpoint = new_endpoint(origins=origins)
    origin = "https://evil.example" if origins is None else "http://localhost:3000"
    response = answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": origin}))

    assert response.status == 403
    assert rule in response.json["error"]["message"]


@pytest.mark.parametrize(
    "origin",
    [
        "https://[2001:db8::1]:8443",
        "vscode-webview://abc-1",
        "app://127.1",
        "https://10.0.0.1:8443",
        "http://a.1b",
    ],
)
def test_origins_may_be_of_any_kind(origin: str) -> None:
    """Pages in desktop programs have schemes of their own."""
    endpoint = new_endpoint(origins=[origin])
    response = answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": origin}))

    assert response.headers["access-control-allow-origin"] == origin


# ---------------------------------------------------------------------------------------- CORS


def test_an_allowed_page_may_read_every_response() -> None:
    """Without CORS headers on an error, a page learns only that the request failed."""
    endpoint = new_endpoint(origins=(APP,))
    for response in (
        answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": APP})),
        answer(post(endpoint, b"{", {"origin": APP})),
        answer(post(endpoint, tool_call(), {"origin": APP})),
        answer(post(endpoint, tool_call(), {"origin": APP, "host": "evil.example"})),
        answer(request(endpoint, "PUT", {"origin": APP})),
        answer(request(endpoint, "GET", {"origin": APP, "accept": JSON})),
    ):
        assert response.headers["access-control-allow-origin"] == APP
        assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]
        assert response.headers["vary"] == "Origin"


def test_a_stream_has_the_fields_too() -> None:
    """A stream needs the CORS headers like any other response."""
    one = connect(new_endpoint(origins=(APP,)))

    assert answer(one.get({"origin": APP})).headers["access-control-allow-origin"] == APP


def test_another_page_gets_none() -> None:
    """Where origins are named, loopback pages must get no CORS headers either."""
    endpoint = new_endpoint(origins=(APP,))
    for origin in ("https://evil.example", "http://localhost:3000", "null"):
        response = answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": origin}))
        assert response.status == 403
        assert "access-control-allow-origin" not in response.headers
    response = answer(post(endpoint, initialize(1, "2025-11-25")))
    assert response.status == 200
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("origin", "status"), [("https://x.example", 200), ("null", 200), ("é", 403)]
)
def test_any_page_can_be_allowed(origin: str, status: int) -> None:
    """With any origin allowed, the response must name that of the page, if it fits in a header."""
    response = answer(
        post(new_endpoint(origins=["*"]), initialize(1, "2025-11-25"), {"origin": origin})
    )

    assert response.status == status
    assert (response.headers.get("access-control-allow-origin") == origin) == (status == 200)


def test_null_can_be_named() -> None:
    """Sandboxed pages have the origin `null`."""
    endpoint = new_endpoint(origins=["null"])

    assert answer(post(endpoint, initialize(1, "2025-11-25"), {"origin": "null"})).status == 200


@pytest.mark.parametrize(
    ("asked_for", "allowed"),
    [
        ("content-type, mcp-param-region", "content-type, mcp-param-region"),
        ("x\r\nset-cookie: a", None),
        (None, None),
    ],
)
def test_a_preflight_is_answered(asked_for: str | None, allowed: str | None) -> None:
    """A browser asks before it POSTs JSON, also for `Mcp-Param-*` headers with any name."""
    fields = {"origin": APP, "access-control-request-method": "POST"}
    if asked_for is not None:
        fields["access-control-request-headers"] = asked_for
    response = answer(request(new_endpoint(origins=(APP,)), "OPTIONS", fields))

    assert response.status == 204
    assert response.headers["access-control-allow-origin"] == APP
    assert response.headers["access-control-allow-methods"] == "GET, POST, DELETE, OPTIONS"
    given = response.headers["access-control-allow-headers"]
    assert given == allowed or (allowed is None and "Mcp-Session-Id" in given)
    assert response.headers["access-control-max-age"] == "600"


def test_a_preflight_is_refused_where_no_origins_are_named() -> None:
    """Without permitted origins, a browser never gets permission."""
    fields = {"origin": "http://localhost:1", "access-control-request-method": "POST"}
    response = answer(request(new_endpoint(), "OPTIONS", fields))

    assert not [name for name in response.headers if name.startswith("access-control")]


# ------------------------------------------------------------------------ what makes no exchange


def fields_of(response: Any) -> tuple[int, dict[str, str], bytes]:
    status, headers, body = response
    return status, {name.decode(): value.decode() for name, value in headers}, body


def test_a_page_can_read_what_the_transport_refuses() -> None:
    """Without CORS headers on a 404, a page learns only that the request failed."""
    endpoint = new_endpoint(origins=[APP])
    refused = endpoint.refusal(404, "not here", method="POST", headers=[("Origin", APP)])
    assert endpoint.refusal(404, "not here", method="POST", headers={"Origin": APP}) == refused
    status, headers, body = fields_of(refused)
    assert (status, body) == (404, b"not here\n")
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["content-length"] == str(len(body))
    assert headers["access-control-allow-origin"] == APP
    assert "Retry-After" in headers["access-control-expose-headers"]

    exchange = endpoint.exchange("POST", "/", {**POST, "origin": APP}.items())
    status, headers, body = fields_of(exchange.refusal(408, "too slow"))
    assert (status, body) == (408, b"too slow\n")
    assert headers["access-control-allow-origin"] == APP
    assert not exchange.ended


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 204),
        ({"origin": "https://evil.example"}, 404),
        ({"host": "evil.example"}, 404),
    ],
)
def test_a_preflight_for_another_path_lets_the_request_come(
    more: dict[str, str], status: int
) -> None:
    """After a refused preflight, a browser does not send the request and shows no status."""
    endpoint = new_endpoint(origins=[APP])
    fields = {"origin": APP, "access-control-request-method": "POST", **more}
    refused = endpoint.refusal(404, "not here", method="OPTIONS", headers=fields.items())
    found, headers, body = fields_of(refused)

    assert found == status
    assert (body == b"") == (status == 204)
    assert ("access-control-allow-methods" in headers) == (status == 204)
    others = {"origin": APP}  # no preflight
    refused = endpoint.refusal(404, "not here", method="OPTIONS", headers=others.items())
    assert fields_of(refused)[0] == 404


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [(None, None), ([], None), ([APP], APP), (["*"], "*"), ([APP, "https://b.example"], None)],
)
def test_a_request_that_was_not_read_may_be_that_of_the_one_page(
    origins: Any, allowed: str | None
) -> None:
    """Without a readable Origin, the CORS headers can name the one allowed origin only."""
    headers = fields_of(new_endpoint(origins=origins).refusal(503, "too many"))[1]

    assert headers.get("access-control-allow-origin") == allowed
