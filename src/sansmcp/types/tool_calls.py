"""`tools/call`: a request to run a tool, and its result."""

from typing import Annotated, Any, Literal, Required

from ._json import JSONObject
from ._marks import As, Since
from ._parts import RequestMessage, ResponseMessage
from .base import Result
from .content import ContentBlock
from .input_required import InputRequiredResult, RetryMembers
from .tasks import TaskAugmentedRequestParams


class CallToolRequestParams(TaskAugmentedRequestParams, RetryMembers, total=False):
    """The params of `tools/call`: the name of the tool and its arguments."""

    name: Required[str]
    arguments: JSONObject


class CallToolRequest(RequestMessage, total=False):
    """A request to call a tool."""

    method: Required[Literal["tools/call"]]
    params: Required[CallToolRequestParams]


class CallToolResult(Result, total=False):
    """The result of a tool, or its failure."""

    content: Required[list[ContentBlock]]
    structuredContent: Annotated[Any, As(JSONObject, until="2025-11-25"), Since("2025-06-18")]
    """The result as JSON, which follows the `outputSchema` of the tool."""
    isError: bool
    """Whether the tool has failed; `content` describes the failure for the model."""


@Since("2026-07-28")
class CallToolResultResponse(ResponseMessage):
    """The response to `tools/call`: a result, or questions."""

    result: CallToolResult | InputRequiredResult
