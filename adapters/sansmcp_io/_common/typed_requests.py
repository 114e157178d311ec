"""Which params and results belong to which method, as overloads of `request`, for type checkers.

The adapters' `Client.request`, `Server.request` and `Call.request` are marked with `typed_request`,
which changes nothing at run time. All of them have the overloads of both sides, since a `Call`
may be either side's; what a side may not send is refused when it is sent.
"""
# A literal is a `str`, and a dict that fits is a JSON object, so that the overloads overlap. It is
# the order in which they are tried that gives them their meaning (`sansmcp.types.overloads`).
# pyright: reportOverlappingOverload=false
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from sansmcp import JSONObject

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


class RequestOptions(TypedDict, total=False):
    """The keyword arguments of `request`."""

    meta: JSONObject | None
    timeout: float | None
    max_timeout: float | None
    log_level: str | None
    on_progress: Callable[[float, float | None, str | None], object] | None


class Request(Protocol):
    """`request`, bound to a client, a server or a call."""

    # -- of a client

    @overload
    async def __call__(
        self,
        method: Literal["tools/call"],
        params: CallToolTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["tools/call"],
        params: CallToolRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CallToolResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["tools/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListToolsResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["resources/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListResourcesResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["resources/templates/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListResourceTemplatesResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["resources/read"],
        params: ReadResourceRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> ReadResourceResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["resources/subscribe"],
        params: SubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["resources/unsubscribe"],
        params: UnsubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["prompts/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListPromptsResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["prompts/get"],
        params: GetPromptRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> GetPromptResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["completion/complete"],
        params: CompleteRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CompleteResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["logging/setLevel"],
        params: SetLevelRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["subscriptions/listen"],
        params: SubscriptionsListenRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> SubscriptionsListenResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["server/discover"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> DiscoverResult: ...

    # -- of a server

    @overload
    async def __call__(
        self,
        method: Literal["sampling/createMessage"],
        params: CreateMessageTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["sampling/createMessage"],
        params: CreateMessageRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CreateMessageResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["elicitation/create"],
        params: ElicitTaskParams,
        **options: Unpack[RequestOptions],
    ) -> CreateTaskResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["elicitation/create"],
        params: ElicitRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> ElicitResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["roots/list"],
        params: ListRootsRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> ListRootsResult: ...

    # -- of either side

    @overload
    async def __call__(
        self,
        method: Literal["ping"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> EmptyResult: ...
    @overload
    async def __call__(
        self,
        method: Literal["tasks/get"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> GetTaskResult: ...
    # The result is that of the request which became the task, so any object.
    @overload
    async def __call__(
        self,
        method: Literal["tasks/result"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> JSONObject: ...
    @overload
    async def __call__(
        self,
        method: Literal["tasks/cancel"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> CancelTaskResult: ...
    @overload
    async def __call__(
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
    async def __call__(
        self,
        method: str,
        params: JSONObject | None = None,
        **options: Unpack[RequestOptions],
    ) -> JSONObject: ...


Bound = TypeVar("Bound", covariant=True)


class Method(Protocol, Generic[Bound]):
    """A method that is `Bound` once it is looked up in an object."""

    def __get__(self, instance: object, owner: type | None = None) -> Bound:
        """Bind it."""
        ...


def typed_request(function: Callable[..., Coroutine[Any, Any, JSONObject]]) -> Method[Request]:
    """Give a method `request` its overloads."""
    return cast("Method[Request]", function)
