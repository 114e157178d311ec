"""Roots: the places that a client lets a server work in."""

from typing import Annotated, Literal, Required, TypedDict

from ._json import JSONObject, JSONRPCVersion, MetaObject, RequestId
from ._marks import As, In, RequiredIn, Since, Until
from ._parts import NotificationMessage
from .base import NotificationParams, RequestMetaObject


class Root(TypedDict, total=False):
    """A place that the server may work in."""

    uri: Required[str]
    """It begins with `file://`."""
    name: str
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class ListRootsRequestParams(TypedDict, total=False):
    """Nothing but `_meta`."""

    _meta: Annotated[JSONObject, As(RequestMetaObject, until="2025-11-25")]


class ListRootsRequest(TypedDict, total=False):
    """Asks for the client's roots."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["roots/list"]]
    params: ListRootsRequestParams


class ListRootsResult(TypedDict, total=False):
    """The client's roots."""

    roots: Required[list[Root]]
    _meta: Annotated[MetaObject, Until("2025-11-25")]


@Until("2025-11-25")
class RootsListChangedNotification(NotificationMessage, total=False):
    """Tells that the roots have changed."""

    method: Required[Literal["notifications/roots/list_changed"]]
    params: NotificationParams
