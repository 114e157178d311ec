"""Prompts: messages for a model that a server offers."""

from typing import Annotated, Literal, Required, TypedDict

from ._json import MetaObject, Role
from ._marks import RequiredIn, Since
from ._parts import CachingHints, NotificationMessage, RequestMessage, ResponseMessage
from .base import (
    NotificationParams,
    PaginatedRequestParams,
    PaginatedResult,
    RequestParams,
    Result,
)
from .capabilities import BaseMetadata, Icons
from .content import ContentBlock
from .input_required import InputRequiredResult, RetryMembers


class PromptArgument(BaseMetadata, total=False):
    """An argument of a prompt."""

    description: str
    required: bool
    """Whether the argument is required; the default is False."""


class Prompt(BaseMetadata, Icons, total=False):
    """A prompt of a server, without its messages."""

    description: str
    arguments: list[PromptArgument]
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class PromptMessage(TypedDict):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsRequest(RequestMessage, total=False):
    """A request for one page of the prompts."""

    method: Required[Literal["prompts/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListPromptsResult(PaginatedResult, CachingHints, total=False):
    """One page of the prompts."""

    prompts: Required[list[Prompt]]


@Since("2026-07-28")
class ListPromptsResultResponse(ResponseMessage):
    """The response with one page of the prompts."""

    result: ListPromptsResult


class PromptListChangedNotification(NotificationMessage, total=False):
    """A notification that the list of prompts has changed."""

    method: Required[Literal["notifications/prompts/list_changed"]]
    params: NotificationParams


class GetPromptRequestParams(RequestParams, RetryMembers, total=False):
    """The params of `prompts/get`: the name of the prompt and its arguments."""

    name: Required[str]
    arguments: dict[str, str]


class GetPromptRequest(RequestMessage, total=False):
    """A request for the messages of a prompt."""

    method: Required[Literal["prompts/get"]]
    params: Required[GetPromptRequestParams]


class GetPromptResult(Result, total=False):
    """The messages of a prompt with its arguments filled in."""

    description: str
    messages: Required[list[PromptMessage]]


@Since("2026-07-28")
class GetPromptResultResponse(ResponseMessage):
    """The response to `prompts/get`: a prompt, or questions."""

    result: GetPromptResult | InputRequiredResult
