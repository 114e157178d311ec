"""Tools: what a model may have a server do."""

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
"""The JSON Schema of a tool's arguments. Any keyword may stand in it."""

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
"""The JSON Schema of a tool's structured results. Any keyword may stand in it."""
Since("2025-06-18")(ToolOutputSchema)


@Since("2025-03-26")
class ToolAnnotations(TypedDict, total=False):
    """What a server says of a tool's effects; worth as much as the server is trusted."""

    title: str
    readOnlyHint: bool
    """It changes nothing. Without it, false."""
    destructiveHint: bool
    """It may undo or overwrite. Without it, true."""
    idempotentHint: bool
    """The same call again changes nothing more. Without it, false."""
    openWorldHint: bool
    """It reaches what the server does not hold, as a web search. Without it, true."""


TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
"""Whether a call may, or must, become a task."""


@In("2025-11-25")
class ToolExecution(TypedDict, total=False):
    """How a tool is carried out."""

    taskSupport: TaskSupport
    """Without it, `forbidden`."""


class Tool(BaseMetadata, Icons, total=False):
    """Something that a model may have the server do."""

    description: str
    inputSchema: Required[Annotated[JSONObject, As(ToolInputSchema)]]
    outputSchema: Annotated[JSONObject, As(ToolOutputSchema)]
    annotations: ToolAnnotations
    execution: ToolExecution
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class ListToolsRequest(RequestMessage, total=False):
    """Asks for one page of the tools."""

    method: Required[Literal["tools/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListToolsResult(PaginatedResult, CachingHints, total=False):
    """One page of the tools."""

    tools: Required[list[Tool]]


@Since("2026-07-28")
class ListToolsResultResponse(ResponseMessage):
    """The answer with one page of the tools."""

    result: ListToolsResult


class ToolListChangedNotification(NotificationMessage, total=False):
    """Tells that the list of tools has changed."""

    method: Required[Literal["notifications/tools/list_changed"]]
    params: NotificationParams
