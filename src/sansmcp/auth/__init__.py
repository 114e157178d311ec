"""Authorization (OAuth 2.1) without I/O, for clients and for servers.

`AuthorizationClient` gets tokens for one MCP server: it asks for HTTP requests, for a user agent
and for credentials to be stored, and it ends in `Authorized` or `AuthorizationFailed`. It needs no
other package; what signs with keys is in `sansmcp.auth.jose`, which only those import who need it.

`ResourceServer` checks the tokens that an MCP server gets; `ProtectedResource` is its description.

Rooms: `_common` (requests, addresses), `_client`, `_server`. It knows `_wire`, `_spec` and `http`.

Source: MCP 2026-07-28, basic/authorization.
"""

from ._client.client import AuthorizationClient
from ._client.events import (
    AssertionWanted,
    Attempt,
    AuthorizationEvent,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    Authorized,
    ClientWanted,
    CredentialsToStore,
    LoggedOut,
    StepOutcome,
    StepTaken,
    UserAgentWanted,
)
from ._client.settings import (
    AssertionSigner,
    AuthMethod,
    AuthorizationCode,
    AuthorizationConfig,
    ClientCredentials,
    ClientMetadata,
    EnterpriseManaged,
    Grant,
    ProofSigner,
    RegisteredClient,
    WorkloadIdentity,
)
from ._client.states import AuthorizationState
from ._common.addresses import AddressRules, Reach, RefusedURL, WebURL, reach_of_address
from ._common.requests import HTTPRequest, RequestWanted
from ._server.access_token import AccessToken, insufficient_scope
from ._server.events import (
    AccessCheck,
    AccessEvent,
    AccessGranted,
    AccessRefused,
    TokenReceived,
)
from ._server.introspection import IntrospectionVerifier
from ._server.proofs import DPoP, Proof, ProofReader
from ._server.protected_resource import ProtectedResource
from ._server.resource_server import ResourceServer
from ._server.verifiers import TokenVerifier, Verification

__all__ = [
    "AccessCheck",
    "AccessEvent",
    "AccessGranted",
    "AccessRefused",
    "AccessToken",
    "AddressRules",
    "AssertionSigner",
    "AssertionWanted",
    "Attempt",
    "AuthMethod",
    "AuthorizationClient",
    "AuthorizationCode",
    "AuthorizationConfig",
    "AuthorizationEvent",
    "AuthorizationFailed",
    "AuthorizationFailure",
    "AuthorizationState",
    "AuthorizationStep",
    "Authorized",
    "ClientCredentials",
    "ClientMetadata",
    "ClientWanted",
    "CredentialsToStore",
    "DPoP",
    "EnterpriseManaged",
    "Grant",
    "HTTPRequest",
    "IntrospectionVerifier",
    "LoggedOut",
    "Proof",
    "ProofReader",
    "ProofSigner",
    "ProtectedResource",
    "Reach",
    "RefusedURL",
    "RegisteredClient",
    "RequestWanted",
    "ResourceServer",
    "StepOutcome",
    "StepTaken",
    "TokenReceived",
    "TokenVerifier",
    "UserAgentWanted",
    "Verification",
    "WebURL",
    "WorkloadIdentity",
    "insufficient_scope",
    "reach_of_address",
]
