"""URI templates of resources: which can be matched, and what a match says."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uritemplate import URITemplate

from sansmcp import InvalidCursor, JSONObject
from sansmcp_io.templates import InvalidTemplate, Match, Template, Templates

MATCHED: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("", "", {}),
    ("note:all", "note:all", {}),
    ("note://{id}", "note://7", {"id": "7"}),
    ("note://{id}", "note://a%2Fb%20%C3%A9~", {"id": "a/b é~"}),
    ("note://{id}", "note://a%2fb", {"id": "a/b"}),
    ("file:///{name}.md", "file:///a.md.md", {"name": "a.md"}),
    ("db://{table}/{row}/json", "db://users/1/json", {"table": "users", "row": "1"}),
    ("at://{lat,long}", "at://1.5,-2", {"lat": "1.5", "long": "-2"}),
    ("tags:{tags*}", "tags:a,b%2C,c", {"tags": ["a", "b,", "c"]}),
    ("file://{/path*}", "file:///home/ada/%40", {"path": ["home", "ada", "@"]}),
    ("file://{/path*}?raw", "file:///home?raw", {"path": ["home"]}),
    ("file:///{+path}", "file:///a/b%20c/d?e#f", {"path": "a/b c/d?e#f"}),
    ("file:///{+path}", "file:///a%2Fb%41%25", {"path": "a%2Fb%41%25"}),
    ("file:///{+path}/raw", "file:///a/raw/raw", {"path": "a/raw"}),
    ("doc:{id}{#part}", "doc:1#a/b", {"id": "1", "part": "a/b"}),
    ("img:x{.ext}", "img:x.tar.gz", {"ext": "tar.gz"}),
    ("q:{;a,b}", "q:;a=1;b", {"a": "1", "b": ""}),
    ("q:{;a,ab}", "q:;ab=1", {"ab": "1"}),
    ("q:{;a,ab}", "q:;ab", {"ab": ""}),
    ("q:{?a,b}", "q:", {}),
    ("q:{?a,b}", "q:?b=1", {"b": "1"}),
    ("q:{?a,b}", "q:?a=&b=%26", {"a": "", "b": "&"}),
    ("q:{id}{?a,b}", "q:7?b=1", {"id": "7", "b": "1"}),
    ("q:{id}?v=1{&a}", "q:7?v=1&a=2", {"id": "7", "a": "2"}),
    ("q:{?a}{#f}", "q:#x", {"f": "x"}),
    ("q:%c3%a9{id}", "q:%C3%A91", {"id": "1"}),
    ("q:{a.b,c_1,%41}", "q:1,2,3", {"a.b": "1", "c_1": "2", "%41": "3"}),
]
OTHERS: Final[list[tuple[str, str]]] = [
    ("", "a"),
    ("note:all", "note:al"),
    ("note:all", "note:allx"),
    ("note://{id}", "note://"),
    ("note://{id}", "note://a/b"),
    ("note://{id}", "note://a%"),
    ("note://{id}", "note://a%2"),
    ("note://{id}", "note://%zz"),
    ("note://{id}", "note://%FF"),
    ("note://{id}", "note://%41"),
    ("note://{id}", "note://é"),
    ("note://{id}", "Note://1"),
    ("note://{id}", "note://1\n"),
    ("a{id}a", "a"),
    ("file:///{name}.md", "file:///.md"),
    ("db://{table}/{row}/json", "db://users/json"),
    ("at://{lat,long}", "at://1"),
    ("at://{lat,long}", "at://1,"),
    ("at://{lat,long}", "at://1,2,3"),
    ("tags:{tags*}", "tags:"),
    ("tags:{tags*}", "tags:a,,b"),
    ("file://{/path*}", "file://"),
    ("file://{/path*}", "file:///a/"),
    ("file:///{+path}", "file:///%C3"),
    ("q:{?a,b}", "q:?b=1&a=1"),
    ("q:{?a,b}", "q:?a=1&a=2"),
    ("q:{?a,b}", "q:?a"),
    ("q:{?a,b}", "q:?c=1"),
    ("q:{;a}", "q:;a="),
    ("q:{;a}", "q:;ab"),
    ("x{?a}/y", "x?a=/z"),
]
REFUSED: Final[list[tuple[str, str]]] = [
    ("a{b", "does not end"),
    ("a}b", "no URI has"),
    ("a b", "no URI has"),
    ("é{a}", "no URI has"),
    ("a%2{b}", "no URI has"),
    ("{}", "a name that is none"),
    ("{a,}", "a name that is none"),
    ("{a-b}", "a name that is none"),
    ("{a..b}", "a name that is none"),
    ("{=a}", "a name that is none"),
    ("{a**}", "a name that is none"),
    ("{a}{b}", "what follows"),
    ("{a}-{b}", "what follows"),
    ("{a}%20{b}", "what follows"),
    ("{a}{.b}", "what follows"),
    ("{+a}/{b}", "what follows"),
    ("{+a}{?b}", "what follows"),
    ("{#a}{?b}", "what follows"),
    ("{?a}{&b}", "what follows"),
    ("{?a}x{b}", "what follows"),
    ("{a*},{b}", "what follows"),
    ("{/a*}{/b}", "what follows"),
    ("{?a}?a=1", "what follows"),
    ("{a:3}", "prefix"),
    ("{a*,b}", "not alone"),
    ("{?a*}", "lists are matched"),
    ("{+a*}", "lists are matched"),
    ("{+a,b}", "between two values"),
    ("{#a,b}", "between two values"),
    ("{.a,b}", "between two values"),
    ("{a}/{a}", "twice"),
    ("{?a,a}", "twice"),
]


@pytest.mark.parametrize(("template", "uri", "values"), MATCHED)
def test_a_uri_gives_the_values_that_it_was_made_of(
    template: str, uri: str, values: dict[str, Any]
) -> None:
    """A handler reads the row that the client has asked for."""
    one = Template(template)
    assert one.match(uri) == values
    assert one.expand(values).upper() == uri.upper()
    assert set(values) <= set(one.variables)


@pytest.mark.parametrize(("template", "uri"), OTHERS)
def test_a_uri_that_a_template_does_not_make_is_none_of_it(template: str, uri: str) -> None:
    """A value that was guessed would lead to the wrong resource."""
    assert Template(template).match(uri) is None


@pytest.mark.parametrize(("template", "why"), REFUSED)
def test_a_template_that_cannot_be_matched_is_refused(template: str, why: str) -> None:
    """The author of a server learns it when the server starts, and of which expression."""
    with pytest.raises(InvalidTemplate, match=why) as caught:
        Template(template)
    assert repr(template) in str(caught.value)


def test_a_template_shows_its_text() -> None:
    """Failed tests and logs show the repr."""
    assert repr(Template("note://{id}")) == "Template('note://{id}')"
    assert Template("db:{a}/{b}{?c}").variables == ("a", "b", "c")


# --------------------------------------------------------------------------------- properties

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FILLED: Final = TEXT.filter(bool)
OPEN: Final = FILLED.filter(lambda text: "%" not in text)
"""Values of `{+name}`: a `%` would be taken for percent-encoding."""
LISTS: Final = st.lists(FILLED, min_size=1, max_size=3)
ENDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "{z}": FILLED,
    "{+z}": OPEN,
    "{#z}": OPEN,
    "{.z}": FILLED,
    "{/z}": FILLED,
    "{/z*}": LISTS,
    "{z*}": LISTS,
    "{;z}": TEXT,
    "{?z}": TEXT,
}


@st.composite
def expansions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A template that can be matched, and values for it."""
    template, values = "x:", dict[str, Any]()
    for name in draw(st.sampled_from(["", "a", "ab", "abc"])):
        middle = draw(st.sampled_from(["{%s}/", "/{%s}", "{/%s}", "{;%s}/", "{/%s*}:", "{%s*}!"]))
        if middle[0] == "{" and template[-1] == "}" and middle[1] not in "/;":
            template += "$"
        template += middle % name
        values[name] = draw(LISTS if "*" in middle else TEXT if ";" in middle else FILLED)
    end, strategy = draw(st.sampled_from(sorted(ENDS.items())))
    values["z"] = draw(strategy)
    before = "@" if template[-1] == "}" else ""
    return template + before + end + draw(st.sampled_from(["", ".md", "/raw", "@"])), values


@given(expansions())
def test_what_was_expanded_is_matched(expansion: tuple[str, dict[str, Any]]) -> None:
    """No value may be lost, whatever its characters are."""
    template, values = expansion
    one = Template(template)
    uri = one.expand(values)
    assert one.match(uri) == values
    assert uri == URITemplate(template).expand(values)


PIECES: Final = st.sampled_from(
    [
        *("{a}", "{+b}", "{#c}", "{/d}", "{/e*}", "{?f,g}", "{&h}", "{;i,j}", "{.k}", "{l,m}"),
        *("{n*}", "/", "x", "?", ".", ",", "&", "=", ";", "#", "%20"),
    ]
)


@given(
    st.lists(PIECES, max_size=6).map("".join),
    st.lists(st.sampled_from("abfghij/x?.,&=;#%20") | st.just("%2F"), max_size=16).map("".join),
)
def test_a_match_is_always_an_expansion(template: str, uri: str) -> None:
    """A template is refused, or each of its matches makes the same URI again."""
    try:
        one = Template(template)
    except InvalidTemplate:
        return
    values = one.match(uri)
    assert values is None or one.expand(values) == uri


@pytest.mark.parametrize("template", ["x:{a}/{b}", "x:{/a*}", "x:{+a}.md", "x:{a*}", "x:{?a,b}"])
@pytest.mark.parametrize("unit", ["a", "%2F", "/a", ",a", "?a=", "&", "%", "é", "a/", ".md"])
def test_a_long_uri_is_read_once(template: str, unit: str) -> None:
    """A client chooses the URI: time that grows with its square would hold up a server.

    It would be hours for a million characters, and more than the time limit of a test.
    """
    one = Template(template)
    uri = "x:" + unit * (1_000_000 // len(unit))
    values = one.match(uri)
    assert values is None or one.expand(values) == uri
    assert one.match(f"{uri} ") is None


# ------------------------------------------------------------------------------- a collection

DEFINITIONS: Final[list[JSONObject]] = [
    {"uriTemplate": "note://{id}", "name": "note"},
    {"uriTemplate": "note://{id}{?version}", "name": "version"},
    {"uriTemplate": "file:///{+path}", "name": "file"},
]


def test_the_first_template_that_fits_decides() -> None:
    """Two templates may make the same URI; the server's order says which one is meant."""
    templates = Templates(DEFINITIONS)
    assert templates.match("note://1") == Match("note://{id}", {"id": "1"}, DEFINITIONS[0])
    found = templates.match("note://1?version=2")
    assert found is not None
    assert (found.template, found.values) == (
        "note://{id}{?version}",
        {"id": "1", "version": "2"},
    )
    assert found.definition is DEFINITIONS[1]
    assert templates.match("other://1") is None


def test_templates_are_listed_page_by_page() -> None:
    """A cursor stays valid when a template is added."""
    templates = Templates(DEFINITIONS, page_size=2)
    first = templates.list()
    second = templates.list(first["nextCursor"])
    names = [one["name"] for page in (first, second) for one in page["resourceTemplates"]]
    assert names == ["file", "note", "version"]
    assert "nextCursor" not in second
    with pytest.raises(InvalidCursor):
        templates.list("made up")


@pytest.mark.parametrize(
    ("definitions", "why"),
    [
        ([{"name": "note"}], "no uriTemplate"),
        ([{"uriTemplate": 1}], "no uriTemplate"),
        ([{"uriTemplate": "{a}{b}"}], "what follows"),
        ([DEFINITIONS[0], DEFINITIONS[0]], "twice"),
    ],
)
def test_definitions_are_checked_when_the_server_starts(
    definitions: list[JSONObject], why: str
) -> None:
    """The first client would find it out otherwise."""
    with pytest.raises(InvalidTemplate, match=why):
        Templates(definitions)


def test_a_page_has_at_least_one_item() -> None:
    """An empty page would be followed by the same page."""
    with pytest.raises(ValueError, match="at least one item"):
        Templates(DEFINITIONS, page_size=0)
