"""Seals for the state of `require_input`, which a client keeps and sends back.

The client can read a sealed state. It cannot change it, and cannot use it for another request, as
another principal, or after it has expired.

Source: MCP 2026-07-28, basic/patterns/mrtr, Security Considerations.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..._spec.errors import LocalProtocolError
from ..._wire.values import JSONObject
from ..handles import IncomingRequest

if TYPE_CHECKING:
    from ..config import Config

_VERSION: Final = "s2"
_NOT_OF_THE_REQUEST: Final = ("_meta", "inputResponses", "requestState")
_TAG_BYTES: Final = 18

NO_PRINCIPAL_KEY: Final = (
    "Config.state_keys are set, and a principal is given without principal_key, the string that "
    "its states are bound to"
)

LAST: Final = 10**15 - 1
"""The latest time at which a seal may expire, in Unix seconds."""


class BadSeal(Exception):
    """The seal of a state is not valid for this request; the text says why."""


def check_principal_key(principal: object, key: object, config: Config) -> None:
    """Raise if states are sealed and a principal has no key.

    The library does not use `str(principal)`: two users may have the same text, and the text of one
    user may change.

    Raises:
        LocalProtocolError: The key is missing or is no string.
    """
    if key is not None and not isinstance(key, str):
        raise LocalProtocolError("OWN-050", f"principal_key is a string, not {type(key).__name__}")
    if config.state_keys and principal is not None and key is None:
        raise LocalProtocolError("OWN-050", NO_PRINCIPAL_KEY)


def seal(state: str, request: IncomingRequest, keys: Sequence[bytes], *, expires: int) -> str:
    """The state with a seal by the first key.

    The parts are the version, the time of expiry, a tag of the request, a tag of the principal, the
    state, and the MAC of all parts before it.

    Keeps MRTR-015.

    Args:
        state: The state.
        request: The request that the client will send again.
        keys: `Config.state_keys`, at least one.
        expires: The time of expiry in Unix seconds, at most `LAST`.
    """
    key = keys[0]
    tags = _request_tag(key, request), _principal_tag(key, request)
    text = ".".join((_VERSION, str(expires), *tags, _to_text(_bytes_of(state))))
    return f"{text}.{_mac(key, text)}"


def unseal(sealed: str, request: IncomingRequest, keys: Sequence[bytes], *, at: float) -> str:
    """The state out of its seal, which any of the keys may have made.

    Keeps MRTR-015.

    Args:
        sealed: The text that `seal` has returned.
        request: The request that has brought it.
        keys: `Config.state_keys`.
        at: The current time in Unix seconds.

    Raises:
        BadSeal: The text was altered, has expired, or belongs to another request or principal.
    """
    import hmac  # imported only where states are sealed

    text, _, mac = sealed.rpartition(".")
    given = _bytes_of(mac)
    # If the MAC of the text is right, `seal` has made the text, and it has five parts.
    for key in keys:
        if hmac.compare_digest(_mac(key, text).encode(), given):
            break
    else:
        raise BadSeal("it was altered, or not sealed with a key of this server")
    _, expires, for_request, for_principal, state = text.split(".")
    if for_request != _request_tag(key, request):
        raise BadSeal("it belongs to another request")
    if for_principal != _principal_tag(key, request):
        raise BadSeal("it belongs to another principal")
    if not at <= int(expires):  # which also refuses NaN
        raise BadSeal("its time is over")
    return a2b_base64(state).decode("utf-8", "surrogatepass")


def digest_of(params: JSONObject) -> bytes:
    """The digest of the params that a request and its retry must have in common.

    It is computed when the request is received, before a handler can change the params.
    """
    import hashlib

    rest = {n: v for n, v in params.items() if n not in _NOT_OF_THE_REQUEST}
    return hashlib.sha256(_text_of(rest)).digest()


def _request_tag(key: bytes, request: IncomingRequest) -> str:
    return _tag(key, ["request", request.method, request._digest.hex()])


def _principal_tag(key: bytes, request: IncomingRequest) -> str:
    return _tag(key, ["principal", request.principal_key])


def _tag(key: bytes, about: list[str | None]) -> str:
    import hmac

    return _to_text(hmac.digest(key, _text_of(about), "sha256")[:_TAG_BYTES])


def _mac(key: bytes, text: str) -> str:
    import hmac

    return _to_text(hmac.digest(key, _bytes_of(text), "sha256"))


def _text_of(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _bytes_of(state: str) -> bytes:
    return state.encode("utf-8", "surrogatepass")


def _to_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
