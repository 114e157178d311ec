"""The rules on a message by itself, which do not depend on its sender or on earlier messages.

Connections and observers call these functions; none has side effects. For speed a connection checks
the members that are nearly always right by itself, and calls a function here only if one is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final, TypeGuard

from .._spec.errors import ErrorCode
from .._spec.methods import Dialect
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import LOG_LEVELS, OBJECTS, Registry
from .._wire.values import (
    MISSING,
    IdKey,
    JSONObject,
    ProgressToken,
    id_key,
    is_list_of_strings,
    is_object,
)
from .sending import Breach

_VERSION: Final = Breach("JSON-001", 'jsonrpc is not "2.0"')

BAD_REQUEST_ID: Final = Breach("JSON-002", "a request id is a string or an integer")
BAD_RESPONSE_ID: Final = Breach("JSON-002", "a response has no usable id")
NO_OBJECT: Final = Breach("JSON-001", "a message is a JSON object")
NULL_PARAMS: Final = Breach("OWN-015", "params is null", tolerated=True)
BATCHED_INITIALIZE: Final = Breach("BATCH-003", "initialize is never part of a batch")
NO_RESULT_TYPE: Final = Breach("JSON-020", "a result has no resultType", tolerated=True)
UNKNOWN_LEVEL: Final = Breach("LOG-002", "a log message has no known level", tolerated=True)
UNKNOWN_WISH: Final = Breach("LOG-002", f"the log level is none of {', '.join(LOG_LEVELS)}")


def null_member(name: str) -> Breach:
    """The breach for an optional member that is null, which counts as absent."""
    return Breach("OWN-015", f"{name} is null", tolerated=True)


def judge_request_or_notification(message: JSONObject) -> Breach | None:
    """Return the breach if the envelope of a request or notification is not valid; else None."""
    if message.get("jsonrpc") != "2.0":
        return _VERSION
    if "id" in message and ("result" in message or "error" in message):
        return Breach("ERR-001", "a message is both a request and a response")
    params: Any = message.get("params")
    if params is not None and not is_object(params):
        return Breach("JSON-017", "params is not an object", ErrorCode.INVALID_PARAMS)
    return None


def judge_response(message: JSONObject) -> Breach | None:
    """Return the breach if the envelope of a response, except its id, is not valid; else None."""
    result: Any = message.get("result", MISSING)
    error: Any = message.get("error", MISSING)
    if error is MISSING:
        if result is MISSING:
            return Breach("JSON-005", "a response has neither result nor error")
        if not is_object(result):
            return Breach("JSON-007", "a result is not an object")
    elif result is not MISSING:
        return Breach("JSON-006", "a response has both result and error")
    elif not is_error(error):
        return Breach("JSON-008", "an error lacks an integer code or a string message")
    return None if message.get("jsonrpc") == "2.0" else _VERSION


def is_error(error: object) -> bool:
    """Whether a JSON value is a well-formed error object.

    Keeps JSON-009.
    """
    return (
        is_object(error)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
    )


def judge_error_without_id(message: JSONObject, dialect: Dialect | None) -> Breach | None:
    """Return the breach if an error has no id, or the id null, where it needs one; else None.

    Without a `dialect` the revision is unknown, and an absent id is no breach.
    """
    if "id" in message:
        return Breach("JSON-003", "an error has the id null", tolerated=True)
    if dialect is not None and not dialect.has_idless_errors:
        return Breach("JSON-010", "an error has no id", tolerated=True)
    return None


def judge_unknown_object(message: JSONObject) -> Breach:
    """Return the breach of an object that is no request, no notification and no response."""
    if "method" in message:
        return Breach("ERR-001", "method is not a string")
    return Breach("ERR-001", "a message has neither method nor result nor error")


def judge_batch(dialect: Dialect, values: list[Any]) -> Breach | None:
    """Return the breach if a batch as a whole is not allowed in this revision; else None."""
    if not dialect.has_batches:
        return Breach("BATCH-008", "batches exist only in revision 2025-03-26")
    if not values:
        return Breach("BATCH-005", "a batch is empty")
    return None


def judge_posted_batch(values: list[Any]) -> Breach | None:
    """Return the breach if a POSTed batch mixes responses with other messages; else None."""
    objects = [value for value in values if is_object(value)]
    calls = sum("method" in value for value in objects)
    answers = sum(
        "method" not in value and ("result" in value or "error" in value) for value in objects
    )
    if calls and answers:
        text = "a batch has requests or notifications, or it has responses: not both"
        return Breach("BATCH-004", text)
    return None


def judge_reserved_code(code: int, data: object) -> Breach | None:
    """Return the breach if a code is reserved by 2026-07-28, or has wrong `data`; else None.

    Keeps ERR-007.
    """
    if not -32099 <= code <= -32020 or code == ErrorCode.HEADER_MISMATCH:
        return None
    if code == ErrorCode.MISSING_CLIENT_CAPABILITY:
        if is_object(data) and is_object(data.get("requiredCapabilities")):
            return None
        return Breach("CAP-007", "data.requiredCapabilities must be an object")
    if code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        if (
            is_object(data)
            and isinstance(data.get("requested"), str)
            and is_list_of_strings(data.get("supported"))
        ):
            return None
        text = "data needs supported, a list of revisions, and requested, a string"
        return Breach("VER-008", text)
    return Breach("ERR-006", f"this revision does not define the code {code}")


def judge_caching_hints(result: JSONObject) -> Breach | None:
    """Return the breach if the caching hints of a result are not valid; else None."""
    ttl: Any = result.get("ttlMs", MISSING)
    scope: Any = result.get("cacheScope", MISSING)
    if ttl is MISSING or scope is MISSING:
        return Breach("CACHE-001", "a result lacks ttlMs or cacheScope", tolerated=True)
    is_whole = type(ttl) is int or (isinstance(ttl, float) and ttl.is_integer())
    if not is_whole or ttl < 0:
        text = f"ttlMs is a number of milliseconds, not {ttl!r:.40}"
        return Breach("CACHE-002", text, tolerated=True)
    if scope not in ("public", "private"):
        text = f"cacheScope is public or private, not {scope!r:.40}"
        return Breach("CACHE-003", text, tolerated=True)
    return None


def judge_input_required(result: JSONObject) -> Breach | None:
    """Return the breach if a result with questions is not valid, but for these; else None."""
    questions: Any = result.get("inputRequests", {})
    state: Any = result.get("requestState", MISSING)
    if not is_object(questions) or (state is not MISSING and not isinstance(state, str)):
        return Breach("OWN-014", "inputRequests is no object, or requestState no string")
    if not questions and state is MISSING:
        return Breach(
            "MRTR-004", "a result with questions lacks both inputRequests and requestState"
        )
    return None


def judge_inputs(params: JSONObject) -> Breach | None:
    """Return the breach if `inputResponses` or `requestState` is not valid; else None.

    Keeps MRTR-028.
    """
    responses: Any = params.get("inputResponses", {})
    if not is_object(responses) or not all(is_object(value) for value in responses.values()):
        text = "inputResponses is not an object of objects"
        return Breach("MRTR-027", text, ErrorCode.INVALID_PARAMS)
    if not isinstance(params.get("requestState", ""), str):
        return Breach("MRTR-027", "requestState is not a string", ErrorCode.INVALID_PARAMS)
    return None


def id_of_other_type(key: IdKey) -> IdKey | None:
    """The same id in the other JSON type: 7 for "7", and "7" for 7; None if there is none."""
    if not isinstance(key, str):
        return str(key)
    other = int(key) if key.isdecimal() and len(key) < 20 else None
    return None if str(other) != key else other  # "007" is not 7


def token_in(meta: object) -> ProgressToken | Breach | None:
    """Return the progress token in `_meta`, or the breach if it is not valid; None without one."""
    if not is_object(meta):
        return Breach("OWN-014", "_meta is not an object", ErrorCode.INVALID_PARAMS)
    raw: Any = meta.get("progressToken", MISSING)
    if raw is MISSING:
        return None
    token = id_key(raw)
    if token is None:
        text = "a progress token is a string or an integer"
        return Breach("PROG-001", text, ErrorCode.INVALID_PARAMS)
    return token


def token_in_use(token: ProgressToken) -> Breach:
    """The breach for a request with the progress token of another open request."""
    return Breach("PROG-002", f"the progress token {token!r} is in use", tolerated=True)


def judge_progress(params: JSONObject) -> Breach | None:
    """Return the breach if a required member of progress is not valid; else None."""
    if id_key(params.get("progressToken")) is None:
        return Breach("PROG-001", "a progress token is no string and no integer")
    progress: Any = params.get("progress")
    if type(progress) is not int and type(progress) is not float:
        return Breach("OWN-014", "progress is no number")
    return None


def no_increase(last: float, progress: float) -> Breach:
    """The breach for progress that is not larger than the last progress of its request."""
    return Breach("PROG-003", f"progress went from {last} to {progress}")


def judge_cancellation(params: JSONObject, dialect: Dialect) -> Breach | None:
    """Return the breach if `notifications/cancelled` names no usable request id; else None."""
    raw: Any = params.get("requestId", MISSING)
    if id_key(raw) is not None:
        return None
    rule = "JSON-002"
    if raw is MISSING:
        rule = "CANC-006" if dialect.revision == "2025-11-25" else "CANC-007"
    return Breach(rule, "a cancellation names no usable request id")


_LABEL: Final = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTENSION: Final = rf"{_LABEL}(?:\.{_LABEL})*/(?:{_NAME})?"
"""The name of an extension. `re` compiles and keeps it when it is first used."""


_FLAGS: Final = frozenset({"listChanged", "subscribe"})


def judge_capabilities(
    registry: Registry, revision: str | None, capabilities: JSONObject
) -> list[Breach]:
    """Return the breaches in the capabilities that a side declares in a revision (None: in any)."""
    paths = registry.every_path if revision is None else registry.paths[revision]
    named = ["experimental"]
    objects = OBJECTS
    if revision is None or revision == MODERN_REVISION:
        named.append("extensions")
    else:
        objects -= {"extensions"}
    found = _judge_known(paths | objects, capabilities, "")
    for name in named:
        declared: Any = capabilities.get(name)
        if is_object(declared) and (breach := _judge_named(name, declared)) is not None:
            found.append(breach)
    return found


def _judge_known(paths: Collection[str], capabilities: JSONObject, path: str) -> list[Breach]:
    found: list[Breach] = []
    for name, value in capabilities.items():
        inner = f"{path}.{name}" if path else name
        if inner not in paths:
            continue  # a side may declare other capabilities (CAP-005)
        if value is None:
            found.append(null_member(f"the capability {inner}"))
        elif path and name in _FLAGS:
            if not isinstance(value, bool):
                text = f"the capability {inner} is no boolean"
                found.append(Breach("OWN-047", text, tolerated=True))
        elif is_object(value):
            found += _judge_known(paths, value, inner)
        else:
            found.append(Breach("OWN-047", f"the capability {inner} is no object", tolerated=True))
    return found


def _judge_named(path: str, declared: JSONObject) -> Breach | None:
    """Return the first breach if `experimental` or `extensions` is not valid; else None."""
    for name, value in declared.items():
        if path == "extensions" and re.fullmatch(_EXTENSION, name) is None:
            text = f"{name[:80]!r} is no name of an extension: a prefix and a slash are needed"
            return Breach("EXT-001", text, tolerated=True)
        if not is_object(value):
            text = f"the capability {path}.{name[:80]} is no object"
            return Breach("OWN-047", text, tolerated=True)
    return None


def is_level(level: object) -> TypeGuard[str]:
    """Whether a JSON value is a log level."""
    return isinstance(level, str) and level in LOG_LEVELS
