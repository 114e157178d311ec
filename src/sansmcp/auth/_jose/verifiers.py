"""Verifiers of JWTs: access tokens by the keys of their issuer, and DPoP proofs by their own key.

Source: RFC 9068, section 4; RFC 9449, section 4.3; RFC 8725.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

import attrs

from ..._wire.setting_checks import flag, names_in, not_negative, seconds, whole
from ..._wire.values import JSONObject, is_object
from .._common.requests import HTTPRequest
from .._server.key_sets import KeySet, KeySetLimits, fitting, keys_in
from .._server.proofs import Proof, asymmetric_names
from .._server.protected_resource import check_https
from .._server.verifiers import SteadyClock, Verification, VerifierOutput
from .reading import InvalidJWT, PublicKey, SignedJWT, import_key, is_signed_by, read_jwt

_MAX_TRIES: Final = 8
_TOO_OLD: Final = "the keys of the issuer are too old to be used"
_FOREIGN: Final = "the token was not signed by a key of its issuer"
_TYPE_PREFIX: Final = "application/"


def _issuers(value: Iterable[str]) -> tuple[str, ...]:
    issuers = names_in("issuers", value)
    if not issuers:
        raise ValueError("issuers must name one authorization server at least")
    for issuer in issuers:
        check_https("each of issuers", issuer)
    return issuers


def _uris(value: Mapping[str, str]) -> dict[str, str]:
    for uri in value.values():
        check_https("each of jwks_uris", uri)
    return dict(value)


def _key_sets(value: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[JSONObject, ...]]:
    return {issuer: keys_in("each of key_sets", document) for issuer, document in value.items()}


def _types(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(name.lower().removeprefix(_TYPE_PREFIX) for name in names_in("types", value))


@attrs.frozen
class _Waiting:
    """A token that waits for the keys of its issuer."""

    verification: Verification
    jwt: SignedJWT


@final
@attrs.frozen(eq=False)
class JWTVerifier:
    """Verifies access tokens that are JWTs, by the keys of their issuer: a `TokenVerifier`.

    Keys are read when the first token comes, and kept. Where a token names a key that is not known,
    or names none and fits none of those that are, they are read again, at most once in
    `min_interval`; meanwhile its request waits. A token that names no key is tried with up to 8
    keys of its algorithm. Claims are judged by `ProtectedResource`. Times are in seconds.

    Raises:
        ValueError: A setting is not valid.
    """

    issuers: tuple[str, ...] = attrs.field(converter=_issuers)
    """The authorization servers whose tokens are verified."""
    jwks_uris: Mapping[str, str] = attrs.field(
        factory=dict[str, str], kw_only=True, converter=_uris
    )
    """The URLs of their keys, by issuer, where the metadata of an issuer is not to be read."""
    key_sets: Mapping[str, tuple[JSONObject, ...]] = attrs.field(
        factory=dict[str, tuple[JSONObject, ...]], kw_only=True, converter=_key_sets, repr=False
    )
    """Their keys, by issuer, as JWK sets: then no request is made."""
    algorithms: tuple[str, ...] = attrs.field(
        default=("RS256", "PS256", "ES256", "ES384", "Ed25519", "EdDSA"),
        kw_only=True,
        converter=asymmetric_names,
    )
    """The algorithms that tokens may be signed with: asymmetric ones only."""
    types: tuple[str, ...] | None = attrs.field(default=("at+jwt",), kw_only=True, converter=_types)
    """The types (`typ`) that a token may have. Authorization servers that do not follow RFC 9068
    write `JWT`, for which `("at+jwt", "jwt")` is right; None: any, or none. What another type is
    for, such as an ID token, is then told by its audience only."""
    max_age: float = attrs.field(default=3600.0, kw_only=True, validator=seconds())
    """How long keys are used before they are read again."""
    max_stale: float = attrs.field(default=86_400.0, kw_only=True, validator=not_negative)
    """How long they are used after that, while they cannot be read: for so long, a key that was
    withdrawn is used if its issuer is away. 0: not at all."""
    stale_while_reading: float = attrs.field(default=300.0, kw_only=True, validator=not_negative)
    """How long after `max_age`, and after each failed reading, requests are served by the kept keys
    while new ones are read, within `max_stale`. 0: they wait for the new ones."""
    min_interval: float = attrs.field(default=30.0, kw_only=True, validator=seconds())
    """The least time between two readings of the keys of one issuer, from the end of one to the
    next. It is 5 at most after a reading that has failed, while there are no keys to use."""
    max_document_bytes: int = attrs.field(default=262_144, kw_only=True, validator=whole())
    """The longest document that is read."""
    timeout: float = attrs.field(default=10.0, kw_only=True, validator=seconds())
    """How long a request may take. One without a response by then has failed."""
    allow_local_addresses: bool = attrs.field(default=False, kw_only=True, validator=flag)
    """Whether the `jwks_uri` in the metadata of an issuer may be at an address that is not public,
    where the issuer is not at such an address itself."""
    _output: VerifierOutput = attrs.field(factory=VerifierOutput, init=False, repr=False)
    _clock: SteadyClock = attrs.field(factory=SteadyClock, init=False, repr=False)
    _sources: dict[str, KeySet] = attrs.field(factory=dict[str, KeySet], init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Begin without keys, but for those of `key_sets`."""
        known = {*self.issuers}
        for name in (*self.jwks_uris, *self.key_sets):
            if name not in known:
                raise ValueError(f"{name!r:.200} is none of issuers")
        limits = KeySetLimits(
            max_age=self.max_age,
            max_stale=self.max_stale,
            stale_while_reading=self.stale_while_reading,
            min_interval=self.min_interval,
            max_document_bytes=self.max_document_bytes,
            timeout=self.timeout,
            allow_local_addresses=self.allow_local_addresses,
        )
        for issuer in self.issuers:
            uri, keys = self.jwks_uris.get(issuer), self.key_sets.get(issuer)
            self._sources[issuer] = KeySet(issuer, uri, keys, limits, self._output)

    # ------------------------------------------------------------------------------ verifying

    def begin(self, token: str, *, at: float) -> Verification:
        """Begin to verify a token: see `TokenVerifier`. Keeps AUTH-330, AUTH-331."""
        verification = Verification(token)
        now = self._clock.tell(at)
        try:
            jwt = read_jwt(token, self.algorithms)
        except InvalidJWT as error:
            verification.rejection = f"the token {error}"
            return verification
        issuer = jwt.claims.get("iss")
        source = self._sources.get(issuer) if isinstance(issuer, str) else None
        if source is None:
            verification.rejection = "the token is of an issuer that this server does not trust"
        elif self.types is not None and not self._has_type(jwt):
            verification.rejection = "the token has another type than access tokens have"
        else:
            self._verify(_Waiting(verification, jwt), source, now)
        return verification

    def _has_type(self, jwt: SignedJWT) -> bool:
        name = jwt.header.get("typ")
        assert self.types is not None  # whoever calls this has looked
        return isinstance(name, str) and name.lower().removeprefix(_TYPE_PREFIX) in self.types

    def _verify(self, waiting: _Waiting, source: KeySet, now: float) -> None:
        """Verify a token by the keys that are known, or let it wait for others."""
        may_be_read, serves = source.may_be_read(now), source.serves(now)
        if serves and self._is_accepted(waiting, source):
            if may_be_read and not source.is_fresh(now):
                source.read(now)
        elif may_be_read and self._needs_others(waiting.jwt, source, now):
            source.waiting.append(waiting)
            source.read(now)
        elif serves:
            waiting.verification.rejection = _FOREIGN
        else:
            self._conclude(waiting, source, now)

    def _needs_others(self, jwt: SignedJWT, source: KeySet, now: float) -> bool:
        """Whether a token that no known key has signed may be signed by a new key."""
        return (
            not source.is_fresh(now)
            or jwt.header.get("kid") is None
            or not self._places(jwt, source)
        )

    def _conclude(self, waiting: _Waiting, source: KeySet, now: float) -> None:
        """Verify a token by the keys that there are now."""
        if not source.is_usable(now):
            waiting.verification.failure = source.failure or _TOO_OLD
        elif not self._is_accepted(waiting, source):
            waiting.verification.rejection = _FOREIGN

    def _places(self, jwt: SignedJWT, source: KeySet) -> list[int]:
        """The places of the keys that may have signed a token."""
        kid, keys = jwt.header.get("kid"), source.keys or ()
        return fitting(keys, kid=kid, kind=jwt.kind, algorithm=jwt.algorithm)[:_MAX_TRIES]

    def _is_accepted(self, waiting: _Waiting, source: KeySet) -> bool:
        """Whether a known key has signed a token; then its verification is done."""
        verification, jwt = waiting.verification, waiting.jwt
        for place in self._places(jwt, source):
            key = self._key(source, place, jwt.kind)
            if key is not None and is_signed_by(jwt, key):
                verification.claims = jwt.claims
                return True
        return False

    def _key(self, source: KeySet, place: int, kind: str) -> PublicKey | None:
        """A key of an issuer, which is imported once."""
        assert source.keys is not None  # or there would be no places
        if place not in source.imported:
            source.imported[place] = import_key(source.keys[place], kind)
        key: PublicKey | None = source.imported[place]
        return key

    def _source_of(self, request: HTTPRequest) -> KeySet | None:
        sources = (source for source in self._sources.values() if source.reads(request))
        return next(sources, None)

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        at: float,
    ) -> None:
        """Take a document of an issuer: see `TokenVerifier`."""
        source, now = self._source_of(request), self._clock.tell(at)
        if source is not None and source.receive(request, status, body, now):
            self._end_reading(source, now)

    def receive_failure(self, request: HTTPRequest, text: str, *, at: float) -> None:
        """A document did not come: see `TokenVerifier`."""
        source, now = self._source_of(request), self._clock.tell(at)
        if source is not None and source.fail(f"{request.url}: {text}", now):
            self._end_reading(source, now)

    def _end_reading(self, source: KeySet, now: float) -> None:
        """Verify what has waited."""
        for waiting in source.take_waiting():
            self._conclude(waiting, source, now)
            self._output.end(waiting.verification)

    def handle_timeout(self, at: float) -> None:
        """Let the time go on: see `TokenVerifier`."""
        now = self._clock.tell(at)
        for source in self._sources.values():
            deadline = source.deadline
            if deadline is not None and self._clock.has_reached(deadline) and source.expire(now):
                self._end_reading(source, now)

    def next_timeout(self) -> float | None:
        """When a request has failed, in Unix seconds; None: none is under way."""
        deadlines = [source.deadline for source in self._sources.values()]
        earliest = min((one for one in deadlines if one is not None), default=None)
        return None if earliest is None else self._clock.at(earliest)

    def next_request(self) -> HTTPRequest | None:
        """Take the next request to make; None: there is none now."""
        return self._output.next_request()

    def next_ended(self) -> Verification | None:
        """Take the next verification that has ended after it had waited; None: none has."""
        return self._output.next_ended()


@final
@attrs.frozen
class JWTProofReader:
    """Verifies the signatures of DPoP proofs: a `ProofReader`."""

    def read(self, proof: str, algorithms: Sequence[str]) -> Proof:
        """Return what a proof says, if the key in its header has signed it. Keeps AUTH-409.

        Args:
            proof: The JWT, as it came.
            algorithms: The algorithms that it may be signed with.

        Raises:
            ValueError: It is none, or the signature is not valid.
        """
        jwt = read_jwt(proof, tuple(algorithms))
        jwk = jwt.header.get("jwk")
        key = import_key(jwk, jwt.kind) if is_object(jwk) else None
        if key is None or not is_signed_by(jwt, key):
            raise InvalidJWT("is not signed by the key in its header")
        return Proof(header=jwt.header, claims=jwt.claims, thumbprint=key.thumbprint())
