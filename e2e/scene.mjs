// A workspace with one of everything, made over REST and by an agent's calls.
// BASE, TOKEN (an admin's API token for `acme`), UPSTREAM (a server with `executePython`).
const { BASE, TOKEN, UPSTREAM } = process.env;

export const TOOL = 'executePython';

async function rest(method, path, body) {
  const answer = await fetch(`${BASE}/api/v1/workspaces/acme${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
}

/** What an agent gets for each of its calls, one after the other. */
async function agent(url, token, times) {
  const headers = {
    authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
  };
  const send = (message) => fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'claude-code', version: '2' } };
  const opened = await send({ id: 0, method: 'initialize', params: hello });
  await opened.text();
  headers['mcp-session-id'] = opened.headers.get('mcp-session-id');
  headers['mcp-protocol-version'] = '2025-11-25';
  await (await send({ method: 'notifications/initialized' })).text();
  for (let id = 1; id <= times; id++) {
    const params = { name: TOOL, arguments: { code: `print(${id})` } };
    await (await send({ id, method: 'tools/call', params })).text();
  }
}

/** Everything that pages show; the ids, by the word before `{id}` in a route. */
export async function scene() {
  const server = await rest('POST', '/servers', { name: 'python-sandbox', upstream_url: UPSTREAM });
  await rest('POST', `/servers/${server.id}/refresh`, {});
  const { policy } = await rest('POST', `/servers/${server.id}/tools/${TOOL}/apply-recommended`, { rest: 'deny' });
  const asks = {
    version: '1', default: 'deny',
    tools: { [TOOL]: { approve_if: [{ conditions: [] }], approval: { hold: '0s' } } },
  };
  const asking = await rest('POST', `/servers/${server.id}/policies`, { name: 'asks a person', document: asks });
  const grant = (label, of) => rest('POST', `/servers/${server.id}/grants`, { label, policy_id: of.id });
  const [busy, careful] = [await grant('nightly-agent', policy), await grant('careful-agent', asking)];
  await agent(server.proxy_url, busy.token, 11);
  await agent(server.proxy_url, careful.token, 1);
  const hook = { name: 'on call', kind: 'webhook', url: `${BASE}/healthz` };
  const endpoint = await rest('POST', '/notification-endpoints', hook);
  let calls = [];
  // The log is written in batches.
  while (calls.length < 12) calls = (await rest('GET', `/calls?tool=${TOOL}`)).items;
  const approvals = await rest('GET', '/approvals?status=pending');
  const limited = calls.find((call) => call.outcome === 'limited');
  return {
    servers: server.id,
    policies: policy.id,
    grants: (busy.grant ?? busy).id,
    logs: limited.id,
    approvals: approvals.items[0].id,
    endpoints: (endpoint.endpoint ?? endpoint).id,
  };
}
