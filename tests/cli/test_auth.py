"""`sansmcp auth`, and `--auth` of the other commands: a server that wants tokens."""

import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import attrs
import pytest

from sansmcp.auth import AuthorizationFailure
from sansmcp_io.cli._auth import ADVICE
from tests.support.command_line import BIN, DEMO, SECONDS, Done
from tests.support.forks import Forked
from tests.support.http.authorized import AuthorizedHandler, Realm, consent, realm

AUTH_AT_ISSUER = ["auth", "http://a/", "--client-id", "c", "--issuer", "http://b"]


@attrs.define
class Shell:
    """Runs commands for a user who agrees to every login."""

    settings: Path

    def run(self, *arguments: str | Path) -> Done:
        """Run a command, and log in when it asks for that."""
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.settings)}
        our_out, their_out = os.pipe()
        our_err, their_err = os.pipe()
        streams = [os.open(os.devnull, os.O_RDONLY), their_out, their_err]
        command = Forked("sansmcp_io", arguments, streams, env=environment)
        errors: list[str] = []

        def log_in() -> None:
            with os.fdopen(our_err, encoding="utf-8") as lines:
                for line in lines:
                    errors.append(line)
                    if found := re.fullmatch(r"to log in, open: (\S+)\n", line):
                        with urllib.request.urlopen(consent(found[1]), timeout=SECONDS) as page:
                            assert b"You can close this window" in page.read()

        reading = threading.Thread(target=log_in)
        reading.start()
        with os.fdopen(our_out, encoding="utf-8") as file:
            out = file.read()
        status = command.wait(SECONDS)
        reading.join(SECONDS)
        return Done(["sansmcp", *map(str, arguments)], status, out, "".join(errors))

    @property
    def tokens(self) -> Path:
        return self.settings / "sansmcp" / "tokens.json"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "settings")


@pytest.fixture
def served() -> Generator[Realm]:
    with realm() as served:
        yield served


def document(done: Done) -> Any:
    return json.loads(done.stdout)


# -------------------------------------------------------------------------------- the steps


def test_each_step_is_shown_and_nothing_is_kept(shell: Shell, served: Realm) -> None:
    """Request, status, conclusion and rule; the token is of no use to the reader."""
    done = shell.run("auth", "--no-browser", served.url)
    assert done.returncode == 0
    headings = re.findall(r"^\d+\. (.+)$", done.stdout, re.MULTILINE)
    assert headings == [
        *("challenge", "resource metadata", "server metadata", "scopes", "registration"),
        *("authorization request", "callback", "token request"),
    ]
    assert "it wants bearer" in done.stdout
    assert f"at:      {served.origin}/token\nstatus:  200" in done.stdout
    assert "rule:    AUTH-041" in done.stdout
    assert re.search(r"^authorized\nissuer:  http://127", done.stdout, re.MULTILINE)
    assert not shell.tokens.exists()
    for secret in (*served.tokens, *served.refresh_tokens):
        assert secret not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("change", "step", "rule", "hint"),
    [
        (
            {"metadata": {"code_challenge_methods_supported": ["plain"]}},
            "client",
            "AUTH-236",
            "S256",
        ),
        ({"metadata": {"issuer": "https://evil.example"}}, "server metadata", None, "issuer"),
        ({"resource": {"resource": "https://evil.example"}}, "resource metadata", None, "URL"),
        ({"metadata": {"registration_endpoint": None}}, None, None, "--client-id"),
        ({"denies": True}, "callback", None, None),
    ],
    ids=["no PKCE", "another issuer", "another resource", "no registration", "denied"],
)
def test_it_says_where_it_stops_and_what_to_change(
    shell: Shell, change: dict[str, Any], step: str | None, rule: str | None, hint: str | None
) -> None:
    """The author of a server reads it: the step, the rule, and a remedy."""
    with realm(**change) as served:
        done = shell.run("auth", "--no-browser", "--json", served.url)
    assert done.returncode == 3
    said = document(done)
    assert (said["wanted"], said["authorized"]) == (True, False)
    stopped = said["stopped"]
    if step is not None:
        assert stopped["step"] == step
        assert f"has ended at the step: {step}\n" in done.stderr
    if rule is not None:
        assert stopped["rule"] == rule
    assert stopped["text"] in done.stderr
    if hint is not None:
        assert any(hint in one for one in stopped["hints"])
    assert said["steps"][-1]["outcome"] == "failed"
    if change == {"denies": True}:
        assert stopped["error"] == "access_denied"


def test_addresses_of_one_more_kind_can_be_allowed(shell: Shell) -> None:
    """A server on this machine may have its authorization server elsewhere, if the user knows."""
    issuer = "https://[fe80::1]:9"  # nobody answers there
    with realm(resource={"authorization_servers": [issuer]}) as served:
        refused = document(shell.run("auth", "--json", served.url))["stopped"]
        command = ["auth", "--json", "--allow-address", "link-local", served.url]
        allowed = document(shell.run(*command))["stopped"]
    assert (refused["reason"], refused["rule"]) == ("refused url", "AUTH-339")
    assert any("--allow-address" in hint for hint in refused["hints"])
    assert allowed["reason"] == "unreachable"


def test_each_reason_has_a_remedy_or_is_none_of_the_server() -> None:
    """A new reason must not come without advice by oversight."""
    failure = AuthorizationFailure
    elsewhere = {failure.METADATA_NOT_FOUND}  # which depends on the step
    of_the_user = {failure.CANCELLED, failure.DENIED, failure.NO_ASSERTION}
    assert {*failure} == {*ADVICE} | elsewhere | of_the_user


@pytest.mark.parametrize("what", ["oauth-protected-resource/mcp", "oauth-authorization-server"])
def test_missing_metadata_is_told_with_its_place(shell: Shell, served: Realm, what: str) -> None:
    """It is the most frequent reason, and each of the documents has a place of its own."""

    def missing(handler: AuthorizedHandler) -> None:
        handler.give({}, 404)

    for path in (what, "oauth-protected-resource", "openid-configuration"):
        served.replaced[f"/.well-known/{path}"] = missing
    served.replaced["/register"] = missing
    done = shell.run("auth", "--no-browser", "--json", served.url)
    assert done.returncode == 3
    assert "404" in json.dumps(document(done)["steps"])


def test_a_server_without_tokens_says_so(shell: Shell) -> None:
    """Nothing is wrong with that."""
    command = [*DEMO, "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as demo:
        try:
            assert demo.stderr is not None
            found = re.search(r"http://\S+", demo.stderr.readline())
            assert found is not None
            done = shell.run("auth", found[0])
            also = shell.run("auth", "--json", found[0])
        finally:
            demo.terminate()
    assert done.returncode == 0
    assert "without a token" in done.stdout
    assert (document(also)["wanted"], document(also)["token"]) == (False, None)


# --------------------------------------------------------------------------- login and others


def test_login_is_for_all_commands_that_follow(shell: Shell, served: Realm) -> None:
    """`status` knows of it, without secrets; `logout` forgets it."""
    none = shell.run("auth", "status")
    assert "no credentials" in none.stdout
    assert none.returncode == 1, "a script asks whether there is a token"
    assert shell.run("auth", "login", "--no-browser", served.url).returncode == 0
    (token,) = served.tokens
    known = shell.run("auth", "status", "--json")
    assert known.returncode == 0
    (one,) = document(known)
    assert one["url"] == served.url
    assert one["token"]["scopes"] == ["read"]
    assert one["token"]["refreshes"] is True
    assert token not in known.stdout
    other = shell.run("auth", "status", "https://other.example/mcp", "--json")
    assert (other.returncode, document(other)[0]["token"]) == (1, None)
    status = shell.run("auth", "status", served.url)
    shown = status.stdout
    assert status.returncode == 0
    assert re.search(r"until \d{4}-\d\d-\d\d \d\d:\d\d UTC, is renewed by itself", shown)

    called = shell.run("call", "echo", "--auth", "--url", served.url)
    assert (called.stdout, called.stderr) == (f"{token}\n", "")
    assert served.count("/authorize") == 1

    gone = shell.run("auth", "logout", served.url, "--json")
    assert document(gone) == {
        "url": served.url,
        "issuers": [served.origin],
        "revoked": True,
        "why": None,
    }
    assert served.tokens == served.refresh_tokens == {}
    assert document(shell.run("auth", "status", "--json")) == []
    assert "no credentials" in shell.run("auth", "logout", served.url).stdout
    assert document(shell.run("auth", "status", "--json", served.url))[0]["stored"] is False


def test_logout_here_only(shell: Shell, served: Realm) -> None:
    """Other machines may have the same tokens."""
    shell.run("auth", "login", "--no-browser", served.url)
    done = shell.run("auth", "logout", "--local", served.url)
    assert "forgotten here; the tokens end at the server in their time" in done.stdout
    assert served.tokens
    assert served.count("/revoke") == 0
    assert document(shell.run("auth", "status", "--json")) == []


@pytest.mark.parametrize("what", ["no endpoint", "no server"])
def test_logout_says_what_was_not_revoked(shell: Shell, served: Realm, what: str) -> None:
    """The credentials are forgotten all the same."""
    shell.run("auth", "login", "--no-browser", served.url)
    if what == "no endpoint":
        served.metadata["revocation_endpoint"] = None
    else:
        served.replaced["/revoke"] = lambda handler: handler.give({"error": "server_error"}, 503)
    done = shell.run("auth", "logout", served.url)
    assert done.returncode == 0
    assert "the tokens end at the server in their time" in done.stdout
    assert ("revocation_endpoint" if what == "no endpoint" else "status 503") in done.stdout
    assert document(shell.run("auth", "status", "--json")) == []


def test_a_command_logs_in_where_there_is_no_token(shell: Shell, served: Realm) -> None:
    """And keeps it for the next one."""
    first = shell.run("inspect", "--auth", "--no-browser", "--url", served.url)
    assert first.returncode == 0
    assert "to log in, open: http" in first.stderr
    second = shell.run("call", "echo", "--auth", "--url", served.url, "--tokens", shell.tokens)
    assert second.stderr == ""


def test_inspect_says_what_to_type(shell: Shell, served: Realm) -> None:
    """Where a server wants a token, and none was given."""
    done = shell.run("inspect", "--url", served.url)
    assert done.returncode == 3
    assert f"hint: sansmcp auth login {served.url} gets a token; --auth uses it" in done.stderr
    refused = shell.run("call", "echo", "--auth", "--no-browser", "--json", "--url", served.url)
    assert refused.returncode == 0
    with realm(denies=True) as other:
        denied = shell.run("call", "e", "--auth", "--no-browser", "--json", "--url", other.url)
    error = document(denied)["error"]
    assert error["kind"] == "unauthorized"
    assert "access_denied" in error["details"][0]


def test_a_registered_client_is_used(shell: Shell, tmp_path: Path) -> None:
    """Where the authorization server registers none, or for a given one."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    given: dict[str, Any] = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    with realm(metadata=given) as served:
        options = ["--client-id", "mine", "--client-secret", f"@{secret}"]
        options += ["--issuer", served.origin, "--scope", "a b", "--redirect-port", "0"]
        done = shell.run("auth", "--no-browser", "--json", *options, served.url)
        assert done.returncode == 0
        assert served.count("/register") == 0
    assert "mine" in json.dumps(document(done)["steps"])
    assert "s3cret" not in done.stdout + done.stderr
    with realm(metadata={"registration_endpoint": None}) as served:
        done = shell.run("auth", "--no-browser", "--client-id", "mine", served.url)
        assert done.returncode == 0


def test_a_file_that_others_can_read_is_refused(shell: Shell, served: Realm) -> None:
    """By each command, with the remedy."""
    shell.tokens.parent.mkdir(parents=True)
    shell.tokens.write_text("{}")
    shell.tokens.chmod(0o644)
    for arguments in (
        ("auth", "status"),
        ("auth", "logout", served.url),
        ("call", "echo", "--auth", "--url", served.url),
    ):
        done = shell.run(*arguments)
        assert done.returncode == 3
        assert "chmod 600" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["auth"], "required: URL"),
        (["auth", "login"], "the URL of the server is missing"),
        (["auth", "logout"], "the URL of the server is missing"),
        (["auth", "status", "http://a/", "http://b/"], "unrecognized arguments: http://b/"),
        (["auth", "nothing"], "is no URL of a server"),
        (["auth", "http://a/", "--client-secret", "@x"], "need --client-id"),
        (["auth", "http://a/", "--issuer", "http://b"], "need --client-id"),
        (["auth", "http://a/", "--client-id", "c", "--client-secret", "@x"], "needs --issuer"),
        ([*AUTH_AT_ISSUER, "--client-secret", "s"], "takes @FILE"),
        ([*AUTH_AT_ISSUER, "--client-secret", "@"], "cannot be read"),
        (["auth", "http://a/", "--client-metadata", "http://a/"], "must be an https URL"),
        (["auth", "http://a/", "--header", "Authorization: x"], "exclude each other"),
        (["call", "t", "--url", "http://a/", "--tokens", "f"], "need --auth"),
        (["call", "t", "--url", "http://a/", "--allow-address", "private"], "need --auth"),
        (["auth", "--local", "http://a/"], "--local is for logout"),
        (["auth", "--allow-address", "public", "http://a/"], "invalid choice: 'public'"),
        (["call", "t", "--allow-address", "private", "--", "x"], "--allow-address is for a"),
        (["call", "t", "--url", "http://a/", "--no-browser"], "need --auth"),
        (["call", "t", "--auth", "--", "x"], "--auth is for a server with a URL"),
        (["tap", "--auth", "--", "x"], "--auth is for a server with a URL"),
        (["tap", "--auth", "--host", "0.0.0.0", "http://a/"], "only at a loopback address"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    shell: Shell, arguments: list[str], text: str
) -> None:
    """Before a server is asked."""
    done = shell.run(*arguments)
    assert done.returncode == 2
    assert text in done.stderr


# --------------------------------------------------------------------------------------- tap


def test_tap_authorizes_what_passes(shell: Shell, served: Realm, tmp_path: Path) -> None:
    """A client without any idea of tokens is watched; no token gets into the record."""
    assert shell.run("auth", "login", "--no-browser", served.url).returncode == 0
    (token,) = served.tokens
    record = tmp_path / "record.jsonl"
    command: list[str | Path] = [
        BIN,
        "tap",
        "--auth",
        "--jsonl",
        record,
        "--trace",
        tmp_path / "trace",
        served.url,
    ]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(shell.settings)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", env=environment
    ) as tap:
        assert tap.stdout is not None
        url = tap.stdout.readline().strip()
        called = shell.run("call", "echo", "--url", url, "--header", "Authorization: Bearer wrong")
        tap.terminate()
    assert called.stdout == f"{token}\n"
    assert f"Bearer {token}" not in record.read_text()


def test_tap_gives_the_token_to_no_page_of_another_site(shell: Shell, served: Realm) -> None:
    """Any page in the browser of the user can send requests to a port of this machine."""
    assert shell.run("auth", "login", "--no-browser", served.url).returncode == 0
    seen: list[tuple[str, str | None]] = []

    def note(handler: AuthorizedHandler) -> None:
        seen.append((handler.command, handler.headers.get("authorization")))
        handler.give({})

    served.replaced["/mcp"] = note
    environment = {**os.environ, "XDG_CONFIG_HOME": str(shell.settings)}
    with subprocess.Popen(
        [BIN, "tap", "--auth", "--trace", os.devnull, served.url],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
    ) as tap:
        assert tap.stdout is not None
        url = tap.stdout.readline().strip()
        for origin in ("https://evil.example", "null"):
            assert asked(url, "POST", origin) == 403
        assert asked(url, "OPTIONS", None) == 200
        assert asked(url, "POST", "http://localhost:6274") == 200
        tap.terminate()
    (token,) = served.tokens
    assert seen == [("OPTIONS", None), ("POST", f"Bearer {token}")]


def asked(url: str, method: str, origin: str | None) -> int:
    """The status of a request that a page sends."""
    headers = {} if origin is None else {"Origin": origin}
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            status: int = response.status
    except urllib.error.HTTPError as refused:
        with refused:
            status = refused.code
    return status


def test_tap_says_that_there_is_no_token(shell: Shell) -> None:
    """The client gets a status of the tap, and the tap goes on."""
    with realm(denies=True) as served:
        command: list[str | Path] = [BIN, "tap", "--auth", "--no-browser", served.url]
        environment = {**os.environ, "XDG_CONFIG_HOME": str(shell.settings)}
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment,
        ) as tap:
            assert tap.stdout is not None
            assert tap.stderr is not None
            url = tap.stdout.readline().strip()
            called = threading.Thread(target=shell.run, args=("inspect", "--url", url))
            called.start()
            found = None
            while found is None:
                found = re.search(r"to log in, open: (\S+)", tap.stderr.readline())
            with urllib.request.urlopen(consent(found[1]), timeout=SECONDS):
                pass
            line = tap.stderr.readline()
            while "there is no token for the server" not in line:
                line = tap.stderr.readline()
                assert line
            called.join(SECONDS)
            tap.terminate()
            tap.stderr.read()
