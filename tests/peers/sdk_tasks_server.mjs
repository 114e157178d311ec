// A server on version 1 of the TypeScript SDK whose tools are tasks of 2025-11-25, on stdio.
//
// Usage: node sdk_tasks_server.mjs PACKAGES    (PACKAGES is a folder node_modules)

import { join } from "node:path";

const sdk = join(process.argv[2], "@modelcontextprotocol/sdk/dist/esm");
const { McpServer } = await import(join(sdk, "server/mcp.js"));
const { StdioServerTransport } = await import(join(sdk, "server/stdio.js"));
const { ElicitResultSchema } = await import(join(sdk, "types.js"));
const { InMemoryTaskMessageQueue, InMemoryTaskStore } = await import(
  join(sdk, "experimental/tasks/stores/in-memory.js")
);

const requests = { tools: { call: {} } };
const server = new McpServer(
  { name: "sdk-tasks", version: "1.0" },
  {
    capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests } },
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
    defaultTaskPollInterval: 20,
  },
);

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

// A tool whose task `work` goes on after the response. No time to live: its timers would keep the
// process alive after the end of its input.
function taskTool(name, taskSupport, work, pollInterval = 20) {
  server.experimental.tasks.registerToolTask(
    name,
    { description: name, execution: { taskSupport } },
    {
      async createTask(extra) {
        const task = await extra.taskStore.createTask({ ttl: null, pollInterval });
        setTimeout(() => work(task.taskId, extra), 0); // the store changes the object `task` itself
        return { task };
      },
      getTask: (extra) => extra.taskStore.getTask(extra.taskId),
      getTaskResult: (extra) => extra.taskStore.getTaskResult(extra.taskId),
    },
  );
}

taskTool("add", "optional", async (id, { taskStore }) => {
  await taskStore.updateTaskStatus(id, "working", "adding");
  await taskStore.storeTaskResult(id, "completed", text(3));
});

taskTool("wait", "required", async () => {}, 60_000);
taskTool("turn", "required", async () => {});

taskTool("break", "required", async (id, { taskStore }) => {
  await taskStore.storeTaskResult(id, "failed", { ...text("broken"), isError: true });
});

taskTool("ask", "required", async (id, { taskStore, sendRequest }) => {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
  const params = { mode: "form", message: "Who?", requestedSchema };
  const related = { relatedTask: { taskId: id } };
  const answer = await sendRequest({ method: "elicitation/create", params }, ElicitResultSchema, related);
  await taskStore.updateTaskStatus(id, "working");
  await taskStore.storeTaskResult(id, "completed", text(answer.content.name));
});

// What the client says about its own task, step by step.
async function followed(stream) {
  const steps = [];
  for await (const step of stream) {
    if (step.type === "taskCreated") steps.push(`created ${step.task.status}`);
    else if (step.type === "taskStatus") steps.push(step.task.status);
    else if (step.type === "result") steps.push(JSON.stringify(step.result.content));
    else steps.push(`${step.error.code} ${step.error.message}`);
  }
  return text(steps.filter((step, at) => step !== steps[at - 1]).join("\n"));
}

const messages = [{ role: "user", content: { type: "text", text: "p" } }];
server.registerTool("sample", { description: "sample" }, () =>
  followed(
    server.server.experimental.tasks.createMessageStream(
      { messages, maxTokens: 5 },
      { task: { ttl: 60_000 } },
    ),
  ),
);
server.registerTool("elicit", { description: "elicit" }, () =>
  followed(
    server.server.experimental.tasks.elicitInputStream(
      { mode: "form", message: "Who?", requestedSchema: { type: "object", properties: {} } },
      { task: {} },
    ),
  ),
);

await server.connect(new StdioServerTransport());
