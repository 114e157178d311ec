"""State that goes through the hands of a client and comes back: sealed, so that nobody alters it.

What is sealed can be read by the client; it cannot be changed, used for another request, by
another principal, or after its time.

Source: MCP 2026-07-28, basic/patterns/mrtr, Security Considerations.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import Final

from ._handles import IncomingRequest
from ._values import JSONObject

_VERSION: Final = "s1"
_NOT_OF_THE_REQUEST: Final = ("_meta", "inputResponses", "requestState")


LAST: Final = 10**15 - 1
"""No seal expires later, in Unix seconds: so many digits are read."""


class BadSeal(Exception):
    """The seal is not ours, or not for this request now; the text says which."""


def seal(state: str, request: IncomingRequest, keys: Sequence[bytes], *, expires: int) -> str:
    """The state with its seal; `expires` is in Unix seconds, at most `LAST`.

    The first key is used.
    """
    mac = _mac(keys[0], state, request, expires)
    return ".".join((_VERSION, str(expires), _to_text(mac), _to_text(_bytes_of(state))))


def unseal(sealed: str, request: IncomingRequest, keys: Sequence[bytes], *, at: float) -> str:
    """The state that was sealed with any of the keys.

    Raises:
        BadSeal: It was altered, has expired, or belongs to another request or principal.
    """
    parts = sealed.split(".")
    if len(parts) != 4 or parts[0] != _VERSION or not parts[1].isdecimal() or len(parts[1]) > 15:
        raise BadSeal("it has not the form of a sealed state")
    try:
        mac = a2b_base64(parts[2])
        state = a2b_base64(parts[3]).decode("utf-8", "surrogatepass")
    except ValueError:
        raise BadSeal("it has not the form of a sealed state") from None
    expires = int(parts[1])
    import hmac  # only who seals pays for it

    if not any(hmac.compare_digest(mac, _mac(key, state, request, expires)) for key in keys):
        raise BadSeal("it was altered, or belongs to another request, principal or key")
    if not at <= expires:  # which also refuses NaN
        raise BadSeal("its time is over")
    return state


def digest_of(params: JSONObject) -> bytes:
    """What the retry has to have in common with its request.

    It is taken when a request comes, before a handler can change its params.
    """
    import hashlib

    rest = {n: v for n, v in params.items() if n not in _NOT_OF_THE_REQUEST}
    return hashlib.sha256(_text_of(rest)).digest()


def _mac(key: bytes, state: str, request: IncomingRequest, expires: int) -> bytes:
    import hmac

    principal = None if request.principal is None else str(request.principal)
    whole = [expires, request.method, request._digest.hex(), principal, state]
    return hmac.digest(key, _text_of(whole), "sha256")


def _text_of(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _bytes_of(state: str) -> bytes:
    return state.encode("utf-8", "surrogatepass")


def _to_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
