"""Content for people and models: text, images, audio and resources."""

import typing
from typing import Literal, Required, TypeAlias, TypedDict

from ._json import MetaObject, Role
from ._marks import In, Since
from .capabilities import BaseMetadata, Icons

# `typing.Annotated` has its full name here, because the last definition has the same name.


class Annotations(TypedDict, total=False):
    """The audience and the importance of content."""

    audience: list[Role]
    priority: float
    """The importance, from 0 (optional) to 1 (required)."""
    lastModified: typing.Annotated[str, Since("2025-06-18")]
    """A time in ISO 8601 format."""


class TextContent(TypedDict, total=False):
    """Content that is text."""

    type: Required[Literal["text"]]
    text: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class ImageContent(TypedDict, total=False):
    """Content that is an image."""

    type: Required[Literal["image"]]
    data: Required[str]
    """Encoded as base64."""
    mimeType: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


@Since("2025-03-26")
class AudioContent(TypedDict, total=False):
    """Content that is audio."""

    type: Required[Literal["audio"]]
    data: Required[str]
    """Encoded as base64."""
    mimeType: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class ResourceContents(TypedDict, total=False):
    """The members of text and binary contents of a resource."""

    uri: Required[str]
    mimeType: str
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class TextResourceContents(ResourceContents, total=False):
    """The contents of a resource, as text."""

    text: Required[str]


class BlobResourceContents(ResourceContents, total=False):
    """The contents of a resource, as bytes."""

    blob: Required[str]
    """Encoded as base64."""


class EmbeddedResource(TypedDict, total=False):
    """Content that is a resource with its contents."""

    type: Required[Literal["resource"]]
    resource: Required[TextResourceContents | BlobResourceContents]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class Resource(BaseMetadata, Icons, total=False):
    """A resource: data of a server that clients can read."""

    uri: Required[str]
    description: str
    mimeType: str
    size: int
    """The size in bytes, before any encoding."""
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


@Since("2025-06-18")
class ResourceLink(Resource, total=False):
    """Content that is a link to a resource; the server need not list the resource."""

    type: Required[Literal["resource_link"]]


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
"""One block of content in the result of a tool or in a message of a prompt."""

ContentType: TypeAlias = Literal[
    "text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result"
]
"""The `type` of a block of content. The last two occur in sampling only."""


@In("2024-11-05")
class Annotated(TypedDict, total=False):
    """The member of all definitions with annotations, under its name in 2024-11-05."""

    annotations: Annotations
