"""Calling a tool."""

from typing import Annotated, Any, Literal, Required

from ._json import JSONObject
from ._marks import As, Since
from ._parts import RequestMessage, ResponseMessage
from .base import Result
from .content import ContentBlock
from .input_required import InputRequiredResult, RetryMembers
from .tasks import TaskAugmentedRequestParams


class CallToolRequestParams(TaskAugmentedRequestParams, RetryMembers, total=False):
    """Which tool to call, and with what."""

    name: Required[str]
    arguments: JSONObject


class CallToolRequest(RequestMessage, total=False):
    """Calls a tool."""

    method: Required[Literal["tools/call"]]
    params: Required[CallToolRequestParams]


class CallToolResult(Result, total=False):
    """What a tool has returned, or how it has failed."""

    content: Required[list[ContentBlock]]
    structuredContent: Annotated[Any, As(JSONObject, until="2025-11-25"), Since("2025-06-18")]
    """The result for programs, as the tool's `outputSchema` has it."""
    isError: bool
    """The tool has failed; `content` says how, for the model to read."""


@Since("2026-07-28")
class CallToolResultResponse(ResponseMessage):
    """The answer to a call: a result, or questions."""

    result: CallToolResult | InputRequiredResult
