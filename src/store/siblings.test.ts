import { describe, expect, it } from 'vitest';
import { giveConsent } from './consents.ts';
import { entry, noon, sibling, turn } from './fixtures.ts';
import { dropPartitions } from './partitions.ts';
import { writeEntries } from './record.ts';
import { readSiblings } from './siblings.ts';
import { openSink } from './sink.ts';
import { withStore } from './test-store.ts';
import { listTrajectories, readTrajectory } from './trajectories.ts';

const withTurn = async () => {
  const store = await withStore();
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  const asked = turn({ user: 'ann', threadKey: 'key' });
  await writeEntries(store, [{ kind: 'turn', turn: asked }]);
  return { store, asked };
};

describe('siblings', () => {
  it('are read back by their turn as they were written, in order, and a repeat adds nothing', async () => {
    const { store, asked } = await withTurn();
    const cool = sibling(asked, { temperature: 0.7, topP: 0.95 });
    const warm = sibling(asked, { temperature: 1.1, startedAt: noon + 2000 });
    const entries = [warm, cool].map((one) => ({ kind: 'sibling' as const, sibling: one }));
    expect((await writeEntries(store, entries)).inserted).toBe(2);
    expect(await writeEntries(store, entries)).toMatchObject({ inserted: 0, duplicates: 2 });
    const other = turn();
    const found = await readSiblings(store, { agent: 'desk', turns: [asked.id, other.id] });
    expect(found).toEqual({ siblings: new Map([[asked.id, [cool, warm]]]), cut: false });
    const others = await readSiblings(store, { agent: 'another', turns: [asked.id] });
    expect(others).toEqual({ siblings: new Map(), cut: false });
    const small = await readSiblings(store, { agent: 'desk', turns: [asked.id], maxBytes: 150 });
    expect(small).toEqual({ siblings: new Map([[asked.id, [cool]]]), cut: true });
  });

  it('leave the conversation as it was: its turns, sums, end, consent and where it goes on', async () => {
    const { store, asked } = await withTurn();
    const before = await readTrajectory(store, asked.trajectory, { now: new Date(noon) });
    await writeEntries(store, [{ kind: 'sibling', sibling: sibling(asked, { startedAt: noon + 60_000 }) }]);
    expect(await readTrajectory(store, asked.trajectory, { now: new Date(noon) })).toEqual(before);
    expect(before?.trajectory).toMatchObject({ turns: 1, consent: 'given', origin: 'production' });
    expect((await listTrajectories(store, { now: new Date(noon) })).trajectories).toHaveLength(1);
    const sink = await openSink({ home: '', databaseUrl: store.url });
    expect(await sink.threads?.(noon)).toMatchObject([{ threadKey: 'key', trajectory: asked.trajectory }]);
    await sink.close();
  });

  it('are forgotten with the day of their turn, although they were asked after midnight', async () => {
    const store = await withStore();
    const late = turn({ startedAt: Date.UTC(2026, 4, 20, 23, 59, 59, 900) });
    const kept = turn({ startedAt: Date.UTC(2026, 4, 21, 12) });
    await writeEntries(store, [{ kind: 'turn', turn: late }, entry.turn({ startedAt: kept.startedAt })]);
    await writeEntries(
      store,
      [late, kept].map((one) => ({ kind: 'sibling' as const, sibling: sibling(one) })),
    );
    await dropPartitions(store, { before: '2026-05-21' });
    const { siblings: left } = await readSiblings(store, { agent: 'desk', turns: [late.id, kept.id] });
    expect([...left.keys()]).toEqual([kept.id]);
  });
});
