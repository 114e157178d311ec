"""URLs and addresses that a request of the authorization may go to.

URLs in metadata come from servers that are not trusted yet: a URL could name a service that only
this machine reaches. Addresses are judged by the standard library.

Source: MCP security best practices, Server-Side Request Forgery; RFC 9728, section 7.7.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import attrs

from ..._wire.values import Record

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = re.compile(r"[\x21-\x7e]+")
_AUTHORITY: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]*)?")
_NUMERIC: Final = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)")
_MAX_CHARACTERS: Final = 8192
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# What they lead to depends on the network; the standard library takes some of them for global.
_LOCAL: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "fec0::/10"))
)


class RefusedURL(ValueError):
    """A URL may not be used; the message says why, and `rule` names the rule."""

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(text)
        self.rule: Final = rule


class Reach(enum.Enum):
    """From where an address can be reached."""

    PUBLIC = "public"
    """From everywhere."""
    LOOPBACK = "loopback"
    """From this machine."""
    LINK_LOCAL = "link-local"
    """From the same link, where clouds serve the secrets of a machine to itself."""
    PRIVATE = "private"
    """From the same network; addresses that are reserved, or for documentation, count here, too."""


@attrs.frozen
class WebURL(Record):
    """The parts of an absolute URL of HTTP.

    Attributes:
        text: The URL as it came.
        scheme: `http` or `https`.
        host: A name or an address in lower case, an IPv6 one without its brackets.
        port: The port, also where the URL leaves it out.
        path: The path, empty where the URL has none.
        query: The query without its question mark.
    """

    text: str
    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host and port as a URL without a path; a default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def read_url(text: object) -> WebURL:
    """Read an absolute URL of `http` or `https` without user information and fragment.

    Only the two schemes are allowed, so that a server cannot name a URL of another one.
    Keeps AUTH-249, AUTH-250, AUTH-252.

    Raises:
        RefusedURL: The text is no such URL.
    """
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS or not _SAFE.fullmatch(text):
        raise RefusedURL("is no URL of visible ASCII characters", "AUTH-252")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise RefusedURL("is no URL that can be read", "AUTH-252") from None
    if parts.scheme not in _PORTS:
        raise RefusedURL("is no URL of https or http", "AUTH-250")
    if not parts.hostname or not _AUTHORITY.fullmatch(parts.netloc):
        raise RefusedURL("has no plain host, or names a user", "AUTH-252")
    if "#" in text:
        raise RefusedURL("has a fragment", "AUTH-252")
    known = _PORTS[parts.scheme] if port is None else port
    return WebURL(text, parts.scheme, parts.hostname, known, parts.path, parts.query)


def reach_of_address(text: str) -> Reach | None:
    """From where an address can be reached; None if the text is no address of a single machine.

    Addresses of IPv4 inside those of IPv6 count as what they carry. Keeps AUTH-340.
    """
    try:
        address = _carried(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return None
    if address.is_multicast or address.is_unspecified:
        return None
    if address.is_loopback:
        return Reach.LOOPBACK
    if address.is_link_local:
        return Reach.LINK_LOCAL
    if any(address in network for network in _LOCAL):
        return Reach.PRIVATE
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


def _carried(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 stands for, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    carried = address.ipv4_mapped or address.sixtofour
    if carried is None and address in _NAT64:
        carried = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return carried or address


def reach_of_host(host: str) -> Reach | None:
    """From where the host of a URL can be reached; None if it is no valid host.

    A name is public until it is resolved: `AddressRules.allows_address` judges what it means.
    """
    if ":" in host:
        return reach_of_address(host)
    name = host.removesuffix(".")
    labels = name.split(".")
    if name == "localhost" or labels[-1] == "localhost":
        return Reach.LOOPBACK
    if _NUMERIC.fullmatch(labels[-1]):  # resolvers read odd forms such as 127.1 as addresses
        return reach_of_address(name)
    return Reach.PUBLIC


@attrs.frozen
class AddressRules(Record):
    """Which URLs and addresses may be asked.

    Attributes:
        own: The reach of the server itself: what is as near as the server is no secret to it.
        everything: Whether addresses of every kind are allowed, as for a URL that the application
            has named.
        allowed: The kinds that the application allows, beside public addresses.
    """

    own: Reach | None
    everything: bool = False
    allowed: frozenset[Reach] = frozenset()

    def allows_address(self, ip: str) -> bool:
        """Whether a host name may mean this address. Keeps AUTH-339."""
        return self._allows(reach_of_address(ip))

    def _allows(self, reach: Reach | None) -> bool:
        if reach is None or reach is Reach.PUBLIC:
            return reach is not None
        return self.everything or reach is self.own or reach in self.allowed

    def check(self, text: object) -> WebURL:
        """Read a URL that came from a server, and judge its scheme and host.

        Plain HTTP is for loopback only, and only where loopback is allowed.
        Keeps AUTH-248, AUTH-337, AUTH-338, AUTH-422.

        Raises:
            RefusedURL: The URL is none, or may not be used.
        """
        url = read_url(text)
        reach = reach_of_host(url.host)
        if url.scheme == "http" and reach is not Reach.LOOPBACK:
            raise RefusedURL("is plain http, which only loopback may be", "AUTH-338")
        if not self._allows(reach):
            kind = "no valid" if reach is None else f"a {reach.value}"
            raise RefusedURL(
                f"names {kind} address, which is not allowed for this server", "AUTH-339"
            )
        return url


def resolve(base: str, reference: str) -> str:
    """The URL that a header Location means, which is still to be judged."""
    if len(reference) > _MAX_CHARACTERS or not _SAFE.fullmatch(reference):
        raise RefusedURL("is no URL of visible ASCII characters", "AUTH-252")
    try:
        return urljoin(base, reference)
    except ValueError:
        raise RefusedURL("is no URL that can be read", "AUTH-252") from None
