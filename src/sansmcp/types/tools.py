"""Tools: functions of a server that a model may call."""

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject, MetaObject
from ._marks import As, In, RequiredIn, Since, Until
from ._parts import CachingHints, NotificationMessage, RequestMessage, ResponseMessage
from .base import NotificationParams, PaginatedRequestParams, PaginatedResult
from .capabilities import BaseMetadata, Icons

ToolInputSchema = TypedDict(
    "ToolInputSchema",
    {
        "$schema": Annotated[str, Since("2025-11-25")],
        "type": Required[Literal["object"]],
        "properties": Annotated[dict[str, JSONObject], Until("2025-11-25")],
        "required": Annotated[list[str], Until("2025-11-25")],
    },
    total=False,
)
"""The JSON Schema of the arguments of a tool; it may have any keyword."""

ToolOutputSchema = TypedDict(
    "ToolOutputSchema",
    {
        "$schema": Annotated[str, Since("2025-11-25")],
        "type": Annotated[
            Literal["object"], Until("2025-11-25"), RequiredIn("2025-06-18", "2025-11-25")
        ],
        "properties": Annotated[dict[str, JSONObject], Until("2025-11-25")],
        "required": Annotated[list[str], Until("2025-11-25")],
    },
    total=False,
)
"""The JSON Schema of the structured results of a tool; it may have any keyword."""
Since("2025-06-18")(ToolOutputSchema)


@Since("2025-03-26")
class ToolAnnotations(TypedDict, total=False):
    """Hints of a server on the effects of a tool; trust them as much as the server."""

    title: str
    readOnlyHint: bool
    """Whether the tool changes nothing; the default is False."""
    destructiveHint: bool
    """Whether the tool may delete or overwrite data; the default is True."""
    idempotentHint: bool
    """Whether a second equal call has no further effect; the default is False."""
    openWorldHint: bool
    """Whether the tool reaches other systems, such as a web search; the default is True."""


TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
"""Whether a call may, or must, become a task."""


@In("2025-11-25")
class ToolExecution(TypedDict, total=False):
    """The execution of a tool: whether a call may become a task."""

    taskSupport: TaskSupport
    """The default is `forbidden`."""


class Tool(BaseMetadata, Icons, total=False):
    """A tool: a function of the server that a model may call."""

    description: str
    inputSchema: Required[Annotated[JSONObject, As(ToolInputSchema)]]
    outputSchema: Annotated[JSONObject, As(ToolOutputSchema)]
    annotations: ToolAnnotations
    execution: ToolExecution
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class ListToolsRequest(RequestMessage, total=False):
    """A request for one page of the tools."""

    method: Required[Literal["tools/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListToolsResult(PaginatedResult, CachingHints, total=False):
    """One page of the tools."""

    tools: Required[list[Tool]]


@Since("2026-07-28")
class ListToolsResultResponse(ResponseMessage):
    """The response with one page of the tools."""

    result: ListToolsResult


class ToolListChangedNotification(NotificationMessage, total=False):
    """A notification that the list of tools has changed."""

    method: Required[Literal["notifications/tools/list_changed"]]
    params: NotificationParams
