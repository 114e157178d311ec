"""Long lines in small pieces: the cost per byte must depend neither on the line nor on the pieces.

The measured time is that of `receive_data` for every piece, and of `next_event` until there is
none.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

from sansmcp import Config, RequestReceived, ServerConnection

from . import _traffic
from ._measure import (
    Effort,
    Rounds,
    Row,
    clock,
    flatness,
    interleaved,
    median_and_spread,
    ratios,
)

KIB: Final = 1024
MIB: Final = 1024 * KIB
SIZES: Final = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
CHUNKS: Final = ((1, "1 B"), (64, "64 B"), (64 * KIB, "64 KiB"))
LARGE: Final = ((64 * KIB, "64 KiB"), (MIB, "1 MiB"), (16 * MIB, "16 MiB"), (64 * MIB, "64 MiB"))
_FLAT: Final = 1.25


def _text(size: int) -> Any:
    """One long string with a line break, escaped in JSON, every 60 characters."""
    return ("The quick brown fox jumps over the lazy dog, time and again.\n" * (size // 61))[:size]


def _records(size: int) -> Any:
    """Many small objects."""
    return [
        {"id": number, "name": f"item {number}", "price": number / 8, "tags": ["a", "b"]}
        for number in range(size // 68)
    ]


CONTENTS: Final[dict[str, Callable[[int], Any]]] = {"one text": _text, "records": _records}


def line_of(content: str, size: int) -> tuple[bytes, bytes]:
    """A request line of about `size` bytes, as the part before its id and the part after it."""
    params = {"name": "import", "arguments": {"content": CONTENTS[content](size)}}
    tail = b',"method":"tools/call","params":%b}\n' % json.dumps(params).encode()
    return b'{"jsonrpc":"2.0","id":', tail


def receive(
    server: ServerConnection, ids: count[int], line: tuple[bytes, bytes], chunk: int, lines: int
) -> float:
    """Nanoseconds a byte."""
    head, tail = line
    spent = size = 0
    for _ in range(lines):
        data = head + b"%d" % next(ids) + tail
        pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]
        size += len(data)
        start = clock()
        for piece in pieces:
            server.receive_data(piece)
        event = server.next_event()
        assert server.next_event() is None
        spent += clock() - start
        assert isinstance(event, RequestReceived)
        server.send_result(event.request, {"content": []})
        server.data_to_send()
    return spent / size


def load(line: tuple[bytes, bytes], lines: int) -> float:
    """Bare `json.loads` of the same text; nanoseconds a byte."""
    data = line[0] + b"12345" + line[1]
    start = clock()
    for _ in range(lines):
        json.loads(data)
    return (clock() - start) / (len(data) * lines)


def _server() -> ServerConnection:
    return _traffic.open_server(Config(max_message_bytes=128 * MIB))


def _flat_row(effort: Effort, content: str, chunk: int, words: str) -> Row:
    """Whether the cost per byte stays the same while lines grow."""
    single = chunk == 1
    # What is built from many small objects costs more per byte the more of them there are, in the
    # bare parser too (collector, caches): there the bound would judge Python, not this library.
    own = content == "one text"
    # The faster the bytes go, the more of them it takes for a measurement that can be trusted.
    least = 256 * KIB if single else 4 * MIB if own else MIB
    cases: dict[str, Callable[[], float]] = {}
    bare: dict[str, Callable[[], float]] = {}
    sizes = SIZES[: effort.pick(4, 2)]
    for size in sizes:
        lines = max(1, least // size)
        line = line_of(content, size)
        cases[f"{size}"] = partial(receive, _server(), count(10_000), line, chunk, lines)
        bare[f"bare {size}"] = partial(load, line, lines)
    rounds = interleaved(cases | bare, effort.pick(5 if single else 25, 1 if single else 3))
    costs = [rounds[name] for name in cases]
    floors = [rounds[name] for name in bare]
    parts, bare_parts = (
        ", ".join(f"{statistics.median(values):.3g}" for values in some) for some in (costs, floors)
    )
    lengths = ", ".join(f"{size // KIB}" for size in sizes)
    return Row(
        name=f"growth with the line, chunks of {words}, {content}",
        codec="json",
        direction="to server",
        value=flatness(costs),
        unit="x",
        bound=_FLAT if own else None,
        spread=f"highest over lowest; lines of {lengths} KiB: {parts} ns/B; "
        f"bare json.loads {flatness(floors):.2f} x: {bare_parts}",
    )


def _large_rows(effort: Effort, kept: Rounds, content: str) -> list[Row]:
    found: list[Row] = []
    for size, words in LARGE[: effort.pick(4, 2)]:
        line = line_of(content, size)
        lines = max(1, MIB // size)
        cases: dict[str, Callable[[], float]] = {
            "floor": partial(load, line, lines),
            "ours": partial(receive, _server(), count(10_000), line, 64 * KIB, lines),
        }
        rounds = interleaved(cases, effort.pick(3 if size > MIB else 25, 1))
        ratio, spread = median_and_spread(ratios(rounds["ours"], rounds["floor"]))
        bare = statistics.median(rounds["floor"])
        found.append(
            Row(
                name=f"line of {words} beside bare json.loads, {content}",
                codec="json",
                direction="to server",
                value=ratio,
                unit="x",
                bound=None,
                spread=f"{spread}; floor {bare:.3g} ns/B",
            )
        )
        for name, values in rounds.items():
            kept[f"{content} {words} {name}, seconds a byte"] = [ns / 1e9 for ns in values]
    return found


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Growth with the line at three chunk sizes, then large lines beside the bare parser."""
    flat = [_flat_row(effort, "one text", chunk, words) for chunk, words in CHUNKS]
    flat.append(_flat_row(effort, "records", *CHUNKS[-1]))
    return flat + [row for content in CONTENTS for row in _large_rows(effort, kept, content)]
