import { beforeAll, describe, expect, test } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import { createNames } from './content.ts';
import { entry, noon, turn, uuidAt } from './fixtures.ts';
import { lineOf } from './line.ts';
import { sweepMessages } from './messages.ts';
import { dropPartitions } from './partitions.ts';
import type { Store } from './postgres.ts';
import { writeEntries, writeLines } from './record.ts';
import { withStore } from './test-store.ts';
import { readTrajectory } from './trajectories.ts';
import { readTurn } from './turns.ts';
import { readTurnsOf } from './window.ts';

const long = (text: string) => `${text} ${'word '.repeat(220)}`;
const said = (n: number, by = '') =>
  Array.from({ length: n }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: long(`Message ${i}${by}.`) }));
const answer = (i: number) => ({ index: 0, message: said(i + 1)[i]!, finishReason: 'stop' });

/** A conversation of so many turns, each with all that was said before. */
const conversation = (trajectory: string, turns: number, fields: Partial<Turn> = {}): Turn[] =>
  Array.from({ length: turns }, (_, i) =>
    turn({
      trajectory,
      id: uuidAt(noon + i),
      startedAt: noon + i,
      request: { model: 'm', messages: said(2 * i + 1), tools: said(3, ' of a tool') },
      choices: [answer(2 * i + 1)],
      ...fields,
    }),
  );
const entries = (turns: readonly Turn[]) => turns.map((one) => ({ kind: 'turn' as const, turn: one }));
const count = async (store: Store, where = 'true'): Promise<number> =>
  (await store.pool.query(`select count(*) from pawl.messages where ${where}`)).rows[0].count;
const now = new Date(noon + 60_000);
/** As if everything had been sent a while ago. */
const later = (store: Store) => store.pool.query(`update pawl.messages set sent_at = sent_at - interval '11 minutes'`);

describe('a conversation of 40 turns', () => {
  let store: Store;
  const turns = conversation('long', 40);
  beforeAll(async () => {
    store = await withStore();
    for (let i = 0; i < 40; i += 10) await writeEntries(store, entries(turns.slice(i, i + 10)));
  });

  test('has each message once, answers included', async () => {
    expect(await count(store, 'body is not null')).toBe(80 + 3);
    const { rows } = await store.pool.query('select max(cardinality(parts)) as most from pawl.turns');
    expect(rows[0].most).toBeLessThan(4 + 15 + 3 + 1 + 1);
  });

  test('reads as it was recorded, byte for byte, by turn, by trajectory and by window', async () => {
    const read = (await readTrajectory(store, 'long', { now }))!;
    expect(JSON.stringify(read.turns.map(({ request, choices }) => ({ request, choices })))).toBe(
      JSON.stringify(turns.map(({ request, choices }) => ({ request, choices }))),
    );
    expect(read.turns).toEqual(turns);
    expect(await readTurn(store, turns[39]!.id)).toEqual(turns[39]);
    const placed = { trajectory: read.trajectory, day: '2026-05-20' };
    expect([...(await readTurnsOf(store, [placed])).values()]).toEqual([turns]);
  });

  test('is cut by what it is when put together, not by what is stored', async () => {
    const sizes = turns.map(({ request, choices }) => Buffer.byteLength(JSON.stringify({ request, choices })));
    const most = sizes.slice(0, 20).reduce((a, b) => a + b) + 20 * 100;
    const read = (await readTrajectory(store, 'long', { now, maxBytes: most }))!;
    expect([read.turns.length, read.cut]).toEqual([20, true]);
    const few = (await readTrajectory(store, 'long', { now, maxBytes: sizes[0]! - 500 }))!;
    expect(few.tooLarge).toEqual(turns.map(({ id }) => id));
    expect(few.turns[7]).toMatchObject({ id: turns[7]!.id, request: {}, choices: [], usage: null, promptTokens: 12 });
  });

  test('tells other turns nothing: another agent, and another day, have their own', async () => {
    const before = await count(store);
    await writeEntries(store, entries(conversation('other', 3, { agent: 'shop' })));
    expect(await count(store, `agent = 'shop'`)).toBe(6 + 3);
    await writeEntries(store, [entry.turn({ startedAt: noon + 86_400_000, request: { messages: said(3) } })]);
    expect(await count(store, `day = '2026-05-21'`)).toBe(3);
    expect(await count(store, `agent = 'desk' and day = '2026-05-20'`)).toBe(before);
  });
});

describe('what a turn only names', () => {
  const carriedOnce = () => {
    const known = new Set<string>();
    return (one: Turn) => {
      const line = lineOf({ kind: 'turn', turn: one }, { names: createNames('s'), isKnown: (hash) => known.has(hash) });
      for (const { hash } of line.messages) known.add(hash);
      return line;
    };
  };

  test('is there although the turn that carried it was refused', async () => {
    const store = await withStore();
    const encode = carriedOnce();
    const [first, second] = conversation('c', 2);
    const { refused } = await writeLines(store, [encode({ ...first!, id: 'no uuid' }), encode(second!)]);
    expect(refused).toHaveLength(1);
    expect(await readTurn(store, second!.id)).toEqual(second);
  });

  test('and is lost leaves a turn that says so, among others that read', async () => {
    const store = await withStore();
    const encode = carriedOnce();
    const turns = conversation('c', 3);
    const lines = turns.map(encode);
    await writeLines(store, [lines[0]!, lines[2]!]);
    const read = (await readTrajectory(store, 'c', { now }))!;
    expect(read.turns[0]).toEqual(turns[0]);
    expect(read.turns[1]).toMatchObject({ id: turns[2]!.id, request: {}, choices: [], promptTokens: 12 });
    expect(read.turns[1]?.error).toMatch(/missing from the database/);
  });
});

describe('forgetting', () => {
  test('retention drops the messages of a day with its turns', async () => {
    const store = await withStore();
    await writeEntries(store, entries(conversation('c', 3)));
    expect(await dropPartitions(store, { before: '2026-05-21' })).toEqual(['2026-05-20']);
    expect(await count(store)).toBe(0);
  });

  test('a sweep removes what only deleted turns referred to, pieces of lists included, and nothing else', async () => {
    const store = await withStore();
    const kept = conversation('kept', 10);
    const gone = conversation('gone', 20, { request: { messages: [...said(3), ...said(40, ' of another')] } });
    await writeEntries(store, entries([...kept, ...gone]));
    await store.pool.query(`delete from pawl.turns where trajectory = 'gone'`);
    const of = { agent: 'desk', day: '2026-05-20' };
    const unread = await count(store, `body like '%of another%'`);
    expect(unread).toBe(40);
    expect(await sweepMessages(store, of)).toEqual({ removed: 0, left: expect.any(Number) }); // a turn under way may name them
    await later(store);
    const swept = await sweepMessages(store, of);
    expect(swept.removed).toBeGreaterThan(40);
    expect(swept.left).toBe(0);
    expect(await count(store, `body like '%of another%'`)).toBe(0);
    expect((await readTrajectory(store, 'kept', { now }))?.turns).toEqual(kept);
    expect(await sweepMessages(store, of)).toEqual({ removed: 0, left: 0 });
  });

  test('a message that came again is not swept', async () => {
    const store = await withStore();
    const [first] = conversation('c', 1);
    await writeEntries(store, entries([first!]));
    await store.pool.query('delete from pawl.turns');
    await later(store);
    await writeEntries(store, entries([{ ...first!, id: uuidAt(noon) }]));
    await store.pool.query('delete from pawl.turns');
    expect(await sweepMessages(store, { agent: 'desk', day: '2026-05-20' })).toEqual({ removed: 0, left: 5 });
  });
});
