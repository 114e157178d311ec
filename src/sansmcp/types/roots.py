"""Roots: the folders in which a client lets a server work."""

from typing import Annotated, Literal, Required, TypedDict

from ._json import JSONObject, JSONRPCVersion, MetaObject, RequestId
from ._marks import As, In, RequiredIn, Since, Until
from ._parts import NotificationMessage
from .base import NotificationParams, RequestMetaObject


class Root(TypedDict, total=False):
    """A folder in which the server may work."""

    uri: Required[str]
    """The URI, which begins with `file://`."""
    name: str
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class ListRootsRequestParams(TypedDict, total=False):
    """The params of `roots/list`: only `_meta`."""

    _meta: Annotated[JSONObject, As(RequestMetaObject, until="2025-11-25")]


class ListRootsRequest(TypedDict, total=False):
    """A request for the roots of the client."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["roots/list"]]
    params: ListRootsRequestParams


class ListRootsResult(TypedDict, total=False):
    """The result of `roots/list`."""

    roots: Required[list[Root]]
    _meta: Annotated[MetaObject, Until("2025-11-25")]


@Until("2025-11-25")
class RootsListChangedNotification(NotificationMessage, total=False):
    """A notification that the roots have changed."""

    method: Required[Literal["notifications/roots/list_changed"]]
    params: NotificationParams
