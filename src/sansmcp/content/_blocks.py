"""Blocks of content and contents of resources: bytes in, Base64 out."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

from .._wire.setting_checks import check_flag, check_text, check_whole, is_number, names_in
from .._wire.timestamps import timestamp
from .._wire.values import MISSING, JSONObject, JSONValue, Missing, is_object
from ._values import as_json

if TYPE_CHECKING:
    from ..types import (
        Annotations,
        AudioContent,
        BlobResourceContents,
        ContentBlock,
        EmbeddedResource,
        Icon,
        ImageContent,
        ResourceLink,
        Role,
        TextContent,
        TextResourceContents,
        ToolResultContent,
        ToolUseContent,
    )

_MIME_TYPE: Final = r"[\w!#$&^.+-]+/[\w!#$&^.+-]+[ \t]*(;[^\x00-\x1f\x7f]*)?"
"""A type and a subtype (RFC 6838), perhaps with parameters."""
_URI: Final = r"[a-z][a-z0-9+.-]*:([\w:/?#\[\]@!$&'()*+,;=.~-]|%[0-9a-f]{2})*"
"""A URI (RFC 3986): a scheme, and no character that has to be percent-encoded."""
_ROLES: Final = ("assistant", "user")

# ------------------------------------------------------------------------------------- blocks


def text(
    text: str, *, annotations: Annotations | object = None, meta: object = None
) -> TextContent:
    """A block of text."""
    check_text("text", text)
    block = {"type": "text", "text": text}
    return cast("TextContent", _with(block, annotations=annotations, _meta=meta))


def image(
    data: bytes | bytearray,
    mime_type: str,
    *,
    annotations: Annotations | object = None,
    meta: object = None,
) -> ImageContent:
    """A block with an image, in Base64. Keeps PROMPT-008.

    Args:
        data: The bytes of the image, not encoded.
        mime_type: For example `image/png`.
        annotations: See `annotate`.
        meta: The member `_meta` (since 2025-06-18).
    """
    block = {"type": "image", **_encoded("data", data), "mimeType": _checked_type(mime_type)}
    return cast("ImageContent", _with(block, annotations=annotations, _meta=meta))


def audio(
    data: bytes | bytearray,
    mime_type: str,
    *,
    annotations: Annotations | object = None,
    meta: object = None,
) -> AudioContent:
    """A block with audio, in Base64, as `image`. Keeps PROMPT-009.

    Clients before 2025-03-26 do not know it: see `adapt`.
    """
    block = {"type": "audio", **_encoded("data", data), "mimeType": _checked_type(mime_type)}
    return cast("AudioContent", _with(block, annotations=annotations, _meta=meta))


def resource_link(
    uri: str,
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    icons: Iterable[Icon | object] | None = None,
    annotations: Annotations | object = None,
    meta: object = None,
) -> ResourceLink:
    """A block with a link to a resource.

    Clients before 2025-06-18 do not know it: see `adapt`.

    Args:
        uri: The URI of the resource. Not every resource that is linked has to be listed.
        name: The name of the resource for programs; `title` is the one for people.
        title: Shown to the user in place of the name.
        description: Tells the model about the resource.
        mime_type: Of the contents of the resource.
        size: Bytes of the contents, before any encoding.
        icons: Pictures for the user (since 2025-11-25).
        annotations: See `annotate`.
        meta: The member `_meta`.
    """
    check_text("name", name)
    check_text("title", title, optional=True)
    check_text("description", description, optional=True)
    if size is not None:
        check_whole("size", size, 0)
    block = _with(
        {"type": "resource_link", "uri": _checked_uri(uri), "name": name},
        title=title,
        description=description,
        mimeType=None if mime_type is None else _checked_type(mime_type),
        size=size,
        icons=None if icons is None else list(icons),
        annotations=annotations,
        _meta=meta,
    )
    return cast("ResourceLink", block)


def embedded_resource(
    uri: str,
    contents: str | bytes,
    mime_type: str | None = None,
    *,
    annotations: Annotations | object = None,
    meta: object = None,
    contents_meta: object = None,
) -> EmbeddedResource:
    """A block with a resource and its contents. Keeps PROMPT-010.

    Args:
        uri: The URI of the resource.
        contents: Text, or bytes, which become Base64.
        mime_type: Of the contents. Required in prompts.
        annotations: See `annotate`.
        meta: The member `_meta` of the block (since 2025-06-18).
        contents_meta: The member `_meta` of the contents (since 2025-06-18).
    """
    resource = resource_contents(uri, contents, mime_type, meta=contents_meta)
    block: JSONObject = {"type": "resource", "resource": resource}
    return cast("EmbeddedResource", _with(block, annotations=annotations, _meta=meta))


def tool_use(
    id: str, name: str, input: JSONObject | object = None, *, meta: object = None
) -> ToolUseContent:
    """A block with a call of a tool that the model wants, for sampling (since 2025-11-25).

    Args:
        id: Names the call in the block of its result.
        name: The name of the tool.
        input: The arguments, an object; None: there are none.
        meta: The member `_meta`, which later requests keep.
    """
    check_text("id", id)
    check_text("name", name)
    value = {} if input is None else as_json(input)
    if not is_object(value):
        raise ValueError(f"input must be an object, not {value!r:.80}")
    block: JSONObject = {"type": "tool_use", "id": id, "name": name, "input": value}
    return cast("ToolUseContent", _with(block, _meta=meta))


def tool_result(
    tool_use_id: str,
    content: Iterable[ContentBlock | object],
    *,
    structured: object | Missing = MISSING,
    is_error: bool = False,
    meta: object = None,
) -> ToolResultContent:
    """A block with the result of a tool for the model, for sampling (since 2025-11-25).

    Args:
        tool_use_id: The `id` of the block `tool_use`.
        content: Blocks of content.
        structured: The structured content; None is JSON's null.
        is_error: Whether the tool has failed.
        meta: The member `_meta`.
    """
    check_text("tool_use_id", tool_use_id)
    check_flag("is_error", is_error)
    block: JSONObject = {
        "type": "tool_result",
        "toolUseId": tool_use_id,
        "content": [as_json(one, nulls=False) for one in content],
    }
    if structured is not MISSING:
        block["structuredContent"] = as_json(structured)
    if is_error:
        block["isError"] = True
    return cast("ToolResultContent", _with(block, _meta=meta))


# ---------------------------------------------------------------------------- parts of blocks


def resource_contents(
    uri: str, contents: str | bytes, mime_type: str | None = None, *, meta: object = None
) -> TextResourceContents | BlobResourceContents:
    """One item of the `contents` of a `resources/read` result. Keeps RES-018, RES-019.

    Args:
        uri: The URI of the resource, or of a part of it.
        contents: Text, or bytes, which become Base64.
        mime_type: For example `text/plain`.
        meta: The member `_meta` (since 2025-06-18).
    """
    item: JSONObject = {"uri": _checked_uri(uri)}
    if mime_type is not None:
        item["mimeType"] = _checked_type(mime_type)
    item |= {"text": contents} if isinstance(contents, str) else _encoded("blob", contents)
    return cast("TextResourceContents | BlobResourceContents", _with(item, _meta=meta))


def annotate(
    *,
    audience: Iterable[Role] | None = None,
    priority: float | None = None,
    last_modified: str | float | None = None,
) -> Annotations:
    """The annotations of a block or of a resource. Keeps RES-026.

    Args:
        audience: `"user"`, `"assistant"`, or both.
        priority: From 0 (optional) to 1 (required).
        last_modified: A time in Unix seconds, or its text in ISO 8601 (since 2025-06-18).
    """
    found: JSONObject = {}
    if audience is not None:
        found["audience"] = list(names_in("audience", audience))
        if not set(found["audience"]) <= {*_ROLES}:
            raise ValueError(f"audience has only 'user' and 'assistant', not {audience!r:.80}")
    if priority is not None:
        if not is_number(priority) or not 0 <= priority <= 1:
            raise ValueError(f"priority must be a number from 0 to 1, not {priority!r}")
        found["priority"] = priority
    if is_number(last_modified) and isfinite(last_modified):
        found["lastModified"] = timestamp(last_modified)
    elif last_modified is not None:
        check_text("last_modified", last_modified)
        found["lastModified"] = last_modified
    return cast("Annotations", found)


# -------------------------------------------------------------------------------------- parts


def _with(block: JSONObject, **members: Any) -> JSONObject:
    """A block with further members of the protocol, as far as they are not None."""
    for name, value in members.items():
        if value is not None:
            block[name] = as_json(value, nulls=False)
    return block


def _encoded(name: str, data: object) -> dict[str, JSONValue]:
    """The member with bytes in Base64."""
    if not isinstance(data, bytes | bytearray):
        raise ValueError(f"{name} must be bytes, not {data!r:.40}; they are encoded here")
    return {name: binascii.b2a_base64(data, newline=False).decode()}


def _checked_type(value: str) -> str:
    check_text("mime_type", value)
    if re.fullmatch(_MIME_TYPE, value, re.ASCII) is None:
        raise ValueError(f"mime_type must be a type such as image/png, not {value!r:.80}")
    return value


def _checked_uri(value: str) -> str:
    check_text("uri", value)
    if re.fullmatch(_URI, value, re.ASCII | re.IGNORECASE) is None:
        raise ValueError(f"uri must be a URI with a scheme, percent-encoded, not {value!r:.80}")
    return value
