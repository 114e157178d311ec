"""Heads of requests and responses: what is needed beyond h11."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, final

import attrs
import h11

REASONS: Final[Mapping[int, bytes]] = {
    200: b"OK",
    202: b"Accepted",
    204: b"No Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    408: b"Request Timeout",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}

_QUOTED: Final = re.compile(r":? ?(?:bytearray\(|memoryview\()?b?['\"].*", re.DOTALL)
"""Where h11 quotes what the peer wrote, as Python shows bytes."""


def sentence_without_quotes(error: h11.RemoteProtocolError) -> str:
    """The text of an error of h11, without the peer's data, which may be long or secret."""
    return _QUOTED.sub("", str(error))


def check_lines(head: bytes, lines: int) -> None:
    """Refuse a head with line breaks inside of a header.

    Such a head is not written by h11, which checks each header. This checks all of them at once.

    Raises:
        ValueError: A header contains CR, LF or NUL.
    """
    if not head.count(b"\r") == head.count(b"\n") == lines or b"\0" in head:
        raise ValueError("a header field contains CR, LF or NUL, and is not sent")


@final
@attrs.frozen
class RequestHead:
    """The head of a request.

    Attributes:
        method: The method.
        target: Path and query, as in the request line.
        headers: By names in lower case. Several headers of one name are joined by commas. They may
            have secrets, and are not in the repr.
    """

    method: str
    target: str
    headers: Mapping[str, str] = attrs.field(repr=False)


def head_of(request: h11.Request) -> RequestHead:
    """The head of a request, for functions that decide whether it is served."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return RequestHead(
        request.method.decode("ascii"),
        request.target.decode("latin-1"),
        MappingProxyType(headers),
    )


def body_bytes(headers: Iterable[tuple[bytes, bytes]]) -> float:
    """The announced length of the body of a request; `math.inf` if there is none.

    Raises:
        h11.RemoteProtocolError: The length is announced in two ways.
    """
    length: bytes | None = None
    is_chunked = False
    for name, value in headers:
        if name == b"content-length":
            length = value
        elif name == b"transfer-encoding":
            is_chunked = True
    if is_chunked and length is not None:
        # RFC 9112, 6.1: a proxy in front of this server may have read it otherwise.
        text = "Transfer-Encoding and Content-Length contradict each other"
        raise h11.RemoteProtocolError(text)
    return math.inf if is_chunked else int(length or 0)


def origin_form(
    target: bytes, headers: list[tuple[bytes, bytes]]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Split a request target that is a whole URL, as proxies get it (RFC 9112, 3.2.2).

    Its authority replaces the header `Host`. Any other target stays as it is.
    """
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return target, headers
    authority, _, path = rest.partition(b"/")
    others = [(name, value) for name, value in headers if name != b"host"]
    return b"/" + path, [(b"host", authority), *others]
