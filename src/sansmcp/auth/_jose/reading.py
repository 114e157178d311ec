"""JWTs that others have signed: their parts, and the keys that verify them.

Source: RFC 7515; RFC 7517; RFC 7518; RFC 8725.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import Any, Final

import attrs
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from ..._wire.values import JSONObject
from .._common.requests import read_document

PublicKey = ECKey | OKPKey | RSAKey

_PARTS: Final = re.compile(r"([\w-]+)\.([\w-]+)\.([\w-]+)", re.ASCII)
_KINDS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512", "ES256K"), "EC"),
    **dict.fromkeys(("Ed25519", "Ed448", "EdDSA"), "OKP"),
}
_CLASSES: Final[dict[str, type[ECKey] | type[OKPKey] | type[RSAKey]]] = {
    "EC": ECKey,
    "OKP": OKPKey,
    "RSA": RSAKey,
}
_MIN_MODULUS_BITS: Final = 2048
_MAX_EXPONENT_BITS: Final = 33
_MAX_NUMBER: Final = 1_366  # characters in base64url of 8192 bits
_MAX_TOKEN: Final = 16_384
_MAX_HEADER: Final = 8_192
_MAX_SIGNATURE: Final = 2_048


class InvalidJWT(ValueError):
    """A text is no JWT that can be used; the message says why, and repeats nothing of it."""


@attrs.frozen
class SignedJWT:
    """A JWT whose signature is still to be verified.

    Attributes:
        text: The JWT.
        header: Its header.
        claims: Its claims.
        algorithm: The algorithm in its header.
        kind: The type of the key that the algorithm needs.
    """

    text: str = attrs.field(repr=False)
    header: JSONObject
    claims: JSONObject = attrs.field(repr=False)
    algorithm: str
    kind: str


class _Registry(jws.JWSRegistry):
    """Takes headers with a key in them, which are longer; and only algorithms that were named."""

    max_header_length = _MAX_HEADER
    max_signature_length = _MAX_SIGNATURE

    def get_alg(self, name: str) -> Any:
        """The algorithm. The list of the caller decides, without a word about older names."""
        return self.algorithms[name]


def read_jwt(text: str, algorithms: tuple[str, ...]) -> SignedJWT:
    """Take a JWT apart.

    Args:
        text: The text.
        algorithms: The algorithms that it may be signed with: asymmetric ones. Keeps AUTH-330.

    Raises:
        InvalidJWT: It is none, or has another algorithm.
    """
    if len(text) > _MAX_TOKEN:
        raise InvalidJWT(f"has more than {_MAX_TOKEN} characters")
    match = _PARTS.fullmatch(text)
    if match is None:
        raise InvalidJWT("is no signed JWT")
    header, claims = _json(match[1]), _json(match[2])
    if header is None or claims is None:
        raise InvalidJWT("has a part that is no JSON object")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise InvalidJWT("is signed with an algorithm that is not accepted")
    if "crit" in header or "b64" in header:
        raise InvalidJWT("needs an extension of JWS, and none is supported")
    kind = _KINDS.get(algorithm)
    if kind is None:
        raise InvalidJWT("is signed with an algorithm that is not supported")
    return SignedJWT(text, header, claims, algorithm, kind)


def _json(part: str) -> JSONObject | None:
    try:
        return read_document(_bytes_of(part))
    except Base64Error:
        return None


def _bytes_of(part: str) -> bytes:
    padded = part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4)
    return a2b_base64(padded, strict_mode=True)


def import_key(key: JSONObject, kind: str) -> PublicKey | None:
    """A public key, from a JWK; None: it is none that is to be trusted."""
    if key.get("kty") != kind:
        return None
    if kind == "RSA" and not _has_good_numbers(key):
        return None
    try:
        return _CLASSES[kind].import_key(key)
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _has_good_numbers(key: JSONObject) -> bool:
    """Whether a key of RSA is neither weak nor a burden, by its modulus and exponent.

    A key in a proof comes from the client, which could make each verification slow. Keeps AUTH-330.
    """
    modulus, exponent = _number(key.get("n")), _number(key.get("e"))
    # An exponent of 1 or an even one is refused where the key is imported.
    return modulus.bit_length() >= _MIN_MODULUS_BITS and exponent.bit_length() <= _MAX_EXPONENT_BITS


def _number(value: object) -> int:
    """A number of a key; 0 if it is none, or too long."""
    if not isinstance(value, str) or len(value) > _MAX_NUMBER or not value.isascii():
        return 0
    try:
        return int.from_bytes(_bytes_of(value))
    except Base64Error:
        return 0


def is_signed_by(jwt: SignedJWT, key: PublicKey) -> bool:
    """Whether the signature of a JWT is that of a key."""
    registry = _Registry(algorithms=[jwt.algorithm], strict_check_header=False)
    try:
        jws.deserialize_compact(jwt.text, key, registry=registry)
    except (JoseError, ValueError, TypeError):
        return False
    return True
