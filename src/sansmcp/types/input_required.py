"""Input required: a result with questions, after which the client sends its request again.

It exists since 2026-07-28.
"""

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
"""The questions, by keys that the server chooses."""

InputResponse: TypeAlias = Annotated[
    CreateMessageResult | ListRootsResult | ElicitResult, Since("2026-07-28")
]
"""The answer to one question."""

InputResponses: TypeAlias = Annotated[dict[str, InputResponse], Since("2026-07-28")]
"""The answers, by the keys of their questions."""


@Since("2026-07-28")
class InputRequiredResult(TypedDict, total=False):
    """A result with the questions that the client must answer first."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    resultType: Annotated[str, RequiredIn("2026-07-28")]
    """Always `input_required`."""
    inputRequests: InputRequests
    requestState: str
    """A string that the client sends back unchanged; only the server can read it."""


class RetryMembers(TypedDict, total=False):
    """The members that a client adds to the params of a request that it sends again."""

    inputResponses: InputResponses
    requestState: Annotated[str, Since("2026-07-28")]


@Since("2026-07-28")
class InputResponseRequestParams(RequestParams, RetryMembers, total=False):
    """The params of any request that is sent again with answers."""
