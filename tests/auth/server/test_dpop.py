"""Tokens that are bound to a key, and the proofs that their sender has it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp.auth import AccessGranted, AccessRefused, DPoP, ResourceServer
from tests.auth.server.tools import (
    AT,
    TOKEN,
    URL,
    PlainProofs,
    bound_server,
    challenge_of,
    presented,
    proof_of,
    resource_of,
)

KEY = b"0123456789abcdef"


def refused(event: AccessGranted | AccessRefused) -> AccessRefused:
    assert isinstance(event, AccessRefused), event
    return event


def test_a_bound_token_with_its_proof_is_served() -> None:
    """The principal says by which scheme it came (AUTH-409, AUTH-411)."""
    event = presented(bound_server(), proof_of())
    assert isinstance(event, AccessGranted)
    assert event.token.scheme == "DPoP"


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param("zz", id="unreadable"),
        pytest.param("a" * 9_000, id="endless"),
        pytest.param(proof_of(header={"typ": "JWT"}), id="typ"),
        pytest.param(proof_of(header={"alg": "none"}), id="alg none"),
        pytest.param(proof_of(header={"alg": "HS256"}), id="alg HS256"),
        pytest.param(proof_of(header={"jwk": None}), id="no key"),
        pytest.param(proof_of(header={"jwk": {"kty": "EC", "d": "x"}}), id="private key"),
        pytest.param(proof_of(jti=None), id="no jti"),
        pytest.param(proof_of(jti=""), id="empty jti"),
        pytest.param(proof_of(jti="a" * 1_025), id="endless jti"),
        pytest.param(proof_of(htm="GET"), id="htm"),
        pytest.param(proof_of(htm="post"), id="htm in lower case"),
        pytest.param(proof_of(htm=None), id="no htm"),
        pytest.param(proof_of(htu=None), id="no htu"),
        pytest.param(proof_of(htu="/mcp"), id="relative htu"),
        pytest.param(proof_of(htu="https://[::1/mcp"), id="htu with half a host"),
        pytest.param(proof_of(htu="https://api.example:x/mcp"), id="htu with half a port"),
        pytest.param(proof_of(htu=URL + "\udcff"), id="htu with half a character"),
        pytest.param(proof_of(htu=["https://api.example/mcp"]), id="htu is a list"),
        pytest.param(proof_of(iat=True), id="iat is true"),
        pytest.param(proof_of(iat=1e400), id="iat is endless"),
        pytest.param(proof_of(htu="https://api.example/other"), id="htu with another path"),
        pytest.param(proof_of(htu="https://evil.example/mcp"), id="htu of another host"),
        pytest.param(proof_of(htu="http://api.example/mcp"), id="htu with another scheme"),
        pytest.param(proof_of(iat=None), id="no iat"),
        pytest.param(proof_of(iat="now"), id="iat is text"),
        pytest.param(proof_of(iat=AT - 301), id="iat too early"),
        pytest.param(proof_of(iat=AT + 11), id="iat too late"),
        pytest.param(proof_of(ath=None), id="no ath"),
        pytest.param(proof_of(ath="x"), id="ath of another token"),
        pytest.param(None, id="no proof"),
    ],
)
def test_a_proof_for_something_else_is_refused(proof: str | None) -> None:
    """Whoever has stolen a token, or a proof, must not get in with it (AUTH-409, AUTH-410)."""
    event = refused(presented(bound_server(), proof))
    assert (event.status, event.error) == (401, "invalid_dpop_proof")
    challenge = challenge_of(event, "dpop")
    assert challenge["error"] == "invalid_dpop_proof"
    assert challenge["algs"]


@pytest.mark.parametrize(
    ("htu", "target"),
    [
        (URL + "?a=b", "/mcp"),
        (URL, "/mcp?a=b"),
        (URL + "#x", "/mcp"),
        ("HTTPS://API.Example:443/mcp", "/mcp"),
    ],
)
def test_the_url_is_compared_without_query_and_as_urls_are(htu: str, target: str) -> None:
    """RFC 9449 has query and fragment ignored, and URLs normalized (AUTH-409)."""
    assert isinstance(presented(bound_server(), proof_of(htu=htu), target=target), AccessGranted)


@pytest.mark.parametrize(
    "target",
    ["*", "", "/\x7f", "/m c", "/é", "/\udcff", "//[", "/" * 9_000, "/#x", "@evil.example/", ":x"],
)
def test_a_target_that_is_no_path_refuses_a_proof_for_it(target: str) -> None:
    """Whatever a client sends, a check ends in an event (AUTH-409, AUTH-410)."""
    event = refused(
        presented(bound_server(), proof_of(htu="https://other.example/x"), target=target)
    )
    assert (event.status, event.error) == (401, "invalid_dpop_proof")
    assert isinstance(presented(bound_server(), proof_of(), target=target), AccessGranted)


def test_each_method_needs_a_proof_of_its_own() -> None:
    """A proof for a POST must not open a stream (AUTH-409)."""
    server = bound_server()
    assert isinstance(presented(server, proof_of(htm="GET"), method="GET"), AccessGranted)
    assert refused(presented(server, proof_of("j2"), method="DELETE")).rule == "AUTH-409"


def test_the_key_of_the_proof_is_that_of_the_token() -> None:
    """A proof by the key of a thief is worth nothing (AUTH-411)."""
    event = refused(presented(bound_server(), proof_of(thumbprint="key-2")))
    assert (event.status, event.error, event.rule) == (401, "invalid_token", "AUTH-411")
    assert challenge_of(event, "dpop")["error"] == "invalid_token"


def test_a_bound_token_is_not_taken_as_a_bearer_token() -> None:
    """Else its key would protect nothing (AUTH-411)."""
    event = refused(presented(bound_server(), None, scheme="Bearer"))
    assert (event.error, event.rule) == ("invalid_token", "AUTH-411")
    assert event.text == "the token is bound to a key: its scheme is DPoP"
    assert challenge_of(event, "bearer")["error"] == "invalid_token"


def test_a_token_without_a_key_is_a_bearer_token() -> None:
    """A proof must not make a token look bound that is not (AUTH-411)."""
    server = bound_server()
    assert isinstance(presented(server, None, scheme="Bearer", cnf=None), AccessGranted)
    assert refused(presented(server, proof_of(), cnf=None)).rule == "AUTH-411"


def test_a_key_can_be_required() -> None:
    """Then no token is taken that a thief could use."""
    server = bound_server(required=True)
    event = refused(presented(server, None, scheme="Bearer", cnf=None))
    assert (event.status, event.error) == (401, None)
    assert "algs" in challenge_of(event, "dpop")
    assert isinstance(presented(server, proof_of()), AccessGranted)


def test_the_audience_is_checked_as_ever() -> None:
    """A key does not make a token one for this server (AUTH-412)."""
    event = refused(presented(bound_server(), proof_of(), aud="https://other.example"))
    assert event.rule == "AUTH-050"


# ------------------------------------------------------------------------------------ replay


def test_a_proof_is_accepted_once() -> None:
    """Whoever reads a request on its way must not send it again (AUTH-413)."""
    server = bound_server()
    assert isinstance(presented(server, proof_of()), AccessGranted)
    event = refused(presented(server, proof_of(), at=AT + 200))
    assert (event.error, event.rule) == ("invalid_dpop_proof", "AUTH-413")
    assert isinstance(presented(server, proof_of("j2")), AccessGranted)


def test_another_key_may_use_the_same_jti() -> None:
    """Each client draws its own (AUTH-413)."""
    server = bound_server()
    assert isinstance(presented(server, proof_of()), AccessGranted)
    other = proof_of(thumbprint="key-2")
    assert isinstance(presented(server, other, cnf={"jkt": "key-2"}), AccessGranted)


def test_a_refused_request_does_not_use_up_its_proof() -> None:
    """Whoever has no token must not fill the memory of the server (AUTH-413)."""
    server = bound_server()
    assert refused(presented(server, proof_of(), aud="x")).rule == "AUTH-050"
    assert isinstance(presented(server, proof_of()), AccessGranted)


def test_memory_is_bounded_and_nothing_is_accepted_twice() -> None:
    """A flood of proofs must not push an old one out, so that it could be used again (AUTH-413)."""
    server = bound_server(max_proofs=3)
    for number in range(3):
        assert isinstance(presented(server, proof_of(f"j{number}", iat=AT + number)), AccessGranted)
    assert isinstance(presented(server, proof_of("j3", iat=AT + 3)), AccessGranted)
    event = refused(presented(server, proof_of("j0", iat=AT)))
    assert "too old" in event.text
    assert refused(presented(server, proof_of("new", iat=AT))).rule == "AUTH-413"
    again = refused(presented(server, proof_of("j2", iat=AT + 2)))
    assert again.text == "the proof was used before"
    assert isinstance(presented(server, proof_of("j4", iat=AT + 4)), AccessGranted)


def test_proofs_that_are_too_old_are_forgotten() -> None:
    """The memory is for the window only (AUTH-413)."""
    server = bound_server(max_proofs=2, window=10.0)
    for step in range(6):
        at = AT + 21 * step
        for jti in ("a", "b"):
            assert isinstance(presented(server, proof_of(jti, iat=at), at=at), AccessGranted)


def flood(server: ResourceServer, key: str, count: int, iat: float = AT) -> list[int | None]:
    """The statuses of refusals of so many requests with proofs of a key."""
    events = [
        presented(
            server,
            proof_of(f"j{number}", thumbprint=key, iat=iat + number / 1000),
            cnf={"jkt": key},
        )
        for number in range(count)
    ]
    return [event.status if isinstance(event, AccessRefused) else None for event in events]


def test_a_key_displaces_no_proof_of_another() -> None:
    """Else one client could refuse the others, or use their proofs again (AUTH-413)."""
    server = bound_server(max_proofs=12)
    assert flood(server, "key-1", 3) == [None] * 3
    assert set(flood(server, "noisy", 30, AT + 9)) == {None}
    assert set(flood(server, "noisy", 30, AT + 9)) == {401}, "not one of them passes twice"
    assert flood(server, "key-1", 3) == [401] * 3
    assert flood(server, "key-1", 4) == [401] * 3 + [None]
    assert flood(server, "key-2", 2) == [None] * 2
    assert flood(server, "key-1", 4) == [401] * 4
    assert flood(server, "key-2", 2) == [401] * 2
    late = presented(server, proof_of("late", iat=AT - 1))
    assert isinstance(late, AccessGranted), "nothing of key-1 was forgotten"


def test_proofs_of_one_key_are_bounded() -> None:
    """Its own old ones are forgotten, and those that are as old are refused (AUTH-413)."""
    server = bound_server(max_proofs_of_key=2)
    assert flood(server, "key-1", 4) == [None] * 4
    assert flood(server, "key-1", 4) == [401] * 4
    event = refused(presented(server, proof_of("fresh", iat=AT + 0.001)))
    assert "too old" in event.text
    assert isinstance(presented(server, proof_of("fresh", iat=AT + 0.004)), AccessGranted)


def test_a_key_with_one_proof_may_replace_it() -> None:
    """The bounds may be as small as one likes (AUTH-413)."""
    for settings in ({"max_proofs": 1}, {"max_proofs_of_key": 1}):
        server = bound_server(**settings)
        assert flood(server, "key-1", 3) == [None] * 3
        assert flood(server, "key-1", 3) == [401] * 3


def test_more_keys_than_proofs_are_told_to_come_back() -> None:
    """None of the others must lose its only proof, which could be used again (AUTH-413)."""
    server = bound_server(max_proofs=3, window=60.0)
    for key in ("a", "b", "c"):
        assert flood(server, key, 1) == [None]
    event = refused(presented(server, proof_of(thumbprint="d"), cnf={"jkt": "d"}))
    assert (event.status, dict(event.headers)) == (503, {"retry-after": "5"})
    assert flood(server, "a", 1) == [401]
    later = AT + 71
    proof = proof_of(thumbprint="d", iat=later)
    assert isinstance(presented(server, proof, cnf={"jkt": "d"}, at=later), AccessGranted)


def test_a_proof_of_the_future_is_refused() -> None:
    """It would be remembered for longer, so that proofs of the present are forgotten (AUTH-413)."""
    for ahead, is_granted in ((10.0, True), (9.0, False)):
        event = presented(bound_server(ahead=ahead), proof_of(iat=AT + 10))
        assert isinstance(event, AccessGranted) is is_granted
    text = refused(presented(bound_server(), proof_of(iat=AT + 11))).text
    assert text == "the iat of the proof is more than 10 s ahead of the server's time"


def test_a_clock_that_is_put_back_lets_no_proof_pass_twice() -> None:
    """What was forgotten as too old would be young enough again (AUTH-413)."""
    server = bound_server(window=60.0, max_proofs_of_key=2)
    assert flood(server, "key-1", 3) == [None] * 3
    later = AT + 1000
    other = proof_of(thumbprint="key-2", iat=later)
    assert isinstance(presented(server, other, cnf={"jkt": "key-2"}, at=later), AccessGranted)
    assert flood(server, "key-1", 3) == [401] * 3
    assert isinstance(presented(server, proof_of("new", iat=AT + 1)), AccessGranted)


@given(
    requests=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 3),
            st.integers(-12, 4),
            st.sampled_from([0, 0, 0, 1, 5, 30, -30]),
        ),
        max_size=40,
    ),
    most=st.integers(1, 6),
    most_of_key=st.integers(1, 4),
)
def test_no_order_of_requests_lets_a_proof_pass_twice(
    requests: list[tuple[str, int, int, int]], most: int, most_of_key: int
) -> None:
    """Whatever is forgotten, and wherever the clock goes (AUTH-413)."""
    server = bound_server(window=10.0, ahead=3.0, max_proofs=most, max_proofs_of_key=most_of_key)
    at, accepted = AT, set[tuple[str, int, float]]()
    for key, jti, offset, step in requests:
        at += step
        proof = proof_of(f"j{jti}", thumbprint=key, iat=AT + offset)
        event = presented(server, proof, cnf={"jkt": key}, at=at)
        if isinstance(event, AccessGranted):
            assert (key, jti, offset) not in accepted
            assert -10 <= AT + offset - at <= 3
            accepted.add((key, jti, offset))


def test_what_was_displaced_is_not_accepted_when_the_clock_is_put_back() -> None:
    """It may be younger than all that its key had left (AUTH-413)."""
    server = bound_server(max_proofs=2)
    ahead = proof_of("ahead", iat=AT + 9)
    assert isinstance(presented(server, ahead), AccessGranted)
    assert flood(server, "key-1", 1) == [None]
    assert flood(server, "key-2", 1) == [None]
    later = AT + 1000
    other = proof_of(thumbprint="key-3", iat=later)
    assert isinstance(presented(server, other, cnf={"jkt": "key-3"}, at=later), AccessGranted)
    assert refused(presented(server, ahead)).rule == "AUTH-413"


def test_the_memory_can_be_copied() -> None:
    """The state is plain data."""
    server = bound_server()
    copied = copy.deepcopy(server)
    assert isinstance(presented(server, proof_of()), AccessGranted)
    assert isinstance(presented(copied, proof_of()), AccessGranted)


# ------------------------------------------------------------------------------------ nonces


def nonce_of(event: AccessRefused) -> str:
    assert (event.status, event.error, event.rule) == (401, "use_dpop_nonce", "AUTH-414")
    assert challenge_of(event, "dpop")["error"] == "use_dpop_nonce"
    return dict(event.headers)["dpop-nonce"]


def test_a_server_with_a_key_wants_its_nonce() -> None:
    """A proof made beforehand is worth nothing then (AUTH-414)."""
    server = bound_server(nonce_keys=[KEY])
    nonce = nonce_of(refused(presented(server, proof_of())))
    assert isinstance(presented(server, proof_of(nonce=nonce)), AccessGranted)


@pytest.mark.parametrize("nonce", [7, "", "x", "é", "AAAA", "A" * 40, "=" * 5])
def test_a_nonce_of_others_is_none(nonce: Any) -> None:
    """Only this server, or one with its key, makes them (AUTH-414)."""
    server = bound_server(nonce_keys=[KEY])
    assert nonce_of(refused(presented(server, proof_of(nonce=nonce))))


def test_a_nonce_expires() -> None:
    """A stolen one is of use for minutes only (AUTH-414)."""
    server = bound_server(nonce_keys=[KEY], nonce_lifetime=60.0)
    nonce = nonce_of(refused(presented(server, proof_of())))
    later = nonce_of(refused(presented(server, proof_of(nonce=nonce, iat=AT + 61), at=AT + 61)))
    assert later != nonce
    assert isinstance(
        presented(server, proof_of(nonce=later, iat=AT + 61), at=AT + 61), AccessGranted
    )


def test_keys_can_be_changed_while_nonces_are_in_use() -> None:
    """The first key makes them, and all are recognized (AUTH-414)."""
    nonce = nonce_of(refused(presented(bound_server(nonce_keys=[KEY]), proof_of())))
    server = bound_server(nonce_keys=[b"a" * 16, KEY])
    assert isinstance(presented(server, proof_of(nonce=nonce)), AccessGranted)
    assert nonce_of(refused(presented(server, proof_of("j2")))) != nonce


def test_a_nonce_can_be_made_by_hand() -> None:
    """An application may give one with any response (AUTH-414)."""
    dpop = DPoP(reader=PlainProofs(), nonce_keys=[KEY])
    server = ResourceServer(resource_of(dpop=dpop))
    assert isinstance(presented(server, proof_of(nonce=dpop.new_nonce(AT))), AccessGranted)
    with pytest.raises(ValueError, match="nonce_keys="):
        DPoP(reader=PlainProofs()).new_nonce(AT)


# ---------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"algorithms": ["HS256"]}, r"must have public keys \(AUTH-330, AUTH-393\)"),
        ({"algorithms": ["none"]}, "must have public keys"),
        ({"algorithms": []}, "must name one algorithm"),
        ({"algorithms": "ES256"}, "must be a list"),
        ({"algorithms": ["ES256", 'a"b']}, "without spaces and quotes"),
        ({"ahead": 301}, "ahead must be a number of seconds from 0 to 300"),
        ({"max_proofs_of_key": 0}, "max_proofs_of_key must be greater than zero"),
        ({"window": 301}, r"from 0 to 300 \(AUTH-409\)"),
        ({"window": 0}, "from 0 to 300"),
        ({"window": None}, "from 0 to 300"),
        ({"max_proofs": 0}, "max_proofs must be greater than zero"),
        ({"nonce_keys": [b"short"]}, "must have 16 random bytes"),
        ({"nonce_keys": ["text"]}, "must be a list or a tuple of bytes"),
        ({"nonce_lifetime": -1}, "nonce_lifetime must be"),
        ({"required": 1}, "required must be True or False"),
    ],
)
def test_settings_without_protection_are_refused(settings: dict[str, Any], text: str) -> None:
    """A weak setting would look like a strong one (AUTH-393, AUTH-409)."""
    with pytest.raises(ValueError, match=text):
        DPoP(reader=PlainProofs(), **settings)


def test_keys_are_not_shown() -> None:
    """Settings are logged."""
    assert "0123456789abcdef" not in repr(DPoP(reader=PlainProofs(), nonce_keys=[KEY]))
    assert TOKEN not in repr(bound_server())
