#!/usr/bin/env node
// Runs a kit of real MCP clients and upstreams through the binary, with a policy that allows all: on one
// replica, and on two behind a balancer that sends each request of a session to the other one.
//   node e2e/harness.mjs KIT SCRATCH SLUICE [REPLICAS…]      REPLICAS: 1 2 unless named
// KIT is copied to SCRATCH (its packages are installed there) and never written to. Two replicas need
// HARNESS_POSTGRES_URL, an empty database, and HARNESS_REDIS_URL: `cargo xtask harness` starts both.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { connect, freePort, startGateway } from './gateway.mjs';

const [kit, scratch, sluice] = process.argv.slice(2, 5).map(path => resolve(path ?? ''));
if (process.argv.length < 5) {
  console.error('usage: node e2e/harness.mjs KIT SCRATCH SLUICE [REPLICAS…]');
  process.exit(2);
}
const layouts = process.argv.length > 5 ? process.argv.slice(5).map(Number) : [1, 2];
const stores = { postgres: process.env.HARNESS_POSTGRES_URL, redis: process.env.HARNESS_REDIS_URL };
if (layouts.some(replicas => replicas > 1) && !(stores.postgres && stores.redis)) {
  console.error('two replicas need HARNESS_POSTGRES_URL and HARNESS_REDIS_URL; see cargo xtask harness');
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: scratch, encoding: 'utf8', ...options });
  if (done.status !== 0) {
    throw new Error(`${command} ${args.join(' ')}: ${done.stderr || done.error || done.status}`);
  }
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

/** The kit's upstreams on free ports. */
async function startUpstreams() {
  const ports = {};
  for (const name of ['EV_PORT', 'SSE_PORT', 'CONF_PORT', 'RAW_PORT', 'MOD_PORT', 'PY_PORT']) ports[name] = String(await freePort());
  const child = spawn('./upstreams.sh', [], {
    cwd: scratch, env: { ...process.env, ...ports }, stdio: ['ignore', 'pipe', 'inherit'], detached: true,
  });
  const stop = () => { try { process.kill(-child.pid, 'SIGTERM'); } catch { /* it has ended */ } };
  process.on('exit', stop);
  await new Promise(started => child.stdout.once('data', started));
  return { ports, stop };
}

let failed = 0;
/** One suite; resolves when it has ended, whatever its result. */
async function suite(name, command, args, env) {
  const { passed } = await turn(name, command, args, env);
  if (!passed) failed++;
}

// The kit's driver of mcp-remote waits on the pipe, then reads one line through a buffer: an answer that comes in one
// piece with a notification before it stays in the buffer, and the driver gives up.
const missed = /^FAIL mcp-remote.* other: .*"method":"notifications\/.*timeout waiting for/;

/** A suite of clients; a failure that is the driver's own, and no other, gets a second turn. */
async function clients(name, env) {
  const { passed, failures } = await turn(name, './clients.sh', [], env);
  if (passed) return;
  if (failures.length === 1 && missed.test(failures[0])) await suite(`${name}, once more`, './clients.sh', [], env);
  else failed++;
}

/** Runs a suite and prints what it said; whether it passed, and its lines that tell a failure. */
function turn(name, command, args, env) {
  const began = Date.now();
  const child = spawn(command, args, { cwd: scratch, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', part => { text += part; });
  return new Promise(ended => child.on('close', code => {
    const lines = text.trim().split('\n').filter(line => !/^(ok|skip) /.test(line));
    console.log(`${name}: ${lines.join('\n  ')} (${((Date.now() - began) / 1000).toFixed(0)} s)`);
    // A suite that ran nothing has not passed.
    const passed = code === 0 && /^([1-9]\d*) passed, 0 failed/.test(lines.at(-1) ?? '');
    ended({ passed, failures: lines.filter(line => line.startsWith('FAIL ')) });
  }));
}

async function through(replicas) {
  const { ports, stop: stopUpstreams } = await startUpstreams();
  const { post, stop, served } = await startGateway(sluice, replicas, stores);
  const at = port => `http://127.0.0.1:${ports[port]}`;
  const http = 'streamable_http';
  const everything = await connect(post, 'everything', `${at('EV_PORT')}/mcp`, http);
  const raw = await connect(post, 'raw', `${at('RAW_PORT')}/mcp`, http);
  const modern = await connect(post, 'modern', `${at('MOD_PORT')}/mcp`, http);
  const python = await connect(post, 'python', `${at('PY_PORT')}/mcp`, http);
  const conformance = await connect(post, 'conformance', `${at('CONF_PORT')}/mcp`, http);
  const sse = await connect(post, 'old sse', `${at('SSE_PORT')}/sse`, 'sse');

  const py = '.venv/bin/python';
  const control = { RAW_URL: raw.PROXY_URL, RAW_CONTROL: at('RAW_PORT') };
  const everythingOnly = '^(?!raw-|modern-|legacy-sse|strict-duplicate|strict-redirect)';
  // What runs beside each other shares no upstream that counts or logs.
  const lanes = [
    async () => {
      await suite('everything, node', 'node', ['checks.mjs'], { ...everything, STRICT: '1', ONLY: everythingOnly });
      await suite('modern, node', 'node', ['checks.mjs'], { ...modern, MODERN_URL: modern.PROXY_URL, STRICT: '1', ONLY: '^modern-' });
      await clients('clients', everything);
    },
    async () => {
      await suite('everything, python', py, ['checks.py'], { ...everything, ONLY: '^(?!py-|raw-|legacy-sse|default-sse)' });
      await suite('python, python', py, ['checks.py'], { ...python, PY_URL: python.PROXY_URL, ONLY: '^py-' });
      await clients('clients of old SSE', sse);
    },
    async () => {
      await suite('raw, node', 'node', ['checks.mjs'], { ...raw, ...control, STRICT: '1', ONLY: '^(raw-|strict-duplicate|strict-redirect)' });
      await suite('raw, python', py, ['checks.py'], { ...raw, ...control, ONLY: '^(raw-|default-sse)' });
      await suite('conformance', 'node', ['run_conformance.mjs'], conformance);
    },
  ];
  await Promise.all(lanes.map(lane => lane()));
  if (served) {
    console.log(`requests of each replica: ${served.join(', ')}`);
    if (served.some(count => count < 100)) failed++;
  }
  await stop();
  stopUpstreams();
}

prepare();
for (const replicas of layouts) {
  console.log(`## ${replicas} replica${replicas > 1 ? 's' : ''} (${new Date().toISOString().slice(11, 19)})`);
  await through(replicas);
}
console.log(failed ? `${failed} failed` : 'all passed');
process.exit(failed ? 1 : 0);
