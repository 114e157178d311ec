"""The metadata of the protected resource, which names the authorization servers.

Source: RFC 9728; MCP 2026-07-28, basic/authorization/authorization-server-discovery.
"""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from ..._wire.values import JSONObject, Record
from .._common.addresses import RefusedURL, WebURL, read_url
from .._common.requests import printable
from .._common.well_known import RESOURCE
from .core import Core, Refused
from .documents import Documents, strings_of
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .states import AuthorizationTrigger

_TRIED: Final = "metadata of the protected resource"


@attrs.frozen(kw_only=True)
class ResourceMetadata(Record):
    """What the metadata of a resource says, as far as a client uses it."""

    url: str
    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...] | None
    bound_tokens: bool


class ResourceReader(Protocol):
    """Takes the result."""

    def resource_found(self, metadata: ResourceMetadata) -> None:
        """Go on with the metadata."""
        ...

    def resource_absent(self) -> None:
        """Go on without any."""
        ...


def canonical_uri(server: WebURL) -> str:
    """The canonical URI of the MCP server.

    Scheme and host in lower case, without a default port, a fragment, or a slash at the end.
    Keeps AUTH-046, AUTH-048, AUTH-049, AUTH-218.
    """
    query = f"?{server.query}" if server.query else ""
    return f"{server.origin}{server.path.rstrip('/')}{query}"


def well_known_urls(server: WebURL) -> list[str]:
    """The URLs at which the metadata may be: with the path of the server, then at the root.

    Keeps AUTH-208.
    """
    path = "" if server.path == "/" else server.path
    suffix = path + (f"?{server.query}" if server.query else "")
    root = server.origin + RESOURCE
    return [root + suffix, root] if suffix else [root]


def stands_for(resource: WebURL, server: WebURL) -> bool:
    """Whether a resource is the MCP server, or a parent path at its origin.

    Keeps AUTH-213, AUTH-214.
    """
    parent, path = resource.path.rstrip("/"), server.path.rstrip("/")
    return (
        resource.origin == server.origin
        and resource.query in ("", server.query)
        and (path == parent or path.startswith(parent + "/"))
    )


def read_resource_metadata(document: JSONObject, url: str, server: WebURL) -> ResourceMetadata:
    """Judge a document.

    Raises:
        Refused: It cannot be used.
    """
    resource = document.get("resource")
    try:
        is_ours = isinstance(resource, str) and stands_for(read_url(resource), server)
    except RefusedURL:
        is_ours = False
    if not isinstance(resource, str) or not is_ours:
        raise Refused(
            AuthorizationFailure.RESOURCE_MISMATCH,
            f"`resource` must be {canonical_uri(server)}, so that tokens are for this server",
            "AUTH-213",
        )
    servers = strings_of(document, "authorization_servers")
    if not servers:
        raise Refused(
            AuthorizationFailure.INVALID_METADATA,
            "`authorization_servers` must list at least one authorization server",
            "AUTH-032",
        )
    return ResourceMetadata(
        url=url,
        resource=resource,
        authorization_servers=servers,
        scopes=strings_of(document, "scopes_supported"),
        bound_tokens=document.get("dpop_bound_access_tokens_required") is True,
    )


@attrs.define(eq=False, repr=False)
class ResourceDiscovery:
    """Finds the metadata: where the challenge says, else at the well-known URLs.

    Keeps AUTH-031, AUTH-035, AUTH-209, AUTH-223.
    """

    _core: Core
    _reader: ResourceReader
    _documents: Documents = attrs.field(init=False)
    _named: str | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Make the part that makes the requests."""
        step, trigger = AuthorizationStep.RESOURCE_METADATA, AuthorizationTrigger.READ_RESOURCE
        self._documents = Documents(self._core, step, trigger, _TRIED, self)

    def start(self, named: str | None, remembered: str | None) -> None:
        """Ask for the metadata.

        Args:
            named: The URL that the challenge names.
            remembered: The URL at which an earlier attempt found it, which is only a first guess.
        """
        self._named = named
        known = well_known_urls(self._core.server)
        if named is not None:
            known = [named]
        elif remembered is not None and remembered not in known:
            known.insert(0, remembered)
        self._documents.start(known)

    def found(self, document: JSONObject, url: str, status: int) -> None:
        """Judge a document."""
        core = self._core
        try:
            metadata = read_resource_metadata(document, url, core.server)
        except Refused as refused:
            core.note(
                StepOutcome.FAILED, _TRIED, str(refused), rule=refused.rule, url=url, status=status
            )
            core.fail(refused.reason, f"the {_TRIED} at {url}: {refused}", refused.rule)
            return
        servers = printable(", ".join(metadata.authorization_servers))
        core.note(
            StepOutcome.DONE,
            _TRIED,
            f"tokens for {metadata.resource} come from {servers}",
            rule="AUTH-031",
            url=url,
            status=status,
        )
        self._reader.resource_found(metadata)

    def not_found(self, *, definite: bool) -> None:
        """Go on as with a server that has no such metadata, or end the attempt."""
        if self._named is not None:
            text = f"the challenge names {self._named} as `resource_metadata`, which gives none"
        elif not definite:
            text = "the server was unable to say whether it has metadata as a protected resource"
        elif not self._core.config.legacy_fallback:
            text = "the server has no metadata as a protected resource (RFC 9728)"
        else:
            self._reader.resource_absent()
            return
        reason = AuthorizationFailure
        self._core.fail(
            reason.METADATA_NOT_FOUND if definite else reason.UNREACHABLE, text, "AUTH-035"
        )
