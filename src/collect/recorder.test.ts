import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bytes, chat, exchange } from './fixtures/exchange.ts';
import { stored } from './fixtures/file-sink.ts';
import { encodeRecord } from './journal-record.ts';
import { type Recorder, type RecorderOptions, startRecorder } from './recorder.ts';
import { segmentPath } from './segments.ts';
import type { Signal } from './signal.ts';
import { uuidv7 } from './uuid.ts';

let home: string;
let recorder: Recorder | null;
const sinkModule = new URL('./fixtures/file-sink.ts', import.meta.url).href;
const start = async (options: Partial<RecorderOptions> = {}) => {
  recorder = await startRecorder({ home, databaseUrl: null, secret: 's'.repeat(32), sinkModule, ...options });
  return recorder;
};
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'pawl-recorder-'));
  recorder = null;
});
afterEach(async () => {
  await recorder?.close();
  await rm(home, { recursive: true, force: true });
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** The recorder's threads from now on, so that one can be ended where it stands. */
function recorders() {
  const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker };
  const made: Worker[] = [];
  let loaded = 0;
  const { Worker: Original } = threads;
  threads.Worker = class extends Original {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      made.push(this);
      this.on('message', ({ kind }: { kind: string }) => {
        if (kind === 'loaded') loaded++;
      });
    }
  };
  syncBuiltinESMExports();
  return {
    loaded: () => loaded,
    async endFirst() {
      await made[0]?.terminate();
    },
    [Symbol.dispose]() {
      threads.Worker = Original;
      syncBuiltinESMExports();
    },
  };
}

const segments = async (): Promise<number> =>
  (await readdir(join(home, 'journal'))).filter((name) => name.endsWith('.journal')).length;

function feedback(fields: Partial<Signal> = {}): Signal {
  return {
    id: uuidv7(),
    identity: 'vote:t1:alice',
    agent: 'support-desk',
    target: { kind: 'trajectory', id: 't1' },
    kind: 'feedback',
    name: 'vote',
    value: 1,
    unit: null,
    user: 'alice',
    key: null,
    comment: null,
    correction: null,
    at: 1,
    receivedAt: 2,
    ...fields,
  };
}

describe('the recorder', () => {
  test('puts an exchange into the database through the journal, redacted', async () => {
    const recorder = await start();
    const given = chat([{ role: 'user', content: 'I am bob@example.com' }], 'Hello bob@example.com', {
      user: 'bob@example.com',
    });
    expect(recorder.record(given)).toBe(true);
    expect(await recorder.drain(60_000)).toBe(true);
    const [entry] = await stored(home);
    if (entry?.kind !== 'turn') throw new Error('no turn');
    expect(entry.turn.id).toBe(given.id);
    expect(entry.turn.request.messages).toEqual([{ role: 'user', content: 'I am [EMAIL_1]' }]);
    expect(entry.turn.choices[0]?.message.content).toBe('Hello [EMAIL_1]');
    expect(entry.turn.user).toMatch(/^u_[\w-]{27}$/);
    expect(entry.turn.redactions).toEqual({ email: 2 });
    expect(recorder.stats()).toMatchObject({
      queueDepth: 0,
      queueBytes: 0,
      recorded: 1,
      journalled: 1,
      redactions: { email: 2 },
      sinkUp: true,
      diskOk: true,
    });
  });

  test.each(['the journal', 'the database'])(
    'joins a conversation continued after a restart, known from %s',
    async (source) => {
      if (source === 'the journal') await writeFile(join(home, 'down'), '');
      const first = await start();
      first.record(chat([{ role: 'user', content: 'Hello' }], 'Hi', { startedAt: Date.now() }));
      await until(() => first.stats().journalled === 1);
      if (source === 'the database') await first.drain(60_000);
      await first.close();
      if (source === 'the database') await rm(join(home, 'journal'), { recursive: true });
      const second = await start();
      const history = [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hi' },
      ];
      second.record(chat([...history, { role: 'user', content: 'Where is my order?' }], 'On its way.'));
      await until(() => second.stats().journalled === 1);
      await rm(join(home, 'down'), { force: true });
      await second.drain(60_000);
      const ids = (await stored(home)).map((entry) => (entry.kind === 'turn' ? entry.turn.trajectory : ''));
      expect(ids).toHaveLength(2);
      expect(ids[0]).toBe(ids[1]);
    },
  );

  test('takes what a door has read itself', async () => {
    const recorder = await start();
    const { requestBody: _, responseChunks: __, responseTruncated: ___, requestedModel: ____, ...facts } = exchange();
    const message = { role: 'assistant', content: 'Hi' };
    const content = {
      model: 'qwen3',
      request: { messages: [{ role: 'user', content: 'I am bob@example.com' }] },
      choices: [{ index: 0, message, finishReason: 'stop' }],
      ...{ promptTokens: 9, completionTokens: 1, reasoningTokens: null, usage: null },
    };
    expect(recorder.record({ ...facts, content })).toBe(true);
    await recorder.drain(60_000);
    const [entry] = await stored(home);
    expect(entry).toMatchObject({
      turn: {
        id: facts.id,
        request: { messages: [{ content: 'I am [EMAIL_1]' }] },
        choices: [{ message }],
        promptTokens: 9,
      },
    });
  });

  test('journals of a growing conversation what is new, also over a restart, and delivers it whole', async () => {
    await writeFile(join(home, 'down'), '');
    const said: object[] = [];
    let recorder = await start();
    for (let n = 0; n < 20; n++) {
      if (n === 10) {
        await recorder.close();
        recorder = await start();
      }
      said.push({ role: 'user', content: `Question ${n}: ${'word '.repeat(400)}` });
      const answer = `Answer ${n}: ${'word '.repeat(400)}`;
      recorder.record(chat(said, answer, { trajectory: 't' }));
      said.push({ role: 'assistant', content: answer });
      await until(() => recorder.stats().journalled === (n % 10) + 1);
    }
    // 40 messages of 2 kB, half of them once more after the restart; all of them each time would be 800 kB.
    expect(recorder.stats().journalBytes).toBeLessThan(200_000);
    await rm(join(home, 'down'));
    await recorder.drain(60_000);
    const requests = (await stored(home)).map((entry) => entry.kind === 'turn' && entry.turn.request.messages);
    expect(requests).toEqual(Array.from({ length: 20 }, (_, n) => said.slice(0, 2 * n + 1)));
  });

  test('acknowledges a signal once it is journalled, with comment and user made safe', async () => {
    const recorder = await start();
    const signal = feedback({ comment: 'call me at eve@example.com', user: 'eve@example.com' });
    expect(await recorder.signal({ kind: 'signal', signal })).toBe('journalled');
    await recorder.drain(60_000);
    const [entry] = await stored(home);
    if (entry?.kind !== 'signal') throw new Error('no signal');
    expect(entry.signal.comment).toBe('call me at [EMAIL_1]');
    expect(entry.signal.user).toMatch(/^u_/);
  });

  test('keeps taking exchanges while the database is away and delivers each exactly once afterwards', async () => {
    await writeFile(join(home, 'down'), '');
    const recorder = await start({ segmentBytes: 10_000 });
    const given = Array.from({ length: 200 }, () => exchange());
    for (const one of given) expect(recorder.record(one)).toBe(true);
    await until(() => recorder.stats().queueDepth === 0 && !recorder.stats().sinkUp);
    expect(recorder.stats()).toMatchObject({ journalled: 200, recorded: 0 });
    expect(recorder.stats().sinkLagMs).toBeGreaterThanOrEqual(0);
    await rm(join(home, 'down'));
    expect(await recorder.drain(60_000)).toBe(true);
    const ids = (await stored(home)).map((entry) => (entry.kind === 'turn' ? entry.turn.id : ''));
    expect(ids).toEqual(given.map((one) => one.id));
    await recorder.close();
    expect((await readdir(join(home, 'journal'))).filter((name) => name.endsWith('.journal')).length).toBeLessThan(3);
  });

  test('drops the newest exchanges beyond the queue and counts them', async () => {
    const recorder = await start({ queueLength: 10 });
    const taken = Array.from({ length: 25 }, () => recorder.record(exchange()));
    expect(taken.filter(Boolean)).toHaveLength(10);
    expect(recorder.stats().dropped['queue-full']).toBe(15);
    await recorder.drain(60_000);
    expect(await stored(home)).toHaveLength(10);
    expect(recorder.record(exchange())).toBe(true);
  });

  test('bounds the queue by bytes as well', async () => {
    const recorder = await start({ queueBytes: 100_000 });
    const big = () => exchange({ responseChunks: [new Uint8Array(40_000)] });
    expect([recorder.record(big()), recorder.record(big()), recorder.record(big())]).toEqual([true, true, false]);
  });

  test('says full and counts when the journal may not grow any further', async () => {
    await writeFile(join(home, 'down'), '');
    const recorder = await start({ journalBytes: 20_000 });
    for (let i = 0; i < 100; i++) recorder.record(exchange());
    await until(() => recorder.stats().queueDepth === 0);
    const { journalled, dropped, journalBytes } = recorder.stats();
    expect(journalled + dropped['journal-full']).toBe(100);
    expect(dropped['journal-full']).toBeGreaterThan(0);
    expect(journalBytes).toBeLessThanOrEqual(20_000);
    const huge = feedback({ comment: 'x'.repeat(30_000) });
    expect(await recorder.signal({ kind: 'signal', signal: huge })).toBe('full');
    await rm(join(home, 'down'));
    expect(await recorder.drain(60_000)).toBe(true);
    expect(await stored(home)).toHaveLength(journalled);
    expect(await recorder.signal({ kind: 'signal', signal: feedback() })).toBe('journalled');
  });

  test('starts its worker again when it dies, and loses nothing that was journalled', async () => {
    await writeFile(join(home, 'crash'), '');
    const recorder = await start();
    for (let i = 0; i < 20; i++) recorder.record(exchange());
    await until(() => recorder.stats().restarts === 1);
    const { journalled, dropped } = recorder.stats();
    expect(journalled + dropped.crash).toBe(20);
    recorder.record(exchange());
    await until(() => recorder.stats().recorded >= journalled + 1);
    expect((await stored(home)).length).toBeGreaterThanOrEqual(journalled + 1);
  });

  test('has a spare take over at once, with what its forerunner knew, while the database is away', async () => {
    await writeFile(join(home, 'down'), '');
    using workers = recorders();
    const recorder = await start({ spareAfterMs: 0 });
    recorder.record(chat([{ role: 'user', content: 'Hello' }], 'Hi', { startedAt: Date.now() }));
    await until(() => recorder.stats().journalled === 1 && recorder.stats().queueDepth === 0);
    await until(() => workers.loaded() === 2);
    const before = await segments();
    const ended = performance.now();
    await workers.endFirst();
    const history = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
    ];
    recorder.record(chat([...history, { role: 'user', content: 'Where is my order?' }], 'On its way.'));
    await until(() => recorder.stats().journalled === 2);
    console.log(JSON.stringify({ recorder_replaced_ms: Math.round(performance.now() - ended) }));
    expect(recorder.stats()).toMatchObject({ restarts: 1, sinkUp: false, recorded: 0 });
    expect(recorder.stats().dropped.crash).toBe(0);
    expect(await segments()).toBe(before + 1);
    await rm(join(home, 'down'));
    expect(await recorder.drain(60_000)).toBe(true);
    const ids = (await stored(home)).map((entry) => (entry.kind === 'turn' ? entry.turn.trajectory : ''));
    expect(ids).toHaveLength(2);
    expect(ids[0]).toBe(ids[1]);
  });

  test('replaces a worker that hangs, counts what it had as lost, and loses nothing that was journalled', async () => {
    await writeFile(join(home, 'hang'), '');
    const recorder = await start({ hangMs: 3000 });
    recorder.record(exchange());
    while ((await readdir(home)).includes('hang')) await new Promise((resolve) => setTimeout(resolve, 10));
    recorder.record(exchange()); // to a worker that does not listen
    const signalled = recorder.signal({ kind: 'signal', signal: feedback() });
    await until(() => recorder.stats().restarts === 1);
    expect(await signalled).toBe('failed');
    expect(recorder.stats().dropped.hang).toBeGreaterThan(0);
    expect(recorder.record(exchange())).toBe(true);
    await until(() => recorder.stats().recorded >= 2);
    expect((await stored(home)).length).toBe(2);
  });

  test('starts on a journal that holds whole records of another format, counts them and goes on', async () => {
    const folder = join(home, 'journal');
    await mkdir(folder);
    await writeFile(segmentPath(folder, 1), encodeRecord('{"kind":"turn","turn":{}}'));
    const recorder = await start();
    recorder.record(exchange());
    expect(await recorder.drain(60_000)).toBe(true);
    expect(await stored(home)).toHaveLength(1);
    expect(recorder.stats().corrupt).toBe(1);
  });

  test('does not touch the caller’s buffers, even when many share one', async () => {
    const recorder = await start();
    const pool = Buffer.concat([bytes('{"messages":[]}'), bytes('{"choices":[]}'), bytes('rest')]);
    recorder.record(exchange({ requestBody: pool.subarray(0, 15), responseChunks: [pool.subarray(15, 29)] }));
    await recorder.drain(60_000);
    expect(pool.toString('utf8', 29)).toBe('rest');
    const [entry] = await stored(home);
    expect(entry?.kind === 'turn' && entry.turn.request).toEqual({ messages: [] });
  });

  test('keeps what was said apart when its memory goes round', async () => {
    const recorder = await start();
    const said = (wave: number, i: number) => `${wave}.${i} ${`wave ${wave} `.repeat(40_000 - 1000 * i)}`;
    for (let wave = 0; wave < 4; wave++) {
      for (let i = 0; i < 6; i++) recorder.record(chat([{ role: 'user', content: said(wave, i) }], `${wave}.${i}`));
      expect(await recorder.drain(60_000)).toBe(true);
    }
    const turns = (await stored(home)).flatMap((entry) => (entry.kind === 'turn' ? [entry.turn] : []));
    const heard = new Map(
      turns.map((turn) => [
        turn.choices[0]!.message.content,
        (turn.request.messages as { content: string }[])[0]!.content,
      ]),
    );
    expect(heard.size).toBe(24);
    for (let wave = 0; wave < 4; wave++)
      for (let i = 0; i < 6; i++) expect(heard.get(`${wave}.${i}`) === said(wave, i)).toBe(true);
  });

  test('takes nothing after it was closed', async () => {
    const recorder = await start();
    await recorder.close();
    expect(recorder.record(exchange())).toBe(false);
    expect(recorder.stats().dropped.closed).toBe(1);
    expect(await recorder.signal({ kind: 'signal', signal: feedback() })).toBe('failed');
  });

  test('says why when it cannot start', async () => {
    await writeFile(join(home, 'journal'), 'a file where the folder should be');
    await expect(start()).rejects.toThrow(/The recorder could not start/);
  });
});
