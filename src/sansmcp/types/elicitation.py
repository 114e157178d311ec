"""Elicitation: a server asks the user of the client."""

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
"""The JSON Schema of a form: fields by name, without nested objects."""
Since("2025-06-18")(RequestedSchema)


class FormMembers(TypedDict, total=False):
    """The members of a request to fill in a form."""

    mode: Annotated[Literal["form"], Since("2025-11-25")]
    message: Required[str]
    requestedSchema: Required[RequestedSchema]
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


@Since("2025-06-18")
class ElicitRequestFormParams(FormMembers, total=False):
    """The params of a request to fill in a form."""

    task: TaskMetadata


class URLMembers(TypedDict, total=False):
    """The members of a request to visit a URL."""

    mode: Required[Literal["url"]]
    message: Required[str]
    url: Required[str]
    elicitationId: Annotated[str, In("2025-11-25"), RequiredIn("2025-11-25")]
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


@Since("2025-11-25")
class ElicitRequestURLParams(URLMembers, total=False):
    """The params of a request to visit a URL, so that the client does not see secrets."""

    task: TaskMetadata


ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
"""The params of `elicitation/create`: a form or a URL."""


@Since("2025-06-18")
class ElicitRequest(TypedDict, total=False):
    """A request to ask the user of the client."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["elicitation/create"]]
    params: Required[ElicitRequestParams]


ElicitAction: TypeAlias = Literal["accept", "decline", "cancel"]
"""The action of the user: to accept, to decline, or to leave without a decision."""


@Since("2025-06-18")
class ElicitResult(TypedDict, total=False):
    """The answer of the user."""

    action: Required[ElicitAction]
    content: dict[str, str | float | bool | Annotated[list[str], Since("2025-11-25")]]
    """The values of the form by field; only with `accept`."""
    _meta: Annotated[MetaObject, Until("2025-11-25")]


@In("2025-11-25")
class ElicitationCompleteNotificationParams(NotificationParams, total=False):
    """The id of the elicitation that is complete."""

    elicitationId: Required[str]


@In("2025-11-25")
class ElicitationCompleteNotification(NotificationMessage, total=False):
    """A notification that the user has completed the step at the URL."""

    method: Required[Literal["notifications/elicitation/complete"]]
    params: Required[ElicitationCompleteNotificationParams]
