"""`sansmcp explain`: shows the rule that a message names."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from sansmcp import JSONValue

from ._errors import UsageError
from ._output.output import Output
from ._output.printing import Block, Body, Heading, NamedValues

_MEMBERS = ("id", "level", "role", "layer", "revisions", "page", "text")


def read_rules() -> dict[str, dict[str, str]]:
    """The table of rules that comes with the library, by id."""
    table = files("sansmcp") / "data" / "requirements.csv"
    return {row["id"]: row for row in csv.DictReader(table.read_text("utf-8").splitlines())}


def explain(ids: Sequence[str], output: Output) -> None:
    """Show rules.

    Raises:
        UsageError: There is no such rule.
    """
    rules = read_rules()
    wanted = [id.upper() for id in ids]
    unknown = [(id, given) for id, given in zip(wanted, ids, strict=True) if id not in rules]
    if unknown:
        raise UsageError(
            f"there is no rule {', '.join(given for _, given in unknown)}",
            *(hint for id, _ in unknown for hint in near(id, rules)),
        )
    found = [rules[id] for id in wanted]
    document: list[JSONValue] = [
        {
            **{name: rule[name] for name in _MEMBERS},
            "revisions": rule["revisions"].split(),
        }
        for rule in found
    ]
    output.result(document, _blocks(found))


def near(id: str, rules: Iterable[str]) -> list[str]:
    """Ids that may have been meant: with a number nearby in the same area, or a similar name."""
    area = re.split(r"[^A-Z]", id)[0]
    number = re.search(r"[0-9]{1,9}", id)
    same = [rule for rule in rules if rule.partition("-")[0] == area]
    if same and number is not None:
        same.sort(key=lambda rule: abs(int(rule.partition("-")[2]) - int(number[0])))
        return [f"did you mean {', '.join(sorted(same[:3]))}?"]
    if same:
        return [f"the rules of {area} are {same[0]} to {same[-1]}"]
    near = difflib.get_close_matches(id, rules, n=3)
    if near:
        return [f"did you mean {', '.join(near)}?"]
    areas = sorted({rule.partition("-")[0] for rule in rules})
    return [f"an id is an area and a number, as in CANC-004; areas are {', '.join(areas)}"]


def _blocks(rules: Iterable[Mapping[str, str]]) -> Iterator[Block]:
    for rule in rules:
        yield Heading(rule["id"])
        yield NamedValues(
            (
                ("level", rule["level"]),
                ("role", rule["role"]),
                ("layer", rule["layer"]),
                ("revisions", rule["revisions"]),
                ("page", rule["page"]),
            )
        )
        yield Body(rule["text"])
