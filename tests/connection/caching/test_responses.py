"""Which requests a cache answers, and which results it keeps."""

import copy
from typing import Any

import pytest

from sansmcp import (
    Cache,
    CacheHit,
    ClientConnection,
    Config,
    ErrorReceived,
    Extension,
    FailureReason,
    InputRequired,
    JSONObject,
    LocalProtocolError,
    RequestFailed,
    ResponseReceived,
    StandardCodec,
)
from tests.support.caching import (
    FILE,
    STRICT,
    asked,
    caching_client,
    contents,
    fetch,
    hints,
    is_served,
    names_of,
    served,
    tools,
)
from tests.support.modern import ROOTS, complete, discovered, in_question, input_required
from tests.support.wire import drain, error, of, only, ready_client, receive, result, sent

READ: JSONObject = {"uri": FILE}

# ------------------------------------------------------------------------------------- the events


def test_a_fresh_response_is_served_and_the_event_says_so() -> None:
    """An application may want to know that the server was not asked."""
    client = caching_client()
    fetch(client, tools("a"), now=0.0)
    value, hit = served(client, now=2.5)
    assert names_of(value) == ["a"]
    assert hit == CacheHit(age=2.5)
    assert client.pending_requests == ()


def test_without_a_cache_every_request_is_sent() -> None:
    """Nothing may be kept where the application has not asked for it."""
    client = ready_client("2025-11-25")
    for _ in range(2):
        call = client.send_request("tools/list")
        (message,) = sent(client)
        event = only(ResponseReceived, receive(client, result(message["id"], tools("a"))))
        assert event == ResponseReceived(request=call, result=tools("a"))


def test_a_result_belongs_to_the_application() -> None:
    """What the application changes in a result must not reach others."""
    client = caching_client()
    (event,) = fetch(client, tools("a"))
    assert isinstance(event, ResponseReceived)
    event.result["tools"].clear()
    first, _ = served(client)
    first["tools"].clear()
    assert names_of(served(client)[0]) == ["a"]


def test_a_served_request_has_the_data_of_the_application_and_an_id_of_its_own() -> None:
    """Callers find their mailbox in `data`; ids in logs must differ."""
    client = caching_client()
    message = asked(client, "tools/list")
    receive(client, complete(message["id"], tools("a")))
    call = client.send_request("tools/list", data="mine", progress=True)
    assert (call.data, call.id, call.open) == ("mine", message["id"] + 1, False)
    drain(client)
    assert asked(client, "tools/call", {"name": "a"}, progress=True)["id"] == message["id"] + 2
    named = client.send_request("tools/list", id="x")
    assert named.id == "x"


def test_what_may_not_be_sent_raises_before_the_cache_is_asked() -> None:
    """A mistake must not depend on what is in the cache."""
    client = caching_client()
    fetch(client, tools("a"))
    with pytest.raises(LocalProtocolError):
        asked(client, "tools/list", {"cursor": 5})
    with pytest.raises(LocalProtocolError):
        client.send_request("tools/list", timeout=-1)
    client.close()
    drain(client)
    with pytest.raises(LocalProtocolError):
        client.send_request("tools/list")


def test_wake_is_called_for_a_response_from_the_cache() -> None:
    """Without it an adapter would wait for the server, which knows nothing of the request."""
    calls: list[None] = []
    client = ClientConnection(
        info={"name": "c", "version": "1"},
        revisions=["2026-07-28"],
        cache=Cache(),
        wake=lambda: calls.append(None),
    )
    client.start(now=0.0)
    (probe,) = sent(client)
    receive(client, result(probe["id"], discovered()))
    fetch(client, tools("a"))
    calls.clear()
    client.send_request("tools/list")
    assert len(calls) == 1


# ---------------------------------------------------------------------------------------- the key


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "file:///b"}),
        ("resources/list", None),
        ("tools/list", {"cursor": "2"}),
        ("tools/list", {"cursor": ""}),
        ("tools/list", {"filter": 1}),
        ("tools/list", {"filter": True}),
        ("tools/list", {"_meta": {"com.example/tenant": "a"}}),
        ("tools/list", {"_meta": {"baggage": "tenant=a"}}),
    ],
)
def test_another_method_or_another_parameter_is_asked_for(
    method: str, params: JSONObject | None
) -> None:
    """CACHE-005: the response to another request must not be served."""
    client = caching_client()
    fetch(client, tools("a"))
    fetch(client, contents("a"), "resources/read", READ)
    fetch(client, tools("b"), params={"filter": 1.0})
    assert not is_served(client, method, params)


@pytest.mark.parametrize(
    "options",
    [
        {"progress": True},
        {"log_level": "debug"},
        {"meta": {"traceparent": "00-1-2-01", "tracestate": "a=1"}},
        {"params": {"cursor": None}},
        {"params": {"_meta": {"progressToken": 7}}},
        {"timeout": 5, "max_timeout": 9, "now": 1.0},
    ],
)
def test_what_does_not_change_the_result_is_not_in_the_key(options: dict[str, Any]) -> None:
    """A token, a trace or a log level would make every request another one."""
    client = caching_client()
    fetch(client, tools("a"))
    assert is_served(client, **options)


def test_the_order_of_parameters_is_not_in_the_key() -> None:
    """Two callers write the same params in another order."""
    client = caching_client()
    fetch(client, tools("a"), params={"a": 1, "b": 2}, meta={"x": 1, "y": 2})
    assert is_served(client, params={"b": 2, "a": 1}, meta={"y": 2, "x": 1})


def test_clients_with_other_capabilities_do_not_share() -> None:
    """CACHE-005: the capabilities are part of the request, and a server may go by them."""
    cache = Cache()
    first = caching_client(cache.partition(server="s"))
    fetch(first, tools("a"))
    assert is_served(caching_client(cache.partition(server="s")))
    assert not is_served(caching_client(cache.partition(server="s"), capabilities={}))


@pytest.mark.parametrize("members", [{"inputResponses": {}}, {"requestState": "s"}])
def test_a_request_with_answers_is_neither_kept_nor_served(members: JSONObject) -> None:
    """CACHE-006: its result depends on more than the key."""
    client = caching_client()
    fetch(client, contents("a"), "resources/read", {**READ, **members})
    assert not is_served(client, "resources/read", READ)
    fetch(client, contents("b"), "resources/read", READ)
    assert not is_served(client, "resources/read", {**READ, **members})


def test_the_result_after_questions_is_not_kept() -> None:
    """CACHE-006, CACHE-004: neither the questions nor the result that follows them are kept."""
    cache = Cache()
    client = caching_client(cache)
    message = asked(client, "resources/read", READ)
    asking = input_required(message["id"], {"r": ROOTS})
    asking["result"] |= hints()
    (event,) = of(InputRequired, receive(client, asking))
    assert cache.entries == 0
    client.provide_input(event.request, {"r": {"roots": []}})
    (again,) = sent(client)
    only(ResponseReceived, receive(client, complete(again["id"], contents("a"))))
    assert cache.entries == 0
    assert not is_served(client, "resources/read", READ)


def test_the_result_of_a_request_that_was_sent_again_with_a_state_is_not_kept() -> None:
    """CACHE-006: the library itself sends it again, and the handle stays the same."""
    cache = Cache()
    client = caching_client(cache)
    message = asked(client, "resources/read", READ)
    assert receive(client, input_required(message["id"], state="s")) == []
    (again,) = sent(client)
    assert again["params"]["requestState"] == "s"
    only(ResponseReceived, receive(client, complete(again["id"], contents("a"))))
    assert cache.entries == 0


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
def test_results_of_other_methods_are_not_kept(method: str) -> None:
    """A server that gives hints where none belong must not stop a tool from running."""
    client = caching_client()
    params = {"name": "t"}
    value: JSONObject = {"content": [], "messages": [], **hints()}
    message = asked(client, method, params)
    receive(client, complete(message["id"], value))
    assert not is_served(client, method, params)


def test_questions_about_other_requests_go_to_the_application() -> None:
    """The cache changes nothing in the rounds of a tool."""
    client = caching_client()
    call = in_question(client, {"r": ROOTS})
    assert not call.open


def test_a_result_of_another_type_is_not_kept() -> None:
    """CACHE-004: only complete results may be kept; a result of an extension is another thing."""
    cache = Cache()
    extension = Extension(result_types=["com.example/later"])
    client = caching_client(cache, config=Config(extensions=[extension]))
    message = asked(client, "tools/list")
    later = {**tools("a"), "resultType": "com.example/later"}
    event = only(ResponseReceived, receive(client, result(message["id"], later)))
    assert event.result["resultType"] == "com.example/later"
    assert cache.entries == 0


def test_server_discover_of_the_application_is_kept() -> None:
    """A gateway asks for it for each of its clients. The start itself always asks the server."""
    client = caching_client()
    found = discovered(**hints())
    fetch(client, found, "server/discover")
    assert served(client, "server/discover")[0]["supportedVersions"] == ["2026-07-28"]


# -------------------------------------------------------------------------------- for how long


def test_a_response_is_fresh_until_its_time_is_over() -> None:
    """CACHE-008, CACHE-011: the clock is that of the caller, and starts with the receipt."""
    client = caching_client()
    message = asked(client, "tools/list", now=10.0)
    receive(client, complete(message["id"], tools("a", ttlMs=1_500)), now=20.0)
    assert served(client, now=21.25)[1] == CacheHit(age=1.25)
    assert not is_served(client, now=21.5)


@pytest.mark.parametrize(
    "odd",
    [
        {"ttlMs": 0},
        {"ttlMs": 0.0},
        {"ttlMs": -5},
        {"ttlMs": None},
        {"ttlMs": True},
        {"ttlMs": 1.5},
        {"ttlMs": "60000"},
        {"cacheScope": "shared"},
        {"cacheScope": ["public"]},
        {"cacheScope": None},
    ],
)
def test_a_response_without_valid_hints_is_stale_at_once(odd: JSONObject) -> None:
    """CACHE-007, CACHE-009, CACHE-010: what a server has not allowed must not be kept."""
    cache = Cache()
    client = caching_client(cache, config=STRICT)
    page = {name: value for name, value in tools("a", **odd).items() if value is not None}
    fetch(client, page)
    assert cache.entries == 0
    assert not is_served(client)


@pytest.mark.parametrize("ttl", [10**400, 2.0**60, 60_000.0])
def test_any_number_of_milliseconds_is_taken(ttl: float) -> None:
    """Python cannot divide the largest integers of JSON, and the peer must not make it raise."""
    client = caching_client()
    fetch(client, tools("a", ttlMs=ttl))
    assert is_served(client, now=59.0)


def test_without_a_clock_nothing_is_kept() -> None:
    """Without the time, no response can be known to be fresh."""
    cache = Cache()
    client = caching_client(cache, now=None)
    fetch(client, tools("a"))
    assert cache.entries == 0
    assert not is_served(client)


def test_the_newest_response_counts() -> None:
    """A response with less time replaces one with more."""
    client = caching_client()
    first, second = asked(client, "tools/list"), asked(client, "tools/list")
    receive(client, complete(first["id"], tools("a")))
    receive(client, complete(second["id"], tools("b", ttlMs=1_000)))
    assert names_of(served(client)[0]) == ["b"]
    assert not is_served(client, now=1.0)


def test_an_idle_connection_does_not_turn_the_clock_back() -> None:
    """A client that was told no time for an hour must not serve what is an hour old."""
    cache = Cache()
    idle, busy = (caching_client(cache.partition(server="s")) for _ in range(2))
    fetch(idle, tools("a"), now=0.0)
    assert is_served(busy, now=59.0)
    fetch(busy, {"prompts": [], **hints()}, "prompts/list", now=3600.0)
    assert not is_served(idle)


# ------------------------------------------------------------------------------------- for whom


def test_private_responses_stay_in_their_context() -> None:
    """CACHE-017: another access token needs another cache."""
    cache = Cache()
    alice, bob = (caching_client(cache.partition(server="s", context=who)) for who in "ab")
    fetch(alice, tools("of alice", cacheScope="private"))
    fetch(bob, tools("of bob", cacheScope="private"))
    assert names_of(served(alice)[0]) == ["of alice"]
    assert names_of(served(bob)[0]) == ["of bob"]
    other = caching_client(cache.partition(server="s", context="a"))
    assert names_of(served(other)[0]) == ["of alice"]


@pytest.mark.parametrize("server", [None, "s"])
def test_connections_without_a_name_share_no_private_response(server: str | None) -> None:
    """CACHE-017: without a word of the application, each connection is a context of its own."""
    cache = Cache()
    one, other = (caching_client(cache.partition(server=server)) for _ in range(2))
    fetch(one, tools("a", cacheScope="private"))
    assert is_served(one)
    assert not is_served(other)


def test_public_responses_are_shared_by_connections_to_one_server() -> None:
    """CACHE-016: this is what a gateway has a cache for."""
    cache = Cache()
    alice, bob = (caching_client(cache.partition(server="s", context=who)) for who in "ab")
    fetch(alice, tools("a"))
    assert names_of(served(bob)[0]) == ["a"]


@pytest.mark.parametrize("names", [(None, None), ("s", "t"), (None, "s")])
def test_responses_of_one_server_are_not_those_of_another(names: tuple[str | None, ...]) -> None:
    """CACHE-005: two servers have the same methods, and other tools."""
    cache = Cache()
    one, other = (caching_client(cache.partition(server=name)) for name in names)
    fetch(one, tools("a"))
    assert is_served(one)
    assert not is_served(other)


def test_a_list_that_becomes_private_is_no_longer_shared() -> None:
    """CACHE-017: the public copy is out of date as soon as the server says so to anybody."""
    cache = Cache()
    alice, bob, carol = (caching_client(cache.partition(server="s", context=who)) for who in "abc")
    fetch(alice, tools("all"), now=0.0)
    assert is_served(bob, now=59.0)
    fetch(bob, tools("of bob", cacheScope="private"), now=60.0)
    assert not is_served(alice, now=60.0)
    assert not is_served(carol, now=60.0)
    assert is_served(bob, now=60.0)


# ------------------------------------------------------------------------------- stale on failure


def test_a_stale_response_is_not_served_unless_it_was_asked_for() -> None:
    """A caller that wants the failure must get it."""
    client = caching_client()
    fetch(client, tools("a"))
    message = asked(client, "tools/list", now=60.0)
    (event,) = receive(client, error(message["id"], -32603))
    assert isinstance(event, ErrorReceived)


def test_a_stale_response_is_served_if_the_server_fails() -> None:
    """CACHE-015: with `stale_if_error`, the event says how old it is, and why it is used."""
    client = caching_client(Cache(stale_if_error=30.0))
    fetch(client, tools("a"), now=0.0)
    message = asked(client, "tools/list", now=89.0)
    event = only(ResponseReceived, receive(client, error(message["id"], -32603, "down")))
    assert names_of(event.result) == ["a"]
    said = "the server answered with the error -32603: down"
    assert event.cached == CacheHit(age=89.0, failure=said)
    message = asked(client, "tools/list", now=90.0)
    only(ErrorReceived, receive(client, error(message["id"], -32603)))


@pytest.mark.parametrize("code", [-32601, -32602, -32021, 5])
def test_an_answer_of_the_server_is_not_replaced(code: int) -> None:
    """A server that says that there is no such thing has been reached."""
    client = caching_client(Cache(stale_if_error=30.0))
    fetch(client, contents("a"), "resources/read", READ)
    message = asked(client, "resources/read", READ, now=60.0)
    data: JSONObject = {"requiredCapabilities": {}}
    (event,) = receive(client, error(message["id"], code, "no", data))
    assert isinstance(event, ErrorReceived)


def test_a_stale_response_is_served_if_none_comes() -> None:
    """CACHE-015: a request that times out or is lost has not reached the server, either."""
    client = caching_client(Cache(stale_if_error=1_000.0))
    fetch(client, tools("a"))
    asked(client, "tools/list", timeout=5, now=60.0)
    client.handle_timeout(65.0)
    (event,) = of(ResponseReceived, drain(client))
    assert event.cached is not None
    assert "no response to tools/list" in event.cached.failure
    sent(client)
    asked(client, "tools/list")
    client.receive_eof()
    (event,) = of(ResponseReceived, drain(client))
    assert event.cached == CacheHit(
        age=65.0, failure="the connection ended before tools/list was answered"
    )


def test_a_response_that_is_stale_at_once_may_be_served_if_the_server_fails() -> None:
    """CACHE-015: `ttlMs` 0 says that it is stale, and not that it may not be kept."""
    client = caching_client(Cache(stale_if_error=10.0))
    fetch(client, tools("a", ttlMs=0))
    message = asked(client, "tools/list", now=5.0)
    event = only(ResponseReceived, receive(client, error(message["id"], -32603)))
    assert event.cached is not None


def test_what_the_caller_cancels_is_cancelled() -> None:
    """A cancelled request must not be answered."""
    client = caching_client(Cache(stale_if_error=10.0))
    fetch(client, tools("a"))
    call = client.send_request("tools/list", now=60.0)
    client.cancel(call)
    event = only(RequestFailed, drain(client))
    assert event.reason is FailureReason.CANCELLED


def test_without_a_stale_response_the_failure_is_reported() -> None:
    """There may be nothing to serve."""
    client = caching_client(Cache(stale_if_error=10.0))
    message = asked(client, "tools/list")
    only(ErrorReceived, receive(client, error(message["id"], -32603)))


def test_without_a_clock_a_failure_is_reported() -> None:
    """Nobody knows how old anything is."""
    client = caching_client(Cache(stale_if_error=10.0), now=None)
    message = asked(client, "tools/list")
    only(ErrorReceived, receive(client, error(message["id"], -32603)))


# ------------------------------------------------------------------------------------ odd values


class OddCodec(StandardCodec):
    """Adds a value to each result that JSON does not have."""

    def decode(self, data: bytes | bytearray | memoryview) -> Any:
        value: Any = super().decode(data)
        if "result" in value:
            value["result"]["odd"] = {1}
        return value


def test_a_result_that_has_no_json_form_is_not_kept() -> None:
    """The codec of an application may make other values than JSON has; receiving never raises."""
    cache = Cache()
    client = caching_client(cache, config=Config(codec=OddCodec()))
    fetch(client, tools("a"))
    assert cache.entries == 0


def test_pending_requests_has_those_whose_results_may_be_kept() -> None:
    """They are requests of the application like all others."""
    client = caching_client()
    call = client.send_request("tools/list", timeout=5, now=0.0)
    assert client.pending_requests == (call,)
    client.handle_timeout(5.0)
    assert only(RequestFailed, drain(client)).reason is FailureReason.TIMED_OUT


def test_a_connection_with_a_cache_can_be_copied() -> None:
    """A copy goes its own way, with its own entries."""
    client = caching_client(Cache(max_entries=3))
    fetch(client, tools("a"))
    call = client.send_request("tools/list", now=60.0)
    (message,) = sent(client)
    copied, copied_call = copy.deepcopy((client, call))
    receive(copied, complete(message["id"], tools("b")))
    assert not copied_call.open
    assert call.open
    assert names_of(served(copied)[0]) == ["b"]
    assert not is_served(client)
