"""DPoP: proofs that a token is used by the client that it was given to, and nonces of servers.

Source: RFC 9449; the DPoP extension of MCP.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import attrs

from ..._wire.values import JSONObject
from .._common.addresses import read_url
from .._common.requests import HeaderFields
from .core import Core, base64url

USE_NONCE: Final = "use_dpop_nonce"
BAD_PROOF: Final = "invalid_dpop_proof"
_NONCE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")
_MAX_SERVERS: Final = 8
_ASYMMETRIC: Final = re.compile(r"(?:ES|RS|PS)(?:256|384|512)K?|EdDSA|Ed25519|Ed448")


@attrs.define(eq=False, repr=False)
class Proofs:
    """Makes a new proof for each request, with the newest nonce of its server.

    Keeps AUTH-405: nonces are kept by the origin of the server.
    """

    _core: Core
    _nonces: dict[str, str] = attrs.field(factory=dict[str, str], init=False)

    def suits(self, algorithms: tuple[str, ...] | None) -> bool:
        """Whether the signer has an algorithm that an authorization server lists.

        Keeps AUTH-401, AUTH-402.
        """
        signer = self._core.proofs
        return signer is not None and signer.algorithm in (algorithms or ())

    def make(
        self, method: str, url: str, *, at: float, token: str | None = None
    ) -> tuple[str, str]:
        """The header with a proof for one request.

        Keeps AUTH-392, AUTH-393, AUTH-394, AUTH-395, AUTH-396.

        Args:
            method: The method of the request.
            url: The URL of the request; its query is not part of the proof.
            at: The Unix time.
            token: The access token that goes with the request; None at a token endpoint.
        """
        signer = self._core.proofs
        assert signer is not None  # or no proof would be asked for
        target = read_url(url)
        claims: JSONObject = {
            "jti": self._core.draw(16),
            "htm": method,
            "htu": target.origin + target.path,
            "iat": int(at),
        }
        if token is not None:
            claims["ath"] = base64url(sha256(token.encode()).digest())
        nonce = self._nonces.get(target.origin)
        if nonce is not None:
            claims["nonce"] = nonce
        return ("DPoP", signer.sign(claims))

    def learn(self, url: str, headers: HeaderFields) -> bool:
        """Keep the nonce in the headers of any response; True if there is one.

        Keeps AUTH-403, AUTH-405.
        """
        found = [value.strip() for name, value in headers if name.lower() == "dpop-nonce"]
        if len(found) != 1 or not _NONCE.fullmatch(found[0]):
            return False
        origin = read_url(url).origin
        self._nonces.pop(origin, None)
        if len(self._nonces) >= _MAX_SERVERS:
            del self._nonces[next(iter(self._nonces))]
        self._nonces[origin] = found[0]
        return True

    def has_nonce(self, origin: str) -> bool:
        """Whether a server has given a nonce."""
        return origin in self._nonces


def is_asymmetric(algorithm: object) -> bool:
    """Whether a signature algorithm has a public key. Keeps AUTH-401."""
    return isinstance(algorithm, str) and _ASYMMETRIC.fullmatch(algorithm) is not None
