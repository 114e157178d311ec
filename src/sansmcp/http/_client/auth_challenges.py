"""The ways to authenticate that a server names in the header WWW-Authenticate.

Source: RFC 9110, section 11; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final

import attrs

from ..._wire.values import Record

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_COMMAS: Final = re.compile(r"[ \t,]*")
_SCHEME: Final = re.compile(rf"({_TOKEN})(?:[ \t]+|(?=,)|\Z)")
_TOKEN68: Final = re.compile(r"([A-Za-z0-9._~+/-]+=*)[ \t]*(?=,|\Z)")
_PARAMETER: Final = re.compile(
    rf"({_TOKEN})[ \t]*=[ \t]*(?:({_TOKEN})|\"((?:[^\"\\]|\\.)*)\")[ \t]*(?=,|\Z)", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_MAX_CHARACTERS: Final = 16_384
_MAX_CHALLENGES: Final = 32


@final
@attrs.frozen
class Challenge(Record):
    """One way to authenticate that a server names.

    Attributes:
        scheme: The scheme in lower case: `bearer`, `basic`.
        parameters: Values by name in lower case: `resource_metadata`, `scope`, `error`.
        token: The one value that some schemes have in place of parameters; None without it.
    """

    scheme: str
    parameters: dict[str, str]
    token: str | None = None


def read_challenges(fields: Iterable[str]) -> tuple[Challenge, ...]:
    """Return the challenges in all lines of the header, each line up to its first syntax error.

    Keeps AUTH-036, AUTH-220.
    """
    found: list[Challenge] = []
    for field in fields:
        _read_line(field[:_MAX_CHARACTERS], found)
    return tuple(found[:_MAX_CHALLENGES])


def _read_line(text: str, found: list[Challenge]) -> None:
    at = _skip(text, 0)
    while at < len(text) and len(found) < _MAX_CHALLENGES:
        scheme = _SCHEME.match(text, at)
        if scheme is None:
            return
        at = scheme.end()
        token = _TOKEN68.match(text, at)
        if token is not None and _PARAMETER.match(text, at) is None:
            found.append(Challenge(scheme[1].lower(), {}, token[1]))
            at = _skip(text, token.end())
            continue
        challenge = Challenge(scheme[1].lower(), {})
        found.append(challenge)
        at = _skip(text, at)
        while (parameter := _PARAMETER.match(text, at)) is not None:
            name, plain, quoted = parameter.groups()
            value = plain if plain is not None else _ESCAPED.sub(r"\1", quoted)
            challenge.parameters.setdefault(name.lower(), value)
            at = _skip(text, parameter.end())


def _skip(text: str, at: int) -> int:
    match = _COMMAS.match(text, at)
    assert match is not None  # it matches the empty text, too
    return match.end()
