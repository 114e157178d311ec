"""What users see, and the port that waits for them to come back."""

import os
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import attrs
import pytest

from sansmcp import JSONObject
from sansmcp_io.blocking import AuthorizationError, connect_http
from sansmcp_io.oauth import LoopbackUserAgent, NoCallback, OAuth, Redirect
from tests.support.http.authorized import ECHO, consent, realm

INFO: JSONObject = {"name": "test", "version": "1"}
URL = "https://as.example/authorize?state=s1&x=y"


def ask(
    uri: str, target: str | None = None, *, host: str | None = None, method: str = "GET"
) -> str:
    """Send a request to the port of a redirect URI, as a browser does; the response."""
    parts = urlsplit(uri)
    asked = target if target is not None else f"{parts.path}?{parts.query}"
    with socket.create_connection(("127.0.0.1", parts.port or 80), timeout=30) as connection:
        head = f"{method} {asked} HTTP/1.1\r\nHost: {host or parts.netloc}\r\nX: y\r\n\r\n"
        connection.sendall(head.encode())
        response = b""
        while data := connection.recv(4096):
            response += data
    return response.decode()


@attrs.define
class Visit:
    """A user agent that waits in a thread."""

    redirect: Redirect
    thread: threading.Thread
    callbacks: list[Any] = attrs.field(factory=list[Any])

    def ended(self) -> Any:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.callbacks.pop()


@contextmanager
def visiting(**settings: Any) -> Generator[Visit, None, None]:
    """A user agent that has shown the URL."""
    shown = threading.Event()

    def show(url: str) -> None:
        assert url == URL
        shown.set()

    settings = {"browser": False, "show": show, **settings}
    redirect = LoopbackUserAgent(**settings).new_redirect()

    def visit() -> None:
        try:
            visited.callbacks.append(redirect.visit(URL))
        except NoCallback as error:
            visited.callbacks.append(error)

    visited = Visit(redirect, threading.Thread(target=visit, daemon=True))
    visited.thread.start()
    assert shown.wait(30)
    try:
        yield visited
    finally:
        redirect.cancel()
        visited.thread.join(30)
        redirect.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_callback_ends_the_wait(host: str) -> None:
    """With a small page that loads nothing, and that no cache keeps."""
    with visiting(path="/back", host=host) as visit:
        uri = visit.redirect.redirect_uri
        assert uri.startswith(f"http://{host}:")
        callback = f"{uri}?{urlencode({'code': 'c', 'state': 's1'})}"
        response = ask(callback)
        assert visit.ended() == callback
        assert response.startswith("HTTP/1.1 200 ")
        assert "cache-control: no-store" in response
        assert "default-src 'none'" in response
        assert "You can close this window" in response
        assert uri == visit.redirect.redirect_uri  # the same for the next attempt
        with pytest.raises(OSError, match="refused"):
            ask(callback)  # nobody waits any more


@pytest.mark.parametrize(
    ("target", "host", "method"),
    [
        ("/callback?code=c&state=other", None, "GET"),
        ("/callback?code=c", None, "GET"),
        ("/callback?code=c&state=s1&state=s1", None, "GET"),
        ("/other?code=c&state=s1", None, "GET"),
        ("/favicon.ico", None, "GET"),
        ("/callback?code=c&state=s1", "evil.example", "GET"),
        ("/callback?code=c&state=s1", None, "POST"),
        ("/callback?code=\x01&state=s1", None, "GET"),
    ],
)
def test_other_requests_do_not_end_it(target: str, host: str | None, method: str) -> None:
    """Any page in the browser can send one, and a browser asks for an icon by itself."""
    with visiting() as visit:
        uri = visit.redirect.redirect_uri
        assert ask(uri, target, host=host, method=method).startswith("HTTP/1.1 404 ")
        assert visit.thread.is_alive()
        ask(f"{uri}?error=access_denied&state=s1")
        assert visit.ended().endswith("?error=access_denied&state=s1")


def test_connections_that_say_nothing_do_not_hold_it_up() -> None:
    """A browser opens some in advance, and others may open very many."""
    with visiting() as visit:
        uri = visit.redirect.redirect_uri
        where = ("127.0.0.1", urlsplit(uri).port or 0)
        silent = [socket.create_connection(where) for _ in range(30)]
        with socket.create_connection(where) as long:
            long.sendall(b"GET /callback?" + b"a" * 40_000)
            with suppress(ConnectionResetError):  # it has not read all
                assert long.recv(10) == b""
        silent.pop().close()
        ask(f"{uri}?code=c&state=s1")
        assert visit.ended().endswith("state=s1")
        for connection in silent:
            connection.close()


def test_a_wait_can_be_ended_by_others() -> None:
    """The client is closed; another wait may follow."""
    with visiting() as visit:
        visit.redirect.cancel()
        assert "cancelled" in str(visit.ended())


def test_a_port_in_use_is_told() -> None:
    """An authorization server may know one redirect URI only."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        auth = OAuth(user_agent=LoopbackUserAgent(port=port, browser=False))
        refused = pytest.raises(AuthorizationError, match=f"{port} of 127.0.0.1 cannot be used")
        with refused, connect_http("http://127.0.0.1:1/mcp", info=INFO, auth=auth):
            raise AssertionError("not opened")


def test_the_port_is_exclusive_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any program could take it otherwise. This system refuses the option, which shows its use."""
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", 0x7FFF, raising=False)
    redirect = LoopbackUserAgent().new_redirect()
    with pytest.raises(NoCallback, match="cannot be used"):
        assert redirect.redirect_uri
    monkeypatch.undo()
    assert redirect.redirect_uri
    redirect.close()


def test_a_user_logs_in_with_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a browser that is opened, the server's redirect, the port, the token.

    The browser is of the kind that Python waits for until the user closes it.
    """
    opened: list[str] = []
    is_closed = threading.Event()

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            opened.append(url)
            assert "You can close this window" in ask(consent(url))
            is_closed.wait(60)
            return True

    webbrowser.register("test-browser", None, Browser("test-browser"), preferred=True)
    shown: list[str] = []
    try:
        with realm() as served:
            auth = OAuth(user_agent=LoopbackUserAgent(show=shown.append))
            with connect_http(served.url, info=INFO, auth=auth) as client:
                client.request("tools/call", ECHO)
    finally:
        is_closed.set()
        order: Any = vars(webbrowser)["_tryorder"]
        order.remove("test-browser")
    assert opened == shown
    assert len(opened) == 1


VISIT = """
import sys
from urllib.parse import quote
from sansmcp_io.oauth import LoopbackUserAgent

redirect = LoopbackUserAgent(show=lambda url: None).new_redirect()
print(redirect.visit(f"{sys.argv[1]}&redirect_uri={quote(redirect.redirect_uri)}"))
"""
BROWSER = f"""#!{sys.executable}
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

(url,) = sys.argv[1:]
Path(__file__).with_name("opened").write_text(url)
urlopen(parse_qs(urlsplit(url).query)["redirect_uri"][0] + "?code=c&state=s1").read()
"""


@pytest.mark.parametrize("text", ["$(touch made)", "`touch made`", ";touch made;", "|touch made|"])
def test_no_shell_reads_the_url(tmp_path: Path, text: str) -> None:
    """AUTH-251: a URL is from a server, which could run programs of the user."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    url = f"{URL}&text='{text}"
    run = subprocess.run(
        [sys.executable, "-c", VISIT, url],
        cwd=tmp_path,
        env={**os.environ, "BROWSER": str(browser)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.endswith("/callback?code=c&state=s1\n")
    assert (tmp_path / "opened").read_text().startswith(f"{url}&redirect_uri=http")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["browser", "opened"]


def test_a_url_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing else is said: standard output may be the result of the program."""
    redirect = LoopbackUserAgent(browser=False).new_redirect()

    def visit() -> None:
        with pytest.raises(NoCallback):
            redirect.visit(URL)

    thread, uri = threading.Thread(target=visit), redirect.redirect_uri
    thread.start()
    while True:
        try:
            ask(uri, "/other")
            break
        except OSError:
            continue
    redirect.cancel()
    thread.join(30)
    redirect.close()
    captured = capsys.readouterr()
    assert URL in captured.err
    assert captured.out == ""
