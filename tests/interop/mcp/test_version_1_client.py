"""A client on version 1 of the `mcp` package, as in most hosts, with our servers on HTTP."""

import subprocess
from functools import partial
from typing import Any

import trio

from sansmcp import JSONObject
from tests.interop.peers import ROOT, time
from tests.support.adapters.on_trio import on_trio
from tests.support.http.on_loops import serving

SCRIPT = ROOT / "tests" / "peers" / "mcp_leaving.py"


@on_trio()
async def test_leaving_a_session_with_a_call_given_up_is_no_failure() -> None:
    """Hosts with a session per call would get `HTTPStatusError` instead of their cancellation."""
    runs, ended = trio.Event(), trio.Event()

    async def handle(call: Any) -> JSONObject:
        runs.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with serving(handle) as server, trio.open_nursery() as nursery:
        python = time().command[0]  # whose environment has that version
        url = f"http://127.0.0.1:{server.port}/mcp"
        run = partial(
            trio.run_process,
            [python, SCRIPT, url],
            stdin=subprocess.PIPE,
            capture_stdout=False,
            stdout=subprocess.PIPE,
        )
        process: trio.Process = await nursery.start(run)
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.fail_after(60):
            await runs.wait()
            await process.stdin.send_all(b"leave\n")
            said = b"".join([data async for data in process.stdout])
            await ended.wait()

    assert said.strip() == b"none"
