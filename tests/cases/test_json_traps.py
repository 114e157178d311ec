"""Failure class 7, traps in JSON: numbers and nesting that parsers stumble over."""

import json

import pytest

from sansmcp import (
    Codec,
    Config,
    MsgspecCodec,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    StandardCodec,
)
from tests.support.wire import (
    call,
    of,
    only,
    ready_server,
    receive,
    refusals,
    result,
    sent,
    wire,
    without_id,
)


def nested(depth: int, opening: str, closing: str) -> str:
    """A list or object of this depth, as text."""
    return opening * depth + "0" + closing * depth


@pytest.mark.parametrize("codec", [StandardCodec(), MsgspecCodec()], ids=["standard", "msgspec"])
@pytest.mark.parametrize("digits", [4_301, 5_000, 20_000])
@pytest.mark.parametrize("where", ["id", "params", "negative"])
def test_an_integer_too_long_is_refused(
    revision: str, codec: Codec, digits: int, where: str
) -> None:
    """Case c012: the interpreter refuses such integers with an exception that nobody caught."""
    number = "-" * (where == "negative") + "9" * digits
    line = (
        f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}\n'
        if where == "id"
        else f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"n":{number}}}}}\n'
    )
    server = ready_server(revision, config=Config(codec=codec))
    violation, answered = receive(server, line.encode(), call(2, "ping"))
    assert isinstance(violation, ProtocolViolation)
    assert violation.code == -32700
    assert "digits" in violation.text
    assert isinstance(answered, RequestAnswered)
    *refused, pong = sent(server)
    assert refusals(refused) == without_id(revision, -32700)
    assert pong == result(2, {})


@pytest.mark.parametrize("codec", [StandardCodec(), MsgspecCodec()], ids=["standard", "msgspec"])
def test_an_integer_within_the_limit_arrives_exactly(revision: str, codec: Codec) -> None:
    """Neighbour of case c012: the limit refuses no more than it says."""
    number = "9" * 4_300
    server = ready_server(revision, config=Config(codec=codec))
    line = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}\n'
    request = only(RequestReceived, receive(server, line.encode())).request
    assert request.id == 10**4_300 - 1
    assert server.send_result(request, {"tools": []})
    assert b'"id":%b,' % number.encode() in server.data_to_send()


@pytest.mark.parametrize("codec", [StandardCodec(), MsgspecCodec()], ids=["standard", "msgspec"])
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "nan"])
def test_numbers_that_are_not_finite_are_refused(revision: str, codec: Codec, literal: str) -> None:
    """Case c134: the parser of the standard library lets NaN through, which no peer can read."""
    params = f'{{"name":"t","arguments":{{"s":[{literal}]}}}}'
    line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'
    server = ready_server(revision, config=Config(codec=codec))
    violation, answered = receive(server, line.encode(), call(2, "ping"))
    assert isinstance(violation, ProtocolViolation)
    assert violation.code == -32700
    assert isinstance(answered, RequestAnswered)
    *refused, pong = sent(server)
    assert refusals(refused) == without_id(revision, -32700)
    assert pong == result(2, {})


@pytest.mark.parametrize("codec", [StandardCodec(), MsgspecCodec()], ids=["standard", "msgspec"])
@pytest.mark.parametrize("depth", [198, 600, 5_000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")], ids=["{", "["])
def test_params_nested_too_deep_are_refused_with_the_limit_named(
    revision: str, codec: Codec, depth: int, opening: str, closing: str
) -> None:
    """Case c137: a recursive parser ran out of stack, with a call that hung or a dead process."""
    params = f'{{"name":"t","arguments":{{"v":{nested(depth - 1, opening, closing)}}}}}'
    line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'
    server = ready_server(revision, config=Config(codec=codec))
    first, answered = receive(server, line.encode(), call(2, "ping"))
    assert isinstance(answered, RequestAnswered)
    *refused, pong = sent(server)
    assert pong == result(2, {})
    if depth == 198:  # with the message and its params: the limit, reached and not exceeded
        assert isinstance(first, RequestReceived)
        return
    assert isinstance(first, ProtocolViolation)
    assert first.code == -32700
    assert "200" in first.text
    assert refusals(refused) == without_id(revision, -32700)
    for message in refused:
        assert "200" in message["error"]["message"]


@pytest.mark.parametrize("codec", [StandardCodec(), MsgspecCodec()], ids=["standard", "msgspec"])
@pytest.mark.parametrize("line", [b"[", b'{"a":', b"[{", b'[[],"'], ids=repr)
def test_brackets_that_never_close_are_refused(revision: str, codec: Codec, line: bytes) -> None:
    """Case c138: 20,000 brackets, and a RecursionError left the reader."""
    server = ready_server(revision, config=Config(codec=codec))
    violation, answered = receive(server, line * 20_000 + b"\n", call(2, "ping"))
    assert isinstance(violation, ProtocolViolation)
    assert violation.code == -32700
    assert isinstance(answered, RequestAnswered)
    *refused, pong = sent(server)
    assert refusals(refused) == without_id(revision, -32700)
    assert pong == result(2, {})


def test_brackets_in_strings_are_no_nesting(revision: str) -> None:
    """Neighbour of case c137: source code in a string is full of them."""
    server = ready_server(revision)
    text = '[{"\\' * 10_000
    line = wire(call(1, "tools/call", {"name": "t", "arguments": {"code": text}}))
    (received,) = of(RequestReceived, receive(server, line))
    assert received.request.params["arguments"] == {"code": text}
    assert json.loads(line)["params"] == received.request.params
