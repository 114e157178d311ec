"""JSON is encoded and decoded by two codecs that agree."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import json
import json.encoder
import math
import sys
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
    LocalProtocolError,
    MsgspecCodec,
    StandardCodec,
)
from sansmcp.testing import Pair

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


class Opaque:
    def __repr__(self) -> str:
        return "Opaque()"  # as the name of a test it is to be the same in every process


_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)

FOREIGN: list[Any] = [
    *((1, 2), b"x", bytearray(b"x"), {1, 2}, frozenset({1}), Opaque(), Point(), Colour.RED),
    *(datetime.datetime(2025, 1, 1), datetime.date(2025, 1, 1), datetime.timedelta(1)),
    *(decimal.Decimal("1.5"), uuid.UUID(int=1), Level.LOW, Text("x"), Number(3), Names(a=1)),
    *({1: "a"}, {True: 1}, {None: 1}, {1.5: 1}, {(1,): 1}, {Text("k"): 1}, {Level.LOW: 1}),
    *(math.nan, math.inf, -math.inf, {math.nan: 1}, _CIRCLE, 1 + 2j, json, range(3)),
]


def decoded(codec: Codec, data: bytes) -> str:
    """The repr of the value (`1` and `1.0` differ), or that it was refused."""
    try:
        return repr(codec.decode(data))
    except (ValueError, RecursionError):
        return "refused"


def encoded(codec: Codec, value: Any) -> str:
    """The value of the encoded text, or that it was refused."""
    try:
        return repr(json.loads(codec.encode(value)))
    except (ValueError, TypeError, RecursionError):
        return "refused"


# ----------------------------------------------------------------------------- two that agree


@given(value=VALUES)
@example(value="\ud800 \U0001f600 \x00 \x7f \u2028")
@example(value=[2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -0.0, 5e-324])
def test_a_value_survives_both_codecs_in_either_order(value: Any) -> None:
    """Big integers, lone surrogates and floats must survive exactly."""
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
    """Another codec must accept and refuse the same texts."""
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
    """JSON parsers differ in what they accept at the edges of the grammar."""
    assert decoded(MSGSPEC, text.encode()) == decoded(STANDARD, text.encode())


@given(value=st.recursive(_LEAVES | st.sampled_from(FOREIGN), st.lists, max_leaves=5))
def test_both_codecs_write_foreign_values_alike(value: Any) -> None:
    """`msgspec` encodes dates and UUIDs, which would fail with the standard codec."""
    assert encoded(MSGSPEC, value) == encoded(STANDARD, value)


@pytest.mark.parametrize("value", FOREIGN, ids=repr)
def test_each_foreign_value_is_written_alike_or_refused_by_both(value: Any) -> None:
    """Each type must be tried alone and as a member of an object."""
    assert encoded(MSGSPEC, value) == encoded(STANDARD, value)
    assert encoded(MSGSPEC, {"a": value}) == encoded(STANDARD, {"a": value})


@pytest.mark.parametrize(
    "value", [b"x", {1}, Colour.RED, decimal.Decimal(1), uuid.UUID(int=1), math.nan, _CIRCLE]
)
@each_codec
def test_what_has_no_json_form_raises_in_a_verb_and_sends_nothing(codec: Codec, value: Any) -> None:
    """The mistake must be reported to the caller that made it."""
    pair = Pair(server_config=Config(codec=codec))

    with pytest.raises(LocalProtocolError, match="no JSON form") as caught:
        pair.server.send_notification("notifications/x", {"value": value})
    assert caught.value.rule == "OWN-024"
    assert pair.server.data_to_send() == b""


def test_a_refusal_says_why_under_the_rule_that_it_breaks() -> None:
    """A codec of the application raises `CodecError` too, so it must have rule and reason."""
    with pytest.raises(CodecError, match="NaN is not JSON") as caught:
        STANDARD.decode(b"NaN")
    assert caught.value.rule == "ERR-001"


@each_codec
def test_a_copy_of_a_codec_is_itself(codec: Codec) -> None:
    """A copy of a connection must share the codec, which never changes."""
    assert copy.deepcopy(codec) is codec
    assert copy.deepcopy(config := Config(codec=codec)) is config


def test_without_the_compiled_encoder_texts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters without the C encoder must write the same bytes."""
    from sansmcp import StandardCodec

    value = {"a": [1, 2.5, None, True, "é\ud800"], "b": {"c": ""}}
    compiled = StandardCodec().encode(value)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    for name in [name for name in sys.modules if name.startswith("sansmcp")]:
        monkeypatch.delitem(sys.modules, name)
    from sansmcp import StandardCodec as Anew

    assert Anew is not StandardCodec
    assert Anew().encode(value) == compiled
