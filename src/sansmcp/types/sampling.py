"""Sampling: a server asks the model of the client."""

from typing import Annotated, Any, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject, JSONRPCVersion, MetaObject, RequestId, Role
from ._marks import As, In, RequiredIn, Since, Until
from .base import RequestMetaObject
from .content import AudioContent, ContentBlock, ImageContent, TextContent
from .tasks import TaskMetadata
from .tools import Tool


@Since("2025-11-25")
class ToolUseContent(TypedDict, total=False):
    """A call of a tool that the model wants."""

    type: Required[Literal["tool_use"]]
    id: Required[str]
    name: Required[str]
    input: Required[JSONObject]
    _meta: MetaObject


@Since("2025-11-25")
class ToolResultContent(TypedDict, total=False):
    """The result of a tool for the model."""

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
"""One block of content in a message to or from a model."""

SamplingContent: TypeAlias = (
    SamplingMessageContentBlock | Annotated[list[SamplingMessageContentBlock], Since("2025-11-25")]
)
"""The content of one message: a block, or a list of blocks since 2025-11-25."""


class SamplingMessage(TypedDict, total=False):
    """A message to or from a model."""

    role: Required[Role]
    content: Required[SamplingContent]
    _meta: Annotated[MetaObject, Since("2025-11-25")]


class ModelHint(TypedDict, total=False):
    """A hint at a model that the server prefers."""

    name: str
    """The name of the model, or a part of it."""


class ModelPreferences(TypedDict, total=False):
    """The server's preferences for the choice of a model. Priorities are from 0 to 1 (highest)."""

    hints: list[ModelHint]
    """Hints in the order of preference."""
    costPriority: float
    speedPriority: float
    intelligencePriority: float


IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
"""The servers whose context the client adds before the messages."""

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none"]
"""Whether the model may, must or must not use tools."""


@Since("2025-11-25")
class ToolChoice(TypedDict, total=False):
    """The server's choice of how the model uses tools."""

    mode: ToolChoiceMode
    """The default is `auto`."""


class SamplingMembers(TypedDict, total=False):
    """The members of a request to a model: messages and settings."""

    messages: Required[list[SamplingMessage]]
    maxTokens: Required[int]
    systemPrompt: str
    modelPreferences: ModelPreferences
    includeContext: IncludeContext
    temperature: float
    stopSequences: list[str]
    metadata: JSONObject
    """Members for the provider of the model."""
    tools: Annotated[list[Tool], Since("2025-11-25")]
    toolChoice: ToolChoice
    _meta: Annotated[JSONObject, As(RequestMetaObject), Until("2025-11-25")]


class CreateMessageRequestParams(SamplingMembers, total=False):
    """The params of `sampling/createMessage`."""

    task: TaskMetadata


class CreateMessageRequest(TypedDict, total=False):
    """A request to ask the model of the client."""

    jsonrpc: Annotated[JSONRPCVersion, In("2025-11-25"), RequiredIn("2025-11-25")]
    id: Annotated[RequestId, In("2025-11-25"), RequiredIn("2025-11-25")]
    method: Required[Literal["sampling/createMessage"]]
    params: Required[CreateMessageRequestParams]


class CreateMessageResult(TypedDict, total=False):
    """The message of the model."""

    role: Required[Role]
    content: Required[SamplingContent]
    model: Required[str]
    stopReason: str
    """`endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another text of the provider."""
    _meta: MetaObject
