"""The pages that are generated from code leave nothing out."""

import ast
import contextlib
import pkgutil
import re
from collections.abc import Iterable
from keyword import kwlist
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from xml.etree import ElementTree

import attrs
import pytest
from docutils import nodes

import sansmcp
import sansmcp.content
import sansmcp.http
import sansmcp.limits
import sansmcp.observer
import sansmcp.testing
import sansmcp_io
import sansmcp_io.asgi
import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.oauth
import sansmcp_io.trio
import sansmcp_io.wsgi
from docs._ext.diagrams import (
    TABLES,
    Table,
    direct,
    dot_of_parts,
    dot_of_rooms,
    dot_of_table,
    meanings,
    rooms,
    svg_of,
)
from docs._ext.limits import explanations
from docs._ext.rules import AREAS, read_rules, span
from docs._ext.sources import linked, url_of
from docs._ext.where import (
    EVERYWHERE,
    KINDS,
    NAMED,
    index,
    module_of,
    read_where,
    source_of,
    unlisted,
)
from tests.rules.test_rules import RULES, ids_in_source

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
SVG = "{http://www.w3.org/2000/svg}"


def own_names_of(module: ModuleType, elsewhere: ModuleType = sansmcp_io.trio) -> Iterable[str]:
    """The names that a module does not share with another, whose entry holds for both."""
    return sorted(
        f"{module.__name__}.{name}"
        for name in module.__all__
        if (elsewhere is sansmcp_io or not name.startswith("DEFAULT_"))
        and getattr(elsewhere, name, None) != getattr(module, name)
        # which `sansmcp_io.wsgi` shares with `sansmcp_io.blocking`
        and (module is sansmcp_io.blocking or name != "CallCancelled")
    )


def test_reference_says_how_exceptions_relate() -> None:
    """Whoever writes `except` must know what catches which of them."""
    told: dict[str, set[str]] = {}
    for line in (REFERENCE / "sansmcp_io.md").read_text().splitlines():
        cells = line.split("|")
        if len(cells) == 5 and (bases := re.findall(r"`(\w+)`", cells[3])):
            told.update({name: set(bases) for name in re.findall(r"`([A-Z]\w+)`", cells[2])})
    known = {name: getattr(sansmcp_io, name) for name in sansmcp_io.__all__}
    exceptions = {
        name for name, one in known.items() if isinstance(one, type) and issubclass(one, Exception)
    }
    assert set(told) == exceptions
    for name, known_bases in told.items():
        ancestors = {base.__name__ for base in known[name].__mro__[1:]} - {
            "BaseException",
            "object",
        }
        assert known_bases | {"Exception"} == ancestors, name


def names_of(module: ModuleType) -> Iterable[str]:
    """The public names of a package, such as `sansmcp.testing.Pair`, wherever they are
    documented."""
    return sorted(f"{module.__name__}.{name}" for name in module.__all__)


def documented() -> set[str]:
    """The full names that the reference documents, one directive each."""
    return {name for page in REFERENCE.glob("*.md") for name in documented_on(page)}


def documented_on(page: Path) -> set[str]:
    """The full names that one page of the reference documents."""
    found: set[str] = set()
    module = owner = ""
    for line in page.read_text("utf-8").splitlines():
        if match := re.match(r"( *)\.\. py:currentmodule:: (\S+)", line):
            module = match[2]
        elif match := re.match(r"( *)\.\. auto\w+:: (\S+)", line):
            if match[1]:
                found.add(f"{owner}.{match[2]}")
            else:
                owner = f"{module}.{match[2]}"
                found.add(owner)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *names_of(sansmcp),
        *sorted(
            set(names_of(sansmcp.observer)) - {f"sansmcp.observer.{n}" for n in sansmcp.__all__}
        ),
        *names_of(sansmcp.content),
        *names_of(sansmcp.http),
        *names_of(sansmcp.limits),
        *names_of(sansmcp.testing),
        *names_of(sansmcp_io),
        *own_names_of(sansmcp_io.trio, sansmcp_io),
        *own_names_of(sansmcp_io.asyncio),
        *own_names_of(sansmcp_io.blocking),
        *own_names_of(sansmcp_io.asgi),
        *own_names_of(sansmcp_io.wsgi),
        *own_names_of(sansmcp_io.oauth),
    ],
)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    """A name without an entry can be imported, but not looked up."""
    assert name in documented()


def test_every_package_has_a_page_of_its_own() -> None:
    """A reader who knows the package of a name finds its page by that."""
    package_names = sansmcp.observer.__all__
    for page in REFERENCE.glob("*.md"):
        package = page.read_text("utf-8").partition("\n")[0].strip("# `")
        # Two packages may have the same last name, such as `sansmcp.auth` and `sansmcp_io.auth`.
        assert page.stem in (package.rpartition(".")[2], package.replace(".", "_"))
        for name in documented_on(page):
            # What `sansmcp` offers of its observer, too, is under its shorter name there.
            of_observer = package == "sansmcp.observer" and name.split(".")[1] in package_names
            assert of_observer or name.startswith((f"{package}.", "sansmcp_io._common."))


@pytest.mark.parametrize("connection", [sansmcp.ServerConnection, sansmcp.ClientConnection])
def test_every_method_of_a_connection_is_in_the_reference(connection: type) -> None:
    """Methods are listed one by one there, grouped by job, so that one could be forgotten."""
    methods = {name for name in dir(connection) if not name.startswith("_")}
    shared = {
        name.rpartition(".")[2]
        for name in documented()
        if name.startswith(("sansmcp.ServerConnection.", f"sansmcp.{connection.__name__}."))
    }

    assert methods - shared == set()


def test_every_setting_says_what_it_does() -> None:
    """The page of limits is made from these docstrings."""
    texts = explanations()
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(sansmcp.Config)

    assert [field.name for field in fields if not texts.get(field.name)] == []


def test_every_area_of_rules_has_a_title() -> None:
    """The page of rules has one section per area."""
    areas = read_rules()

    assert "OWN" in areas
    assert set(areas) == set(AREAS)


def test_rule_ids_are_anchors_of_their_own() -> None:
    """Two rules with one anchor would make a link lead to the wrong one."""
    ids = [row["id"] for rows in read_rules().values() for row in rows]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("revisions", "text"),
    [
        ("2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28", "all revisions"),
        ("2025-03-26", "2025-03-26"),
        ("2025-03-26 2025-06-18 2025-11-25", "2025-03-26 to 2025-11-25"),
        ("2024-11-05 2025-11-25", "2024-11-05, 2025-11-25"),
    ],
)
def test_revisions_with_a_gap_are_not_shown_as_a_span(revisions: str, text: str) -> None:
    """A reader would think that the rule holds in the missing revisions."""
    assert span(revisions) == text


def test_sources_are_links_to_the_pages_that_they_name() -> None:
    """A reader who doubts a sentence wants to read the page, in its revision."""
    text = "2025-11-25, basic/index, Requests; basic/lifecycle; 2026-07-28, schema and RFC 9110."
    found = linked(text)

    assert "".join(node.astext() for node in found) == text
    assert [node["refuri"] for node in found if isinstance(node, nodes.reference)] == [
        url_of("2025-11-25", "basic"),
        url_of("2025-11-25", "basic/lifecycle"),
        url_of("2026-07-28", "schema"),
    ]


def shown_in(dot: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """The texts of the boxes in a diagram, and both ends of each arrow."""
    picture = ElementTree.fromstring(svg_of(dot))
    groups = {
        kind: [group for group in picture.iter(f"{SVG}g") if group.get("class") == kind]
        for kind in ("node", "edge")
    }
    boxes = ["".join(text.itertext()) for box in groups["node"] for text in box.iter(f"{SVG}text")]
    titles = [arrow.findtext(f"{SVG}title") or "" for arrow in groups["edge"]]
    return boxes, [tuple(title.split("->")) for title in titles]


@pytest.mark.parametrize("name", TABLES)
def test_diagram_shows_every_state_and_arrow(name: str) -> None:
    """A diagram without one of the rows would mislead."""
    table: Table = TABLES[name]
    dot = dot_of_table(table)
    picture = ElementTree.fromstring(svg_of(dot))
    boxes, arrows = shown_in(dot)
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]

    assert sorted(boxes) == sorted(state.name for state in type(next(iter(table.values()))))
    assert sorted(texts) == sorted([*boxes, *(trigger.name for _, trigger in table)])
    assert sorted(arrows) == sorted(
        {(source.name, target.name) for (source, _), target in table.items()}
    )


@pytest.mark.parametrize("package", [sansmcp, sansmcp_io])
def test_diagram_shows_every_room(package: ModuleType) -> None:
    """A newcomer uses it to find the folder of a step."""
    name, folder = package.__name__, Path(package.__path__[0])
    boxes, arrows = shown_in(dot_of_rooms(name))
    folders = {path.parent.name for path in folder.glob("*/__init__.py")} - {"http"}

    assert folders <= {box.rpartition(".")[2] for box in boxes}
    assert arrows


def test_rooms_know_each_other_one_way() -> None:
    """Arrows that follow from others are left out, which needs a graph without circles."""
    for package in ("sansmcp", "sansmcp_io"):
        known = rooms(package)
        drawn = direct(known)
        reached = {name: set(drawn[name]) for name in drawn}
        for _ in drawn:
            for targets in reached.values():
                targets |= {far for near in tuple(targets) for far in reached.get(near, set())}
        for name, others in known.items():
            assert others <= reached[name]
            assert name not in reached[name]


def test_diagram_shows_every_part_of_a_connection() -> None:
    """The diagram is the map of the core."""
    boxes, arrows = shown_in(dot_of_parts())

    assert {"OutgoingRequests", "IncomingRequests", "ClientDiscovery", "Listeners"} <= set(boxes)
    assert len(boxes) == len(set(boxes))
    assert {name for arrow in arrows for name in arrow} <= set(boxes)
    assert ("Listings", "OutgoingRequests") in arrows


@pytest.mark.parametrize("name", TABLES)
def test_every_state_has_a_meaning(name: str) -> None:
    """Below each diagram the meaning of its states is printed, taken from their docstrings."""
    table: Table = TABLES[name]
    kind = type(next(iter(table.values())))

    assert [state for state, text in meanings(kind) if not text] == []


PAGES = [
    *sorted((Path(__file__).parent.parent.parent / "docs").rglob("*.md")),
    Path(__file__).parent.parent.parent / "README.md",
]


def settings_in(text: str) -> Iterable[ast.Call]:
    """Each `Config(...)` of a page that is a complete expression."""
    for found in re.finditer(r"\bConfig\((?:[^()]|\([^()]*\))+\)", text):
        expression = ast.parse(found[0], mode="eval").body
        assert isinstance(expression, ast.Call)
        yield expression


def test_settings_that_a_page_names_exist() -> None:
    """What a page recommends can be written down like this: name, and value where it is one."""
    seen: set[str] = set()
    for page in PAGES:
        for call in settings_in(page.read_text("utf-8")):
            names = {keyword.arg or "" for keyword in call.keywords}
            assert names <= set(attrs.fields_dict(sansmcp.Config)), (page, names)
            seen |= names
            values: dict[str, Any] = {}
            for keyword in call.keywords:
                if keyword.arg is not None and not isinstance(keyword.value, ast.Name):
                    with contextlib.suppress(ValueError):  # such as a product, or a call
                        values[keyword.arg] = ast.literal_eval(keyword.value)
            sansmcp.Config(**{name: one for name, one in values.items() if one is not ...})
    assert {"codec", "max_message_bytes", "manual"} <= seen


# ------------------------------------------------------------------------ where rules are kept


WHERE: Final = read_where()


def test_every_rule_says_where_it_is_kept() -> None:
    """A rule without an entry would look kept without being so."""
    assert list(WHERE) == list(RULES)
    assert {entry.kept for entry in WHERE.values()} == set(KINDS)


@pytest.mark.parametrize("kept", KINDS)
def test_a_rule_that_is_kept_in_code_names_its_places(kept: str) -> None:
    """A reader must find the code of a rule, or the reason why there is none."""
    wrong = {
        rule
        for rule, entry in WHERE.items()
        if entry.kept == kept and bool(entry.places) != (kept in (*NAMED, "construction"))
    }
    assert wrong == set()


def test_places_of_rules_are_there() -> None:
    """A renamed function leads nowhere; `python -m docs._ext.where` prints such places."""
    places = {place for entry in WHERE.values() for place in entry.places}
    assert {place for place in places if source_of(place) is None} == set()
    for place in places:
        pkgutil.resolve_name(f"{module_of(place)}:{place[len(module_of(place)) + 1 :]}")


def test_functions_that_keep_a_rule_name_it() -> None:
    """`git grep RULE-ID` is the shortest way from a complaint to the code that makes it."""
    silent = {
        (rule, place)
        for rule, entry in WHERE.items()
        if entry.kept in NAMED
        for place in entry.places
        if rule not in (source_of(place) or "")
    }
    assert silent == set()


def test_rules_that_code_reports_are_not_said_to_be_the_duty_of_others() -> None:
    """The table would not lead to the function that reports the breach."""
    reported = set(ids_in_source())
    assert {rule for rule in reported if not WHERE[rule].places} == set()


@pytest.mark.parametrize(("rule", "name"), [("VER-004", "take"), ("OWN-041", "later")])
def test_places_lead_to_what_acts_and_not_to_what_is_beside_it(rule: str, name: str) -> None:
    """Both ids once led to a check of settings, far from the code that keeps the rule."""
    assert WHERE[rule].places[0].endswith(f".{name}")
    assert name in {place.rpartition(".")[2] for place in index()[rule]}


def test_rows_have_each_function_that_names_their_rule() -> None:
    """Half of a rule is no answer; `python -m docs._ext.where` lists what a row lacks."""
    rows = {rule: unlisted(rule, entry) for rule, entry in WHERE.items()}

    assert {rule: places for rule, places in rows.items() if places} == {}
    assert set(WHERE) >= EVERYWHERE


def test_rules_that_hold_by_construction_say_why() -> None:
    """Their functions name no rule, so the row alone tells a reader what to look for there."""
    notes = {rule: entry.note for rule, entry in WHERE.items() if entry.kept == "construction"}

    assert {rule for rule, note in notes.items() if not re.fullmatch(r"\S.* .*\.", note)} == set()


# ------------------------------------------------------------------------------- the house


ROOT: Final = Path(__file__).parent.parent.parent


def tables_under(page: str, heading: str) -> list[list[str]]:
    """The cells of all rows of the tables in one section of a page."""
    section = (ROOT / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    lines = section.partition("\n## ")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


def code_in(cell: str) -> list[str]:
    """The inline code in a table cell."""
    return re.findall(r"`([^`]+)`", cell)


def test_contributing_lists_every_room() -> None:
    """A newcomer reads this table first."""
    listed = {
        name for row in tables_under("CONTRIBUTING.md", "The house") for name in code_in(row[0])
    }
    folders = {
        path.parent.name
        for package in (sansmcp, sansmcp_io)
        for path in Path(package.__path__[0]).glob("*/__init__.py")
    }

    assert folders <= listed
    assert [name for name in listed if name.endswith("/") and not (ROOT / name).is_dir()] == []


def test_modules_to_begin_with_are_there() -> None:
    """A newcomer who cannot find the first file may give up."""
    for rooms_listed, _, modules in (
        row for row in tables_under("CONTRIBUTING.md", "The house") if len(row) == 3
    ):
        places = [
            Path(package.__path__[0], room)
            for package in (sansmcp, sansmcp_io)
            for room in code_in(rooms_listed)
        ]
        for module in code_in(modules):
            path = module.replace(".", "/")
            assert any(
                (place / f"{path}.py").is_file() or (place.parent / f"{path}.py").is_file()
                for place in places
            ), (rooms_listed, module)


ROOM_DOCSTRINGS: Final = {
    path.parent: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    for package in (sansmcp, sansmcp_io)
    for path in sorted(Path(package.__path__[0]).rglob("__init__.py"))
}
"""The text that introduces each room, by its folder."""
NO_MODULES: Final = {*kwlist, *sansmcp_io.asyncio.__all__, "initialize"}
"""Other names in lower case that may stand as code there."""


def module_named(room: Path, name: str) -> Path | None:
    """The file or folder of a module that the docstring of a room names."""
    path = name.replace(".", "/")
    bases = [room, *room.parents[: len(room.relative_to(ROOT).parts) - 1], ROOT / "src"]
    files = (file for base in bases for file in (base / f"{path}.py", base / path))
    return next((file for file in files if file.exists()), None)


def test_modules_that_a_room_names_are_there() -> None:
    """The docstring of a room is its map: a reader goes where it says to begin."""
    named = {
        (str(room.relative_to(ROOT)), name)
        for room, text in ROOM_DOCSTRINGS.items()
        for name in re.findall(r"`([a-z_0-9.]+)`", text)
    }
    missing = {
        (room, name)
        for room, name in named
        if name not in NO_MODULES and module_named(ROOT / room, name) is None
    }

    assert len(named) > 60
    assert missing == set()


@pytest.mark.parametrize(
    "room",
    [
        "src/sansmcp/_connection",
        "src/sansmcp/http/_client",
        "src/sansmcp/http/_server",
        "adapters/sansmcp_io/_async",
        "adapters/sansmcp_io/_common",
    ],
)
def test_docstring_of_a_large_room_names_each_module(room: str) -> None:
    """Twenty file names in alphabetical order do not tell a newcomer what belongs together."""
    modules = {file.stem for file in (ROOT / room).glob("[!_]*.py")}

    assert len(modules) > 15
    assert modules - set(code_in(ROOM_DOCSTRINGS[ROOT / room])) == set()


def test_classes_that_a_room_draws_are_in_their_modules() -> None:
    """`_async` draws who inherits from whom, with the module of each class."""
    drawn = [
        (room, found[1], module)
        for room, text in ROOM_DOCSTRINGS.items()
        for line in text.splitlines()
        if (found := re.match(r" +([A-Z]\w+) +(`.*)", line))
        for module in code_in(found[2].partition(":")[0])
    ]

    assert len(drawn) > 10
    for room, name, module in drawn:
        file = module_named(room, module)
        assert file is not None, (room, module)
        assert f"\nclass {name}" in file.read_text("utf-8"), (room, name, module)


def test_files_that_an_author_of_an_adapter_reads_are_there() -> None:
    """An author of an adapter for another loop has no other list of files."""
    rows = tables_under("docs/howto/adapter.md", "Which files to read")
    named = [name for row in rows for name in code_in(row[0])]

    assert named[0] == "_async/loop.py"
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "adapters/sansmcp_io" / name).exists()] == []
    assert {row[1] for row in rows} == {"copy", "use"}


def test_rooms_that_answer_questions_are_there() -> None:
    """The page "where does it live" must lead to rooms that exist."""
    page = (ROOT / "docs" / "where.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.count(" | ") == 2]
    rooms_named = {code_in(row[1])[0] for row in rows if code_in(row[1])}

    assert len(rooms_named) > 8
    for _, room, modules in (row for row in rows if code_in(row[1])):
        folder = next(
            base / code_in(room)[0]
            for base in (ROOT / "src", ROOT / "adapters")
            if (base / code_in(room)[0]).is_dir()
        )
        for module in code_in(modules):
            assert (folder / f"{module}.py").is_file(), (room, module)
