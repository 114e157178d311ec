"""What people and models read: text, pictures, sound, resources."""

import typing
from typing import Literal, Required, TypeAlias, TypedDict

from ._json import MetaObject, Role
from ._marks import In, Since
from .capabilities import BaseMetadata, Icons

# `typing.Annotated` goes by its full name here: the last definition is called so, too.


class Annotations(TypedDict, total=False):
    """For whom something is, and how much it matters."""

    audience: list[Role]
    priority: float
    """From 0, which may be left out, to 1, which may not."""
    lastModified: typing.Annotated[str, Since("2025-06-18")]
    """A time in the format of ISO 8601."""


class TextContent(TypedDict, total=False):
    """Text."""

    type: Required[Literal["text"]]
    text: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class ImageContent(TypedDict, total=False):
    """A picture."""

    type: Required[Literal["image"]]
    data: Required[str]
    """Encoded as base64."""
    mimeType: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


@Since("2025-03-26")
class AudioContent(TypedDict, total=False):
    """Sound."""

    type: Required[Literal["audio"]]
    data: Required[str]
    """Encoded as base64."""
    mimeType: Required[str]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class ResourceContents(TypedDict, total=False):
    """The part that both kinds of contents share."""

    uri: Required[str]
    mimeType: str
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class TextResourceContents(ResourceContents, total=False):
    """What a resource holds, as text."""

    text: Required[str]


class BlobResourceContents(ResourceContents, total=False):
    """What a resource holds, as bytes."""

    blob: Required[str]
    """Encoded as base64."""


class EmbeddedResource(TypedDict, total=False):
    """A resource together with what it holds."""

    type: Required[Literal["resource"]]
    resource: Required[TextResourceContents | BlobResourceContents]
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


class Resource(BaseMetadata, Icons, total=False):
    """Something that a server lets others read."""

    uri: Required[str]
    description: str
    mimeType: str
    size: int
    """Bytes, before any encoding."""
    annotations: Annotations
    _meta: typing.Annotated[MetaObject, Since("2025-06-18")]


@Since("2025-06-18")
class ResourceLink(Resource, total=False):
    """A resource without what it holds; the server need not list it."""

    type: Required[Literal["resource_link"]]


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
"""One piece of what a tool returns or a prompt says."""

ContentType: TypeAlias = Literal[
    "text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result"
]
"""The `type` of a piece of content. The last two occur in sampling only."""


@In("2024-11-05")
class Annotated(TypedDict, total=False):
    """The part that all annotated things share, as 2024-11-05 calls it."""

    annotations: Annotations
