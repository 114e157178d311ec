"""Completion: what could stand in a gap of a prompt or of a URI."""

from typing import Literal, Required, TypeAlias, TypedDict

from ._marks import Since
from ._parts import RequestMessage, ResponseMessage
from .base import RequestParams, Result
from .capabilities import BaseMetadata


class PromptReference(BaseMetadata, total=False):
    """A prompt, by name."""

    type: Required[Literal["ref/prompt"]]


class ResourceTemplateReference(TypedDict):
    """A resource or a template, by its URI."""

    type: Literal["ref/resource"]
    uri: str


ResourceReference: TypeAlias = ResourceTemplateReference
"""The older name."""


class CompletionArgument(TypedDict):
    """What the user has typed so far."""

    name: str
    value: str


@Since("2025-06-18")
class CompletionContext(TypedDict, total=False):
    """What is filled in already."""

    arguments: dict[str, str]


class CompleteRequestParams(RequestParams, total=False):
    """Where the gap is, and what the user has typed so far."""

    ref: Required[PromptReference | ResourceTemplateReference]
    argument: Required[CompletionArgument]
    context: CompletionContext


class CompleteRequest(RequestMessage, total=False):
    """Asks what could stand in a gap."""

    method: Required[Literal["completion/complete"]]
    params: Required[CompleteRequestParams]


class Completion(TypedDict, total=False):
    """What could stand there."""

    values: Required[list[str]]
    """At most 100."""
    total: int
    """How many there are, shown or not."""
    hasMore: bool


class CompleteResult(Result, total=False):
    """What could stand in the gap."""

    completion: Required[Completion]


@Since("2026-07-28")
class CompleteResultResponse(ResponseMessage):
    """The answer to a request for completion."""

    result: CompleteResult
