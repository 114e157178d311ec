"""The capabilities that each side declares, and its name and version."""

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from ._json import JSONObject
from ._marks import In, Since, Until

Theme: TypeAlias = Literal["dark", "light"]
"""The background for which an icon was drawn."""


@Since("2025-11-25")
class Icon(TypedDict, total=False):
    """A picture to show beside a name."""

    src: Required[str]
    """A URI; `data:` is allowed."""
    mimeType: str
    sizes: list[str]
    """Sizes such as `48x48`, or `any` for an icon that can be scaled."""
    theme: Theme


@Since("2025-11-25")
class Icons(TypedDict, total=False):
    """The member of all definitions with icons."""

    icons: list[Icon]


@Since("2025-06-18")
class BaseMetadata(TypedDict, total=False):
    """The members of all definitions with a name."""

    name: Required[str]
    """The name for programs."""
    title: Annotated[str, Since("2025-06-18")]
    """The name for people."""


class Implementation(BaseMetadata, Icons, total=False):
    """Name and version of a client or server."""

    version: Required[str]
    description: Annotated[str, Since("2025-11-25")]
    websiteUrl: Annotated[str, Since("2025-11-25")]


# ------------------------------------------------------------------------------- the client's


class RootsCapability(TypedDict, total=False):
    """The client can list its roots."""

    listChanged: Annotated[bool, Until("2025-11-25")]
    """The client sends a notification when its roots change."""


class SamplingCapability(TypedDict, total=False):
    """The client can ask a model."""

    context: Annotated[JSONObject, Since("2025-11-25")]
    """The client supports `includeContext`."""
    tools: Annotated[JSONObject, Since("2025-11-25")]
    """The client supports `tools` and `toolChoice`."""


@Since("2025-06-18")
class ElicitationCapability(TypedDict, total=False):
    """The client can ask its user; an empty object means `form`."""

    form: Annotated[JSONObject, Since("2025-11-25")]
    url: Annotated[JSONObject, Since("2025-11-25")]


@In("2025-11-25")
class ElicitationTasks(TypedDict, total=False):
    """The elicitation requests that may become tasks."""

    create: JSONObject


@In("2025-11-25")
class SamplingTasks(TypedDict, total=False):
    """The sampling requests that may become tasks."""

    createMessage: JSONObject


@In("2025-11-25")
class ClientTaskRequests(TypedDict, total=False):
    """The requests to a client that may become tasks."""

    elicitation: ElicitationTasks
    sampling: SamplingTasks


@In("2025-11-25")
class ClientTasksCapability(TypedDict, total=False):
    """The client can carry out requests as tasks."""

    list: JSONObject
    cancel: JSONObject
    requests: ClientTaskRequests


class ClientCapabilities(TypedDict, total=False):
    """The capabilities of a client."""

    experimental: dict[str, JSONObject]
    extensions: Annotated[dict[str, JSONObject], Since("2026-07-28")]
    """Settings by the identifier of the extension."""
    roots: RootsCapability
    sampling: SamplingCapability
    elicitation: ElicitationCapability
    tasks: ClientTasksCapability


# ------------------------------------------------------------------------------- the server's


class PromptsCapability(TypedDict, total=False):
    """The server has prompts."""

    listChanged: bool


class ResourcesCapability(TypedDict, total=False):
    """The server has resources."""

    subscribe: bool
    listChanged: bool


class ToolsCapability(TypedDict, total=False):
    """The server has tools."""

    listChanged: bool


@In("2025-11-25")
class ToolTasks(TypedDict, total=False):
    """The requests about tools that may become tasks."""

    call: JSONObject


@In("2025-11-25")
class ServerTaskRequests(TypedDict, total=False):
    """The requests to a server that may become tasks."""

    tools: ToolTasks


@In("2025-11-25")
class ServerTasksCapability(TypedDict, total=False):
    """The server can carry out requests as tasks."""

    list: JSONObject
    cancel: JSONObject
    requests: ServerTaskRequests


class ServerCapabilities(TypedDict, total=False):
    """The capabilities of a server."""

    experimental: dict[str, JSONObject]
    extensions: Annotated[dict[str, JSONObject], Since("2026-07-28")]
    """Settings by the identifier of the extension."""
    logging: JSONObject
    completions: Annotated[JSONObject, Since("2025-03-26")]
    prompts: PromptsCapability
    resources: ResourcesCapability
    tools: ToolsCapability
    tasks: ServerTasksCapability
