"""Prompts: messages that a server has ready for a model."""

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
    """A gap in a prompt, to be filled in."""

    description: str
    required: bool
    """Without it, false."""


class Prompt(BaseMetadata, Icons, total=False):
    """Messages that a server has ready."""

    description: str
    arguments: list[PromptArgument]
    _meta: Annotated[MetaObject, Since("2025-06-18")]


class PromptMessage(TypedDict):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsRequest(RequestMessage, total=False):
    """Asks for one page of the prompts."""

    method: Required[Literal["prompts/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListPromptsResult(PaginatedResult, CachingHints, total=False):
    """One page of the prompts."""

    prompts: Required[list[Prompt]]


@Since("2026-07-28")
class ListPromptsResultResponse(ResponseMessage):
    """The answer with one page of the prompts."""

    result: ListPromptsResult


class PromptListChangedNotification(NotificationMessage, total=False):
    """Tells that the list of prompts has changed."""

    method: Required[Literal["notifications/prompts/list_changed"]]
    params: NotificationParams


class GetPromptRequestParams(RequestParams, RetryMembers, total=False):
    """Which prompt, and what to fill in."""

    name: Required[str]
    arguments: dict[str, str]


class GetPromptRequest(RequestMessage, total=False):
    """Gets a prompt."""

    method: Required[Literal["prompts/get"]]
    params: Required[GetPromptRequestParams]


class GetPromptResult(Result, total=False):
    """A prompt with its gaps filled in."""

    description: str
    messages: Required[list[PromptMessage]]


@Since("2026-07-28")
class GetPromptResultResponse(ResponseMessage):
    """The answer with a prompt, or questions."""

    result: GetPromptResult | InputRequiredResult
