// Plays an agent whose call a person is asked about, with a TypeScript SDK as it comes: no time-out is
// set, and one that can opens pages for its user.
// PROXY_URL, TOKEN; node approval.mjs TOOL v1|v2 [opens]. Each line of its input is the arguments of a
// call that is to be made, as JSON; a line of its output says what came of it.
import { createInterface } from 'node:readline';

const [tool, version, opens] = process.argv.slice(2);
const say = (line) => console.log(JSON.stringify(line));
const v1 = version === 'v1';
const { Client, StreamableHTTPClientTransport } = v1
  ? { ...await import('@modelcontextprotocol/sdk/client/index.js'), ...await import('@modelcontextprotocol/sdk/client/streamableHttp.js') }
  : await import('@modelcontextprotocol/client');
const transport = new StreamableHTTPClientTransport(new URL(process.env.PROXY_URL), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } },
});
const capabilities = opens ? { elicitation: { url: {} } } : {};
const options = v1 ? { capabilities } : { capabilities, versionNegotiation: { mode: 'auto' } };
const client = new Client({ name: `sluice-e2e-typescript-${version}`, version: '1' }, options);
if (opens) {
  const open = async (request) => {
    say({ step: 'page', mode: request.params.mode, url: request.params.url });
    return { action: 'accept' };
  };
  if (v1) {
    const { ElicitRequestSchema, ElicitationCompleteNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
    client.setRequestHandler(ElicitRequestSchema, open);
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, () => say({ step: 'page-done' }));
  } else {
    client.setRequestHandler('elicitation/create', open);
  }
}
await client.connect(transport);
say({ step: 'ready', session: Boolean(transport.sessionId) });
for await (const line of createInterface({ input: process.stdin })) {
  const started = Date.now();
  let told;
  try {
    const answer = await client.callTool({ name: tool, arguments: JSON.parse(line) });
    told = { is_error: answer.isError ?? false, text: answer.content?.[0]?.text, meta: answer._meta ?? null };
  } catch (error) {
    told = { failed: String(error) };
  }
  say({ step: 'call', seconds: (Date.now() - started) / 1000, ...told });
}
await client.close();
