"""What shows a user the page of the authorization server, and learns where the user is sent back.

Source: RFC 8252, sections 7.3 and 8.3; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, final

import attrs

from .._common.anomalies import LOGGER
from ._loopback import LoopbackReceiver, NoCallback

__all__ = ["FunctionUserAgent", "LoopbackUserAgent", "NoCallback", "Redirect", "UserAgent"]


class Redirect(Protocol):
    """Sends the user of one client to authorization servers, and gets the callbacks."""

    @property
    def redirect_uri(self) -> str:
        """The URL to which authorization servers send the user back."""
        ...

    def visit(self, url: str) -> str | Awaitable[str]:
        """Show a URL to the user, and return that of the callback.

        It may be async where the client runs on a loop. Other ones are called in a thread there.

        Raises:
            NoCallback: There will be none. The text says why.
        """
        ...

    def cancel(self) -> None:
        """Let `visit` end soon: nobody waits for it any more. Any thread may call this."""
        ...

    def close(self) -> None:
        """Release what `visit` needs. Called once, when the client ends."""
        ...


class UserAgent(Protocol):
    """Makes the redirects of clients. Several clients may share it."""

    def new_redirect(self) -> Redirect:
        """The redirect of one client."""
        ...


def show_on_stderr(url: str) -> None:
    """Write the URL to standard error."""
    print(f"To authorize this program, open:\n{url}", file=sys.stderr, flush=True)


def _open_browser(url: str) -> None:
    try:
        webbrowser.open(url)
    except Exception as error:  # the user has the URL
        LOGGER.warning("no browser was opened", exc_info=error)


@final
@attrs.frozen(kw_only=True)
class LoopbackUserAgent:
    """Shows the URL to the user, and receives the callback on a port of 127.0.0.1.

    The URL reaches the browser without a shell. Keeps AUTH-251.

    Attributes:
        show: Called with the URL, in a thread. The callback is received after it has returned, so
            it must not wait for that. The default writes the URL to standard error.
        browser: Whether to open it in the browser of the system, too.
        port: The port to listen on; 0: one that is free, which another client will not have. An
            authorization server that does not register clients by itself may want a fixed one.
        path: The path of the redirect URI.
        host: The host in the redirect URI: `127.0.0.1`, or `localhost` where an authorization
            server takes nothing else.
    """

    show: Callable[[str], object] = show_on_stderr
    browser: bool = True
    port: int = 0
    path: str = "/callback"
    host: str = attrs.field(
        default="127.0.0.1", validator=attrs.validators.in_(("127.0.0.1", "localhost"))
    )

    def new_redirect(self) -> Redirect:
        """The redirect of one client. Its port is taken when its URI is asked for."""
        return _LoopbackRedirect(self)


@final
@attrs.frozen
class FunctionUserAgent:
    """Lets a function stand for the user, as in tests and on machines without a browser.

    Attributes:
        visit: Called with the URL of the authorization server; returns that of the callback. It
            may be async where the client runs on a loop.
        redirect_uri: The redirect URI, which nobody has to serve.
    """

    visit: Callable[[str], str | Awaitable[str]]
    redirect_uri: str = "http://127.0.0.1/callback"

    def new_redirect(self) -> Redirect:
        """The redirect of one client."""
        return _FunctionRedirect(self)


class _LoopbackRedirect:
    def __init__(self, agent: LoopbackUserAgent) -> None:
        self._agent: Final = agent
        self._receiver: Final = LoopbackReceiver(agent.host, agent.port, agent.path)

    @property
    def redirect_uri(self) -> str:
        return self._receiver.redirect_uri

    def visit(self, url: str) -> str:
        with self._receiver.listening(url) as callback:
            self._agent.show(url)
            if self._agent.browser:
                # Some browsers are waited for until the user closes them.
                opening = threading.Thread(target=_open_browser, args=(url,), daemon=True)
                opening.start()
            return callback()

    def cancel(self) -> None:
        self._receiver.cancel()

    def close(self) -> None:
        self._receiver.close()


class _FunctionRedirect:
    def __init__(self, agent: FunctionUserAgent) -> None:
        self._agent: Final = agent
        self.redirect_uri: Final = agent.redirect_uri

    def visit(self, url: str) -> Any:
        return self._agent.visit(url)

    def cancel(self) -> None:
        """A function ends by itself; its outcome is dropped."""

    def close(self) -> None:
        """There is nothing to release."""
