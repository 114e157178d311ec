"""Hypothesis strategies: JSON, messages that are valid or nearly so, and bytes on a bad wire.

Building a strategy costs more than drawing from it, so each is built once (`cache`), and none is
built within a draw.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from sansmcp import (
    ALL_REVISIONS,
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
    ProgressToken,
    RequestId,
    Side,
)
from sansmcp._spec.registry import DIALECTS

from ._examples import PARAMS, RESULTS, notifications_of, requests_of
from ._modern_strategies import ENVELOPE_MEMBERS, ENVELOPES, INPUTS, TAGGED, merged, results, tagged

_TEXT: Final = st.text(max_size=8)
# Lone surrogates are legal in JSON as escapes, and Python strings can hold them.
_ANY_TEXT: Final = _TEXT | _TEXT | st.sampled_from(("\ud800", "a\udfff", "\ude00\ud83d"))
_SCALARS: Final[st.SearchStrategy[JSONValue]] = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.sampled_from((2**53 + 1, -(2**63) - 1, 2**64, 10**30))
    | st.floats(allow_nan=False, allow_infinity=False)
    | _ANY_TEXT
)


def json_values(*, max_depth: int = 3) -> st.SearchStrategy[JSONValue]:
    """Any JSON value: big integers and lone surrogates included.

    Args:
        max_depth: How many lists or objects there may be around a scalar.
    """
    return _json_values(max_depth)


# `st.recursive` gives the same, and takes ten times as long about it.
@cache
def _json_values(max_depth: int) -> st.SearchStrategy[JSONValue]:
    if max_depth == 0:
        return _SCALARS
    inner = _json_values(max_depth - 1)
    return _SCALARS | st.lists(inner, max_size=3) | st.dictionaries(_ANY_TEXT, inner, max_size=3)


def json_objects(*, max_depth: int = 3) -> st.SearchStrategy[JSONObject]:
    """Any JSON object.

    Args:
        max_depth: How many lists or objects there may be around a scalar; at least 1.
    """
    return _json_objects(max_depth)


@cache
def _json_objects(max_depth: int) -> st.SearchStrategy[JSONObject]:
    return st.dictionaries(_ANY_TEXT, _json_values(max_depth - 1), max_size=3)


_SMALL: Final = st.integers(0, 20)
_IDS: Final[st.SearchStrategy[RequestId]] = (
    _SMALL | _SMALL.map(str) | _TEXT | st.integers() | _SMALL.map(float)
)
_NO_IDS: Final[st.SearchStrategy[JSONValue]] = st.sampled_from(
    [None, True, False, [1], {"id": 1}]
) | _SMALL.map(lambda n: n + 0.5)
_FEW_TOKENS: Final[st.SearchStrategy[ProgressToken]] = st.sampled_from([0, "", 1, "1"])
_TOKENS: Final[st.SearchStrategy[ProgressToken]] = _FEW_TOKENS | _TEXT | st.integers()


def request_ids() -> st.SearchStrategy[RequestId]:
    """Ids that a request may have: strings, integers, and floats that are integers."""
    return _IDS


def bad_request_ids() -> st.SearchStrategy[JSONValue]:
    """Values that are no id, some of which Python takes for one (`True == 1`)."""
    return _NO_IDS


def progress_tokens() -> st.SearchStrategy[ProgressToken]:
    """Tokens that a request may have: strings and integers, `0` and `""` too."""
    return _TOKENS


# ----------------------------------------------------------------------------------- messages


def requests(
    revision: str = "2025-11-25", sender: Side | None = None
) -> st.SearchStrategy[JSONObject]:
    """Valid requests of a revision.

    Args:
        revision: Whose methods. In 2026-07-28 each request has its envelope, and some come with
            answers to questions.
        sender: Who may send them; by default, either side. In 2026-07-28 a server sends none.
    """
    return _requests(revision, sender)


@cache
def _requests(revision: str, sender: Side | None) -> st.SearchStrategy[JSONObject]:
    if sender is None:
        return _requests(revision, Side.CLIENT) | _requests(revision, Side.SERVER)
    methods = sorted(requests_of(revision, sender))
    if not methods:
        return st.nothing()
    is_modern = DIALECTS[revision].is_modern
    meta: st.SearchStrategy[JSONObject] = ENVELOPES if is_modern else st.just({})
    members: st.SearchStrategy[JSONObject] = st.just({})
    found = st.builds(_request, st.sampled_from(methods), _IDS, st.none() | _TOKENS, meta, members)
    if sender is Side.CLIENT:
        members = _json_objects(2).map(lambda arguments: {"arguments": arguments})
        if is_modern:
            members = st.builds(merged, members, INPUTS)
        found |= st.builds(_request, st.just("tools/call"), _IDS, _TOKENS, meta, members)
    return found


def _request(
    method: str,
    id: RequestId,
    token: ProgressToken | None,
    meta: JSONObject,
    members: JSONObject,
) -> JSONObject:
    params: JSONObject = {**PARAMS.get(method, {}), **members}
    if token is not None:
        meta = {**meta, "progressToken": token}
    if meta:
        params["_meta"] = meta
    return _call(method, params, id=id)


def notifications(
    revision: str = "2025-11-25", sender: Side | None = None
) -> st.SearchStrategy[JSONObject]:
    """Valid notifications of a revision.

    Args:
        revision: Whose methods.
        sender: Who may send them; by default, either side.
    """
    return _notifications(revision, sender)


@cache
def _notifications(revision: str, sender: Side | None) -> st.SearchStrategy[JSONObject]:
    if sender is None:
        return _notifications(revision, Side.CLIENT) | _notifications(revision, Side.SERVER)
    names = set(notifications_of(revision, sender))
    belonging = sorted(names & TAGGED) if DIALECTS[revision].is_modern else []
    found = st.sampled_from(sorted(names.difference(belonging))).map(
        lambda method: _call(method, dict(PARAMS.get(method, {})))
    ) | _IDS.map(lambda id: _call("notifications/cancelled", {"requestId": id}))
    if "notifications/progress" in names:
        found |= st.builds(_progress, _TOKENS, st.integers(0, 5) | st.floats(0, 5))
    if belonging:
        found |= st.builds(_change, st.sampled_from(belonging), _IDS)
    return found


def _change(method: str, id: RequestId) -> JSONObject:
    return _call(method, tagged(PARAMS.get(method, {}), id))


def _progress(token: ProgressToken, progress: float) -> JSONObject:
    return _call("notifications/progress", {"progressToken": token, "progress": progress})


def _call(method: str, params: JSONObject, **members: Any) -> JSONObject:
    message: JSONObject = {"jsonrpc": "2.0", **members, "method": method}
    if params:
        message["params"] = params
    return message


_ERRORS: Final = st.fixed_dictionaries(
    {"code": st.sampled_from((-32601, -32603, 1)), "message": _TEXT},
    optional={"data": _json_values(2)},
)
_RESULTS: Final[st.SearchStrategy[JSONObject]] = st.sampled_from(
    [{}, *RESULTS.values()]
) | _json_objects(2)


def answers(revision: str = "2025-11-25") -> st.SearchStrategy[JSONObject]:
    """Valid answers to some request: results and errors, and questions in 2026-07-28."""
    return _answers(DIALECTS[revision].is_modern)


@cache
def _answers(is_modern: bool) -> st.SearchStrategy[JSONObject]:
    result = results(_RESULTS) if is_modern else _RESULTS
    return st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0"), "id": _IDS, "result": result}
    ) | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": _IDS, "error": _ERRORS})


def messages(
    revision: str = "2025-11-25", sender: Side | None = None
) -> st.SearchStrategy[JSONObject]:
    """Valid messages of any kind.

    Args:
        revision: Whose methods.
        sender: Who may send them; by default, either side.
    """
    return _messages(revision, sender)


@cache
def _messages(revision: str, sender: Side | None) -> st.SearchStrategy[JSONObject]:
    return _requests(revision, sender) | _notifications(revision, sender) | answers(revision)


def nearly_messages(
    revision: str = "2025-11-25", sender: Side | None = None
) -> st.SearchStrategy[JSONObject]:
    """Messages with one thing wrong: a member is missing, or there is one too many, or odd.

    In 2026-07-28 it may be a member of a request's envelope, too.

    Args:
        revision: Whose methods.
        sender: Who may send them; by default, either side.
    """
    return _nearly_messages(revision, sender)


@cache
def _nearly_messages(revision: str, sender: Side | None) -> st.SearchStrategy[JSONObject]:
    whole = _messages(revision, sender)
    names = st.sampled_from(("jsonrpc", "method", "params", "result", "error", "id"))
    odd = _json_values(1)
    found = (
        st.builds(_without, whole, names)
        | st.builds(_with, whole, names, odd)
        | st.builds(_with, whole, st.just("id"), _NO_IDS)
        | st.builds(_with, answers(revision), st.sampled_from(("result", "error", "method")), odd)
        | st.builds(_with, whole, st.just("params"), st.fixed_dictionaries({"_meta": odd}))
        | st.builds(_with_inner, whole, st.sampled_from(_OPTIONAL), st.none() | odd)
    )
    if DIALECTS[revision].is_modern:
        calls, member = _requests(revision, sender), st.sampled_from(ENVELOPE_MEMBERS)
        found |= st.builds(_misnamed, calls, member, st.just(MISSING) | odd)
    return found


def _misnamed(message: JSONObject, name: str, value: JSONValue | Missing) -> JSONObject:
    """A request whose envelope lacks a member, or has another value in it."""
    meta: JSONObject = {**message["params"]["_meta"], name: value}
    if value is MISSING:
        del meta[name]
    return {**message, "params": {**message["params"], "_meta": meta}}


_OPTIONAL: Final = (
    *("_meta", "arguments", "cursor", "inputRequests", "inputResponses", "isError", "logger"),
    *("message", "nextCursor", "reason", "requestState", "structuredContent", "task", "total"),
)
"""Members that params or results may have: objects dumped from models have null for them."""


def _with_inner(message: JSONObject, name: str, value: JSONValue) -> JSONObject:
    """A message with another member in its params, or in its result."""
    place = "result" if "result" in message else "params"
    return {**message, place: {**message.get(place, {}), name: value}}


def _without(message: JSONObject, name: str) -> JSONObject:
    return {member: value for member, value in message.items() if member != name}


def _with(message: JSONObject, name: str, value: JSONValue) -> JSONObject:
    return {**message, name: value}


def batches(
    revision: str = "2025-03-26", sender: Side | None = None
) -> st.SearchStrategy[list[Any]]:
    """Batches of any messages, empty ones and ones with something wrong inside included.

    Args:
        revision: Whose methods.
        sender: Who may send them; by default, either side.
    """
    return _batches(revision, sender)


@cache
def _batches(revision: str, sender: Side | None) -> st.SearchStrategy[list[Any]]:
    good = _messages(revision, sender)
    any_kind = good | good | _nearly_messages(revision, sender) | st.just(1)
    return st.lists(any_kind, max_size=4)


# --------------------------------------------------------------------------------------- wire


def encoded(value: object) -> bytes:
    """JSON text of a value, with non-ASCII characters as UTF-8 where they have a form in it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _damaged(line: bytes, start: int, lost: int, middle: bytes) -> bytes:
    """A line after one accident: bytes were lost, added, or changed."""
    start %= len(line) + 1
    return line[:start] + middle + line[start + lost :]


_SPOTS: Final = st.integers(0, 1000)
_LOST: Final = st.sampled_from((0, 1, 2, 10, 1000))
_NOISE: Final = st.sampled_from(
    (b"", b"\xff", b"\xed\xa0\x80", b"\x00", b"NaN", b"1e400", b"\\ud800", b'"', b"}", b",")
)
_ODDITIES: Final = st.sampled_from(
    [
        b"",
        b" \t",
        b"\r",
        b"null",
        b"[]",
        b"{}",
        b"true",
        b'"text"',
        b"[1,2",
        b"Listening on port 8080",
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"n":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
        *(
            line
            for many in (30, 300, 5000)  # around usual limits on depth, digits and length
            for line in (
                b"[" * many,
                b'{"a":' * many,
                b"[" * many + b"]" * many,
                b"9" * many,
                b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * many),
                b'{"jsonrpc":"2.0","method":"x","params":{"text":"%b"}}' % (b"x" * many),
            )
        ),
    ]
)


def wire_lines(
    revision: str = "2025-11-25", sender: Side | None = None
) -> st.SearchStrategy[bytes]:
    """One line without its newline: a message, a batch, something damaged, or no message at all.

    Args:
        revision: Whose methods.
        sender: Who may send them; by default, either side.
    """
    return _wire_lines(revision, sender)


@cache
def _wire_lines(revision: str, sender: Side | None) -> st.SearchStrategy[bytes]:
    good = (_messages(revision, sender) | _batches(revision, sender)).map(encoded)
    return (
        good
        | _nearly_messages(revision, sender).map(encoded)
        | st.builds(_damaged, good, _SPOTS, _LOST, _NOISE)
        | _ODDITIES
        | st.binary(max_size=20)
    )


def wire_bytes(revision: str | None = None, sender: Side | None = None) -> st.SearchStrategy[bytes]:
    """What may come out of a byte stream, damage included.

    Args:
        revision: Whose messages; by default, of any revision.
        sender: Who may send them; by default, either side.
    """
    return _wire_bytes(revision, sender)


@cache
def _wire_bytes(revision: str | None, sender: Side | None) -> st.SearchStrategy[bytes]:
    if revision is None:
        return st.one_of([_wire_bytes(known, sender) for known in ALL_REVISIONS])
    return st.builds(
        _joined,
        st.lists(_wire_lines(revision, sender), max_size=6),
        st.sampled_from((b"\n", b"\n", b"\n", b"\r\n")),
        st.sampled_from((b"", b"", b"", b"\xef\xbb\xbf")),
        st.booleans(),
    )


def _joined(lines: list[bytes], newline: bytes, start: bytes, ended: bool) -> bytes:
    return start + newline.join(lines) + (newline if ended else b"")
