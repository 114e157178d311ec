"""Sealed state: a client can send it back, and can neither change it nor use it elsewhere."""

import traceback
from base64 import b64decode, b64encode
from math import inf, nan
from typing import Any

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LocalProtocolError,
    ProtocolViolation,
    RequestReceived,
    ServerConnection,
    StandardCodec,
)
from tests.support.modern import ROOTS, modern, modern_server, requested
from tests.support.wire import broken, drain, note, of, receive, refusals, sent

OLD, NEW, OTHER = b"old-secret-16-by", b"new-secret-16-by", b"someone else's secret"
STATE = "step 2: caf\u00e9 \ud83d"
AT = 1_800_000_000.0


def sealing(*keys: bytes, seconds: float = 600.0) -> ServerConnection:
    return modern_server(config=Config(state_keys=keys or (OLD,), state_seconds=seconds))


def a_call(
    server: ServerConnection,
    sealed: str | None = None,
    *,
    method: str = "tools/call",
    principal: str | None = None,
    **params: object,
) -> IncomingRequest:
    """The request of a client, perhaps with a state."""
    if sealed is not None:
        params["requestState"] = sealed
    name: JSONObject = {"uri": "a"} if method == "resources/read" else {"name": "t"}
    request = requested(server, modern(1, method, {**name, **params}))
    # What a transport that knows its users would set.
    request.peer.principal = request.peer.principal_key = principal
    return request


def seal(server: ServerConnection, state: str = STATE, at: float = AT, **who: Any) -> str:
    """The sealed state that a client gets for `a_call` with the same arguments."""
    request = a_call(server, **who)
    assert server.require_input(request, {"r": ROOTS}, state=state, at=at)
    (answer,) = sent(server)
    sealed: str = answer["result"]["requestState"]
    return sealed


def refused(
    server: ServerConnection, request: IncomingRequest, at: float = AT, now: float | None = None
) -> str:
    """The reason for which a state is refused; asserts that the client gets the same error each
    time."""
    assert server.read_state(request, at=at, now=now) is None
    (violation,) = drain(server)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.code, violation.request) == ("MRTR-013", -32602, request)
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32602)]
    assert answer["error"] == {"code": -32602, "message": "requestState is not valid"}
    assert not request.open
    assert server.read_state(request, at=at) is None  # and nothing is reported twice
    assert drain(server) == []
    assert sent(server) == []
    return violation.text


@pytest.mark.parametrize("state", [STATE, "", "a.b.c", "\x00", "{}" * 5_000])
def test_what_was_sealed_comes_back(state: str) -> None:
    """Any string must come back, also with new answers and another envelope."""
    server = sealing()
    sealed = seal(server, state)
    assert sealed != state
    request = a_call(server, sealed, inputResponses={"r": {"roots": []}})
    assert server.read_state(request, at=AT + 600) == state
    assert server.read_state(request, at=AT + 600) == state
    assert server.send_result(request, {"content": []})


def test_without_keys_the_state_is_as_it_was_given() -> None:
    """A server without keys must not pay for sealing."""
    server = modern_server()
    request = a_call(server)
    assert server.require_input(request, state="plain")
    (answer,) = sent(server)
    assert answer["result"]["requestState"] == "plain"
    assert server.read_state(a_call(server, "anything")) == "anything"


def test_sealing_needs_the_time() -> None:
    """Without the time a state could not expire, so the verb must raise and the request stay
    open."""
    server = sealing()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.require_input(request, state="s")
    assert request.open
    assert server.read_state(request) is None
    assert server.require_input(request, {"r": ROOTS})  # no state, no seal
    request = a_call(server, "s1.0.a.b")
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.read_state(request)
    assert request.open


def test_a_seal_expires() -> None:
    """Without expiry, a state could be used long after it is out of date."""
    server = sealing(seconds=60)
    sealed = seal(server)
    assert server.read_state(a_call(server, sealed), at=AT + 60) == STATE
    server.close()
    later = sealing(seconds=60)
    assert "time" in refused(later, a_call(later, sealed), at=AT + 61)


def test_any_altered_character_is_noticed() -> None:
    """A change to the time, the state or the seal must be refused."""
    sealed = seal(sealing(), "abc")
    version, expires, request, principal, state, mac = sealed.split(".")
    assert b64decode(state) == b"abc"
    altered = [
        ".".join(("s1", expires, request, principal, state, mac)),
        ".".join((version, str(int(expires) + 1), request, principal, state, mac)),
        ".".join((version, "0" + expires, request, principal, state, mac)),
        ".".join((version, expires, principal, request, state, mac)),
        ".".join((version, expires, request, principal, b64encode(b"abd").decode(), mac)),
        ".".join((version, expires, request, principal, "", mac)),
        ".".join((version, expires, request, principal, state, b64encode(bytes(32)).decode())),
        ".".join((version, expires, request, principal, state, "")),
        # The same bytes to a decoder that is not strict.
        sealed + "=",
        sealed + "\n",
        sealed + "AAAA",
        sealed[:-2] + chr(ord(sealed[-2]) + 1) + "=",
        sealed.replace(f".{state}.", f".{state}!."),
        " " + sealed,
    ]
    for other in altered:
        server = sealing()
        assert "altered" in refused(server, a_call(server, other))


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "plain",
        "a.b.c.d",
        "s1",
        "s1...",
        "s1.x.YQ==.YQ==",
        "s1.-5.YQ==.YQ==",
        "s1.1800000000.Y.YQ==",
        "s1.1800000000.YQ==.\u00e9",
        "s1.1800000000.YQ==./w==",
        "s1.1800000000.YQ==.YQ==.YQ==",
        f"s1.{'9' * 5_000}.YQ==.YQ==",
    ],
)
def test_what_has_not_the_form_of_a_seal_is_refused(forged: str) -> None:
    """A client may send any text as a state, and none may raise."""
    server = sealing()
    refused(server, a_call(server, forged))


@pytest.mark.parametrize(
    "other",
    [
        {"name": "another tool"},
        {"arguments": {"n": 2}},
        {"method": "prompts/get"},
        {"method": "resources/read"},
    ],
)
def test_a_state_belongs_to_its_request(other: JSONObject) -> None:
    """A state that one tool has granted must not be accepted by another."""
    server = sealing()
    sealed = seal(server, arguments={"n": 1})
    changed: dict[str, Any] = {"arguments": {"n": 1}, **other}
    request = a_call(server, sealed, **changed)
    assert "another request" in refused(server, request)
    again = a_call(server, sealed, arguments={"n": 1})
    assert server.read_state(again, at=AT) == STATE


@pytest.mark.parametrize("thief", [None, "bob", "Ann", ""])
def test_a_state_belongs_to_its_principal(thief: str | None) -> None:
    """Another user who gets the state must not be able to use it."""
    server = sealing()
    sealed = seal(server, principal="ann")
    assert "principal" in refused(server, a_call(server, sealed, principal=thief))
    assert server.read_state(a_call(server, sealed, principal="ann"), at=AT) == STATE


def test_nobody_is_another_principal_than_somebody_of_that_name() -> None:
    """A user may be called "None", which must differ from no user."""
    server = sealing()
    refused(server, a_call(server, seal(server), principal="None"))


class User:
    """A user whose text is equal to that of others."""

    def __str__(self) -> str:
        raise RuntimeError("nobody asks for the text of a principal")


def test_a_principal_needs_a_key() -> None:
    """OWN-050: the text of a user is not unique, and may change."""
    config = Config(state_keys=(OLD,))
    info: JSONObject = {"name": "s", "version": "1"}
    with pytest.raises(LocalProtocolError, match="without principal_key"):
        ServerConnection(info=info, principal="ann", config=config)
    wrong: Any = 7
    with pytest.raises(LocalProtocolError, match="string, not int"):
        ServerConnection(info=info, principal_key=wrong)
    ServerConnection(info=info, principal=User())  # nothing is sealed
    server = sealing()
    request = a_call(server)
    request.peer.principal = "ann"
    with pytest.raises(LocalProtocolError, match="OWN-050"):
        server.require_input(request, {"r": ROOTS}, state=STATE, at=AT)
    assert request.open


def test_a_connection_knows_its_principal() -> None:
    """All requests of a socket come from the principal that opened it."""

    def connected(key: str) -> ServerConnection:
        return ServerConnection(
            info={"name": "s", "version": "1"},
            capabilities={"tools": {}},
            principal=user,
            principal_key=key,
            config=Config(state_keys=(OLD,)),
        )

    user = User()
    server = connected("u1")
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    assert request.principal is request.peer.principal is user
    assert request.principal_key == "u1"
    assert server.require_input(request, {"r": ROOTS}, state=STATE, at=AT)
    (answer,) = sent(server)
    retry = modern(2, "tools/call", {"name": "t", **stated(answer)})
    assert server.read_state(requested(server, retry), at=AT) == STATE
    other = connected("u2")
    events = receive(other, retry)
    assert other.read_state(of(RequestReceived, events)[0].request, at=AT) is None
    assert broken(drain(other)) == ["MRTR-013"]


def stated(answer: Any) -> JSONObject:
    """The params of the retry with the state of this result."""
    return {"requestState": answer["result"]["requestState"]}


def test_keys_can_be_changed_while_states_are_under_way() -> None:
    """The first key seals and each key opens; a server without the old key refuses its seals."""
    sealed, newer = seal(sealing(OLD)), seal(sealing(NEW, OLD))
    turning, turned = sealing(NEW, OLD), sealing(NEW)
    assert turning.read_state(a_call(turning, sealed), at=AT) == STATE
    refused(turned, a_call(turned, sealed))
    assert turned.read_state(a_call(turned, newer), at=AT) == STATE
    stranger = sealing(OTHER)
    refused(stranger, a_call(stranger, sealed))


def test_states_outlive_the_connection() -> None:
    """The next round may reach another process with the same keys."""
    sealed = seal(sealing())
    server = sealing()
    assert server.read_state(a_call(server, sealed), at=AT) == STATE


def test_a_secret_has_some_length_and_is_not_shown() -> None:
    """A short key could be guessed, and a repr gets into logs."""
    with pytest.raises(ValueError, match="state_keys"):
        Config(state_keys=(b"x" * 15,))
    wrong: list[Any] = [OLD, OLD.decode(), [OLD.decode()], [OLD, None]]
    for keys in wrong:
        with pytest.raises(ValueError, match=r"bytes, as in state_keys=\[key\]$") as caught:
            Config(state_keys=keys)
        assert OLD.decode() not in "".join(traceback.format_exception_only(caught.value))
    assert Config(state_keys=[OLD, NEW]).state_keys == (OLD, NEW)
    assert "secret" not in repr(Config(state_keys=(OLD,)))


def test_a_bad_seal_on_a_cancelled_request_is_nobodys_business() -> None:
    """A cancelled request has ended, so it cannot be refused."""
    server = sealing()
    request = a_call(server, "forged")
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    assert server.read_state(request, at=AT, now=1.0) is None
    assert drain(server) == []
    assert sent(server) == []


def test_a_bad_seal_of_another_connection_harms_nothing_here() -> None:
    """Ids are equal on every connection, so the refusal must not end a request of this one."""
    one, two = sealing(), sealing()
    request, same_id = a_call(one, "forged"), a_call(two)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        two.read_state(request, at=AT)
    assert same_id.open
    assert two.send_result(same_id, {"content": []})
    assert request.open


def test_a_refusal_wakes_who_writes() -> None:
    """`read_state` may queue an error, for which the writer must be woken."""
    woken: list[int] = []
    server = ServerConnection(
        info={"name": "s", "version": "1"},
        capabilities={"tools": {}},
        revisions=("2026-07-28",),
        config=Config(state_keys=(OLD,)),
        wake=lambda: woken.append(1),
    )
    request = a_call(server, "forged")
    woken.clear()
    refused(server, request, now=1.0)
    assert woken == [1]


def test_what_a_handler_does_with_a_forged_state_loses_a_race() -> None:
    """The client has its error already, so the handler's result must be dropped without an
    exception."""
    server = sealing()
    request = a_call(server, "forged")
    refused(server, request)
    assert server.send_result(request, {"content": []}) is False
    assert server.send_error(request, -32603, "no") is False
    assert server.require_input(request, {"r": ROOTS}, state="s", at=AT) is False
    assert server.send_progress(request, 1) is False
    assert server.send_log("info", 1, request=request) is False
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    assert server.send_result(request, {"content": []}) is False
    assert sent(server) == []


# ------------------------------------------------------------------- what the seal is taken of


def test_what_a_handler_does_with_the_params_is_its_own_affair() -> None:
    """The seal must be checked against the params as received, whatever a handler has changed in
    them."""
    server = sealing()
    request = a_call(server, arguments={"n": 1})
    request.params["arguments"].clear()
    request.params["seen"] = {1, 2}  # which has no JSON form
    assert server.require_input(request, {"r": ROOTS}, state=STATE, at=AT)
    (answer,) = sent(server)
    sealed: str = answer["result"]["requestState"]
    again = a_call(server, sealed, arguments={"n": 1})
    again.params["arguments"]["n"] = 2
    assert server.read_state(again, at=AT) == STATE
    server.send_result(again, {"content": []})
    sent(server)
    refused(server, a_call(server, sealed, arguments={}))


def test_a_state_may_live_for_ever() -> None:
    """An application may set no limit on the age of a state."""
    server = sealing(seconds=inf)
    assert server.read_state(a_call(server, seal(server)), at=9e14) == STATE


@pytest.mark.parametrize("at", [nan, -inf, -1e9])
def test_what_is_no_time_does_not_seal_nor_open(at: float) -> None:
    """An invalid time must not extend the life of a state."""
    server = sealing()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.require_input(request, state="s", at=at)
    assert request.open


def test_no_seal_is_opened_at_no_time() -> None:
    """Without the time, expiry cannot be checked."""
    server = sealing()
    assert "time" in refused(server, a_call(server, seal(server)), at=nan)


def test_a_method_that_never_asks_has_no_state_of_ours() -> None:
    """No state was sealed for such a method, so any state with it is forged."""
    server = sealing()
    sealed = seal(server)
    refused(server, requested(server, modern(1, "tools/list", {"requestState": sealed})))


class Deep:
    """A codec that decodes deeper than the interpreter can encode."""

    encode = staticmethod(StandardCodec().encode)

    def decode(self, data: bytes | bytearray | memoryview) -> JSONValue:
        """The message, with a hundred thousand nested lists in its arguments."""
        message: Any = StandardCodec().decode(data)
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        if "params" in message:
            message["params"]["arguments"] = {"a": deep}
        value: JSONValue = message
        return value


def test_params_too_deep_to_be_sealed_are_refused() -> None:
    """An exception from `receive_data` would end the connection."""
    server = modern_server(config=Config(state_keys=(OLD,), codec=Deep()))
    assert broken(receive(server, modern(1, "tools/call", {"name": "t"}))) == ["OWN-002"]
    assert refusals(sent(server)) == [(1, -32602)]
