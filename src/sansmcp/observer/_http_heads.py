"""What one HTTP exchange shows of the rules for heads: fields, statuses, content types.

Judged is only what stands in the exchange itself, so that the order in which exchanges pass does
not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .._spec.errors import ErrorCode
from .._spec.registry import LEGACY_REVISIONS, MODERN_REVISIONS
from .._wire.values import JSONObject, is_object

VERSION_FIELD: Final = "mcp-protocol-version"
SESSION_FIELD: Final = "mcp-session-id"
VERSION_MEMBER: Final = "io.modelcontextprotocol/protocolVersion"

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_WITH_VERSION_FIELD: Final = frozenset(LEGACY_REVISIONS[-2:])

Fields = Mapping[str, str]
"""A head: names in lower case."""
Fault = tuple[str, str]
"""A rule, and how it was broken."""


def is_success(status: int) -> bool:
    """Whether the server has taken it."""
    return 200 <= status < 300


def named_revision(message: object) -> str | None:
    """The revision that a request of 2026-07-28 names for itself."""
    version = member(member(member(message, "params"), "_meta"), VERSION_MEMBER)
    return version if isinstance(version, str) else None


def is_modern(fields: Fields, message: object) -> bool:
    """Whether a POST speaks for itself, and belongs to no session."""
    return fields.get(VERSION_FIELD) in MODERN_REVISIONS or named_revision(message) is not None


def judge_get(fields: Fields) -> Iterator[Fault]:
    """The head of a GET of the endpoint, on behalf of the client."""
    if not _accepts(fields, _EVENTS):
        yield "HTTP-021", f"the Accept field of a GET does not list {_EVENTS}"


def judge_post(fields: Fields) -> Iterator[Fault]:
    """The head of a POST to the endpoint of Streamable HTTP."""
    missing = [kind for kind in (_JSON, _EVENTS) if not _accepts(fields, kind)]
    if missing:
        yield "HTTP-009", f"the Accept field of a POST does not list {' and '.join(missing)}"


def judge_modern_fields(fields: Fields, message: object) -> Iterator[Fault]:
    """Whether the head of a POST of 2026-07-28 says what its body says.

    A head of an older revision lacks the other fields as well: that is one fault.
    """
    version, said = fields.get(VERSION_FIELD), named_revision(message)
    missing, differing = _judge_mirrored(fields, message)
    if version is None:
        yield "HDR-005", _with(missing, "a POST has no field MCP-Protocol-Version")
    elif said is not None and version != said:
        text = f"MCP-Protocol-Version is {version!r:.40} and the body says {said!r:.40}"
        yield "HDR-006", _with(missing, text)
    else:
        yield from missing
    yield from differing


def _with(missing: Iterable[Fault], text: str) -> str:
    return "; ".join((text, *(other for _, other in missing)))


def _judge_mirrored(fields: Fields, message: object) -> tuple[list[Fault], list[Fault]]:
    """The fields with the method and the name of a request: which are missing, which differ."""
    missing: list[Fault] = []
    differing: list[Fault] = []
    method = member(message, "method")
    if not isinstance(method, str) or "id" not in object_of(message):
        return missing, differing
    found = fields.get("mcp-method")
    if found is None:
        missing.append(("HDR-008", f"a request {method!r:.80} has no field Mcp-Method"))
    elif found != method:
        text = f"Mcp-Method is {found!r:.80} and the method is {method!r:.80}"
        differing.append(("HDR-008", text))
    name = member(member(message, "params"), _NAMED.get(method, ""))
    if not isinstance(name, str):
        return missing, differing
    found = fields.get("mcp-name")
    if found is None:
        missing.append(("HDR-009", f"a request {method} has no field Mcp-Name"))
    elif found != name and not _ENCODED.fullmatch(found):
        text = f"Mcp-Name is {found!r:.80} and the body names {name!r:.80}"
        differing.append(("HDR-009", text))
    return missing, differing


def judge_legacy_fields(fields: Fields, revision: str | None) -> Iterator[Fault]:
    """Whether a request of a session names the revision that was agreed on."""
    if revision not in _WITH_VERSION_FIELD:
        return
    found = fields.get(VERSION_FIELD)
    if found is None:
        yield "HDR-001", "a request of a session has no field MCP-Protocol-Version"
    elif found != revision:
        yield "HDR-002", f"MCP-Protocol-Version is {found!r:.40} and {revision} was agreed on"


def judge_get_response(fields: Fields, status: int) -> Iterator[Fault]:
    """The head of the response to a GET of the endpoint."""
    kind = media_type(fields.get("content-type"))
    if is_success(status) and kind != _EVENTS:
        yield "HTTP-022", f"a GET is answered with {status} and {kind or 'no content type'}"


def judge_post_response(
    fields: Fields, status: int, *, asked: bool, modern: bool
) -> Iterator[Fault]:
    """The head of the response to a POST; `asked`: a request was POSTed."""
    if not is_success(status):
        return
    kind = media_type(fields.get("content-type"))
    if asked and kind not in (_JSON, _EVENTS):
        yield "HTTP-018", f"a request is answered with {status} and {kind or 'no content type'}"
    elif not asked and status != 202:
        rule = "HTTP-015" if modern else "HTTP-014"
        yield rule, f"what is no request is answered with {status} instead of 202"


def judge_session(fields: Fields) -> Iterator[Fault]:
    """The session id of a response."""
    session = fields.get(SESSION_FIELD)
    if session is not None and not _VISIBLE.fullmatch(session):
        yield "SESS-003", "a session id has characters other than visible ASCII"


def judge_modern_error(status: int, message: object) -> Iterator[Fault]:
    """Whether the status of an error that is a whole body is that of its code."""
    code: Any = member(member(message, "error"), "code")
    if code == ErrorCode.METHOD_NOT_FOUND and status != 404:
        yield "HTTP-023", f"the error {code} comes with the status {status} instead of 404"
    elif code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and status != 400:
        yield "HTTP-024", f"the error {code} comes with the status {status} instead of 400"


def _accepts(fields: Fields, kind: str) -> bool:
    """A wildcard is no list of both kinds, but means it: nobody is accused of that."""
    listed = [media_type(part) for part in fields.get("accept", "").split(",")]
    return kind in listed or "*/*" in listed or f"{kind.partition('/')[0]}/*" in listed


def media_type(value: str | None) -> str:
    """A content type without its parameters, in lower case."""
    return (value or "").partition(";")[0].strip().lower()


def object_of(value: Any) -> JSONObject:
    """The value if it is an object, else an empty one."""
    return value if is_object(value) else {}


def member(value: Any, name: str) -> Any:
    """A member of an object; None if it is no object or has no such member."""
    return object_of(value).get(name)
