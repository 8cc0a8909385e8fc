/** The promise of an erasure down to the bytes: an embedded server of its own, whose files are searched. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { curateWindow } from '../curate/run.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { readAudit } from '../store/audit.ts';
import { giveConsent } from '../store/consents.ts';
import { readErasure } from '../store/erasures.ts';
import { entry, noon } from '../store/fixtures.ts';
import { openStore, type Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { askErasure, carryOutErasures } from './erase.ts';
import { passTenMinutes } from './fixtures.ts';

const marker = 'ZELDA-4711';
const hash = (name: string) => `u_${name.padEnd(27, '_')}`;

/** The files below a folder that hold these bytes. */
const holding = (home: string, text: string): string[] =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => readFileSync(path).includes(text))
    .map((path) => path.slice(home.length + 1));

/** Short ones lie in the table and in what the server knows for planning, long ones that cannot be packed beside it. */
async function talk(store: Store, user: string, word: string): Promise<void> {
  const turns = Array.from({ length: 40 }, (_, i) =>
    converse(
      i % 10 === 0 ? `${word} ${randomBytes(6000).toString('base64')} ${word}` : `I am ${word} number ${i}`,
      [{ say: `Hello ${word}, for the ${i}th time.` }],
      { trajectory: `${user}-${i}`, user, startedAt: noon + i * 1000 },
    ),
  ).flat();
  await writeEntries(store, [
    ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
    ...turns.map((turn) =>
      entry.signal({ identity: `by ${turn.id}`, user, comment: `${word} says`, target: { kind: 'turn', id: turn.id } }),
    ),
  ]);
}

it('leaves no byte of what an erased user said in any file of the home, the database’s log included', async () => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-purge-'));
  const open = () => openStore({ home, volatile: true });
  let store = await open();
  onTestFinished(async () => {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  });
  const artifacts = openArtifacts({ home });
  const [ann, bob] = [hash('ann'), hash('bob')];
  for (const user of [ann, bob]) await giveConsent(store, 'desk', user, new Date(noon - 1000));
  await talk(store, ann, marker);
  await talk(store, bob, 'BOBBY-0815');
  const window = { agent: 'desk', spec: deskReward, since: new Date(noon - 1), until: new Date(noon + 90_000) };
  const now = new Date(noon + 100_000);
  await scoreWindow(store, { ...window, now });
  const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1, nearDuplicate: 1 };
  await curateWindow(store, artifacts, { ...window, now, settings });
  await store.pool.query('analyze');
  // A log that has been used again: otherwise there would be nothing of it to find.
  for (let i = 0; i < 3; i++) {
    await store.pool.query(`select pg_logical_emit_message(false, 'pawl', 'x'), pg_switch_wal()`);
    await store.pool.query('checkpoint');
  }
  const before = holding(home, marker);
  for (const where of [/artifacts|datasets/, /postgres\/data\/base/, /postgres\/data\/pg_wal/])
    expect(before.some((path) => where.test(path))).toBe(true);

  const { id } = await askErasure(store, { user: ann, agent: null, actor: 'test' });
  await passTenMinutes(store);
  expect(await carryOutErasures(store, { artifacts })).toBe(true);
  expect(await readErasure(store, id)).toMatchObject({ status: 'done', problem: null });
  expect((await readAudit(store, { limit: 100 })).find(({ event }) => event === 'erasure-done')!.details).toContain(
    '"bytes":"rewritten"',
  );
  expect(holding(home, marker)).toEqual([]);
  const { rows } = await store.pool.query<{ recycle: string }>('select current_setting($1) as recycle', [
    'wal_recycle',
  ]);
  expect(rows[0]).toEqual({ recycle: 'on' });

  // What the server held in memory is written when it stops.
  await store.close();
  expect(holding(home, marker)).toEqual([]);
  expect(holding(home, 'BOBBY-0815').length).toBeGreaterThan(0);
  store = await open();
  const left = await store.pool.query<{ n: number }>('select count(*) as n from pawl.turns');
  expect(left.rows[0]).toEqual({ n: 40 });
});
