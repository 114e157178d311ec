"""The credentials of a request: the header `Authorization`, and the proof beside it.

Source: RFC 6750, section 2.1; RFC 9110, section 11.4; RFC 9449, sections 4.3 and 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote_plus

import attrs

from .challenges import Refusal, invalid_proof, invalid_request, invalid_token

_SCHEME: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +(.*))?", re.DOTALL)
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_MAX_CHARACTERS: Final = 16_384

GivenHeaders: TypeAlias = (
    Mapping[str, str] | Mapping[bytes, bytes] | Iterable[tuple[str | bytes, str | bytes]]
)
"""Headers as a caller gives them: a mapping, or pairs of name and value."""

BEARER: Final = "Bearer"
DPOP: Final = "DPoP"
_SCHEMES: Final = {BEARER.lower(): BEARER, DPOP.lower(): DPOP}


@final
@attrs.frozen(kw_only=True)
class Credentials:
    """What a request is to be admitted for. Neither token nor proof is in the repr.

    Attributes:
        scheme: `Bearer` or `DPoP`.
        token: The access token.
        proof: The DPoP proof that came with it; None without one.
    """

    scheme: str
    token: str = attrs.field(repr=False)
    proof: str | None = attrs.field(default=None, repr=False)


NO_CREDENTIALS: Final = Refusal(401, None, "authorization is required", "AUTH-012")
"""A request without credentials, or with those of another scheme: no error is named.

Keeps AUTH-013, AUTH-321."""


def read_credentials(
    target: str, headers: Iterable[tuple[str, str]], schemes: Collection[str]
) -> Credentials | Refusal:
    """The credentials of a request.

    A token in the query is none: it would stand in logs and in `Referer`. Keeps AUTH-326, AUTH-327.

    Args:
        target: Path and query, as in the request line.
        headers: Names in lower case, and values.
        schemes: The schemes that are served: `Bearer`, `DPoP`.
    """
    fields = [value.strip(" \t") for name, value in headers if name == "authorization"]
    if not fields:
        return NO_CREDENTIALS
    if len(fields) > 1:
        return invalid_request("there is more than one header Authorization")
    if len(fields[0]) > _MAX_CHARACTERS:
        return invalid_token(f"the token has more than {_MAX_CHARACTERS} characters", "AUTH-010")
    match = _SCHEME.fullmatch(fields[0])
    scheme = "" if match is None else _SCHEMES.get(match[1].lower(), "")
    if match is None or scheme not in schemes:
        return NO_CREDENTIALS
    token = (match[2] or "").rstrip(" ")
    if not _TOKEN.fullmatch(token):
        return invalid_request("the header Authorization is a scheme and one token")
    if _has_token_in_query(target):
        return invalid_request("a token came in the header Authorization and in the query, too")
    proofs = [value.strip(" \t") for name, value in headers if name == "dpop"]
    if len(proofs) > 1:
        return invalid_proof("there is more than one header DPoP")
    return Credentials(scheme=scheme, token=token, proof=proofs[0] if proofs else None)


def _has_token_in_query(target: str) -> bool:
    """Whether a parameter is named `access_token`, in whatever way its name is encoded."""
    _, _, query = target.partition("?")
    if not query:  # as nearly always
        return False
    pairs = (pair.partition("=") for pair in query.split("&"))
    names = (name for name, equals, _ in pairs if equals)
    return any(unquote_plus(name) == "access_token" for name in names)


def fields_of(headers: GivenHeaders) -> list[tuple[str, str]]:
    """Headers as pairs of texts, with names in lower case, from a mapping or from pairs."""
    given: Any = headers
    if hasattr(given, "items"):
        given = given.items()
    return [(_text(name).lower(), _text(value)) for name, value in given]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else str(value, "latin-1")
