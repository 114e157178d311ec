"""Opening a client over HTTP, without a loop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .._options.arguments import takes
from .._options.clients import HTTPClientOptions
from ._client import Client, RequestHandler, check_plain
from ._interrupts import Uninterrupted

if TYPE_CHECKING:
    from ._http_client import HTTPSession


@takes(HTTPClientOptions[RequestHandler])
@contextmanager
def connect_http(options: HTTPClientOptions[RequestHandler]) -> Generator[Client, None, None]:
    """Talk to a server over HTTP, whichever of the five revisions it speaks."""
    check_plain(options.on_request, options.on_notification, options.on_unauthorized)
    endpoint = options.new_endpoint("Client")
    # Imported here: programs on stdio do not need HTTP, and h11 is an optional dependency.
    from ._http_client import HTTPSession

    session: HTTPSession | None = None
    try:
        with Uninterrupted():  # else the session could be lost before it is assigned
            session = HTTPSession(endpoint, options)
        session.restore_credentials()
        session.start(*options.opening)
        yield Client(session)
    finally:
        try:
            if session is not None:
                with session:
                    session.finish()
        except BaseException:  # Ctrl-C may interrupt the beginning of `close`
            if session is not None:
                with session:
                    session.finish()
            raise
