"""The metadata of the authorization server: its endpoints, and what it supports.

Source: RFC 8414; OpenID Connect Discovery 1.0; MCP 2026-07-28,
basic/authorization/authorization-server-discovery; MCP 2025-03-26, basic/authorization.
"""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from ..._wire.values import JSONObject, Record
from .._common.addresses import AddressRules, RefusedURL
from .._common.well_known import OAUTH, server_metadata_urls
from .core import Core, Refused
from .documents import Documents, strings_of
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .states import AuthorizationTrigger

_TRIED: Final = "metadata of the authorization server"


@attrs.frozen(kw_only=True)
class ServerMetadata(Record):
    """What the metadata of an authorization server says, as far as a client uses it.

    Attributes:
        assumed: The server has no metadata, and the default paths of 2025-03-26 are used.
        legacy: It was found as 2025-03-26 says, at the origin of the MCP server.
    """

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] | None = None
    challenge_methods: tuple[str, ...] | None = None
    signing_algorithms: tuple[str, ...] | None = None
    proof_algorithms: tuple[str, ...] | None = None
    sends_issuer: bool = False
    takes_metadata_urls: bool = False
    assumed: bool = False
    legacy: bool = False


class ServerReader(Protocol):
    """Takes the result."""

    def server_found(self, metadata: ServerMetadata) -> None:
        """Go on with the metadata."""
        ...


def read_server_metadata(
    document: JSONObject, issuers: tuple[str, ...], rules: AddressRules
) -> ServerMetadata:
    """Judge a document. Keeps AUTH-041, AUTH-042, AUTH-225, AUTH-226, AUTH-227, AUTH-228.

    Args:
        document: The document.
        issuers: The identifiers that it may have, exactly.
        rules: The URLs that endpoints may have.

    Raises:
        Refused: It cannot be used.
    """
    issuer = document.get("issuer")
    if not isinstance(issuer, str) or issuer not in issuers:
        raise Refused(
            AuthorizationFailure.ISSUER_MISMATCH,
            f"`issuer` must be {issuers[0]!r}, character by character{slash_hint(issuer, issuers)}",
            "AUTH-041",
        )
    token_endpoint = _endpoint(document, "token_endpoint", rules)
    if token_endpoint is None:
        raise Refused(
            AuthorizationFailure.INVALID_METADATA, "`token_endpoint` is missing", "AUTH-038"
        )
    return ServerMetadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint", rules),
        token_endpoint=token_endpoint,
        registration_endpoint=_endpoint(document, "registration_endpoint", rules),
        revocation_endpoint=_revocation_endpoint(document, rules),
        scopes=strings_of(document, "scopes_supported") or (),
        auth_methods=strings_of(document, "token_endpoint_auth_methods_supported"),
        challenge_methods=strings_of(document, "code_challenge_methods_supported"),
        signing_algorithms=strings_of(document, "token_endpoint_auth_signing_alg_values_supported"),
        proof_algorithms=strings_of(document, "dpop_signing_alg_values_supported"),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_urls=document.get("client_id_metadata_document_supported") is True,
    )


def slash_hint(given: object, expected: tuple[str, ...]) -> str:
    """What to change if an issuer is the expected one but for the slash at its end; else nothing.

    Keeps AUTH-225: that is a mismatch, too.
    """
    if not isinstance(given, str) or given.rstrip("/") != expected[0].rstrip("/"):
        return ""
    return (
        ": it differs by the slash at its end alone; `authorization_servers` of the MCP server, "
        "`issuer` and `iss` of the authorization server have to write it in the same way"
    )


def _endpoint(document: JSONObject, name: str, rules: AddressRules) -> str | None:
    value = document.get(name)
    if value is None:
        return None
    try:
        return rules.check(value).text
    except RefusedURL as error:
        text = f"`{name}` {error}"
        raise Refused(AuthorizationFailure.REFUSED_URL, text, error.rule) from None


def _revocation_endpoint(document: JSONObject, rules: AddressRules) -> str | None:
    """The endpoint that only who logs out needs: a login does not fail for it."""
    try:
        return _endpoint(document, "revocation_endpoint", rules)
    except Refused:
        return None


@attrs.define(eq=False, repr=False)
class ServerDiscovery:
    """Finds the metadata of one authorization server. Keeps AUTH-037, AUTH-038."""

    _core: Core
    _reader: ServerReader
    _documents: Documents = attrs.field(init=False)
    _issuers: tuple[str, ...] = attrs.field(default=(), init=False)
    _legacy: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Make the part that makes the requests."""
        step, trigger = AuthorizationStep.SERVER_METADATA, AuthorizationTrigger.READ_SERVER
        self._documents = Documents(self._core, step, trigger, _TRIED, self)

    def start(self, issuer: str) -> None:
        """Ask for the metadata of an issuer, as the metadata of the resource names it.

        Keeps AUTH-211.
        """
        core = self._core
        self._issuers, self._legacy = (issuer,), False
        try:
            url = core.addresses.check(issuer)
            if url.query:
                raise RefusedURL("has a query, which no issuer has", "AUTH-041")
        except RefusedURL as error:
            text = f"the authorization server {issuer!r:.200} {error}"
            core.note(StepOutcome.FAILED, _TRIED, text, rule=error.rule)
            core.fail(AuthorizationFailure.REFUSED_URL, text, error.rule)
            return
        self._documents.start(server_metadata_urls(url))

    def start_at_origin(self, revision: str) -> None:
        """Ask for the metadata at the origin of the MCP server, as 2025-03-26 says.

        Keeps AUTH-014, AUTH-016, AUTH-019, AUTH-202, AUTH-204.
        """
        origin = self._core.server.origin
        # Nobody has named an issuer here; servers of that time write their origin in both forms.
        self._issuers, self._legacy = (origin, origin + "/"), True
        self._documents.start([origin + OAUTH], (("MCP-Protocol-Version", revision),))

    def found(self, document: JSONObject, url: str, status: int) -> None:
        """Judge a document."""
        core = self._core
        try:
            metadata = read_server_metadata(document, self._issuers, core.addresses)
        except Refused as refused:
            core.note(
                StepOutcome.FAILED, _TRIED, str(refused), rule=refused.rule, url=url, status=status
            )
            core.fail(refused.reason, f"the {_TRIED} at {url}: {refused}", refused.rule)
            return
        core.note(
            StepOutcome.DONE,
            _TRIED,
            f"the issuer is {metadata.issuer}, as it must be",
            rule="AUTH-041",
            url=url,
            status=status,
        )
        self._reader.server_found(attrs.evolve(metadata, legacy=self._legacy))

    def not_found(self, *, definite: bool) -> None:
        """Use the default paths if 2025-03-26 says so, or end the attempt.

        Keeps AUTH-017, AUTH-203.
        """
        core, failure = self._core, AuthorizationFailure
        if not self._legacy or not definite:
            text = f"no {_TRIED} {self._issuers[0]} was found at any of its well-known URLs"
            reason = failure.METADATA_NOT_FOUND if definite else failure.UNREACHABLE
            core.fail(reason, text, "AUTH-038")
            return
        origin = core.server.origin
        core.note(
            StepOutcome.DONE, _TRIED, "there is none: the default paths are used", rule="AUTH-017"
        )
        self._reader.server_found(
            ServerMetadata(
                issuer=origin,
                authorization_endpoint=f"{origin}/authorize",
                token_endpoint=f"{origin}/token",
                registration_endpoint=f"{origin}/register",
                assumed=True,
                legacy=True,
            )
        )
