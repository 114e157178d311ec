"""Clients that mean harm: `python -m benchmarks.attackers ATTACK --port PORT --number NUMBER`.

An attacker prints `ready` when it is at full strength. What it holds then it lets go when its
standard input ends; its last line says what came of it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from ._descriptors import raise_limit
from ._http_client import HEAD, Caller, deleted, got, tool_call

_MB: Final = 1_000_000
_PIECE: Final = b" " * 65_536
_CHUNK: Final = b"10000\r\n" + _PIECE + b"\r\n"
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, EOFError, OSError)


class Attack:
    """What all clients of one attack share."""

    def __init__(self, port: int, number: int) -> None:
        self.number = number
        self.let_go = trio.Event()
        self.seen = Counter[str]()
        self._port = port
        self._ready = 0

    async def caller(self) -> Caller:
        """A new connection."""
        stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        return Caller(stream)

    def at_strength(self, share: int = 1) -> None:
        """So many more are where they are to be."""
        self._ready += share
        if self._ready == self.number:
            print("ready", flush=True)

    async def everyone(
        self, client: Callable[[Attack], Awaitable[None]], *, stays: bool = False
    ) -> None:
        """Run this many clients at once. One that is thrown out has had its effect.

        When all is let go, those are ended that have not `stays`.
        """

        async def one() -> None:
            try:
                await client(self)
            except _GONE:
                self.seen["closed"] += 1

        async def leave() -> None:
            await self.let_go.wait()
            if not stays:
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave)
            async with trio.open_nursery() as clients:
                for _ in range(self.number):
                    clients.start_soon(one)
            nursery.cancel_scope.cancel()


# ----------------------------------------------------------------------------------- the clients


async def crawl(attack: Attack) -> None:
    """Send a head byte by byte, until the server has had enough."""
    caller = await attack.caller()
    attack.at_strength()
    async with trio.open_nursery() as nursery:

        async def write() -> None:
            await caller.stream.send_all(HEAD)
            while True:
                await caller.stream.send_all(b"x")
                await trio.sleep(1)

        nursery.start_soon(write)
        status, _ = await caller.response()
        attack.seen[str(status)] += 1
        nursery.cancel_scope.cancel()


async def pour(attack: Attack, head: bytes, piece: bytes, pieces: int) -> None:
    """Send a body of 100 MB, whatever the server says, and read in the end what it has said."""
    caller = await attack.caller()
    attack.at_strength()
    try:
        await caller.stream.send_all(HEAD + head)
        for _ in range(pieces):
            await caller.stream.send_all(piece)
    except trio.BrokenResourceError:
        attack.seen["cut short"] += 1
    status, _ = await caller.response()
    attack.seen[str(status)] += 1


async def stall(attack: Attack) -> None:
    """Send 15 MB of a body that is announced with 16, and then no more."""
    caller = await attack.caller()
    attack.at_strength()
    async with trio.open_nursery() as nursery:

        async def write() -> None:
            await caller.stream.send_all(HEAD + b"content-length: 16000000\r\n\r\n")
            for _ in range(15 * _MB // len(_PIECE)):
                await caller.stream.send_all(_PIECE)

        nursery.start_soon(write)
        status, _ = await caller.response()
        attack.seen[str(status)] += 1
        nursery.cancel_scope.cancel()


async def listen(attack: Attack) -> None:
    """Open a session and its stream, and stay."""
    session = await (caller := await attack.caller()).open_session()
    assert session is not None
    status, _ = await caller.ask(got(session))
    attack.seen[str(status)] += 1
    attack.at_strength()
    await caller.event()
    attack.seen["heard"] += 1
    await attack.let_go.wait()
    await caller.stream.aclose()


async def ignore(attack: Attack, request: bytes) -> None:
    """Ask for much, and read none of it, until the server has had enough."""
    caller = await attack.caller()
    await caller.stream.send_all(request)
    attack.at_strength()
    while True:  # a connection that was given up cannot be written to
        await trio.sleep(1)
        await caller.stream.send_all(b"\r\n")


async def come_back(attack: Attack) -> None:
    """Open a session, and its stream over and over again."""
    session = await (caller := await attack.caller()).open_session()
    assert session is not None
    attack.at_strength()
    for _ in range(5):
        await caller.stream.aclose()
        caller = await attack.caller()
        status, _ = await caller.ask(got(session))
        attack.seen[str(status)] += 1


# ----------------------------------------------------------------------------------- the attacks


async def open_sessions(attack: Attack) -> None:
    """Open sessions and leave them, from 20 connections; then end them."""
    share = attack.number // 20

    async def open_some() -> None:
        caller = await attack.caller()
        ids: list[bytes] = []
        for _ in range(share):
            session = await caller.open_session()
            if session is None:
                attack.seen["refused"] += 1
            else:
                attack.seen["opened"] += 1
                ids.append(session)
            attack.at_strength()
        await attack.let_go.wait()
        for session in ids:
            await caller.ask(deleted(session))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(open_some)


async def open_streams(attack: Attack) -> None:
    """Listen, all at once; and have the server tell all of them something."""

    async def tell() -> None:
        await attack.let_go.wait()
        await (await attack.caller()).ask(tool_call("change"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell)
        await attack.everyone(listen, stays=True)


def everyone(client: Callable[[Attack], Awaitable[None]]) -> Callable[[Attack], Awaitable[None]]:
    """The attack of as many such clients."""
    return lambda attack: attack.everyone(client)


_LENGTH: Final = b"content-length: 100000000\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n\r\n"
_PIECES: Final = 100 * _MB // len(_PIECE)

ATTACKS: Final[dict[str, Callable[[Attack], Awaitable[None]]]] = {
    "heads": everyone(crawl),
    "announced": everyone(partial(pour, head=_LENGTH, piece=_PIECE, pieces=_PIECES)),
    "chunked": everyone(partial(pour, head=_CHUNKED, piece=_CHUNK, pieces=_PIECES)),
    "stalled": everyone(stall),
    "sessions": open_sessions,
    "streams": open_streams,
    "unread": everyone(partial(ignore, request=tool_call("size", size=300_000))),
    "flood": everyone(partial(ignore, request=tool_call("flood", token=1))),
    "storm": everyone(come_back),
}


async def run(name: str, port: int, number: int) -> None:
    """Attack until all is done, or the standard input has ended and what was held is let go."""
    attack = Attack(port, number)

    async def wait_for_end() -> None:
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        attack.let_go.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_end)
        await ATTACKS[name](attack)
        nursery.cancel_scope.cancel()
    print(", ".join(f"{count} {what}" for what, count in sorted(attack.seen.items())), flush=True)


def main() -> None:
    """Attack with as many descriptors as it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    options = parser.parse_args()
    raise_limit(options.number + 100)
    trio.run(run, options.attack, options.port, options.number)


if __name__ == "__main__":
    main()
