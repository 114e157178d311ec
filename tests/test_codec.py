"""JSON in and out: two codecs that agree, and limits that are counted."""

import copy
import datetime
import decimal
import enum
import json
import math
import uuid
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sansmcp import (
    Codec,
    CodecError,
    Config,
    Event,
    JSONValue,
    LocalProtocolError,
    MsgspecCodec,
    NotificationReceived,
    ProtocolViolation,
    StandardCodec,
)
from sansmcp.testing import Pair, drain
from tests.support.wire import of, ready_server, sent

STANDARD, MSGSPEC = StandardCodec(), MsgspecCodec()
CODECS: list[Codec] = [STANDARD, MSGSPEC]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=["standard", "msgspec"])

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=12,
)


class Text(str):
    """A subclass of a JSON type."""


class Number(int):
    """A subclass of a JSON type."""


class Names(dict[str, Any]):
    """A subclass of a JSON type."""


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@attrs.frozen
class Point:
    x: int = 1


_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)

FOREIGN: list[Any] = [
    *((1, 2), b"x", bytearray(b"x"), {1, 2}, frozenset({1}), object(), Point(), Colour.RED),
    *(datetime.datetime(2025, 1, 1), datetime.date(2025, 1, 1), datetime.timedelta(1)),
    *(decimal.Decimal("1.5"), uuid.UUID(int=1), Level.LOW, Text("x"), Number(3), Names(a=1)),
    *({1: "a"}, {True: 1}, {None: 1}, {1.5: 1}, {(1,): 1}, {Text("k"): 1}, {Level.LOW: 1}),
    *(math.nan, math.inf, -math.inf, {math.nan: 1}, _CIRCLE, 1 + 2j, json, range(3)),
]


def decoded(codec: Codec, data: bytes) -> str:
    """The value as text (`1` and `1.0` differ so), or that it was refused."""
    try:
        return repr(codec.decode(data))
    except (ValueError, RecursionError):
        return "refused"


def encoded(codec: Codec, value: Any) -> str:
    """What the text means, or that it was refused."""
    try:
        return repr(json.loads(codec.encode(value)))
    except (ValueError, TypeError, RecursionError):
        return "refused"


# ----------------------------------------------------------------------------- two that agree


@given(value=VALUES)
@example(value="\ud800 \U0001f600 \x00 \x7f \u2028")
@example(value=[2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -0.0, 5e-324])
def test_a_value_survives_both_codecs_in_either_order(value: Any) -> None:
    """Big integers exactly, lone surrogates escaped, floats to the last bit."""
    for writer in CODECS:
        text = writer.encode(value)
        assert b"\n" not in text
        for reader in CODECS:
            assert repr(reader.decode(text)) == repr(value)


@given(data=st.binary() | VALUES.map(json.dumps).map(str.encode))
@example(data=b"\xef\xbb\xbf{}")
@example(data="{}".encode("utf-16"))
@example(data=b'"\xed\xa0\x80"')
@example(data=b'"\\ud800"')
@example(data=b'{"a":1,"a":2}')
@example(data=b"[" * 2_000 + b"]" * 2_000)
@example(data=b'"tab\tin text"')
@pytest.mark.parametrize("codec", [MSGSPEC])
def test_both_codecs_read_a_text_alike(codec: Codec, data: bytes) -> None:
    """Another codec is faster, never more liberal and never stricter."""
    assert decoded(codec, data) == decoded(STANDARD, data)


_MARKS = st.sampled_from("{}[],:\"\\/'a \t\x00\xff")
_WORDS = st.sampled_from(("null", "true", "false", "nul", "True", "NaN", "Infinity", "-Infinity"))
_NUMBERS = st.sampled_from(
    ("0", "00", "1", "-1", "-0", "1.0", "1.", ".5", "1e5", "1E+5", "1e400", "-1e400", "9" * 30)
)
_ESCAPES = st.sampled_from(("\\u0041", "\\ud800", "\\udc00", "\\x"))
_TOKENS = _MARKS | _WORDS | _NUMBERS | _ESCAPES


@given(text=st.lists(_TOKENS, max_size=9).map("".join))
def test_both_codecs_read_what_is_nearly_json_alike(text: str) -> None:
    """Where JSON parsers differ is at its edges."""
    assert decoded(MSGSPEC, text.encode()) == decoded(STANDARD, text.encode())


@given(value=st.recursive(_LEAVES | st.sampled_from(FOREIGN), st.lists, max_leaves=5))
def test_both_codecs_write_foreign_values_alike(value: Any) -> None:
    """`msgspec` knows dates and UUIDs; with the standard codec the same program must not break."""
    assert encoded(MSGSPEC, value) == encoded(STANDARD, value)


@pytest.mark.parametrize("value", FOREIGN, ids=repr)
def test_each_foreign_value_is_written_alike_or_refused_by_both(value: Any) -> None:
    """One after the other, as the only value and as a member of an object."""
    assert encoded(MSGSPEC, value) == encoded(STANDARD, value)
    assert encoded(MSGSPEC, {"a": value}) == encoded(STANDARD, {"a": value})


@pytest.mark.parametrize(
    "value", [b"x", {1}, Colour.RED, decimal.Decimal(1), uuid.UUID(int=1), math.nan, _CIRCLE]
)
@each_codec
def test_what_has_no_json_form_raises_in_a_verb_and_sends_nothing(codec: Codec, value: Any) -> None:
    """The mistake is found where it was made."""
    pair = Pair(server_config=Config(codec=codec))

    with pytest.raises(LocalProtocolError, match="no JSON form") as caught:
        pair.server.send_notification("notifications/x", {"value": value})
    assert caught.value.rule == "OWN-024"
    assert pair.server.data_to_send() == b""


# ------------------------------------------------------------------------------------- limits


def heard(data: bytes, config: Config) -> list[Event]:
    """What a server says to a notification whose params have `data` as the member `v`."""
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
    """Two levels are the message and its params; brackets in strings are none."""
    assert refusal(heard(deep, Config(codec=codec, max_json_depth=5)))[0] == "OWN-002"
    assert value_of(heard(deep, Config(codec=codec, max_json_depth=6))) == json.loads(deep)
    assert value_of(heard(flat, Config(codec=codec, max_json_depth=5))) == json.loads(flat)


@each_codec
def test_a_depth_beyond_the_interpreter_is_refused_all_the_same(codec: Codec) -> None:
    """A limit set too high must not turn into a crash."""
    many = 400_000

    rule, text = refusal(
        heard(b"[" * many + b"]" * many, Config(codec=codec, max_json_depth=many * 2))
    )
    assert rule == "OWN-002"
    assert "interpreter" in text


@each_codec
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_digits_of_an_integer_are_counted_exactly(codec: Codec, sign: bytes) -> None:
    """The sign is no digit; a number within the limit arrives exactly."""
    assert value_of(heard(sign + b"9" * 20, Config(codec=codec, max_integer_digits=20))) == int(
        sign + b"9" * 20
    )
    rule, text = refusal(heard(sign + b"9" * 21, Config(codec=codec, max_integer_digits=20)))
    assert rule == "OWN-003"
    assert "20 digits" in text


@each_codec
def test_digits_elsewhere_are_no_integer(codec: Codec) -> None:
    """Digits in text, or behind the point, are not limited."""
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
    """Python's parser takes some of these."""
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
    """Parsers accept UTF-16, and some stop at the end of the first value."""
    assert (decoded(codec, line) == "{}") is fine


@each_codec
def test_of_duplicate_members_the_last_one_wins(codec: Codec) -> None:
    """As decided for byte streams."""
    assert value_of(heard(b'{"a":1,"b":2,"a":3}', Config(codec=codec))) == {"a": 3, "b": 2}


def test_a_refusal_says_why_under_the_rule_that_it_breaks() -> None:
    """`CodecError` is what a codec of one's own raises, too."""
    with pytest.raises(CodecError, match="NaN is not JSON") as caught:
        STANDARD.decode(b"NaN")
    assert caught.value.rule == "ERR-001"


@each_codec
def test_a_copy_of_a_codec_is_itself(codec: Codec) -> None:
    """Connections are copied with all their state; what never changes is shared."""
    assert copy.deepcopy(codec) is codec
    assert copy.deepcopy(config := Config(codec=codec)) is config
