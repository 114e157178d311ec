"""The forms of text in payloads: Base64, URIs, URI templates, MIME types, dates, email addresses.

Each pattern takes time that is linear in the length of the text.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final

_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})*+"
)
_TEMPLATE: Final = re.compile(
    r"""(?:[^{}%"'<>\\^`|\x00-\x20\x7f]++|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?+[^{}\x00-\x20]++\})*+"""
)
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MIME: Final = re.compile(
    rf"{_TOKEN}/{_TOKEN}"
    rf"""(?:[ \t]*+;[ \t]*+{_TOKEN}=(?:{_TOKEN}|"(?:[^"\\\x00-\x08\n-\x1f\x7f]|\\.)*+"))*+"""
)
_DAY: Final = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)"
_DATE: Final = re.compile(_DAY, re.ASCII)
_DATE_TIME: Final = re.compile(rf"{_DAY}[Tt ]{_CLOCK}", re.ASCII)
_ISO_8601: Final = re.compile(
    r"\d{4}(?:-?\d\d(?:-?\d\d(?:[Tt ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?"
    r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII,
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


def is_base64(text: str) -> bool:
    """Whether a text is Base64 with the standard alphabet and padding, without line breaks.

    Source: RFC 4648, section 4.
    """
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def is_uri(text: str) -> bool:
    """Whether a text is a URI with a scheme (RFC 3986)."""
    return _URI.fullmatch(text) is not None


def is_uri_template(text: str) -> bool:
    """Whether a text is a URI template (RFC 6570). The names in its expressions are not judged."""
    return _TEMPLATE.fullmatch(text) is not None


def is_mime_type(text: str) -> bool:
    """Whether a text is a MIME type, with or without parameters (RFC 6838 and RFC 2045)."""
    return _MIME.fullmatch(text) is not None


def is_iso_8601(text: str) -> bool:
    """Whether a text is a date of ISO 8601, with or without a time."""
    return _ISO_8601.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Whether a text is a date of RFC 3339."""
    return _DATE.fullmatch(text) is not None


def is_date_time(text: str) -> bool:
    """Whether a text is a date with a time, of RFC 3339."""
    return _DATE_TIME.fullmatch(text) is not None


def is_email(text: str) -> bool:
    """Whether a text may be an email address: it has one @ between other characters."""
    return _EMAIL.fullmatch(text) is not None


FORMATS: Final[Mapping[str, tuple[str, Callable[[str], bool]]]] = {
    "byte": ("Base64", is_base64),
    "uri": ("a URI", is_uri),
    "uri-template": ("a URI template", is_uri_template),
    "mime": ("a MIME type", is_mime_type),
}
"""By form of text in the tables: its name in sentences, and the function that judges it. `mime` is
none of the schemas; it stands for each member `mimeType`."""

ELICITED_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date": is_date,
    "date-time": is_date_time,
    "email": is_email,
    "uri": is_uri,
}
"""By format in a schema of elicitation: the function that judges a value (ELIC-014)."""
