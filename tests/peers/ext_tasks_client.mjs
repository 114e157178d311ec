// A client on npm's `ext-tasks`, and on version 2 of the TypeScript SDK, that calls tools as tasks.
//
// Usage: node ext_tasks_client.mjs PACKAGES REVISION COMMAND ...
//
// PACKAGES is a folder node_modules; in REVISION 2025-11-25 tasks have the older form, in 2026-07-28
// that of the extension. Its one line of output is a JSON object with what it has seen of each tool
// of the server that COMMAND starts.

import { join } from "node:path";

const [packages, revision, command, ...args] = process.argv.slice(2);
const isModern = revision === "2026-07-28";
const scope = join(packages, "@modelcontextprotocol");
const { Client } = await import(join(scope, "client/dist/index.mjs"));
const { StdioClientTransport } = await import(join(scope, "client/dist/stdio.mjs"));
const { createTaskSessionFromClient } = await import(join(scope, "ext-tasks/dist/client/index.js"));
const { bindTaskReceiver } = await import(join(scope, "ext-tasks/dist/receiver/index.js"));

const clientInfo = { name: "ext-tasks", version: "1.0" };
const clientCapabilities = { sampling: {}, elicitation: { form: {} } };
const requests = { sampling: { createMessage: {} } };
const ofReceiver = isModern ? {} : { tasks: { list: {}, cancel: {}, requests } };
const client = new Client(clientInfo, {
  capabilities: { ...clientCapabilities, ...ofReceiver },
  versionNegotiation: { mode: isModern ? { pin: revision } : "legacy" },
});
const transport = new StdioClientTransport({ command, args, stderr: "inherit" });
await client.connect(transport);

// In 2026-07-28 the package wants requests to pass the SDK by, whose schemas know no tasks.
const waiting = new Map();
const toClient = transport.onmessage;
transport.onmessage = (message, extra) => {
  const answered = waiting.get(message.id);
  if (answered === undefined) return toClient(message, extra);
  waiting.delete(message.id);
  const { result, error } = message;
  answered(error === undefined ? { kind: "result", result } : { kind: "error", error });
};
async function rawDispatch(request) {
  const id = `raw-${crypto.randomUUID()}`;
  const answer = new Promise((answered) => waiting.set(id, answered));
  await transport.send({ jsonrpc: "2.0", id, ...request });
  return answer;
}

const content = { type: "text", text: "sampled" };
const sampled = { role: "assistant", content, model: "none" };
const receiver = isModern
  ? undefined
  : bindTaskReceiver(client, {
      methods: { "sampling/createMessage": true },
      pollIntervalMs: 20,
      sampling: async () => sampled,
    });

const names = { first: "Ada", last: "Alan" };
let asked = 0;
const session = createTaskSessionFromClient(client, {
  endpointId: "test",
  onInputRequest: async (request, { inputId, delivery }) => {
    seen.delivery ??= delivery;
    const key = inputId ?? ["first", "last"][asked++ % 2];
    return { action: "accept", content: { name: names[key] } };
  },
  ...(isModern
    ? {
        rawDispatch,
        v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities },
      }
    : {}),
});

const seen = { capabilities: session.capabilities };
const task = { preference: "prefer" };

async function ending(execution) {
  const { outcome } = await execution.settle();
  const said = outcome.error?.message ?? outcome.result?.content[0].text ?? "";
  return [execution.kind, outcome.status, said];
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error.code ?? error.message;
  }
}

for (const name of ["add", "ask", "first", "break", "fault"])
  if (isModern || name !== "first") seen[name] = await ending(await session.callTool(name, {}, { task }));
seen.plain = await ending(await session.callTool("cancelled", {}, {}));

const long = await session.callTool("wait", {}, { task });
const reference = long.serializeReference();
await long.detach();
await long.result(); // that it is not followed any more
await new Promise(setImmediate);
const again = await session.resumeTask(reference);
seen.resumed = again.handle.taskId === reference.taskId;
await again.cancel();
seen.wait = await ending(again);
seen.over = (await session.task(reference.taskId).snapshot()).status;
seen.unknown = await failure(session.task("no such task").snapshot());
if (!isModern) {
  seen.listed = (await session.listTasks()).tasks.map(({ status }) => status);
  seen.sample = await ending(await session.callTool("sample", {}, {}));
}
seen.count = (await ending(await session.callTool("cancelled", {}, {}))).at(-1);

await session.close();
receiver?.close();
await client.close();
console.log(JSON.stringify(seen));
