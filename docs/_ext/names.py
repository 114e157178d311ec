"""Links names to their documentation: types in signatures, and `names` in code font in sentences.

Users import everything from `sansmcp`, but signatures name the private module that defines a class,
and sentences name a class or method without its module.
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
    "sansmcp.content",
    "sansmcp.limits",
    "sansmcp.testing",
    "sansmcp.auth",
    "sansmcp_io",
    "sansmcp_io.trio",
    "sansmcp_io.asyncio",
    "sansmcp_io.blocking",
    "sansmcp_io.asgi",
    "sansmcp_io.wsgi",
    "sansmcp_io.redis",
    "sansmcp_io.oauth",
)
"""The modules and classes in which a short name is looked up, in this order."""

WORDS = {
    "adapt",
    "annotate",
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
"""Lower-case words that name our functions in every sentence, unlike `ping` and `items`."""


def candidates(target: str) -> list[str]:
    """The full names that a short name, or a name with a private module in it, may stand for."""
    parts = target.split(".")
    kept = [part for part in parts if not part.startswith("_")]
    if kept != parts:
        return [".".join(kept)]
    places = [target, *(f"{place}.{target}" for place in PLACES)]
    if parts[0] == "sansmcp_io" and len(parts) > 2:  # a room that adapters share
        places += [f"{place}.{'.'.join(parts[2:])}" for place in ("sansmcp_io", "sansmcp_io.trio")]
    return places


def demand_exact(app: Sphinx, doctree: nodes.document) -> None:
    """Let Sphinx look only in the module of a signature, and leave other names to `resolve`.

    By default it searches all modules for a name with this ending, and several adapters have equal
    names.
    """
    for reference in doctree.findall(pending_xref):
        reference.attributes.pop("refspecific", None)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Resolve a reference that Sphinx itself could not resolve."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    for name in candidates(node["reftarget"]):
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
        if isinstance(found, nodes.reference):
            return found
    place = env.domains.standard_domain.objects.get(("mcp", node["reftarget"]))
    if place is None:
        return None
    page, anchor = place
    uri = f"{app.builder.get_relative_uri(node['refdoc'], page)}#{anchor}"
    link = nodes.reference("", "", internal=True, refuri=uri)  # a type of `sansmcp.types`
    link += content
    return link


def place_of(env: BuildEnvironment, text: str) -> tuple[str, str] | None:
    """The page and the anchor of a documented name, as it is written in sentences."""
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
    """Turn a documented name in code font into a link."""
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
    """Connect the functions to events; Sphinx calls this."""
    app.connect("doctree-read", demand_exact)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_code)
    return {"version": "1", "parallel_read_safe": True}
