"""Tokens that are checked by one worker, for a session of another one."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.support.http.protected import Answer, Issuer, Protected, issuer, protected
from tests.support.http.server_endpoint import LEGACY, tool_call
from tests.support.redis_server import running_redis
from tests.support.wire import INITIALIZED, initialize

RESOURCE = "https://api.example/mcp"  # of all workers, behind what balances their load


@pytest.fixture(scope="module")
def served() -> Generator[Issuer, None, None]:
    """The authorization server of all workers."""
    with issuer() as running:
        yield running


@pytest.fixture(scope="module")
def workers(served: Issuer) -> Generator[list[Protected], None, None]:
    """Three workers: on asyncio, on trio, and below uvicorn."""
    with running_redis() as redis:
        options = {"resource": RESOURCE, "redis": redis.url}
        with (
            protected("asyncio", "jwt", served, **options) as on_asyncio,
            protected("trio", "jwt", served, **options) as on_trio,
            protected("asgi", "jwt", served, **options) as below_uvicorn,
        ):
            yield [on_asyncio, on_trio, below_uvicorn]


def test_a_session_belongs_to_the_user_whichever_worker_is_asked(
    served: Issuer, workers: list[Protected]
) -> None:
    """Handlers see the newest token of the user, with its rights, and challenge by them."""
    first = workers[0]
    opened = first.post(initialize(0, LEGACY), served.signed(RESOURCE))
    assert opened.status == 200
    session = {
        "mcp_session_id": opened.headers["mcp-session-id"],
        "mcp_protocol_version": LEGACY,
    }
    assert first.post(INITIALIZED, served.signed(RESOURCE), **session).status == 202

    def post(worker: Protected, name: str, **claims: Any) -> Answer:
        return worker.post(tool_call(1, name), served.signed(RESOURCE, **claims), **session)

    for worker in workers:
        assert post(worker, "who").text == "ann read"
        assert post(worker, "who", scope="read write").text == "ann read write"
        forbidden = post(worker, "write")
        assert forbidden.status == 403
        assert 'error="insufficient_scope", ' in forbidden.challenge
        assert 'scope="read write", resource_metadata="https://api.ex' in forbidden.challenge
        assert post(worker, "write", scope="read write").status == 200
        assert post(worker, "who", sub="bob").status == 404
        assert post(worker, "who", aud=worker.url).status == 401
        assert worker.post(tool_call(1, "who"), **session).status == 401
