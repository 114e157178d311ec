"""Which params belong to which method, as overloads of `send_request`, for type checkers only.

`ClientConnection` and `ServerConnection` have these classes as their base where a type checker
looks, and `Connection` itself at run time. The overload before the last one catches the methods
that the ones above know, with params that do not fit. What it returns is a coroutine, because
checkers complain of one that nobody awaits: a request that is sent for its event only is an
error, too.
"""
# A literal is a `str`, and a dict that fits is a JSON object, so that the overloads overlap. It is
# the order in which they are tried that gives them their meaning.
# pyright: reportOverlappingOverload=false
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, Never, TypedDict, Unpack, overload

from .connection import Connection

if TYPE_CHECKING:
    from .._wire.values import JSONObject
    from ..types import (
        CallToolRequestParams,
        ClientRequestMethod,
        CompleteRequestParams,
        CreateMessageRequestParams,
        ElicitRequestParams,
        GetPromptRequestParams,
        ListRootsRequestParams,
        PaginatedRequestParams,
        ParamsDoNotFit,
        ReadResourceRequestParams,
        RequestParams,
        ServerRequestMethod,
        SetLevelRequestParams,
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        TaskIdParams,
        UncheckedParams,
        UnsubscribeRequestParams,
        WrittenOutParams,
    )
    from .handles import IncomingRequest, OutgoingRequest


class RequestOptions(TypedDict, total=False):
    """The keyword arguments of `send_request`."""

    meta: JSONObject | None
    progress: bool
    timeout: float | None
    max_timeout: float | None
    log_level: str | None
    id: int | str | None
    request: IncomingRequest | None
    data: Any
    now: float | None


class ClientRequests(Connection):
    """The requests that a client may send. `initialize` is not among them: `start` sends it."""

    __slots__ = ()

    @overload
    def send_request(
        self,
        method: Literal["tools/call"],
        params: CallToolRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["resources/read"],
        params: ReadResourceRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["resources/subscribe"],
        params: SubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["resources/unsubscribe"],
        params: UnsubscribeRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["prompts/get"],
        params: GetPromptRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["completion/complete"],
        params: CompleteRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["logging/setLevel"],
        params: SetLevelRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["subscriptions/listen"],
        params: SubscriptionsListenRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["tasks/get", "tasks/result", "tasks/cancel"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal[
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "tasks/list",
        ],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["ping", "server/discover"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: ClientRequestMethod,
        params: WrittenOutParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> Coroutine[ParamsDoNotFit, Never, Never]: ...
    @overload
    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...

    if TYPE_CHECKING:  # nothing calls it: at run time this is no base of the connections

        def send_request(self, method: str, params: Any = None, **options: Any) -> Any: ...


class ServerRequests(Connection):
    """The requests that a server may send."""

    __slots__ = ()

    @overload
    def send_request(
        self,
        method: Literal["sampling/createMessage"],
        params: CreateMessageRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["elicitation/create"],
        params: ElicitRequestParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["roots/list"],
        params: ListRootsRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["tasks/get", "tasks/result", "tasks/cancel"],
        params: TaskIdParams | UncheckedParams,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["tasks/list"],
        params: PaginatedRequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: Literal["ping"],
        params: RequestParams | UncheckedParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...
    @overload
    def send_request(
        self,
        method: ServerRequestMethod,
        params: WrittenOutParams | None = None,
        **options: Unpack[RequestOptions],
    ) -> Coroutine[ParamsDoNotFit, Never, Never]: ...
    @overload
    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        **options: Unpack[RequestOptions],
    ) -> OutgoingRequest: ...

    if TYPE_CHECKING:  # nothing calls it: at run time this is no base of the connections

        def send_request(self, method: str, params: Any = None, **options: Any) -> Any: ...
