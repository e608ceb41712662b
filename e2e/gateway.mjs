// Sluice for a run of the harness: one process as a newcomer starts it, or replicas on PostgreSQL and
// Redis behind a balancer; and the servers, policies and grants that the kit wants.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { balance } from './balancer.mjs';

export function freePort() {
  return new Promise((found, failed) => {
    const server = createServer().once('error', failed);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

async function ready(port, child) {
  for (let tries = 0; ; tries++) {
    if (await fetch(`http://127.0.0.1:${port}/readyz`).then(r => r.ok, () => false)) return;
    if (tries > 600 || child.exitCode !== null) throw new Error('the gateway does not become ready');
    await new Promise(wait => setTimeout(wait, 100));
  }
}

/** What replicas share. */
const shared = ({ postgres, redis }) => ({
  SLUICE_DATABASE_URL: postgres,
  SLUICE_REDIS_URL: redis,
  SLUICE_MASTER_KEYS: `harness:${randomBytes(32).toString('base64')}`,
});

/** `replicas` processes of `sluice`; more than one need `stores`: an empty PostgreSQL database and a Redis. */
export async function startGateway(sluice, replicas, stores) {
  const data = mkdtempSync(join(tmpdir(), 'sluice-harness-'));
  const children = [];
  const ports = [];
  for (let n = 0; n < replicas; n++) ports.push(await freePort());
  const balancer = replicas > 1 ? await balance(ports) : undefined;
  const base = `http://127.0.0.1:${balancer?.port ?? ports[0]}`;
  const ended = child => child.exitCode !== null || child.signalCode !== null;
  const stop = async () => {
    balancer?.close();
    const ending = children.splice(0).filter(child => !ended(child));
    const gone = ending.map(child => new Promise(exited => child.once('exit', exited)));
    for (const child of ending) process.kill(-child.pid, 'SIGTERM');
    await Promise.all(gone);
    rmSync(data, { recursive: true, force: true });
  };
  process.on('exit', stop);
  const common = { ...process.env, SLUICE_PUBLIC_URL: base, SLUICE_LOG: 'warn', ...(balancer ? shared(stores) : {}) };
  const settings = n => ({
    ...common, SLUICE_LISTEN: `127.0.0.1:${ports[n]}`, SLUICE_DATA_DIR: join(data, String(n)),
  });
  for (let n = 0; n < replicas; n++) {
    const child = spawn(sluice, ['serve'], { env: settings(n), stdio: ['ignore', 'ignore', 'inherit'], detached: true });
    children.push(child);
    await ready(ports[n], child);
  }
  const make = ['admin', 'api-token', '--email', 'kit@example.com', '--workspace', 'kit', '--create', '--role', 'admin'];
  const made = spawnSync(sluice, make, { env: settings(0), encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`admin api-token: ${made.stderr}`);
  const { workspace, token } = JSON.parse(made.stdout);
  const post = async (path, body) => {
    const response = await fetch(`${base}/api/v1/workspaces/${workspace}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  return { post, stop, served: balancer?.served };
}

/** A server, its allow-all policy and two grants, as the kit's environment. */
export async function connect(post, name, upstream_url, transport) {
  const server = await post('/servers', { name, upstream_url, transport, unknown_tools: 'by_policy' });
  const document = { version: '1', default: 'allow' };
  const policy = await post(`/servers/${server.id}/policies`, { name: 'allow all', document });
  const grant = async label => (await post(`/servers/${server.id}/grants`, { label, policy_id: policy.id })).token;
  return { PROXY_URL: server.proxy_url, TOKEN: await grant('one'), TOKEN2: await grant('two') };
}
