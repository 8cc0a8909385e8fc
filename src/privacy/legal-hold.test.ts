import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { converse } from '../score/fixtures.ts';
import { readErasure } from '../store/erasures.ts';
import { noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { askErasure, carryOutErasures } from './erase.ts';
import { proofLines } from './erase-command.ts';
import { daysLeft } from './erasure.ts';
import { everythingIn, passTenMinutes } from './fixtures.ts';
import { hold, releaseHold } from './legal-hold.ts';
import { runRetention, surveyRetention } from './retention.ts';
import { verifyErasure } from './verify-erasure.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-hold-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const dayMs = 86_400_000;

it('what a legal hold keeps is neither erased nor too old; released, it goes, and the proof shows that it did', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home });
  const turns = converse('ZELDA-4711 asks', [{ say: 'Yes.' }], { trajectory: 'a', user: 'ann' });
  await writeEntries(
    store,
    turns.map((turn) => ({ kind: 'turn' as const, turn })),
  );
  const placed = await hold(store, { user: 'ann', agent: null, reason: 'case 1', actor: 'kim', at: new Date() });

  const settings = { days: 30, datasets: 30, afterTraining: 30 };
  expect(await surveyRetention(store, settings, noon + 40 * dayMs)).toMatchObject({ days: [], conversations: 0 });
  await runRetention(store, { artifacts, settings, now: noon + 40 * dayMs, actor: 'test' });
  const asked = await askErasure(store, { user: 'ann', agent: null, actor: 'kim' });
  await carryOutErasures(store, { artifacts });
  const waiting = (await readErasure(store, asked.id))!;
  expect(waiting).toMatchObject({ status: 'erasing', problem: expect.stringContaining(placed.id) });
  expect([daysLeft(waiting, asked.at + dayMs), daysLeft(waiting, asked.at + 8 * dayMs)]).toEqual([6, -1]);
  expect(await verifyErasure(store, 'ann')).toMatchObject({ verified: false, stored: { conversations: 1 } });
  expect(await everythingIn(store)).toContain('ZELDA-4711');

  await releaseHold(store, placed.id, 'kim', new Date());
  await expect(releaseHold(store, placed.id, 'kim', new Date())).rejects.toThrow(/no legal hold/);
  for (let i = 0; i < 2; i++) {
    await carryOutErasures(store, { artifacts });
    await passTenMinutes(store);
  }
  expect(await everythingIn(store)).not.toContain('ZELDA-4711');
  const proof = await verifyErasure(store, 'ann');
  expect(proof).toMatchObject({
    verified: true,
    stored: { conversations: 0, turns: 0 },
    erasures: [{ status: 'done', audit: [{ event: 'erasure-requested' }, { event: 'erasure-done' }] }],
    chain: { rows: 4, problem: null },
  });
  expect(daysLeft(proof.erasures[0]!, Date.now())).toBeNull();
  const said = proofLines(proof);
  expect(said[0]).toBe('User ann: forgotten.');
  expect(said.at(-1)).toContain('Nothing is stored of them now');
  expect(await verifyErasure(store, 'bob')).toMatchObject({ verified: false, erasures: [] });
});
