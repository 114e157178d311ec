"""The public keys of authorization servers, which are read when they are needed, and kept.

Source: RFC 7517, section 5; RFC 8414, section 2 (`jwks_uri`); RFC 9068, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from ..._wire.values import JSONObject, is_list, is_object
from .._common.addresses import AddressRules, RefusedURL, reach_of_host, read_url
from .._common.requests import HTTPRequest, read_document
from .._common.well_known import server_metadata_urls
from .challenges import RETRY_SECONDS
from .verifiers import VerifierOutput

_OK: Final = 200
_HEADERS: Final = (("Accept", "application/json"),)
_MAX_KEYS: Final = 100


@attrs.frozen(kw_only=True)
class KeySetLimits:
    """Limits on how the keys of an issuer are read and kept. Times are in seconds.

    Attributes:
        max_age: How long keys are used before they are read again.
        max_stale: How long they are used after that, while they cannot be read.
        stale_while_reading: How long they are used after that, while they are being read.
        min_interval: The least time between two readings of the keys of one issuer.
        max_document_bytes: The longest document that is read.
        timeout: How long a request may take.
        allow_local_addresses: Whether `jwks_uri` of metadata may be an address that is not public.
    """

    max_age: float
    max_stale: float
    stale_while_reading: float
    min_interval: float
    max_document_bytes: int
    timeout: float
    allow_local_addresses: bool


@attrs.define(eq=False, repr=False)
class KeySet:
    """The keys of one issuer. Times are counts of a `SteadyClock`.

    Attributes:
        issuer: The issuer.
        uri: The URL of the keys; None: it is in the metadata of the issuer.
        keys: The keys; None: they were not read yet.
        is_fixed: Whether the keys are a setting, and are never read.
        imported: What was made of keys, by their place in `keys`; for the caller.
        failure: Why they could not be read the last time; empty without a failure.
        waiting: What waits for the keys, in its order.
        deadline: When the request that is being made has failed; None: none is being made.
    """

    issuer: str
    uri: str | None
    keys: tuple[JSONObject, ...] | None
    _limits: KeySetLimits
    _output: VerifierOutput
    is_fixed: bool = attrs.field(init=False)
    imported: dict[int, Any] = attrs.field(factory=dict[int, Any], init=False)
    failure: str = attrs.field(default="", init=False)
    waiting: list[Any] = attrs.field(factory=list[Any], init=False)
    deadline: float | None = attrs.field(default=None, init=False)
    _candidates: list[str] = attrs.field(factory=list[str], init=False)
    _request: HTTPRequest | None = attrs.field(default=None, init=False)
    _reads_metadata: bool = attrs.field(default=False, init=False)
    _read_at: float = attrs.field(default=0.0, init=False)
    _ended_at: float | None = attrs.field(default=None, init=False)  # of the last reading

    def __attrs_post_init__(self) -> None:
        """Note whether the keys were given."""
        self.is_fixed = self.keys is not None

    # -------------------------------------------------------------------------------- looking

    def is_fresh(self, now: float) -> bool:
        """Whether the keys can be used without reading them again."""
        return self.is_fixed or (
            self.keys is not None and now - self._read_at < self._limits.max_age
        )

    def is_usable(self, now: float) -> bool:
        """Whether the keys can be used where they cannot be read again."""
        limits = self._limits
        return self.is_fixed or (
            self.keys is not None and now - self._read_at < limits.max_age + limits.max_stale
        )

    def serves(self, now: float) -> bool:
        """Whether the keys can be used without waiting for newer ones.

        Old ones can for some time after they were fresh, and after each reading that has failed: an
        authorization server that is slow or away must not make each request slow.
        """
        if self.is_fixed or not self.is_usable(now):
            return self.is_fixed
        since = self._read_at + self._limits.max_age
        if self.failure and self._ended_at is not None:
            since = max(since, self._ended_at)
        return now - since < self._limits.stale_while_reading

    def may_be_read(self, now: float) -> bool:
        """Whether a request is allowed now, or is being made. Keeps AUTH-331."""
        if self.is_fixed:
            return False
        if self._request is not None or self._ended_at is None:
            return True
        interval = self._limits.min_interval
        if self.failure and not self.is_usable(now):
            interval = min(interval, RETRY_SECONDS)
        return now - self._ended_at >= interval

    def reads(self, request: HTTPRequest) -> bool:
        """Whether this request is for these keys."""
        return request is self._request

    # -------------------------------------------------------------------------------- reading

    def read(self, now: float) -> None:
        """Ask for the keys, if that is not being done."""
        if self._request is not None:
            return
        if self.uri is not None:
            self._ask(self.uri, AddressRules(own=None, everything=True), now)
            return
        self._reads_metadata = True
        self._candidates = server_metadata_urls(read_url(self.issuer))
        self._ask_metadata(now)

    def _ask_metadata(self, now: float) -> None:
        # The issuer is a setting, and comes from no one else: it may be anywhere.
        self._ask(self._candidates.pop(0), AddressRules(own=None, everything=True), now)

    def _ask(self, url: str, addresses: AddressRules, now: float) -> None:
        limits = self._limits
        self.deadline = now + limits.timeout
        self._request = HTTPRequest(
            method="GET",
            url=url,
            headers=_HEADERS,
            max_body_bytes=limits.max_document_bytes,
            timeout=limits.timeout,
            addresses=addresses,
        )
        self._output.want(self._request)

    def receive(self, request: HTTPRequest, status: int, body: bytes, now: float) -> bool:
        """Take the response to the request; return whether the reading is over."""
        url = request.url
        document = read_document(body) if status == _OK else None
        if document is None:
            text = f"{url} has answered with status {status}, and no JSON object"
            return self.fail(text, now)
        if self._reads_metadata:
            return self._receive_metadata(document, url, now)
        keys = document.get("keys")
        if not is_list(keys):
            return self.fail(f"{url} has answered without `keys`", now)
        if len(keys) > _MAX_KEYS:
            return self.fail(f"{url} has answered with more than {_MAX_KEYS} keys", now)
        self.keys = tuple(key for key in keys if is_object(key))
        self.imported.clear()
        self._read_at = now
        self._end("", now)
        return True

    def _receive_metadata(self, document: JSONObject, url: str, now: float) -> bool:
        """Go on with the URL in the metadata. Keeps AUTH-041."""
        self._reads_metadata = False
        if document.get("issuer") != self.issuer:
            return self.fail(f"{url} names another issuer than {self.issuer}", now)
        host = read_url(self.issuer).host
        rules = AddressRules(own=reach_of_host(host), everything=self._limits.allow_local_addresses)
        try:
            uri = rules.check(document.get("jwks_uri")).text
        except RefusedURL as error:
            return self.fail(f"`jwks_uri` in {url} {error}", now)
        self._ask(uri, rules, now)
        return False

    def fail(self, text: str, now: float) -> bool:
        """The request has failed; return whether the reading is over."""
        if self._reads_metadata and self._candidates:
            self._ask_metadata(now)
            return False
        self._reads_metadata = False
        self._end(text, now)
        return True

    def expire(self, now: float) -> bool:
        """The request was not answered in time; return whether the reading is over."""
        url = "" if self._request is None else self._request.url
        return self.fail(f"{url}: no response within {self._limits.timeout:g} seconds", now)

    def _end(self, failure: str, now: float) -> None:
        self._request = self.deadline = None
        self.failure, self._ended_at = failure, now

    def take_waiting(self) -> list[Any]:
        """Take what waits for the keys."""
        waiting, self.waiting = self.waiting, []
        return waiting


def keys_in(name: str, document: Mapping[str, Any]) -> tuple[JSONObject, ...]:
    """The keys of a key set that is a setting.

    Raises:
        ValueError: It is none.
    """
    keys = document.get("keys")
    if not is_list(keys) or not all(is_object(key) for key in keys):
        raise ValueError(f"{name} must be a JWK set: an object with `keys`")
    return tuple(keys)


def fitting(keys: Iterable[JSONObject], *, kid: object, kind: str, algorithm: str) -> list[int]:
    """The places of the keys that may have signed a token, by what they say about themselves.

    Args:
        keys: The keys of the issuer.
        kid: The id of the key in the header of the token; None without one.
        kind: The type that a key for the algorithm has.
        algorithm: The algorithm in the header of the token.
    """
    return [
        place
        for place, key in enumerate(keys)
        if key.get("kty") == kind
        and (kid is None or key.get("kid") == kid)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    ]
