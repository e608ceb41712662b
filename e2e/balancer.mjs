#!/usr/bin/env node
// A load balancer without stickiness: each request goes to another replica than the one before it.
//   node e2e/balancer.mjs PORT PORT…   prints its address as a line of JSON, and runs until it is stopped.
// The requests of one MCP session alternate among themselves, whatever others do meanwhile, so that no
// session is served by one replica by chance. Bodies stream both ways; a side that leaves takes the other along.
import { createServer, request } from 'node:http';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** Header names and values as they came, without those of this hop. */
function pass(raw) {
  const out = [];
  for (let at = 0; at < raw.length; at += 2) {
    if (!HOP.has(raw[at].toLowerCase())) out.push(raw[at], raw[at + 1]);
  }
  return out;
}

/** Listens on a free port; `served` counts the requests that each replica got. */
export async function balance(ports) {
  const served = ports.map(() => 0);
  const turns = new Map();
  const pick = incoming => {
    const who = incoming.headers['mcp-session-id'] ?? incoming.headers.authorization ?? '';
    const turn = (turns.get(who) ?? -1) + 1;
    turns.set(who, turn);
    const at = turn % ports.length;
    served[at] += 1;
    return ports[at];
  };
  const server = createServer((incoming, outgoing) => {
    const port = pick(incoming);
    const { method, url: path } = incoming;
    const headers = pass(incoming.rawHeaders);
    if (incoming.headers['transfer-encoding']) headers.push('Transfer-Encoding', 'chunked');
    // A connection a request: nothing of a replica's life leaks into the next request.
    const up = request({ host: '127.0.0.1', port, method, path, headers, setHost: false, agent: false });
    up.on('response', answer => {
      outgoing.writeHead(answer.statusCode, answer.statusMessage, pass(answer.rawHeaders));
      outgoing.flushHeaders();
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    up.on('error', () => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502, { 'content-type': 'text/plain' }).end('the replica does not answer');
    });
    outgoing.on('close', () => up.destroy());
    incoming.on('error', () => up.destroy());
    incoming.pipe(up);
  });
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 60_000;
  await new Promise((listening, failed) => {
    server.once('error', failed);
    server.listen(0, '127.0.0.1', listening);
  });
  return { port: server.address().port, served, close: () => { server.closeAllConnections(); server.close(); } };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { port } = await balance(process.argv.slice(2).map(Number));
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
}
