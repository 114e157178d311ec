"""Whether a URI lies within the roots of a client."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

_URI: Final = r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?(/[^?#]*)?([?#].*)?"
"""A scheme, an authority, and a path from the root, perhaps with a query and a fragment."""
_ESCAPE: Final = rb"%([0-9A-Fa-f]{2})?"
_UNSAFE: Final = r"[\x00-\x20\x7f\\]"
"""Characters that a URI does not have, and that some programs remove or take for a slash."""
_DRIVE: Final = rb"[A-Za-z]:"


def root_contains(roots: Iterable[Mapping[str, Any] | str], uri: str) -> bool:
    """Whether a URI is that of a root, or of something below it.

    The comparison is safe against tricks with the text of a URI: dot segments, percent-encoding of
    any character, doubled and trailing slashes, and the case of scheme and host make no difference.
    A URI that programs may read in different ways is in no root: one with a control character, a
    space or a backslash, an encoded slash, a wrong percent-encoding, or a slash in the query of a
    `file://` URI. Keeps ROOT-010.

    It compares texts only. Whoever opens a file has to resolve symbolic links first, and to compare
    the result. Whether a file system ignores case is not known here, except for letters of drives.

    Args:
        roots: The roots of a `roots/list` result, or their URIs. Roots without a valid URI contain
            nothing.
        uri: The URI to look for.
    """
    place = _read(uri)
    if place is None:
        return False
    return any(
        (found := _read(root.get("uri") if isinstance(root, Mapping) else root)) is not None
        and found.contains(place)
        for root in roots
    )


@attrs.frozen
class _Place:
    """A URI in its normal form."""

    scheme: str
    host: str
    segments: tuple[bytes, ...]

    def contains(self, other: _Place) -> bool:
        """Whether another URI is equal, or below this one."""
        return (self.scheme, self.host, self.segments) == (
            other.scheme,
            other.host,
            other.segments[: len(self.segments)],
        )


def _read(uri: object) -> _Place | None:
    """The normal form of a URI; None if it has no path from a root, or is not safe to compare."""
    if not isinstance(uri, str) or re.search(_UNSAFE, uri):
        return None
    parts = re.fullmatch(_URI, uri)
    if parts is None:
        return None
    scheme, path, rest = parts[1].lower(), parts[3] or "", parts[4] or ""
    user, at, host = (parts[2] or "").rpartition("@")
    host = (
        user + at + (host.lower() if host.isascii() else host)
    )  # the lower case of a Kelvin sign is k
    if scheme == "file":
        host = "" if host == "localhost" else host  # RFC 8089, section 2
        if not path or re.search("[/%]", rest):  # a program may take all of it for a path
            return None
    segments = _segments(path)
    return None if segments is None else _Place(scheme, host, segments)


def _segments(path: str) -> tuple[bytes, ...] | None:
    """The segments of a path in its normal form; None if it is not safe to compare."""
    try:
        texts = path.encode().split(b"/")
    except UnicodeEncodeError:  # a lone surrogate
        return None
    segments: list[bytes] = []
    for text in texts:
        segment = _decoded(text)
        if segment is None:
            return None
        # Empty segments count for nothing, as for a file system: `a//../b` is `b` there, and would
        # be `a/b` otherwise.
        if segment == b"..":
            del segments[-1:]
        elif segment not in (b"", b"."):
            segments.append(segment)
    if segments and re.fullmatch(_DRIVE, segments[0]):
        segments[0] = segments[0].lower()
    return tuple(segments)


def _decoded(segment: bytes) -> bytes | None:
    """A segment of a path without percent-encoding; None if it is not safe to compare."""
    if any(len(found) != 2 for found in re.findall(_ESCAPE, segment)):
        return None
    decoded = re.sub(_ESCAPE, lambda found: binascii.unhexlify(found[1]), segment)
    return None if re.search(rb"[/\\\x00]", decoded) else decoded
