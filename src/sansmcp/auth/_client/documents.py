"""Metadata documents: requests to candidate URLs, one after the other, until one gives a document.

Source: MCP 2026-07-28, basic/authorization/authorization-server-discovery; RFC 8414; RFC 9728.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import attrs

from ..._wire.values import JSONObject, is_list_of_strings
from .._common.addresses import RefusedURL, read_url, resolve
from .._common.requests import HTTPRequest, HTTPResponse, read_document
from .core import Core
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .states import AuthorizationTrigger

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_LATER: Final = frozenset({408, 429})  # they say nothing about the document


class DocumentReader(Protocol):
    """The part that wants a document."""

    def found(self, document: JSONObject, url: str, status: int) -> None:
        """Judge a JSON object that a candidate gave."""
        ...

    def not_found(self, *, definite: bool) -> None:
        """Go on without a document; `definite`: each candidate said that there is none."""
        ...


def strings_of(document: JSONObject, name: str) -> tuple[str, ...] | None:
    """The strings of a member; None if the member is absent or has another type."""
    value: Any = document.get(name)
    return tuple(value) if is_list_of_strings(value) else None


@attrs.define(eq=False, repr=False)
class Documents:
    """The requests for one kind of document.

    A candidate without a document leads to the next one; a redirect to another origin ends the
    attempt, because the document would be that of somebody else.
    Keeps AUTH-210, AUTH-229, AUTH-341.
    """

    _core: Core
    _step: AuthorizationStep
    _trigger: AuthorizationTrigger
    _tried: str
    _reader: DocumentReader
    _headers: tuple[tuple[str, str], ...] = attrs.field(default=(), init=False)
    _left: list[str] = attrs.field(factory=list[str], init=False)
    _redirects: int = attrs.field(default=0, init=False)
    _definite: bool = attrs.field(default=True, init=False)

    def start(self, candidates: list[str], headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Ask the candidates, in their order."""
        self._left = candidates
        self._headers = (("Accept", "application/json"), *headers)
        self._definite = True
        self._next()

    def _next(self) -> None:
        if not self._left:
            self._reader.not_found(definite=self._definite)
            return
        self._redirects = 0
        self._ask(self._left.pop(0))

    def _ask(self, url: str) -> None:
        self._core.move(self._trigger, self._step)
        try:
            self._core.addresses.check(url)
        except RefusedURL as error:
            self._refuse(url, None, f"the URL {error}", error.rule)
            return
        self._core.ask(self, "GET", url, self._headers)

    def receive(self, request: HTTPRequest, response: HTTPResponse) -> None:
        """Judge the response of a candidate."""
        status = response.status
        if status in _REDIRECTS:
            self._redirect(request, response)
            return
        document = read_document(response.body) if status == 200 else None
        if document is not None:
            self._left = []
            self._reader.found(document, request.url, status)
            return
        self._definite = self._definite and status < 500 and status not in _LATER
        text = "no JSON object in the body" if status == 200 else f"status {status}"
        self._skip(request.url, status, text)

    def receive_failure(self, request: HTTPRequest, text: str) -> None:
        """Go on with the next candidate."""
        self._definite = False
        self._skip(request.url, None, text)

    def _skip(self, url: str, status: int | None, text: str) -> None:
        self._core.note(
            StepOutcome.SKIPPED, self._tried, text, rule="AUTH-210", url=url, status=status
        )
        self._next()

    def _redirect(self, request: HTTPRequest, response: HTTPResponse) -> None:
        status = response.status
        self._redirects += 1
        try:
            target = resolve(request.url, response.header("location") or "")
            same = read_url(target).origin == read_url(request.url).origin
        except RefusedURL as error:
            self._refuse(request.url, status, f"the redirect {error}", error.rule)
            return
        if not same:
            text = "the redirect leads to another origin"
        elif self._redirects > self._core.config.max_redirects:
            text = "the redirects do not end"
        else:
            text = f"redirect to {target}"
            self._core.note(StepOutcome.SKIPPED, self._tried, text, url=request.url, status=status)
            self._ask(target)
            return
        self._refuse(request.url, status, text, "AUTH-341")

    def _refuse(self, url: str, status: int | None, text: str, rule: str) -> None:
        self._core.note(StepOutcome.FAILED, self._tried, text, rule=rule, url=url, status=status)
        self._core.fail(AuthorizationFailure.REFUSED_URL, f"{self._tried} at {url}: {text}", rule)
