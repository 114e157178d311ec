"""Corrects the output of Sphinx for docstrings, signatures and type aliases."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.util.typing import stringify_annotation

import sansmcp
import sansmcp.http
import sansmcp_io.asgi
import sansmcp_io.blocking
import sansmcp_io.trio
import sansmcp_io.wsgi

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SHARED_ROOMS = ("sansmcp_io._async.", "sansmcp_io._common.")
HIDDEN: tuple[type, ...] = (
    sansmcp.Codec,
    sansmcp.Config,
    sansmcp.IncomingRequest,
    sansmcp.Listener,
    sansmcp.Listing,
    sansmcp.OutgoingRequest,
    sansmcp.Peer,
    sansmcp.Ping,
    sansmcp.Start,
    sansmcp.http.EventLog,
    sansmcp.http.ClientExchange,
    sansmcp.http.ServerExchange,
    sansmcp.http.Session,
    sansmcp.Subscription,
    sansmcp.Task,
    sansmcp_io.asgi.Server,
    sansmcp_io.asgi.ServerCall,
    sansmcp_io.blocking.Call,
    sansmcp_io.blocking.Changes,
    sansmcp_io.blocking.Client,
    sansmcp_io.blocking.ClientTask,
    sansmcp_io.blocking.RunningTask,
    sansmcp_io.blocking.Server,
    sansmcp_io.blocking.ServerCall,
    sansmcp_io.trio.Call,
    sansmcp_io.trio.Changes,
    sansmcp_io.trio.Client,
    sansmcp_io.trio.ClientTask,
    sansmcp_io.trio.HTTPServer,
    sansmcp_io.trio.RunningTask,
    sansmcp_io.trio.Server,
    sansmcp_io.trio.ServerCall,
    sansmcp_io.trio.Trace,
    sansmcp_io.wsgi.Server,
    sansmcp_io.wsgi.ServerCall,
)


def name_of(alias: TypeAliasForwardRef) -> str:
    """The text that Sphinx shows for a type alias of this library (`autodoc_type_aliases`)."""
    return str(alias.name)


# In a union, Sphinx shows its placeholder for the alias, so the placeholder gets this text.
setattr(TypeAliasForwardRef, "__repr__", name_of)  # noqa: B010  # mypy allows no assignment


def hide_constructor(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str, returns: str
) -> tuple[str, str] | None:
    """Hide the signatures of constructors that applications do not call.

    These are the classes whose objects only the library makes, protocols, and `Config`, which has a
    page of its own.
    """
    if isinstance(obj, type) and (
        issubclass(obj, enum.Enum) or any(obj is hidden for hidden in HIDDEN)
    ):
        return "", ""
    return None


def keep_colons(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep words before a colon as text.

    Napoleon takes them for a type, but types are in the signatures here.
    """
    if what in ("attribute", "data", "property") and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"
    for index, line in enumerate(lines[:-1]):
        if line.strip() == "Returns:":
            following = lines[index + 1]
            text = following.lstrip()
            lines[index + 1] = f"{following[: len(following) - len(text)]}: {text}"


def document_data(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the docstring of a constant or type alias from the private module that defines it.

    That is a module of the package, or of a room that several adapters share. Sphinx looks in the
    package only, and would show the docstring of the class of the object.
    """
    package, _, short = name.rpartition(".")
    if what != "data" or package not in sys.modules:
        return
    lines.clear()
    for room in (f"{package}._", *SHARED_ROOMS):
        for module in sorted(module for module in sys.modules if module.startswith(room)):
            documented = ModuleAnalyzer.for_module(module).find_attr_docs()
            if found := documented.get(("", short)):
                lines.extend(found)
                return


def fill_type_variables(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str, returns: str
) -> tuple[str, str] | None:
    """Show the return type that a class gives to an inherited method of a generic base class."""
    if what != "method" or not returns or not returns.endswith("T"):
        return None
    package, short, _ = name.rsplit(".", 2)
    owner = getattr(sys.modules.get(package), short, None)
    for kind in getattr(owner, "__mro__", ()):
        for base in getattr(kind, "__orig_bases__", ()):
            variables = getattr(get_origin(base), "__parameters__", ())
            for variable, filled in zip(variables, get_args(base), strict=False):
                if returns.endswith(f".{variable.__name__}") and not isinstance(filled, TypeVar):
                    shown = stringify_annotation(filled, "smart")
                    alias = stringify_annotation(sansmcp.JSONValue, "smart")
                    return signature, shown.replace(alias, "JSONValue")
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the functions to events; Sphinx calls this."""
    # Before napoleon, whose priority is Sphinx's default of 500.
    app.connect("autodoc-process-docstring", document_data, priority=400)
    app.connect("autodoc-process-docstring", keep_colons, priority=450)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("autodoc-process-signature", fill_type_variables)
    return {"version": "1", "parallel_read_safe": True}
