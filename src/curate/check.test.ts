import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { agentPiiSettings, settledPii } from '../collect/redact/settings.ts';
import type { JournalEntry } from '../collect/signal.ts';
import { feedback } from '../score/feedback.ts';
import { converse } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { weighted } from '../score/weighted.ts';
import { readAudit } from '../store/audit.ts';
import { giveConsent, withdrawConsent } from '../store/consents.ts';
import { entry, noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { datasetFacts, needReady } from './check.ts';
import { refuseInternal } from './export-run.ts';
import { releaseShift } from './release-shift.ts';
import { curateWindow } from './run.ts';
import { settings as schema } from './settings.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-check-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const hour = 3_600_000;
const reward = weighted({ votes: [1, feedback()] });

type Talk = { readonly key: string; readonly at: number; readonly vote: number; readonly result?: string };
/** A conversation of a user of its own, with a tool's result and a vote. */
function talk(id: string, { key, at, vote, result = '{}' }: Talk): JournalEntry[] {
  const said = [{ say: [['get_order', '{"id":7}']] as const, results: [result] }, { say: `It was sent, ${id}.` }];
  const made = converse(`Where is order ${id}?`, said, {
    ...{ trajectory: id, user: `user-${id}`, clientKey: key, startedAt: at },
  });
  const turns = made.map((turn) => ({ ...turn, request: { ...turn.request, metadata: { task_type: 'status' } } }));
  return [
    ...turns.map((turn): JournalEntry => ({ kind: 'turn', turn })),
    entry.signal({
      ...{ identity: `vote ${id}`, user: `user-${id}`, value: vote, target: { kind: 'trajectory', id } },
      ...{ at: at + 5000, receivedAt: at + 5000, comment: id === 'a-now-0' ? 'the blue heron flies at noon' : null },
    }),
  ];
}

it('finds what was planted, holds a key whose scores jump until a person releases it, and keeps what is confidential inside', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home });
  const since = noon;
  const all: { id: string; of: Talk }[] = [];
  for (const key of ['a', 'b'])
    for (let i = 0; i < 20; i++) {
      all.push({ id: `${key}-before-${i}`, of: { key, at: since - hour + i * 1000, vote: i % 2 } });
      const isGood = key === 'a' ? 1 : i % 2;
      const planted = 'Project Heron: the BLUE heron flies at noon';
      const result = key === 'b' && i === 1 ? planted : i === 3 ? 'Write to help@acme.com.' : '{}';
      all.push({ id: `${key}-now-${i}`, of: { key, at: since + i * 1000, vote: isGood, result } });
    }
  for (const { id } of all) await giveConsent(store, 'desk', `user-${id}`, new Date(since - 2 * hour));
  await writeEntries(
    store,
    all.flatMap(({ id, of }) => talk(id, of)),
  );
  const window = { agent: 'desk', spec: reward, since: new Date(since), until: new Date(since + hour) };
  await scoreWindow(store, { ...window, since: new Date(since - hour), now: new Date(since + hour) });
  const settings = schema.parse({
    canaries: ['blue heron flies at noon'],
    confidential: { phrases: ['project heron'], keep: 'inside' },
    ...{ kAnonymity: 5, maxUserShare: 1, nearDuplicate: 1, require: { points: 25, types: 1, largestType: 1 } },
  });
  // The shop's own address is no leak, here as little as where the dataset is made.
  const pii = agentPiiSettings.parse({ allow: ['@acme.com'], policy: { email: 'drop' }, entities: 'off' });
  const agent = { curate: settings, pii };
  const make = (minute: number) => {
    const now = new Date(since + hour + minute * 60_000);
    return curateWindow(store, artifacts, { ...window, settings, pii: settledPii(pii), now });
  };

  // Key a went from half to all: held. Of key b, the ten good ones.
  const held = await make(0);
  expect(held).toMatchObject({ rows: 10, internal: true, taskTypes: { status: 10 } });
  expect(held.funnel.find(({ gate }) => gate === 'shifts')?.left).toEqual({
    'held for a person: scores of its key jumped': 20,
  });
  expect(() => refuseInternal(held)).toThrow(/desk-v1 is internal/);
  expect(() => refuseInternal(held, true)).not.toThrow();
  const facts = await datasetFacts(store, artifacts, held, agent);
  expect(facts).toMatchObject({ rows: 10, unclean: 0, personal: 0, lapsed: 0, kAnonymity: 5 });
  expect(facts.shifts).toMatchObject([{ key: 'a', taskType: 'status', before: 0.5, now: 1, conversations: 20 }]);
  const strict = { ...agent, pii: agentPiiSettings.parse({ policy: { email: 'drop' } }) };
  expect(await datasetFacts(store, artifacts, held, strict)).toMatchObject({ unclean: 1, personal: 1 });
  // In a tool's result, and in a comment on a conversation that is not even in the dataset.
  expect(facts.planted.canaries).toEqual([{ phrase: 0, found: 2, first: 'b-now-1' }]);
  await expect(needReady(store, artifacts, held, agent, ['points'])).rejects.toThrow(
    /not ready[\s\S]*canaries: phrase 1 of the list 2 times, first in b-now-1[\s\S]*shifts: status with key a/,
  );

  const by = { actor: 'kim', reason: 'a new form', at: new Date(since + hour) };
  await releaseShift(store, { agent: 'desk', key: 'a', taskType: 'status' }, by);
  expect(await readAudit(store, { event: 'shift-released' })).toMatchObject([{ actor: 'kim', subject: 'a' }]);
  const whole = await make(1);
  expect(whole.rows).toBe(30);
  const { overridden } = await needReady(store, artifacts, whole, agent, ['canaries']);
  expect(overridden.map(({ name }) => name)).toEqual(['canaries']);

  // Consent that is withdrawn after the dataset was made.
  await withdrawConsent(store, 'desk', 'user-b-now-3', new Date(since + 2 * hour));
  expect(await datasetFacts(store, artifacts, whole, agent)).toMatchObject({ lapsed: 1 });
});
