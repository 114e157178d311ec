"""`sansmcp tasks`: tasks that a server has made for other connections."""

from __future__ import annotations

from typing import Final

from sansmcp import MODERN_REVISIONS, ErrorCode, JSONObject, JSONValue

from .._common.errors import PeerError
from ._conversation import ServerConversation, Work
from ._errors import Status, TaskProblem
from ._output import views
from ._requests import show_tool_result
from ._values import as_text

_OVER: Final = frozenset({"completed", "failed", "cancelled"})
_METHOD: Final = "tools/call"
"""The one request that becomes a task of a server."""


def tasks(action: str, task_id: str) -> Work:
    """Do what the command line asks for; `list` has no id."""
    match action:
        case "list":
            return _list()
        case "get":
            return _get(task_id)
        case "result":
            return _result(task_id)
        case "wait":
            return _wait(task_id)
        case _:
            return _cancel(task_id)


def _list() -> Work:
    """List the tasks that the server names: those of this client, or of this session."""

    async def work(conversation: ServerConversation) -> int:
        if conversation.peer.revision in MODERN_REVISIONS:
            raise TaskProblem(
                f"lists no tasks: revision {conversation.peer.revision} has no tasks/list, and "
                "clients keep the ids of their tasks",
                "--revision 2025-11-25 has it, for tasks that were made in that revision",
                kind="not-offered",
            )
        found: list[JSONValue] = [item async for item in conversation.items("tasks/list")]
        conversation.output.result({"tasks": found}, views.tasks(found))
        return Status.OK

    return work


def _get(task_id: str) -> Work:
    """Show the state of a task."""

    async def work(conversation: ServerConversation) -> int:
        state = await _state(conversation, task_id)
        conversation.output.result(state, views.task(state))
        return Status.OK

    return work


def _cancel(task_id: str) -> Work:
    """Cancel a task, and show its state then: a server need not obey."""

    async def work(conversation: ServerConversation) -> int:
        await _state(conversation, task_id)
        state = await conversation.request("tasks/cancel", {"taskId": task_id})
        if conversation.peer.revision in MODERN_REVISIONS:
            state = await _state(conversation, task_id)
        conversation.output.result(state, views.task(state))
        return Status.OK

    return work


def _wait(task_id: str) -> Work:
    """Show the result of a task as soon as it is there, and its states meanwhile."""

    async def work(conversation: ServerConversation) -> int:
        return await _finish(conversation, task_id)

    return work


def _result(task_id: str) -> Work:
    """Show the result of a task that is over."""

    async def work(conversation: ServerConversation) -> int:
        state = await _state(conversation, task_id)
        if state["status"] not in _OVER:
            raise TaskProblem(
                f"has no result of the task yet: its status is {as_text(state['status'])}",
                "tasks wait waits for it",
                kind="not-ready",
            )
        return await _finish(conversation, task_id, quiet=True)

    return work


async def _finish(conversation: ServerConversation, task_id: str, *, quiet: bool = False) -> int:
    """Wait for the result of a task, show it, and return the exit status."""
    task = await conversation.resume_task(task_id, _METHOD)
    result = await conversation.result_of(task, quiet=quiet)
    succeeded = show_tool_result(conversation.output, result, "the tool")
    return Status.OK if succeeded else Status.TOOL_FAILED


async def _state(conversation: ServerConversation, task_id: str) -> JSONObject:
    """The task as the server tells of it.

    Raises:
        TaskProblem: The server does not know it.
    """
    try:
        return await conversation.request("tasks/get", {"taskId": task_id})
    except PeerError as error:
        if error.code != ErrorCode.INVALID_PARAMS:
            raise
        text = f"has no such task: {error.message} ({error.code})"
        raise TaskProblem(text, kind="no-task") from None
