"""The server that the official conformance suite is run against.

`python -m tests.conformance.server --port N` serves both eras at `http://127.0.0.1:N/mcp`, on trio,
on asyncio with `--adapter asyncio`, or as an ASGI application with `--adapter asgi`.
"""

import argparse
import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import trio

import sansmcp_io.asgi
import sansmcp_io.asyncio
import sansmcp_io.trio
from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    ErrorCode,
    JSONObject,
    PromptsListChanged,
    Tasks,
    TaskSupport,
    ToolsListChanged,
)
from sansmcp_io.trio import CreateTask, McpError, RequireInput, RunningTask, ServerCall
from tests.conformance import offers
from tests.conformance.offers import text
from tests.support.adapters.loops import sleep

INFO: Final[JSONObject] = {"name": "sansmcp-conformance-server", "version": "1.0"}
CAPABILITIES: Final[JSONObject] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
PAUSE: Final = 0.05
RETRY_MS: Final = 500
TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")

Answer = JSONObject | RequireInput | CreateTask
Tool = Callable[[ServerCall], Awaitable[Answer]]


def said(value: str) -> JSONObject:
    return {"content": [text(value)]}


def accepted(call: ServerCall, key: str) -> JSONObject | None:
    """The content of an accepted form; None for any other answer."""
    answer: Any = call.input_responses.get(key)
    if not isinstance(answer, dict) or cast(JSONObject, answer).get("action") != "accept":
        return None
    content: Any = cast(JSONObject, answer).get("content")
    return cast(JSONObject, content) if isinstance(content, dict) else None


# ------------------------------------------------------------------------------------- tools


async def log(call: ServerCall) -> Answer:
    for step in ("started", "processing data", "completed"):
        verb = "Tool" if step == "processing data" else "Tool execution"
        call.log("info", f"{verb} {step}")
        await sleep(PAUSE)  # the suite counts on time between them
    return said("Three messages were logged.")


async def progress(call: ServerCall) -> Answer:
    for done in (0, 50, 100):
        call.progress(done, total=100)
        await sleep(PAUSE)  # as above
    return said("All of it is done.")


async def fail(call: ServerCall) -> Answer:
    return {
        "content": [text("This tool intentionally returns an error for testing")],
        "isError": True,
    }


async def ask(call: ServerCall, question: JSONObject) -> JSONObject:
    """Ask in a request during the call, which needs a handshake."""
    method: str = question["method"]
    params: JSONObject = question["params"]
    return await call.request(method, params)


async def sample(call: ServerCall) -> Answer:
    question = offers.sampling(call.params["arguments"]["prompt"])
    answer: Any = await ask(call, question)
    return said(f"LLM response: {answer['content'].get('text')}")


async def elicit(call: ServerCall) -> Answer:
    properties = {"username": {"type": "string"}, "email": {"type": "string"}}
    question = offers.form(call.params["arguments"]["message"], properties, ["username", "email"])
    answer: Any = await ask(call, question)
    content = json.dumps(answer.get("content"))
    return said(f"User response: action: {answer['action']}, content: {content}")


def completing(question: JSONObject) -> Tool:
    """A tool that returns the outcome of a form."""

    async def tool(call: ServerCall) -> Answer:
        answer: Any = call.input_responses.get("form")
        if answer is None:
            return RequireInput({"form": question})
        content = json.dumps(answer.get("content"))
        return said(f"Elicitation completed: action={answer['action']}, content={content}")

    return tool


async def reconnect(call: ServerCall) -> Answer:
    call.close_stream(retry_ms=RETRY_MS)
    await sleep(2 * PAUSE)  # as above
    return said("Reconnection test completed")


async def need_sampling(call: ServerCall) -> Answer:
    if "sampling" not in call.capabilities:
        missing: JSONObject = {"requiredCapabilities": {"sampling": {}}}
        raise McpError(ErrorCode.MISSING_CLIENT_CAPABILITY, "sampling is needed", missing)
    return said("The client can sample.")


async def change_tools(call: ServerCall) -> Answer:
    call.server.publish(ToolsListChanged())
    return said("The tools have changed.")


async def change_prompts(call: ServerCall) -> Answer:
    call.server.publish(PromptsListChanged())
    return said("The prompts have changed.")


# --------------------------------------------------------------------------- input required


async def ask_name(call: ServerCall) -> Answer:
    content = accepted(call, "user_name")
    if content is None or not isinstance(content.get("name"), str):
        return RequireInput({"user_name": offers.name_form()})
    return said(f"Hello, {content['name']}!")


async def ask_model(call: ServerCall) -> Answer:
    answer: Any = call.input_responses.get("capital_question")
    if answer is None:
        return RequireInput({"capital_question": offers.CAPITAL})
    return said(f"The model says: {answer['content'].get('text')}")


async def ask_roots(call: ServerCall) -> Answer:
    answer: Any = call.input_responses.get("client_roots")
    if answer is None:
        return RequireInput({"client_roots": offers.ROOTS})
    return said(f"The roots are: {', '.join(root['uri'] for root in answer['roots'])}")


async def ask_with_state(call: ServerCall) -> Answer:
    """The state is sealed by the library: what comes back is what was sent, or an error."""
    state = call.state
    if "confirm" not in call.input_responses:
        return RequireInput({"confirm": offers.CONFIRM}, state="the state")
    return said("state-ok" if state == "the state" else "the state is lost")


async def ask_much(call: ServerCall) -> Answer:
    questions = {
        "user_name": offers.name_form(),
        "greeting": offers.sampling("Generate a greeting", 50),
        "client_roots": offers.ROOTS,
    }
    if call.state is None or not questions.keys() <= call.input_responses.keys():
        return RequireInput(questions, state="asked")
    return said("All three have answered.")


async def ask_twice(call: ServerCall) -> Answer:
    state = call.state
    if state == "1" and "step1" in call.input_responses:
        color = offers.form(
            "Step 2: What is your favorite color?", {"color": {"type": "string"}}, ["color"]
        )
        return RequireInput({"step2": color}, state="2")
    if state == "2" and "step2" in call.input_responses:
        return said("Both have been answered.")
    return RequireInput({"step1": offers.name_form("Step 1: What is your name?")}, state="1")


async def ask_what_is_declared(call: ServerCall) -> Answer:
    if call.input_responses:
        return said("What was declared was asked for.")
    questions = {
        "elicitation": offers.name_form(),
        "sampling": offers.CAPITAL,
        "roots": offers.ROOTS,
    }
    return RequireInput(
        {name: asked for name, asked in questions.items() if name in call.capabilities}
    )


async def ask_on_a_stream(call: ServerCall) -> Answer:
    call.progress(1)
    return await ask_name(call)


# ------------------------------------------------------------------------------------ tasks


async def greet(call: ServerCall) -> Answer:
    return said(f"Hello, {call.params['arguments']['name']}!")


async def compute(call: ServerCall) -> Answer:
    seconds: float = call.params["arguments"]["seconds"]

    async def work(task: RunningTask) -> JSONObject:
        await sleep(seconds)
        return said("It is computed.")

    return CreateTask(work)


async def fail_later(call: ServerCall) -> Answer:
    async def work(task: RunningTask) -> JSONObject:
        await sleep(PAUSE)
        return {**said("The job has failed."), "isError": True}

    return CreateTask(work)


async def break_later(call: ServerCall) -> Answer:
    async def work(task: RunningTask) -> JSONObject:
        await sleep(PAUSE)
        raise McpError(ErrorCode.INTERNAL_ERROR, "the job is broken")

    return CreateTask(work)


async def delete(call: ServerCall) -> Answer:
    async def work(task: RunningTask) -> JSONObject:
        answers: Any = await task.ask({"sure": offers.SURE})
        return said(f"Deleted: {answers['sure']['content']['confirm']}")

    return CreateTask(work)


async def ask_both(call: ServerCall) -> Answer:
    async def work(task: RunningTask) -> JSONObject:
        await task.ask({"name": offers.name_form(), "sure": offers.SURE})
        return said("Both have been answered.")

    return CreateTask(work)


async def ask_before(call: ServerCall) -> Answer:
    """Ask before there is a task."""
    content = accepted(call, "user_name")
    if content is None:
        return RequireInput({"user_name": offers.name_form()}, state="asked")

    async def work(task: RunningTask) -> JSONObject:
        await sleep(PAUSE)
        return said(f"Hello, {content['name']}!")

    return CreateTask(work)


TASKS: Final[dict[str, TaskSupport]] = {
    "slow_compute": "optional",
    "failing_job": "required",
    "protocol_error_job": "optional",
    "confirm_delete": "optional",
    "multi_input": "optional",
    "test_tool_with_task": "optional",
}
"""Whether a tool is called as a task; the others are not."""

TOOLS: Final[dict[str, Tool]] = {
    "greet": greet,
    "slow_compute": compute,
    "failing_job": fail_later,
    "protocol_error_job": break_later,
    "confirm_delete": delete,
    "multi_input": ask_both,
    "test_tool_with_task": ask_before,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_tool_with_progress": progress,
    "test_error_handling": fail,
    "test_sampling": sample,
    "test_elicitation": elicit,
    "test_elicitation_sep1034_defaults": completing(offers.DEFAULTS),
    "test_elicitation_sep1330_enums": completing(offers.ENUMS),
    "test_reconnection": reconnect,
    "test_missing_capability": need_sampling,
    "test_trigger_tool_change": change_tools,
    "test_trigger_prompt_change": change_prompts,
    "test_streaming_elicitation": ask_on_a_stream,
    "test_input_required_result_elicitation": ask_name,
    "test_input_required_result_sampling": ask_model,
    "test_input_required_result_list_roots": ask_roots,
    "test_input_required_result_request_state": ask_with_state,
    "test_input_required_result_tampered_state": ask_with_state,
    "test_input_required_result_multiple_inputs": ask_much,
    "test_input_required_result_multi_round": ask_twice,
    "test_input_required_result_capabilities": ask_what_is_declared,
}


def schema_of(name: str) -> JSONObject | None:
    """The `inputSchema` of a tool; None for an unknown tool."""
    if name not in TOOLS and name not in offers.FIXED:
        return None
    return offers.SCHEMAS.get(name, {"type": "object", "properties": {}})


async def call_tool(call: ServerCall) -> Answer:
    name: str = call.params["name"]
    if name in offers.FIXED:
        return {"content": [*offers.FIXED[name]]}
    if name not in TOOLS:
        raise McpError(ErrorCode.INVALID_PARAMS, f"unknown tool: {name}")
    return await TOOLS[name](call)


# ----------------------------------------------------------------------- resources, prompts


def read_resource(uri: str) -> JSONObject:
    found = offers.RESOURCES.get(uri)
    if found is None and (match := TEMPLATE.fullmatch(uri)):
        data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
        found = {"mimeType": "application/json", "text": json.dumps(data)}
    if found is None:
        raise McpError(ErrorCode.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **found}]}


def get_prompt(call: ServerCall) -> Answer:
    arguments: JSONObject = call.params.get("arguments") or {}
    contents: list[JSONObject]
    match call.params["name"]:
        case "test_simple_prompt":
            contents = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            one, other = arguments.get("arg1"), arguments.get("arg2")
            contents = [text(f"Prompt with arguments: arg1='{one}', arg2='{other}'")]
        case "test_prompt_with_embedded_resource":
            uri = str(arguments.get("resourceUri"))
            contents = [
                offers.embedded(uri, "text/plain", "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            contents = [offers.IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            answer = accepted(call, "user_context")
            if answer is None:
                properties = {"context": {"type": "string"}}
                asked = offers.form("What context should the prompt use?", properties, ["context"])
                return RequireInput({"user_context": asked})
            contents = [text(f"The context is {answer.get('context')}.")]
        case name:
            raise McpError(ErrorCode.INVALID_PARAMS, f"unknown prompt: {name}")
    return {"messages": [{"role": "user", "content": content} for content in contents]}


# ----------------------------------------------------------------------------------- serving


def listed(what: str) -> list[Any]:
    match what:
        case "tools":
            names = [*offers.FIXED, *TOOLS]
            return [
                {"name": name, "description": f"The tool {name}.", "inputSchema": schema_of(name)}
                for name in names
            ]
        case "prompts":
            return [
                {
                    "name": name,
                    "description": f"The prompt {name}.",
                    "arguments": [
                        {"name": argument, "description": argument, "required": True}
                        for argument in arguments
                    ],
                }
                for name, arguments in offers.PROMPT_ARGUMENTS.items()
            ]
        case "resources":
            return [
                {
                    "uri": uri,
                    "name": uri.removeprefix("test://"),
                    "description": f"The resource {uri}.",
                    "mimeType": contents["mimeType"],
                }
                for uri, contents in offers.RESOURCES.items()
            ]
        case _:
            template = "test://template/{id}/data"
            return [{"uriTemplate": template, "name": "data", "mimeType": "application/json"}]


def handle(call: ServerCall) -> Answer | Awaitable[Answer]:
    match call.method:
        case "tools/call":
            return call_tool(call)
        case "resources/read":
            return read_resource(call.params["uri"])
        case "prompts/get":
            return get_prompt(call)
        case "completion/complete":
            return {"completion": {"values": [], "total": 0, "hasMore": False}}
        case "tools/list":
            return {"tools": listed("tools")}
        case "prompts/list":
            return {"prompts": listed("prompts")}
        case "resources/list":
            return {"resources": listed("resources")}
        case "resources/templates/list":
            return {"resourceTemplates": listed("templates")}
        case _:  # resources/subscribe and resources/unsubscribe
            return {}


OPTIONS: Final[dict[str, Any]] = {
    "info": INFO,
    "capabilities": CAPABILITIES,
    "revisions": (*LEGACY_REVISIONS, *MODERN_REVISIONS),
    "tool_schema": schema_of,
    "tasks": Tasks(entropy=secrets.token_bytes, tools=TASKS),
    "config": Config(state_keys=(secrets.token_bytes(32),)),
}


async def serve(serve_http: Callable[..., Awaitable[None]], port: int) -> None:
    await serve_http(handle, port=port, **OPTIONS)


def serve_below_asgi(port: int) -> None:
    import uvicorn

    app = sansmcp_io.asgi.App(handle, path="/mcp", **OPTIONS)
    uvicorn.run(app, port=port, log_level="error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", choices=["trio", "asyncio", "asgi"], default="trio")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    if options.adapter == "trio":
        trio.run(serve, sansmcp_io.trio.serve_http, options.port)
    elif options.adapter == "asyncio":
        asyncio.run(serve(sansmcp_io.asyncio.serve_http, options.port))
    else:
        serve_below_asgi(options.port)


if __name__ == "__main__":
    main()
