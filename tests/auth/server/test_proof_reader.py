"""DPoP proofs as clients make them, with real keys."""

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from sansmcp.auth import AccessGranted, AccessRefused, DPoP, ResourceServer
from sansmcp.auth.jose import JWTProofReader, new_proof_signer, proof_signer
from tests.auth.server.tools import AT, TOKEN, URL, presented, resource_of

ATH = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
RFC_TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"  # of the example in RFC 9449, section 7.1


def server_of(**settings: Any) -> ResourceServer:
    return ResourceServer(resource_of(dpop=DPoP(reader=JWTProofReader(), **settings)))


def ath() -> str:
    import base64
    import hashlib

    return base64.urlsafe_b64encode(hashlib.sha256(TOKEN.encode()).digest()).decode().rstrip("=")


def claims(**more: Any) -> dict[str, Any]:
    return {"jti": "j1", "htm": "POST", "htu": URL, "iat": AT, "ath": ath(), **more}


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "Ed25519"])
def test_a_proof_of_our_own_client_is_accepted(algorithm: Any) -> None:
    """Both sides of the library follow the same RFC (AUTH-409, AUTH-411)."""
    signer = new_proof_signer(algorithm)
    event = presented(server_of(), signer.sign(claims()), cnf={"jkt": signer.thumbprint})
    assert isinstance(event, AccessGranted), event


def test_a_key_of_rsa_fits_into_a_header() -> None:
    """It is longer than joserfc takes by itself (AUTH-409)."""
    signer = proof_signer(RSAKey.generate_key(3072).as_pem(private=True))
    event = presented(server_of(), signer.sign(claims()), cnf={"jkt": signer.thumbprint})
    assert isinstance(event, AccessGranted), event


def signed(key: Any, jwk: Any, alg: str = "ES256") -> str:
    header = {"alg": alg, "typ": "dpop+jwt", "jwk": jwk}
    return jwt.encode(header, claims(), key, algorithms=[alg])


def test_a_proof_that_another_key_has_signed_is_refused() -> None:
    """The thumbprint in a token can be read by anyone (AUTH-409)."""
    mine, theirs = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    proof = signed(mine, theirs.as_dict(private=False))
    event = presented(server_of(), proof, cnf={"jkt": theirs.thumbprint()})
    assert isinstance(event, AccessRefused)
    assert event.error == "invalid_dpop_proof"


@pytest.mark.parametrize("jwk", [{"kty": "EC"}, {"kty": "oct", "k": "AAAA"}, {}])
def test_a_proof_without_a_usable_key_is_refused(jwk: dict[str, str]) -> None:
    """There is nothing that could have signed it (AUTH-409)."""
    event = presented(server_of(), signed(ECKey.generate_key("P-256"), jwk))
    assert isinstance(event, AccessRefused)
    assert event.error == "invalid_dpop_proof"


def test_a_private_key_in_a_proof_is_refused() -> None:
    """A client that shows it has no key any more (AUTH-409)."""
    key = ECKey.generate_key("P-256")
    event = presented(
        server_of(), signed(key, key.as_dict(private=True)), cnf={"jkt": key.thumbprint()}
    )
    assert isinstance(event, AccessRefused)


def test_a_symmetric_proof_is_refused() -> None:
    """Its key would be in its header, for everyone (AUTH-409)."""
    key = OctKey.import_key("0" * 32)
    event = presented(server_of(), signed(key, key.as_dict(), "HS256"))
    assert isinstance(event, AccessRefused)


def test_the_example_of_the_rfc_is_read() -> None:
    """The thumbprint and the claims are those that RFC 9449 prints (AUTH-409)."""
    proof = (
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0"
        "VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10"
        "NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjo"
        "iR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI"
        "6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2o"
        "W9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
    )
    read = JWTProofReader().read(proof, ["ES256"])
    assert read.thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    assert read.claims["ath"] == ATH
    assert read.claims["htm"] == "GET"
    with pytest.raises(ValueError, match="no signed JWT"):
        JWTProofReader().read("x", ["ES256"])
