// A client on version 1 of the TypeScript SDK that calls tools as tasks of 2025-11-25.
//
// Usage: node sdk_tasks_client.mjs PACKAGES COMMAND ...    (PACKAGES is a folder node_modules)
//
// Its one line of output is a JSON object with what it has seen of each tool of the server that
// COMMAND starts.

import { join } from "node:path";

const [packages, command, ...args] = process.argv.slice(2);
const sdk = join(packages, "@modelcontextprotocol/sdk/dist/esm");
const { Client } = await import(join(sdk, "client/index.js"));
const { StdioClientTransport } = await import(join(sdk, "client/stdio.js"));
const { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema } = await import(
  join(sdk, "types.js")
);
const { InMemoryTaskStore } = await import(join(sdk, "experimental/tasks/stores/in-memory.js"));

const taskStore = new InMemoryTaskStore();
const requests = { sampling: { createMessage: {} } };
const client = new Client(
  { name: "sdk-tasks", version: "1.0" },
  {
    capabilities: { sampling: {}, elicitation: { form: {} }, tasks: { list: {}, cancel: {}, requests } },
    taskStore,
  },
);

const names = ["Ada", "Alan"];
client.setRequestHandler(ElicitRequestSchema, () => ({
  action: "accept",
  content: { name: names.shift() },
}));

// A sampling that is a task: it is over as soon as the server has seen it.
client.setRequestHandler(CreateMessageRequestSchema, async (request, extra) => {
  const task = await extra.taskStore.createTask({ ttl: null, pollInterval: 20 });
  const content = { type: "text", text: `sampled with ttl ${request.params.task.ttl}` };
  setTimeout(() => {
    const result = { role: "assistant", content, model: "none" };
    taskStore.storeTaskResult(task.taskId, "completed", result);
  }, 0);
  return { task };
});

async function followed(name, onTask = () => {}) {
  const steps = [];
  const stream = client.experimental.tasks.callToolStream({ name }, CallToolResultSchema, { task: {} });
  for await (const step of stream) {
    if (step.type === "taskCreated") {
      steps.push("created");
      await onTask(step.task);
    } else if (step.type === "taskStatus") steps.push(step.task.status);
    else if (step.type === "result") steps.push(step.result.content[0].text);
    else steps.push(step.error.code);
  }
  const open = ["working", "input_required"]; // which of them a poll meets is a race
  return steps.filter((step) => !open.includes(step));
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error.code;
  }
}

await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const tasks = client.experimental.tasks;
const seen = {};
await client.listTools();
seen.add = await followed("add");
seen.plain = (await client.callTool({ name: "add" })).content[0].text;
seen.ask = await followed("ask");
let id;
seen.wait = await followed("wait", async (task) => {
  id = task.taskId;
  await tasks.getTask(id);
  seen.cancelled = (await tasks.cancelTask(id)).status;
});
seen.again = await failure(tasks.cancelTask(id));
seen.unknown = await failure(tasks.getTask("no such task"));
seen.break = await followed("break");
seen.fault = await followed("fault");
const listed = (await tasks.listTasks()).tasks;
seen.listed = listed.map((task) => task.status);
seen.failed = (await tasks.getTaskResult(listed.at(-1).taskId, CallToolResultSchema)).content[0].text;
seen.sample = (await client.callTool({ name: "sample" })).content[0].text;
seen.count = (await client.callTool({ name: "cancelled" })).content[0].text;
await client.close();
console.log(JSON.stringify(seen));
