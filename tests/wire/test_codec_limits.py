"""JSON that is refused, and the limits on depth and size."""

import json

import pytest

from sansmcp import (
    Codec,
    Config,
    Event,
    JSONValue,
    MsgspecCodec,
    NotificationReceived,
    ProtocolViolation,
    StandardCodec,
)
from sansmcp.testing import drain
from tests.support.wire import of, ready_server, sent

STANDARD, MSGSPEC = StandardCodec(), MsgspecCodec()
CODECS: list[Codec] = [STANDARD, MSGSPEC]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=["standard", "msgspec"])


def decoded(codec: Codec, data: bytes) -> str:
    """The repr of the value (`1` and `1.0` differ), or that it was refused."""
    try:
        return repr(codec.decode(data))
    except (ValueError, RecursionError):
        return "refused"


def heard(data: bytes, config: Config) -> list[Event]:
    """The events of a server for a notification whose params have this text as the member `v`."""
    server = ready_server("2025-11-25", config=config)
    server.receive_data(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"v":%b}}\n' % data)
    assert all(message["error"]["code"] == -32700 for message in sent(server))
    return drain(server)


def value_of(events: list[Event]) -> JSONValue:
    (event,) = of(NotificationReceived, events)
    value: JSONValue = event.params["v"]
    return value


def refusal(events: list[Event]) -> tuple[str, str]:
    (event,) = of(ProtocolViolation, events)
    assert len(events) == 1
    assert event.code == -32700
    return event.rule, event.text


@each_codec
@pytest.mark.parametrize(
    ("deep", "flat"),
    [
        (b"[[[[1]]]]", b"[[[1]],[[2]],[[3]]]"),
        (b'{"a":{"a":{"a":{}}}}', b'{"a":{"a":{}},"b":{"a":{}}}'),
        (b'[["[",[[]]]]', b'["[[[[[[", "]]]]{{{{"]'),
        (b'["\\"",[[[]]]]', b'["\\"[[[[[\\\\","[[["]'),
        (b'["\\\\",[[[]]]]', b'["\\\\\\"[[[[","\\\\"]'),
        (b'[[[["\\u005b"]]]]', b'["\\\\[[[[[[\\\\"]'),
    ],
)
def test_levels_are_counted_exactly(codec: Codec, deep: bytes, flat: bytes) -> None:
    """The message and its params are two levels; brackets in strings must not count."""
    assert refusal(heard(deep, Config(codec=codec, max_json_depth=5)))[0] == "OWN-002"
    assert value_of(heard(deep, Config(codec=codec, max_json_depth=6))) == json.loads(deep)
    assert value_of(heard(flat, Config(codec=codec, max_json_depth=5))) == json.loads(flat)


@each_codec
def test_a_depth_beyond_the_interpreter_is_refused_all_the_same(codec: Codec) -> None:
    """A limit above the interpreter's own must not lead to a crash."""
    many = 400_000

    rule, text = refusal(
        heard(b"[" * many + b"]" * many, Config(codec=codec, max_json_depth=many * 2))
    )
    assert rule == "OWN-002"
    assert "interpreter" in text


@each_codec
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_digits_of_an_integer_are_counted_exactly(codec: Codec, sign: bytes) -> None:
    """The sign is no digit, and a number within the limit must arrive exactly."""
    assert value_of(heard(sign + b"9" * 20, Config(codec=codec, max_integer_digits=20))) == int(
        sign + b"9" * 20
    )
    rule, text = refusal(heard(sign + b"9" * 21, Config(codec=codec, max_integer_digits=20)))
    assert rule == "OWN-003"
    assert "20 digits" in text


@each_codec
def test_digits_elsewhere_are_no_integer(codec: Codec) -> None:
    """Digits in strings, or behind a decimal point, have no limit."""
    digits = b"1" * 60
    data = b'["%b",1.%b,{"%b":1}] ' % (digits, digits, digits)

    assert value_of(heard(data, Config(codec=codec, max_integer_digits=20))) == json.loads(data)


@each_codec
@pytest.mark.parametrize(
    "data",
    [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"[1,]", b"01", b"'a'", b"\xff"],
)
def test_what_is_no_json_is_a_parse_error_and_the_connection_goes_on(
    codec: Codec, data: bytes
) -> None:
    """Python's parser accepts some of these texts."""
    assert refusal(heard(data, Config(codec=codec)))[0] == "ERR-001"
    assert (
        refusal(heard(data + b" " * 30, Config(codec=codec, max_integer_digits=20)))[0] == "ERR-001"
    )


@each_codec
@pytest.mark.parametrize(
    ("line", "fine"),
    [
        (b"{} {}", False),
        (b"{}]", False),
        (b"", False),
        (b" \t\r\n{} \t\r\n", True),
        (b"\xef\xbb\xbf{}", False),
        ("{}".encode("utf-16-le"), False),
        ("{}".encode("utf-32"), False),
        (b"\x0b{}", False),
    ],
)
def test_one_text_of_utf8_and_white_space_around_it(codec: Codec, line: bytes, fine: bool) -> None:
    """Other parsers accept UTF-16, or stop at the end of the first value."""
    assert (decoded(codec, line) == "{}") is fine


@each_codec
def test_of_duplicate_members_the_last_one_wins(codec: Codec) -> None:
    """The last one must win on byte streams, as the design decides."""
    assert value_of(heard(b'{"a":1,"b":2,"a":3}', Config(codec=codec))) == {"a": 3, "b": 2}
