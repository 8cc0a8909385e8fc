/** Conversations and labels from files, into a real database. */
import { beforeAll, describe, expect, test } from 'vitest';
import { label } from '../score/label.ts';
import { scoreWindow } from '../score/run.ts';
import { toolUse } from '../score/tool-use.ts';
import { weighted } from '../score/weighted.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { withStore } from '../store/test-store.ts';
import { readTrajectory } from '../store/trajectories.ts';
import { importConversations } from './import.ts';
import { importLabels } from './import-labels.ts';
import { hashedId } from './person.ts';
import { piiSettings } from './redact/settings.ts';

let store: Store;
beforeAll(async () => {
  store = await withStore();
});

const now = new Date('2026-05-20T12:00:00Z');
const secret = 's'.repeat(32);
const about = { agent: 'desk', origin: 'production', secret } as const;
const conversation = (k: number, more: object = {}) => ({
  id: `c-${k}`,
  user: `user-${k}`,
  messages: [
    { role: 'user', content: `I am ann${k}@example.com, where is it?` },
    { role: 'assistant', content: 'On its way.' },
    { role: 'user', content: 'Thanks' },
    { role: 'assistant', content: 'Bye.' },
  ],
  reward: k % 2,
  ...more,
});
const lines = (...given: readonly object[]) => given.map((line) => JSON.stringify(line));
const label1 = (values: object) => ({ trajectory: 'c-1', score: 1, ...values });
const labels = (given: readonly object[], at = now) =>
  importLabels(store, { agent: 'desk', secret, now: at, labels: lines(...given) });

describe('conversations of a file', () => {
  test('are recorded as if they had come through the gateway, and once', async () => {
    const file = [...lines(conversation(1), conversation(2)), '', 'nonsense', ...lines({ messages: [] })];
    const first = await importConversations(store, { ...about, now, lines: file });
    expect(first).toMatchObject({ lines: 5, conversations: 2, turns: 4, signals: 2, known: 0, bad: 2 });
    expect(first.redactions).toBe(4);
    expect(first.problems).toMatchObject([{ line: 4 }, { line: 5, reason: expect.stringMatching(/^messages/) }]);
    const again = await importConversations(store, { ...about, now: new Date(+now + 86_400_000), lines: file });
    expect(again).toMatchObject({ conversations: 2, turns: 0, signals: 0, known: 6 });
    const found = await readTrajectory(store, 'c-1', {});
    expect(found!.trajectory).toMatchObject({ turns: 2, user: hashedId('user-1', secret), consent: 'unknown' });
    expect(JSON.stringify(found)).not.toContain('@example.com');
    expect(found!.signals).toMatchObject([{ kind: 'outcome', name: 'reward', value: 1 }]);
    expect(found!.turns[1]!.request.messages).toHaveLength(3);
  });

  test('are redacted by what is personal for the installation', async () => {
    const common = piiSettings.parse({ recognizers: [{ kind: 'badge', pattern: 'BX-\\d{4}' }] });
    const line = conversation(900, {
      messages: [
        { role: 'user', content: 'I am BX-1234' },
        { role: 'assistant', content: 'Hi' },
      ],
    });
    await importConversations(store, { ...about, now, lines: lines(line), pii: { common, agents: {} } });
    const found = JSON.stringify(await readTrajectory(store, 'c-900', {}));
    expect(found).toContain('[BADGE_1]');
    expect(found).not.toContain('BX-1234');
  });

  test('go on where they were interrupted', async () => {
    const stop = new AbortController();
    const many = lines(...Array.from({ length: 60 }, (_, k) => conversation(100 + k)));
    const interrupted = importConversations(store, {
      ...{ ...about, now, lines: many, signal: stop.signal },
      onProgress: () => stop.abort(),
    });
    await expect(interrupted).rejects.toThrow();
    const rest = await importConversations(store, { ...about, now: new Date(+now + 1000), lines: many });
    expect(rest).toMatchObject({ conversations: 60, turns: 20, known: 150 });
  });
});

describe('labels', () => {
  test('a reviewer’s newest stands, reviewers are kept apart, and saying it again changes nothing', async () => {
    const said = [
      label1({ reviewer: 'rita', parts: { tools: 0.5 }, comment: 'call ann1@example.com' }),
      label1({ reviewer: 'sam', score: 0 }),
      { trajectory: 'never-recorded', score: 1 },
      label1({ score: 2 }),
      label1({ turn: '019ad0f0-0000-7000-8000-000000000000' }),
    ];
    expect(await labels(said)).toMatchObject({ labels: 3, written: 4, unknown: 1, bad: 2 });
    expect(await labels(said, new Date(+now + 5000))).toMatchObject({ written: 0, unchanged: 4 });
    expect(await labels([label1({ reviewer: 'rita', score: 0.25 })], new Date(+now + 9000))).toMatchObject({
      written: 1,
    });
    const standing = await listLabels(store, { agent: 'desk', limit: 10, targets: ['c-1'] });
    expect(standing.map(({ score, parts, reviewer }) => [score, parts, reviewer])).toEqual([
      [0.25, { tools: 0.5 }, hashedId('rita', secret)],
      [0, {}, hashedId('sam', secret)],
    ]);
    expect(await listLabels(store, { agent: 'desk', limit: 10, reviewer: hashedId('sam', secret) })).toHaveLength(1);
    expect(JSON.stringify(standing)).not.toContain('@example.com');
  });

  test('score again what they touch, and only under a reward that uses them', async () => {
    const window = { agent: 'desk', since: new Date(+now - 86_400_000), until: new Date(+now + 86_400_000), now };
    const without = weighted({ tools: [1, toolUse()] });
    const using = weighted({ people: [1, label()] });
    await scoreWindow(store, { ...window, spec: without });
    const before = await scoreWindow(store, { ...window, spec: using });
    expect(before).toMatchObject({ scored: 63, unmeasured: 62 });
    await labels([{ trajectory: 'c-2', score: 1, reviewer: 'rita' }], new Date(+now + 20_000));
    expect(await scoreWindow(store, { ...window, spec: without })).toMatchObject({ rescored: 0, unchanged: 63 });
    expect(await scoreWindow(store, { ...window, spec: using })).toMatchObject({ rescored: 1, unmeasured: 61 });
  });
});
