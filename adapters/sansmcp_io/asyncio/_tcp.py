"""TCP connections on asyncio, of which none is left open when the caller is cancelled.

`loop.create_connection` with `happy_eyeballs_delay` is not used: on CPython 3.11 a cancelled caller
leaves its sockets open, uvloop does not have that argument, and with `eager_task_factory` an
assertion inside CPython 3.12 fails. Without any such delay, a host whose IPv6 addresses do not
answer could not be reached within the time limit.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from contextlib import suppress
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

from ._tasks import end_all

_DELAY_SECONDS: Final = 0.25
"""Seconds after which the next address is tried as well (RFC 8305, section 5)."""

_Address: TypeAlias = tuple[int, int, int, str, Any]


async def connect_tcp(host: str, port: int) -> socket.socket:
    """Connect to the address of a host that answers first, and return the socket.

    Raises:
        OSError: The name is unknown, or no address has answered.
    """
    addresses = await _addresses_of(host, port)
    if len(addresses) == 1:
        return await _connect(addresses[0])
    attempts: list[asyncio.Task[socket.socket]] = []
    winner: socket.socket | None = None
    try:
        try:
            first = await _first_of(addresses, attempts)
        finally:
            await end_all(attempts)
        winner = first
        return winner
    finally:  # the caller may have been cancelled when one or two were connected
        for attempt in attempts:
            if not attempt.cancelled() and attempt.exception() is None:
                connected = attempt.result()
                if connected is not winner:
                    connected.close()


async def _addresses_of(host: str, port: int) -> list[_Address]:
    """The addresses of a host, those of IPv6 and IPv4 in turn (RFC 8305, section 4)."""
    try:  # an address needs no lookup, and so no thread
        found: list[Any] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except OSError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    families: dict[int, list[_Address]] = {}
    for address in found:
        families.setdefault(address[0], []).append(address)
    in_turn = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in in_turn if address is not None]


async def _first_of(
    addresses: list[_Address], attempts: list[asyncio.Task[socket.socket]]
) -> socket.socket:
    """Try all addresses until one is connected. Every attempt is added to `attempts`.

    Raises:
        OSError: No address could be connected to.
    """
    loop = asyncio.get_running_loop()
    untried, running = deque(addresses), set[asyncio.Task[socket.socket]]()
    while untried or running:
        if untried:
            attempt = loop.create_task(_connect(untried.popleft()))
            attempts.append(attempt)
            running.add(attempt)
        seconds = _DELAY_SECONDS if untried else None
        done, running = await asyncio.wait(
            running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for attempt in done:
            if attempt.exception() is None:
                return attempt.result()
    failures = [attempt.exception() for attempt in attempts]
    raise OSError("; ".join(dict.fromkeys(map(str, failures)))) from failures[0]


async def _connect(address: _Address) -> socket.socket:
    family, kind, protocol, _, where = address
    loop = asyncio.get_running_loop()
    connecting = socket.socket(family, kind, protocol)
    try:
        connecting.setblocking(False)
        await loop.sock_connect(connecting, where)
    except BaseException:
        # A cancelled loop stops watching one turn later. By then the number of the descriptor may
        # belong to another socket, which would not be watched then.
        with suppress(NotImplementedError):  # Windows: nothing is watched there
            loop.remove_writer(connecting)
        connecting.close()
        raise
    return connecting
