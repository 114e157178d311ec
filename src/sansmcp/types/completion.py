"""Completion: values for an argument of a prompt or for a variable of a URI template."""

from typing import Literal, Required, TypeAlias, TypedDict

from ._marks import Since
from ._parts import RequestMessage, ResponseMessage
from .base import RequestParams, Result
from .capabilities import BaseMetadata


class PromptReference(BaseMetadata, total=False):
    """A reference to a prompt by its name."""

    type: Required[Literal["ref/prompt"]]


class ResourceTemplateReference(TypedDict):
    """A reference to a resource or a template by its URI."""

    type: Literal["ref/resource"]
    uri: str


ResourceReference: TypeAlias = ResourceTemplateReference
"""The older name of `ResourceTemplateReference`."""


class CompletionArgument(TypedDict):
    """The name of the argument, and the text that the user has typed so far."""

    name: str
    value: str


@Since("2025-06-18")
class CompletionContext(TypedDict, total=False):
    """The arguments that are complete already."""

    arguments: dict[str, str]


class CompleteRequestParams(RequestParams, total=False):
    """The params of `completion/complete`: the argument and the text typed so far."""

    ref: Required[PromptReference | ResourceTemplateReference]
    argument: Required[CompletionArgument]
    context: CompletionContext


class CompleteRequest(RequestMessage, total=False):
    """A request for values of an argument."""

    method: Required[Literal["completion/complete"]]
    params: Required[CompleteRequestParams]


class Completion(TypedDict, total=False):
    """The values for the argument."""

    values: Required[list[str]]
    """At most 100 values."""
    total: int
    """The number of all values, also of those that are not in `values`."""
    hasMore: bool


class CompleteResult(Result, total=False):
    """The result of `completion/complete`."""

    completion: Required[Completion]


@Since("2026-07-28")
class CompleteResultResponse(ResponseMessage):
    """The response to `completion/complete`."""

    result: CompleteResult
