"""DPoP: proofs, nonces, and tokens that are bound to a key."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from sansmcp.auth import (
    AuthorizationConfig,
    AuthorizationFailure,
    AuthorizationStep,
    ClientCredentials,
    RegisteredClient,
    StepOutcome,
)
from sansmcp.auth.jose import Signer, assertion_signer, new_proof_signer, proof_signer
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    ORIGIN,
    PATH_METADATA,
    REGISTER,
    TOKEN,
    Answer,
    World,
    challenge,
    make_client,
    resource_document,
    run,
    server_document,
    take_head,
    token_document,
    usual_world,
)

STEP = AuthorizationStep.TOKEN
BOUND = token_document(token_type="DPoP")
NONCE = (("DPoP-Nonce", "nonce-1"),)
WANTS_NONCE = Answer({"error": "use_dpop_nonce"}, 400, NONCE)


def bound_world(*tokens: Any, algorithms: Any = ("ES256",)) -> World:
    """A world whose authorization server binds tokens to keys."""
    listed = None if algorithms is None else list(algorithms)
    world = usual_world(dpop_signing_alg_values_supported=listed)
    return world.put(TOKEN, *(tokens or (BOUND,)))


def proof_of(headers: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and claims of the only proof, whose signature fits its own key."""
    (proof,) = [value for name, value in headers if name.lower() == "dpop"]
    head = json.loads(base64.urlsafe_b64decode(proof.partition(".")[0] + "=="))
    decoded = jwt.decode(proof, ECKey.import_key(head["jwk"]), algorithms=[head["alg"]])
    return head, decoded.claims


def test_proof_of_a_token_request() -> None:
    """AUTH-392, AUTH-393, AUTH-394, AUTH-395, AUTH-397, AUTH-402: one header, without `ath`."""
    world = bound_world()
    run(make_client(proofs=new_proof_signer()), world, now=5.0).authorized()
    head, claims = proof_of(world.asked(TOKEN)[0].headers)

    assert head.keys() == {"typ", "alg", "jwk"}
    assert (head["typ"], head["alg"]) == ("dpop+jwt", "ES256")
    assert head["jwk"].keys() == {"kty", "crv", "x", "y"}
    assert claims.pop("jti")
    assert claims == {"htm": "POST", "htu": TOKEN, "iat": int(AT)}


def test_proof_of_a_request_to_the_mcp_server() -> None:
    """AUTH-394, AUTH-395, AUTH-398, AUTH-399: with `ath`, without a query in `htu`."""
    client = make_client(proofs=new_proof_signer())
    run(client, bound_world()).authorized()
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"first-token").digest()).decode()
    for method in ("POST", "GET", "DELETE"):
        headers = client.headers(method, f"{MCP}?x=1", at=AT + 7.9)
        assert headers[0] == ("Authorization", "DPoP first-token")
        assert len(headers) == 2
        claims = proof_of(headers)[1]
        assert claims.pop("jti")
        assert claims == {
            "htm": method,
            "htu": MCP,
            "iat": int(AT) + 7,
            "ath": digest.rstrip("="),
        }


def test_each_request_has_a_new_proof() -> None:
    """AUTH-396: the same `jti` again is a replay, also in a retry."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world(WANTS_NONCE, BOUND)
    run(client, world).authorized()
    proofs = [proof_of(request.headers)[1]["jti"] for request in world.asked(TOKEN)]
    proofs += [proof_of(client.headers("POST", MCP, at=AT))[1]["jti"] for _ in range(5)]

    assert len(set(proofs)) == 7


def test_nonce_of_the_authorization_server() -> None:
    """AUTH-403: the request is repeated with the nonce, and with a new proof."""
    world = bound_world(WANTS_NONCE, BOUND)
    done = run(make_client(proofs=new_proof_signer()), world)

    done.authorized()
    first, second = (proof_of(request.headers)[1] for request in world.asked(TOKEN))
    assert "nonce" not in first
    assert second["nonce"] == "nonce-1"
    assert world.forms()[0] == world.forms()[1]
    assert done.concluded(STEP) == [StepOutcome.SKIPPED, StepOutcome.DONE]


def test_second_demand_for_a_nonce_ends_it() -> None:
    """AUTH-406: a server that never is content would go on for ever."""
    again = Answer({"error": "use_dpop_nonce"}, 400, (("DPoP-Nonce", "nonce-2"),))
    world = bound_world(WANTS_NONCE, again)
    run(make_client(proofs=new_proof_signer()), world).failed(
        STEP, AuthorizationFailure.REFUSED, None
    )

    assert len(world.asked(TOKEN)) == 2


@pytest.mark.parametrize(
    "headers", [(), (("DPoP-Nonce", "a b"),), (("DPoP-Nonce", ""),), (*NONCE, *NONCE)]
)
def test_demand_without_a_nonce_ends_it(headers: Any) -> None:
    """AUTH-403: there is nothing to repeat it with."""
    world = bound_world(Answer({"error": "use_dpop_nonce"}, 400, headers))
    run(make_client(proofs=new_proof_signer()), world).failed(
        STEP, AuthorizationFailure.REFUSED, None
    )

    assert len(world.asked(TOKEN)) == 1


def test_nonce_of_the_mcp_server() -> None:
    """AUTH-404: no reason for a new authorization; the same token is sent with another proof."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world()
    run(client, world).authorized()
    requests = len(world.requests)
    take_head(client, 401, [("dpop-nonce", "for-mcp")])
    done = run(client, world, challenge(scheme="dpop", error="use_dpop_nonce"))

    assert done.authorized().issuer == ISSUER
    assert len(world.requests) == requests
    headers = client.headers("POST", MCP, at=AT)
    assert headers[0] == ("Authorization", "DPoP first-token")
    assert proof_of(headers)[1]["nonce"] == "for-mcp"


def test_second_demand_of_the_mcp_server_ends_it() -> None:
    """AUTH-406: for the same request; another one may still succeed."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world()
    run(client, world).authorized()
    one, other = object(), object()
    refusals = {
        request: challenge(scheme="dpop", request=request, error="use_dpop_nonce")
        for request in (one, other)
    }
    take_head(client, 401, NONCE)
    run(client, world, refusals[one]).authorized()
    run(client, world, refusals[other]).authorized()
    run(client, world, refusals[one]).failed(
        AuthorizationStep.CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-406"
    )
    take_head(client)
    run(client, world, refusals[one]).authorized()


def test_refused_proof_is_no_reason_for_a_new_login() -> None:
    """AUTH-396: one more proof, then it is said what to check."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world()
    run(client, world).authorized()
    opened = len(world.opened)
    refusal = challenge(scheme="dpop", request=object(), error="invalid_dpop_proof")
    run(client, world, refusal).authorized()
    failed = run(client, world, refusal).failed(
        AuthorizationStep.CHALLENGE, AuthorizationFailure.FORBIDDEN, "AUTH-396"
    )

    assert "clock" in failed.text
    assert "key" in failed.text
    assert len(world.opened) == opened
    take_head(client)
    run(client, world, refusal).authorized()
    assert len(world.opened) == opened


def test_demands_of_many_requests_are_bounded() -> None:
    """What is remembered of refused requests does not grow."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world()
    run(client, world).authorized()
    take_head(client, 401, NONCE)
    requests = [object() for _ in range(100)]
    for request in requests:
        refusal = challenge(scheme="dpop", request=request, error="use_dpop_nonce")
        run(client, world, refusal).authorized()
    refusal = challenge(scheme="dpop", request=requests[0], error="use_dpop_nonce")
    run(client, world, refusal).authorized()


@pytest.mark.parametrize("state", ["no token", "no nonce", "no proofs", "plain token"])
def test_demand_that_cannot_be_met_ends_it(state: str) -> None:
    """AUTH-404: nothing would be different the next time."""
    client = make_client(proofs=None if state == "no proofs" else new_proof_signer())
    if state in ("no proofs", "plain token"):
        run(client, usual_world()).authorized()
    elif state == "no nonce":
        run(client, bound_world()).authorized()
    if state != "no nonce":
        take_head(client, 401, NONCE)
    refusal = challenge(scheme="dpop", error="use_dpop_nonce")
    run(client, World(), refusal).failed(
        AuthorizationStep.CHALLENGE, AuthorizationFailure.UNSUPPORTED, "AUTH-404"
    )


def test_nonces_are_kept_for_each_server() -> None:
    """AUTH-405: the newest of any response of a server, and none of another one."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world(
        Answer({**BOUND, "refresh_token": "r"}, 200, (("DPoP-Nonce", "as-1"),)),
        Answer({**BOUND, "refresh_token": "r"}, 200, (("DPoP-Nonce", "as-2"),)),
        BOUND,
    )
    run(client, world).authorized()
    assert "nonce" not in proof_of(client.headers("POST", MCP, at=AT))[1]
    take_head(client, 200, [("DPoP-Nonce", "mcp-1")])
    take_head(client, 200, [("DPoP-Nonce", "mcp-2")])
    assert proof_of(client.headers("POST", MCP, at=AT))[1]["nonce"] == "mcp-2"
    take_head(client)
    assert proof_of(client.headers("POST", MCP, at=AT))[1]["nonce"] == "mcp-2"
    for _ in range(2):
        run(client, world, challenge(error="invalid_token")).authorized()
        take_head(client)
    sent = [proof_of(request.headers)[1].get("nonce") for request in world.asked(TOKEN)]

    assert sent == [None, "as-1", "as-2"]


def test_nonces_are_bounded() -> None:
    """Authorization servers may change for ever; the newest nonces are kept."""
    config = AuthorizationConfig(max_logins=20)
    client = make_client(proofs=new_proof_signer(), config=config)
    for number in range(12):
        world = world_at(f"https://as{number}.example.com", f"n{number}")
        run(client, world).authorized()
        take_head(client)
    last = world_at("https://as11.example.com", "n11")
    run(client, last).authorized()
    sent = proof_of(last.asked("https://as11.example.com/token")[0].headers)[1]

    assert sent["nonce"] == "n11"


def world_at(issuer: str, nonce: str) -> World:
    """A world with another authorization server, which gives a nonce."""
    world = World()
    world.issuer = issuer
    world.put(PATH_METADATA, resource_document(authorization_servers=[issuer]))
    document = server_document(issuer, dpop_signing_alg_values_supported=["ES256"])
    world.put(f"{issuer}/.well-known/oauth-authorization-server", document)
    world.put(f"{issuer}/register", {"client_id": "x"})
    return world.put(f"{issuer}/token", Answer(BOUND, 200, (("DPoP-Nonce", nonce),)))


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "N_A"])
def test_tokens_that_are_not_bound_are_not_used(kind: str) -> None:
    """AUTH-400: whoever steals one could use it."""
    world = bound_world(token_document(token_type=kind))
    client = make_client(proofs=new_proof_signer())
    run(client, world).failed(STEP, AuthorizationFailure.INVALID_RESPONSE, "AUTH-400")

    assert client.headers("POST", MCP, at=AT) == []


@pytest.mark.parametrize("algorithms", [["RS256"], []])
def test_algorithm_of_the_key_must_be_listed(algorithms: list[str]) -> None:
    """AUTH-401: the server could not verify a proof."""
    world = bound_world(algorithms=algorithms)
    run(make_client(proofs=new_proof_signer()), world).failed(
        AuthorizationStep.SERVER_METADATA, AuthorizationFailure.UNSUPPORTED, "AUTH-401"
    )

    assert world.opened == []  # the user is not asked for nothing


def test_servers_without_proofs_get_none() -> None:
    """The key is there, and the authorization server knows nothing of it."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world(token_document(), algorithms=None)
    run(client, world).authorized()

    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer first-token")]
    assert not [name for name, _ in world.asked(TOKEN)[0].headers if name == "DPoP"]


@pytest.mark.parametrize(
    ("proofs", "step", "rule"),
    [
        (False, AuthorizationStep.RESOURCE_METADATA, "AUTH-398"),
        (True, AuthorizationStep.SERVER_METADATA, "AUTH-401"),
    ],
)
def test_resource_that_wants_bound_tokens(proofs: bool, step: Any, rule: str) -> None:
    """AUTH-398, AUTH-400: it is said at once, instead of by a refusal of the token."""
    world = bound_world(algorithms=None)
    world.put(PATH_METADATA, resource_document(dpop_bound_access_tokens_required=True))
    client = make_client(proofs=new_proof_signer() if proofs else None)
    run(client, world).failed(step, AuthorizationFailure.UNSUPPORTED, rule)


def test_refresh_has_a_proof() -> None:
    """AUTH-397: the new token is bound to the same key."""
    client = make_client(proofs=new_proof_signer())
    world = bound_world({**BOUND, "refresh_token": "r"})
    run(client, world).authorized()
    run(client, world, challenge(error="invalid_token")).authorized()
    first, second = (proof_of(request.headers)[0] for request in world.asked(TOKEN))

    assert world.forms()[1]["grant_type"] == "refresh_token"
    assert first["jwk"] == second["jwk"]


def test_registration_says_that_tokens_are_bound() -> None:
    """AUTH-407: the server may then refuse requests without a proof."""
    for proofs, expected in (new_proof_signer(), True), (None, None):
        world = bound_world(BOUND if proofs else token_document())
        run(make_client(proofs=proofs), world).authorized()
        body = json.loads(world.asked(REGISTER)[0].body)
        assert body.get("dpop_bound_access_tokens") is expected


def test_stored_token_of_a_key_that_is_gone_is_not_sent() -> None:
    """AUTH-399: neither as a bearer token nor without a proof."""
    stored = run(make_client(proofs=new_proof_signer()), bound_world()).stored
    client = make_client()

    assert client.restore(stored)
    assert client.headers("POST", MCP, at=AT) == []


def test_client_credentials_with_proofs() -> None:
    """AUTH-397: every token request has a proof, whatever its grant."""
    world = usual_world(
        dpop_signing_alg_values_supported=["ES256"],
        token_endpoint_auth_methods_supported=["client_secret_basic"],
    ).put(TOKEN, BOUND)
    registered = {ISSUER: RegisteredClient(client_id="c", client_secret="s")}
    client = make_client(
        grant=ClientCredentials(), registered=registered, proofs=new_proof_signer()
    )
    run(client, world).authorized()

    assert proof_of(world.asked(TOKEN)[0].headers)[1]["htu"] == TOKEN


@pytest.mark.parametrize("algorithm", ["HS256", "none", "", "ES256 ", "ES"])
def test_proofs_are_asymmetric(algorithm: str) -> None:
    """AUTH-393, AUTH-401: a shared secret proves nothing."""

    class Symmetric:
        def __init__(self) -> None:
            self.algorithm = algorithm

        def sign(self, claims: dict[str, Any]) -> str:
            return ""

    with pytest.raises(ValueError, match="asymmetric algorithm"):
        make_client(proofs=Symmetric())


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512", "Ed25519"])
def test_new_keys(algorithm: Any) -> None:
    """AUTH-392, AUTH-402: the client makes its own key pair."""
    one, two = new_proof_signer(algorithm), new_proof_signer(algorithm)

    assert one.algorithm == algorithm
    assert one.thumbprint != two.thumbprint
    assert make_client(proofs=one).authorized is False


KEYS: dict[str, Any] = {
    "ES256": ECKey.generate_key("P-256"),
    "ES384": ECKey.generate_key("P-384"),
    "ES256K": ECKey.generate_key("secp256k1"),
    "RS256": RSAKey.generate_key(2048),
    "Ed25519": OKPKey.generate_key("Ed25519"),
    "Ed448": OKPKey.generate_key("Ed448"),
}


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.parametrize("form", ["pem", "jwk"])
def test_keys_that_were_made_before(algorithm: str, form: str) -> None:
    """A key of a file or a vault gives the same thumbprint each time, and signs."""
    key = KEYS[algorithm]
    given = key.as_pem(private=True) if form == "pem" else key.as_dict(private=True)
    signer = proof_signer(given)

    assert signer.algorithm == algorithm
    assert signer.thumbprint == key.thumbprint()
    token = assertion_signer(given).sign({"iss": "c"})
    decoded = jwt.decode(token, key, algorithms=[algorithm])
    assert decoded.claims == {"iss": "c"}
    assert "jwk" not in decoded.header


def test_id_of_a_key_is_named() -> None:
    """The authorization server finds the key by it."""
    key = ECKey.generate_key("P-256", {"kid": "key-1"})
    token = assertion_signer(key.as_dict(private=True)).sign({})

    assert jwt.decode(token, key, algorithms=["ES256"]).header["kid"] == "key-1"


@pytest.mark.parametrize(
    ("key", "algorithm", "good"),
    [
        ("RS256", "PS512", True),
        ("RS256", "ES256", False),
        ("ES256", "ES384", False),
        ("ES256", "HS256", False),
        ("ES256", "none", False),
        ("Ed25519", "EdDSA", True),
        ("Ed25519", "Ed448", False),
    ],
)
def test_algorithms_of_a_key(key: str, algorithm: str, good: bool) -> None:
    """AUTH-401: none that the key cannot do."""
    given = KEYS[key].as_dict(private=True)
    if good:
        assert proof_signer(given, algorithm).algorithm == algorithm
    else:
        with pytest.raises(ValueError, match="does not sign with"):
            proof_signer(given, algorithm)


@pytest.mark.parametrize(
    "key",
    [
        "",
        b"x",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        {},
        {"kty": "EC"},
        OctKey.generate_key(256).as_dict(private=True),
        KEYS["ES256"].as_dict(private=False),
        KEYS["RS256"].as_pem(private=False),
        OKPKey.generate_key("X25519").as_dict(private=True),
    ],
    ids=range(9),
)
def test_keys_that_are_none(key: Any) -> None:
    """AUTH-393, AUTH-401: the text does not quote the key."""
    with pytest.raises(ValueError, match="the key") as raised:
        proof_signer(key)

    assert "AAAA" not in str(raised.value)


def test_signers_do_not_show_their_key() -> None:
    """AUTH-408, AUTH-285: a repr ends up in logs."""
    signer = proof_signer(KEYS["ES256"].as_dict(private=True))

    assert repr(signer) == "<Signer ES256>"
    assert "_key" not in repr(make_client(proofs=signer))


def test_copies_share_the_signer() -> None:
    """A copy of a client has the same key: its tokens are bound to it."""
    import copy

    client = make_client(proofs=new_proof_signer())
    run(client, bound_world()).authorized()
    first, second = (
        proof_of(one.headers("GET", ORIGIN, at=AT))[0] for one in (client, copy.deepcopy(client))
    )

    assert first["jwk"] == second["jwk"]
    assert isinstance(new_proof_signer(), Signer)
