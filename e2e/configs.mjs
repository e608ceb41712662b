// Runs every client configuration of a grant's page as it stands there: what a client would start is
// started, what it would connect to is connected to, and the tool is called through it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** Connects, lists and calls once; gives what a person would see. */
async function use(transport, tool, args) {
  const client = new Client({ name: 'sluice-e2e-configs', version: '1' }, { capabilities: {} });
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const answer = await client.callTool({ name: tool, arguments: args });
    return { tools: tools.map((one) => one.name), passed: !answer.isError, text: answer.content?.[0]?.text };
  } finally {
    await client.close();
  }
}

const http = (url, headers) => new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const only = (servers) => Object.values(servers)[0];
const sh = (text) => execFileSync('sh', ['-c', text], { encoding: 'utf8' });

/** Claude Code's own program is not installed: a function of its name shows what it would be given. */
function claudeCode(text) {
  const words = sh(`claude() { for word in "$@"; do printf '%s\\n' "$word"; done; }\n${text}`).trim().split('\n');
  const [header, value] = words[words.indexOf('--header') + 1].split(/: (.*)/s);
  if (words.slice(0, 4).join(' ') !== 'mcp add --transport http') throw new Error(words.join(' '));
  return http(words[5], { [header]: value });
}

const CLIENTS = {
  'claude-desktop': (text, home) => {
    const { command, args, env } = only(JSON.parse(text).mcpServers);
    return new StdioClientTransport({
      command, args, stderr: 'ignore',
      env: { ...process.env, MCP_REMOTE_CONFIG_DIR: home, ...env },
    });
  },
  'claude-code': claudeCode,
  cursor: (text) => { const { url, headers } = only(JSON.parse(text).mcpServers); return http(url, headers); },
  vscode: (text) => { const { url, headers } = only(JSON.parse(text).servers); return http(url, headers); },
  json: (text) => { const { url, headers } = only(JSON.parse(text).mcpServers); return http(url, headers); },
};

/** `texts` by client, as they stand on the page. Gives what went wrong, one sentence each. */
export async function runConfigurations(texts, tool, args) {
  const wrong = [];
  const home = mkdtempSync(join(tmpdir(), 'sluice-configs-'));
  for (const [client, connect] of Object.entries(CLIENTS)) {
    try {
      const seen = await use(connect(texts[client], home), tool, args);
      if (!seen.tools.includes(tool)) wrong.push(`${client}: ${tool} is not in the list: ${seen.tools}`);
      if (!seen.passed) wrong.push(`${client}: the call is refused: ${seen.text}`);
    } catch (error) {
      wrong.push(`${client}: ${error.message}`);
    }
  }
  try {
    const said = sh(texts.curl);
    const data = said.split(/\r?\n/).find((line) => line.startsWith('data: {'))?.slice(6);
    const answer = JSON.parse(data ?? said);
    if (!answer.result?.serverInfo?.name) wrong.push(`curl: no server answers: ${said}`);
  } catch (error) {
    wrong.push(`curl: ${error.message}`);
  }
  rmSync(home, { recursive: true, force: true });
  return wrong;
}
