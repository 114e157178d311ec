"""What the heads of one HTTP exchange show: headers, statuses, content types.

Each function judges what stands in one exchange, so the order in which exchanges pass does not
matter. A `HeadBreach` is the id of a rule and a text.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, Streamable HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from .._rules.request_meta import PROTOCOL_VERSION
from .._spec.errors import ErrorCode
from .._spec.modern_methods import MIRRORED_NAMES
from .._spec.registry import LEGACY_REVISIONS, MODERN_REVISIONS
from .._wire.values import JSONObject, is_object

SESSION_ID: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_WITH_VERSION_FIELD: Final = frozenset(LEGACY_REVISIONS[-2:])

Header: TypeAlias = tuple[str, str] | tuple[bytes, bytes]
"""The name and the value of one header."""
Fields: TypeAlias = Mapping[str, str]
"""The headers of one message: names in lower case; values of one name are joined by commas."""
HeadBreach: TypeAlias = tuple[str, str]
"""A rule, and how it was broken."""


def fields_of(headers: Iterable[Header]) -> Fields:
    """The headers of one message, by their names."""
    found: dict[str, str] = {}
    for pair in headers:
        name, value = (text if isinstance(text, str) else text.decode("latin-1") for text in pair)
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def is_success(status: int) -> bool:
    """Whether a status says that the server has accepted the request."""
    return 200 <= status < 300


def is_modern(fields: Fields, message: object) -> bool:
    """Whether a POST is one of 2026-07-28, which belongs to no session."""
    return fields.get(_VERSION) in MODERN_REVISIONS or _named_revision(message) is not None


def _named_revision(message: object) -> str | None:
    """The revision in the `_meta` of a request."""
    version = member(member(member(message, "params"), "_meta"), PROTOCOL_VERSION)
    return version if isinstance(version, str) else None


# ----------------------------------------------------------------------------------------- client


def judge_get(fields: Fields) -> Iterator[HeadBreach]:
    """Judge the head of a GET of the endpoint."""
    if not _accepts(fields, _EVENTS):
        yield "HTTP-021", f"the Accept header of a GET does not list {_EVENTS}"


def judge_post(fields: Fields) -> Iterator[HeadBreach]:
    """Judge the head of a POST to the endpoint of Streamable HTTP."""
    missing = [kind for kind in (_JSON, _EVENTS) if not _accepts(fields, kind)]
    if missing:
        yield "HTTP-009", f"the Accept header of a POST does not list {' and '.join(missing)}"


def judge_modern_fields(fields: Fields, message: object) -> Iterator[HeadBreach]:
    """Judge whether the head of a POST of 2026-07-28 agrees with its body.

    A head of an older revision lacks several headers: that is one breach.
    """
    version, named = fields.get(_VERSION), _named_revision(message)
    missing, differing = _judge_mirrored(fields, message)
    if version is None:
        yield "HDR-005", _joined("a POST has no header MCP-Protocol-Version", missing)
    elif named is not None and version != named:
        text = f"MCP-Protocol-Version is {version!r:.40} and the body says {named!r:.40}"
        yield "HDR-006", _joined(text, missing)
    else:
        yield from missing
    yield from differing


def _joined(text: str, breaches: Iterable[HeadBreach]) -> str:
    return "; ".join((text, *(other for _, other in breaches)))


def _judge_mirrored(fields: Fields, message: object) -> tuple[list[HeadBreach], list[HeadBreach]]:
    """The headers for method and name of a request: which are missing, and which differ."""
    missing: list[HeadBreach] = []
    differing: list[HeadBreach] = []
    method = member(message, "method")
    if not isinstance(method, str) or "id" not in object_of(message):
        return missing, differing
    found = fields.get("mcp-method")
    if found is None:
        missing.append(("HDR-008", f"a request {method!r:.80} has no header Mcp-Method"))
    elif found != method:
        text = f"Mcp-Method is {found!r:.80} and the method is {method!r:.80}"
        differing.append(("HDR-008", text))
    name = member(member(message, "params"), MIRRORED_NAMES.get(method, ""))
    if not isinstance(name, str):
        return missing, differing
    found = fields.get("mcp-name")
    if found is None:
        missing.append(("HDR-009", f"a request {method} has no header Mcp-Name"))
    elif found != name and not _ENCODED.fullmatch(found):
        text = f"Mcp-Name is {found!r:.80} and the body names {name!r:.80}"
        differing.append(("HDR-009", text))
    return missing, differing


def judge_legacy_fields(fields: Fields, revision: str | None) -> Iterator[HeadBreach]:
    """Judge whether a request of a session names the revision that was agreed on."""
    if revision not in _WITH_VERSION_FIELD:
        return
    found = fields.get(_VERSION)
    if found is None:
        yield "HDR-001", "a request of a session has no header MCP-Protocol-Version"
    elif found != revision:
        yield "HDR-002", f"MCP-Protocol-Version is {found!r:.40} and {revision} was agreed on"


# ----------------------------------------------------------------------------------------- server


def judge_get_response(fields: Fields, status: int) -> Iterator[HeadBreach]:
    """Judge the head of the response to a GET of the endpoint."""
    kind = _media_type(fields.get("content-type", ""))
    if is_success(status) and kind != _EVENTS:
        yield "HTTP-022", f"a GET is answered with {status} and {kind or 'no content type'}"


def judge_post_response(
    fields: Fields, status: int, *, has_request: bool, is_modern: bool
) -> Iterator[HeadBreach]:
    """Judge the head of the response to a POST; `has_request`: of a JSON-RPC request."""
    if not is_success(status):
        return
    kind = _media_type(fields.get("content-type", ""))
    if has_request and kind not in (_JSON, _EVENTS):
        yield "HTTP-018", f"a request is answered with {status} and {kind or 'no content type'}"
    elif not has_request and status != 202:
        rule = "HTTP-015" if is_modern else "HTTP-014"
        yield rule, f"a message that is no request is answered with {status} instead of 202"


def judge_session_id(session: str) -> Iterator[HeadBreach]:
    """Judge the session id of a response."""
    if not _VISIBLE.fullmatch(session):
        yield "SESS-003", "a session id has characters other than visible ASCII"


def judge_modern_error(status: int, message: object) -> Iterator[HeadBreach]:
    """Judge whether the status of an error that is a whole body belongs to its code."""
    code: Any = member(member(message, "error"), "code")
    if code == ErrorCode.METHOD_NOT_FOUND and status != 404:
        yield "HTTP-023", f"the error {code} comes with the status {status} instead of 404"
    elif code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and status != 400:
        yield "HTTP-024", f"the error {code} comes with the status {status} instead of 400"
    elif code == ErrorCode.MISSING_CLIENT_CAPABILITY and status != 400:
        yield "CAP-008", f"the error {code} comes with the status {status} instead of 400"


# ---------------------------------------------------------------------------------------- reading


def _accepts(fields: Fields, kind: str) -> bool:
    """Whether Accept lists a type; a wildcard counts, since it means the same."""
    listed = [_media_type(part) for part in fields.get("accept", "").split(",")]
    return kind in listed or "*/*" in listed or f"{kind.partition('/')[0]}/*" in listed


def _media_type(value: str) -> str:
    """A content type without its parameters, in lower case."""
    return value.partition(";")[0].strip().lower()


def object_of(value: Any) -> JSONObject:
    """The value if it is an object, else an empty object."""
    return value if is_object(value) else {}


def member(value: Any, name: str) -> Any:
    """A member of an object; None if the value is no object or has no such member."""
    return object_of(value).get(name)
