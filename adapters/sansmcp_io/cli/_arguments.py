"""Reads values of the command line: JSON, environment variables, seconds."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sansmcp import Config, JSONObject

from ._errors import UsageError
from ._output.visible import visible, width
from ._values import object_of

DEFAULT_MAX_MESSAGE_BYTES: Final = Config().max_message_bytes
_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PORTS: Final = 65_536
_MOST_DIGITS: Final = 19
_AROUND: Final = 30
"""Characters shown on each side of the place where JSON is wrong."""


def read_object(given: str) -> JSONObject:
    """Read the JSON object in an argument, in a file (`@file`) or on standard input (`-`).

    Raises:
        UsageError: The argument cannot be read, or is not a JSON object.
    """
    text, where = _read(given)
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant, parse_float=_refuse_infinity)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(
            f"the JSON is not valid: {error.msg} at {place} of {where}",
            *_point_at(text, error),
            *(["an empty text is no JSON: leave it out, or write {}"] if not text.strip() else []),
            *_quoting(given, text),
        ) from None
    except RecursionError:
        raise UsageError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"the JSON is not valid: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"the JSON must be an object such as {{}}, not {_kind(value)}")
    return object_of(value)


def read_text(given: str) -> str:
    """The text in a file (`@file`) or on standard input (`-`).

    Raises:
        UsageError: It cannot be read.
    """
    return _read(given, "the text")[0]


def _read(given: str, what: str = "the JSON") -> tuple[str, str]:
    if given == "-":
        return _decode(sys.stdin.buffer.read(), "standard input"), "standard input"
    if given.startswith("@"):
        path = given[1:]
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(
                f"{what} cannot be read from {path!r}: {error.strerror}",
                "@ is followed by the name of a file; JSON itself is given without it",
            ) from None
        except ValueError as error:  # a NUL in the name
            raise UsageError(f"{what} cannot be read from {path!r}: {error}") from None
        return _decode(data, path), path
    return check_text(given, "the JSON"), "the argument"


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"the JSON is no UTF-8, at byte {error.start} of {where}") from None


def check_text(given: str, what: str) -> str:
    """Check that an argument is UTF-8: other text has no form in JSON.

    Raises:
        UsageError: It is not.
    """
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is no UTF-8, at character {error.start}") from None
    return given


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number there")


def _refuse_infinity(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large a number")
    return number


def _point_at(text: str, error: json.JSONDecodeError) -> list[str]:
    """The wrong line, or the part near the mistake, and a mark below the place."""
    begin = text.rfind("\n", 0, error.pos) + 1
    end = text.find("\n", error.pos)
    line = text[begin : len(text) if end < 0 else end].removesuffix("\r")
    column = error.pos - begin
    if not line.strip():
        return []
    start = max(column - _AROUND, 0)
    before = ("..." if start else "") + visible(line[start:column])
    after = visible(line[column : column + _AROUND])
    return [f"  {before}{after}", f"  {' ' * width(before)}^"]


def _quoting(given: str, text: str) -> list[str]:
    """A hint for JSON that has no quotes: the shell has probably removed them."""
    if given == text and text.strip() and '"' not in text:
        return ['names and texts in JSON stand in double quotes: for a shell write \'{"a": "b"}\'']
    return []


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def environment(given: Iterable[str]) -> dict[str, str]:
    """The variables of `--env`: `NAME=VALUE`, or `NAME` for the value it has here.

    Raises:
        UsageError: There is no name, or it has no value here.
    """
    found: dict[str, str] = {}
    for assignment in given:
        name, assigned, value = assignment.partition("=")
        if not name or "\0" in assignment:
            raise UsageError(f"--env takes NAME=VALUE or NAME, not {assignment!r}")
        if not assigned:
            if name not in os.environ:
                raise UsageError(
                    f"--env {name}: there is no such variable here to take the value from"
                )
            value = os.environ[name]
        found[name] = value
    return found


def seconds(given: str) -> float:
    """A time greater than zero; `inf` is without limit. The type of an option."""
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise argparse.ArgumentTypeError(f"seconds are a number greater than 0, not {given!r}")
    return value


def task_time(given: str) -> bool | float:
    """The seconds for which a task is to be kept; True: that is not said. The type of an option."""
    if not given:
        return True
    time = seconds(given)
    if time == math.inf:
        raise argparse.ArgumentTypeError("a task is kept for a number of seconds, not for inf")
    return time


def check_url(given: str) -> str:
    """The URL of a server on HTTP.

    Raises:
        UsageError: The argument is no URL, or contains a password, which other users could see.
    """
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{given!r} is no URL: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("a URL with a name or password in it is not taken")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError(f"{given!r} is no URL of a server, such as http://127.0.0.1:8000/mcp")
    if not given.isascii() or any(not "!" <= character <= "~" for character in given):
        raise UsageError(f"{given!r} has characters that no URL has")
    return given


def headers(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Names and values of `--header 'NAME: VALUE'`; `@FILE` has one on each line.

    An error does not show the value, which may be a secret.

    Raises:
        UsageError: An option is not valid, or a file cannot be read.
    """
    lines: list[str] = []
    for text in given:
        if text.startswith("@"):
            lines += [line for line in _read(text)[0].splitlines() if line.strip()]
        else:
            lines.append(text)
    found: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not _FIELD_NAME.fullmatch(name):
            raise UsageError("--header takes 'NAME: VALUE', or @FILE with such lines")
        if not all(character in "\t " or "!" <= character <= "~" for character in value):
            raise UsageError(f"--header {name}: the value is not of visible ASCII characters")
        found.append((name, value))
    return tuple(found)


def port(given: str) -> int:
    """The number of a port. The type of an option."""
    if given.isascii() and given.isdigit() and int(given) < _PORTS:
        return int(given)
    raise argparse.ArgumentTypeError(f"a port is a number below {_PORTS}, not {given!r}")


def count_of_bytes(given: str) -> int:
    """A number of bytes greater than zero. The type of an option."""
    if given.isascii() and given.isdigit() and len(given) < _MOST_DIGITS and int(given) > 0:
        return int(given)
    raise argparse.ArgumentTypeError(f"bytes are a whole number greater than 0, not {given!r}")
