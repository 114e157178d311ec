"""Errors by their kind: the code and the data of each revision, and the same kind when read."""

import json
from typing import Any, Final, TypeAlias

import pytest

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    Config,
    ErrorKind,
    ErrorReceived,
    JSONObject,
    ListingEnded,
    LocalProtocolError,
    RequestReceived,
    Side,
    kind_of_error,
)
from sansmcp.testing import Pair
from tests.support.wire import error, only, ready_client, receive

K = ErrorKind
MODERN: Final = "2026-07-28"
NOT_FOUND: Final = dict.fromkeys(LEGACY_REVISIONS, -32002) | {MODERN: -32602}
MISSING: Final = dict.fromkeys(LEGACY_REVISIONS, -32602) | {MODERN: -32021}
INVALID: Final = dict.fromkeys(ALL_REVISIONS, -32602)
INTERNAL: Final = dict.fromkeys(ALL_REVISIONS, -32603)
NO_METHOD: Final = dict.fromkeys(ALL_REVISIONS, -32601)
REJECTED: Final = dict.fromkeys(ALL_REVISIONS, -1)
ABSENT: Final[Any] = None

TOOL: Final[tuple[str, JSONObject]] = ("tools/call", {"name": "t", "arguments": {}})
READ: Final[tuple[str, JSONObject]] = ("resources/read", {"uri": "file:///a"})
PAGE: Final[tuple[str, JSONObject]] = ("tools/list", {"cursor": "c"})
PROMPT: Final[tuple[str, JSONObject]] = ("prompts/get", {"name": "p"})
ASKS_ROOTS: Final[tuple[str, JSONObject]] = ("roots/list", {})
SAMPLING: Final[tuple[str, JSONObject]] = (
    "sampling/createMessage",
    {"messages": [], "maxTokens": 1},
)
FORM: Final[tuple[str, JSONObject]] = (
    "elicitation/create",
    {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
)

VISIT: Final[JSONObject] = {
    "elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://a.example/", "message": "m"}
    ]
}
ROOTS_NEEDED: Final[JSONObject] = {"requiredCapabilities": {"roots": {}}}
URL_NEEDED: Final[JSONObject] = {"requiredCapabilities": {"elicitation": {"url": {}}}}
LATER: Final[JSONObject] = {"reason": "rate limit", "retryAfter": 1}

# Kind, request, the application's data; then the codes by revision, and the data on the wire.
Row: TypeAlias = tuple[ErrorKind, tuple[str, JSONObject], Any, dict[str, int], Any]
BY_SERVER: Final[list[Row]] = [
    (K.UNKNOWN_TOOL, TOOL, ABSENT, INVALID, {"unknownTool": "t"}),
    (K.UNKNOWN_TOOL, TOOL, {"tools": ["u"]}, INVALID, {"unknownTool": "t", "tools": ["u"]}),
    (K.INVALID_PARAMS, TOOL, ABSENT, INVALID, ABSENT),
    (K.INVALID_PARAMS, PROMPT, ["city"], INVALID, ["city"]),
    (K.INVALID_PARAMS, READ, {"why": "no file"}, INVALID, {"why": "no file"}),
    (K.RESOURCE_NOT_FOUND, READ, ABSENT, NOT_FOUND, {"uri": "file:///a"}),
    (K.RESOURCE_NOT_FOUND, READ, {"uri": "b:"}, NOT_FOUND, {"uri": "b:"}),
    (K.RESOURCE_NOT_FOUND, TOOL, {"uri": "b:"}, NOT_FOUND, {"uri": "b:"}),
    (K.INVALID_CURSOR, PAGE, ABSENT, INVALID, ABSENT),
    (K.INVALID_CURSOR, PAGE, {"cursor": "c"}, INVALID, {"cursor": "c"}),
    (K.USER_REJECTED, TOOL, ABSENT, REJECTED, {"userRejected": True}),
    (K.MISSING_CAPABILITY, TOOL, ROOTS_NEEDED, MISSING, ROOTS_NEEDED),
    (K.MISSING_CAPABILITY, TOOL, URL_NEEDED, MISSING, URL_NEEDED),
    (K.MISSING_CAPABILITY, PAGE, ROOTS_NEEDED, MISSING, ROOTS_NEEDED),
    (K.URL_ELICITATION_REQUIRED, TOOL, VISIT, {"2025-11-25": -32042}, VISIT),
    (K.OVERLOADED, TOOL, ABSENT, INTERNAL, {"reason": "overloaded"}),
    (K.OVERLOADED, READ, LATER, INTERNAL, LATER),
]
BY_CLIENT: Final[list[Row]] = [
    (K.INVALID_PARAMS, SAMPLING, ABSENT, INVALID, ABSENT),
    (K.USER_REJECTED, SAMPLING, ABSENT, REJECTED, ABSENT),
    (K.USER_REJECTED, ASKS_ROOTS, {"by": "Ada"}, REJECTED, {"by": "Ada"}),
    (K.MISSING_CAPABILITY, ASKS_ROOTS, ROOTS_NEEDED, NO_METHOD, ROOTS_NEEDED),
    (K.MISSING_CAPABILITY, SAMPLING, ROOTS_NEEDED, NO_METHOD, ROOTS_NEEDED),
    (K.MISSING_CAPABILITY, FORM, URL_NEEDED, INVALID, URL_NEEDED),
    (K.OVERLOADED, SAMPLING, ABSENT, INTERNAL, {"reason": "overloaded"}),
    (K.RESOURCE_NOT_FOUND, SAMPLING, {"uri": "b:"}, NOT_FOUND, {"uri": "b:"}),
    (K.UNKNOWN_TOOL, SAMPLING, {"unknownTool": "u"}, INVALID, {"unknownTool": "u"}),
]


def asked(revision: str, asks: Side, request: tuple[str, JSONObject]) -> tuple[Pair, Any]:
    """A pair at a revision, and the handle of a request that has arrived."""
    pair = Pair(revision=revision)
    pair.side(asks).send_request(*request)
    return pair, pair.deliver_one(RequestReceived).request


def knows(revision: str, method: str) -> bool:
    """Whether a revision has a method."""
    return method != "elicitation/create" or revision >= "2025-06-18"


ROWS: Final = [
    (revision, asks, *row)
    for asks, rows, revisions in (
        (Side.CLIENT, BY_SERVER, ALL_REVISIONS),
        (Side.SERVER, BY_CLIENT, LEGACY_REVISIONS),
    )
    for revision in revisions
    for row in rows
    if knows(revision, row[1][0]) and revision in row[3]
]


@pytest.mark.parametrize(
    ("revision", "asks", "kind", "request_", "data", "codes", "wire_data"), ROWS
)
def test_a_kind_has_code_and_data_of_the_revision_and_is_read_back(
    revision: str,
    asks: Side,
    kind: ErrorKind,
    request_: tuple[str, JSONObject],
    data: Any,
    codes: dict[str, int],
    wire_data: Any,
) -> None:
    """One handler serves all revisions, and one caller reads all.

    Keeps TOOL-025, RES-011, RES-012, RES-015, PAGE-008, SAMP-015, ROOT-005, ELIC-021, ELIC-022,
    CAP-007, OWN-085.
    """
    pair, request = asked(revision, asks, request_)
    given = () if data is None else (data,)
    assert pair.side(asks.other).send_error(request, kind, "No.", *given)
    ended = pair.deliver_one(ErrorReceived, asks)

    code = codes[revision]
    (sender, message) = pair.transcript[-1]
    expected: JSONObject = {"code": code, "message": "No."} | (
        {} if wire_data is None else {"data": wire_data}
    )
    assert (sender, json.loads(message)["error"]) == (asks.other, expected)
    assert (ended.kind, ended.code, ended.data) == (kind, code, wire_data)


def test_all_kinds_are_in_the_table() -> None:
    """A kind without a row would have any code."""
    assert {row[0] for row in BY_SERVER} == set(ErrorKind)


@pytest.mark.parametrize(
    ("revision", "rule"),
    [*((old, "OWN-085") for old in LEGACY_REVISIONS[:-1]), (MODERN, "ERR-008")],
)
def test_a_visit_is_required_in_one_revision_only(revision: str, rule: str) -> None:
    """ERR-008: -32042 must not be sent in 2026-07-28, and no other revision knows it."""
    pair, request = asked(revision, Side.CLIENT, TOOL)
    with pytest.raises(LocalProtocolError, match=rule):
        pair.server.send_error(request, K.URL_ELICITATION_REQUIRED, "Visit.", VISIT)
    assert request.open
    assert pair.server.data_to_send() == b""


ONE: Final[JSONObject] = VISIT["elicitations"][0]
WRONG_VISITS: Final[list[tuple[Any, str]]] = [
    ((), "ELIC-024"),
    ((None,), "ELIC-024"),
    (({"elicitations": {}},), "ELIC-024"),
    (({"elicitations": [None]},), "ELIC-025"),
    (({"elicitations": [{**ONE, "mode": "form"}]},), "ELIC-025"),
    (({"elicitations": [{**ONE, "elicitationId": 1}]},), "ELIC-025"),
    (({"elicitations": [{"mode": "url", "elicitationId": "e"}]},), "ELIC-025"),
]


@pytest.mark.parametrize("code", [-32042, K.URL_ELICITATION_REQUIRED])
@pytest.mark.parametrize(("data", "rule"), WRONG_VISITS)
def test_the_error_for_a_visit_has_what_a_client_needs(code: Any, data: Any, rule: str) -> None:
    """ELIC-024, ELIC-025: without its URLs and ids the client cannot go on."""
    pair, request = asked("2025-11-25", Side.CLIENT, TOOL)
    with pytest.raises(LocalProtocolError, match=rule):
        pair.server.send_error(request, code, "Visit.", *data)
    assert request.open
    assert pair.server.send_error(request, code, "Visit.", VISIT)


def test_a_client_never_requires_a_visit() -> None:
    """ELIC-023: the code means that the user of the client has to visit a URL, and nothing else."""
    pair, request = asked("2025-11-25", Side.SERVER, SAMPLING)
    for code in (-32042, K.URL_ELICITATION_REQUIRED):
        with pytest.raises(LocalProtocolError, match="ELIC-023"):
            pair.client.send_error(request, code, "Visit.", VISIT)
    assert request.open


@pytest.mark.parametrize("revision", LEGACY_REVISIONS[:-1])
def test_earlier_revisions_say_nothing_of_the_code_for_a_visit(revision: str) -> None:
    """In them, the number is one of the implementation's own."""
    pair, request = asked(revision, Side.CLIENT, TOOL)
    assert pair.server.send_error(request, -32042, "mine")


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("data", [(), (None,), ({},), ({"requiredCapabilities": ["roots"]},)])
def test_a_missing_capability_is_named_in_every_revision(revision: str, data: Any) -> None:
    """CAP-007: a handler that forgets it fails with every client, and not with new ones only."""
    pair, request = asked(revision, Side.CLIENT, TOOL)
    with pytest.raises(LocalProtocolError, match="CAP-007"):
        pair.server.send_error(request, K.MISSING_CAPABILITY, "No roots.", *data)
    assert request.open


def test_data_that_has_no_room_for_the_mark_raises() -> None:
    """OWN-085: without the member, the kind could not be read back."""
    pair, request = asked(MODERN, Side.CLIENT, TOOL)
    with pytest.raises(LocalProtocolError, match="OWN-085"):
        pair.server.send_error(request, K.UNKNOWN_TOOL, "No.", ["t"])
    assert request.open


def test_the_data_of_the_application_is_not_changed() -> None:
    """A constant may serve many requests."""
    data: JSONObject = {"tools": []}
    pair, request = asked(MODERN, Side.CLIENT, TOOL)
    assert pair.server.send_error(request, K.UNKNOWN_TOOL, "No.", data)
    assert data == {"tools": []}


def test_a_kind_that_comes_too_late_changes_nothing() -> None:
    """The request was cancelled: False, as for a code, even if the kind is none of the revision."""
    pair = Pair(revision="2024-11-05")
    call = pair.client.send_request(*TOOL)
    request = pair.deliver_one(RequestReceived).request
    pair.client.cancel(call)
    pair.deliver()
    assert pair.server.send_error(request, K.URL_ELICITATION_REQUIRED, "Visit.") is False


@pytest.mark.parametrize(
    ("method", "code", "data", "kind"),
    [
        ("resources/read", -32002, None, K.RESOURCE_NOT_FOUND),
        ("tools/call", -32002, ["any"], K.RESOURCE_NOT_FOUND),
        ("resources/read", -32602, None, K.INVALID_PARAMS),
        ("resources/read", -32602, {"uri": 1}, K.INVALID_PARAMS),
        ("tools/call", -32602, {"unknownTool": None}, K.INVALID_PARAMS),
        ("tools/call", -32602, {"requiredCapabilities": []}, K.INVALID_PARAMS),
        ("resources/templates/list", -32602, None, K.INVALID_CURSOR),
        ("tasks/list", -32602, None, K.INVALID_CURSOR),
        ("tools/call", -32042, None, K.URL_ELICITATION_REQUIRED),
        ("tools/call", -32021, None, K.MISSING_CAPABILITY),
        ("roots/list", -32601, None, K.MISSING_CAPABILITY),
        ("elicitation/create", -32601, {"reason": "no"}, K.MISSING_CAPABILITY),
        ("tools/call", -32601, None, None),
        ("sampling/createMessage", -1, None, K.USER_REJECTED),
        ("tools/call", -1, None, None),
        ("tools/call", -1, {"userRejected": "yes"}, None),
        ("tools/call", -32603, None, None),
        ("tools/call", -32603, {"reason": 1}, None),
        ("tools/call", -32603, {"reason": "too many requests in flight"}, K.OVERLOADED),
        *(("tools/call", code, None, None) for code in (-32000, -32001, -32003, -32019)),
        *(("tools/call", code, None, None) for code in (-32700, -32600, -32020, -32022, 0, 7)),
    ],
)
def test_errors_of_other_programs_have_the_kind_that_is_certain(
    method: str, code: int, data: Any, kind: ErrorKind | None
) -> None:
    """ERR-005, RES-015: a guess would have a client ask again for what is not there."""
    assert kind_of_error(method, code, data) is kind
    client = ready_client("2025-11-25")
    sender = client.send_request("resources/read", {"uri": "a:"})
    ended = only(ErrorReceived, receive(client, error(sender.id, code, "no", data)))
    assert ended.kind is kind_of_error("resources/read", code, data)


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_listing_tells_of_its_cursor(revision: str) -> None:
    """Pages whose cursor is refused are listed again from the first."""
    pair = Pair(revision=revision)
    pair.client.send_paginated("tools/list")
    first = pair.deliver_one(RequestReceived).request
    pair.server.send_result(first, {"tools": [], "nextCursor": "c"})
    second = pair.deliver_one(RequestReceived).request
    pair.server.send_error(second, K.INVALID_CURSOR, "no such cursor")
    ended = pair.deliver_one(ListingEnded)
    assert (ended.kind, ended.stale) == (K.INVALID_CURSOR, True)


def test_a_listing_without_an_error_has_no_kind() -> None:
    """A complete listing is no failure."""
    pair = Pair()
    pair.client.send_paginated("tools/list")
    pair.server.send_result(pair.deliver_one(RequestReceived).request, {"tools": []})
    assert pair.deliver_one(ListingEnded).kind is None


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_the_limit_on_requests_is_read_as_overloaded(revision: str) -> None:
    """The library's own refusals have a kind, too: the caller may try again later."""
    server = Config(max_requests=1)
    pair = Pair(revision=revision, server_config=server)
    pair.client.send_request(*TOOL)
    pair.client.send_request(*TOOL)
    assert pair.deliver_one(ErrorReceived).kind is K.OVERLOADED
