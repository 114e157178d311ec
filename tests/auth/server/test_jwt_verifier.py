"""Access tokens that are JWTs: their signatures, and what else is verified of them."""

import base64
import hashlib
import hmac
import itertools
import json
import math
from functools import cache
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey, RSAKey

from sansmcp.auth import AccessGranted, AccessRefused
from sansmcp.auth.jose import JWTVerifier
from tests.auth.server.jwts import (
    KEY,
    KEYS,
    OTHER,
    RSA,
    ec_key,
    known,
    outcome,
    public,
    server_of,
    token_of,
)
from tests.auth.server.tools import AT, ISSUER, claims_of


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        (KEY, "ES256"),
        (ec_key("k3", "P-384"), "ES384"),
        (RSA, "RS256"),
        (RSA, "PS256"),
        (OKPKey.generate_key("Ed25519", {"kid": "k4"}), "Ed25519"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_token_that_its_issuer_has_signed_is_served(key: Any, alg: str) -> None:
    """The usual kinds of keys work without further settings (AUTH-330)."""
    server = server_of(key_sets={ISSUER: public(key)})
    event = outcome(server, token_of(key, alg))
    assert isinstance(event, AccessGranted), event
    assert event.token.subject == "user-1"


def test_the_older_name_of_an_algorithm_is_taken_without_a_warning() -> None:
    """Authorization servers still write it; a warning for each request would help nobody."""
    key = OKPKey.generate_key("Ed25519", {"kid": "k4"})
    newer = token_of(key, "Ed25519")
    header = {"alg": "EdDSA", "typ": "at+jwt", "kid": "k4"}
    with pytest.warns(UserWarning, match="deprecated"):  # of the issuer in this test
        older = jwt.encode(header, claims_of(), key, algorithms=["EdDSA"])
    server = server_of(key_sets={ISSUER: public(key)})
    for token in (newer, older):
        assert isinstance(outcome(server, token), AccessGranted)


def tampered(token: str) -> str:
    """The token with another payload under the same signature."""
    header, _, signature = token.split(".")
    other = token_of(sub="admin").split(".")[1]
    return f"{header}.{other}.{signature}"


def by_hand(alg: str, signature: bytes) -> str:
    """A token that no library would make."""
    header = {"alg": alg, "typ": "at+jwt", "kid": "k1"}
    parts = [json.dumps(header).encode(), json.dumps(claims_of()).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def confused() -> str:
    """A token whose secret is the public key of the issuer."""
    signed = by_hand("HS256", b"").rpartition(".")[0]
    return by_hand("HS256", hmac.digest(KEY.as_pem(private=False), signed.encode(), "sha256"))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: "opaque", id="opaque"),
        pytest.param(lambda: "a.b.c", id="no base64"),
        pytest.param(lambda: "e30.e30.e30", id="empty"),
        pytest.param(lambda: "W10.e30.e30", id="a list"),
        pytest.param(lambda: "eyJ9.e30.e30", id="no JSON"),
        pytest.param(lambda: tampered(token_of()), id="tampered"),
        pytest.param(lambda: token_of() + "AA", id="longer signature"),
        pytest.param(lambda: token_of().rpartition(".")[0] + ".", id="no signature"),
        pytest.param(lambda: token_of().rpartition(".")[0] + ".AAAA", id="short signature"),
        pytest.param(lambda: by_hand("none", b""), id="alg none"),
        pytest.param(lambda: by_hand("none", b"x"), id="alg none with a signature"),
        pytest.param(confused, id="public key as secret"),
        pytest.param(lambda: token_of(ec_key("k1")), id="foreign key"),
        pytest.param(lambda: token_of(ec_key("k9")), id="unknown key"),
        pytest.param(lambda: token_of(ec_key(None)), id="foreign key without kid"),
        pytest.param(lambda: token_of(RSA, "RS512"), id="alg that is not allowed"),
        pytest.param(lambda: token_of(iss="https://other.example"), id="other issuer"),
        pytest.param(lambda: token_of(iss=None), id="no issuer"),
        pytest.param(lambda: token_of(typ="JWT"), id="typ JWT"),
        pytest.param(lambda: token_of(typ=None), id="no typ"),
        pytest.param(lambda: token_of(typ="dpop+jwt"), id="a proof"),
        pytest.param(lambda: token_of(exp=AT - 60), id="expired"),
        pytest.param(lambda: token_of(aud="https://other.example"), id="other audience"),
    ],
)
def test_any_other_token_is_refused(make: Any) -> None:
    """Each of these has let strangers in somewhere (AUTH-322, AUTH-329, AUTH-330)."""
    event = outcome(known(), make())
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (401, "invalid_token")


def test_a_token_that_needs_an_extension_of_signatures_is_refused() -> None:
    """Whoever ignores `crit` may take another payload for signed (AUTH-330)."""
    token = token_of(header={"b64": True, "crit": ["b64"]})
    assert isinstance(outcome(known(), token), AccessRefused)


def test_an_algorithm_that_nobody_here_knows_is_refused() -> None:
    """A setting may name more than there is (AUTH-330)."""
    server = known(algorithms=["ES256", "ML-DSA-44"])
    header = "eyJhbGciOiJNTC1EU0EtNDQifQ"  # {"alg":"ML-DSA-44"}
    event = outcome(server, f"{header}.e30.AAAA")
    assert isinstance(event, AccessRefused)
    assert "not supported" in event.text


def test_types_can_be_set() -> None:
    """Many authorization servers write JWT, some nothing."""
    for typ, types, is_granted in (
        ("JWT", ["at+jwt", "JWT"], True),
        ("application/at+jwt", ["at+jwt"], True),
        ("AT+JWT", ["application/at+jwt"], True),
        (None, ["at+jwt", "JWT"], False),
        (None, None, True),
    ):
        event = outcome(known(types=types), token_of(typ=typ))
        assert isinstance(event, AccessGranted) is is_granted, typ


def test_a_token_without_the_id_of_its_key_is_tried_with_those_that_fit() -> None:
    """Issuers with one key leave it out (AUTH-331)."""
    nameless = ec_key(None)
    server = server_of(key_sets={ISSUER: public(RSA, OTHER, nameless)})
    assert isinstance(outcome(server, token_of(nameless)), AccessGranted)


@pytest.mark.parametrize(
    "more",
    [
        {"use": "enc"},
        {"alg": "ES384"},
        {"kty": "RSA"},
        {"kty": "oct", "k": "AAAA"},
        {"x": 7},
        {"x": "AAAA"},
        {"crv": []},
        {"crv": "P-384"},
    ],
)
def test_a_key_that_is_not_for_this_is_not_used(more: dict[str, Any]) -> None:
    """A key set may hold anything (AUTH-331)."""
    server = server_of(key_sets={ISSUER: public(KEY, **more)})
    assert isinstance(outcome(server, token_of()), AccessRefused)


def test_a_short_key_of_rsa_is_not_used() -> None:
    """It can be broken (AUTH-330)."""
    with pytest.warns(UserWarning, match="2048"):  # in this test
        weak = RSAKey.generate_key(1024, {"kid": "weak"})
    server = server_of(key_sets={ISSUER: public(weak)})
    assert isinstance(outcome(server, token_of(weak, "RS256")), AccessRefused)
    n = weak.as_dict(private=False)["n"]
    assert isinstance(n, str)
    padded = server_of(key_sets={ISSUER: public(weak, n="A" * 400 + n)})
    assert isinstance(outcome(padded, token_of(weak, "RS256")), AccessRefused)


def number(value: int) -> str:
    """A number of a key."""
    data = value.to_bytes((value.bit_length() + 7) // 8)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    "numbers",
    [
        {"n": None},
        {"n": 7},
        {"n": "A"},
        {"n": "é" * 400},
        {"n": "A" * 200_000},
        {"e": None},
        {"e": number(4)},
    ],
)
def test_a_key_of_rsa_without_its_numbers_is_not_used(numbers: dict[str, Any]) -> None:
    """A key set may hold anything (AUTH-331)."""
    server = server_of(key_sets={ISSUER: public(RSA, **numbers)})
    assert isinstance(outcome(server, token_of(RSA, "RS256")), AccessRefused)


@cache
def primes() -> list[int]:
    """Ten primes of 1024 bits; two neighbours make a number of 2048 bits."""
    found: list[int] = []
    for key in (RSA, *(RSAKey.generate_key(2048) for _ in range(4))):
        private = key.as_dict(private=True)
        for name in ("p", "q"):
            text = private[name]
            assert isinstance(text, str)
            found.append(int.from_bytes(base64.urlsafe_b64decode(text + "==")))
    return found


@pytest.mark.parametrize(
    ("count", "least", "is_granted"),
    [
        pytest.param(2, 65_537, True, id="2048 bits"),
        pytest.param(8, 65_537, True, id="8192 bits"),
        pytest.param(10, 65_537, False, id="10240 bits"),
        pytest.param(2, 1 << 31, True, id="exponent of 32 bits"),
        pytest.param(2, 1 << 64, False, id="exponent of 65 bits"),
        pytest.param(2, 1, False, id="exponent 1"),
    ],
)
def test_keys_of_rsa_are_bounded(count: int, least: int, is_granted: bool) -> None:
    """With exponent 1 a signature needs no key, and long numbers cost time (AUTH-330)."""
    factors = primes()[:count]
    modulus, order = math.prod(factors), math.lcm(*(factor - 1 for factor in factors))
    exponent = next(e for e in itertools.count(least | 1, 2) if math.gcd(e, order) == 1)
    header = {"alg": "RS256", "typ": "at+jwt", "kid": "rsa"}
    parts = [json.dumps(header).encode(), json.dumps(claims_of()).encode()]
    signed = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    # RFC 8017, section 9.2
    end = bytes.fromhex("003031300d060960864801650304020105000420")
    end += hashlib.sha256(signed.encode()).digest()
    length = (modulus.bit_length() + 7) // 8
    padded = b"\0\1" + b"\xff" * (length - 2 - len(end)) + end
    signature = pow(int.from_bytes(padded), pow(exponent, -1, order), modulus).to_bytes(length)
    token = f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    jwk = {"kty": "RSA", "kid": "rsa", "n": number(modulus), "e": number(exponent)}
    event = outcome(server_of(key_sets={ISSUER: {"keys": [jwk]}}), token)
    assert isinstance(event, AccessGranted) is is_granted


def test_an_endless_token_is_refused() -> None:
    """Its signature would be computed over all of it (AUTH-330)."""
    verifier = JWTVerifier([ISSUER], key_sets={ISSUER: public(KEY)})
    granted, refused = (
        verifier.begin(token_of(note="x" * length), at=AT) for length in (11_000, 12_500)
    )
    assert granted.claims is not None
    assert refused.rejection == "the token has more than 16384 characters"


def test_a_verifier_alone_has_a_clock() -> None:
    """Whoever uses it without a `ResourceServer` is told when a request has failed."""
    verifier = JWTVerifier([ISSUER], jwks_uris={ISSUER: KEYS}, timeout=5.0)
    assert verifier.next_timeout() is None
    verification = verifier.begin(token_of(), at=AT)
    assert verifier.next_timeout() == AT + 5
    verifier.handle_timeout(AT + 5)
    assert verifier.next_ended() is verification
    assert verification.failure == f"{KEYS}: no response within 5 seconds"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"issuers": []}, "issuers must name one"),
        ({"issuers": ["http://as.example"]}, "each of issuers must be https"),
        ({"jwks_uris": {ISSUER: "ftp://x"}}, "each of jwks_uris"),
        ({"jwks_uris": {"https://x.example": KEYS}}, "is none of issuers"),
        ({"key_sets": {ISSUER: {}}}, "must be a JWK set"),
        ({"key_sets": {ISSUER: {"keys": ["x"]}}}, "must be a JWK set"),
        ({"algorithms": ["none"]}, "must have public keys"),
        ({"algorithms": ["HS256"]}, "must have public keys"),
        ({"types": "JWT"}, "types must be a list"),
        ({"max_age": 0}, "max_age must be greater"),
        ({"max_stale": -1}, "max_stale must not be negative"),
        ({"stale_while_reading": float("inf")}, "stale_while_reading must be a finite"),
        ({"timeout": float("inf")}, "timeout must be greater than zero, and a finite"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], text: str) -> None:
    """A mistake here would refuse all tokens, or none (AUTH-330)."""
    with pytest.raises(ValueError, match=text):
        JWTVerifier(settings.pop("issuers", [ISSUER]), **settings)


def test_nothing_secret_is_shown() -> None:
    """Settings and handles are logged (AUTH-285)."""
    verifier = JWTVerifier([ISSUER], key_sets={ISSUER: public(KEY)})
    token = token_of()
    verification = verifier.begin(token, at=AT)
    assert verification.claims is not None
    for part in (*token.split("."), "user-1"):
        assert part not in repr(verification) + repr(verifier)
