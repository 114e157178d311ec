"""Addresses and URLs that servers may name, and the headers that go to them."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AddressRules,
    AuthorizationClient,
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    HTTPRequest,
    Reach,
    RequestWanted,
    reach_of_address,
)
from tests.support.auth.script import (
    AT,
    MCP,
    World,
    challenge,
    events_of,
    make_client,
    resource_document,
    run,
    server_document,
    token_document,
    usual_world,
)

PUBLIC = ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"]
LOOPBACK = ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]
LINK_LOCAL = ["169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254"]
PRIVATE = [
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "fd00::1",
    "100.64.0.1",
    "2002:0a00:0001::",
    "64:ff9b::a00:1",
    "192.0.2.1",
    "::ffff:10.1.2.3",
    "64:ff9b:1::7f00:1",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "fec0::1",
]
NONE = ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "", "localhost", "127.1", "1.2.3", "x"]


def request_of(url: str, **settings: Any) -> HTTPRequest:
    """The first request of a client for an MCP server."""
    client = make_client(url, config=AuthorizationConfig(**settings))
    client.authorize(challenge(), now=0, at=AT)
    (request,) = [event.request for event in events_of(client) if isinstance(event, RequestWanted)]
    return request


@pytest.mark.parametrize("ip", PUBLIC)
@pytest.mark.parametrize("url", [MCP, "https://localhost:1/mcp", "https://10.0.0.1/mcp"])
def test_public_addresses_are_allowed(ip: str, url: str) -> None:
    """AUTH-339: they are no secret of this machine."""
    assert request_of(url).allows_address(ip)


@pytest.mark.parametrize("ip", [*LOOPBACK, *LINK_LOCAL, *PRIVATE, *NONE])
def test_other_addresses_are_not(ip: str) -> None:
    """AUTH-337, AUTH-339, AUTH-340, AUTH-343: asked for the address that a name was resolved to."""
    assert not request_of(MCP).allows_address(ip)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://localhost:8080/mcp", LOOPBACK),
        ("http://sub.localhost/mcp", LOOPBACK),
        ("http://127.0.0.1:8080/mcp", LOOPBACK),
        ("http://[::1]/mcp", LOOPBACK),
        ("https://192.168.0.9/mcp", PRIVATE),
        ("https://169.254.0.9/mcp", LINK_LOCAL),
    ],
)
def test_what_is_as_near_as_the_server_is_allowed(url: str, allowed: list[str]) -> None:
    """AUTH-338, AUTH-339: a server for development names other ones of its kind."""
    request = request_of(url)

    for ip in [*LOOPBACK, *LINK_LOCAL, *PRIVATE]:
        assert request.allows_address(ip) is (ip in allowed), ip


@pytest.mark.parametrize("ip", [*PUBLIC, *LINK_LOCAL, *PRIVATE])
def test_plain_http_goes_to_loopback_alone(ip: str) -> None:
    """AUTH-338: also where a name of loopback was resolved to something else."""
    request = request_of("http://localhost:8080/mcp", allow_addresses=Reach)

    assert not request.allows_address(ip)
    assert request.allows_address("127.0.0.1")


@pytest.mark.parametrize("url", ["http://mcp.example.com/mcp", "http://10.0.0.1/mcp"])
def test_server_of_plain_http_gets_no_token(url: str) -> None:
    """AUTH-338: anybody on the way could read it."""
    with pytest.raises(ValueError, match=r"^server_url is plain http.*use https$"):
        make_client(url)


@pytest.mark.parametrize(
    ("kinds", "allowed"),
    [
        ([Reach.PRIVATE], PRIVATE),
        ((Reach.LOOPBACK, Reach.PUBLIC), LOOPBACK),
        ({Reach.LINK_LOCAL, Reach.PRIVATE}, [*LINK_LOCAL, *PRIVATE]),
        (Reach, [*LOOPBACK, *LINK_LOCAL, *PRIVATE]),
    ],
)
def test_kinds_of_addresses_can_be_allowed(kinds: Any, allowed: list[str]) -> None:
    """AUTH-339: a company's own network is no reason to open the secrets of a machine in a cloud.

    They are at an address of link-local.
    """
    request = request_of(MCP, allow_addresses=kinds)

    for ip in [*LOOPBACK, *LINK_LOCAL, *PRIVATE]:
        assert request.allows_address(ip) is (ip in allowed), ip


@pytest.mark.parametrize("ip", NONE)
def test_what_is_no_address_of_one_machine_is_never_allowed(ip: str) -> None:
    """0.0.0.0 reaches this machine on many systems."""
    assert not request_of(MCP, allow_addresses=Reach).allows_address(ip)


def local_world(origin: str) -> World:
    """An MCP server and an authorization server at one origin."""
    issuer = f"{origin}/as"
    world = World().put(
        f"{origin}/.well-known/oauth-protected-resource/mcp",
        resource_document(resource=f"{origin}/mcp", authorization_servers=[issuer]),
    )
    world.put(f"{origin}/.well-known/oauth-authorization-server/as", server_document(issuer))
    world.put(f"{issuer}/register", {"client_id": "x"}).put(f"{issuer}/token", token_document())
    world.issuer = issuer
    return world


@pytest.mark.parametrize(
    "origin", ["http://localhost:8080", "http://127.0.0.1:1", "http://[::1]:2", "https://10.0.0.1"]
)
def test_servers_for_development_work(origin: str) -> None:
    """AUTH-338: the URL of the MCP server is the opt-in; plain http is for loopback alone."""
    client = make_client(f"{origin}/mcp")

    assert run(client, local_world(origin)).authorized().issuer == f"{origin}/as"


@pytest.mark.parametrize(
    ("url", "named"),
    [
        (MCP, "http://localhost:9/x"),
        (MCP, "https://127.0.0.1/x"),
        ("http://localhost:8080/mcp", "https://10.0.0.1/x"),
        ("http://localhost:8080/mcp", "http://10.0.0.1/x"),
        ("http://localhost:8080/mcp", "http://as.example.com/x"),
        ("https://10.0.0.1/mcp", "http://10.0.0.2/x"),
        ("https://10.0.0.1/mcp", "https://localhost/x"),
        ("https://10.0.0.1/mcp", "https://169.254.169.254/x"),
    ],
)
def test_metadata_elsewhere_is_not_asked(url: str, named: str) -> None:
    """AUTH-248, AUTH-337, AUTH-338, AUTH-339: not even tried."""
    world = World()
    done = run(make_client(url), world, challenge(resource_metadata=named))

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.REFUSED_URL
    assert world.requests == []


def test_allowed_addresses_still_need_tls() -> None:
    """AUTH-338: only loopback may do without."""
    world = World()
    config = AuthorizationConfig(allow_addresses=[Reach.PRIVATE])
    refusal = challenge(resource_metadata="http://10.0.0.1/x")
    done = run(make_client(config=config), world, refusal)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.rule == "AUTH-338"


@pytest.mark.parametrize(
    ("ips", "reach"),
    [
        (PUBLIC, Reach.PUBLIC),
        (LOOPBACK, Reach.LOOPBACK),
        (LINK_LOCAL, Reach.LINK_LOCAL),
        (PRIVATE, Reach.PRIVATE),
        (NONE, None),
    ],
)
def test_reach_of_addresses(ips: list[str], reach: Reach | None) -> None:
    """AUTH-340: a driver names the kind that an application would have to allow."""
    assert {reach_of_address(ip) for ip in ips} == {reach}


def test_rules_can_be_made_for_other_requests() -> None:
    """A driver or a verifier of tokens judges its own requests by the same rules."""
    assert AddressRules(own=None).allows_address("93.184.216.34")
    assert not AddressRules(own=Reach.PRIVATE).allows_address("127.0.0.1")
    assert AddressRules(None, allowed=frozenset({Reach.LOOPBACK})).allows_address("127.0.0.1")


def authorized_client(url: str = MCP) -> AuthorizationClient:
    """A client with a token."""
    client, world = make_client(url), usual_world()
    run(client, world).authorized()
    return client


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (MCP, True),
        ("https://mcp.example.com/other?x=1", True),
        ("https://MCP.example.com:443/", True),
        ("https://mcp.example.com:8443/mcp", False),
        ("http://mcp.example.com/mcp", False),
        ("https://as.example.com/mcp", False),
        ("https://mcp.example.com.evil.example/mcp", False),
        ("https://mcp.example.com@evil.example/mcp", False),
        ("mcp", False),
    ],
)
def test_token_goes_to_its_origin_only(url: str, sent: bool) -> None:
    """AUTH-007, AUTH-008, AUTH-009, AUTH-053, AUTH-286: in the header, on each request."""
    headers = authorized_client().headers("POST", url, at=AT)

    assert headers == ([("Authorization", "Bearer first-token")] if sent else [])


def test_metadata_requests_carry_no_token() -> None:
    """AUTH-286, AUTH-344: they go to others; and nothing is told to the MCP server about them."""
    client, world = make_client(), usual_world()
    run(client, world).authorized()
    run(client, world).authorized()

    for request in world.requests:
        assert b"first-token" not in request.body
        assert "first-token" not in str(request.headers)
        assert request.url != MCP
