#!/usr/bin/env node
// Runs a kit of real MCP clients and upstreams through the binary, with a policy that allows all.
//   node e2e/harness.mjs KIT SCRATCH SLUICE
// KIT is copied to SCRATCH (its packages are installed there) and never written to.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [kit, scratch, sluice] = process.argv.slice(2).map(path => resolve(path ?? ''));
if (process.argv.length < 5) {
  console.error('usage: node e2e/harness.mjs KIT SCRATCH SLUICE');
  process.exit(2);
}

const children = [];
const data = mkdtempSync(join(tmpdir(), 'sluice-harness-'));
function stop() {
  for (const child of children.splice(0)) {
    try { process.kill(-child.pid, 'SIGTERM'); } catch { /* it has ended */ }
  }
  rmSync(data, { recursive: true, force: true });
}
process.on('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: scratch, encoding: 'utf8', ...options });
  if (done.status !== 0) {
    throw new Error(`${command} ${args.join(' ')}: ${done.stderr || done.error || done.status}`);
  }
  return done.stdout;
}

/** Installs `file`'s packages once: again only when the file has changed. */
function once(file, mark, install) {
  const wanted = readFileSync(join(scratch, file), 'utf8');
  const done = join(scratch, mark);
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return;
  install();
  writeFileSync(done, wanted);
}

function prepare() {
  const own = path => !/(^|\/)(node_modules|\.venv)(\/|$)/.test(path.slice(kit.length));
  cpSync(kit, scratch, { recursive: true, force: true, filter: own });
  run('chmod', ['-R', 'u+w', '.']);
  once('package-lock.json', 'node_modules/.installed', () =>
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']));
  once('requirements.txt', '.venv/.installed', () => {
    run('python3', ['-m', 'venv', '--clear', '.venv']);
    run('.venv/bin/python', ['-m', 'pip', 'install', '--quiet', '-r', 'requirements.txt']);
  });
}

function freePort() {
  return new Promise((found, failed) => {
    const server = createServer().once('error', failed);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

async function startGateway() {
  const port = await freePort();
  const env = {
    ...process.env,
    SLUICE_LISTEN: `127.0.0.1:${port}`,
    SLUICE_PUBLIC_URL: `http://127.0.0.1:${port}`,
    SLUICE_DATA_DIR: data,
    SLUICE_LOG: 'warn',
  };
  const child = spawn(sluice, ['serve'], { env, stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  children.push(child);
  for (let tries = 0; ; tries++) {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).then(r => r.ok, () => false);
    if (ready) break;
    if (tries > 300 || child.exitCode !== null) throw new Error('the gateway does not become ready');
    await new Promise(wait => setTimeout(wait, 100));
  }
  const made = spawnSync(sluice, ['admin', 'api-token', '--email', 'kit@example.com', '--workspace', 'kit', '--create', '--role', 'admin'], { env, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`admin api-token: ${made.stderr}`);
  const { workspace, token } = JSON.parse(made.stdout);
  const base = `http://127.0.0.1:${port}/api/v1/workspaces/${workspace}`;
  return async (path, body) => {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
}

/** A server, its allow-all policy and two grants. */
async function connect(post, name, upstream_url, transport) {
  const server = await post('/servers', { name, upstream_url, transport, unknown_tools: 'by_policy' });
  const document = { version: '1', default: 'allow' };
  const policy = await post(`/servers/${server.id}/policies`, { name: 'allow all', document });
  const grant = async label => (await post(`/servers/${server.id}/grants`, { label, policy_id: policy.id })).token;
  return { PROXY_URL: server.proxy_url, TOKEN: await grant('one'), TOKEN2: await grant('two') };
}

let failed = 0;
function suite(name, command, args, env) {
  console.log(`## ${name}`);
  const done = spawnSync(command, args, {
    cwd: scratch, encoding: 'utf8', env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = (done.stdout ?? '').trim().split('\n');
  for (const line of lines) if (!line.startsWith('ok ') && !line.startsWith('skip ')) console.log(line);
  if (done.status !== 0) failed++;
}

prepare();
const upstreams = spawn('./upstreams.sh', [], { cwd: scratch, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
children.push(upstreams);
await new Promise(started => upstreams.stdout.once('data', started));
const post = await startGateway();
const at = port => `http://127.0.0.1:${port}`;
const everything = await connect(post, 'everything', `${at(3901)}/mcp`, 'streamable_http');
const raw = await connect(post, 'raw', `${at(4003)}/mcp`, 'streamable_http');
const modern = await connect(post, 'modern', `${at(4004)}/mcp`, 'streamable_http');
const python = await connect(post, 'python', `${at(4005)}/mcp`, 'streamable_http');
const conformance = await connect(post, 'conformance', `${at(4002)}/mcp`, 'streamable_http');
const sse = await connect(post, 'old sse', `${at(3902)}/sse`, 'sse');

const py = '.venv/bin/python';
const control = { RAW_URL: raw.PROXY_URL, RAW_CONTROL: at(4003) };
suite('everything, node', 'node', ['checks.mjs'], { ...everything, STRICT: '1', ONLY: '^(?!raw-|modern-|legacy-sse|strict-duplicate|strict-redirect)' });
suite('everything, python', py, ['checks.py'], { ...everything, ONLY: '^(?!py-|raw-|legacy-sse|default-sse)' });
suite('raw, node', 'node', ['checks.mjs'], { ...raw, ...control, STRICT: '1', ONLY: '^(raw-|strict-duplicate|strict-redirect)' });
suite('raw, python', py, ['checks.py'], { ...raw, ...control, ONLY: '^(raw-|default-sse)' });
suite('modern, node', 'node', ['checks.mjs'], { ...modern, MODERN_URL: modern.PROXY_URL, ONLY: '^modern-' });
suite('python, python', py, ['checks.py'], { ...python, PY_URL: python.PROXY_URL, ONLY: '^py-' });
suite('conformance', 'node', ['run_conformance.mjs'], conformance);
suite('clients', './clients.sh', [], everything);
suite('clients of old SSE', './clients.sh', [], sse);
console.log(failed ? `${failed} suites failed` : 'all suites passed');
process.exitCode = failed ? 1 : 0;
stop();
