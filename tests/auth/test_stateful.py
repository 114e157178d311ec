"""A property: whatever happens in whatever order, each attempt ends, and it ends once."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sansmcp import JSONObject
from sansmcp.auth import (
    AssertionWanted,
    Attempt,
    AuthorizationCode,
    AuthorizationConfig,
    AuthorizationFailed,
    Authorized,
    ClientCredentials,
    ClientMetadata,
    ClientWanted,
    CredentialsToStore,
    EnterpriseManaged,
    HTTPRequest,
    LoggedOut,
    RegisteredClient,
    RequestWanted,
    UserAgentWanted,
    WorkloadIdentity,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    REDIRECT,
    Answer,
    World,
    challenge,
    make_client,
    resource_document,
    server_document,
    take_head,
    token_document,
)
from tests.support.machines.budget import examples

IDP = "https://idp.example.com/token"
REGISTERED = RegisteredClient(client_id="c", client_secret="s")
GRANTS: dict[str, dict[str, Any]] = {
    "user": {"grant": AuthorizationCode(redirect_uri=REDIRECT)},
    "metadata url": {
        "grant": AuthorizationCode(redirect_uri=REDIRECT),
        "client": ClientMetadata(url="https://c.example.com/m"),
    },
    "client credentials": {"grant": ClientCredentials(), "registered": {ISSUER: REGISTERED}},
    "enterprise": {
        "grant": EnterpriseManaged(token_endpoint=IDP, client=REGISTERED),
        "registered": {ISSUER: REGISTERED},
    },
    "workload": {"grant": WorkloadIdentity()},
}
MOST_REQUESTS = 60
"""More than any attempt makes: candidates, redirects, a refresh, a registration and tokens."""


class Proofs:
    """Signs nothing."""

    algorithm = "ES256"

    def sign(self, claims: JSONObject) -> str:
        """A text in place of a proof."""
        return "proof"


def good_answers(url: str) -> list[Answer]:
    """Answers with which the attempt may go on."""
    nonce = (("DPoP-Nonce", "n"),)
    type_of = "urn:ietf:params:oauth:token-type:id-jag"
    if "oauth-protected-resource" in url:
        return [
            Answer(resource_document()),
            Answer(resource_document(scopes_supported=["a", "b"])),
            Answer(resource_document(authorization_servers=["https://other.example.com", ISSUER])),
        ]
    if "/.well-known/" in url:
        issuer = url.partition("/.well-known/")[0]
        return [
            Answer(server_document(issuer)),
            Answer(
                server_document(
                    issuer,
                    scopes_supported=["a", "offline_access"],
                    dpop_signing_alg_values_supported=["ES256"],
                    client_id_metadata_document_supported=True,
                    revocation_endpoint=f"{issuer}/revoke",
                    token_endpoint_auth_methods_supported=["none", "client_secret_basic"],
                )
            ),
            Answer(server_document(issuer, registration_endpoint=None)),
        ]
    if url.endswith("/register"):
        return [Answer({"client_id": "c"}, 201), Answer({"client_id": "c", "client_secret": "s"})]
    if url.endswith("/revoke"):
        return [Answer(b"")]
    if url == IDP:
        return [Answer({"access_token": "jag", "issued_token_type": type_of})]
    return [
        Answer(token_document(refresh_token="r")),
        Answer(token_document(token_type="DPoP", refresh_token="r"), 200, nonce),
        Answer(token_document(scope="a", expires_in=1)),
        Answer({"error": "use_dpop_nonce"}, 400, nonce),
    ]


BAD_ANSWERS: list[Answer] = [
    Answer(b"", 404),
    Answer(b"", 500),
    Answer(b"<html>"),
    Answer({}),
    Answer(b"x" * 100_000),
    Answer({"error": "invalid_grant"}, 400),
    Answer({"error": "invalid_client"}, 401),
    Answer({"error": "invalid_scope"}, 400),
    Answer(b"", 302, (("Location", "/elsewhere"),)),
    Answer(b"", 302, (("Location", "http://127.0.0.1/"),)),
    Answer(resource_document(resource="https://evil.example.com")),
    Answer(server_document("https://evil.example.com")),
    Answer(token_document(token_type="mac")),
]
CHALLENGES: list[Any] = [
    None,
    challenge(),
    challenge(error="invalid_token"),
    challenge(scope="a"),
    challenge(resource_metadata="https://mcp.example.com/custom.json"),
    challenge(resource_metadata="http://10.0.0.1/"),
    challenge(403),
    challenge(403, error="insufficient_scope", scope="b"),
    challenge(scheme="dpop", error="use_dpop_nonce"),
    challenge(scheme="negotiate"),
]
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class OneEndingPerAttempt(RuleBasedStateMachine):
    """Servers, users, applications and clocks do what they like."""

    @initialize(
        name=st.sampled_from(sorted(GRANTS)),
        has_proofs=st.booleans(),
        ask=st.booleans(),
        fallback=st.booleans(),
    )
    def begin(self, name: str, has_proofs: bool, ask: bool, fallback: bool) -> None:
        """Make the client."""
        config = AuthorizationConfig(ask_for_client=ask, legacy_fallback=fallback)
        proofs = Proofs() if has_proofs else None
        self.client = make_client(config=config, proofs=proofs, **GRANTS[name])
        self.world, self.now = World(), 0.0
        self.open: dict[int, Attempt] = {}
        self.requests: list[HTTPRequest] = []
        self.made = 0
        self.opened: list[str] = []
        self.wanted: object = None
        self.stored: dict[str, Any] = {}

    def drain(self) -> None:
        """Take the events, and count the endings."""
        while (event := self.client.next_event()) is not None:
            match event:
                case RequestWanted(request=request):
                    self.requests.append(request)
                    self.made += 1
                case UserAgentWanted(url=url):
                    self.opened.append(url)
                case CredentialsToStore(issuer=issuer, record=record):
                    self.stored[issuer] = record
                case ClientWanted() | AssertionWanted():
                    self.wanted = event
                case (
                    Authorized(attempt=attempt)
                    | AuthorizationFailed(attempt=attempt)
                    | LoggedOut(attempt=attempt)
                ):
                    del self.open[id(attempt)]  # a KeyError is a second ending
                    assert not attempt.open
                case _:
                    pass

    @rule(
        refusal=st.sampled_from(CHALLENGES),
        revision=st.sampled_from(REVISIONS),
        is_stored=st.booleans(),
    )
    def authorize(self, refusal: Any, revision: str, is_stored: bool) -> None:
        """A request was refused, or the application wants a token in advance."""
        running = self.client.attempt
        stored = dict(self.stored) if is_stored else None
        attempt = self.client.authorize(
            refusal, revision=revision, stored=stored, now=self.now, at=AT + self.now
        )
        if running is None:
            self.made = 0
            self.open[id(attempt)] = attempt
        else:
            assert attempt is running

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), is_good=st.booleans())
    def answer(self, data: st.DataObject, is_good: bool) -> None:
        """A request is answered; it may be one that nobody waits for any more."""
        index = data.draw(st.integers(0, len(self.requests) - 1))
        request = self.requests.pop(index)
        known = good_answers(request.url) if is_good else BAD_ANSWERS
        answer = data.draw(st.sampled_from(known))
        self.client.receive_response(
            request, answer.status, answer.headers, answer.data, now=self.now
        )

    @precondition(lambda self: self.requests)
    @rule()
    def fail(self) -> None:
        """A request gets no response."""
        self.client.receive_failure(self.requests.pop(), "connection reset", now=self.now)

    @precondition(lambda self: self.opened)
    @rule(
        values=st.sampled_from(
            [
                {},
                {"iss": None},
                {"iss": "https://evil.example.com"},
                {"code": None, "error": "access_denied"},
                {"code": ["a", "b"]},
                {"state": "wrong"},
            ]
        )
    )
    def call_back(self, values: dict[str, Any]) -> None:
        """The user comes back, perhaps to an attempt that has ended."""
        self.world.callback = values
        self.client.receive_callback(self.world.callback_url(self.opened[-1]), now=self.now)

    @rule(has_one=st.booleans())
    def provide(self, has_one: bool) -> None:
        """The application answers a question, which may not have been asked."""
        self.client.provide_assertion("a.b.c" if has_one else None, now=self.now)
        self.client.provide_client(REGISTERED if has_one else None, now=self.now)

    @rule(seconds=st.floats(0, 700))
    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds
        self.client.handle_timeout(self.now)

    @rule(status=st.sampled_from([200, 401, 403]), has_nonce=st.booleans())
    def hear(self, status: int, has_nonce: bool) -> None:
        """The MCP server answers a request."""
        take_head(self.client, status, [("DPoP-Nonce", "m")] if has_nonce else [])
        self.client.headers("POST", MCP, at=AT + self.now)

    @rule()
    def cancel(self) -> None:
        """The application does not want to wait."""
        assert self.client.cancel() is bool(self.open)

    @rule(is_stored=st.booleans())
    def log_out(self, is_stored: bool) -> None:
        """The user logs out, also in the midst of an attempt, which ends then."""
        stored = dict(self.stored) if is_stored else None
        attempt = self.client.log_out(stored=stored, now=self.now, at=AT + self.now)
        assert not self.client.authorized
        self.made = 0
        self.open[id(attempt)] = attempt

    @rule()
    def forget(self) -> None:
        """The application forgets all."""
        self.client.forget()
        assert not self.client.authorized

    @invariant()
    def one_attempt_at_most(self) -> None:
        """Each attempt has one ending, and the one that runs has none yet."""
        if not hasattr(self, "client"):
            return
        self.drain()
        running = self.client.attempt
        assert list(self.open.values()) == ([] if running is None else [running])
        assert self.made <= MOST_REQUESTS
        assert (self.client.next_timeout() is None) is (running is None)

    def teardown(self) -> None:
        """Without any further answer, an attempt ends by its deadlines."""
        if not hasattr(self, "client"):
            return
        for _ in range(MOST_REQUESTS):
            deadline = self.client.next_timeout()
            if deadline is None:
                break
            self.client.handle_timeout(deadline)
        self.drain()
        assert self.open == {}
        assert self.client.attempt is None


def test_every_attempt_ends_once() -> None:
    """An attempt without an ending would hold all calls that wait for its token."""
    run_state_machine_as_test(OneEndingPerAttempt, settings=examples(60, 2000))
