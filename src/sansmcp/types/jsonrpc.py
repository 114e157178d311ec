"""The messages of JSON-RPC, and the errors that the schema defines."""

from typing import Annotated, Any, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject, JSONRPCVersion, RequestId
from ._marks import As, In, RequiredIn, Since
from ._parts import ErrorMessage
from .base import NotificationParams, RequestParams, Result
from .capabilities import ClientCapabilities
from .elicitation import ElicitRequestURLParams


class JSONRPCRequest(TypedDict, total=False):
    """A request on the wire."""

    jsonrpc: Required[JSONRPCVersion]
    id: Required[RequestId]
    method: Required[str]
    params: Annotated[JSONObject, As(RequestParams, until="2025-06-18")]


class JSONRPCNotification(TypedDict, total=False):
    """A notification on the wire."""

    jsonrpc: Required[JSONRPCVersion]
    method: Required[str]
    params: Annotated[JSONObject, As(NotificationParams, until="2025-06-18")]


class JSONRPCResultResponse(TypedDict):
    """A response with a result on the wire."""

    jsonrpc: JSONRPCVersion
    id: RequestId
    result: Annotated[JSONObject, As(Result)]


class Error(TypedDict, total=False):
    """The error in an error response."""

    code: Required[int]
    message: Required[str]
    """The error in one sentence."""
    data: Any


class JSONRPCErrorResponse(TypedDict, total=False):
    """A response with an error on the wire."""

    jsonrpc: Required[JSONRPCVersion]
    id: Annotated[RequestId, RequiredIn("2024-11-05", "2025-03-26", "2025-06-18")]
    """The id; absent if the request could not be read. Older revisions require it."""
    error: Required[Error]


JSONRPCError: TypeAlias = JSONRPCErrorResponse
"""The older name of `JSONRPCErrorResponse`."""

JSONRPCResponse: TypeAlias = (
    JSONRPCResultResponse | Annotated[JSONRPCErrorResponse, Since("2025-11-25")]
)
"""A response on the wire; in older revisions this name means a response with a result only."""

JSONRPCBatchRequest: TypeAlias = Annotated[
    list[JSONRPCRequest | JSONRPCNotification], In("2025-03-26")
]
"""A batch of requests and notifications."""

JSONRPCBatchResponse: TypeAlias = Annotated[
    list[JSONRPCResultResponse | JSONRPCErrorResponse], In("2025-03-26")
]
"""A batch of responses."""

JSONRPCMessage: TypeAlias = (
    JSONRPCRequest
    | JSONRPCNotification
    | JSONRPCResultResponse
    | JSONRPCErrorResponse
    | JSONRPCBatchRequest
    | JSONRPCBatchResponse
)
"""Any message on the wire."""


# -------------------------------------------------------- errors of JSON-RPC, in `error`


@Since("2026-07-28")
class ParseError(TypedDict, total=False):
    """The error for a message that is no JSON."""

    code: Required[Literal[-32700]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InvalidRequestError(TypedDict, total=False):
    """The error for JSON that is no valid message."""

    code: Required[Literal[-32600]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class MethodNotFoundError(TypedDict, total=False):
    """The error for an unknown method, or for one whose capability is not declared."""

    code: Required[Literal[-32601]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InvalidParamsError(TypedDict, total=False):
    """The error for params that do not fit the method, or that name an unknown object."""

    code: Required[Literal[-32602]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InternalError(TypedDict, total=False):
    """The error for a failure of the receiver."""

    code: Required[Literal[-32603]]
    message: Required[str]
    data: Any


# ------------------------------------------------- errors of the protocol, whole messages


@Since("2026-07-28")
class HeaderMismatch(TypedDict, total=False):
    """The error in a `HeaderMismatchError`."""

    code: Required[Literal[-32020]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class HeaderMismatchError(ErrorMessage, total=False):
    """The error response to a message whose HTTP headers are missing or do not match it."""

    error: Required[HeaderMismatch]


@Since("2026-07-28")
class RequiredCapabilities(TypedDict):
    """The data of a `MissingRequiredClientCapability`."""

    requiredCapabilities: ClientCapabilities


@Since("2026-07-28")
class MissingRequiredClientCapability(TypedDict):
    """The error in a `MissingRequiredClientCapabilityError`."""

    code: Literal[-32021]
    message: str
    data: RequiredCapabilities


@Since("2026-07-28")
class MissingRequiredClientCapabilityError(ErrorMessage, total=False):
    """The error response to a request that needs a capability which the client did not declare."""

    error: Required[MissingRequiredClientCapability]


@Since("2026-07-28")
class SupportedVersions(TypedDict):
    """The data of an `UnsupportedProtocolVersion`."""

    requested: str
    supported: list[str]


@Since("2026-07-28")
class UnsupportedProtocolVersion(TypedDict):
    """The error in an `UnsupportedProtocolVersionError`."""

    code: Literal[-32022]
    message: str
    data: SupportedVersions


@Since("2026-07-28")
class UnsupportedProtocolVersionError(ErrorMessage, total=False):
    """The error response to a request of a revision that the server does not speak."""

    error: Required[UnsupportedProtocolVersion]


@In("2025-11-25")
class RequiredElicitations(TypedDict):
    """The data of a `URLElicitationRequired`; other members are allowed."""

    elicitations: list[ElicitRequestURLParams]


@In("2025-11-25")
class URLElicitationRequired(TypedDict):
    """The error in a `URLElicitationRequiredError`."""

    code: Literal[-32042]
    message: str
    data: RequiredElicitations


@In("2025-11-25")
class URLElicitationRequiredError(ErrorMessage, total=False):
    """The error response to a request that needs the user to visit these URLs first."""

    error: Required[URLElicitationRequired]


KnownErrorCode: TypeAlias = (
    Literal[-32700, -32600, -32601, -32602, -32603]
    | Annotated[Literal[-32042], In("2025-11-25")]
    | Annotated[Literal[-32020, -32021, -32022], Since("2026-07-28")]
)
"""The error codes that the schemas define; an error may have any other integer."""
