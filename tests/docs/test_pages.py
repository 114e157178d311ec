"""The pages that are generated from code leave nothing out."""

import ast
import contextlib
import pkgutil
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from xml.etree import ElementTree

import attrs
import pytest
from docutils import nodes

import sansmcp
import sansmcp.http
import sansmcp.observer
import sansmcp.testing
import sansmcp_io
import sansmcp_io.asgi
import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
import sansmcp_io.wsgi
from docs._ext.diagrams import (
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
from docs._ext.where import KINDS, module_of, places_that_name, read_where, source_of
from sansmcp._rules import state_tables
from tests.rules.test_rules import RULES, ids_in_source

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
SVG = "{http://www.w3.org/2000/svg}"
TABLES: dict[str, Any] = {
    "STATES": state_tables.STATES,
    "PHASES": state_tables.PHASES,
    "REQUESTS": state_tables.REQUESTS,
}


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


def names_of(module: ModuleType) -> Iterable[str]:
    """What a package offers, as `sansmcp.testing.Pair`, wherever its page is to document it."""
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
        *names_of(sansmcp.http),
        *names_of(sansmcp.testing),
        *names_of(sansmcp_io),
        *own_names_of(sansmcp_io.trio, sansmcp_io),
        *own_names_of(sansmcp_io.asyncio),
        *own_names_of(sansmcp_io.blocking),
        *own_names_of(sansmcp_io.asgi),
        *own_names_of(sansmcp_io.wsgi),
    ],
)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    """A name without an entry can be imported, and looked up nowhere."""
    assert name in documented()


def test_every_package_has_a_page_of_its_own() -> None:
    """A reader who knows the package of a name finds its page by that."""
    package_names = sansmcp.observer.__all__
    for page in REFERENCE.glob("*.md"):
        package = page.read_text("utf-8").partition("\n")[0].strip("# `")
        assert package.rpartition(".")[2] == page.stem
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
    """Two rules of one id would share an anchor, and a link would lead to the wrong one."""
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
    """A reader would take the rule to hold in revisions where it does not."""
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
    """The texts of the boxes in a picture, and both ends of each arrow."""
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
    """A picture that leaves out a row of the table is worse than none."""
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
    """A newcomer looks for the folder in which the trail of a request goes on."""
    name, folder = package.__name__, Path(package.__path__[0])
    boxes, arrows = shown_in(dot_of_rooms(name))
    folders = {path.parent.name for path in folder.glob("*/__init__.py")} - {"http"}

    assert folders <= {box.rpartition(".")[2] for box in boxes}
    assert arrows


def test_rooms_know_each_other_one_way() -> None:
    """What follows from other arrows is left out, which is possible without circles only."""
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
    """The parts are the map of the core: whoever reads one wants to know the others."""
    boxes, arrows = shown_in(dot_of_parts())

    assert {"OutgoingRequests", "IncomingRequests", "ClientDiscovery", "Listeners"} <= set(boxes)
    assert len(boxes) == len(set(boxes))
    assert {name for arrow in arrows for name in arrow} <= set(boxes)
    assert ("Listings", "OutgoingRequests") in arrows


@pytest.mark.parametrize("name", TABLES)
def test_every_state_has_a_meaning(name: str) -> None:
    """Below each diagram stands what its states mean, taken from their docstrings."""
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
    """A rule without an entry would look kept, and nobody would know by what."""
    assert list(WHERE) == list(RULES)
    assert {entry.kept for entry in WHERE.values()} == set(KINDS)


@pytest.mark.parametrize("kept", KINDS)
def test_a_rule_that_is_kept_in_code_names_its_places(kept: str) -> None:
    """A reader who looks for a rule wants to be led to code, and not where there is none."""
    wrong = {
        rule
        for rule, entry in WHERE.items()
        if entry.kept == kept and bool(entry.places) != (kept in ("function", "construction"))
    }
    assert wrong == set()


def test_places_of_rules_are_there() -> None:
    """A name that was changed leads nowhere; `python -m docs._ext.where` says which."""
    places = {place for entry in WHERE.values() for place in entry.places}
    assert {place for place in places if source_of(place) is None} == set()
    for place in places:
        pkgutil.resolve_name(f"{module_of(place)}:{place[len(module_of(place)) + 1 :]}")


def test_functions_that_keep_a_rule_name_it() -> None:
    """`git grep RULE-ID` is the shortest way from a complaint to the code that makes it."""
    silent = {
        (rule, place)
        for rule, entry in WHERE.items()
        if entry.kept == "function"
        for place in entry.places
        if rule not in (source_of(place) or "")
    }
    assert silent == set()


def test_rules_that_code_reports_are_not_said_to_be_the_duty_of_others() -> None:
    """The table would send a reader away from the function that has complained."""
    reported = set(ids_in_source())
    assert {rule for rule in reported if not WHERE[rule].places} == set()


@pytest.mark.parametrize(("rule", "name"), [("VER-004", "take"), ("OWN-041", "later")])
def test_places_lead_to_what_acts_and_not_to_what_is_beside_it(rule: str, name: str) -> None:
    """Both ids once stood only in a check of settings, far from what they are about."""
    assert WHERE[rule].places[0].endswith(f".{name}")
    assert name in {place.rpartition(".")[2] for place in places_that_name(rule)}


# ------------------------------------------------------------------------------- the house


ROOT: Final = Path(__file__).parent.parent.parent


def tables_under(page: str, heading: str) -> list[list[str]]:
    """The cells of all rows of the tables in one section of a page."""
    section = (ROOT / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    lines = section.partition("\n## ")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


def code_in(cell: str) -> list[str]:
    """What stands as code in a cell."""
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
    """A newcomer who does not find the first file goes elsewhere."""
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


def test_rooms_that_answer_questions_are_there() -> None:
    """The page "where does it live" is no use where it leads to nothing."""
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
