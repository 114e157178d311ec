"""Extensions: methods, notifications, kinds of results and capabilities of a framework."""

import copy
from typing import Any

import pytest

from sansmcp import (
    ALL_REVISIONS,
    MODERN_REVISIONS,
    Config,
    ErrorCode,
    Extension,
    ExtensionMethod,
    FailureReason,
    JSONObject,
    ListingEnded,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Side,
)
from sansmcp.testing import Pair
from tests.support.modern import (
    complete,
    envelope,
    input_required,
    modern,
    modern_client,
    modern_server,
)
from tests.support.wire import drain, new_client, new_server, of, receive, result, sent

GATE = ("extensions", "com.example/search")
DECLARED: JSONObject = {"extensions": {"com.example/search": {}}}
FIND = ExtensionMethod(
    name="example/find",
    kind="request",
    sender=Side.CLIENT,
    gate=GATE,
    params={"text": str, "limit": (int, float)},
    result={"hits": list},
    asks=True,
)
ALL = ExtensionMethod(
    name="example/all", kind="request", sender=Side.CLIENT, gate=GATE, paginated="hits"
)
FOUND = ExtensionMethod(
    name="notifications/example/found",
    kind="notification",
    sender=Side.SERVER,
    sender_gate=GATE,
    params={"hit": None},
)
WHICH = ExtensionMethod(name="example/which", kind="request", sender=Side.SERVER)
SEARCH = Extension(methods=[FIND, ALL, FOUND, WHICH], result_types=["deferred"])
CONFIG = Config(extensions=[SEARCH])
PARAMS: JSONObject = {"text": "t", "limit": 5}

every_revision = pytest.mark.parametrize("revision", ALL_REVISIONS)


def pair(revision: str, declared: Any = DECLARED, config: Config = CONFIG) -> Pair:
    """Both sides with the extension, which the server declares, and without events."""
    client = new_client(capabilities={}, revisions=[revision], config=config)
    server = new_server(capabilities={"tools": {}, **declared}, revisions=[revision], config=config)
    both = Pair(client, server, revision=revision)
    both.clear_events()
    return both


# --------------------------------------------------------------------------------------- methods


@every_revision
def test_request_of_an_extension_is_like_any_other(revision: str) -> None:
    """Capabilities, shapes and endings must be as for `tools/call`."""
    both = pair(revision)
    call = both.client.send_request("example/find", PARAMS)
    both.deliver()
    (event,) = of(RequestReceived, drain(both.server))
    assert (event.request.method, event.request.params["text"]) == ("example/find", "t")
    with pytest.raises(LocalProtocolError, match="hits is missing"):
        both.server.send_result(event.request, {})
    both.server.send_result(event.request, {"hits": [1]})
    both.deliver()
    (answer,) = of(ResponseReceived, drain(both.client))
    assert answer.request is call
    assert answer.result["hits"] == [1]


@every_revision
@pytest.mark.parametrize("params", [None, {}, {"text": 5, "limit": 1}, {"text": "t"}])
def test_shape_of_its_params_is_checked(revision: str, params: Any) -> None:
    """The sending side must check the params; the receiving side is tested below."""
    both = pair(revision)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        both.client.send_request("example/find", params)


@every_revision
def test_it_is_not_sent_to_a_server_that_does_not_declare_it(revision: str) -> None:
    """A server without the extension would refuse the request (EXT-002)."""
    both = pair(revision, {})
    with pytest.raises(LocalProtocolError, match=r"extensions\.com\.example/search"):
        both.client.send_request("example/find", PARAMS)


@every_revision
def test_undeclared_and_misshapen_requests_are_refused(revision: str) -> None:
    """A client that does not check must get an error with the reason."""
    for declared, params, code in (
        ({}, PARAMS, ErrorCode.METHOD_NOT_FOUND),
        (DECLARED, {}, ErrorCode.INVALID_PARAMS),
    ):
        both = pair(revision, declared)
        both.client.send_request("tools/list")
        (model,) = sent(both.client)
        meta = model.get("params", {})
        model |= {"method": "example/find", "params": {**meta, **params}}
        receive(both.server, model)
        (answer,) = sent(both.server)
        assert answer["error"]["code"] == code


@every_revision
def test_its_listing_is_paginated(revision: str) -> None:
    """A listing of an extension must work page by page, by the named member."""
    both = pair(revision)
    both.client.send_paginated("example/all")
    for page in ({"hits": [1], "nextCursor": "c"}, {"hits": [2, 3]}):
        both.deliver()
        (event,) = of(RequestReceived, drain(both.server))
        both.server.send_result(event.request, page)
    both.deliver()
    (ended,) = of(ListingEnded, drain(both.client))
    assert ended.listing.items == 3


def test_a_listing_that_may_ask_first_takes_no_null_cursor() -> None:
    """A null cursor must count as absent and be reported, also if the method may ask questions."""
    both = ExtensionMethod(
        name="example/ask", kind="request", sender=Side.CLIENT, paginated="hits", asks=True
    )
    server = modern_server(config=Config(extensions=[Extension(methods=[both])]))
    events = receive(server, modern(1, "example/ask", {"cursor": None}))
    assert of(ProtocolViolation, events)[0].tolerated
    assert "cursor" not in of(RequestReceived, events)[0].request.params


@every_revision
def test_its_notifications_have_a_gate_and_a_shape(revision: str) -> None:
    """A notification must come from its side only, and only with the capability."""
    both = pair(revision)
    both.server.send_notification("notifications/example/found", {"hit": 1})
    both.deliver()
    (told,) = of(NotificationReceived, drain(both.client))
    assert told.params["hit"] == 1
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        both.server.send_notification("notifications/example/found", {})
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        both.client.send_notification("notifications/example/found", {"hit": 1})
    with pytest.raises(LocalProtocolError, match="needs the capability"):
        pair(revision, {}).server.send_notification("notifications/example/found", {"hit": 1})


@every_revision
def test_request_of_a_server_exists_where_servers_send_requests(revision: str) -> None:
    """In 2026-07-28 servers send no requests."""
    both = pair(revision)
    if revision in MODERN_REVISIONS:
        with pytest.raises(LocalProtocolError, match="STATE-006"):
            both.server.send_request("example/which")
        return
    both.server.send_request("example/which")
    both.deliver()
    (event,) = of(RequestReceived, drain(both.client))
    assert event.request.method == "example/which"
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        both.client.send_request("example/which")


@every_revision
def test_notification_may_need_a_capability_of_the_client(revision: str) -> None:
    """In 2026-07-28 the client declares it with each request, and no earlier one counts."""
    heard = ExtensionMethod(
        name="notifications/example/heard", kind="notification", sender=Side.SERVER, gate=GATE
    )
    saw = ExtensionMethod(
        name="notifications/example/saw", kind="notification", sender=Side.CLIENT, sender_gate=GATE
    )
    config = Config(extensions=[Extension(methods=[heard, saw])])
    client = new_client(capabilities=DECLARED, revisions=[revision], config=config)
    server = new_server(capabilities={"tools": {}}, revisions=[revision], config=config)
    both = Pair(client, server, revision=revision)
    both.clear_events()
    both.server.send_notification("notifications/example/heard")
    both.client.send_notification("notifications/example/saw")
    both.deliver()
    assert [type(event) for event in both.client_events] == [NotificationReceived]
    assert [type(event) for event in both.server_events] == [NotificationReceived]


def test_name_of_an_older_revision_can_be_given_a_new_meaning() -> None:
    """The specification's own tasks extension uses names of 2025-11-25."""
    get = ExtensionMethod(
        name="tasks/get", kind="request", sender=Side.CLIENT, revisions=MODERN_REVISIONS
    )
    config = Config(extensions=[Extension(methods=[get])])
    assert pair("2026-07-28", {}, config).client.send_request("tasks/get", {"taskId": "x"}).open


def test_method_may_be_of_some_revisions_only() -> None:
    """In other revisions the method is unknown, so it is not sent."""
    method = ExtensionMethod(
        name="example/new", kind="request", sender=Side.CLIENT, revisions=MODERN_REVISIONS
    )
    config = Config(extensions=[Extension(methods=[method])])
    assert pair("2026-07-28", {}, config).client.send_request("example/new").open
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        pair("2025-11-25", {}, config).client.send_request("example/new")


def test_capability_is_told_where_its_methods_exist() -> None:
    """A client could use a capability whose methods its revision lacks."""
    method = ExtensionMethod(
        name="example/new",
        kind="request",
        sender=Side.CLIENT,
        revisions=MODERN_REVISIONS,
        gate=("example",),
    )
    config = Config(extensions=[Extension(methods=[method])])
    declared: JSONObject = {"example": {}, "other": {}}
    assert pair("2026-07-28", declared, config).client.peer.capabilities == {
        "tools": {},
        **declared,
    }
    assert pair("2025-11-25", declared, config).client.peer.capabilities == {
        "tools": {},
        "other": {},
    }


def test_request_that_asks_goes_on_with_the_answers() -> None:
    """`asks` must be all that `require_input` needs to know."""
    client = modern_client(server=DECLARED, config=CONFIG)
    call = client.send_request("example/find", PARAMS)
    sent(client)
    question = {"method": "roots/list"}
    receive(client, input_required(2, {"r": question}))
    client.provide_input(call, {"r": {"roots": []}})
    (again,) = sent(client)
    assert again["params"]["text"] == "t"
    assert again["params"]["inputResponses"] == {"r": {"roots": []}}


# --------------------------------------------------------------------------------- kinds of results


def test_result_of_an_added_kind_is_delivered_and_sent() -> None:
    """The members of a complete result must not be demanded of another kind (EXT-004)."""
    both = pair("2026-07-28")
    both.client.send_request("example/find", PARAMS)
    both.deliver()
    (event,) = of(RequestReceived, drain(both.server))
    both.server.send_result(event.request, {"resultType": "deferred", "until": 5})
    both.deliver()
    (answer,) = of(ResponseReceived, drain(both.client))
    assert (answer.result["resultType"], answer.result["until"]) == ("deferred", 5)


@pytest.mark.parametrize("kind", ["postponed", 5, ["deferred"]])
def test_other_kinds_are_neither_sent_nor_taken(kind: object) -> None:
    """Neither side understands a kind of result that was not added."""
    both = pair("2026-07-28")
    call = both.client.send_request("example/find", PARAMS)
    both.deliver()
    (event,) = of(RequestReceived, drain(both.server))
    with pytest.raises(LocalProtocolError, match="JSON-023"):
        both.server.send_result(event.request, {"resultType": kind})
    events = receive(both.client, result(call.id, {"resultType": kind}))
    assert of(RequestFailed, events)[0].reason is FailureReason.INVALID_ANSWER


def test_page_of_an_added_kind_is_no_page() -> None:
    """A listing cannot read a page of another kind."""
    client = modern_client(server={"tools": {}}, config=CONFIG)
    client.send_paginated("tools/list")
    sent(client)
    events = receive(client, result(2, {"resultType": "deferred"}))
    assert of(ListingEnded, events)
    assert of(ProtocolViolation, events)


# --------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: ExtensionMethod(
                name="x", kind="request", sender=Side.CLIENT, revisions=["2024-01-01"]
            ),
            "2024-01-01",
        ),
        (
            lambda: ExtensionMethod(
                name="x", kind="request", sender=Side.SERVER, revisions=MODERN_REVISIONS
            ),
            "no server sends requests",
        ),
        (lambda: Extension(result_types=["complete"]), "complete"),
        (
            lambda: Config(
                extensions=[
                    Extension(
                        methods=[
                            ExtensionMethod(name="tools/call", kind="request", sender=Side.CLIENT)
                        ]
                    )
                ]
            ),
            "tools/call",
        ),
        (lambda: Config(extensions=[SEARCH, SEARCH]), "added twice"),
    ],
)
def test_contradictions_are_told_at_once(make: Any, said: str) -> None:
    """A mistake in an extension must raise when the extension is made."""
    with pytest.raises(ValueError, match=said):
        make()


def test_names_are_not_letters() -> None:
    """`gate="tools"` would be read as a path of five steps."""
    with pytest.raises(ValueError, match="gate must be a list or a tuple of strings"):
        ExtensionMethod(name="x", kind="request", sender=Side.CLIENT, gate="tools")


def test_several_extensions_stand_side_by_side() -> None:
    """Extensions must not affect each other."""
    other = Extension(
        methods=[ExtensionMethod(name="x/y", kind="request", sender=Side.CLIENT)],
        result_types=["later"],
    )
    both = pair("2026-07-28", config=Config(extensions=[SEARCH, other]))
    both.client.send_request("x/y")
    both.client.send_request("example/find", PARAMS)
    both.deliver()
    received = of(RequestReceived, drain(both.server))
    for event, kind in zip(received, ("later", "deferred"), strict=True):
        both.server.send_result(event.request, {"resultType": kind})
    both.deliver()
    kinds = [event.result["resultType"] for event in of(ResponseReceived, drain(both.client))]
    assert kinds == ["later", "deferred"]


def test_connections_with_extensions_can_be_copied() -> None:
    """Copies of a connection must share its extensions, which are settings."""
    client = modern_client(server=DECLARED, config=CONFIG)
    other = copy.deepcopy(client)
    other.send_request("example/find", PARAMS)
    assert copy.deepcopy(SEARCH) is SEARCH
    assert len(sent(other)) == 1
    assert sent(client) == []


# ------------------------------------------------------------------------------ names of extensions

BAD_NAMES = ["search", "/search", "1com.example/x", "com..example/x", "com.example/-", "-a/x"]
GOOD_NAMES = ["com.example/search", "a/", "a-b.c1/x_y.z-1"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_name_of_an_extension_needs_a_prefix(name: str) -> None:
    """Our own invalid name must raise, and one of the peer be reported (EXT-001)."""
    capabilities: Any = {"extensions": {name: {}}}
    for make in (new_client, new_server):
        with pytest.raises(LocalProtocolError, match="EXT-001"):
            make(capabilities=capabilities)
    client = new_client(revisions=MODERN_REVISIONS)
    client.start()
    sent(client)
    discovered = {
        "supportedVersions": list(MODERN_REVISIONS),
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
    }
    events = receive(client, complete(1, discovered))
    assert [event.rule for event in of(ProtocolViolation, events)] == ["EXT-001"]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names_of_extensions(name: str) -> None:
    """A name has labels with dots, a slash, and a last part that may be empty."""
    both = pair("2026-07-28", {"extensions": {name: {}}}, Config())
    assert both.client.peer.capabilities["extensions"] == {name: {}}


def test_name_that_a_client_says_wrong_is_reported_once() -> None:
    """Requests with an equal envelope must not be judged again."""
    server = modern_server()
    meta = envelope({"extensions": {"search": {}}})
    for id, rules in ((1, ["EXT-001"]), (2, [])):
        events = receive(server, modern(id, "tools/list", {}, meta))
        assert [event.rule for event in of(ProtocolViolation, events)] == rules
        (received,) = of(RequestReceived, events)
        assert received.request.id == id
