"""An application that hypercorn serves over HTTP/2: `tests.support.programs.http2_app:app`."""

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tests.support.http.asgi import new_app
from tests.support.http.tools import handle
from tests.support.processes import ROOT

app: Final = new_app(handle, path="/mcp")


@contextmanager
def serving_http2() -> Generator[str, None, None]:
    """Run the application, and give its URL.

    A client can speak HTTP/1.1, or HTTP/2 without TLS if it knows beforehand.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        command = [sys.executable, "-m", "hypercorn", f"--bind=fd://{number}", "--workers=0"]
        command.append("tests.support.programs.http2_app:app")
        process = subprocess.Popen(
            command, cwd=ROOT, pass_fds=[number], stderr=subprocess.DEVNULL, text=True
        )
    with process:
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
