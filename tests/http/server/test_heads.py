"""The head of a request decides about methods, media types, and the form of the response."""

from typing import Any

import pytest

from sansmcp import MODERN_REVISIONS
from sansmcp.http import OldPaths, Sessions
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    POST,
    SSE,
    answer,
    body_of,
    broken,
    client,
    connect,
    drain,
    new_endpoint,
    post,
    request,
    take,
    tool_call,
)
from tests.support.wire import initialize

LISTED = "application/json, text/event-stream"


# ------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize(
    "method", ["PUT", "PATCH", "HEAD", "get", "TRACE", "", "P\xd6ST", "P\u0150ST"]
)
def test_other_methods_are_refused_with_those_there_are(method: str) -> None:
    """A client must be able to tell a wrong method from a wrong address."""
    endpoint = new_endpoint()
    response = answer(request(endpoint, method))

    assert response.status == 405
    assert response.headers["allow"] == "GET, POST, DELETE, OPTIONS"
    assert "id" not in response.json
    assert broken(endpoint) == ["OWN-037"]


@pytest.mark.parametrize(
    "fields",
    [
        POST,
        {name.encode(): value for name, value in POST.items()},
        {name.lower().encode(): value.encode() for name, value in POST.items()},
    ],
    ids=["text", "bytes and text", "bytes"],
)
def test_fields_may_be_a_mapping(fields: dict[str, str] | dict[bytes, str]) -> None:
    """A mapping was read as pairs, which raised ValueError from a method that must not raise."""
    assert not new_endpoint().exchange("POST", "/mcp", fields).refused
    assert new_endpoint().exchange("POST", "/mcp", {"accept": "text/html"}).refused


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("settings", [{"revisions": MODERN_REVISIONS}, {"stateless": True}])
def test_without_sessions_there_is_post_only(method: str, settings: dict[str, Any]) -> None:
    """COMPAT-011: without sessions there is no stream to open and nothing to delete."""
    endpoint = new_endpoint(**settings)
    response = answer(request(endpoint, method, GET))

    assert response.status == 405
    assert response.headers["allow"] == "POST, OPTIONS"
    assert broken(endpoint) == [], "clients are free to ask"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_modern_revision_has_no_other_method_beside_sessions(method: str) -> None:
    """A modern GET must be refused although the endpoint has sessions for others."""
    response = answer(
        request(new_endpoint(), method, {**GET, "mcp-protocol-version": "2026-07-28"})
    )

    assert response.status == 405
    assert response.headers["allow"] == "POST, OPTIONS"


def test_options_says_what_may_be_done() -> None:
    """Browsers and people use OPTIONS to learn which methods are allowed."""
    response = answer(request(new_endpoint(), "OPTIONS"))

    assert (response.status, response.body) == (204, b"")
    assert response.headers == {"allow": "GET, POST, DELETE, OPTIONS"}


# --------------------------------------------------------------------------------- Content-Type


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json ;charset="UTF-8"',
        "application/json; charset=us-ascii",
        "application/json; profile=x",
        " application/json ",
    ],
)
def test_json_is_recognised_however_it_is_written(kind: str) -> None:
    """Media types have parameters, and no case."""
    assert (
        answer(post(new_endpoint(), initialize(1, "2025-11-25"), {"content-type": kind})).status
        == 200
    )


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/json; charset=latin-1", "x"])
def test_other_bodies_are_refused(kind: str | None) -> None:
    """A page can send text/plain to another origin without a preflight."""
    fields = {"accept": LISTED} if kind is None else {"accept": LISTED, "content-type": kind}
    endpoint = new_endpoint()
    exchange = request(endpoint, "POST", fields, body_of(initialize(1, "2025-11-25")))

    assert exchange.refused
    assert answer(exchange).status == 415
    assert broken(endpoint) == ["OWN-037"]


@pytest.mark.parametrize(
    ("coding", "status"), [("identity", 200), ("gzip", 415), ("Identity", 200)]
)
def test_encoded_bodies_are_refused(coding: str, status: int) -> None:
    """Unpacking a foreign body would need further limits."""
    response = answer(
        post(new_endpoint(), initialize(1, "2025-11-25"), {"content-encoding": coding})
    )

    assert response.status == status


def test_a_coding_is_refused_also_where_the_head_is_known() -> None:
    """A cached head must not hide a new Content-Encoding."""
    endpoint = new_endpoint()
    assert answer(post(endpoint, initialize(1, "2025-11-25"))).status == 200

    assert (
        answer(post(endpoint, initialize(1, "2025-11-25"), {"content-encoding": "br"})).status
        == 415
    )


# -------------------------------------------------------------------------------------- Accept


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("Application/Json;q=0.1", JSON),
        ("application/*", JSON),
        (LISTED, JSON),
        ("text/event-stream", SSE),
        ("text/*", SSE),
        ("application/json;q=0, text/event-stream", SSE),
        ("application/json;q=0.0, */*", SSE),
        ("*/*;q=0, application/json", JSON),
        ("text/event-stream;q=x", SSE),
        ("text/html, ,*/*;level=1;q=0.5", JSON),
    ],
)
def test_the_answer_has_a_form_that_is_accepted(accept: str | None, form: str) -> None:
    """A strict reading of Accept is the commonest reason for which clients fail."""
    fields = {"content-type": JSON, **({} if accept is None else {"accept": accept})}
    response = answer(request(new_endpoint(), "POST", fields, body_of(initialize(1, "2025-11-25"))))

    assert response.status == 200
    assert response.headers["content-type"] == form


@pytest.mark.parametrize(
    "accept", ["text/html", "*/*;q=0", "application/json;q=0, text/event-stream;q=0"]
)
def test_nothing_acceptable_is_refused(accept: str) -> None:
    """If no form of response is accepted, the status must be 406."""
    exchange = post(new_endpoint(), initialize(1, "2025-11-25"), {"accept": accept})

    assert exchange.refused
    assert answer(exchange).status == 406


def test_get_needs_a_client_that_takes_streams() -> None:
    """HTTP-021: the only response to GET is a stream."""
    endpoint = new_endpoint()

    assert answer(request(endpoint, "GET", {"accept": JSON})).status == 406
    assert broken(endpoint) == ["HTTP-021"]


@pytest.mark.parametrize("accept", [{"accept": "*/*"}, {}])
def test_get_is_liberal_with_wildcards(accept: dict[str, str]) -> None:
    """curl sends `*/*`."""
    one = client()

    assert answer(request(one.endpoint, "GET", {**accept, **one.headers})).is_stream


@pytest.mark.parametrize("name", ["mcp-method", "accept", "mcp-param-{}"])
def test_fields_have_a_limit(name: str) -> None:
    """Each header costs memory and time."""
    for number, status in ((150, None), (300, 431)):
        endpoint = new_endpoint()
        many = [(name.format(one), "identity") for one in range(number)]
        exchange = endpoint.exchange("POST", "/mcp", [*POST.items(), *many])
        assert exchange.refused is (status is not None)
        if status is not None:
            assert answer(exchange).status == status
            assert broken(endpoint) == ["OWN-037"]


def test_a_known_head_does_not_hide_too_many_fields() -> None:
    """The cache of heads ignores `Mcp-Param-*` headers, so their number must be checked each
    time."""
    endpoint = new_endpoint()
    endpoint.exchange("POST", "/mcp", list(POST.items()))
    many = [(f"mcp-param-{number}", "x") for number in range(300)]

    assert endpoint.exchange("POST", "/mcp", [*POST.items(), *many]).refused


@pytest.mark.parametrize(
    ("length", "is_refused"),
    [
        ("0" * 20 + "5", False),
        ("0" * 20, False),
        ("0" * 20 + "9" * 8, True),
        ("9" * 30, True),
        ("x" * 30, False),
    ],
)
def test_a_length_is_read_as_the_number_that_it_is(length: str, is_refused: bool) -> None:
    """Leading zeros are allowed, so the number of digits must not matter."""
    fields = [*POST.items(), ("content-length", length)]

    assert new_endpoint().exchange("POST", "/mcp", fields).refused is is_refused


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(
    "field",
    [
        *("host", "origin", "accept", "content-type", "content-encoding", "content-length"),
        *("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"),
        *("access-control-request-headers", "x", "\udc80"),
    ],
)
def test_text_that_is_no_text_is_no_reason_to_raise(method: str, field: str) -> None:
    """Servers such as aiohttp decode invalid UTF-8 in headers to surrogates."""
    old = OldPaths(stream="/sse", post="/messages")
    endpoint = new_endpoint(origins=["*"], old_paths=old)
    session = connect(endpoint).headers
    for target in ("/mcp", "/messages?session_id=\udc80", "/\udc80"):
        for more in ({}, session):
            fields = {**POST, **more, field: "a\udc80"}
            exchange = endpoint.exchange(method, target, fields.items())
            exchange.receive_data(body_of(tool_call(1)))
            exchange.receive_end()
            take(exchange)
            exchange.receive_disconnect()
            drain(endpoint)


def test_a_session_id_that_is_no_text_names_no_session() -> None:
    """An id with invalid bytes must be unknown, however it was decoded."""
    endpoint = new_endpoint(sessions=Sessions(new_id=iter(["a?", "b"]).__next__))
    session = connect(endpoint).headers
    fields = {**POST, **session, "mcp-session-id": "a\udc80"}
    exchange = endpoint.exchange("POST", "/mcp", fields.items())
    exchange.receive_data(body_of(tool_call(1)))
    exchange.receive_end()

    assert answer(exchange).status == 404
