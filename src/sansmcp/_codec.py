"""JSON in and out, with the limits that a parser must not leave to luck.

The standard library decides what a text means and what is refused. Another codec may be faster;
it gives equal values and equal refusals because whatever it cannot do, or does differently, is
handed to the standard one.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from itertools import accumulate
from json.decoder import JSONDecoder
from json.encoder import JSONEncoder
from math import isfinite
from typing import Any, Final, Protocol, cast

from ._values import JSONValue

Data = bytes | bytearray | memoryview


class CodecError(ValueError):
    """A text that is no acceptable JSON, or a value that has no JSON form. The message says why."""


class Codec(Protocol):
    """What a JSON codec must offer. Instances are immutable and may be shared."""

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text. Raises `ValueError` or `RecursionError`."""
        ...

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value.

        Raises `ValueError`, `TypeError` or `RecursionError`.
        """
        ...


def _refuse_constant(name: str) -> float:
    raise CodecError(f"{name} is not JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise CodecError("a number is too large for a double")
    return value


def _one_text(decoder: JSONDecoder, text: str) -> JSONValue:
    # `JSONDecoder.decode` runs two regular expressions for white space that is hardly ever there.
    try:
        value, end = decoder.raw_decode(text)
    except json.JSONDecodeError:
        stripped = text.lstrip(" \t\r\n")
        if len(stripped) == len(text):
            raise
        text = stripped
        value, end = decoder.raw_decode(text)
    if end != len(text) and text[end:].strip(" \t\r\n"):
        raise CodecError("text after the end of the JSON value")
    return cast(JSONValue, value)


class StandardCodec:
    """The standard library's JSON, made strict: no NaN, no infinities, nothing but JSON types.

    Strings leave as UTF-8; lone surrogates, which UTF-8 cannot carry, leave escaped.
    """

    __slots__ = ()

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text."""
        return _one_text(_DECODER, str(data, "utf-8"))

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value."""
        text = _ENCODER.encode(value)
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _ASCII_ENCODER.encode(value).encode()

    def __deepcopy__(self, memo: object) -> StandardCodec:
        return self


class _OneShotEncoder(JSONEncoder):
    """`JSONEncoder.encode` without its special cases for a lone string."""

    def encode(self, o: Any) -> str:
        return "".join(self.iterencode(o, _one_shot=True))


_STRICT: Final[dict[str, Any]] = {
    "separators": (",", ":"),
    "allow_nan": False,
    "check_circular": False,  # a cycle ends in RecursionError, which is refused like any value
}
_ENCODER: Final = _OneShotEncoder(ensure_ascii=False, **_STRICT)
_ASCII_ENCODER: Final = _OneShotEncoder(ensure_ascii=True, **_STRICT)
_DECODER: Final = JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_float)
STANDARD_CODEC: Final = StandardCodec()


# ------------------------------------------------------------------------------- another codec

_SCALARS: Final = frozenset({str, int, bool, type(None)})


def _is_plain(value: object) -> bool:
    """Whether the value is made of exact JSON types alone, so that any codec writes it alike."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in _SCALARS:
            continue
        if kind is dict:
            members = cast("dict[object, object]", item)
            for key in members:
                if type(key) is not str:
                    return False
            items: Iterable[object] = members.values()
        elif kind is list:
            items = cast("list[object]", item)
        elif kind is float and isfinite(cast(float, item)):
            continue
        else:
            return False
        stack += [inner for inner in items if type(inner) not in _SCALARS]
        if len(stack) > 1_000_000:
            return False  # a cycle, or a value so wide that the standard codec may judge it
    return True


class MsgspecCodec:
    """The `msgspec` package as codec (extra `fast`): the same values and refusals, sooner."""

    __slots__ = ("_decode", "_encode")

    def __init__(self) -> None:
        import msgspec  # the extra is imported only where it is asked for

        self._decode: Final = msgspec.json.Decoder().decode
        self._encode: Final = msgspec.json.Encoder().encode

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text."""
        try:
            return cast(JSONValue, self._decode(data))
        except (ValueError, RecursionError):
            return STANDARD_CODEC.decode(data)

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value."""
        if _is_plain(value):
            try:
                return self._encode(value)
            except (ValueError, OverflowError, RecursionError):
                pass
        return STANDARD_CODEC.encode(value)

    def __deepcopy__(self, memo: object) -> MsgspecCodec:
        return self


# ------------------------------------------------------------------------------------- limits

_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: +1 and -1
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")


def depth_of(data: bytes | bytearray) -> int:
    """How deep the brackets of a JSON text nest, counted without recursion in linear time."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(data.split(b'"')[::2])
    steps = array("b", outside.translate(_STEPS, _NOT_BRACKETS))
    return max(accumulate(steps), default=0)


class BoundedDecoder:
    """A codec's `decode` with the limits on depth and on the digits of an integer."""

    __slots__ = ("_codec", "_max_depth", "_max_digits")

    def __init__(self, codec: Codec, max_depth: int, max_digits: int) -> None:
        self._codec: Final = codec
        self._max_depth: Final = max_depth
        self._max_digits: Final = max_digits

    def decode(self, data: bytes | bytearray) -> JSONValue:
        """The value of one JSON text; `CodecError` for any text that is refused."""
        # No text nests deeper than it has opening brackets, so most need no closer look.
        if data.count(b"[") + data.count(b"{") > self._max_depth:
            depth = depth_of(data)
            if depth > self._max_depth:
                raise CodecError(f"nested {depth} deep; at most {self._max_depth} are accepted")
        try:
            if len(data) > self._max_digits and self._may_have_long_integer(data):
                return self._decode_counting_digits(data)
            return self._codec.decode(data)
        except UnicodeDecodeError:
            raise CodecError("not UTF-8") from None
        except RecursionError:
            # Only where a caller set a depth limit that the interpreter cannot reach.
            raise CodecError("nested deeper than the interpreter can parse") from None
        except CodecError:
            raise
        except ValueError as error:
            raise CodecError(f"not JSON: {error}") from None

    def _may_have_long_integer(self, data: bytes | bytearray) -> bool:
        return b"0" * (self._max_digits + 1) in data.translate(_DIGITS)

    def _decode_counting_digits(self, data: bytes | bytearray) -> JSONValue:
        limit = self._max_digits

        def parse_int(text: str) -> int:
            if len(text.lstrip("-")) > limit:
                raise CodecError(f"an integer has more than {limit} digits")
            return int(text)

        decoder = JSONDecoder(
            parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=parse_int
        )
        return _one_text(decoder, str(data, "utf-8"))
