"""Tokens that their authorization server is asked about (introspection).

Source: RFC 7662.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from hashlib import sha256
from typing import Any, Final, Literal, final
from urllib.parse import quote_plus, urlencode

import attrs

from ..._wire.setting_checks import choice, not_negative, seconds, text, whole
from .._common.addresses import AddressRules
from .._common.requests import HTTPRequest, read_document
from .proofs import time_of
from .protected_resource import check_https
from .verifiers import SteadyClock, Verification, VerifierOutput

_OK: Final = 200
_HEADERS: Final = (
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Accept", "application/json"),
)


def _endpoint(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    check_https(attribute.name, value)


@attrs.frozen
class _Kept:
    """What was said about a token.

    Attributes:
        claims: Its claims; None: it is not active.
        until: The count of the clock at which they are forgotten.
    """

    claims: Mapping[str, Any] | None = attrs.field(repr=False)
    until: float


@attrs.frozen
class _Question:
    """A request about a token.

    Attributes:
        key: The hash of the token.
        deadline: The count of the clock at which the request has failed.
    """

    key: bytes
    deadline: float


class _Answers:
    """What was said about tokens, for some time, by the hashes of the tokens."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    def keep(self, key: bytes, kept: _Kept, limit: int) -> None:
        """Keep an answer; over the limit the oldest is forgotten."""
        if len(self._kept) >= limit:
            self._kept.popitem(last=False)
        self._kept[key] = kept

    def find(self, key: bytes, now: float) -> _Kept | None:
        """The answer about a token, if it still counts."""
        kept = self._kept.get(key)
        if kept is not None and kept.until <= now:
            del self._kept[key]
            return None
        return kept


@final
@attrs.frozen(eq=False)
class IntrospectionVerifier:
    """Verifies each token by asking its authorization server whether it is active.

    A token that was revoked is refused at once, at the price of a request for each token that comes
    (unless `keep` is set). Requests about the same token at the same time are one. Answers are kept
    by a hash of the token, never by the token. Times are in seconds.

    Raises:
        ValueError: A setting is not valid.
    """

    endpoint: str = attrs.field(validator=_endpoint)
    """The URL of the introspection endpoint."""
    issuer: str = attrs.field(kw_only=True, validator=text())
    """The authorization server, where its responses do not name it."""
    client_id: str = attrs.field(kw_only=True, validator=text())
    """The name of this server at the authorization server."""
    client_secret: str = attrs.field(kw_only=True, validator=text(), repr=False)
    """Its secret."""
    auth_method: Literal["client_secret_basic", "client_secret_post"] = attrs.field(
        default="client_secret_basic",
        kw_only=True,
        validator=choice("client_secret_basic", "client_secret_post"),
    )
    """How they are sent."""
    audience: str | None = attrs.field(default=None, kw_only=True, validator=text(optional=True))
    """What stands for `aud` where a response has none. Only for an authorization server that calls
    tokens of other servers inactive (AUTH-328). None: such a token is refused."""
    keep: float = attrs.field(default=0.0, kw_only=True, validator=not_negative)
    """How long an answer about an active token is kept: for so long, a token that was revoked is
    still accepted. 0: not at all."""
    keep_inactive: float = attrs.field(default=5.0, kw_only=True, validator=not_negative)
    """How long an answer about a token that is not active is kept, so that a client which repeats
    it causes no further request. 0: not at all."""
    max_tokens: int = attrs.field(default=10_000, kw_only=True, validator=whole())
    """Answers that are kept about active tokens, and as many about others, which displace none of
    the first."""
    max_requests: int = attrs.field(default=100, kw_only=True, validator=whole())
    """Tokens that are asked about at a time. While there are so many, further ones get 503."""
    max_document_bytes: int = attrs.field(default=65_536, kw_only=True, validator=whole())
    """The longest response that is read."""
    timeout: float = attrs.field(default=10.0, kw_only=True, validator=seconds())
    """How long a request may take. One without a response by then has failed."""
    _output: VerifierOutput = attrs.field(factory=VerifierOutput, init=False, repr=False)
    _clock: SteadyClock = attrs.field(factory=SteadyClock, init=False, repr=False)
    _active: _Answers = attrs.field(factory=_Answers, init=False, repr=False)
    _inactive: _Answers = attrs.field(factory=_Answers, init=False, repr=False)
    _asked: OrderedDict[HTTPRequest, _Question] = attrs.field(
        factory=OrderedDict[HTTPRequest, _Question], init=False, repr=False
    )
    _waiting: dict[bytes, list[Verification]] = attrs.field(
        factory=dict[bytes, list[Verification]], init=False, repr=False
    )

    # --------------------------------------------------------------------------- verifying

    def begin(self, token: str, *, at: float) -> Verification:
        """Begin to verify a token: see `TokenVerifier`."""
        verification = Verification(token)
        now = self._clock.tell(at)
        key = sha256(token.encode()).digest()
        kept = self._active.find(key, now) or self._inactive.find(key, now)
        if kept is not None:
            _conclude(verification, kept.claims)
        elif key in self._waiting:
            self._waiting[key].append(verification)
        elif len(self._waiting) >= self.max_requests:
            text = f"{self.max_requests} tokens are being asked about at {self.endpoint}"
            verification.failure = f"{text} (max_requests)"
        else:
            self._waiting[key] = [verification]
            request = self._request(token)
            self._asked[request] = _Question(key, now + self.timeout)
            self._output.want(request)
        return verification

    def _request(self, token: str) -> HTTPRequest:
        form = {"token": token, "token_type_hint": "access_token"}
        headers: tuple[tuple[str, str], ...] = _HEADERS
        if self.auth_method == "client_secret_post":
            form |= {"client_id": self.client_id, "client_secret": self.client_secret}
        else:
            pair = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
            encoded = b2a_base64(pair.encode(), newline=False).decode("ascii")
            headers = (*headers, ("Authorization", f"Basic {encoded}"))
        return HTTPRequest(
            method="POST",
            url=self.endpoint,
            headers=headers,
            body=urlencode(form).encode(),
            max_body_bytes=self.max_document_bytes,
            timeout=self.timeout,
            # The URL is a setting, and comes from no one else: it may be anywhere.
            addresses=AddressRules(own=None, everything=True),
        )

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        at: float,
    ) -> None:
        """Take the answer about a token: see `TokenVerifier`."""
        document = read_document(body) if status == _OK else None
        active = None if document is None else document.get("active")
        if document is None or not isinstance(active, bool):
            text = f"the introspection endpoint has answered with status {status}, and no `active`"
            self.receive_failure(request, text, at=at)
            return
        now = self._clock.tell(at)
        question = self._asked.pop(request, None)
        if question is None:
            return
        claims = self._claims(document) if active else None
        self._keep(question.key, claims, now, at)
        for verification in self._waiting.pop(question.key):
            _conclude(verification, claims)
            self._output.end(verification)

    def _claims(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The claims, as a token would have them."""
        claims = {name: value for name, value in document.items() if name != "active"}
        claims.setdefault("iss", self.issuer)
        if self.audience is not None:
            claims.setdefault("aud", self.audience)
        return claims

    def _keep(self, key: bytes, claims: Mapping[str, Any] | None, now: float, at: float) -> None:
        answers, seconds, expiry = self._active, self.keep, None
        if claims is None:
            answers, seconds = self._inactive, self.keep_inactive
        else:
            expiry = time_of(claims.get("exp"))
        if expiry is not None:
            seconds = min(seconds, expiry - at)
        if seconds > 0:
            answers.keep(key, _Kept(claims, now + seconds), self.max_tokens)

    def receive_failure(self, request: HTTPRequest, text: str, *, at: float) -> None:
        """An answer did not come, or cannot be used: see `TokenVerifier`."""
        self._clock.tell(at)
        question = self._asked.pop(request, None)
        for verification in () if question is None else self._waiting.pop(question.key):
            verification.failure = text
            self._output.end(verification)

    def handle_timeout(self, at: float) -> None:
        """Let the time go on: see `TokenVerifier`."""
        self._clock.tell(at)
        text = f"{self.endpoint}: no response within {self.timeout:g} seconds"
        while self._asked:
            request, question = next(iter(self._asked.items()))  # the earliest
            if not self._clock.has_reached(question.deadline):
                break
            self.receive_failure(request, text, at=at)

    def next_timeout(self) -> float | None:
        """When a request has failed, in Unix seconds; None: none is under way."""
        earliest = next(iter(self._asked.values()), None)
        return None if earliest is None else self._clock.at(earliest.deadline)

    def next_request(self) -> HTTPRequest | None:
        """Take the next request to make; None: there is none now."""
        return self._output.next_request()

    def next_ended(self) -> Verification | None:
        """Take the next verification that has ended after it had waited; None: none has."""
        return self._output.next_ended()


def _conclude(verification: Verification, claims: Mapping[str, Any] | None) -> None:
    """End a verification by the claims of its token, a copy for each; None: it is not active."""
    if claims is None:
        verification.rejection = "the token is not active: it has expired or was revoked"
    else:
        verification.claims, verification.needs_expiry = deepcopy(claims), False
