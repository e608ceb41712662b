// Plays an agent with the TypeScript SDK: connects, lists, then calls one tool N times.
// PROXY_URL, TOKEN; node client.mjs TOOL ARGUMENTS-JSON TIMES. Prints one JSON object a line.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [tool, args, times] = process.argv.slice(2);
const say = (line) => console.log(JSON.stringify(line));
const transport = new StreamableHTTPClientTransport(new URL(process.env.PROXY_URL), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } },
});
const client = new Client({ name: 'sluice-e2e-typescript', version: '1' }, { capabilities: {} });
await client.connect(transport);
say({ step: 'initialize', server: client.getServerVersion()?.name, session: Boolean(transport.sessionId) });
const { tools } = await client.listTools();
say({ step: 'list', tools: tools.map((one) => one.name) });
for (let n = 1; n <= Number(times); n += 1) {
  const answer = await client.callTool({ name: tool, arguments: JSON.parse(args) });
  say({
    step: 'call', n, is_error: answer.isError ?? false,
    text: answer.content?.[0]?.text, meta: answer._meta ?? null,
  });
}
await transport.terminateSession();
await client.close();
say({ step: 'end' });
