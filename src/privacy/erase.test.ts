import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { keepRejected } from '../collect/rejected.ts';
import type { JournalEntry } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { datasetReader } from '../curate/read.ts';
import { curateWindow } from '../curate/run.ts';
import { verifyAudit } from '../deploy/audit.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { readAudit } from '../store/audit.ts';
import { giveConsent, readConsent } from '../store/consents.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import { readErasure, surveyUser } from '../store/erasures.ts';
import { entry, noon, sibling, turn, uuidAt } from '../store/fixtures.ts';
import { lineOf } from '../store/line.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { saveVerdict } from '../store/verdicts.ts';
import { cleanHome } from './clean-home.ts';
import { askErasure, carryOutErasures } from './erase.ts';
import { everythingIn, passTenMinutes } from './fixtures.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-erase-'));
const artifacts = openArtifacts({ home });
afterAll(() => rmSync(home, { recursive: true, force: true }));

const hash = (name: string) => `u_${name.padEnd(27, '_')}`;
const [ann, bob, cleo] = [hash('ann'), hash('bob'), hash('cleo')];
/** In everything that Ann says or is told, and in nothing else. */
const marker = 'ZELDA-4711';

/** Long enough to be a message of its own, which many turns refer to. */
const long = ' and so on'.repeat(200);

const talk = (id: string, user: string | null, said: string, fields: Partial<Turn> = {}): Turn[] =>
  converse(
    said + long,
    [{ say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] }, { say: `So: ${said}` }],
    {
      trajectory: id,
      user,
      ...fields,
    },
  );
const recorded = (turns: readonly Turn[]): JournalEntry[] => turns.map((one) => ({ kind: 'turn', turn: one }));
const resolved = (id: string) =>
  entry.signal({
    kind: 'outcome',
    name: 'resolved',
    identity: `resolved ${id}`,
    user: null,
    target: { kind: 'trajectory', id },
  });
const window = {
  agent: 'desk',
  spec: deskReward,
  since: new Date(noon - 3_600_000),
  until: new Date(noon + 3_600_000),
  now: new Date(noon + 7_200_000),
};
const everyFile = (): string =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .join('\n');

/** Ann alone; Ann and Bob together; Bob alone, corrected by Ann; Cleo, of whom Ann only knows the order. */
async function fill(store: Store): Promise<{ hers: Turn[]; shared: Turn[]; bobs: Turn[] }> {
  for (const user of [ann, bob, cleo]) await giveConsent(store, 'desk', user, new Date(noon - 1000));
  const hers = talk('hers', ann, `I am ${marker}`, { keys: [`order:${marker}`, 'order:both'] });
  const shared = [
    ...talk('shared', bob, 'Hello from Bob'),
    ...talk('shared', ann, `${marker} joins`, { startedAt: noon + 10_000 }),
    ...talk('shared', bob, `Bob answers ${marker}`, { startedAt: noon + 20_000 }),
  ];
  const bobs = talk('bobs', bob, 'Where is Bob’s parcel?');
  const cleos = talk('cleos', cleo, 'Where is Cleo’s parcel?', { keys: ['order:both'] });
  await writeEntries(store, [
    ...recorded([...hers, ...shared, ...bobs, ...cleos]),
    {
      kind: 'sibling',
      sibling: sibling(hers[0]!, {
        choices: [{ index: 0, message: { role: 'assistant', content: marker }, finishReason: 'stop' }],
      }),
    },
    ...['hers', 'shared', 'bobs', 'cleos'].map(resolved),
    entry.signal({
      identity: 'ann on bob',
      user: ann,
      comment: `${marker} was here`,
      target: { kind: 'trajectory', id: 'bobs' },
    }),
    entry.signal({
      identity: 'ann corrects bob',
      user: ann,
      value: 0,
      correction: `${marker} knows better`,
      target: { kind: 'turn', id: bobs[1]!.id },
    }),
    entry.signal({
      identity: 'bob on ann',
      user: bob,
      comment: `Poor ${marker}`,
      target: { kind: 'turn', id: hers[1]!.id },
    }),
    entry.signal({
      identity: 'on her order',
      user: null,
      comment: marker,
      target: { kind: 'key', id: `order:${marker}` },
    }),
    entry.signal({ identity: 'on both', user: null, comment: 'both', target: { kind: 'key', id: 'order:both' } }),
    entry.signal({ identity: 'unmatched', user: ann, comment: marker, target: { kind: 'trajectory', id: 'nowhere' } }),
  ]);
  await scoreWindow(store, window);
  // What judges said: of hers, of a single answer of hers, of Bob's by what she wrote of it; and one that is Cleo's alone.
  const about = [hers[0]!.trajectory, `answer/${hers[1]!.id}`, bobs[0]!.trajectory, 'cleos'];
  for (const [i, trajectory] of about.entries()) {
    const of = { key: `key ${i}`, agent: 'desk', trajectory, day: '2026-05-20', prompt: 'judge 1', model: 'm' };
    await saveVerdict(store, of, { value: 1, reason: trajectory === 'cleos' ? 'Fine.' : `It helps ${marker}.` });
  }
  return { hers, shared, bobs };
}

describe('an erasure', () => {
  let store: Store;
  let turns: { hers: Turn[]; shared: Turn[]; bobs: Turn[] };
  let dataset: string;
  let file: string;
  beforeAll(async () => {
    store = await withStore();
    turns = await fill(store);
    const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1 };
    const made = await curateWindow(store, artifacts, { ...window, settings });
    dataset = made.id;
    file = await artifacts.file(made.artifact!);
    await store.pool.query(
      `insert into pawl.runs (id, agent, recipe, settings, base, folder, seed, steps, step, status, budget, spent, heartbeat_at, created_at)
       values ('run-1', 'desk', 'sft', $1, 'base', 'f', 0, 1, 1, 'finished', '{}', '{}', now(), now())`,
      [JSON.stringify({ dataset })],
    );
    mkdirSync(join(home, 'journal'));
    await keepRejected(join(home, 'journal'), lineOf({ kind: 'turn', turn: turns.hers[0]! }), 'refused once');
    await keepRejected(join(home, 'journal'), lineOf({ kind: 'turn', turn: turns.bobs[0]! }), 'refused too');
  });

  it('says first what would go, and changes nothing by that', async () => {
    expect(readFileSync(file, 'utf8')).toContain(marker);
    const before = await everythingIn(store);
    expect(await surveyUser(store, ann, null)).toMatchObject({
      counts: { conversations: 2, shared: 1, turns: 8, siblings: 1, keys: 2 },
      datasets: [{ id: dataset, learned: { runs: ['run-1'], releases: [] } }],
      consents: 1,
    });
    expect(await surveyUser(store, ann, 'other')).toMatchObject({ counts: { conversations: 0 }, consents: 0 });
    expect(await everythingIn(store)).toBe(before);
  });

  it('leaves no word of the user in any table or file, and what is others’ where it was', async () => {
    const { id } = await askErasure(store, { user: ann, agent: null, actor: 'test' });
    expect(await carryOutErasures(store, { artifacts })).toBe(true);
    expect(await readErasure(store, id)).toMatchObject({ status: 'sweeping' }); // a turn under way may repeat a message
    await passTenMinutes(store);
    expect(await carryOutErasures(store, { artifacts })).toBe(true);
    expect(await cleanHome(store, artifacts, 0)).toBe(1);
    expect(await everythingIn(store)).not.toContain(marker);
    expect(everyFile()).not.toContain(marker);
    expect(await readErasure(store, id)).toMatchObject({
      status: 'done',
      counts: { conversations: 2, shared: 1, turns: 8, siblings: 1 },
      datasets: [{ id: dataset, replacedBy: 'desk-v2', learned: { runs: ['run-1'] } }],
    });
    const left = await store.pool.query<{ id: string }>('select id from pawl.trajectories order by id');
    expect(left.rows.map((row) => row.id)).toEqual(['bobs', 'cleos']);
    const said = await store.pool.query<{ identity: string }>('select identity from pawl.signals order by identity');
    expect(said.rows.map((row) => row.identity)).toEqual(['on both', 'resolved bobs', 'resolved cleos']);
    const verdicts = await store.pool.query<{ trajectory: string }>('select trajectory from pawl.verdicts');
    expect(verdicts.rows.map((row) => row.trajectory)).toEqual(['cleos']);
    expect(everyFile()).toContain('Where is Bob’s parcel?'); // refused, and not hers
  });

  it('leaves a refusal in the place of consent, which stands until the user agrees anew', async () => {
    expect(await readConsent(store, 'desk', ann)).toMatchObject({ now: 'withdrawn', givenAt: null });
    expect(await readConsent(store, 'desk', bob)).toMatchObject({ now: 'given' });
  });

  it('makes a new version of a dataset; the old one says why it is gone, and training goes on with the new', async () => {
    expect(await readDataset(store, { id: dataset })).toMatchObject({ gone: { replacedBy: 'desk-v2' } });
    expect(existsSync(file)).toBe(false);
    expect((await listDatasets(store, {})).map(({ id, rows, gone }) => [id, rows, gone === null])).toEqual([
      ['desk-v2', 1, true],
      ['desk-v1', expect.any(Number), false],
    ]);
    const examples: string[] = [];
    for await (const one of datasetReader(store, artifacts).examples(dataset))
      examples.push(JSON.stringify(one.messages));
    expect(examples).toEqual([expect.stringContaining('Cleo')]);
  });

  it('stands in the audit log by the hash alone', async () => {
    const rows = await readAudit(store, {});
    expect(rows.map(({ event }) => event)).toEqual([
      ...['erasure-done', 'dataset-retired', 'erasure-requested', 'dataset-created'],
    ]);
    expect(JSON.stringify(rows)).toContain(ann);
    expect((await verifyAudit(store)).problem).toBeNull();
  });

  it('drops what journals deliver later of the time before, and counts it once', async () => {
    const late = [
      ...recorded(turns.hers),
      ...recorded(talk('never-seen', ann, `${marker} again`, { startedAt: noon + 30_000 })),
      ...recorded(talk('never-seen', bob, `Bob repeats ${marker}`, { startedAt: noon + 40_000 })),
      ...recorded([turns.shared.at(-1)!]), // Bob's, with her words in it
      {
        kind: 'sibling',
        sibling: sibling(turns.hers[1]!, {
          choices: [{ index: 0, message: { content: marker }, finishReason: 'stop' }],
        }),
      } as JournalEntry,
      entry.signal({ identity: 'late', user: ann, comment: marker, target: { kind: 'trajectory', id: 'bobs' } }),
      entry.signal({
        identity: 'late on her',
        user: bob,
        comment: marker,
        target: { kind: 'turn', id: turns.hers[0]!.id },
      }),
      entry.attachment({ key: `order:${marker}`, trajectory: 'hers' }),
    ];
    const before = await everythingIn(store);
    expect(await writeEntries(store, [...late, ...recorded(talk('news', bob, 'Bob’s next'))])).toMatchObject({
      refused: [],
    });
    // What came with them is there for turns that may refer to it, until it is swept.
    await carryOutErasures(store, { artifacts });
    expect(await everythingIn(store)).toContain(marker);
    await passTenMinutes(store);
    await carryOutErasures(store, { artifacts });
    expect(await everythingIn(store)).not.toContain(marker);
    const [erasure] = (await store.pool.query<{ id: string }>('select id from pawl.erasures')).rows;
    const counted = await readErasure(store, erasure!.id);
    await writeEntries(store, late); // a cursor that was lost
    expect((await readErasure(store, erasure!.id))?.late).toBe(counted?.late);
    expect(counted?.late).toBeGreaterThanOrEqual(7);
    expect(await everythingIn(store)).not.toBe(before); // Bob's next is there
    await passTenMinutes(store);
    await carryOutErasures(store, { artifacts });
    expect(await readErasure(store, erasure!.id)).toMatchObject({ status: 'done' });
  });

  it('takes back what another gateway was faster with: a turn that repeats what the user said', async () => {
    // Bob's turn comes first and looks like Bob's alone; hers, from another journal, shows whose words are in it.
    await writeEntries(store, recorded(talk('race', bob, `Bob repeats ${marker}`, { startedAt: noon + 60_000 })));
    expect(await everythingIn(store)).toContain(marker);
    await writeEntries(store, recorded(talk('race', ann, marker, { startedAt: noon + 50_000 })));
    const { rows } = await store.pool.query<{ id: string; status: string }>('select id, status from pawl.erasures');
    expect(rows).toEqual([expect.objectContaining({ status: 'erasing' })]);
    await passTenMinutes(store);
    await carryOutErasures(store, { artifacts });
    expect(await everythingIn(store)).not.toContain(marker);
    expect(await readErasure(store, rows[0]!.id)).toMatchObject({ status: 'done', counts: { conversations: 3 } });
  });

  it('lets in what the user says afterwards', async () => {
    const startedAt = Date.now() + 1000;
    await writeEntries(store, [entry.turn({ id: uuidAt(startedAt), trajectory: 'new', user: ann, startedAt })]);
    expect(await surveyUser(store, ann, null)).toMatchObject({ counts: { conversations: 1 } });
  });
});

it('of one agent leaves the user’s conversations with others', async () => {
  const store = await withStore();
  await writeEntries(store, [
    entry.turn({ trajectory: 'a', user: ann }),
    entry.turn({ trajectory: 'b', user: ann, agent: 'other' }),
    entry.turn({ trajectory: 'a', user: bob, startedAt: noon + 30 * 86_400_000 }), // the id again, weeks later
  ]);
  await askErasure(store, { user: ann, agent: 'desk', actor: 'test' });
  await carryOutErasures(store, { artifacts });
  await writeEntries(store, [
    entry.turn({ trajectory: 'c', user: ann, startedAt: noon + 1 }),
    entry.turn({ trajectory: 'c', user: ann, agent: 'other', startedAt: noon + 1 }),
  ]);
  const { rows } = await store.pool.query<{ id: string; agent: string }>(
    'select id, agent from pawl.trajectories order by id',
  );
  expect(rows).toEqual([
    { id: 'a', agent: 'desk' },
    { id: 'b', agent: 'other' },
    { id: 'c', agent: 'other' },
  ]);
});

it('waits for a writer that began before it, and removes what that wrote', async () => {
  const store = await withStore();
  await writeEntries(store, [entry.turn({ trajectory: 'a', user: ann })]);
  const other = turn({ trajectory: 'b', user: ann, startedAt: noon + 1 });
  // A batch that has looked for erasures, found none, and is still to be committed.
  const held = await store.pool.connect();
  await held.query('begin; lock table pawl.turns in access exclusive mode');
  const writing = writeEntries(store, recorded([other]));
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  while ((await store.pool.query(waiting)).rowCount === 0);
  await askErasure(store, { user: ann, agent: null, actor: 'test' });
  const erasing = carryOutErasures(store, { artifacts });
  await held.query('rollback');
  held.release();
  await writing;
  await erasing;
  expect((await store.pool.query('select 1 from pawl.turns')).rowCount).toBe(0);
});

it('a dataset that is being made while somebody in it is erased is not kept', async () => {
  const store = await withStore();
  await fill(store);
  const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1 };
  await askErasure(store, { user: cleo, agent: null, actor: 'test' });
  await store.pool.query('update pawl.consent set given_at = $1, withdrawn_at = null', [new Date(noon - 1000)]); // as it had read
  await expect(curateWindow(store, artifacts, { ...window, settings })).rejects.toThrow(/was erased while it was made/);
  expect(await listDatasets(store, {})).toEqual([]);
});
