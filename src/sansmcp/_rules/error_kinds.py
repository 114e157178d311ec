"""The kinds of errors, and the code and data that stand for each of them in each revision.

Several kinds share a code: the code -32602 alone says no more than `INVALID_PARAMS`. Members of
`data` tell these kinds apart, and they are the same in all revisions:

    UNKNOWN_TOOL              -32602   data.unknownTool, the name of the tool
    INVALID_PARAMS            -32602
    RESOURCE_NOT_FOUND        -32602   data.uri; up to 2025-11-25 the code is -32002
    INVALID_CURSOR            -32602   in responses to methods that list pages
    USER_REJECTED             -1       data.userRejected, unless the method asks a user
    MISSING_CAPABILITY        -32021   data.requiredCapabilities; up to 2025-11-25 the code is
                                       -32602, or -32601 for a method that the client does not serve
    URL_ELICITATION_REQUIRED  -32042   data.elicitations; in 2025-11-25 only
    OVERLOADED                -32603   data.reason
"""

from __future__ import annotations

from typing import Any, Final

from .._spec.errors import ErrorCode, ErrorKind, LegacyErrorCode, LocalProtocolError
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import DIALECTS
from .._wire.values import MISSING, JSONObject, JSONValue, Missing, is_list, is_object

_WITH_URLS: Final = "2025-11-25"
"""The only revision with the error -32042."""
_ASKS_USER: Final = frozenset({"elicitation/create", "roots/list", "sampling/createMessage"})
"""The methods by which a server asks the client, and so perhaps its user."""
_LISTS: Final = frozenset(
    name
    for dialect in DIALECTS.values()
    for methods in dialect.requests
    for name, method in methods.items()
    if method.paginated is not None
)
"""The methods with a cursor, which is their only param."""
_URL_MEMBERS: Final = ("elicitationId", "message", "url")

_CODES: Final = {
    ErrorKind.UNKNOWN_TOOL: ErrorCode.INVALID_PARAMS,
    ErrorKind.INVALID_PARAMS: ErrorCode.INVALID_PARAMS,
    ErrorKind.RESOURCE_NOT_FOUND: LegacyErrorCode.RESOURCE_NOT_FOUND,
    ErrorKind.INVALID_CURSOR: ErrorCode.INVALID_PARAMS,
    ErrorKind.USER_REJECTED: LegacyErrorCode.USER_REJECTED,
    ErrorKind.MISSING_CAPABILITY: ErrorCode.INVALID_PARAMS,
    ErrorKind.URL_ELICITATION_REQUIRED: LegacyErrorCode.URL_ELICITATION_REQUIRED,
    ErrorKind.OVERLOADED: ErrorCode.INTERNAL_ERROR,
}
"""The codes of the legacy revisions."""
_MODERN_CODES: Final = {
    **_CODES,
    ErrorKind.RESOURCE_NOT_FOUND: ErrorCode.INVALID_PARAMS,
    ErrorKind.MISSING_CAPABILITY: ErrorCode.MISSING_CLIENT_CAPABILITY,
}


def kind_of_error(method: str, code: int, data: JSONValue = None) -> ErrorKind | None:
    """Return the kind of an error of the peer, whatever the revision; None: it has none of them.

    A code that has one meaning decides by itself. Otherwise a member of `data` does, which
    `send_error` adds: an error -32602 of a program that does not add it is `INVALID_PARAMS`.

    Keeps RES-015, OWN-085, and ERR-005: no other code from -32000 to -32019 has a meaning.

    Args:
        method: The method of the request that was answered.
        code: The code of the error.
        data: Its data; None if it has none.

    Source: MCP 2026-07-28, basic/index, Error Codes; server/resources, Error Handling.
    """
    members: JSONObject = data if is_object(data) else {}
    match code:
        case ErrorCode.INVALID_PARAMS:
            return _kind_of_invalid_params(method, members)
        case LegacyErrorCode.RESOURCE_NOT_FOUND:
            return ErrorKind.RESOURCE_NOT_FOUND
        case LegacyErrorCode.URL_ELICITATION_REQUIRED:
            return ErrorKind.URL_ELICITATION_REQUIRED
        case ErrorCode.MISSING_CLIENT_CAPABILITY:
            return ErrorKind.MISSING_CAPABILITY
        case ErrorCode.METHOD_NOT_FOUND:
            if method in _ASKS_USER or is_object(members.get("requiredCapabilities")):
                return ErrorKind.MISSING_CAPABILITY
        case LegacyErrorCode.USER_REJECTED:
            if method in _ASKS_USER or members.get("userRejected") is True:
                return ErrorKind.USER_REJECTED
        case ErrorCode.INTERNAL_ERROR:
            if isinstance(members.get("reason"), str):
                return ErrorKind.OVERLOADED
        case _:
            pass
    return None


def _kind_of_invalid_params(method: str, data: JSONObject) -> ErrorKind:
    """The kind of an error -32602."""
    if is_object(data.get("requiredCapabilities")):
        return ErrorKind.MISSING_CAPABILITY
    if method in _LISTS:
        return ErrorKind.INVALID_CURSOR
    if isinstance(data.get("unknownTool"), str):
        return ErrorKind.UNKNOWN_TOOL
    if isinstance(data.get("uri"), str):
        return ErrorKind.RESOURCE_NOT_FOUND
    return ErrorKind.INVALID_PARAMS


def error_of_kind(
    kind: ErrorKind,
    revision: str,
    method: str,
    params: JSONObject,
    data: JSONValue | Missing,
) -> tuple[int, JSONValue | Missing]:
    """Return the code and the data that stand for a kind of error in a revision.

    Keeps OWN-085, TOOL-025, RES-011, RES-012, PAGE-008, SAMP-015, ELIC-022, CAP-007.

    Args:
        kind: The kind.
        revision: The revision of the request that is answered.
        method: Its method.
        params: Its params.
        data: The data that the application gives, which is not changed.

    Raises:
        LocalProtocolError: The revision has no such error, or the data lacks what the kind needs.
    """
    is_modern = revision == MODERN_REVISION
    code = (_MODERN_CODES if is_modern else _CODES)[kind]
    match kind:
        case ErrorKind.UNKNOWN_TOOL:
            data = _with_member(data, "unknownTool", params.get("name"))
        case ErrorKind.RESOURCE_NOT_FOUND:
            data = _with_member(data, "uri", params.get("uri"))
        case ErrorKind.OVERLOADED:
            data = _with_member(data, "reason", "overloaded")
        case ErrorKind.USER_REJECTED:
            if method not in _ASKS_USER:
                data = _with_member(data, "userRejected", True)
        case ErrorKind.MISSING_CAPABILITY:
            needed: Any = data.get("requiredCapabilities") if is_object(data) else None
            if not is_object(needed):
                raise LocalProtocolError("CAP-007", "data.requiredCapabilities must be an object")
            if not is_modern and method in _ASKS_USER and not needed.get("elicitation"):
                code = ErrorCode.METHOD_NOT_FOUND  # and -32602 for a mode of elicitation
        case ErrorKind.URL_ELICITATION_REQUIRED:
            check_url_elicitation(revision, method, data)
        case _:  # the code says all
            pass
    return code, data


def check_url_elicitation(revision: str, method: str, data: object) -> None:
    """Raise `LocalProtocolError` if the error -32042 must not answer a request like this.

    Keeps ERR-008, ELIC-023, ELIC-024, ELIC-025.

    Source: MCP 2025-11-25, client/elicitation, URL Elicitation Required Error.
    """
    if revision == MODERN_REVISION:
        text = "revision 2026-07-28 has no error -32042: ask for the visit by require_input"
        raise LocalProtocolError("ERR-008", text)
    if revision != _WITH_URLS:
        raise LocalProtocolError("OWN-085", f"revision {revision} has no elicitation by URL")
    if method in _ASKS_USER:
        text = "a client does not answer with -32042, only a server does"
        raise LocalProtocolError("ELIC-023", text)
    elicitations: Any = data.get("elicitations") if is_object(data) else None
    if not is_list(elicitations):
        raise LocalProtocolError("ELIC-024", "data.elicitations must be a list")
    for one in elicitations:
        if (
            not is_object(one)
            or one.get("mode") != "url"
            or not all(isinstance(one.get(name), str) for name in _URL_MEMBERS)
        ):
            text = "each elicitation in data has the mode url, an elicitationId, message and url"
            raise LocalProtocolError("ELIC-025", text)


def _with_member(data: JSONValue | Missing, name: str, value: JSONValue) -> JSONValue | Missing:
    """Data with a member by which the kind is read back, unless the application gives it."""
    if value is None:
        return data
    if data is MISSING or data is None:
        return {name: value}
    if not is_object(data):
        raise LocalProtocolError(
            "OWN-085", f"the data of this kind of error is an object, since it needs {name}"
        )
    return {name: value, **data}
