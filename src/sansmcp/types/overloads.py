"""How overloads over method names tell params that fit the method from params that do not.

A dict that is written out as an argument takes the type that the parameter asks for, as long as its
values allow it; a variable has the type that it has. So three types of params are enough, in this
order: the method's own `TypedDict` together with `UncheckedParams`, which fits; `WrittenOutParams`,
which is wrong; and any `JSONObject`, for variables of other types and for unknown methods.
"""

from typing import Never, Required, TypeAlias

from ._json import JSONObject
from .base import RequestParams
from .elicitation import FormMembers, URLMembers
from .sampling import SamplingMembers
from .tasks import TaskMetadata

UncheckedParams: TypeAlias = dict[str, Never]
"""A variable of type `JSONObject`, which `Any` makes fit; what is written out has values."""

WrittenOutParams: TypeAlias = dict[str, object]
"""A dict that is written out; a variable fits only if its values are of type `object` or `Any`."""


class ParamsDoNotFit:
    """What type checkers take for the answer to a request whose params do not fit its method.

    No value of it exists, and nothing can be done with one: that is how the request is an error.
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
