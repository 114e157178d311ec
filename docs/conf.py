"""How Sphinx builds the documentation."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

project = "sansmcp"
author = "The sansmcp authors"
project_copyright = "2026, The sansmcp authors"
release = version = installed_version("sansmcp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    # our own, in _ext
    "diagrams",
    "docstrings",
    "limits",
    "listings",
    "names",
    "rules",
    "sizes",
    "sources",
    "vocabulary",
    "where",
]
exclude_patterns = ["_build", "_ext", "examples"]
html_theme = "furo"
html_title = f"sansmcp {release}"
html_static_path = ["_static"]
html_css_files = ["sansmcp.css"]

# In docstrings, `name` is code; where the name is documented it becomes a link (_ext/names.py).
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Source"]
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_type_aliases = {
    name: name for name in ("Change", "Event", "JSONObject", "JSONValue", "RequestId")
}
add_module_names = False

# A build needs no network, so the standard library's pages are not looked up. Names of our own that
# lead nowhere are still errors.
nitpick_ignore = [
    # As signatures of options have them.
    *(("py:class", name) for name in ("AnyToolSchema", "Headers", "PathLike", "StderrMode")),
    *(("py:class", name) for name in ("OnAssertion", "OnClient", "UserlessGrant")),
    ("py:class", "PrincipalKey"),  # a function from a principal to text, as the argument says
    ("py:class", "VerifyToken"),  # a function from a token to its claims, as the argument says
    # The kinds of objects that a handler may return, as signatures of handlers have them.
    *(
        ("py:class", f"sansmcp_io._common.call.{name}")
        for name in ("AttrsClass", "Dataclass", "Model")
    ),
    ("py:class", "sansmcp._connection.cursors.Item"),  # a type variable
    ("py:class", "sansmcp.testing._pair.EventT"),  # a type variable
    ("py:class", "sansmcp.testing._http_pair.EventT"),  # a type variable
]
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(asyncio|collections\.abc|contextlib|os|types|typing|typing_extensions|attrs?|h11|httpx2|hypothesis|joserfc|ssl|trio)\..*",
    ),
]
