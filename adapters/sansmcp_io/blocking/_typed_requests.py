"""Which params and results belong to which method, as overloads of `request` that blocks.

They are those of the loops with `async`, without `async`: a test compares the two.
"""
# pyright: reportOverlappingOverload=false
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Literal,
    Protocol,
    Unpack,
    cast,
    overload,
)

from sansmcp import JSONObject

from .._common.typed_requests import Method, RequestOptions

if TYPE_CHECKING:
    from sansmcp.types import (
        CallToolRequestParams,
        CallToolResult,
        CallToolTaskParams,
        CancelTaskResult,
        ClientRequestMethod,
        CompleteRequestParams,
        CompleteResult,
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageTaskParams,
        CreateTaskResult,
        DiscoverResult,
        ElicitRequestParams,
        ElicitResult,
        ElicitTaskParams,
        EmptyResult,
        GetPromptRequestParams,
        GetPromptResult,
        GetTaskResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListRootsRequestParams,
        ListRootsResult,
        ListTasksResult,
        ListToolsResult,
        PaginatedRequestParams,
        ParamsDoNotFit,
        ReadResourceRequestParams,
        ReadResourceResult,
        RequestParams,
        ServerRequestMethod,
        SetLevelRequestParams,
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        TaskIdParams,
        UncheckedParams,
        UnsubscribeRequestParams,
        WrittenOutParams,
    )


class BlockingRequest(Protocol):
    """`request`, bound to a client, a server or a call."""

    # -- of a client

    @overload
    def __call__(
        self,
        method: Literal["tools/call"],
        params: CallToolTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    def __call__(
        self,
        method: Literal["tools/call"],
        params: CallToolRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CallToolResult: ...
    @overload
    def __call__(
        self,
        method: Literal["tools/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListToolsResult: ...
    @overload
    def __call__(
        self,
        method: Literal["resources/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListResourcesResult: ...
    @overload
    def __call__(
        self,
        method: Literal["resources/templates/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListResourceTemplatesResult: ...
    @overload
    def __call__(
        self,
        method: Literal["resources/read"],
        params: ReadResourceRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> ReadResourceResult: ...
    @overload
    def __call__(
        self,
        method: Literal["resources/subscribe"],
        params: SubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    def __call__(
        self,
        method: Literal["resources/unsubscribe"],
        params: UnsubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    def __call__(
        self,
        method: Literal["prompts/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListPromptsResult: ...
    @overload
    def __call__(
        self,
        method: Literal["prompts/get"],
        params: GetPromptRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> GetPromptResult: ...
    @overload
    def __call__(
        self,
        method: Literal["completion/complete"],
        params: CompleteRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CompleteResult: ...
    @overload
    def __call__(
        self,
        method: Literal["logging/setLevel"],
        params: SetLevelRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    def __call__(
        self,
        method: Literal["subscriptions/listen"],
        params: SubscriptionsListenRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> SubscriptionsListenResult: ...
    @overload
    def __call__(
        self,
        method: Literal["server/discover"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> DiscoverResult: ...

    # -- of a server

    @overload
    def __call__(
        self,
        method: Literal["sampling/createMessage"],
        params: CreateMessageTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    def __call__(
        self,
        method: Literal["sampling/createMessage"],
        params: CreateMessageRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CreateMessageResult: ...
    @overload
    def __call__(
        self,
        method: Literal["elicitation/create"],
        params: ElicitTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    def __call__(
        self,
        method: Literal["elicitation/create"],
        params: ElicitRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> ElicitResult: ...
    @overload
    def __call__(
        self,
        method: Literal["roots/list"],
        params: ListRootsRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListRootsResult: ...

    # -- of either side

    @overload
    def __call__(
        self,
        method: Literal["ping"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    def __call__(
        self,
        method: Literal["tasks/get"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> GetTaskResult: ...
    # The result is that of the request which became the task, so any object.
    @overload
    def __call__(
        self,
        method: Literal["tasks/result"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> JSONObject: ...
    @overload
    def __call__(
        self,
        method: Literal["tasks/cancel"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CancelTaskResult: ...
    @overload
    def __call__(
        self,
        method: Literal["tasks/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListTasksResult: ...

    # -- and what those did not take

    @overload
    def __call__(
        self,
        method: ClientRequestMethod | ServerRequestMethod,
        params: WrittenOutParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ParamsDoNotFit: ...
    @overload
    def __call__(
        self,
        method: str,
        params: JSONObject | None = None,
        **options: Unpack[RequestOptions],
    ) -> JSONObject: ...


def typed_blocking_request(function: Callable[..., JSONObject]) -> Method[BlockingRequest]:
    """Give a method `request` its overloads."""
    return cast("Method[BlockingRequest]", function)
