"""Elicitation: a server asks the client's user."""

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject, JSONRPCVersion, MetaObject, RequestId
from ._marks import As, In, RequiredIn, Since, Until
from ._parts import NotificationMessage
from .base import NotificationParams, RequestMetaObject
from .forms import PrimitiveSchemaDefinition
from .tasks import TaskMetadata

RequestedSchema = TypedDict(
    "RequestedSchema",
    {
        "$schema": Annotated[str, Since("2025-11-25")],
        "type": Required[Literal["object"]],
        "properties": Required[dict[str, PrimitiveSchemaDefinition]],
        "required": list[str],
    },
    total=False,
)
"""The form to be filled in: fields by name, without nesting."""
Since("2025-06-18")(RequestedSchema)


class FormMembers(TypedDict, total=False):
    """What a form and its message are."""

    mode: Annotated[Literal["form"], Since("2025-11-25")]
    message: Required[str]
    requestedSchema: Required[RequestedSchema]
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


@Since("2025-06-18")
class ElicitRequestFormParams(FormMembers, total=False):
    """Has the user fill in a form."""

    task: TaskMetadata


class URLMembers(TypedDict, total=False):
    """What a URL and its message are."""

    mode: Required[Literal["url"]]
    message: Required[str]
    url: Required[str]
    elicitationId: Annotated[str, In("2025-11-25"), RequiredIn("2025-11-25")]
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


@Since("2025-11-25")
class ElicitRequestURLParams(URLMembers, total=False):
    """Has the user visit a URL, so that what is secret passes the client by."""

    task: TaskMetadata


ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
"""What the user is asked."""


@Since("2025-06-18")
class ElicitRequest(TypedDict, total=False):
    """Asks the client's user."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["elicitation/create"]]
    params: Required[ElicitRequestParams]


ElicitAction: TypeAlias = Literal["accept", "decline", "cancel"]
"""What the user has done: agreed, refused, or gone away."""


@Since("2025-06-18")
class ElicitResult(TypedDict, total=False):
    """What the user has answered."""

    action: Required[ElicitAction]
    content: dict[str, str | float | bool | Annotated[list[str], Since("2025-11-25")]]
    """The form, filled in; only with `accept`."""
    _meta: Annotated[MetaObject, Until("2025-11-25")]


@In("2025-11-25")
class ElicitationCompleteNotificationParams(NotificationParams, total=False):
    """Which elicitation is complete."""

    elicitationId: Required[str]


@In("2025-11-25")
class ElicitationCompleteNotification(NotificationMessage, total=False):
    """Tells that the user has been at the URL."""

    method: Required[Literal["notifications/elicitation/complete"]]
    params: Required[ElicitationCompleteNotificationParams]
