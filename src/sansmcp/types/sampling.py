"""Sampling: a server asks the client's model."""

from typing import Annotated, Any, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject, JSONRPCVersion, MetaObject, RequestId, Role
from ._marks import As, In, RequiredIn, Since, Until
from .base import RequestMetaObject
from .content import AudioContent, ContentBlock, ImageContent, TextContent
from .tasks import TaskMetadata
from .tools import Tool


@Since("2025-11-25")
class ToolUseContent(TypedDict, total=False):
    """The model wants a tool called."""

    type: Required[Literal["tool_use"]]
    id: Required[str]
    name: Required[str]
    input: Required[JSONObject]
    _meta: MetaObject


@Since("2025-11-25")
class ToolResultContent(TypedDict, total=False):
    """What the tool has returned."""

    type: Required[Literal["tool_result"]]
    toolUseId: Required[str]
    """The `id` of the `ToolUseContent`."""
    content: Required[list[ContentBlock]]
    structuredContent: Annotated[Any, As(JSONObject, until="2025-11-25")]
    isError: bool
    _meta: MetaObject


SamplingMessageContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
)
"""One piece of what is said to, or by, a model."""

SamplingContent: TypeAlias = (
    SamplingMessageContentBlock | Annotated[list[SamplingMessageContentBlock], Since("2025-11-25")]
)
"""All of what is said at once."""


class SamplingMessage(TypedDict, total=False):
    """Something said to, or by, a model."""

    role: Required[Role]
    content: Required[SamplingContent]
    _meta: Annotated[MetaObject, Since("2025-11-25")]


class ModelHint(TypedDict, total=False):
    """A model that the server would like."""

    name: str
    """The name, or a part of it."""


class ModelPreferences(TypedDict, total=False):
    """What matters in the choice of a model. Priorities go from 0, not at all, to 1, most."""

    hints: list[ModelHint]
    """The most wanted first."""
    costPriority: float
    speedPriority: float
    intelligencePriority: float


IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
"""Which servers' context the client is to put before the messages."""

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none"]
"""Whether the model may, must or must not use tools."""


@Since("2025-11-25")
class ToolChoice(TypedDict, total=False):
    """How the model is to use tools."""

    mode: ToolChoiceMode
    """Without it, `auto`."""


class SamplingMembers(TypedDict, total=False):
    """What the model is to be asked, and how."""

    messages: Required[list[SamplingMessage]]
    maxTokens: Required[int]
    systemPrompt: str
    modelPreferences: ModelPreferences
    includeContext: IncludeContext
    temperature: float
    stopSequences: list[str]
    metadata: JSONObject
    """For the provider of the model."""
    tools: Annotated[list[Tool], Since("2025-11-25")]
    toolChoice: ToolChoice
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


class CreateMessageRequestParams(SamplingMembers, total=False):
    """What the model is to be asked, and how."""

    task: TaskMetadata


class CreateMessageRequest(TypedDict, total=False):
    """Asks the client's model."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["sampling/createMessage"]]
    params: Required[CreateMessageRequestParams]


class CreateMessageResult(TypedDict, total=False):
    """What the model has said."""

    role: Required[Role]
    content: Required[SamplingContent]
    model: Required[str]
    stopReason: str
    """`endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or the provider's own word."""
    _meta: MetaObject
