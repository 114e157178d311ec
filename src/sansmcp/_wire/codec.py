"""The JSON codecs, and a decoder with limits on depth and on digits of integers.

The `json` module of Python defines the value of each text and which texts are refused. Another
codec may be faster. It gives the same values and refusals, because it leaves to the standard codec
all that it does differently.
"""

from __future__ import annotations

import json.encoder
from array import array
from collections.abc import Callable, Iterable
from itertools import accumulate
from json.decoder import JSONDecodeError, JSONDecoder
from json.encoder import JSONEncoder, encode_basestring
from json.scanner import make_scanner
from math import isfinite
from typing import Any, Final, Protocol, TypeAlias, cast

from .values import JSONValue

Data: TypeAlias = bytes | bytearray | memoryview
Scanner: TypeAlias = Callable[[str, int], tuple[Any, int]]


class CodecError(ValueError):
    """A text is no valid JSON, or a value cannot be encoded. The message says why.

    Attributes:
        rule: The id of the rule that the text breaks.
    """

    def __init__(self, text: str, rule: str = "ERR-001") -> None:
        super().__init__(text)
        self.rule: Final = rule


class Codec(Protocol):
    """The methods of a JSON codec. Instances are immutable and may be shared."""

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text. Raises `ValueError` or `RecursionError`."""
        ...

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value, without a raw line break.

        Raises `ValueError`, `TypeError` or `RecursionError`.
        """
        ...


_WHITE_SPACE: Final = " \t\r\n"


def _refuse_constant(name: str) -> float:
    raise CodecError(f"{name} is not JSON")


class _TooLarge(CodecError):
    """A text is JSON, but has a number that is too large for Python's `float`."""


def _parse_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _TooLarge("a number is too large for a double")
    return value


def _scanner(decoder: JSONDecoder) -> Scanner:
    make: Any = make_scanner  # the type stubs describe it wrongly, as a class
    return cast(Scanner, make(decoder))


def _one_text(scan: Scanner, text: str) -> JSONValue:
    """The value of one JSON text; raises `ValueError` if there is text after it."""
    # Faster than `JSONDecoder.decode`, which searches for white space with regular expressions.
    if text[:1] in _WHITE_SPACE:
        text = text.lstrip(_WHITE_SPACE)
    value: JSONValue
    try:
        value, end = scan(text, 0)
    except StopIteration as stop:
        raise JSONDecodeError("Expecting value", text, stop.value) from None
    if end != len(text) and text[end:].strip(_WHITE_SPACE):
        raise CodecError("text after the end of the JSON value")
    return value


class StandardCodec:
    """The codec on Python's `json`, made strict: no NaN, no infinities, only JSON types.

    Strings are encoded as UTF-8. Lone surrogates have no UTF-8 form and are escaped.
    """

    __slots__ = ()

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text."""
        return _one_text(_SCAN, str(data, "utf-8"))

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value."""
        if not _is_plain(value):
            _refuse_foreign_keys(value)
        try:
            return "".join(_CHUNKS(value, 0)).encode()
        except UnicodeEncodeError:
            return _ASCII_ENCODER.encode(value).encode()

    def __deepcopy__(self, memo: object) -> StandardCodec:
        return self


def _chunks(encoder: JSONEncoder) -> Callable[[JSONValue, int], Iterable[str]]:
    """The function behind `encoder.iterencode`, which would create it again for each value.

    An interpreter without the compiled encoder gets `iterencode` itself.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _level: encoder.iterencode(value)
    return cast(
        Callable[[JSONValue, int], Iterable[str]],
        make(None, encoder.default, encode_basestring, None, ":", ",", False, False, False),
    )


_STRICT: Final[dict[str, Any]] = {
    "separators": (",", ":"),
    "allow_nan": False,
    "check_circular": False,  # a cycle raises RecursionError, which callers handle as a refusal
}
_ENCODER: Final = JSONEncoder(ensure_ascii=False, **_STRICT)
_ASCII_ENCODER: Final = JSONEncoder(ensure_ascii=True, **_STRICT)
_DECODER: Final = JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_float)
_CHUNKS: Final = _chunks(_ENCODER)
_SCAN: Final = _scanner(_DECODER)
STANDARD_CODEC: Final = StandardCodec()


# ------------------------------------------------------------------------------- another codec

kind_of: Final = cast(Callable[[object], Any], type)
"""The class of a value; the interpreter runs `type` faster than `value.__class__`."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})


def _is_plain(value: Any) -> bool:
    """Whether a value has only exact JSON types (no subclasses): all codecs encode it equally."""
    kind = kind_of(value)
    if kind is dict:
        for key, item in value.items():
            if kind_of(key) is not str:
                return False
            kind = kind_of(item)
            if kind is not str and kind not in _SCALARS and not _is_plain(item):
                return False
        return True
    if kind is list:
        for item in value:  # faster than `all()`
            kind = kind_of(item)
            if kind is not str and kind not in _SCALARS and not _is_plain(item):
                return False
        return True
    return kind in _SCALARS or (kind is float and isfinite(value))


def _refuse_foreign_keys(value: Any) -> None:
    """Raise `TypeError` for keys that are no strings.

    The standard encoder would turn them into strings, and perhaps two keys into one.
    """
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise TypeError(f"the keys of an object are strings, not {key!r}")
            _refuse_foreign_keys(item)
    elif isinstance(value, list | tuple):
        for item in cast("Iterable[object]", value):
            _refuse_foreign_keys(item)


class MsgspecCodec:
    """The codec on the package `msgspec` (extra `fast`): the same values and refusals, faster.

    Raises:
        ModuleNotFoundError: The extra is not installed.
    """

    __slots__ = ("_decode", "_encode")

    def __init__(self) -> None:
        try:
            import msgspec  # imported only for those who use this codec
        except ModuleNotFoundError:
            text = "MsgspecCodec needs msgspec: pip install 'sansmcp[fast]'"
            raise ModuleNotFoundError(text, name="msgspec") from None

        self._decode: Final = msgspec.json.Decoder().decode
        self._encode: Final = msgspec.json.Encoder().encode

    def decode(self, data: Data) -> JSONValue:
        """The value of one UTF-8 JSON text."""
        try:
            value: JSONValue = self._decode(data)
            return value
        except (ValueError, RecursionError):
            return STANDARD_CODEC.decode(data)

    def encode(self, value: JSONValue) -> bytes:
        """The compact UTF-8 text of a value."""
        try:
            if _is_plain(value):
                return self._encode(value)
        except (ValueError, OverflowError, RecursionError):
            pass
        return STANDARD_CODEC.encode(value)

    def __deepcopy__(self, memo: object) -> MsgspecCodec:
        return self


# ------------------------------------------------------------------------------------- limits

_UNMARKED: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: +1 and -1
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_SAMPLES: Final = 64


def depth_of(data: bytes | bytearray) -> int:
    """The depth of nested brackets in a JSON text, counted without recursion in linear time."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A pair of quotes without a bracket between them can be removed: it holds no bracket.
    marks = data.translate(None, _UNMARKED).replace(b'""', b"")
    outside = b"".join(marks.split(b'"')[::2])
    return max(accumulate(array("b", outside.translate(_STEPS))), default=0)


_SHORT_BYTES: Final = 2048


def _has_more_openings(data: bytes | bytearray, limit: int) -> bool:
    """Whether a text has more than `limit` opening brackets, in strings or not.

    In a long text `find` is about twenty times as fast as `count`, and the loop ends at the limit.
    In a short text one call of `count` is faster than several of `find`.
    """
    if len(data) <= _SHORT_BYTES:
        return data.count(b"[") + data.count(b"{") > limit
    left = limit
    for opening in (b"[", b"{"):
        at = data.find(opening)
        while at >= 0:
            left -= 1
            if left < 0:
                return True
            at = data.find(opening, at + 1)
    return False


class BoundedDecoder:
    """Decodes JSON with a codec, within limits on depth and on digits of integers.

    Attributes:
        unlimited: A number of bytes. A text of at most this size cannot break a limit (or its
            brackets are not closed, and it is no JSON): the codec may decode it directly.
    """

    __slots__ = ("_codec", "_max_depth", "_max_digits", "unlimited")

    def __init__(self, codec: Codec, max_depth: int, max_digits: int) -> None:
        self._codec: Final = codec
        self._max_depth: Final = max_depth
        self._max_digits: Final = max_digits
        self.unlimited: Final = min(2 * max_depth, max_digits)

    def decode(self, data: bytes | bytearray) -> JSONValue:
        """The value of one JSON text. Raises `ValueError` or `RecursionError`."""
        # A text with few opening brackets cannot be deep: most texts need no exact count.
        limit = self._max_depth
        if _has_more_openings(data, limit):
            depth = depth_of(data)
            if depth > limit:
                text = f"nested {depth} deep; at most {limit} are accepted"
                raise CodecError(text, "OWN-002")
        if len(data) > self._max_digits and self._may_have_long_integer(data):
            return self._decode_counting_digits(data)
        return self._codec.decode(data)

    def _may_have_long_integer(self, data: bytes | bytearray) -> bool:
        # A long run of digits is visible in every stride-th byte: nearly no text needs a full scan.
        run = self._max_digits + 1
        stride = run // _SAMPLES
        if stride > 1 and b"0" * _SAMPLES not in data[::stride].translate(_DIGITS):
            return False
        return b"0" * run in data.translate(_DIGITS)

    def _decode_counting_digits(self, data: bytes | bytearray) -> JSONValue:
        limit = self._max_digits

        def parse_int(text: str) -> int:
            if len(text.lstrip("-")) > limit:
                raise CodecError(f"an integer has more than {limit} digits", "OWN-003")
            return int(text)

        decoder = JSONDecoder(
            parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=parse_int
        )
        return _one_text(_scanner(decoder), str(data, "utf-8"))


def refusal(error: ValueError | RecursionError) -> CodecError:
    """The error of any decoder as a `CodecError`, which names the rule."""
    if isinstance(error, CodecError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return CodecError("not UTF-8")
    if isinstance(error, RecursionError):
        # Reached only with a `max_json_depth` above the recursion limit of the interpreter.
        return CodecError("nested deeper than the interpreter can parse", "OWN-002")
    return CodecError(f"not JSON: {error}")


def is_no_json(error: ValueError | RecursionError) -> bool:
    """Whether an error of a decoder proves that the text is no JSON for any parser."""
    if isinstance(error, CodecError):
        return error.rule == "ERR-001" and not isinstance(error, _TooLarge)
    return isinstance(error, JSONDecodeError | UnicodeDecodeError)
