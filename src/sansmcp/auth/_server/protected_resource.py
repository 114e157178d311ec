"""An MCP server as OAuth sees it: a protected resource, with its metadata, challenges and checks.

Source: RFC 9728; RFC 6750; RFC 9068, section 4; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote

import attrs

from ..._wire.setting_checks import check_object, check_wait, instance, names_in, text, whole
from ..._wire.values import JSONObject
from .._common.addresses import Reach, RefusedURL, WebURL, reach_of_host, read_url
from .._common.well_known import RESOURCE
from .challenges import challenge, description, error_code
from .credentials import BEARER, DPOP
from .proofs import DPoP
from .scopes import implied_in, scopes_in

Response: TypeAlias = tuple[int, tuple[tuple[bytes, bytes], ...], bytes]
"""Status, headers and body, as `sansmcp.http.ServerExchange.response` has them."""

_PATH: Final = re.compile(r"[-A-Za-z0-9._~!$&'()*+,;=:@/%]*")
_OURS: Final = frozenset(
    {
        "resource",
        "authorization_servers",
        "scopes_supported",
        "bearer_methods_supported",
        "dpop_signing_alg_values_supported",
        "dpop_bound_access_tokens_required",
    }
)
"""The members of the metadata that follow from other settings."""
_MAX_AGE: Final = 300
_CORS: Final = (b"access-control-allow-origin", b"*")
"""Metadata is public: each page may read it, without the user's cookies (Fetch standard)."""


def _resource(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    url = check_https(attribute.name, value)
    if not _PATH.fullmatch(url.path):
        raise ValueError(f"{attribute.name} has no path that a URL may have: {value!r}")


def check_https(name: str, value: object) -> WebURL:
    """The parts of a URL of https, or http on a loopback host, without query.

    Raises:
        ValueError: It is none.
    """
    try:
        url = read_url(value)
    except RefusedURL as error:
        raise ValueError(f"{name} {error}: {value!r:.200}") from None
    if url.scheme == "http" and reach_of_host(url.host) is not Reach.LOOPBACK:
        raise ValueError(
            f"{name} must be https, except on this machine, since tokens could be read on their "
            f"way: {value!r:.200}; behind a proxy that ends TLS, give the URL that clients use"
        )
    if url.query or "?" in url.text:
        raise ValueError(f"{name} must have no query: {value!r:.200}")
    return url


def _servers(value: Iterable[str]) -> tuple[str, ...]:
    """Keeps AUTH-032."""
    servers = names_in("authorization_servers", value)
    if not servers:
        raise ValueError("authorization_servers must name one at least (AUTH-032)")
    for server in servers:
        check_https("each of authorization_servers", server)
    return servers


def _supported(value: Iterable[str]) -> tuple[str, ...]:
    return scopes_in("scopes_supported", value)


def _required(value: Iterable[str]) -> tuple[str, ...]:
    return scopes_in("required_scopes", value)


def _implied(value: Mapping[str, Iterable[str]]) -> Mapping[str, frozenset[str]]:
    return implied_in("implied_scopes", value)


def _audiences(value: Iterable[str]) -> tuple[str, ...]:
    return names_in("audiences", value)


def _metadata(_instance: object, attribute: attrs.Attribute[Any], value: JSONObject) -> None:
    check_object(attribute.name, value)
    if known := sorted(_OURS & value.keys()):
        raise ValueError(f"{', '.join(known)} of the metadata follow from the other settings")
    json.dumps(value)  # a TypeError says what has no JSON form


def _leeway(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    check_wait(attribute.name, value)


@final
@attrs.frozen(eq=False)
class ProtectedResource:
    """An MCP server whose clients need access tokens. Immutable; it can be shared.

    Raises:
        ValueError: A setting is not valid; the text says what to change.
    """

    resource: str = attrs.field(validator=_resource)
    """The URL of the MCP endpoint, as clients use it: `https://api.example/mcp`. Tokens must be
    issued for it. Behind a proxy, the URL in front of it."""
    authorization_servers: tuple[str, ...] = attrs.field(kw_only=True, converter=_servers)
    """The issuers of tokens that are accepted, exactly as they write themselves."""
    scopes_supported: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_supported)
    """The scopes for basic use, which clients ask for where no challenge names others. Not all that
    there are."""
    required_scopes: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_required)
    """The scopes that each request needs. A handler demands more by `InsufficientScope`."""
    implied_scopes: Mapping[str, frozenset[str]] = attrs.field(
        factory=dict[str, frozenset[str]], kw_only=True, converter=_implied
    )
    """The narrower scopes that broad ones imply: `{"files": ["files:read", "files:write"]}`."""
    audiences: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_audiences)
    """Further audiences of tokens that are for this server, such as a client id that an
    authorization server writes in the place of the URL."""
    scope_claim: str = attrs.field(default="scope", kw_only=True, validator=text())
    """The claim with the scopes: a text with spaces, or a list. Some servers call it `scp`."""
    leeway: float = attrs.field(default=30.0, kw_only=True, validator=_leeway)
    """Seconds that the clocks of the server and the authorization server may differ."""
    dpop: DPoP | None = attrs.field(
        default=None,
        kw_only=True,
        validator=attrs.validators.optional(instance(DPoP)),
    )
    """How tokens that are bound to a key are taken; None: they are refused."""
    metadata: JSONObject = attrs.field(factory=dict[str, Any], kw_only=True, validator=_metadata)
    """Further members of the metadata: `resource_name`, `resource_documentation`, ..."""
    max_age: int = attrs.field(default=_MAX_AGE, kw_only=True, validator=whole(0))
    """Seconds that clients may keep the metadata document."""
    _url: WebURL = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Read the URL of the resource once: it is needed for each request."""
        object.__setattr__(self, "_url", read_url(self.resource))

    # ------------------------------------------------------------------------------- metadata

    @property
    def document(self) -> JSONObject:
        """The metadata document, as a new object. Members without values are left out.

        Keeps AUTH-030, AUTH-032, AUTH-317, AUTH-318, AUTH-319.
        """
        document: JSONObject = {
            **self.metadata,
            "resource": self.resource,
            "authorization_servers": [*self.authorization_servers],
            "bearer_methods_supported": ["header"],
        }
        if self.scopes_supported:
            document["scopes_supported"] = [*self.scopes_supported]
        if self.dpop is not None:
            document["dpop_signing_alg_values_supported"] = [*self.dpop.algorithms]
            document["dpop_bound_access_tokens_required"] = self.dpop.required
        return document

    @property
    def metadata_path(self) -> str:
        """The well-known path of the document, with the path of the resource behind it.

        Keeps AUTH-034.
        """
        path = self._url.path
        return RESOURCE + ("" if path == "/" else path)

    @property
    def metadata_url(self) -> str:
        """The URL of the document, which challenges name."""
        return self._url.origin + self.metadata_path

    def respond(self, method: str, target: str) -> Response | None:
        """The response to a request for the metadata; None: the request is for something else.

        Each page in a browser may read it.

        Args:
            method: The method of the request.
            target: Path and query, as in the request line, or the path.
        """
        if unquote(target.partition("?")[0]) != unquote(self.metadata_path):
            return None
        if method in ("GET", "HEAD"):
            body = json.dumps(self.document, ensure_ascii=True).encode()
            headers = (
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
                (b"cache-control", b"public, max-age=%d" % self.max_age),
                _CORS,
            )
            return 200, headers, b"" if method == "HEAD" else body
        if method == "OPTIONS":
            headers = (
                _CORS,
                (b"access-control-allow-methods", b"GET, HEAD"),
                (b"access-control-allow-headers", b"*"),
                (b"access-control-max-age", b"86400"),
            )
            return 204, headers, b""
        return 405, ((b"allow", b"GET, HEAD, OPTIONS"), (b"content-length", b"0"), _CORS), b""

    # ----------------------------------------------------------------------------- challenges

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that requests may use, the preferred one first."""
        if self.dpop is None:
            return (BEARER,)
        return (DPOP,) if self.dpop.required else (DPOP, BEARER)

    def challenge(
        self,
        error: str | None = None,
        text: str | None = None,
        *,
        scopes: Iterable[str] = (),
        scheme: str | None = None,
    ) -> str:
        """The value of `WWW-Authenticate` with which a request is refused.

        Keeps AUTH-033, AUTH-034, AUTH-058, AUTH-062, AUTH-063, AUTH-311, AUTH-320, AUTH-325.

        Args:
            error: The error code, as `insufficient_scope`; None: the request had no credentials.
            text: One sentence for the client, up to 300 characters. Those that are not allowed
                there are replaced.
            scopes: What the request needs beside `required_scopes`.
            scheme: The scheme of the request; None, or one that is not served: all that are.

        Raises:
            ValueError: These are no scopes, or the error code has another form than one.
        """
        needed = dict.fromkeys((*self.required_scopes, *scopes_in("scopes", tuple(scopes))))
        parameters = [] if error is None else [("error", error_code(error))]
        if error is not None and text is not None:
            parameters.append(("error_description", description(text)))
        parameters += [
            ("scope", " ".join(needed)),
            ("resource_metadata", self.metadata_url),
        ]
        schemes = (scheme,) if scheme in self.schemes else self.schemes
        return ", ".join(challenge(one, self._for_scheme(one, parameters)) for one in schemes)

    def _for_scheme(
        self, scheme: str | None, parameters: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        if scheme != DPOP or self.dpop is None:
            return parameters
        return [*parameters, ("algs", " ".join(self.dpop.algorithms))]

    # ----------------------------------------------------------------------------- the checks

    def covered_by(self, scopes: Iterable[str]) -> frozenset[str]:
        """These scopes, with all that they imply. Keeps AUTH-064."""
        given = frozenset(scopes)
        return given.union(*(self.implied_scopes.get(scope, ()) for scope in given))
