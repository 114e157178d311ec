"""The envelopes of JSON-RPC, and the errors that have a form of their own."""

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
    """A result on the wire."""

    jsonrpc: JSONRPCVersion
    id: RequestId
    result: Annotated[JSONObject, As(Result)]


class Error(TypedDict, total=False):
    """What went wrong."""

    code: Required[int]
    message: Required[str]
    """One sentence."""
    data: Any


class JSONRPCErrorResponse(TypedDict, total=False):
    """An error on the wire."""

    jsonrpc: Required[JSONRPCVersion]
    id: Annotated[RequestId, RequiredIn("2024-11-05", "2025-03-26", "2025-06-18")]
    """Absent where the request could not be read, which the older revisions have no form for."""
    error: Required[Error]


JSONRPCError: TypeAlias = JSONRPCErrorResponse
"""The older name."""

JSONRPCResponse: TypeAlias = (
    JSONRPCResultResponse | Annotated[JSONRPCErrorResponse, Since("2025-11-25")]
)
"""A result or an error on the wire; the older revisions mean a result by it."""

JSONRPCBatchRequest: TypeAlias = Annotated[
    list[JSONRPCRequest | JSONRPCNotification], In("2025-03-26")
]
"""Several calls at once."""

JSONRPCBatchResponse: TypeAlias = Annotated[
    list[JSONRPCResultResponse | JSONRPCErrorResponse], In("2025-03-26")
]
"""The answers to several calls at once."""

JSONRPCMessage: TypeAlias = (
    JSONRPCRequest
    | JSONRPCNotification
    | JSONRPCResultResponse
    | JSONRPCErrorResponse
    | JSONRPCBatchRequest
    | JSONRPCBatchResponse
)
"""Anything on the wire."""


# -------------------------------------------------------- errors of JSON-RPC, in `error`


@Since("2026-07-28")
class ParseError(TypedDict, total=False):
    """What came is no JSON."""

    code: Required[Literal[-32700]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InvalidRequestError(TypedDict, total=False):
    """What came is JSON, but no message."""

    code: Required[Literal[-32600]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class MethodNotFoundError(TypedDict, total=False):
    """There is no such method, or its capability is not declared."""

    code: Required[Literal[-32601]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InvalidParamsError(TypedDict, total=False):
    """The params do not fit the method, or name what does not exist."""

    code: Required[Literal[-32602]]
    message: Required[str]
    data: Any


@Since("2026-07-28")
class InternalError(TypedDict, total=False):
    """The receiver has failed."""

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
    """The HTTP headers say something else than the message, or are missing."""

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
    """The request cannot be served without something that the client has not declared."""

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
    """The server does not speak the revision of the request."""

    error: Required[UnsupportedProtocolVersion]


@In("2025-11-25")
class RequiredElicitations(TypedDict):
    """The data of a `URLElicitationRequired`; anything else may stand beside it."""

    elicitations: list[ElicitRequestURLParams]


@In("2025-11-25")
class URLElicitationRequired(TypedDict):
    """The error in a `URLElicitationRequiredError`."""

    code: Literal[-32042]
    message: str
    data: RequiredElicitations


@In("2025-11-25")
class URLElicitationRequiredError(ErrorMessage, total=False):
    """The request can be served once the user has been at these URLs."""

    error: Required[URLElicitationRequired]


KnownErrorCode: TypeAlias = (
    Literal[-32700, -32600, -32601, -32602, -32603]
    | Annotated[Literal[-32042], In("2025-11-25")]
    | Annotated[Literal[-32020, -32021, -32022], Since("2026-07-28")]
)
"""The error codes that have a meaning in a schema; any other integer may come."""
