import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { always, type Fault } from '../fault.ts';
import { now, type Sent } from '../ledger.ts';
import type { Stage } from '../stage.ts';

const chat = (content: unknown, more: object = {}) =>
  JSON.stringify({ model: 'echo', messages: [{ role: 'user', content }], ...more });
const repeat = (text: string, n: number) => Array.from({ length: n }, () => text).join(',');

/** Bodies that are wrong, and bodies that are right and meant to hurt. */
const bodies: Readonly<Record<string, (id: string) => string | Uint8Array>> = {
  'not JSON': () => 'not json',
  'not UTF-8': () => Buffer.from([0x7b, 0x22, 0xff, 0x22]),
  'nested deeply': () => `{"model":"echo","messages":${'['.repeat(100_000)}`,
  'a forbidden key': () => '{"model":"echo","messages":[],"__proto__":{"a":1}}',
  'too many messages': () => `{"model":"echo","messages":[${repeat('{"role":"user","content":"x"}', 5000)}]}`,
  'too large': () => Buffer.alloc(20 * 1024 * 1024, 0x20),
  'many empty lists': () => `{"model":"echo","messages":[],"metadata":[${repeat('[]', 200_000)}]}`,
  'large numbers': () => chat('numbers', { metadata: JSON.parse(`[${repeat('1e308', 20_000)}]`) }),
  'a bomb of numbers': () => chat('numbers', { metadata: [] }).replace('[]', () => `[${repeat('1e308', 1_800_000)}]`),
  'numbers no database likes': () => chat('numbers', { seed: -1e-60, top_logprobs: 2 ** 53, metadata: { n: -1e300 } }),
  'addresses for keys': () =>
    chat('keys', { metadata: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`u${i}@example.com`, i])) }),
  'half tokens': () => chat('-eyJ'.repeat(20_000)),
  'odd characters': () => chat('\u0000 \ud800 \ufffe \u202e'),
  'an odd model': () => JSON.stringify({ model: `echo\u0000${'x'.repeat(5000)}`, messages: [] }),
};

/** Reads a trajectory back through the API, once it is there: what was stored must not hurt whoever looks at it. */
async function readBack({ gateway, ledger }: Stage, { trajectory, status }: Sent): Promise<void> {
  if (status !== 200) return;
  const headers = { authorization: `Bearer ${gateway.adminToken}` };
  for (let attempt = 0; attempt < 20; attempt++) {
    const read = await fetch(`${gateway.origin}/api/trajectories/${trajectory}`, { headers }).catch(() => null);
    await read?.arrayBuffer().catch(() => {});
    if (read !== null && read.status >= 500 && !read.headers.has('retry-after'))
      ledger.findings.push({ at: now(), during: hostileBodies.name, what: `reading back was answered ${read.status}` });
    if (read !== null && read.status !== 404) return;
    await sleep(250);
  }
}

/** Sends bytes as they are and leaves without waiting for an answer. */
function raw({ gateway }: Stage, bytes: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1', () => {
      socket.write(bytes);
      setTimeout(() => socket.destroy(), 300);
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
}

export const hostileBodies: Fault = {
  name: 'hostile-bodies',
  does: 'requests that are broken or meant to hurt, with a valid key: depth, size, numbers, bytes, halves of bodies',
  heals: 'they stop',
  costs: 'nothing: they get 4xx or are recorded like any other',
  // Not beside a kill: how long a recorder is busy with such a body is another matter than what a kill costs.
  parts: ['callers', 'gateway'],
  holdMs: [500, 2000],
  excuses: [],
  unable: always,
  async inject(stage, random) {
    const { load, gateway } = stage;
    const names = random
      .shuffle(Object.keys(bodies))
      .filter((name) => !name.startsWith('a bomb') || random.chance(0.3));
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n`;
    const sent = [
      ...names.map((name) => load.call(bodies[name]!).then((seen) => readBack(stage, seen))),
      // Accepted at any time, and to be found again however odd its time.
      load.call(() => chat('voted')).then(({ trajectory }) => load.vote(trajectory, { at: 253_402_300_799_000 })),
      raw(stage, `${head}content-length: 1000\r\n\r\n{"model":`),
      raw(stage, `${head}transfer-encoding: chunked\r\n\r\nzz\r\n`),
      raw(stage, '\u0000\u0001\u0002 HTTP/9\r\n\r\n'),
    ];
    return { detail: `${sent.length} of them`, heal: async () => void (await Promise.all(sent)) };
  },
};
