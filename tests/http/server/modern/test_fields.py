"""The headers of a request of 2026-07-28 agree with its body, or the request is refused."""

from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from tests.support.http.server_endpoint import (
    JSON,
    LEGACY,
    POST,
    answer,
    asked,
    body_of,
    connect,
    drain,
    modern_headers,
    modern_tool_call,
    new_endpoint,
    post,
    post_modern,
    refused,
)
from tests.support.modern import BOTH, CAPABILITIES, FILE, MODERN, VERSION, envelope, modern
from tests.support.wire import call

HOSTED = pytest.mark.parametrize("revisions", [MODERN_REVISIONS, BOTH], ids=["modern", "both"])


# -------------------------------------------------------------------------- fields and the body


@HOSTED
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_a_field_that_is_missing_is_refused(name: str, revisions: tuple[str, ...]) -> None:
    """HDR-031: a gateway that reads headers must not see less than the server."""
    message = modern_tool_call(3)
    fields = modern_headers(message)
    del fields[name]

    assert refused(new_endpoint(revisions=revisions), message, fields) == (400, -32020)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2027-01-01"),
        ("mcp-method", "tools/list"),
        ("mcp-method", "Tools/Call"),
        ("mcp-method", "=?base64?dG9vbHMvY2FsbA==?="),
        ("mcp-name", "other"),
        ("mcp-name", "T"),
        ("mcp-name", ""),
        ("mcp-name", "=?base64?%%%?="),
        ("mcp-name", "=?base64?dA?="),
        ("mcp-name", "=?base64?dA=?="),
        ("mcp-name", "=?base64?d A==?="),
        ("mcp-name", "=?base64?/w==?="),
        ("mcp-name", "=?BASE64?dA==?="),
        ("mcp-name", "=?base64?dA=="),
        ("mcp-name", "dA==?="),
        ("mcp-name", "=?base64?dB==?="),
        ("mcp-name", "t\x7f"),
        ("mcp-name", "t\xe9"),
    ],
)
def test_a_field_that_says_something_else_is_refused(name: str, value: str) -> None:
    """HDR-007, HDR-028 to HDR-032: a header must not contradict the body."""
    message = modern_tool_call(3)

    assert refused(new_endpoint(), message, {**modern_headers(message), name: value}) == (
        400,
        -32020,
    )


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("t", "t"),
        ("t", " t\t"),
        ("t", "=?base64?dA==?="),
        ("Za\u0142\u0105cz", "=?base64?WmHFgsSFY3o=?="),
        ("", ""),
        ("", "=?base64??="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?x", "=?base64?x"),
        ("a b\tc", "a b\tc"),
    ],
)
def test_a_field_may_be_encoded(tool: str, value: str) -> None:
    """HDR-010, HDR-029, HDR-037: the forms in the specification's table must be decoded."""
    endpoint = new_endpoint()
    message = modern_tool_call(1, tool)
    exchange = post_modern(endpoint, message, {"mcp-name": value})

    endpoint.send_result(asked(endpoint), {"content": []})
    assert answer(exchange).status == 200


@pytest.mark.parametrize("tool", ["caf\xe9", "t\x7f", "t\x01"])
def test_a_name_that_has_to_be_encoded_is_refused_as_it_is(tool: str) -> None:
    """HDR-030: a proxy in front of this server may read other characters in it."""
    message = modern_tool_call(3, tool)

    assert refused(new_endpoint(), message, modern_headers(message)) == (400, -32020)


def test_a_name_that_is_encoded_like_nothing_else_is_refused_as_a_literal() -> None:
    """HDR-027: a client has to encode a name that looks encoded, so such a header is encoded."""
    message = modern_tool_call(3, "=?base64?dA==?=")

    assert refused(new_endpoint(), message, modern_headers(message)) == (400, -32020)


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-x"])
def test_a_field_that_comes_twice_is_refused(name: str) -> None:
    """A proxy in front may join the two, or use the other one, even if they are equal."""
    message = modern_tool_call(3)
    endpoint = new_endpoint()
    fields = {"content-type": JSON, "mcp-param-x": "1", **modern_headers(message)}
    exchange = endpoint.exchange("POST", "/", [*fields.items(), (name.title(), fields[name])])
    exchange.receive_data(body_of(message))
    exchange.receive_end()

    response = answer(exchange)
    assert (response.status, response.json["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": FILE}),
        ("prompts/get", {"name": "p"}),
    ],
)
def test_other_methods_name_what_they_are_about(method: str, params: JSONObject) -> None:
    """HDR-009: for a resource, the name is its URI."""
    endpoint = new_endpoint()
    message = modern(1, method, params)
    fields = modern_headers(message)

    assert refused(endpoint, message, {**fields, "mcp-name": "x"}) == (400, -32020)
    post(endpoint, message, fields)
    assert asked(endpoint).params["_meta"]


def test_methods_without_a_name_need_no_field_for_it() -> None:
    """HDR-009: a name header of another method must be ignored."""
    endpoint = new_endpoint()
    post_modern(endpoint, modern(1, "tools/list"), {"mcp-name": "x", "mcp-param-y": "z"})

    assert asked(endpoint).method == "tools/list"


@pytest.mark.parametrize("fields", [{}, {"mcp-name": "t"}])
def test_a_body_without_the_name_is_refused_either_way(fields: dict[str, str]) -> None:
    """Without the header the body is malformed, and with it the two differ."""
    message = modern(1, "tools/call", {"arguments": {}})
    code = -32020 if fields else -32602

    assert refused(new_endpoint(), message, {**modern_headers(message), **fields}) == (400, code)


@HOSTED
@pytest.mark.parametrize(
    "meta",
    [None, {}, {VERSION: MODERN}, {CAPABILITIES: {}}, {VERSION: MODERN, CAPABILITIES: []}],
)
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "unknown/x"])
def test_an_envelope_with_something_missing_is_invalid_params(
    meta: Any, method: str, revisions: tuple[str, ...]
) -> None:
    """META-011: the headers are right and the request is malformed; no session may come of it."""
    endpoint = new_endpoint(revisions=revisions)
    message = call(3, method, {} if meta is None else {"_meta": meta})
    fields = {"mcp-protocol-version": MODERN, "mcp-method": method}

    assert refused(endpoint, message, fields) == (400, -32602)
    assert endpoint.sessions == ()


@HOSTED
def test_a_revision_that_is_not_served_is_named(revisions: tuple[str, ...]) -> None:
    """HTTP-024: the error must list the revisions that are served."""
    endpoint = new_endpoint(revisions=revisions)
    message = modern(3, "server/discover", {}, envelope(version="v999"))
    response = answer(
        post(endpoint, message, {"mcp-protocol-version": "v999", "mcp-method": "server/discover"})
    )

    assert response.status == 400
    error = response.json["error"]
    assert (error["code"], response.json["id"]) == (-32022, 3)
    assert error["data"] == {"supported": list(reversed(revisions)), "requested": "v999"}


@HOSTED
def test_a_revision_that_only_the_field_names_is_named_too(revisions: tuple[str, ...]) -> None:
    """HDR-004: a future client may name its revision in the header alone."""
    endpoint = new_endpoint(revisions=revisions)
    message = call(3, "tools/list")
    response = answer(post(endpoint, message, {"mcp-protocol-version": "v999"}))

    assert response.status == 400
    assert response.json["error"]["data"]["requested"] == "v999"


@pytest.mark.parametrize(
    "message", [call(1, "initialize", {}), call(1, "tools/list"), call(1, "ping")]
)
def test_a_modern_server_says_so_to_older_clients(message: JSONObject) -> None:
    """COMPAT-015: a client without the header must learn which revisions are served."""
    endpoint = new_endpoint(revisions=MODERN_REVISIONS)
    response = answer(post(endpoint, message, {"mcp-session-id": "old", "last-event-id": "7"}))

    assert (response.status, response.json["error"]["code"]) == (400, -32020)
    assert MODERN in response.json["error"]["message"]
    assert "mcp-session-id" not in response.headers


def test_a_modern_server_takes_no_batch() -> None:
    """BATCH-008: a batch must be refused."""
    endpoint = new_endpoint(revisions=MODERN_REVISIONS)
    response = answer(post(endpoint, [modern_tool_call()]))

    assert (response.status, response.json["error"]["code"]) == (400, -32600)


def test_a_batch_with_the_modern_field_is_refused_beside_sessions() -> None:
    """A modern batch must be refused although an older revision has batches."""
    response = answer(post(new_endpoint(), [modern_tool_call()], {"mcp-protocol-version": MODERN}))

    assert (response.status, response.json["error"]["code"]) == (400, -32600)


def test_a_legacy_server_reads_no_envelope() -> None:
    """A legacy server must refuse 2026-07-28 without a modern error code, so that a client of
    both eras does the handshake."""
    endpoint = new_endpoint(revisions=LEGACY_REVISIONS)
    message = modern_tool_call(3)

    assert refused(endpoint, message, modern_headers(message)) == (400, -32600)


# --------------------------------------------------------------------------------- Mcp-Param-*

SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "where": {
            "type": "object",
            "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}},
        },
        "list": {"type": "array", "items": {"type": "string", "x-mcp-header": "Ignored"}},
        "odd": True,
        "unnamed": {"x-mcp-header": 7},
    },
}


def schemas(name: str) -> JSONObject | None:
    return SCHEMA if name == "q" else None


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({}, {}),
        ({"region": None}, {}),
        ({"region": "eu"}, {"Region": "eu"}),
        ({"region": ""}, {"Region": ""}),
        ({"region": "Hello, 世界"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"n": 42}, {"N": "42"}),
        ({"n": 42}, {"N": "42.0"}),
        ({"n": 42.0}, {"N": "42"}),
        ({"n": 42}, {"N": "4.2e1"}),
        ({"n": -7}, {"n": "-7"}),
        ({"n": 9007199254740993}, {"N": "9007199254740993"}),
        ({"dry": True}, {"Dry": "true"}),
        ({"dry": False}, {"Dry": "false"}),
        ({"where": {"zone": "a"}}, {"Zone": "a"}),
        ({"where": "x"}, {}),
        ({"list": ["a"]}, {}),
        ({"other": 1}, {"Unknown": "\xff"}),
    ],
)
def test_parameters_agree(arguments: JSONObject, fields: dict[str, str]) -> None:
    """HDR-023 to HDR-026, HDR-035: headers that the schema does not name must be ignored."""
    endpoint = new_endpoint(tool_schema=schemas)
    post_modern(
        endpoint,
        modern_tool_call(1, "q", **arguments),
        {f"mcp-param-{name}": value for name, value in fields.items()},
    )

    assert asked(endpoint).params["arguments"] == arguments


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"region": "eu"}, {"Region": "us"}),
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Region": "e\xfc"}),
        ({"region": "eu"}, {"Region": "=?base64?ZXU?="}),
        ({}, {"Region": "eu"}),
        ({"region": None}, {"Region": "null"}),
        ({"n": 42}, {"N": "43"}),
        ({"n": 42}, {"N": "0x2a"}),
        ({"n": 42}, {"N": ""}),
        ({"n": 42}, {"N": "1e999"}),
        ({"n": 9007199254740993}, {"N": "9007199254740992"}),
        ({"dry": True}, {"Dry": "True"}),
        ({"dry": True}, {"Dry": "1"}),
        ({"region": ["eu"]}, {"Region": "eu"}),
        ({"where": {"zone": "a"}}, {"Zone": "b"}),
        ({"where": {"zone": "a"}}, {}),
    ],
)
def test_parameters_that_differ_are_refused(arguments: JSONObject, fields: dict[str, str]) -> None:
    """HDR-032 to HDR-034: a header must equal its argument."""
    message = modern_tool_call(4, "q", **arguments)
    more_fields = {f"mcp-param-{name}": value for name, value in fields.items()}

    endpoint = new_endpoint(tool_schema=schemas)
    assert refused(endpoint, message, {**modern_headers(message), **more_fields}) == (400, -32020)


def test_a_tool_without_a_schema_has_no_parameters_to_check() -> None:
    """An unknown tool must be refused by the application."""
    endpoint = new_endpoint(tool_schema=schemas)
    post_modern(endpoint, modern_tool_call(1, "unknown", region="eu"), {"mcp-param-region": "us"})

    assert asked(endpoint).params["name"] == "unknown"


def test_a_schema_that_contains_itself_ends() -> None:
    """A schema is the application's own object, and may contain itself."""
    looped: JSONObject = {"properties": {}}
    looped["properties"]["again"] = looped

    def schema(_name: str) -> JSONObject:
        return looped

    endpoint = new_endpoint(tool_schema=schema)
    post_modern(endpoint, modern_tool_call())

    assert asked(endpoint).method == "tools/call"


def test_a_lookup_that_fails_leaves_no_request_unanswered() -> None:
    """The application must see its exception, and the client get an error."""

    def fail(name: str) -> JSONObject:
        raise KeyError(name)

    endpoint = new_endpoint(tool_schema=fail)
    message = modern_tool_call(5)
    fields = [*POST.items(), *modern_headers(message).items()]
    exchange = endpoint.exchange("POST", "/mcp", fields)
    exchange.receive_data(body_of(message))
    with pytest.raises(KeyError, match="t"):
        exchange.receive_end()

    assert endpoint.ready() == [exchange]
    response = answer(exchange)
    assert (response.status, response.json["id"]) == (500, 5)
    assert response.json["error"]["code"] == -32603


def test_a_request_that_names_its_method_and_no_revision_is_told_which_field_is_missing() -> None:
    """An error about a missing session id would mislead the author of a modern client."""
    endpoint = new_endpoint()
    fields = {"mcp-method": "tools/list"}
    response = answer(post(endpoint, call(1, "tools/list"), fields))
    assert (response.status, response.json["id"]) == (400, 1)
    assert response.json["error"]["code"] == -32020
    assert "MCP-Protocol-Version" in response.json["error"]["message"]
    assert "Mcp-Session-Id" not in response.json["error"]["message"]
    drain(endpoint)

    one = connect(endpoint)  # a field of another revision is of no meaning in a session
    assert one.asked(call(2, "tools/list"), fields)[1].revision == LEGACY
    plain = answer(post(endpoint, call(3, "tools/list")))
    assert "Mcp-Session-Id" in plain.json["error"]["message"]
    legacy_only = new_endpoint(revisions=(LEGACY,))
    response = answer(post(legacy_only, call(4, "tools/list"), fields))
    assert "Mcp-Session-Id" in response.json["error"]["message"]
