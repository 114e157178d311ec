"""Which hosts and origins are served: `Host`, `Origin`, and the headers of CORS.

Source: MCP 2025-11-25, basic/transports, Security Warning; WHATWG Fetch, CORS protocol.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from ..._wire.setting_checks import names_in
from .._headers import Fields, Headers

_LOOPBACK: Final = r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?"
_LOOPBACK_HOST: Final = re.compile(_LOOPBACK, re.IGNORECASE)
_LOOPBACK_ORIGIN: Final = re.compile("https?://" + _LOOPBACK, re.IGNORECASE)
_TOKENS: Final = re.compile(
    r"[-!#$%&'*+.^_`|~0-9A-Za-z]+(?:[ \t]*,[ \t]*[-!#$%&'*+.^_`|~0-9A-Za-z]+)*"
)
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_AUTHORITY: Final = r"([^\x00-\x20:/?#@\[\]]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]+))?"
_HOST: Final = re.compile("()" + _AUTHORITY)
_ORIGIN: Final = re.compile(r"([A-Za-z][-A-Za-z0-9+.]*)://" + _AUTHORITY)
_NAME: Final = re.compile(r"[-0-9A-Za-z_]+(?:\.[-0-9A-Za-z_]+)*\.?|\[.*\]")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_MAX_PORT: Final = 65_535
_DEFAULT_PORTS: Final = {
    **{"http": ("80",), "https": ("443",), "ws": ("80",), "wss": ("443",), "ftp": ("21",)},
    "": ("80", "443"),
}
"""Ports that are left out of an origin, and of `Host`, of which the scheme is not known here."""
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")
_IPV4_PARTS: Final = 4
_SHOWN: Final = 80

_EXPOSED: Final = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, DPoP-Nonce, Retry-After"
_ALLOWED_FIELDS: Final = (
    b"Accept, Authorization, Content-Type, DPoP, Last-Event-ID, Mcp-Method, Mcp-Name, "
    b"MCP-Protocol-Version, Mcp-Session-Id"
)
_PREFLIGHT_SECONDS: Final = b"600"


def _check_host(name: str) -> None:
    """Raise if no client sends this in `Host`."""
    match = _HOST.fullmatch(name)
    if match is None:
        raise ValueError(f'a host is like "api.example", "[::1]:8443" or "*", not {name!r}')
    if why := _advice_on(match):
        raise ValueError(f"no client sends the host {name!r}: {why}")


def _check_origin(name: str) -> None:
    """Raise if no browser sends this in `Origin`."""
    match = _ORIGIN.fullmatch(name)
    if match is None:
        raise ValueError(f'an origin is like "https://app.example" or "*", not {name!r}')
    if why := _advice_on(match):
        raise ValueError(f"no browser sends the origin {name!r}: {why}")


def _advice_on(match: re.Match[str]) -> str | None:
    """Return what to write instead if scheme, name or port is not valid; else None."""
    scheme, name, port = match[1].lower(), match[2], match[3]
    if not name.isascii():
        return "write the name in ASCII (xn--...), as location.host has it in a browser"
    if "*" in name or name.startswith("."):
        return 'names are no patterns: write each of them by itself, or "*" for all'
    if not _NAME.fullmatch(name):
        return "write a name of letters, digits, - and _, with dots between its parts"
    if name.startswith("["):
        try:
            address = IPv6Address(name[1:-1])
        except ValueError:
            return "write an address of IPv6 in the brackets"
        # The form of an address with IPv4 inside is not the same everywhere: any is taken.
        if "." not in address.compressed and address.compressed != name[1:-1].lower():
            return f"write the address in its shortest form, [{address.compressed}]"
    elif scheme and scheme in _DEFAULT_PORTS and (why := _advice_on_ipv4(name.lower())):
        return why
    if port is not None:
        if not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
            return f"write a port from 1 to {_MAX_PORT}, or none"
        if port in _DEFAULT_PORTS.get(scheme, ()):
            return (
                f"the port of the scheme is left out: write {match[0].removesuffix(':' + port)!r}"
            )
    return None


def _advice_on_ipv4(name: str) -> str | None:
    """Return what to write instead if a browser takes a name for another of IPv4; else None.

    If the last part is a number, the whole is an address, and no name. A browser reads many
    notations, and sends one.

    Source: WHATWG URL, host parsing, "ends in a number" and the IPv4 parser.
    """
    parts = name.removesuffix(".").split(".")
    if not _NUMBER.fullmatch(parts[-1]):
        return None
    try:
        address = IPv4Address(_ipv4_value(parts))
    except ValueError:
        return "the last part of a name is no number: write an address such as 127.0.0.1"
    if str(address) == name:
        return None
    return f"write the address as a browser does, {address}"


def _ipv4_value(parts: Sequence[str]) -> int:
    """The address as a number; the last part fills all bytes that are left.

    Raises:
        ValueError: It is none.
    """
    *first, last = map(_number, parts)
    left = _IPV4_PARTS - len(first)  # bytes of the last part
    if left < 1 or last >= 256**left or any(value > 255 for value in first):
        raise ValueError
    return int.from_bytes(bytes(first) + last.to_bytes(left))


def _number(part: str) -> int:
    if not _NUMBER.fullmatch(part):
        raise ValueError
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)


def _readable_by(origin: str) -> Headers:
    return (
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    )


class Origins:
    """Which hosts and origins are served.

    Args:
        hosts: Names in `Host` that are served beside the loopback ones: with a port (exactly that
            one) or without (any). `"*"`: all.
        origins: Origins of web pages that may call, and no others; `"*"`: all; None: pages from
            loopback addresses only, and without CORS.

    Raises:
        ValueError: They are not several strings, or one is never sent in such a header.
    """

    __slots__ = ("_any_host", "_any_origin", "_hosts", "_origins")

    def __init__(self, hosts: Sequence[str], origins: Sequence[str] | None) -> None:
        hosts = names_in("hosts", hosts)
        origins = None if origins is None else names_in("origins", origins)
        # What no browser or client ever sends would refuse all of them without a word.
        for name in hosts:
            if name != "*":
                _check_host(name)
        for name in origins or ():
            if name not in ("*", "null"):
                _check_origin(name)
        self._hosts = frozenset(name.lower() for name in hosts)
        self._any_host = "*" in self._hosts
        self._origins = None if origins is None else frozenset(name.lower() for name in origins)
        self._any_origin = self._origins is not None and "*" in self._origins

    def refusal(self, fields: Fields) -> str | None:
        """Why a request is refused for its `Host` or `Origin`; None if it is not.

        Keeps HTTP-001, HTTP-002.
        """
        host = fields.get(b"host")
        if host is not None and not self._any_host and not self._serves_host(host):
            return (
                f"the host {host[:_SHOWN]!r} is not served: only loopback names are, and those "
                "in hosts= of the endpoint"
            )
        origin = fields.get(b"origin")
        if origin is not None and not self._serves_origin(origin):
            rule = "only those in origins= of the endpoint may"
            if self._origins is None:
                rule = "only pages from loopback addresses may, as origins= is not set"
            return f"the origin {origin[:_SHOWN]!r} may not call: {rule}"
        return None

    def _serves_host(self, host: str) -> bool:
        host = host.lower().removesuffix(":")  # which may stand there without a port (RFC 3986)
        if _LOOPBACK_HOST.fullmatch(host):
            return True
        name, colon, port = host.rpartition(":")
        if colon and port.isdecimal():
            return host in self._hosts or name in self._hosts
        return host in self._hosts

    def _serves_origin(self, origin: str) -> bool:
        if self._any_origin:
            return _PRINTABLE.fullmatch(origin) is not None
        if self._origins is None:
            return _LOOPBACK_ORIGIN.fullmatch(origin) is not None
        return origin.lower() in self._origins

    def cors(self, fields: Fields) -> Headers:
        """The headers of every response to this origin, so that a page may read it."""
        origin = fields.get(b"origin")
        if origin is None or self._origins is None:
            return ()
        if not self._serves_origin(origin) or not _PRINTABLE.fullmatch(origin):
            return ((b"vary", b"Origin"),)
        return _readable_by(origin)

    def cors_of_unread(self) -> Headers:
        """The headers of a response to a request whose `Origin` was not read."""
        if self._any_origin:
            return _readable_by("*")
        if self._origins is not None and len(self._origins) == 1:
            return _readable_by(*self._origins)
        return ()

    def preflight(self, fields: Fields, methods: bytes) -> Headers:
        """The headers of the response to a browser that asks before it calls."""
        if self._origins is None or b"access-control-request-method" not in fields.raw:
            return ()
        asked = fields.get(b"access-control-request-headers") or ""
        allowed = asked.encode() if _TOKENS.fullmatch(asked) else _ALLOWED_FIELDS
        return (
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", _PREFLIGHT_SECONDS),
        )
