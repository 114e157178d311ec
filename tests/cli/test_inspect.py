"""`sansmcp inspect` shows a server and all its offers on one page."""

import re

import pytest

from sansmcp import ALL_REVISIONS, LEGACY_REVISIONS
from tests.support.command_line import DEMO, MCP, document, modern, sansmcp, scripted

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def received(stderr: str) -> list[str]:
    """The methods that a scripted server has received."""
    return re.findall(r"^server\| received (\S+)$", stderr, re.M)


def test_everything_of_a_foreign_server_is_shown() -> None:
    """One command must show everything that a server of another implementation offers."""
    done = sansmcp("inspect", "--", *MCP)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"server: +mcp-peer$", lines[0])
    assert re.search(r"^revision: +2026-07-28 \(modern era\)$", done.stdout, re.M)
    assert re.search(r"^supports: +2026-07-28$", done.stdout, re.M)
    assert "A peer for interoperation tests." in lines
    assert re.search(r"^resources: +listChanged, subscribe$", done.stdout, re.M)
    assert len(re.findall(r"^  filler_\d\d ", done.stdout, re.M)) == 20
    assert re.search(
        r'^  log +level: "debug" or .*, message\?: string +The tool log$', done.stdout, re.M
    )
    assert re.search(r"^  test://notes/first +first +text/plain$", done.stdout, re.M)
    assert re.search(r"^  test://greetings/\{name\} +greeting +text/plain$", done.stdout, re.M)
    assert re.search(r"^  greet +name$", done.stdout, re.M)


def test_json_has_all_of_it_in_one_document() -> None:
    """Programs read this document; members may be added, and none may be removed."""
    found = document(sansmcp("inspect", "--json", "--", *MCP))

    assert set(found) == {
        *("revision", "era", "supportedVersions"),
        *("server", "capabilities", "instructions", "errors"),
        *("tools", "resources", "resourceTemplates", "prompts"),
    }
    assert found["server"]["name"] == "mcp-peer"
    assert len({tool["name"] for tool in found["tools"]}) == len(found["tools"]) > 28
    assert [resource["uri"] for resource in found["resources"]] == [
        "test://notes/first",
        "test://notes/second",
    ]
    assert found["resourceTemplates"][0]["uriTemplate"] == "test://greetings/{name}"
    assert found["prompts"][0]["arguments"][0]["name"] == "name"
    assert found["errors"] == {}


def test_what_is_not_declared_is_not_asked_for() -> None:
    """A listing without its capability would break a rule, and end some servers."""
    server = scripted(log=True, answers={"tools/list": {"tools": [TOOL]}})
    done = sansmcp("inspect", "--json", "--", *server)

    assert done.returncode == 0
    opening = ["server/discover", "initialize", "notifications/initialized"]
    assert received(done.stderr) == [*opening, "tools/list"]
    assert document(done)["prompts"] is None
    assert "prompts: not declared" in sansmcp("inspect", "--", *server).stdout


def test_a_listing_that_fails_does_not_hide_the_others() -> None:
    """A user who looks for the fault must see which listings work."""
    server = scripted(
        initialize={"capabilities": {"tools": {}, "prompts": {}}},
        answers={
            "tools/list": [
                {"tools": [TOOL], "nextCursor": "2"},
                {"error": {"code": -32603, "message": "no page 2"}},
            ],
            "prompts/list": {"prompts": [{"name": "greet"}]},
        },
    )
    done = sansmcp("inspect", "--", *server)

    assert done.returncode == 3
    assert "  echo" in done.stdout
    assert "(incomplete: no page 2 (-32603))" in done.stdout
    assert "  greet" in done.stdout
    assert "error: tools/list did not succeed: no page 2 (-32603)" in done.stderr

    found = document(sansmcp("inspect", "--json", "--", *server))
    assert found["tools"] == [TOOL]
    assert found["errors"] == {
        "tools/list": {
            **{"kind": "peer-error", "text": "no page 2 (-32603)", "code": -32603},
            **{"rule": None, "status": None, "retry_after": None},
        }
    }


def test_failure_of_a_listing_is_said_once() -> None:
    """A failure that is shown twice in one line reads like two faults."""
    pages = [{"tools": [TOOL], "nextCursor": "2"}, {"tools": "many"}]
    server = scripted(answers={"tools/list": pages})
    done = sansmcp("inspect", "--", *server)

    assert "(incomplete: result of tools/list" in done.stdout
    assert "error: tools/list did not succeed: result of tools/list" in done.stderr
    for said in (done.stdout, done.stderr):
        assert "is incomplete" not in said


def test_server_without_templates_is_in_order() -> None:
    """No capability declares templates, so many servers refuse to list them."""
    server = scripted(
        initialize={"capabilities": {"resources": {}}},
        answers={"resources/list": {"resources": [{"uri": "a:b", "name": "b"}]}},
    )
    done = sansmcp("inspect", "--", *server)

    assert done.returncode == 0, done.stderr
    assert "a:b" in done.stdout
    assert "resource templates (0)" in done.stdout


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"die_at": "tools/list"}, "lost"),
        ({"silent": ["tools/list"]}, "timeout"),
        ({"answers": {"tools/list": {"tools": "many"}}}, "invalid-answer"),
    ],
)
def test_each_way_to_fail_has_a_word_of_its_own(fault: dict[str, object], kind: str) -> None:
    """Programs that read the document decide by this word."""
    timeout = "1" if kind == "timeout" else "30"
    done = sansmcp("inspect", "--json", "--timeout", timeout, "--", *scripted(**fault))

    assert done.returncode == 3
    assert document(done)["errors"]["tools/list"]["kind"] == kind
    assert document(done)["server"]["name"] == "scripted"


def test_names_cannot_act_on_the_terminal() -> None:
    """Text of a server must not colour, overwrite, reverse or hide other text."""
    name = "a\x1b[31m\n[bold]b\u202e\u200b\U000e0041\x9b\u2800"
    tool = {"name": name, "description": "two\nlines\x1b[2J", "inputSchema": {"type": "object"}}
    server = scripted(
        initialize={"serverInfo": {"name": "evil\x07", "version": "\r0"}, "instructions": "x\x1by"},
        answers={"tools/list": {"tools": [tool]}},
        stderr=["\x1b]0;title\x07"],
    )
    done = sansmcp("inspect", "--", *server)

    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert r"a\x1b[31m\n[bold]b\u202e\u200b\U000e0041\x9b\u2800" in done.stdout
    assert r"two lines\x1b[2J" in done.stdout
    assert r"evil\x07" in done.stdout
    assert r"server| \x1b]0;title\x07" in done.stderr
    assert sansmcp("inspect", "--json", "--", *server).stdout.isascii()


def test_items_of_any_shape_are_shown() -> None:
    """The command is there to show invalid items of a server."""
    tools = [
        "no object",
        None,
        {"name": 7, "inputSchema": 3},
        {"name": "n", "inputSchema": {"properties": {"a": {"type": ["string", "null"]}, "b": 1}}},
        {"name": "t", "title": "Title", "description": ["odd"]},
        {"name": "long", "description": "x" * 5000},
    ]
    prompts = [{"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}, 3]}]
    server = scripted(
        initialize={"capabilities": {"tools": {"a": [1]}, "prompts": True, "experimental": {}}},
        answers={"tools/list": {"tools": tools}, "prompts/list": {"prompts": prompts}},
    )
    done = sansmcp("inspect", "--", *server)

    assert done.returncode == 0, done.stderr
    assert "no object" in done.stdout
    assert "a?: string or null, b?: any" in done.stdout
    assert 'Title: ["odd"]' in done.stdout
    assert "a, b?, 3?" in done.stdout
    assert "x" * 300 in done.stdout
    assert "x" * 500 not in done.stdout
    assert document(sansmcp("inspect", "--json", "--", *server))["tools"] == tools


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_revision_can_be_chosen(revision: str) -> None:
    """A user may want to see how a server treats an older client."""
    found = document(sansmcp("inspect", "--json", "--revision", revision, "--", *DEMO))

    assert found["revision"] == revision
    assert len(found["tools"]) == 27
    if revision in LEGACY_REVISIONS:
        assert (found["era"], found["supportedVersions"]) == ("legacy", None)
    else:
        assert found["era"] == "modern"
        assert found["supportedVersions"] == [*reversed(ALL_REVISIONS)]


def test_what_a_server_supports_is_shown_and_asked_once() -> None:
    """The output must name the supported revisions; some servers fail at a second
    `server/discover`."""
    answer = modern({}, supportedVersions=["2026-07-28", "x\x1b"])["server/discover"]
    again = {"error": {"code": -32603, "message": "once is enough"}}
    server = scripted(log=True, answers={"server/discover": [answer, again]})
    done = sansmcp("inspect", "--", *server)

    assert done.returncode == 0, done.stderr
    assert re.search(r"^supports: +2026-07-28, x\\x1b$", done.stdout, re.M)
    assert received(done.stderr) == ["server/discover"]
    found = document(sansmcp("inspect", "--json", "--", *server))
    assert found["supportedVersions"] == ["2026-07-28", "x\x1b"]
