"""Clients of one era and of both with servers of each kind, on real processes.

Source: MCP 2026-07-28, basic/versioning, Compatibility Matrix; basic/transports/stdio, Backward
Compatibility. `docs/compatibility.md` shows what comes of it.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import (
    Call,
    ConnectionLost,
    InvalidAnswer,
    PeerError,
    RequestTimeout,
    StartFailed,
)
from tests.interop import peers
from tests.interop.npm.inspector import inspect
from tests.interop.peers import ROOT, Peer
from tests.interop.talk import talking_to
from tests.support.programs.era_server import ERAS

LEGACY: Final = LEGACY_REVISIONS[-1]
MODERN: Final = MODERN_REVISIONS[-1]
FAILS: Final = None
OUTCOMES: Final[Mapping[tuple[str, str], str | None]] = {
    ("modern", "modern"): MODERN,
    ("modern", "legacy"): FAILS,
    ("modern", "dual-era"): MODERN,
    ("legacy", "modern"): FAILS,
    ("legacy", "legacy"): LEGACY,
    ("legacy", "dual-era"): LEGACY,
    ("dual-era", "modern"): MODERN,
    ("dual-era", "legacy"): LEGACY,
    ("dual-era", "dual-era"): MODERN,
}
"""The specification's matrix: for a client and a server the revision of every one of its cells."""
SECONDS: Final = 30.0
"""More than any cell may take. But for the few that are about silence none has a deadline."""
PROBE: Final = 0.5
"""Seconds after which a silent server is given up where its silence is what is tried."""


@attrs.frozen
class Outcome:
    """The outcome for a client: the revision at which it was served, or its error."""

    revision: str | None = None
    error: str = ""
    text: str = ""


Try: TypeAlias = Callable[[Path], Outcome]
"""Starts the processes of a cell, with a folder for what they write."""


@attrs.frozen
class Cell:
    """A client and a server, and the expected outcome: a revision, or None for a failure."""

    table: str
    client: str
    server: str
    expected: str | None
    run: Try

    def __str__(self) -> str:
        return f"{self.table}: {self.client} - {self.server}"


# ------------------------------------------------------------------------- our client


async def _converse(speaks: str, server: Peer, options: Mapping[str, Any]) -> Outcome:
    """Open, list the tools, and call those that return the revision and ask for roots."""

    def on_request(call: Call) -> JSONObject:
        assert call.method == "roots/list"
        return {"roots": [{"uri": ROOT.as_uri()}]}

    try:
        with trio.fail_after(SECONDS):
            async with talking_to(
                server,
                revisions=ERAS[speaks],
                capabilities={"roots": {}},
                on_request=on_request,
                **options,
            ) as talk:
                revision = talk.client.peer.revision
                names = await talk.names("tools/list")
                if "revision" in names:
                    assert await talk.text("revision") == revision
                for name in {"ask", "ask_roots"}.intersection(names):
                    assert await talk.text(name) == ROOT.as_uri()
                return Outcome(revision)
    except (PeerError, ConnectionLost, RequestTimeout, InvalidAnswer, StartFailed) as error:
        return Outcome(None, type(error).__name__, str(error))


def ours(
    speaks: str,
    server: Callable[[], Peer],
    reports: Collection[str] = (),
    accuses: Collection[str] = (),
    *,
    probe_timeout: float = math.inf,
    start_timeout: float = math.inf,
    hint: str | None = None,
) -> Try:
    """A client of ours with a server, whose program is looked up only when it is needed."""
    options: Mapping[str, Any] = {
        "reports": reports,
        "accuses": accuses,
        "probe_timeout": probe_timeout,
        "start_timeout": start_timeout,
        "hint": hint,
    }
    return lambda folder: trio.run(_converse, speaks, server(), options)


def our_server(speaks: str) -> Peer:
    command = (sys.executable, "-m", "tests.support.programs.era_server", speaks)
    return Peer("sansmcp", command, is_foreign=False)


# ---------------------------------------------------------------------- other people's clients


def with_mcp(python: Callable[[], Path | str], mode: str, server: str) -> Try:
    """The client of the `mcp` package that this Python has, with a server of ours."""

    def run(folder: Path) -> Outcome:
        # The package gives a server few variables of its own, so this one is run by its path.
        script = ROOT / "tests" / "support" / "programs" / "era_server.py"
        client = [python(), ROOT / "tests" / "peers" / "mcp_opening.py", mode]
        done = subprocess.run(
            [*client, sys.executable, script, server],
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        if "error" in told:
            return Outcome(None, told["error"], told["text"])
        assert told["calls"] == [told["revision"], "file:///peer/root"]
        return Outcome(told["revision"])

    return run


def with_inspector(mode: str, server: str) -> Try:
    """The inspector, which prints no revision except that in our server's response."""

    def run(folder: Path) -> Outcome:
        call = ("--method", "tools/call", "--tool-name", "revision", "--protocol-era", mode)
        command = tuple(str(part) for part in our_server(server).command[1:])
        status, printed = inspect(folder, command, *call)
        if status != 0:
            return Outcome(None, "error", printed["error"]["message"])
        return Outcome(printed["result"]["content"][0]["text"])

    return run


# -------------------------------------------------------------------------------- the tables

OURS: Final = "ours"
SERVERS: Final = "servers"
CLIENTS: Final = "clients"
ODD: Final = "odd"

SERVER_PEERS: Final[Mapping[str, tuple[str, Callable[[], Peer]]]] = {
    "`mcp` 2": ("dual-era", peers.mcp_server),
    "`mcp` 2 that refuses the handshake": (
        "modern",
        lambda: peers.mcp_server().with_arguments("modern"),
    ),
    "`mcp` 2 that knows the handshake only": (
        "legacy",
        lambda: peers.mcp_server().with_arguments("legacy"),
    ),
    "`mcp` 1 (`mcp-server-time`)": ("legacy", peers.time),
    "server-everything": ("legacy", peers.everything),
    "server-filesystem": ("legacy", lambda: peers.filesystem().with_arguments(ROOT)),
    "server-memory": ("legacy", peers.memory),
}
"""The servers of other people: what each speaks, and where it is."""


def _python_2() -> str:
    return sys.executable


def _python_1() -> str | Path:
    return peers.time().command[0]


CLIENT_PEERS: Final[Mapping[str, tuple[str, Callable[[str], Try]]]] = {
    '`mcp` 2, `mode="2026-07-28"`': ("modern", partial(with_mcp, _python_2, MODERN)),
    '`mcp` 2, `mode="legacy"`': ("legacy", partial(with_mcp, _python_2, "legacy")),
    '`mcp` 2, `mode="auto"`': ("dual-era", partial(with_mcp, _python_2, "auto")),
    "`mcp` 1": ("legacy", partial(with_mcp, _python_1, "legacy")),
    "inspector, `--protocol-era modern`": ("modern", partial(with_inspector, "modern")),
    "inspector, `--protocol-era legacy`": ("legacy", partial(with_inspector, "legacy")),
    "inspector, `--protocol-era auto`": ("dual-era", partial(with_inspector, "auto")),
}
"""The clients of other people: what each speaks, and how it meets a server of ours."""

HINTED: Final = f"dual-era, hint {LEGACY}"


@attrs.frozen
class Odd:
    """A server with an odd way to begin.

    Attributes:
        arguments: Of `tests/support/programs/unusual_openings.py`.
        speaks: What it speaks, as far as its oddity lets it.
        differs: What else comes of it, by client, than the specification's matrix says.
        reports: What a client has to report that probes it.
        is_noisy: Whether it says what is no message, which every client and observer reports.
        is_silent: Whether it leaves the probe without an answer, so that time decides.
    """

    arguments: tuple[str, ...]
    speaks: str
    differs: Mapping[str, str | None] = attrs.field(factory=dict[str, str | None])
    reports: frozenset[str] = frozenset()
    is_noisy: bool = False
    is_silent: bool = False

    def peer(self) -> Peer:
        script = ROOT / "tests" / "support" / "programs" / "unusual_openings.py"
        command: tuple[str | Path, ...] = (sys.executable, script, *self.arguments)
        return Peer("unusual_openings", command, is_foreign=False)


NOISE: Final = frozenset({"ERR-001", "OWN-017"})
NOISE_SEEN: Final = NOISE | {"STDIO-002"}
LATE: Final = frozenset({"CANC-011"})
ODD_SERVERS: Final[Mapping[str, Odd]] = {
    "dies of the probe (legacy)": Odd(("dying",), "legacy", {"dual-era": FAILS}),
    "leaves the probe without an answer (legacy)": Odd(("silent",), "legacy", is_silent=True),
    "refuses the probe after it was given up (legacy)": Odd(
        ("late",), "legacy", reports=LATE, is_silent=True
    ),
    "answers the probe after it was given up (dual-era)": Odd(
        ("late", "discovers"),
        "dual-era",
        {"modern": FAILS, "dual-era": LEGACY},
        reports=LATE,
        is_silent=True,
    ),
    "answers the probe after it was given up (modern)": Odd(
        ("slow",), "modern", {"modern": FAILS}, reports=LATE, is_silent=True
    ),
    "answers everything with `{}` (legacy)": Odd(
        ("obliging",), "legacy", reports=frozenset({"OWN-014"})
    ),
    "prints noise before it begins (legacy)": Odd(("noisy",), "legacy", is_noisy=True),
    "prints noise before it begins (dual-era)": Odd(
        ("noisy", "discovers"), "dual-era", is_noisy=True
    ),
}


def _odd_cell(name: str, odd: Odd, client: str) -> Cell:
    speaks = "dual-era" if client == HINTED else client
    hint = LEGACY if client == HINTED else None
    known = OUTCOMES[speaks, odd.speaks]
    if hint is not None and odd.speaks != "modern":
        known = hint  # it is taken at its word
    expected = odd.differs.get(client, known)
    reports = odd.reports if client == "dual-era" else frozenset[str]()
    run = ours(
        speaks,
        odd.peer,
        reports | NOISE if odd.is_noisy else reports,
        NOISE_SEEN if odd.is_noisy else (),
        probe_timeout=PROBE if odd.is_silent else math.inf,
        start_timeout=3 * PROBE if odd.is_silent and client == "modern" else math.inf,
        hint=hint,
    )
    return Cell(ODD, client, name, expected, run)


def cells() -> Iterator[Cell]:
    """Every cell of every table, row by row."""
    for client in ERAS:
        for server in ERAS:
            run = ours(client, partial(our_server, server))
            yield Cell(OURS, client, server, OUTCOMES[client, server], run)
    for server, (speaks, peer) in SERVER_PEERS.items():
        for client in ERAS:
            yield Cell(SERVERS, client, server, OUTCOMES[client, speaks], ours(client, peer))
    for client, (speaks, meets) in CLIENT_PEERS.items():
        for server in ERAS:
            yield Cell(CLIENTS, client, server, OUTCOMES[speaks, server], meets(server))
    for name, odd in ODD_SERVERS.items():
        for client in (*ERAS, HINTED):
            yield _odd_cell(name, odd, client)
