"""The header `WWW-Authenticate` of a server, and the refusals that have one.

Source: RFC 6750, section 3; RFC 9110, section 11.6.1; RFC 9449, section 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from ..._wire.values import Record

_ERROR: Final = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")
_NOT_IN_TEXT: Final = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")
_MAX_TEXT: Final = 300
RETRY_SECONDS: Final = 5
"""How long a client is told to wait whose token cannot be verified now."""


def challenge(scheme: str, parameters: Iterable[tuple[str, str]]) -> str:
    """One challenge, with each value as a quoted string, without empty ones. Keeps AUTH-320.

    The values are those that `error_code`, `description`, and the checks of settings let pass:
    visible ASCII and spaces, without quotes and backslashes, so that nothing needs an escape.
    """
    listed = (f'{name}="{value}"' for name, value in parameters if value)
    return f"{scheme} {', '.join(listed)}"


def error_code(value: str) -> str:
    """An error code for a challenge.

    Raises:
        ValueError: It has a character that is not allowed there.
    """
    if not _ERROR.fullmatch(value):
        raise ValueError(
            f"error must be visible ASCII without quotes and backslashes, not {value!r:.200}"
        )
    return value


def description(text: str) -> str:
    """A text for a challenge: characters that are not allowed there are replaced, its end cut off.

    The text may repeat what a client or another server has sent. Source: RFC 6750, section 3.
    """
    plain = text[:_MAX_TEXT].replace('"', "'").replace("\\", "/")
    return _NOT_IN_TEXT.sub("?", " ".join(plain.split()))


@attrs.frozen
class Refusal(Record):
    """Why a request is not served, before it is known what the response says.

    Attributes:
        status: The status of the response.
        error: The error code of the challenge; None: the request had no credentials.
        text: One sentence for the client, without double quotes.
        rule: The id of the rule that the request breaks.
        scopes: The scopes that the request needs, if it lacks one.
        nonce: The nonce that a proof must have; None: that is not said.
        retry_after: Seconds after which the client may try again; None: that is not said.
    """

    status: int
    error: str | None
    text: str
    rule: str
    scopes: tuple[str, ...] = ()
    nonce: str | None = None
    retry_after: int | None = None


def invalid_token(text: str, rule: str) -> Refusal:
    """The token of a request is not accepted. Keeps AUTH-011, AUTH-322."""
    return Refusal(401, "invalid_token", text, rule)


def invalid_request(text: str, rule: str = "AUTH-323") -> Refusal:
    """The credentials of a request cannot be read. Keeps AUTH-012, AUTH-323."""
    return Refusal(400, "invalid_request", text, rule)


def invalid_proof(text: str, rule: str = "AUTH-409") -> Refusal:
    """The DPoP proof of a request is not accepted. Keeps AUTH-410."""
    return Refusal(401, "invalid_dpop_proof", text, rule)


def unavailable(text: str) -> Refusal:
    """A token cannot be verified now."""
    return Refusal(503, None, text, "AUTH-010", retry_after=RETRY_SECONDS)
