"""Links between names: from types in signatures, and from `names` written as code anywhere.

Users import everything from `sansmcp`, while signatures name the private module that defines a
class; and sentences name things the way the reader does, without a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PLACES = (
    "sansmcp",
    "sansmcp.ServerConnection",
    "sansmcp.ClientConnection",
    "sansmcp.observer",
    "sansmcp.http",
    "sansmcp.testing",
    "sansmcp_io",
    "sansmcp_io.trio",
    "sansmcp_io.asyncio",
    "sansmcp_io.blocking",
    "sansmcp_io.asgi",
    "sansmcp_io.wsgi",
    "sansmcp_io.redis",
)
"""Where a short name is looked for, in this order."""

WORDS = {
    "cancel",
    "canonical",
    "close",
    "connect",
    "explore",
    "paginate",
    "paused",
    "plain",
    "publish",
    "serve",
    "start",
}
"""Lower-case words that mean our names in every sentence; `ping` and `items` do not."""


def candidates(target: str) -> list[str]:
    """Full names that a short one, or one with a private module in it, may stand for."""
    parts = target.split(".")
    kept = [part for part in parts if not part.startswith("_")]
    if kept != parts:
        return [".".join(kept)]
    places = [target, *(f"{place}.{target}" for place in PLACES)]
    if parts[0] == "sansmcp_io" and len(parts) > 2:  # what an adapter shares with others
        places += [f"{place}.{'.'.join(parts[2:])}" for place in ("sansmcp_io", "sansmcp_io.trio")]
    return places


def demand_exact(app: Sphinx, doctree: nodes.document) -> None:
    """Have Sphinx look in the module that a signature is from, and leave the rest to `resolve`.

    It would search all modules for the end of a name, of which several adapters have the same.
    """
    for reference in doctree.findall(pending_xref):
        reference.attributes.pop("refspecific", None)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Find what a reference means that Sphinx itself could not find."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    for name in candidates(node["reftarget"]):
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
        if isinstance(found, nodes.reference):
            return found
    return None


def place_of(env: BuildEnvironment, text: str) -> tuple[str, str] | None:
    """The page and anchor of something documented, by the name that stands in a sentence."""
    if text.isalpha() and text.islower() and text not in WORDS:
        return None
    target = text.partition("(")[0]
    kind = "limit" if target.startswith("Config.") else "rule"
    place = env.domains.standard_domain.objects.get((kind, target.removeprefix("Config.")))
    if place is not None:
        return place
    objects = env.domains.python_domain.objects
    known = next((name for name in candidates(target) if name in objects), None)
    return None if known is None else (objects[known].docname, objects[known].node_id)


def link_code(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn code that is the name of something documented into a link to it."""
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference | nodes.title | nodes.term):
            continue
        place = place_of(app.env, literal.astext())
        if place is not None:
            page, anchor = place
            uri = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
            link = nodes.reference("", "", internal=True, refuri=uri)
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", demand_exact)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_code)
    return {"version": "1", "parallel_read_safe": True}
