"""The methods, messages and results that each side may send."""

from typing import Annotated, Literal, TypeAlias

from ._marks import In, Since, Until
from .base import Result
from .completion import CompleteRequest, CompleteResult
from .elicitation import ElicitationCompleteNotification, ElicitRequest, ElicitResult
from .input_required import InputRequiredResult
from .lifecycle import (
    DiscoverRequest,
    DiscoverResult,
    InitializedNotification,
    InitializeRequest,
    InitializeResult,
    PingRequest,
)
from .prompts import (
    GetPromptRequest,
    GetPromptResult,
    ListPromptsRequest,
    ListPromptsResult,
    PromptListChangedNotification,
)
from .resources import (
    ListResourcesRequest,
    ListResourcesResult,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    ReadResourceRequest,
    ReadResourceResult,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    SubscribeRequest,
    UnsubscribeRequest,
)
from .roots import ListRootsRequest, ListRootsResult, RootsListChangedNotification
from .sampling import CreateMessageRequest, CreateMessageResult
from .subscriptions import (
    SubscriptionsAcknowledgedNotification,
    SubscriptionsListenRequest,
    SubscriptionsListenResult,
)
from .tasks import (
    CancelTaskRequest,
    CancelTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadResult,
    GetTaskRequest,
    GetTaskResult,
    ListTasksRequest,
    ListTasksResult,
    TaskStatusNotification,
)
from .tool_calls import CallToolRequest, CallToolResult
from .tools import ListToolsRequest, ListToolsResult, ToolListChangedNotification
from .utilities import (
    CancelledNotification,
    LoggingMessageNotification,
    ProgressNotification,
    SetLevelRequest,
)

# ----------------------------------------------------------------------------------- names

ClientRequestMethod: TypeAlias = (
    Literal[
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "tools/call",
        "tools/list",
    ]
    | Annotated[
        Literal[
            "initialize",
            "logging/setLevel",
            "ping",
            "resources/subscribe",
            "resources/unsubscribe",
        ],
        Until("2025-11-25"),
    ]
    | Annotated[
        Literal["tasks/cancel", "tasks/get", "tasks/list", "tasks/result"], In("2025-11-25")
    ]
    | Annotated[Literal["server/discover", "subscriptions/listen"], Since("2026-07-28")]
)
"""The methods of requests that a client may send."""

ServerRequestMethod: TypeAlias = (
    Annotated[Literal["ping", "roots/list", "sampling/createMessage"], Until("2025-11-25")]
    | Annotated[Literal["elicitation/create"], Since("2025-06-18"), Until("2025-11-25")]
    | Annotated[
        Literal["tasks/cancel", "tasks/get", "tasks/list", "tasks/result"], In("2025-11-25")
    ]
)
"""The methods of requests that a server may send."""

InputRequestMethod: TypeAlias = Annotated[
    Literal["elicitation/create", "roots/list", "sampling/createMessage"], Since("2026-07-28")
]
"""The methods of questions that a server may put into an `InputRequiredResult`."""

ClientNotificationMethod: TypeAlias = (
    Literal["notifications/cancelled"]
    | Annotated[
        Literal[
            "notifications/initialized",
            "notifications/progress",
            "notifications/roots/list_changed",
        ],
        Until("2025-11-25"),
    ]
    | Annotated[Literal["notifications/tasks/status"], In("2025-11-25")]
)
"""The methods of notifications that a client may send."""

ServerNotificationMethod: TypeAlias = (
    Literal[
        "notifications/cancelled",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    ]
    | Annotated[
        Literal["notifications/elicitation/complete", "notifications/tasks/status"],
        In("2025-11-25"),
    ]
    | Annotated[Literal["notifications/subscriptions/acknowledged"], Since("2026-07-28")]
)
"""The methods of notifications that a server may send."""


# -------------------------------------------------------------------------------- messages

ClientRequest: TypeAlias = (
    InitializeRequest
    | PingRequest
    | DiscoverRequest
    | ListResourcesRequest
    | ListResourceTemplatesRequest
    | ReadResourceRequest
    | SubscribeRequest
    | UnsubscribeRequest
    | SubscriptionsListenRequest
    | ListPromptsRequest
    | GetPromptRequest
    | ListToolsRequest
    | CallToolRequest
    | GetTaskRequest
    | GetTaskPayloadRequest
    | CancelTaskRequest
    | ListTasksRequest
    | SetLevelRequest
    | CompleteRequest
)
"""Any request of a client."""

ServerRequest: TypeAlias = Annotated[
    PingRequest
    | GetTaskRequest
    | GetTaskPayloadRequest
    | CancelTaskRequest
    | ListTasksRequest
    | CreateMessageRequest
    | ListRootsRequest
    | ElicitRequest,
    Until("2025-11-25"),
]
"""Any request of a server."""

ClientNotification: TypeAlias = (
    CancelledNotification
    | InitializedNotification
    | Annotated[ProgressNotification, Until("2025-11-25")]
    | TaskStatusNotification
    | RootsListChangedNotification
)
"""Any notification of a client."""

ServerNotification: TypeAlias = (
    CancelledNotification
    | ProgressNotification
    | ResourceListChangedNotification
    | SubscriptionsAcknowledgedNotification
    | ResourceUpdatedNotification
    | PromptListChangedNotification
    | ToolListChangedNotification
    | TaskStatusNotification
    | LoggingMessageNotification
    | ElicitationCompleteNotification
)
"""Any notification of a server."""

ClientResult: TypeAlias = (
    Result
    | GetTaskResult
    | GetTaskPayloadResult
    | CancelTaskResult
    | ListTasksResult
    | Annotated[CreateMessageResult | ListRootsResult | ElicitResult, Until("2025-11-25")]
)
"""Any result of a client."""

ServerResult: TypeAlias = (
    Result
    | InitializeResult
    | InputRequiredResult
    | DiscoverResult
    | ListResourcesResult
    | ListResourceTemplatesResult
    | ReadResourceResult
    | SubscriptionsListenResult
    | ListPromptsResult
    | GetPromptResult
    | ListToolsResult
    | CallToolResult
    | GetTaskResult
    | GetTaskPayloadResult
    | CancelTaskResult
    | ListTasksResult
    | CompleteResult
)
"""Any result of a server."""
