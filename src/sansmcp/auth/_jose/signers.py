"""Signers of DPoP proofs and of client assertions.

Source: RFC 9449, section 4.2; RFC 7523, section 3; RFC 7518.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from ..._wire.values import JSONObject

PrivateKey: TypeAlias = ECKey | OKPKey | RSAKey

_CURVES: Final = {
    "P-256": "ES256",
    "P-384": "ES384",
    "P-521": "ES512",
    "secp256k1": "ES256K",
    "Ed25519": "Ed25519",
    "Ed448": "Ed448",
}
_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "RS256": ("RS384", "RS512", "PS256", "PS384", "PS512"),
    "Ed25519": ("EdDSA",),  # the older name
    "Ed448": ("EdDSA",),
}
"""More algorithms, by the usual one of a kind of key."""


@final
class Signer:
    """Signs DPoP proofs, or the assertions of a client, with a private key.

    It is a `ProofSigner` with `proof=True`, and an `AssertionSigner` otherwise; `proof_signer` and
    `assertion_signer` make one. Its repr does not show the key.

    Attributes:
        algorithm: The name of the signature algorithm.
    """

    __slots__ = ("_header", "_key", "algorithm")

    def __init__(self, key: PrivateKey, algorithm: str, *, proof: bool) -> None:
        self.algorithm: Final = algorithm
        self._key: Final = key
        header: dict[str, Any] = {"alg": algorithm}
        if proof:
            header |= {"typ": "dpop+jwt", "jwk": key.as_dict(private=False)}
        elif key.kid is not None:
            header["kid"] = key.kid
        self._header: Final = header

    @property
    def thumbprint(self) -> str:
        """The SHA-256 thumbprint of the public key, as tokens name it (RFC 7638)."""
        return self._key.thumbprint()

    def sign(self, claims: JSONObject) -> str:
        """Return a JWT with these claims."""
        return jwt.encode(dict(self._header), claims, self._key, algorithms=[self.algorithm])

    def __deepcopy__(self, memo: object) -> Signer:
        return self

    def __repr__(self) -> str:
        return f"<Signer {self.algorithm}>"


def new_proof_signer(algorithm: Literal["ES256", "ES384", "ES512", "Ed25519"] = "ES256") -> Signer:
    """Make a key, which only this process has, and a signer of proofs with it.

    Keeps AUTH-392, AUTH-402.
    """
    key: PrivateKey
    if algorithm == "Ed25519":
        key = OKPKey.generate_key("Ed25519")
    else:
        key = ECKey.generate_key(
            next(curve for curve, name in _CURVES.items() if name == algorithm)
        )
    return Signer(key, algorithm, proof=True)


def proof_signer(key: str | bytes | JSONObject, algorithm: str | None = None) -> Signer:
    """A signer of DPoP proofs with a key that was made before. Keeps AUTH-393, AUTH-401.

    Args:
        key: A private key, as PEM or as a JWK.
        algorithm: The algorithm; None: the usual one for the kind of key.

    Raises:
        ValueError: It is no private key for an asymmetric algorithm, or has another kind.
    """
    return _signer(key, algorithm, proof=True)


def assertion_signer(key: str | bytes | JSONObject, algorithm: str | None = None) -> Signer:
    """A signer of assertions for `private_key_jwt`.

    Args:
        key: A private key, as PEM or as a JWK, whose `kid` goes into the header.
        algorithm: As in `proof_signer`.

    Raises:
        ValueError: As in `proof_signer`.
    """
    return _signer(key, algorithm, proof=False)


def _signer(key: str | bytes | JSONObject, algorithm: str | None, *, proof: bool) -> Signer:
    imported = _import(key)
    if imported is None or not imported.is_private:
        raise ValueError("the key is no private key for an asymmetric algorithm, as PEM or JWK")
    usual = "RS256" if isinstance(imported, RSAKey) else _CURVES.get(imported.curve_name, "")
    name = algorithm or usual
    if not usual or name not in (usual, *_OTHERS.get(usual, ())):
        raise ValueError(f"the key does not sign with {name!r}")
    return Signer(imported, name, proof=proof)


def _import(key: str | bytes | JSONObject) -> PrivateKey | None:
    kinds: tuple[type[ECKey] | type[RSAKey] | type[OKPKey], ...] = (ECKey, RSAKey, OKPKey)
    for kind in kinds:
        try:
            return kind.import_key(key)
        except (JoseError, ValueError, TypeError):
            continue
    return None
