import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StoreError } from '../errors.ts';
import { encodeLine, type Line } from '../store/line.ts';
import { entryId, entryOf } from './fixtures/file-sink.ts';
import { type Journal, openJournal } from './journal.ts';
import { type Pump, type PumpOptions, rest, startPump } from './pump.ts';
import { segmentPath } from './segments.ts';
import type { JournalEntry } from './signal.ts';
import type { Sink } from './sink.ts';
import type { Damaged } from './unread.ts';

let folder: string;
let journal: Journal;
let pump: Pump | null;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pawl-pump-'));
  pump = null;
});
afterEach(async () => {
  await pump?.stop();
  await journal.close();
  await rm(folder, { recursive: true, force: true });
});

const entry = (id: string): JournalEntry => ({
  kind: 'attachment',
  attachment: { agent: 'a', key: id, trajectory: 't', turn: null, at: 0 },
});

/** Keeps what was committed, each id once, in the order of first arrival, as the database does. */
class MemorySink implements Sink {
  readonly rows = new Map<string, JournalEntry>();
  readonly batches: number[] = [];
  before: (lines: readonly Line[]) => void = () => {};
  after: () => void = () => {};
  refuse: (entry: JournalEntry) => boolean = () => false;

  async write(lines: readonly Line[]) {
    this.before(lines);
    const refused = lines.filter((line) => this.refuse(entryOf(line)));
    for (const line of lines) {
      const one = entryOf(line);
      if (!refused.includes(line) && !this.rows.has(entryId(one))) this.rows.set(entryId(one), one);
    }
    this.batches.push(lines.length);
    await Promise.resolve();
    this.after();
    return { refused: refused.map((line) => ({ line, error: 'not acceptable' })) };
  }
  async close() {}
  destroy() {}
  keys(): string[] {
    return [...this.rows.keys()].map((key) => key.split(' ')[0] as string);
  }
}

async function begin(sink: MemorySink, options: Partial<PumpOptions> = {}): Promise<Pump> {
  pump = await startPump({ journal, openSink: async () => sink, backoffMs: [1, 5], cursorEveryMs: 1, ...options });
  return pump;
}

async function append(id: string): Promise<void> {
  const result = await journal.append(encodeLine(entry(id)));
  if (result.kind !== 'journalled') throw new Error(result.kind);
  pump?.offer(result.payload, result.start, result.end);
}

const ids = (n: number, from = 0) => Array.from({ length: n }, (_, i) => `e${from + i}`);

/** A small seeded generator, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

test('what has waited too long gives way to nobody, also on a connection opened later, until all of it is in the sink', async () => {
  journal = await openJournal({ folder });
  const told: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const kept = new MemorySink();
  let opened = 0;
  const openSink = async (): Promise<Sink> => {
    const mine = ++opened;
    return {
      async write(lines) {
        await held;
        if (mine === 1) throw new StoreError('gone', { retryable: true });
        return kept.write(lines);
      },
      hurry: (on) => void told.push(`${mine} ${on}`),
      close: async () => {},
      destroy: () => {},
    };
  };
  pump = await startPump({ journal, openSink, lateMs: 50, gatherMs: 1, backoffMs: [1, 1], silenceMs: [200, 200] });
  await append('a');
  await vi.waitUntil(() => opened > 1 && told.length > 1, { timeout: 60_000 }); // silent for so long, the first was given up
  release();
  await vi.waitUntil(() => told.at(-1)?.endsWith('false'), { timeout: 60_000 });
  expect(told).toEqual(['1 true', '2 true', '2 false']);
  expect(kept.keys()).toEqual(['a']);
});

describe('the pump', () => {
  test('delivers in the order of acknowledgement, in batches', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    await begin(sink, { batchEntries: 10 });
    await Promise.all(ids(95).map(append));
    expect(await pump?.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual(ids(95));
    expect(Math.max(...sink.batches)).toBeLessThanOrEqual(10);
    expect(pump?.stats()).toMatchObject({ stored: 95, refused: 0, corrupt: 0, lagMs: 0, up: true });
  });

  test.each([1, 2, 3, 4, 5])(
    'a sink that fails at random, before or after its commit, ends up with each entry once (seed %i)',
    async (seed) => {
      const next = random(seed);
      const sink = new MemorySink();
      sink.before = () => {
        if (next() < 0.3) throw new Error('connection refused');
      };
      sink.after = () => {
        if (next() < 0.3) throw new Error('connection lost before the answer to COMMIT');
      };
      const expected: string[] = [];
      for (let start = 0; start < 4; start++) {
        journal = await openJournal({ folder, segmentBytes: 2000 });
        await begin(sink, { batchEntries: 7, windowBytes: 1000 });
        for (const id of ids(60, start * 60)) {
          expected.push(id);
          await append(id);
        }
        if (start === 3) expect(await pump?.settled(60_000)).toBe(true);
        await pump?.stop();
        await journal.close();
      }
      expect(sink.keys()).toEqual(expected);
    },
  );

  test('memory is bounded while the sink is away: what does not fit is read back from disk', async () => {
    journal = await openJournal({ folder, segmentBytes: 5000 });
    const sink = new MemorySink();
    let away = true;
    sink.before = () => {
      if (away) throw new Error('away');
    };
    await begin(sink, { windowBytes: 500, batchBytes: 1000 });
    await Promise.all(ids(300).map(append));
    while (pump?.stats().up) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(sink.rows.size).toBe(0);
    away = false;
    expect(await pump?.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual(ids(300));
  });

  test('removes segments that are done with, and a later start begins at the cursor', async () => {
    journal = await openJournal({ folder, segmentBytes: 1000 });
    const sink = new MemorySink();
    await begin(sink);
    for (const id of ids(100)) await append(id);
    await pump?.settled(60_000);
    await pump?.stop();
    await journal.close();
    expect(journal.segments().length).toBeLessThanOrEqual(1);
    journal = await openJournal({ folder });
    const again = new MemorySink();
    await begin(again);
    await append('new');
    await pump?.settled(60_000);
    expect(again.keys()).toEqual(['new']);
  });

  test('what is in the sink leaves the disk after a while, also where nothing follows it', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    await begin(sink, { leaveAfterMs: 20 });
    await append('e0');
    while (journal.segments().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await append('e1');
    await pump?.settled(60_000);
    expect(sink.keys()).toEqual(['e0', 'e1']);
  });

  test('without its cursor it delivers again what is still there, from the oldest segment', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    await begin(sink);
    for (const id of ids(5)) await append(id);
    await pump?.settled(60_000);
    await pump?.stop();
    await journal.close();
    await writeFile(join(folder, 'cursor.json'), '{"segment":');
    journal = await openJournal({ folder });
    const again = new MemorySink();
    await begin(again);
    await pump?.settled(60_000);
    expect(again.keys()).toEqual(ids(5));
  });

  test('damage in the journal costs the records it hit, is counted, and is reported with its place', async () => {
    journal = await openJournal({ folder });
    const ends: number[] = [];
    for (const id of ids(20)) {
      const result = await journal.append(encodeLine(entry(id)));
      if (result.kind === 'journalled') ends.push(result.end.offset);
    }
    await journal.close();
    const path = segmentPath(folder, 1);
    const bytes = await readFile(path);
    const hit = (ends[6] as number) + 20; // inside e7
    bytes[hit] = (bytes[hit] as number) ^ 1;
    await writeFile(path, bytes);
    await truncate(path, (ends[19] as number) - 3); // e19 is torn
    journal = await openJournal({ folder });
    const reported: Damaged[] = [];
    const sink = new MemorySink();
    await begin(sink, { onDamage: (damaged) => reported.push(damaged) });
    await append('later');
    expect(await pump?.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual([...ids(20).filter((id) => id !== 'e7' && id !== 'e19'), 'later']);
    expect(reported).toEqual([
      { segment: 1, offset: ends[6], bytes: (ends[7] as number) - (ends[6] as number) },
      { segment: 1, offset: ends[18], bytes: (ends[19] as number) - 3 - (ends[18] as number) },
    ]);
    expect(pump?.stats().corrupt).toBe(2);
  });

  test('a record larger than a read block is read whole', async () => {
    journal = await openJournal({ folder });
    const big = entry('x'.repeat(9_000_000));
    await journal.append(encodeLine(big));
    const sink = new MemorySink();
    await begin(sink);
    await pump?.settled(60_000);
    expect(sink.keys()[0]).toHaveLength(9_000_000);
  });

  test('entries the sink refuses are put aside in rejected.jsonl and the rest goes on', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    sink.refuse = (one) => entryId(one).startsWith('e3 ');
    await begin(sink);
    await Promise.all(ids(6).map(append));
    await pump?.settled(60_000);
    expect(sink.keys()).toEqual(['e0', 'e1', 'e2', 'e4', 'e5']);
    expect(pump?.stats()).toMatchObject({ stored: 5, refused: 1 });
    const [line] = (await readFile(join(folder, 'rejected.jsonl'), 'utf8')).split('\n');
    expect(JSON.parse(line as string)).toMatchObject({
      reason: 'not acceptable',
      kind: 'attachment',
      entry: { key: 'e3' },
    });
  });

  test('one entry that breaks its whole batch is found by halving and put aside', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    sink.before = (lines) => {
      if (lines.some((line) => entryId(entryOf(line)).startsWith('e5 '))) throw new StoreError('invalid byte sequence');
    };
    await begin(sink);
    await Promise.all(ids(10).map(append));
    await pump?.settled(60_000);
    expect(sink.keys()).toEqual(ids(10).filter((id) => id !== 'e5'));
    expect(pump?.stats().refused).toBe(1);
  });

  test('a sink that says never to everything is waited for: only the first few are put aside', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    let broken = true;
    let calls = 0;
    sink.before = () => {
      calls++;
      if (broken) throw new StoreError('permission denied for table turns');
    };
    await begin(sink);
    await Promise.all(ids(40).map(append));
    while (calls < 100) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(pump?.stats().refused).toBeLessThanOrEqual(3);
    broken = false;
    expect(await pump?.settled(60_000)).toBe(true);
    const refused = pump?.stats().refused ?? 0;
    expect(sink.rows.size).toBe(40 - refused);
  });

  test('a sink that cannot be opened is tried again', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    let tries = 0;
    const problems: string[] = [];
    await begin(sink, {
      openSink: async () => {
        if (++tries < 4) throw new StoreError('no database yet');
        return sink;
      },
      onProblem: (message) => problems.push(message),
    });
    await append('one');
    expect(await pump?.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual(['one']);
    expect(problems).toHaveLength(1);
  });

  test('stopping does not wait for a sink that is away, and loses nothing', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    sink.before = () => {
      throw new Error('away');
    };
    await begin(sink, { backoffMs: [60_000, 60_000] });
    await append('one');
    expect(await pump?.settled(20)).toBe(false);
    await pump?.stop();
    expect((await readdir(folder)).filter((name) => name.endsWith('.journal'))).toHaveLength(1);
  });
});

describe('resting after a batch', () => {
  const batch = { tookMs: 50, waitingBefore: 1000, waitingAfter: 1000, lagMs: 0 };

  test('is four times as long as the batch took while more comes in than the sink takes, at most a second', () => {
    expect(rest(batch)).toBe(200);
    expect(rest({ ...batch, waitingAfter: 5000 })).toBe(200);
    expect(rest({ ...batch, tookMs: 600 })).toBe(1000);
  });

  test('does not happen while the sink catches up', () => {
    expect(rest({ ...batch, waitingAfter: 999 })).toBe(0);
  });

  test('ends when an entry has waited ten seconds', () => {
    expect(rest({ ...batch, lagMs: 9999 })).toBe(200);
    expect(rest({ ...batch, lagMs: 10_000 })).toBe(0);
  });

  test('ends as soon as nobody is answered any more', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    let looks = 0;
    let following: Promise<unknown> | null = null;
    // While the first is written twenty more come in: a reason to rest, had anybody to be given way to.
    const slow: Sink = {
      write: async (lines) => {
        following ??= Promise.all(ids(20, 1).map(append));
        await following;
        return sink.write(lines);
      },
      close: async () => {},
      destroy: () => {},
    };
    const isQuiet = () => ++looks > 0;
    const writing = await begin(sink, { batchEntries: 1, isQuiet, openSink: async () => slow });
    await append('e0');
    expect(await writing.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual(ids(21));
    expect(looks).toBeGreaterThan(0);
  });
});

describe('a sink that falls silent', () => {
  test('is given up and opened anew, counts as away meanwhile, and ends up with each entry once', async () => {
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    let opened = 0;
    let destroyed = 0;
    const silent = { write: () => new Promise<never>(() => {}), close: async () => {}, destroy: () => destroyed++ };
    const problems: string[] = [];
    await begin(sink, {
      openSink: async () => (++opened <= 2 ? silent : sink),
      silenceMs: [50, 100],
      onProblem: (message) => problems.push(message),
    });
    await Promise.all(ids(10).map(append));
    while (destroyed === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(pump?.stats().up).toBe(false);
    expect(await pump?.settled(60_000)).toBe(true);
    expect(sink.keys()).toEqual(ids(10));
    expect([opened, destroyed]).toEqual([3, 2]);
    expect(problems).toEqual([expect.stringMatching(/had no answer for/)]);
    expect(pump?.stats().up).toBe(true);
  });

  test('does not keep the pump from stopping, in a write or while it is opened', async () => {
    const never = new Promise<never>(() => {});
    for (const openSink of [async () => ({ write: () => never, close: async () => {}, destroy() {} }), () => never]) {
      journal = await openJournal({ folder });
      await begin(new MemorySink(), { openSink, silenceMs: [3_600_000, 3_600_000] });
      await append('one');
      await new Promise((resolve) => setTimeout(resolve, 50));
      await pump?.stop();
      await journal.close();
    }
    journal = await openJournal({ folder });
    const sink = new MemorySink();
    await begin(sink);
    await pump?.settled(60_000);
    expect(sink.keys()).toEqual(['one']);
  });
});

describe('what is refused', () => {
  test.each(['a folder', 'a link'])('is kept under the next name when %s has the first', async (what) => {
    journal = await openJournal({ folder });
    const first = join(folder, 'rejected.jsonl');
    await (what === 'a folder' ? mkdir(first) : symlink(join(folder, 'elsewhere'), first));
    const sink = new MemorySink();
    sink.refuse = () => true;
    await begin(sink);
    await Promise.all(ids(3).map(append));
    expect(await pump?.settled(60_000)).toBe(true);
    expect(pump?.stats().refused).toBe(3);
    expect((await readFile(join(folder, 'rejected-2.jsonl'), 'utf8')).trim().split('\n')).toHaveLength(3);
    expect(await readdir(folder)).not.toContain('elsewhere');
  });
});
