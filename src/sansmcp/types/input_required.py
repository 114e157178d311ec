"""Input required: since 2026-07-28 a server asks in its answer, and the client asks again."""

from typing import Annotated, TypeAlias, TypedDict

from ._json import JSONObject
from ._marks import As, RequiredIn, Since
from .base import RequestParams, ResultMetaObject
from .elicitation import ElicitRequest, ElicitResult
from .roots import ListRootsRequest, ListRootsResult
from .sampling import CreateMessageRequest, CreateMessageResult

InputRequest: TypeAlias = Annotated[
    CreateMessageRequest | ListRootsRequest | ElicitRequest, Since("2026-07-28")
]
"""One question of the server."""

InputRequests: TypeAlias = Annotated[dict[str, InputRequest], Since("2026-07-28")]
"""Questions, by keys of the server's choice."""

InputResponse: TypeAlias = Annotated[
    CreateMessageResult | ListRootsResult | ElicitResult, Since("2026-07-28")
]
"""The answer to one question."""

InputResponses: TypeAlias = Annotated[dict[str, InputResponse], Since("2026-07-28")]
"""The answers, by the keys of their questions."""


@Since("2026-07-28")
class InputRequiredResult(TypedDict, total=False):
    """The request can be answered once these questions are."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    resultType: Annotated[str, RequiredIn("2026-07-28")]
    """`input_required`."""
    inputRequests: InputRequests
    requestState: str
    """To be given back as it is; only the server can read it."""


class RetryMembers(TypedDict, total=False):
    """What is added to the params of a request that is sent again."""

    inputResponses: InputResponses
    requestState: Annotated[str, Since("2026-07-28")]


@Since("2026-07-28")
class InputResponseRequestParams(RequestParams, RetryMembers, total=False):
    """The params of any request that is sent again, with the answers."""
