"""URLs of endpoints, their origins, and references to resolve.

Source: RFC 3986, section 5; RFC 6454, section 4.
"""

from __future__ import annotations

import re
from typing import Final, final
from urllib.parse import urljoin, urlsplit

import attrs

from ..._wire.values import Record

_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = re.compile(r"[\x21-\x7e]+")
_AUTHORITY: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%-]+)(?::[0-9]*)?")
_MAX_CHARACTERS: Final = 8192


@final
@attrs.frozen
class Origin(Record):
    """Scheme, host and port of a URL. Two URLs of one origin differ in path and query only.

    Attributes:
        scheme: `http` or `https`.
        host: A name or an address in lower case, an IPv6 one without its brackets.
        port: The port, also where the URL leaves it out.
    """

    scheme: str
    host: str
    port: int


@attrs.frozen
class URL(Record):
    """The parts of an absolute URL of HTTP.

    Attributes:
        text: The whole URL.
        origin: Scheme, host and port.
        authority: Host and port as the header Host names them.
        target: Path and query, as in a request line.
    """

    text: str
    origin: Origin
    authority: str
    target: str


def read_url(text: str) -> URL:
    """Read an absolute URL.

    Raises:
        ValueError: The text is no such URL, or cannot stand in an HTTP request.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ValueError(f"a URL is a string, not {type(text).__name__}")  # it may hold secrets
    if len(text) > _MAX_CHARACTERS or not _SAFE.fullmatch(text):
        raise ValueError("a URL is visible ASCII, and not endless")
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("the URL is no absolute one of http or https")
    if "@" in parts.netloc:
        raise ValueError("the URL holds a name or a password; they belong into headers=")
    labels = parts.hostname.removesuffix(".").split(".")
    if not (_AUTHORITY.fullmatch(parts.netloc) and all(0 < len(one) < 64 for one in labels)):
        raise ValueError("the URL has no valid host")  # which resolvers refuse in odd ways
    port = parts.port  # which raises, too
    origin = Origin(parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    authority = parts.netloc.lower().removesuffix(":")
    return URL(f"{parts.scheme}://{authority}{target}", origin, authority, target)


def resolve(base: URL, reference: str) -> URL:
    """Return the URL that a reference from the server means, relative or absolute.

    Raises:
        ValueError: As `read_url`.
    """
    if len(reference) > _MAX_CHARACTERS or not _SAFE.fullmatch(reference):
        raise ValueError("a URL is visible ASCII, and not endless")
    return read_url(urljoin(base.text, reference))
