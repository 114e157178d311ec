"""Errors in the command line are reported before any server is started."""

import subprocess
import sys
from pathlib import Path

import pytest

from sansmcp import ALL_REVISIONS
from tests.support.command_line import DEMO, WITHOUT_RICH, Done, sansmcp

BEACON = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"


def refused(*arguments: str, stdin: str = "") -> str:
    """The error message for a wrong command line."""
    done = sansmcp(*arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("usage: sansmcp")
    return done.stderr


@pytest.mark.parametrize(
    ("text", "place", "mark"),
    [
        ('{"a": }', "Expecting value at line 1, column 7", '  {"a": }\n        ^'),
        ('{"a": 1', "Expecting ',' delimiter at line 1, column 8", '  {"a": 1\n         ^'),
        (
            '{\n  "a": 1\n  "b": 2\n}',
            "Expecting ',' delimiter at line 3, column 3",
            '    "b": 2\n    ^',
        ),
        (
            '{"日本": \x1b}',
            "Expecting value at line 1, column 8",
            '  {"日本": \\x1b}\n           ^',
        ),
        (
            '{"a": "' + "x" * 200 + '", b}',
            "Expecting property name",
            f'  ...{"x" * 27}", b}}\n  {" " * 33}^',
        ),
    ],
)
def test_place_where_json_is_wrong_is_shown(text: str, place: str, mark: str) -> None:
    """Without the place, a parser's message is no help in a long argument."""
    said = refused("call", "t", text, "--", "true")

    assert f"error: the JSON is not valid: {place}" in said
    assert mark in said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1]", "must be an object such as {}, not an array"),
        ("null", "not null"),
        ("true", "not a boolean"),
        ("1.5", "not a number"),
        ('"text"', "not a string"),
        ('{"a": NaN}', "NaN is no number there"),
        ('{"a": 1e400}', "1e400 is too large a number"),
        ("[" * 100_000, "nested too deeply"),
        ("", "an empty text is no JSON: leave it out, or write {}"),
        ("{text: hi}", 'stand in double quotes: for a shell write \'{"a": "b"}\''),
    ],
)
def test_json_that_is_no_object_of_the_protocol(text: str, complaint: str) -> None:
    """Only an object can be sent, and only JSON that every parser reads alike."""
    assert complaint in refused("request", "m", text, "--", "true")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The error must name the file, and explain `@` to users who did not mean it."""
    said = refused("call", "t", "@no/such/file", "--", "true")
    assert "the JSON cannot be read from 'no/such/file': No such file or directory" in said
    assert "@ is followed by the name of a file" in said

    path = tmp_path / "latin.json"
    path.write_bytes(b'{"a": "\xe9"}')
    assert f"no UTF-8, at byte 7 of {path}" in refused("call", "t", f"@{path}", "--", "true")


def test_place_in_a_file_is_a_place_in_that_file(tmp_path: Path) -> None:
    """An error in a file or standard input must not be reported for `the argument`."""
    path = tmp_path / "a.json"
    path.write_text("{\n\n}}")

    assert f"at line 3, column 2 of {path}" in refused("call", "t", f"@{path}", "--", "true")
    assert "of standard input" in refused("call", "t", "-", "--", "true", stdin="{]")


@pytest.mark.parametrize("arguments", [["t\udcff"], ["t", '{"a": "\udcff"}']])
def test_argument_that_is_no_text(arguments: list[str]) -> None:
    """Bytes of another encoding have no form in JSON, so they must be refused."""
    assert "is no UTF-8, at character" in refused("call", *arguments, "--", "true")


@pytest.mark.parametrize("arguments", [["inspect"], ["call", "t", "{}"], ["read", "a:b", "--"]])
def test_missing_server_is_explained(arguments: list[str]) -> None:
    """The `--` is easily forgotten; the example must be the user's own line, corrected."""
    said = refused(*arguments)

    assert "the command of the server is missing: it comes after --" in said
    assert "-- python server.py" in said


@pytest.mark.parametrize(
    ("given", "correct"),
    [
        ("inspect python server.py", "inspect -- python server.py"),
        ("inspect --quiet npx -y server --port 8", "inspect --quiet -- npx -y server --port 8"),
        ("call echo {} python -m server", "call echo '{}' -- python -m server"),
        ("call echo ./server", "call echo -- ./server"),
        ("call echo python server.py", "call echo -- python server.py"),
        ("prompt greet --json uvx thing", "prompt greet --json -- uvx thing"),
        ("read a:b uvx thing", "read a:b -- uvx thing"),
        ("tap python server.py", "tap -- python server.py"),
        ("tap --quiet server", "tap --quiet -- server"),
    ],
)
def test_missing_separator_is_recognised(given: str, correct: str) -> None:
    """`unrecognized arguments: python server.py` does not say that `--` is missing."""
    said = refused(*given.split())

    assert f"-- is missing before the command of the server: sansmcp {correct}" in said


def test_missing_option_before_a_url_is_recognised() -> None:
    """`tap` takes a URL without an option, so users forget `--url` for other commands."""
    url = "http://127.0.0.1:1/mcp"
    for given in (["inspect", url], ["call", "echo", url], ["read", "a:b", "--json", url]):
        said = refused(*given)
        assert "--url is missing before the URL of the server: sansmcp" in said
        assert f"--url {url}" in said


def test_argument_too_many_is_no_missing_separator() -> None:
    """If the server is named already, an extra argument must be reported as such."""
    for line in (
        ["call", "t", "{}", "more", "--", "true"],
        ["inspect", "more", "--url", "http://127.0.0.1:1/mcp"],
        ["tap", "http://127.0.0.1:1/mcp", "more"],
        ["inspect", "--unknown", "more"],
    ):
        assert "unrecognized arguments: " in refused(*line)


@pytest.mark.parametrize("given", ["0", "-1", "1.5", "16M", "9" * 30])
def test_limit_that_is_none(given: str) -> None:
    """An invalid limit must be refused; the unit is the byte, as in `Config`."""
    said = refused("inspect", f"--max-message-bytes={given}", "--", "true")

    assert "bytes are a whole number greater than 0" in said


@pytest.mark.parametrize("name", ["call", "read", "prompt", "request"])
def test_missing_name_is_explained(name: str) -> None:
    """The error must name the argument as the usage line does."""
    assert "the following arguments are required" in refused(name, "--", "true")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_time_that_is_none(seconds: str) -> None:
    """A timeout of zero would look like a server that does not respond."""
    said = refused("inspect", f"--timeout={seconds}", "--", "true")

    assert "seconds are a number greater than 0" in said


def test_time_may_be_without_limit() -> None:
    """A user with a debugger in the server needs no timeout."""
    done = sansmcp("inspect", "--timeout", "inf", "--", "true")

    assert done.returncode == 3
    assert "ended before it answered" in done.stderr


def test_revision_that_there_is_none_of() -> None:
    """The error must list the known revisions."""
    said = refused("inspect", "--revision", "2024", "--", "true")

    assert all(revision in said for revision in ALL_REVISIONS)


@pytest.mark.parametrize("given", ["=x", "", "NO_SUCH_VARIABLE_HERE"])
def test_variable_without_a_name_or_a_value(given: str) -> None:
    """A token that is empty without notice is hard to find."""
    assert "--env" in refused("inspect", "--env", given, "--", "true")


def test_nothing_is_started_for_a_command_line_that_is_wrong(tmp_path: Path) -> None:
    """A server may have side effects when it starts."""
    beacon = tmp_path / "started"
    refused("call", "t", "{", "--", sys.executable, "-c", BEACON, str(beacon))
    assert not beacon.exists()

    sansmcp("call", "t", "{}", "--", sys.executable, "-c", BEACON, str(beacon))
    assert beacon.exists()


def test_help_names_every_command_and_the_exit_statuses() -> None:
    """Users look in `--help` first."""
    done = sansmcp("--help")

    assert done.returncode == 0
    clients = ("inspect", "call", "read", "prompt", "request")
    for name in (*clients, "auth", "tap", "lint", "explain", "demo", "serve-demo"):
        assert f"\n    {name}" in done.stdout
        assert sansmcp(name, "--help").stdout.startswith(f"usage: sansmcp {name}")
    assert "exit status: 0" in done.stdout
    assert "usage: sansmcp" in refused()
    assert sansmcp("--version").stdout.startswith("sansmcp ")


def test_options_are_not_guessed() -> None:
    """An abbreviation that works today may mean another option later."""
    assert "unrecognized arguments: --tim" in refused("inspect", "--tim", "5", "--", "true")


# ---------------------------------------------------------------------- what is not installed


def without(module: str, *arguments: str) -> Done:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from sansmcp_io.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("line", [["inspect", "--", "true"], ["call", "t", "--", "true"], ["demo"]])
def test_without_trio_it_says_what_to_install(line: list[str]) -> None:
    """A bare install has neither trio nor rich."""
    done = without("trio", *line)

    assert done.returncode == 2
    assert done.stderr == "this command needs trio: pip install 'sansmcp[trio]'\n"


def test_others_are_watched_without_trio_and_rich(tmp_path: Path) -> None:
    """A tap runs where a server is started, in an environment that may have no extras."""
    capture = tmp_path / "capture"
    assert without("trio", "tap", "--jsonl", str(capture), "--", "true").returncode == 0
    assert without("trio", "lint", str(capture)).returncode == 0


def test_only_servers_on_http_need_h11() -> None:
    """Commands on a process must work without h11, and the others must say what to install."""
    assert without("h11", "call", "echo", '{"text": "x"}', "--", *DEMO).returncode == 0
    assert without("h11", "lint", "-").returncode == 3, "there is nothing in it"
    for line in (["inspect", "--url", "http://127.0.0.1:1/mcp"], ["tap", "http://127.0.0.1:1/"]):
        done = without("h11", *line)
        assert done.returncode == 2
        assert done.stderr == "this command needs h11: pip install 'sansmcp[h11]'\n"


def test_rules_are_explained_without_trio_and_rich() -> None:
    """`explain` needs neither a process nor colours."""
    assert without("trio", "explain", "CANC-004").returncode == 0
    done = subprocess.run(
        [*WITHOUT_RICH, "explain", "CANC-004"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "never cancels its initialize request" in done.stdout
