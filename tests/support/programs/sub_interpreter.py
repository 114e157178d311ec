"""A blocking client in a sub-interpreter: `python -m tests.support.programs.sub_interpreter`."""

import importlib
import sys
from typing import Any

from tests.adapters.everywhere.shims import listening, server

CALLING = """
import sys

sys.path[:] = {path!r}
from sansmcp_io.blocking import connect_http, connect_stdio

INFO = {{"name": "test", "version": "1"}}
for way, connecting in (
    ("stdio", connect_stdio({command!r}, info=INFO)),
    ("http", connect_http({url!r}, info=INFO)),
):
    params = {{"name": "echo", "arguments": {{"text": f"echo over {{way}}"}}}}
    with connecting as client:
        print(client.request("tools/call", params)["content"][0]["text"], flush=True)
"""


def run(code: str) -> None:
    """Run code in an interpreter like those of mod_wsgi, which may start threads and processes."""
    if sys.version_info >= (3, 13):
        interpreters: Any = importlib.import_module("_interpreters")
        number = interpreters.create("legacy")
    else:
        interpreters = importlib.import_module("_xxsubinterpreters")
        number = interpreters.create(isolated=False)
    failure = interpreters.run_string(number, code)
    assert failure is None, failure
    interpreters.destroy(number)


if __name__ == "__main__":
    with listening(server("trio", "http")) as url:
        run(CALLING.format(path=sys.path, command=server("trio"), url=url))
    print("end")
