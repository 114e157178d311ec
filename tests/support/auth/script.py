"""An MCP server and its authorization server as data, and functions that run a client on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs

from sansmcp.auth import (
    AssertionWanted,
    Attempt,
    AuthorizationClient,
    AuthorizationCode,
    AuthorizationEvent,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    Authorized,
    ClientWanted,
    CredentialsToStore,
    HTTPRequest,
    RegisteredClient,
    RequestWanted,
    StepOutcome,
    StepTaken,
    UserAgentWanted,
)
from sansmcp.http import AuthorizationRequired, Challenge

MCP: Final = "https://mcp.example.com/mcp"
ORIGIN: Final = "https://mcp.example.com"
ISSUER: Final = "https://as.example.com"
PATH_METADATA: Final = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"
ROOT_METADATA: Final = f"{ORIGIN}/.well-known/oauth-protected-resource"
SERVER_METADATA: Final = f"{ISSUER}/.well-known/oauth-authorization-server"
OPENID_METADATA: Final = f"{ISSUER}/.well-known/openid-configuration"
AUTHORIZE: Final = f"{ISSUER}/authorize"
TOKEN: Final = f"{ISSUER}/token"
REGISTER: Final = f"{ISSUER}/register"
REDIRECT: Final = "http://127.0.0.1:8765/callback"
AT: Final = 1_800_000_000.0
NEWEST: Final = "2026-07-28"


@attrs.frozen
class Answer:
    """One response. A `body` that is not bytes is sent as JSON."""

    body: Any = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def data(self) -> bytes:
        """The body as bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


NOT_FOUND: Final = Answer(b"nothing here", 404)


def resource_document(**members: Any) -> dict[str, Any]:
    """The metadata of the MCP server; a member that is None is left out."""
    return _document({"resource": MCP, "authorization_servers": [ISSUER]}, members)


def server_document(issuer: str = ISSUER, **members: Any) -> dict[str, Any]:
    """The metadata of an authorization server; a member that is None is left out."""
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": True,
    }
    return _document(document, members)


def token_document(**members: Any) -> dict[str, Any]:
    """A token response; a member that is None is left out."""
    document: dict[str, Any] = {"access_token": "first-token", "token_type": "Bearer"}
    return _document({**document, "expires_in": 3600}, members)


def _document(document: dict[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**document, **members}.items() if value is not None}


def challenge(
    status: int = 401, scheme: str = "bearer", request: Any = None, **parameters: str | None
) -> AuthorizationRequired:
    """A refusal of the MCP server."""
    given = {name: value for name, value in parameters.items() if value is not None}
    challenges = (Challenge(scheme, given),)
    return AuthorizationRequired(status=status, challenges=challenges, request=request, kept=True)


class Entropy:
    """Gives different bytes with each call, and the same ones in each run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")


@attrs.define
class World:
    """The responses of the servers, by URL, and the requests that they got.

    Attributes:
        answers: The responses of each URL, in order. The last one is repeated.
        callback: Parameters that replace those of the callback. None leaves a parameter out; a list
            repeats it, once with each value.
        requests: All requests, in order.
        opened: All URLs that a user agent was asked to open.
    """

    answers: dict[str, list[Answer | None]] = attrs.field(factory=dict[str, list[Answer | None]])
    callback: dict[str, Any] = attrs.field(factory=dict[str, Any])
    issuer: str = ISSUER
    requests: list[HTTPRequest] = attrs.field(factory=list[HTTPRequest])
    opened: list[str] = attrs.field(factory=list[str])

    def put(self, url: str, *answers: Any) -> World:
        """Set the responses of a URL: an `Answer`, a document, or None for no response."""
        self.answers[url] = [
            one if isinstance(one, Answer | None) else Answer(one) for one in answers
        ]
        return self

    def answer(self, request: HTTPRequest) -> Answer | None:
        """The next response for a request."""
        self.requests.append(request)
        left = self.answers.get(request.url, [NOT_FOUND])
        return left.pop(0) if len(left) > 1 else left[0]

    def callback_url(self, url: str) -> str:
        """The URL to which the authorization server redirects the user."""
        self.opened.append(url)
        asked = dict(parse_qsl(urlsplit(url).query))
        given: dict[str, Any] = {"code": "the-code", "state": asked["state"], "iss": self.issuer}
        given |= self.callback
        left = {name: value for name, value in given.items() if value is not None}
        return f"{asked['redirect_uri']}?{urlencode(left, doseq=True)}"

    def asked(self, url: str) -> list[HTTPRequest]:
        """The requests for a URL."""
        return [request for request in self.requests if request.url == url]

    def urls(self) -> list[str]:
        """The URLs of all requests."""
        return [request.url for request in self.requests]

    def forms(self, url: str = TOKEN) -> list[dict[str, str]]:
        """The forms that were sent to a URL. Each parameter must occur once in a form."""
        forms: list[dict[str, str]] = []
        for request in self.asked(url):
            pairs = parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True)
            assert len(dict(pairs)) == len(pairs)
            forms.append(dict(pairs))
        return forms

    def queries(self) -> list[dict[str, str]]:
        """The parameters of the authorization requests. Each must occur once in a request."""
        queries: list[dict[str, str]] = []
        for url in self.opened:
            pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True)
            assert len(dict(pairs)) == len(pairs)
            queries.append(dict(pairs))
        return queries


def usual_world(**members: Any) -> World:
    """Servers with which the complete flow works. `members` are for the authorization server."""
    return (
        World()
        .put(PATH_METADATA, resource_document())
        .put(SERVER_METADATA, server_document(**members))
        .put(REGISTER, Answer({"client_id": "dynamic-client"}, 201))
        .put(TOKEN, token_document())
    )


def make_client(url: str = MCP, **settings: Any) -> AuthorizationClient:
    """A client with a user, unless `settings` choose another grant."""
    settings.setdefault("grant", AuthorizationCode(redirect_uri=REDIRECT))
    settings.setdefault("entropy", Entropy())
    return AuthorizationClient(url, **settings)


def events_of(client: AuthorizationClient) -> list[AuthorizationEvent]:
    """All events that wait."""
    events: list[AuthorizationEvent] = []
    while (event := client.next_event()) is not None:
        events.append(event)
    return events


@attrs.define
class Run:
    """One attempt to authorize, after it has ended.

    Attributes:
        attempt: The handle.
        events: All events of the attempt.
    """

    attempt: Attempt
    events: list[AuthorizationEvent]

    @property
    def ending(self) -> Authorized | AuthorizationFailed:
        """The ending of the attempt, which must be the only one."""
        (ending,) = (
            one for one in self.events if isinstance(one, Authorized | AuthorizationFailed)
        )
        assert ending.attempt is self.attempt
        return ending

    @property
    def steps(self) -> list[StepTaken]:
        """The events that report a step."""
        return [one for one in self.events if isinstance(one, StepTaken)]

    @property
    def stored(self) -> dict[str, Any]:
        """The record that was stored last for each issuer."""
        return {
            one.issuer: one.record for one in self.events if isinstance(one, CredentialsToStore)
        }

    def authorized(self) -> Authorized:
        """The ending, which must be a success."""
        assert isinstance(self.ending, Authorized), self.ending
        return self.ending

    def failed(
        self,
        step: AuthorizationStep,
        reason: AuthorizationFailure,
        rule: str | None,
    ) -> AuthorizationFailed:
        """The ending, which must be this failure."""
        assert isinstance(self.ending, AuthorizationFailed), self.ending
        assert (self.ending.step, self.ending.reason, self.ending.rule) == (step, reason, rule)
        return self.ending

    def concluded(self, step: AuthorizationStep) -> list[StepOutcome]:
        """The outcomes of a step."""
        return [one.outcome for one in self.steps if one.step is step]


def answer_requests(
    client: AuthorizationClient, world: World, events: Iterable[AuthorizationEvent], now: float
) -> None:
    """Answer the requests in these events."""
    for event in events:
        match event:
            case RequestWanted(request=request):
                answer = world.answer(request)
                if answer is None:
                    client.receive_failure(request, "connection refused", now=now)
                else:
                    client.receive_response(
                        request, answer.status, answer.headers, answer.data, now=now
                    )
            case UserAgentWanted(url=url):
                client.receive_callback(world.callback_url(url), now=now)
            case _:
                pass


def take_head(
    client: AuthorizationClient, status: int = 200, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """Let a client learn of a response of the MCP server to a request with its token."""
    sent = dict(copy.deepcopy(client).headers("POST", MCP, at=AT))  # no proof is used up
    client.receive_server_head(status, headers, authorization=sent.get("Authorization"))


def drive(
    client: AuthorizationClient,
    world: World,
    *,
    now: float = 0.0,
    provide: RegisteredClient | str | None = None,
) -> list[AuthorizationEvent]:
    """Answer all requests of a client, until it has no more."""
    events: list[AuthorizationEvent] = []
    while new := events_of(client):
        events += new
        answer_requests(client, world, new, now)
        for event in new:
            if isinstance(event, ClientWanted):
                client.provide_client(provide if isinstance(provide, RegisteredClient) else None)
            elif isinstance(event, AssertionWanted):
                client.provide_assertion(provide if isinstance(provide, str) else None)
    return events


def run(
    client: AuthorizationClient,
    world: World,
    refusal: AuthorizationRequired | None = None,
    *,
    revision: str | None = NEWEST,
    now: float = 0.0,
    at: float = AT,
    in_advance: bool = False,
    **more: Any,
) -> Run:
    """Authorize a client after a plain 401, or after another refusal."""
    refused = None if in_advance else (refusal or challenge())
    stored = more.pop("stored", None)
    attempt = client.authorize(refused, revision=revision, stored=stored, now=now, at=at)
    return Run(attempt, drive(client, world, now=now, **more))
