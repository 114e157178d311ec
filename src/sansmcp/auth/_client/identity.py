"""The exchange of an identity assertion for a grant, at the identity provider of an enterprise.

Source: the extension Enterprise-Managed Authorization of MCP; RFC 8693.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import attrs

from ..._wire.values import JSONObject
from .._common.addresses import AddressRules, reach_of_host, read_url
from .clients import Clients, client_of
from .core import Core
from .credentials import Client
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .proofs import Proofs
from .settings import SAML2, EnterpriseManaged
from .states import AuthorizationTrigger
from .token_endpoint import TokenEndpoint, TokenRequest

_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_ID_JAG: Final = _TYPE + "id-jag"
_REFRESH_TOKEN: Final = _TYPE + "refresh_token"
_VISIBLE: Final = re.compile(r"[\x20-\x7e]+")
_TRIED: Final = "token exchange at the identity provider"


class GrantReader(Protocol):
    """Takes the result."""

    def grant_received(self, grant: str) -> None:
        """Go on with the grant."""
        ...


@attrs.define(eq=False, repr=False)
class IdentityExchange:
    """Gets a grant (ID-JAG) from the identity provider. Keeps AUTH-372, AUTH-374, AUTH-378."""

    _core: Core
    _reader: GrantReader
    _endpoint: TokenEndpoint = attrs.field(init=False)
    _clients: Clients
    _proofs: Proofs
    _grant: EnterpriseManaged | None = attrs.field(default=None, init=False)
    _wanted: str = attrs.field(default=_ID_JAG, init=False)
    _target: dict[str, str] = attrs.field(factory=dict[str, str], init=False)

    def __attrs_post_init__(self) -> None:
        """Make the part that makes the requests."""
        self._endpoint = TokenEndpoint(self._core, self._clients, self._proofs, self)

    def start(self, grant: EnterpriseManaged, subject_token: str, target: dict[str, str]) -> None:
        """Exchange an identity assertion. Keeps AUTH-367, AUTH-370, AUTH-371, AUTH-383.

        Args:
            grant: The identity provider.
            subject_token: The identity assertion.
            target: The parameters audience, resource and scope.
        """
        self._grant, self._target = grant, target
        if grant.subject_token_type == SAML2:
            # A SAML assertion is not exchanged for a grant at once.
            self._ask(grant, subject_token, SAML2, _REFRESH_TOKEN)
        else:
            self._ask(grant, subject_token, grant.subject_token_type, _ID_JAG)

    def _ask(self, grant: EnterpriseManaged, token: str, kind: str, wanted: str) -> None:
        self._wanted = wanted
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": wanted,
            "subject_token": token,
            "subject_token_type": kind,
            **(self._target if wanted == _ID_JAG else {}),
        }
        url = grant.token_endpoint
        host = read_url(url).host
        self._endpoint.start(
            TokenRequest(
                url=url,
                form=form,
                client=_client_at(grant),
                audience=url,
                bound=False,
                trigger=AuthorizationTrigger.EXCHANGE,
                step=AuthorizationStep.EXCHANGE,
                tried=_TRIED,
                # The application has named this URL itself.
                addresses=AddressRules(
                    reach_of_host(host), allowed=self._core.config.allow_addresses
                ),
            )
        )

    def token_answered(self, document: JSONObject) -> None:
        """Judge what was issued. Keeps AUTH-373."""
        core, grant = self._core, self._grant
        assert grant is not None
        token, kind = document.get("access_token"), document.get("issued_token_type")
        if not isinstance(token, str) or not _VISIBLE.fullmatch(token) or kind != self._wanted:
            text = f"`issued_token_type` must be {self._wanted}, with an `access_token`"
            rule = "AUTH-373"
            core.note(StepOutcome.FAILED, _TRIED, text, rule=rule, url=grant.token_endpoint)
            core.fail(AuthorizationFailure.INVALID_RESPONSE, f"{_TRIED}: {text}", rule)
        elif kind == _REFRESH_TOKEN:
            self._ask(grant, token, _REFRESH_TOKEN, _ID_JAG)
        else:
            text = "the identity provider has issued a grant for the authorization server"
            core.note(StepOutcome.DONE, _TRIED, text, rule="AUTH-367", url=grant.token_endpoint)
            self._reader.grant_received(token)

    def token_refused(self, error: str, text: str) -> None:
        """End the attempt."""
        failure = AuthorizationFailure
        reason = failure.DENIED if error == "access_denied" else failure.REFUSED
        self._core.fail(reason, text, "AUTH-367", error=error or None)


def _client_at(grant: EnterpriseManaged) -> Client:
    secret = grant.client.client_secret
    method = grant.client.auth_method or ("none" if secret is None else "client_secret_basic")
    return client_of(grant.client, method)
