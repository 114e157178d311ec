"""DPoP: proofs that the sender of a token has the key that the token was issued for.

A proof is a JWT for one request. The signature is verified by a `ProofReader`, for which
`sansmcp.auth.jose` has an implementation; everything else is judged here.

Source: RFC 9449, section 4.3; ext-auth draft, DPoP Profile for MCP.
"""

from __future__ import annotations

import hmac
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from math import inf
from typing import Any, Final, Protocol, final

import attrs

from ..._wire.setting_checks import flag, is_number, kinds_in, names_in, whole
from ..._wire.values import JSONObject, Record, is_object
from .._common.addresses import RefusedURL, read_url
from .challenges import Refusal, invalid_proof, unavailable

_LONGEST_WINDOW: Final = 300.0
_MAX_PROOF: Final = 8_192
_MAX_JTI: Final = 1_024
_TAG_BYTES: Final = 16
_TIME_BYTES: Final = 8
_MIN_KEY: Final = 16
_LATEST: Final = 1e13
_ALGORITHM: Final = re.compile(r"[A-Za-z0-9+/._-]+")
_SYMMETRIC: Final = ("HS", "NONE", "A", "DIR", "PBES")
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"})


@final
@attrs.frozen(kw_only=True)
class Proof(Record):
    """A DPoP proof whose signature is that of the key in its header.

    Attributes:
        header: The header of the JWT.
        claims: Its claims.
        thumbprint: The thumbprint of the key in its header (RFC 7638, SHA-256, base64url).
    """

    header: JSONObject
    claims: JSONObject
    thumbprint: str


class ProofReader(Protocol):
    """Verifies the signature of DPoP proofs. `sansmcp.auth.jose` has an implementation."""

    def read(self, proof: str, algorithms: Sequence[str]) -> Proof:
        """Return what a proof says, if the key in its header has signed it.

        Args:
            proof: The JWT, as it came.
            algorithms: The algorithms that it may be signed with.

        Raises:
            ValueError: It is none, or the signature is not valid.
        """
        ...


def asymmetric_names(value: Iterable[str]) -> tuple[str, ...]:
    """The algorithms of a setting.

    Raises:
        ValueError: There are none, or one has no public key.
    """
    names = names_in("algorithms", value)
    for name in names:
        if not _ALGORITHM.fullmatch(name):
            raise ValueError(f"algorithms must be names without spaces and quotes, not {name!r}")
        if name.upper().startswith(_SYMMETRIC):
            raise ValueError(
                f"algorithms must have public keys (AUTH-330, AUTH-393), unlike {name!r}"
            )
    if not names:
        raise ValueError("algorithms must name one algorithm at least")
    return names


def _window(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not is_number(value) or not 0 < value <= _LONGEST_WINDOW:
        raise ValueError(
            f"{attribute.name} must be a number of seconds from 0 to {_LONGEST_WINDOW:g} "
            f"(AUTH-409), not {value!r}"
        )


def _nonce_keys(value: Iterable[bytes]) -> tuple[bytes, ...]:
    keys: tuple[bytes, ...] = kinds_in("nonce_keys", value, bytes, "bytes")
    if any(len(key) < _MIN_KEY for key in keys):
        raise ValueError(f"each of nonce_keys must have {_MIN_KEY} random bytes at least")
    return keys


@final
@attrs.frozen(kw_only=True)
class DPoP(Record):
    """How a server takes tokens that are bound to a key of their client. Times are in seconds.

    Each `ResourceServer` remembers the proofs that it has accepted, in its own memory. Several
    workers behind one address share nothing: a proof that one of them has accepted is accepted once
    by each other one as well. A short `window`, and `nonce_keys` with a short `nonce_lifetime`,
    bound for how long that is possible; requests of one client that always go to the same worker
    prevent it.
    """

    reader: ProofReader
    """Verifies the signatures of proofs."""
    required: bool = attrs.field(default=False, validator=flag)
    """Whether tokens that are bound to no key are refused."""
    algorithms: tuple[str, ...] = attrs.field(
        default=("ES256", "ES384", "ES512", "PS256", "RS256", "Ed25519", "EdDSA"),
        converter=asymmetric_names,
    )
    """The algorithms that proofs may be signed with: asymmetric ones only."""
    window: float = attrs.field(default=_LONGEST_WINDOW, validator=_window)
    """How far the time in a proof may be behind that of the server: up to 300."""
    ahead: float = attrs.field(default=10.0, validator=_window)
    """How far it may be ahead: a few seconds, for clocks that differ. A proof is remembered until
    it is too old, so those of a later time would fill the memory for longer."""
    max_proofs: int = attrs.field(default=100_000, validator=whole())
    """Proofs that are remembered, so that none is accepted twice. Over it, an old one of the key
    with the most proofs is forgotten; proofs of that key which are as old are refused from then on.
    Where each key has one only, proofs of further keys get 503."""
    max_proofs_of_key: int = attrs.field(default=10_000, validator=whole())
    """Proofs of one key that are remembered, in the same way."""
    nonce_keys: tuple[bytes, ...] = attrs.field(default=(), converter=_nonce_keys, repr=False)
    """Keys of random bytes, by which nonces are made and recognized: the first one makes them. With
    a key each proof must have a nonce of this server. Workers behind one address need the same."""
    nonce_lifetime: float = attrs.field(default=_LONGEST_WINDOW, validator=_window)
    """How long a nonce is accepted."""

    # --------------------------------------------------------------------------------- nonces

    def new_nonce(self, at: float) -> str:
        """A nonce for this time: it tells the time, with a seal. Keeps AUTH-414.

        Raises:
            ValueError: There are no `nonce_keys`.
        """
        if not self.nonce_keys:
            raise ValueError("nonces are made with nonce_keys=, and there are none")
        time = max(0, int(at)).to_bytes(_TIME_BYTES)
        return base64url(time + _seal(self.nonce_keys[0], time))

    def knows_nonce(self, nonce: object, at: float) -> bool:
        """Whether this server, or one with the same key, has made a nonce, not long ago."""
        if not isinstance(nonce, str) or not nonce.isascii():
            return False
        try:
            data = a2b_base64(nonce.replace("-", "+").replace("_", "/") + "==", strict_mode=False)
        except Base64Error:
            return False
        time, seal = data[:_TIME_BYTES], data[_TIME_BYTES:]
        if not any(hmac.compare_digest(seal, _seal(key, time)) for key in self.nonce_keys):
            return False
        return abs(at - int.from_bytes(time)) <= self.nonce_lifetime


@final
@attrs.frozen
class JudgedProof(Record):
    """A proof that is right for its request.

    Attributes:
        thumbprint: The thumbprint of its key.
        tag: What stands for the proof, and for no other one of this key.
        issued_at: Its time.
    """

    thumbprint: str
    tag: bytes
    issued_at: float


def judge_proof(
    dpop: DPoP, proof: str, *, method: str, urls: Iterable[str], token: str, at: float
) -> JudgedProof | Refusal:
    """Judge a proof for one request. Whether it came before is judged by `ProofMemory`.

    Keeps AUTH-409.

    Args:
        dpop: How the server takes such tokens.
        proof: The value of the header DPoP.
        method: The method of the request.
        urls: The URLs that the client may have for the request.
        token: The access token.
        at: The time in Unix seconds.
    """
    if len(proof) > _MAX_PROOF:
        return invalid_proof(f"the proof has more than {_MAX_PROOF} characters")
    try:
        read = dpop.reader.read(proof, dpop.algorithms)
    except ValueError:
        return invalid_proof("the proof is no JWT that the key in its header has signed")
    header, claims = read.header, read.claims
    if header.get("typ") != "dpop+jwt":
        return invalid_proof("the typ of the proof is not dpop+jwt")
    if header.get("alg") not in dpop.algorithms:
        return invalid_proof("the algorithm of the proof is none of those that are accepted")
    jwk = header.get("jwk")
    if not is_object(jwk) or not _PRIVATE.isdisjoint(jwk):
        return invalid_proof("the proof has no public key")
    jti, issued = claims.get("jti"), claims.get("iat")
    if not isinstance(jti, str) or not 0 < len(jti) <= _MAX_JTI:
        return invalid_proof("the proof has no jti")
    if claims.get("htm") != method:
        return invalid_proof("the htm of the proof is not the method of the request")
    if not any(_is_same(claims.get("htu"), url) for url in urls):
        return invalid_proof("the htu of the proof is not the URL of the request")
    if (issued := time_of(issued)) is None:
        return invalid_proof("the proof has no iat")
    if claims.get("ath") != digest_of(token):
        return invalid_proof("the ath of the proof is not the hash of the token")
    if dpop.nonce_keys and not dpop.knows_nonce(claims.get("nonce"), at):
        text = "the proof needs the nonce of the header DPoP-Nonce"
        return Refusal(401, "use_dpop_nonce", text, "AUTH-414", nonce=dpop.new_nonce(at))
    if at - issued > dpop.window:
        return invalid_proof(f"the iat of the proof is more than {dpop.window:g} s ago")
    if issued - at > dpop.ahead:
        text = f"the iat of the proof is more than {dpop.ahead:g} s ahead of the server's time"
        return invalid_proof(text)
    tag = sha256(f"{read.thumbprint}.{jti}".encode("utf-8", "surrogatepass")).digest()
    return JudgedProof(read.thumbprint, tag[:_TAG_BYTES], issued)


@attrs.frozen
class _Remembered:
    """A proof that was accepted.

    Attributes:
        thumbprint: The thumbprint of its key.
        issued_at: Its time.
        until: When it is too old, whatever its time was.
    """

    thumbprint: str
    issued_at: float
    until: float


@attrs.define
class _ProofsOfKey:
    """The proofs of one key.

    Attributes:
        times: The time of each proof that is remembered, by its tag, in the order they came.
        newest_forgotten: The latest time of a proof that was forgotten too early. No proof that is
            as old is accepted any more.
    """

    times: OrderedDict[bytes, float] = attrs.field(factory=OrderedDict[bytes, float])
    newest_forgotten: float = -inf


class ProofMemory:
    """The proofs of the last minutes, so that none is accepted twice.

    Its size is bounded without letting any proof pass a second time: as a proof is forgotten too
    early, those of its key which are as old are not accepted any more. Only the key with the most
    proofs loses one, so no key can displace those of another that has fewer.

    Args:
        dpop: The bounds.
    """

    __slots__ = ("_by_count", "_dpop", "_keys", "_largest", "_newest_forgotten", "_proofs")

    def __init__(self, dpop: DPoP) -> None:
        self._dpop = dpop
        self._proofs: OrderedDict[bytes, _Remembered] = OrderedDict()  # in the order they came
        self._keys: dict[str, _ProofsOfKey] = {}
        self._by_count: dict[int, OrderedDict[str, None]] = {}  # the keys with so many proofs
        self._largest = 0  # the highest count of a key
        self._newest_forgotten = -inf  # if the clock is put back

    def accept(self, proof: JudgedProof, at: float) -> Refusal | None:
        """Remember a proof; or say why it is not accepted. Keeps AUTH-413."""
        self._forget_old(at)
        if proof.tag in self._proofs:
            return invalid_proof("the proof was used before", "AUTH-413")
        of_key = self._keys.get(proof.thumbprint) or _ProofsOfKey()
        displaced = self._displaced_by(proof, of_key)
        if isinstance(displaced, Refusal):
            return displaced
        newest = max(of_key.newest_forgotten, self._newest_forgotten)
        if displaced is not None and self._proofs[displaced].thumbprint == proof.thumbprint:
            newest = max(newest, self._proofs[displaced].issued_at)
        if proof.issued_at <= newest:
            text = "the proof is too old: the server remembers newer ones only"
            return invalid_proof(text, "AUTH-413")
        if displaced is not None:
            self._displace(displaced)
        until = at + self._dpop.ahead + self._dpop.window
        self._proofs[proof.tag] = _Remembered(proof.thumbprint, proof.issued_at, until)
        self._keys[proof.thumbprint] = of_key
        of_key.times[proof.tag] = proof.issued_at
        self._count(proof.thumbprint, len(of_key.times) - 1, len(of_key.times))
        return None

    def _displaced_by(self, proof: JudgedProof, of_key: _ProofsOfKey) -> bytes | Refusal | None:
        """The tag of the proof to forget for another one; None: there is room for both."""
        if len(of_key.times) >= self._dpop.max_proofs_of_key:
            return next(iter(of_key.times))
        if len(self._proofs) < self._dpop.max_proofs:
            return None
        if of_key.times and len(of_key.times) == self._largest:
            return next(iter(of_key.times))
        if self._largest <= 1:
            return unavailable("proofs of too many keys are remembered")
        largest = next(iter(self._by_count[self._largest]))
        return next(iter(self._keys[largest].times))

    def _displace(self, tag: bytes) -> None:
        """Forget a proof too early."""
        proof = self._proofs[tag]
        of_key = self._keys[proof.thumbprint]
        of_key.newest_forgotten = max(of_key.newest_forgotten, proof.issued_at)
        self._drop(tag)

    def _forget_old(self, at: float) -> None:
        """Forget what would not be accepted anyway."""
        while self._proofs:
            tag, proof = next(iter(self._proofs.items()))
            if proof.until >= at:
                break
            of_key = self._drop(tag)
            self._newest_forgotten = max(self._newest_forgotten, proof.issued_at)
            if not of_key.times:
                # What was displaced is older than the last proof, and so is too old as well.
                self._newest_forgotten = max(self._newest_forgotten, of_key.newest_forgotten)
                del self._keys[proof.thumbprint]

    def _drop(self, tag: bytes) -> _ProofsOfKey:
        thumbprint = self._proofs.pop(tag).thumbprint
        of_key = self._keys[thumbprint]
        del of_key.times[tag]
        self._count(thumbprint, len(of_key.times) + 1, len(of_key.times))
        return of_key

    def _count(self, thumbprint: str, before: int, now: int) -> None:
        """Note that a key has one proof more, or one less."""
        if before:
            same = self._by_count[before]
            del same[thumbprint]
            if not same:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, OrderedDict())[thumbprint] = None
        self._largest = max(self._largest, now)
        if self._largest not in self._by_count:
            self._largest = now


def time_of(value: object) -> float | None:
    """A time in Unix seconds of a claim; None if it is none that a clock can show."""
    return value if is_number(value) and -_LATEST < value < _LATEST else None


def base64url(data: bytes) -> str:
    """Bytes as JWTs have them, without padding."""
    text = b2a_base64(data, newline=False).decode("ascii")
    return text.replace("+", "-").replace("/", "_").rstrip("=")


def digest_of(token: str) -> str:
    """The SHA-256 of a token, as the claim `ath` has it."""
    return base64url(sha256(token.encode("ascii")).digest())


def _seal(key: bytes, time: bytes) -> bytes:
    return hmac.digest(key, b"sansmcp dpop nonce" + time, "sha256")[:_TAG_BYTES]


def _is_same(given: object, url: str) -> bool:
    """Whether two URLs are the same but for query, fragment, and how they are written.

    Source: RFC 9449, section 4.3; RFC 3986, sections 6.2.2 and 6.2.3.
    """
    if not isinstance(given, str):
        return False
    try:
        one = read_url(given.partition("#")[0].partition("?")[0])
        other = read_url(url)  # which may have a path that no URL has
    except RefusedURL:
        return False
    return (one.origin, one.path or "/") == (other.origin, other.path or "/")
