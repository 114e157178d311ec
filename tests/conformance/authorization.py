"""How the client is authorized in the scenarios `auth/*`, with what the suite hands over."""

from collections.abc import Mapping
from typing import Any, Final

from sansmcp.auth import (
    AuthorizationConfig,
    ClientCredentials,
    ClientMetadata,
    ClientWanted,
    EnterpriseManaged,
    RegisteredClient,
    WorkloadIdentity,
)
from sansmcp.auth.jose import assertion_signer, new_proof_signer
from sansmcp_io.oauth import FunctionUserAgent, OAuth
from tests.support.http.authorized import consent

METADATA: Final = "https://conformance-test.local/client-metadata.json"
"""The client id where metadata documents are supported; nothing is there."""


def authorization(scenario: str, context: Mapping[str, Any]) -> OAuth | None:
    """What the client has in a scenario; None where no server wants a token."""
    if not scenario.startswith("auth/"):
        return None
    client_id: str = context.get("client_id", "")
    secret: str | None = context.get("client_secret")

    def known(wanted: ClientWanted) -> RegisteredClient | None:
        return RegisteredClient(client_id=client_id, client_secret=secret) if client_id else None

    settings: dict[str, Any] = {}
    if client_id and "issuer" in context:  # the only server that gets the secret
        settings["registered"] = {
            context["issuer"]: RegisteredClient(client_id=client_id, client_secret=secret)
        }
    match scenario.removeprefix("auth/"):
        case "client-credentials-jwt":
            settings["grant"] = ClientCredentials()
            settings["assertions"] = assertion_signer(
                context["private_key_pem"], algorithm=context["signing_algorithm"]
            )
        case "client-credentials-basic":
            settings["grant"] = ClientCredentials()
        case "enterprise-managed-authorization":
            settings["grant"] = EnterpriseManaged(
                token_endpoint=context["idp_token_endpoint"],
                client=RegisteredClient(client_id=context["idp_client_id"]),
                subject_token=context["idp_id_token"],
            )
        case "wif-jwt-bearer":
            settings["grant"] = WorkloadIdentity(assertion=context["valid_jwt"])
        case "dpop" | "dpop-nonce":
            settings["proofs"] = new_proof_signer()
        case _:
            pass
    return OAuth(
        client=ClientMetadata(name="sansmcp-conformance", url=METADATA),
        user_agent=FunctionUserAgent(consent),
        on_client=known,
        config=AuthorizationConfig(ask_for_client=bool(client_id)),
        **settings,
    )
