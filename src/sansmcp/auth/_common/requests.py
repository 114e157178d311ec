"""HTTP requests that a pure object wants made, and what comes back.

A driver makes each request once, follows no redirect, reads at most `max_body_bytes` of the body,
and connects only to addresses that `HTTPRequest.allows_address` accepts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, final

import attrs

from ..._wire.codec import STANDARD_CODEC, BoundedDecoder
from ..._wire.values import JSONObject, Record, is_object
from .addresses import AddressRules, Reach, reach_of_address, read_url

HeaderFields: TypeAlias = Iterable[tuple[str, str]]

_MAX_DEPTH: Final = 32
_MAX_DIGITS: Final = 64
_MAX_EXCERPT: Final = 200
_MIN_SECRET: Final = 4  # a shorter one would blank out ordinary words


@final
@attrs.frozen(kw_only=True, eq=False)
class HTTPRequest:
    """One HTTP request to make. Compared by identity; headers and body are not in its repr.

    Attributes:
        method: `GET` or `POST`.
        url: The absolute URL.
        headers: Names and values, without Host and Content-Length.
        body: The body; empty for `GET`.
        max_body_bytes: The longest body of a response that is read. If a response has more, stop
            reading, and report a failure.
        timeout: Seconds that the whole exchange may take.
        addresses: The addresses that the host of the URL may have.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    body: bytes = attrs.field(default=b"", repr=False)
    max_body_bytes: int
    timeout: float
    addresses: AddressRules = attrs.field(repr=False)

    def allows_address(self, ip: str) -> bool:
        """Whether this request may go to an address that the host of the URL was resolved to.

        Ask for the address that the connection uses, after the resolution: a name may have another
        address the next time. Plain http is for loopback only, whatever a name of it was resolved
        to. Keeps AUTH-338, AUTH-339, AUTH-343.
        """
        is_plain = read_url(self.url).scheme == "http"
        if is_plain and reach_of_address(ip) is not Reach.LOOPBACK:
            return False
        return self.addresses.allows_address(ip)


@final
@attrs.frozen(kw_only=True)
class RequestWanted(Record):
    """Make this HTTP request, and hand over its response or its failure.

    Attributes:
        request: The request.
    """

    request: HTTPRequest


@attrs.frozen
class HTTPResponse:
    """The response to an `HTTPRequest`, as its parts read it."""

    status: int
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)

    def header(self, name: str) -> str | None:
        """The value of the only header with this name; None without one, or with several."""
        found = [value for other, value in self.headers if other.lower() == name]
        return found[0].strip() if len(found) == 1 else None


def read_document(body: bytes) -> JSONObject | None:
    """The JSON object in a body; None if it is none, or nested too deep."""
    try:
        value = BoundedDecoder(STANDARD_CODEC, _MAX_DEPTH, _MAX_DIGITS).decode(body)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def printable(text: object, secrets: Iterable[object] = ()) -> str:
    """The start of a text from a server, without what a terminal or a log would act on.

    Args:
        text: The text.
        secrets: What the server may repeat, and nobody is to read; each is replaced.
    """
    if not isinstance(text, str):
        return ""
    for secret in secrets:
        if isinstance(secret, str) and len(secret) >= _MIN_SECRET:
            text = text.replace(secret, "[hidden]")
    return "".join(one if one.isprintable() else "?" for one in text[:_MAX_EXCERPT])
