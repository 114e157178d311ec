"""A server with one tool, `echo`, below ASGI: JSON answers, both eras, no sessions.

`python -m benchmarks.servers.echo_asgi --port 8000 --http h11`
"""

from __future__ import annotations

from collections.abc import Sequence

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, Config
from sansmcp_io.asgi import App

from .bare_asgi import parser, serve
from .echo_stdio import CAPABILITIES, CODECS, HANDLERS, INFO


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve on the given port."""
    made = parser(__doc__)
    made.add_argument("--codec", choices=CODECS, default="json")
    made.add_argument("--handler", choices=HANDLERS, default="plain")
    options = made.parse_args(arguments)
    app = App(
        HANDLERS[options.handler],
        info=INFO,
        capabilities=CAPABILITIES,
        revisions=(*LEGACY_REVISIONS, *MODERN_REVISIONS),
        path="/mcp",
        sessions=False,
        config=Config(codec=CODECS[options.codec]()),
    )
    serve(app, options.port, options.http)


if __name__ == "__main__":
    main()
