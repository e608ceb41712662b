// Reads messages and event streams as JavaScript servers and clients do, for a comparison with Sluice's
// own readers. A line of JSON in, {"message": base64} or {"events": [base64 piece, …]}; a line of JSON out.
import { createInterface } from 'node:readline';
import { EventSourceParserStream } from 'eventsource-parser/stream';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const PATHS = {
  id: ['id'], method: ['method'], name: ['params', 'name'], arguments: ['params', 'arguments'], uri: ['params', 'uri'],
  task: ['params', 'taskId'], version: ['params', '_meta', VERSION], token: ['params', '_meta', 'progressToken'],
  state: ['params', 'requestState'],
};

/** A value with its kinds spelt out; numbers as the sixteen hexadecimal digits of a double. */
function tree(value) {
  if (value === null) return null;
  if (typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return { number: bytes.toString('hex') };
  }
  if (Array.isArray(value)) return value.map(tree);
  return { members: Object.entries(value).map(([name, inner]) => [name, tree(inner)]) };
}

function message(bytes) {
  const whole = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  const out = {};
  for (const [slot, path] of Object.entries(PATHS)) {
    const found = path.reduce((value, name) =>
      value !== null && typeof value === 'object' && !Array.isArray(value) && Object.hasOwn(value, name) ? value[name] : undefined, whole);
    if (found !== undefined) out[slot] = tree(found);
  }
  return out;
}

async function events(pieces) {
  const bytes = new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Buffer.from(piece, 'base64'));
      controller.close();
    },
  });
  const out = [];
  const stream = bytes.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const event of stream) out.push([event.event ?? 'message', event.data]);
  return out;
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    answer = asked.events ? await events(asked.events) : message(Buffer.from(asked.message, 'base64'));
  } catch {
    answer = null;
  }
  console.log(JSON.stringify(answer));
}
