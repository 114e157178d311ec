"""Runs the official conformance suite on both sides: `python -m tests.conformance DIRECTORY`.

DIRECTORY has the suite and its Node, as `make conformance` installs them. The table that is printed
has a row for each scenario, of which the server's come first. The exit status is 0 if all that is
scored passes, and of the rest all but what is not attempted. Nothing is expected to fail: there is
no list of exceptions.
"""

import argparse
import json
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

SCORED: Final = {
    ("server", "2025-11-25"): 30,
    ("server", "2026-07-28"): 37,
    ("client", "2025-11-25"): 18,
    ("client", "2026-07-28"): 32,
}
"""How many scenarios that are attempted each revision requires: none may get lost."""
NOT_ATTEMPTED: Final = ("tasks-status-notifications",)
"""Scenarios that the suite itself skips."""
UNSCORED: Final = {
    ("server", "2026-07-28"): (
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-wire-fields",
        *NOT_ATTEMPTED,
    ),
}
"""Scenarios that no revision requires, most of them of extensions: none may get lost either."""
OLDER: Final = "2025-03-26"
"""A revision of which the suite requires nothing, with scenarios for clients of its servers."""
OLDER_SCENARIOS: Final = (
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
)
SUITE: Final = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SECONDS: Final = 300
_RUN: Final = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@attrs.frozen
class Row:
    """The result of one scenario."""

    leg: str
    revision: str
    scenario: str
    passed: int
    failed: int
    scored: bool
    findings: tuple[str, ...]

    @property
    def attempted(self) -> bool:
        return self.scenario not in NOT_ATTEMPTED

    @property
    def is_bad(self) -> bool:
        return self.attempted and (self.failed > 0 or self.passed == 0)

    @property
    def verdict(self) -> str:
        if not self.attempted:
            return "not attempted"
        return "FAILED" if self.is_bad else "ok"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_server(port: int, adapter: str) -> Generator[None, None, None]:
    """The server under test, in a process of its own."""
    command = [sys.executable, "-m", "tests.conformance.server", "--port", str(port)]
    command += ["--adapter", adapter]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 30
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the server for the conformance suite did not start")
                time.sleep(0.05)  # it says nothing when it is ready
            yield
            if process.poll() is not None:
                raise SystemExit("the server for the conformance suite has ended by itself")
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def required(suite: Path, leg: str, revision: str) -> set[str]:
    """The scenarios that a revision requires of one side, as the suite lists them."""
    text = (suite.parent.parent / "requirements" / f"{revision}.yaml").read_text()
    names = re.search(rf"^{leg}:\n((?:  - .+\n)+)", text, re.MULTILINE)
    assert names is not None
    return set(re.findall(r"  - (\S+)", names[1]))


def run(directory: Path, leg: str, revision: str, about: Sequence[str], results: Path) -> list[Row]:
    """Run all that a revision requires, and what is not scored for it.

    Args:
        directory: Where the suite is installed.
        leg: `server` or `client`: the side that is ours.
        revision: The set of scenarios.
        about: The arguments that say where our side is.
        results: A directory for what comes of it.
    """
    call_suite(directory, leg, *about, "--requirements", revision, "-o", results)
    scored = required(directory / SUITE, leg, revision)
    paths = sorted(results.rglob("checks.json"))
    rows = [row_of(leg, revision, path.parent, results, scored) for path in paths]
    return rows + missing(rows, leg, revision, scored)


def missing(rows: Iterable[Row], leg: str, revision: str, scored: set[str]) -> list[Row]:
    """A row for each scenario that the suite has not run: those of `scored` and `UNSCORED`."""
    known = {row.scenario for row in rows}
    wanted = scored.union(UNSCORED.get((leg, revision), ()))
    return [
        Row(leg, revision, name, 0, 0, name in scored, ("it was not run",))
        for name in sorted(wanted - known)
    ]


def run_older(directory: Path, about: Sequence[str], results: Path) -> list[Row]:
    """Run the scenarios of the older revision, none of which is scored."""
    for scenario in OLDER_SCENARIOS:
        named = ("--scenario", scenario, "--spec-version", OLDER)
        call_suite(directory, "client", *about, *named, "-o", results)
    paths = sorted(results.rglob("checks.json"))
    rows = [row_of("client", OLDER, path.parent, results, set()) for path in paths]
    known = {row.scenario for row in rows}
    lost = [name for name in OLDER_SCENARIOS if name not in known]
    return rows + [Row("client", OLDER, name, 0, 0, False, ("it was not run",)) for name in lost]


def call_suite(directory: Path, *arguments: str | Path) -> None:
    """Run the suite, whose verdict stands in its files."""
    (node,) = (directory / "node_modules").glob("node-*/bin/node")
    command = [node, directory / SUITE, *arguments]
    subprocess.run(command, check=False, capture_output=True, timeout=SECONDS)


def row_of(leg: str, revision: str, path: Path, results: Path, scored: set[str]) -> Row:
    match = _RUN.fullmatch(path.relative_to(results).as_posix())
    assert match is not None
    checks: list[dict[str, Any]] = json.loads((path / "checks.json").read_text())
    counts = Counter(check["status"] for check in checks)
    findings = tuple(
        f"{check['id']}: {check['status']}: {check.get('errorMessage')}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    return Row(
        leg, revision, match[1], counts["SUCCESS"], counts["FAILURE"], match[1] in scored, findings
    )


def report(rows: Iterable[Row]) -> Generator[str, None, None]:
    """The table, the findings, and the sums."""
    kept = list(rows)
    width = max(len(row.scenario) for row in kept)
    yield f"leg     revision    {'scenario':{width}}  passed  failed  scored  verdict"
    for row in kept:
        scored = "yes" if row.scored else "no"
        yield (
            f"{row.leg}  {row.revision}  {row.scenario:{width}}  {row.passed:6}  {row.failed:6}"
            f"  {scored:6}  {row.verdict}"
        )
    for row in kept:
        if row.attempted:
            for finding in row.findings:
                yield f"{row.leg} {row.revision} {row.scenario}: {finding}"
    for leg, revision in dict.fromkeys((row.leg, row.revision) for row in kept):
        counted = [row for row in kept if row.leg == leg and row.revision == revision]
        counted = [row for row in counted if row.scored and row.attempted]
        if counted:
            passed = sum(not row.is_bad for row in counted)
            yield f"{leg} {revision}: {passed} of {len(counted)} scored scenarios pass"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the suite is installed")
    parser.add_argument(
        "--adapter",
        choices=["trio", "asyncio", "asgi"],
        default="trio",
        help="of the server; the client, on trio, is tried beside trio's",
    )
    parser.add_argument(
        "--client",
        choices=["trio", "asyncio", "httpx-trio", "httpx-asyncio", "httpx-threads"],
        help="the client alone, in this way",
    )
    options = parser.parse_args()
    directory: Path = options.directory
    way: str = options.client or "trio"
    client = shlex.join([sys.executable, "-m", "tests.conformance.client", way])
    port = free_port()
    sides = {
        "server": ["--url", f"http://127.0.0.1:{port}/mcp"],
        "client": ["--command", client, "--timeout", str(SECONDS * 1000)],  # they run all at once
    }
    legs = ("server", "client") if options.adapter == "trio" else ("server",)
    if options.client is not None:
        legs = ("client",)
    expected = {key: count for key, count in SCORED.items() if key[0] in legs}
    rows: list[Row] = []
    with running_server(port, options.adapter), tempfile.TemporaryDirectory() as results:
        for leg, revision in expected:
            rows += run(directory, leg, revision, sides[leg], Path(results, leg, revision))
        if "client" in legs:
            rows += run_older(directory, sides["client"], Path(results, "client", OLDER))
    print("\n".join(report(rows)))
    return status(rows, expected)


def status(rows: Sequence[Row], expected: Mapping[tuple[str, str], int]) -> int:
    """The exit status: 0 if all that is attempted passes, scored or not, and none is missing."""
    counted = Counter((row.leg, row.revision) for row in rows if row.scored and row.attempted)
    return int(counted != expected or any(row.is_bad for row in rows))


if __name__ == "__main__":
    sys.exit(main())
