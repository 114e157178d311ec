// What others do with the same call: the low-level server of npm's `@modelcontextprotocol/sdk`.
//
// `node npm_stdio.mjs PACKAGE`, where PACKAGE is its directory.

const [, , directory] = process.argv;
const { Server } = await import(`${directory}/dist/esm/server/index.js`);
const { StdioServerTransport } = await import(`${directory}/dist/esm/server/stdio.js`);
const { CallToolRequestSchema } = await import(`${directory}/dist/esm/types.js`);

const server = new Server({ name: "echo", version: "1.0" }, { capabilities: { tools: {} } });
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: "text", text: params.arguments.text }],
}));
await server.connect(new StdioServerTransport());
process.stdin.on("end", () => process.exit());
