"""Headers of modern requests that repeat their bodies, and tools that ask for more of them."""

from typing import Any

import pytest

from sansmcp import (
    Config,
    ErrorReceived,
    JSONObject,
    LimitReached,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    OutgoingRequest,
    PageReceived,
    ProtocolViolation,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.http import ClientEndpoint, ClientExchange
from tests.support.http.client_endpoint import (
    OK,
    answer,
    ask,
    begun,
    event,
    events_of,
    exchanges_of,
    fields_of,
    kinds,
    message_of,
    new_client,
    only,
    opened,
    refusal,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import LEGACY
from tests.support.modern import MODERN, complete

MISMATCH = -32020


def tool(name: str = "t", **properties: JSONObject) -> JSONObject:
    """A tool with these parameters."""
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def marked(name: object, type: object = "string") -> JSONObject:
    """A parameter that is marked for a header."""
    return {"type": type, "x-mcp-header": name}


def page(exchange: ClientExchange, tools: list[Any], **more: Any) -> None:
    """Answer the listing of tools with these."""
    listed = {"tools": tools, "ttlMs": 0, "cacheScope": "private", **more}
    respond(exchange, body=complete(message_of(exchange)["id"], listed))


def knowing(*tools: JSONObject, config: Config | None = None) -> ClientEndpoint:
    """A client that has listed these tools."""
    client = opened(MODERN, config=config)
    client.send_request("tools/list")
    page(take(client), list(tools))
    events_of(client)
    return client


def params_of(exchange: ClientExchange) -> dict[str, str]:
    """The headers that repeat parameters."""
    prefix = "mcp-param-"
    fields = fields_of(exchange).items()
    return {name.removeprefix(prefix): value for name, value in fields if name.startswith(prefix)}


def called(client: ClientEndpoint, arguments: object, name: str = "t") -> dict[str, str]:
    """The headers of a call that repeat its arguments."""
    _, exchange = ask(client, "tools/call", {"name": name, "arguments": arguments})
    return params_of(exchange)


# --------------------------------------------------------------------------- method and name


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t"}, "t"),
        ("prompts/get", {"name": "p q"}, "p q"),
        ("resources/read", {"uri": "file:///a"}, "file:///a"),
        ("tools/list", {}, None),
        ("custom/thing", {"name": "x"}, None),
        ("tools/call", {"name": ""}, ""),
        ("tools/call", {"name": "\x00\r\n"}, "=?base64?AA0K?="),
        ("tools/call", {"name": "=?BASE64?x?="}, "=?BASE64?x?="),
        ("tools/call", {"name": "=?base64?x"}, "=?base64?x"),
        ("tools/call", {"name": "tab\t"}, "=?base64?dGFiCQ==?="),
    ],
)
def test_fields_repeat_method_and_name(method: str, params: JSONObject, name: str | None) -> None:
    """A proxy must be able to route a request without reading its body (HDR-008 to HDR-010)."""
    client = opened(MODERN)
    _, exchange = ask(client, method, params)
    fields = fields_of(exchange)
    assert fields["mcp-protocol-version"] == MODERN
    assert fields["mcp-method"] == method
    assert fields.get("mcp-name") == name


def test_a_notification_repeats_its_method() -> None:
    """The revision does not say which headers a notification needs; this one is harmless."""
    client = opened(MODERN)
    client.send_notification("custom/note", {"name": "x"})
    fields = fields_of(take(client))
    assert (fields["mcp-method"], fields["mcp-protocol-version"]) == ("custom/note", MODERN)
    assert "mcp-name" not in fields


@pytest.mark.parametrize("method", ["caf\xe9", "a\r\nb", " a", "a\0"])
def test_a_method_that_no_field_can_hold_is_not_sent(method: str) -> None:
    """Such a method would break the head, or contradict the body (OWN-039)."""
    client = opened(MODERN)
    with pytest.raises(LocalProtocolError, match="OWN-039"):
        client.send_request(method)
    with pytest.raises(LocalProtocolError, match="OWN-039"):
        client.send_notification(method)
    assert exchanges_of(client) == []
    assert client.pending_requests == ()


def test_before_there_were_such_fields_any_method_may_be_sent() -> None:
    """Legacy requests have no method header, so any method may be sent."""
    client = opened(LEGACY)
    client.send_request("caf\xe9")
    assert message_of(take(client))["method"] == "caf\xe9"


@pytest.mark.unjudged(reason="the application hands over a name that is none")
def test_a_call_that_is_refused_leaves_nothing_for_the_next() -> None:
    """A verb that raises must change nothing."""
    client = opened(MODERN, config=Config(check="none"))
    bad: Any = ["name"]
    with pytest.raises(LocalProtocolError):
        client.send_request("tools/call", bad)
    _, exchange = ask(client, "tools/call", {"name": 7})
    assert "mcp-name" not in fields_of(exchange)
    client.send_paginated("tools/list")
    assert "mcp-name" not in fields_of(take(client))


# ----------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b", "a b"),
        ("a\tb", "=?base64?YQli?="),
        ("Hello, \u4e16\u754c", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (42, "42"),
        (-7, "-7"),
        (42.0, "42"),
        (2**53 - 1, "9007199254740991"),
        (True, "true"),
        (False, "false"),
        (None, None),
        (1.5, None),
        ({"x": 1}, None),
        ([1], None),
    ],
)
def test_values_are_repeated_in_one_form(value: object, field: str | None) -> None:
    """Each type of argument must have the form of HDR-023, HDR-025 to HDR-028."""
    client = knowing(tool(a=marked("Region")))
    assert called(client, {"a": value}) == ({} if field is None else {"region": field})


def test_what_is_not_given_is_not_repeated() -> None:
    """An argument that is missing or null must have no header (HDR-023)."""
    client = knowing(tool(a=marked("A"), b={"type": "object", "properties": {"c": marked("C")}}))
    assert called(client, {}) == {}
    assert called(client, {"b": "x"}) == {}
    assert called(client, {"b": {"c": "x"}}) == {"c": "x"}
    _, exchange = ask(client, "tools/call", {"name": "t"})
    assert params_of(exchange) == {}


@pytest.mark.parametrize("value", [2**53, -(2**53), 1e300])
def test_an_integer_that_others_could_not_read_is_not_sent(value: float) -> None:
    """An integer beyond the range of HDR-018 must be refused."""
    client = knowing(tool(a=marked("A", "integer")))
    with pytest.raises(LocalProtocolError, match="HDR-018"):
        client.send_request("tools/call", {"name": "t", "arguments": {"a": value}})
    assert exchanges_of(client) == []


def test_tools_that_were_never_listed_have_no_such_fields() -> None:
    """Without a listing the marks are unknown, so the call must be sent without such headers
    (HDR-039)."""
    client = opened(MODERN)
    assert called(client, {"a": "x"}) == {}


def test_the_newest_definition_counts() -> None:
    """A later listing must replace the marks of a tool, also by none."""
    client = knowing(tool(a=marked("A")))
    listing = client.send_paginated("tools/list")
    page(take(client), [tool(a=marked("B"))])
    assert events_of(client)[-1] == ListingEnded(
        listing=listing, reason=ListingEnd.COMPLETE, stale=False
    )
    assert called(client, {"a": "x"}) == {"b": "x"}
    client.send_request("tools/list")
    page(take(client), [tool(a={"type": "string"})])
    assert called(client, {"a": "x"}) == {}


def test_as_many_tools_are_remembered_as_the_limit_says() -> None:
    """The oldest tool must be forgotten, and that be reported (OWN-043)."""
    client = opened(MODERN, config=Config(max_tool_schemas=2))
    client.send_request("tools/list")
    page(take(client), [tool(name, a=marked("A")) for name in ("t1", "t2", "t3")])
    limit, _ = events_of(client)
    assert isinstance(limit, LimitReached)
    assert (limit.rule, "'t1'" in limit.text) == ("OWN-043", True)
    assert called(client, {"a": "x"}, "t1") == {}
    assert called(client, {"a": "x"}, "t3") == {"a": "x"}


def test_a_tool_with_marks_without_end_is_not_remembered() -> None:
    """A listing must not fill the memory of the client."""
    client = opened(MODERN)
    client.send_request("tools/list")
    many = {f"p{number}": marked(f"H{number}" + "x" * 100) for number in range(200)}
    page(take(client), [tool("t", **many)])
    limit, received = events_of(client)
    assert isinstance(limit, LimitReached)
    assert limit.rule == "OWN-043"
    assert isinstance(received, ResponseReceived)
    assert len(received.result["tools"]) == 1
    assert called(client, {"p1": "x"}) == {}


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ("HDR-013", {"properties": {"a": marked("")}}),
        ("HDR-013", {"properties": {"a": marked(7)}}),
        ("HDR-014", {"properties": {"a": marked("A:B")}}),
        ("HDR-014", {"properties": {"a": marked("A\r\nB")}}),
        ("HDR-014", {"properties": {"a": marked("\u00c4")}}),
        ("HDR-016", {"properties": {"a": marked("A"), "b": marked("a")}}),
        ("HDR-017", {"properties": {"a": marked("A", "number")}}),
        ("HDR-017", {"properties": {"a": marked("A", "object")}}),
        ("HDR-017", {"properties": {"a": marked("A", ["string", "null"])}}),
        ("HDR-017", {"properties": {"a": {"x-mcp-header": "A"}}}),
        ("HDR-019", marked("A")),
        ("HDR-019", {"items": {"properties": {"a": marked("A")}}}),
        ("HDR-019", {"items": [marked("A")]}),
        ("HDR-019", {"properties": {"a": {"type": "array", "items": marked("A")}}}),
        ("HDR-019", {"oneOf": [{"properties": {"a": marked("A")}}]}),
        ("HDR-019", {"allOf": [{"properties": {"a": marked("A")}}]}),
        ("HDR-019", {"not": {"properties": {"a": marked("A")}}}),
        ("HDR-019", {"if": {"properties": {"a": marked("A")}}}),
        ("HDR-019", {"$defs": {"x": marked("A")}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
        ("HDR-019", {"patternProperties": {".*": marked("A")}}),
        ("HDR-019", {"additionalProperties": marked("A")}),
    ],
)
def test_a_tool_whose_marks_break_a_rule_is_left_out(rule: str, schema: JSONObject) -> None:
    """Only this tool must be left out, and the report names it and the rule (HDR-020, HDR-021)."""
    client = opened(MODERN)
    listing = client.send_paginated("tools/list")
    bad = {"name": "bad", "inputSchema": {"type": "object", **schema}}
    page(take(client), [tool("a"), bad, tool("b")])
    violation, listed, ended = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, "'bad'" in violation.text) == (rule, True)
    assert isinstance(listed, PageReceived)
    assert [one["name"] for one in listed.items] == ["a", "b"]
    assert isinstance(ended, ListingEnded)
    assert listing.items == 2


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x-mcp-header": {"type": "string"}}},
        {"default": {"x-mcp-header": ""}, "const": [{"x-mcp-header": ""}]},
        {"properties": {"a": True, "b": {"enum": [{"x-mcp-header": ""}]}}, "items": False},
        {"properties": [], "$defs": [], "oneOf": {}},
        {},
    ],
)
def test_what_only_looks_like_a_mark_is_none(schema: JSONObject) -> None:
    """Data in a schema, and parameters with the name of the mark, are no marks."""
    client = opened(MODERN)
    client.send_request("tools/list")
    tools = [{"name": "t", "inputSchema": schema}, {"name": "u"}, {"name": 7}, "x", tool("v")]
    page(take(client), list(tools))
    (received,) = events_of(client)
    assert isinstance(received, ResponseReceived)
    assert received.result["tools"] == tools


def test_a_schema_may_be_nested_deeper_than_calls_may() -> None:
    """A deeply nested schema must not exhaust the stack."""
    schema: JSONObject = {"properties": {"a": marked("A")}}
    for _ in range(80):
        schema = {"properties": {"p": schema}}
    client = knowing({"name": "t", "inputSchema": schema})
    arguments: JSONObject = {"a": "x"}
    for _ in range(80):
        arguments = {"p": arguments}
    assert called(client, arguments) == {"a": "x"}


@pytest.mark.parametrize("tools", [None, {}, "x"])
def test_a_list_of_tools_that_is_none_is_no_matter_of_fields(tools: object) -> None:
    """An invalid listing must be an invalid result, as on any transport."""
    client = opened(MODERN)
    call, exchange = ask(client, "tools/list", {})
    respond(exchange, body=complete(call.id, {"tools": tools}))
    assert kinds(events_of(client)) == [ProtocolViolation, RequestFailed]


def test_an_error_to_a_list_of_tools_teaches_nothing() -> None:
    """An error response holds no list of tools, so nothing is learnt from it."""
    client = opened(MODERN)
    call, exchange = ask(client, "tools/list", {})
    respond(exchange, 400, refusal(call, -32602))
    assert kinds(events_of(client)) == [ErrorReceived]


def test_before_there_were_marks_tools_are_left_alone() -> None:
    """In legacy revisions the member has no meaning."""
    client = opened(LEGACY)
    call, exchange = ask(client, "tools/list", {})
    bad = tool("bad", a=marked(""))
    respond(exchange, body=answer(client, call, {"tools": [bad]}))
    assert only(ResponseReceived, events_of(client)).result["tools"] == [bad]
    call, exchange = ask(client, "tools/call", {"name": "bad", "arguments": {"a": "x"}})
    assert params_of(exchange) == {}


# -------------------------------------------------------------------- the server finds a mismatch


def mismatched(
    *tools: JSONObject, is_stream: bool = False, arguments: object = None, **how: Any
) -> tuple[ClientEndpoint, OutgoingRequest, ClientExchange]:
    """A call that was refused for its headers; the client lists the tools."""
    client = knowing(*tools)
    given = {"a": "x"} if arguments is None else arguments
    call, exchange = ask(client, "tools/call", {"name": "t", "arguments": given}, **how)
    if is_stream:
        stream(exchange, event(refusal(call, MISMATCH)) + event(answer(client, call)))
        assert client.aborts() == [exchange]
    else:
        respond(exchange, 400, refusal(call, MISMATCH))
    assert events_of(client) == []
    return client, call, take(client)


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_call_is_sent_again_with_the_fields_it_needs(is_stream: bool) -> None:
    """A server may have changed its tool since the last listing (HDR-038)."""
    client, call, listing = mismatched(tool(a=marked("Old")), is_stream=is_stream)
    assert message_of(listing)["method"] == "tools/list"
    assert listing.request is None
    page(listing, [tool("other"), tool(a=marked("New"))])
    again = take(client)
    assert params_of(again) == {"new": "x"}
    assert message_of(again)["params"]["arguments"] == {"a": "x"}
    assert again.request is call
    respond(again, body=answer(client, call))
    assert kinds(events_of(client)) == [ResponseReceived]


def test_a_call_is_sent_again_whatever_ids_its_stream_had() -> None:
    """Modern streams are not resumed, so the call must be repeated by POST."""
    client = knowing(tool(a=marked("Old")))
    call, exchange = ask(client, "tools/call", {"name": "t", "arguments": {"a": "x"}})
    stream(exchange, b"id: 1\ndata:\n\n", event(refusal(call, MISMATCH)))
    page(take(client), [tool(a=marked("New"))])
    again = take(client)
    assert (again.method, params_of(again)) == ("POST", {"new": "x"})


def test_it_is_sent_again_once() -> None:
    """The second refusal must end the call with its error."""
    client, call, listing = mismatched()
    page(listing, [tool(a=marked("New"))])
    respond(take(client), 400, refusal(call, MISMATCH))
    received = only(ErrorReceived, events_of(client))
    assert (received.request, received.code) == (call, MISMATCH)
    assert exchanges_of(client) == []


@pytest.mark.parametrize("how", ["same", "gone", "error", "lost", "too big"])
def test_a_call_that_would_be_the_same_is_not_sent_again(how: str) -> None:
    """If the headers stay the same, the error must be delivered."""
    arguments = {"a": 2**60} if how == "too big" else None
    known = () if how == "too big" else (tool(a=marked("A")),)
    client, call, listing = mismatched(*known, arguments=arguments)
    if how == "error":
        respond(listing, 500)
    elif how == "lost":
        listing.receive_failure("reset")
    elif how == "too big":
        page(listing, [tool(a=marked("A", "integer"))])
    elif how == "gone":
        page(listing, [])
    else:
        page(listing, [tool(a=marked("A"))], nextCursor="more")
    received = events_of(client)[-1]
    assert isinstance(received, ErrorReceived)
    assert (received.request, received.code) == (call, MISMATCH)
    assert exchanges_of(client) == []


def test_a_tool_may_stand_on_a_later_page() -> None:
    """The listing must be read until the tool is found."""
    client, call, listing = mismatched()
    page(listing, [tool("other")], nextCursor="c")
    second = take(client)
    assert message_of(second)["params"]["cursor"] == "c"
    page(second, [tool(a=marked("A"))])
    again = take(client)
    assert params_of(again) == {"a": "x"}
    respond(again, body=answer(client, call, OK))
    assert kinds(events_of(client)) == [ResponseReceived]


def test_a_list_without_end_is_given_up() -> None:
    """The limit on pages must hold for this listing too."""
    client = opened(MODERN, config=Config(max_pages=3))
    call, exchange = ask(client)
    respond(exchange, 400, refusal(call, MISMATCH))
    for _ in range(3):
        page(take(client), [], nextCursor="c")
    assert only(ErrorReceived, events_of(client)).request is call
    assert exchanges_of(client) == []


def test_a_call_may_end_while_the_tools_are_listed() -> None:
    """The listing must be cancelled with its call."""
    client, call, listing = mismatched(timeout=5.0, now=0.0)
    client.handle_timeout(5.0)
    assert only(RequestFailed, events_of(client)).request is call
    assert client.aborts() == [listing]
    assert exchanges_of(client) == []
    assert client.next_timeout() is None


def test_the_conversation_may_end_while_the_tools_are_listed() -> None:
    """Each waiting call must have one ending."""
    client, call, listing = mismatched()
    client.close()
    assert [one.request for one in events_of(client) if isinstance(one, RequestFailed)] == [call]
    assert client.aborts() == [listing]


def test_where_no_more_requests_may_be_made_the_error_counts() -> None:
    """The listing must not exceed the limit on requests."""
    client = opened(MODERN, config=Config(max_requests=1))
    call, exchange = ask(client)
    respond(exchange, 400, refusal(call, MISMATCH))
    assert only(ErrorReceived, events_of(client)).request is call


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_the_error_means_something_for_tools_only(revision: str) -> None:
    """Requests other than tools/call have no headers that a listing could explain."""
    client = opened(revision)
    method = "tools/call" if revision == LEGACY else "prompts/get"
    call, exchange = ask(client, method, {"name": "t"})
    respond(exchange, 400, refusal(call, MISMATCH))
    assert only(ErrorReceived, events_of(client)).code == MISMATCH
    assert exchanges_of(client) == []


@pytest.mark.parametrize(
    "headers", ["Authorization: x", ["ab"], [("a", b"x")], [("a", "b", "c")], [1], {"a": 1}]
)
def test_headers_are_a_mapping_or_pairs(headers: Any) -> None:
    """The error for any other value must say which forms are accepted."""
    with pytest.raises(ValueError, match="a mapping of strings, or pairs"):
        new_client(headers=headers)


def test_a_mapping_is_taken_as_pairs_are() -> None:
    """A mapping must be accepted at first, and when headers are replaced."""
    client = begun(MODERN, headers={"Authorization": "1"}, authorize=True)
    probe = take(client)
    assert fields_of(probe)["authorization"] == "1"
    respond(probe, 401)
    client.authorize({"Authorization": "2"})
    assert fields_of(take(client))["authorization"] == "2"
