"""Types of params by which overloads of `send_request` accept or reject a call for checkers.

A dict literal as an argument takes the type of the parameter, if its values allow that; a variable
has its own type. So three types of params are enough, in this order: the `TypedDict` of the method
or `UncheckedParams`, which fit; `WrittenOutParams`, which does not; and any `JSONObject`, for
variables of other types and for unknown methods.
"""

from typing import Never, Required, TypeAlias

from ._json import JSONObject
from .base import RequestParams
from .elicitation import FormMembers, URLMembers
from .sampling import SamplingMembers
from .tasks import TaskMetadata

UncheckedParams: TypeAlias = dict[str, Never]
"""Params in a variable of type `JSONObject`, whose `Any` fits. No dict literal with values fits."""

WrittenOutParams: TypeAlias = dict[str, object]
"""Params in a dict literal; a variable fits only if its values have the type `object` or `Any`."""


class ParamsDoNotFit:
    """The type, for checkers, of the result of a request whose params do not fit its method.

    It has no values and no attributes, so that checkers report each use of such a result.
    """


# ------------------------------------------- params that ask for another result, a task


class CallToolTaskParams(RequestParams, total=False):
    """`CallToolRequestParams` with `task`."""

    name: Required[str]
    arguments: JSONObject
    task: Required[TaskMetadata]


class CreateMessageTaskParams(SamplingMembers, total=False):
    """`CreateMessageRequestParams` with `task`."""

    task: Required[TaskMetadata]


class ElicitTaskFormParams(FormMembers, total=False):
    """`ElicitRequestFormParams` with `task`."""

    task: Required[TaskMetadata]


class ElicitTaskURLParams(URLMembers, total=False):
    """`ElicitRequestURLParams` with `task`."""

    task: Required[TaskMetadata]


ElicitTaskParams: TypeAlias = ElicitTaskFormParams | ElicitTaskURLParams
"""`ElicitRequestParams` with `task`."""
