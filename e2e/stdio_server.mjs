// A server that only speaks stdio, standing in for one whose program tests cannot install: the same tool
// name, and the same need of a variable in its environment. Nothing is executed.
// node stdio_server.mjs TOOL [VARIABLE]
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [tool, variable] = process.argv.slice(2);
if (variable && !process.env[variable]) {
  console.error(`${variable} is not set`);
  process.exit(1);
}
const server = new Server({ name: 'stand-in', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{
    name: tool,
    description: 'Run code in a sandbox and return what it prints.',
    inputSchema: {
      type: 'object',
      properties: { language: { type: 'string' }, code: { type: 'string' } },
      required: ['code'],
    },
  }],
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: 'text', text: `ran ${params.arguments.code.length} characters` }],
}));
await server.connect(new StdioServerTransport());
